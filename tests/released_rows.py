"""Minibatches from the arrays the released loss takes: one row per clip, with columns that say what it is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from signspot.errors import InputError
from signspot.learning.batches import BACKGROUND, Minibatch


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedRows:
    """N clips of a minibatch in the layout of the released sample batch."""

    features: Tensor  # (N, d) float
    targets: Tensor  # (N,) the word; anything for continuous clips that are not labelled
    domain_labels: Tensor  # (N,) 0: continuous, 1: dictionary
    batch_labels: Tensor  # (N,) the item
    is_mouthing: Tensor  # (N,) 1: labelled, or of the dictionary and of the labelled word

    def __post_init__(self) -> None:
        columns = (self.targets, self.domain_labels, self.batch_labels, self.is_mouthing)
        if self.features.ndim != 2 or any(column.shape != self.features.shape[:1] for column in columns):
            shapes = ", ".join(str(tuple(column.shape)) for column in (self.features, *columns))
            raise InputError("released rows", f"have the shapes {shapes}", "give (N, d) features and columns of N")
        for name, column in (("domain_labels", self.domain_labels), ("is_mouthing", self.is_mouthing)):
            if not ((column == 0) | (column == 1)).all():
                raise InputError("released rows", f"{name} holds other values than 0 and 1", "mend that column")
        named = (self.domain_labels == 1) | (self.is_mouthing == 1)
        if (self.targets[named] < 0).any():
            raise InputError("released rows", "a labelled or dictionary clip has no word", "give targets from 0 up")


def minibatch_from_rows(rows: ReleasedRows, *, deduplicate: bool = True) -> Minibatch:
    """The same minibatch; with `deduplicate`, dictionary clips of one word with equal vectors become one entry."""
    continuous = (rows.domain_labels == 0).nonzero().squeeze(1)
    dictionary = (rows.domain_labels == 1).nonzero().squeeze(1)
    items, item = torch.unique(rows.batch_labels, return_inverse=True)
    is_foreground = rows.is_mouthing == 1
    entry_row, row_entry = dictionary, torch.arange(len(dictionary), device=dictionary.device)
    if deduplicate:
        row_entry = _same_clips(rows.features.detach()[dictionary], rows.targets[dictionary])
        first = torch.full_like(row_entry, len(row_entry)).scatter_reduce(
            0, row_entry, torch.arange(len(row_entry), device=row_entry.device), "amin"
        )
        entry_row = dictionary[first[: int(row_entry.max()) + 1 if len(row_entry) else 0]]
    return Minibatch(
        n_items=len(items),
        segments=rows.features.index_select(0, continuous),
        segment_item=item[continuous],
        segment_word=torch.where(is_foreground, rows.targets.long(), BACKGROUND)[continuous],
        entries=rows.features.index_select(0, entry_row),
        entry_word=rows.targets.long()[entry_row],
        row_entry=row_entry,
        row_item=item[dictionary],
        row_is_foreground=is_foreground[dictionary],
    )


def _same_clips(vectors: Tensor, words: Tensor) -> Tensor:
    """(R,) int64: rows of the same word with the same vector get the same number."""
    _, number = torch.unique(vectors, dim=0, return_inverse=True)
    same: Tensor = torch.unique(torch.stack([words.long(), number], dim=1), dim=0, return_inverse=True)[1]
    return same
