"""One minibatch of Paper 3.2: segments of continuous signing and the dictionary entries of their subtitle words.

Every dictionary entry is there once, however many items mention its word: `row_entry` says which entry each dictionary
row of the minibatch shows. The released loss works on those rows; embedding the distinct entries gives the same numbers
for a fraction of the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

BACKGROUND = -1  # the word of a segment that nobody labelled


@dataclass(frozen=True, slots=True, eq=False)
class Minibatch:
    """n_items passages; vectors are the trunk's before the head, and embeddings after `with_vectors`.

    Rows of one item stand together and items ascend, as in the released sample batch; nothing depends on it but which
    mentions of a word count as one run in the released formulation.
    """

    n_items: int
    segments: Tensor  # (S, d) continuous clips
    segment_item: Tensor  # (S,) int64
    segment_word: Tensor  # (S,) int64: the label of a foreground segment, else BACKGROUND
    entries: Tensor  # (E, d) distinct dictionary entries
    entry_word: Tensor  # (E,) int64
    row_entry: Tensor  # (R,) int64: the dictionary rows, in order
    row_item: Tensor  # (R,) int64
    row_is_foreground: Tensor  # (R,) bool: the entry's word is the label of the item
    passages: tuple[int, ...] = ()  # the passages of the items, to name them when something is wrong

    def __post_init__(self) -> None:
        if len(self.segments) != len(self.segment_item) or len(self.segments) != len(self.segment_word):
            raise ValueError(f"{len(self.segments)} segments, {len(self.segment_item)} items")
        if len(self.entries) != len(self.entry_word):
            raise ValueError(f"{len(self.entries)} entries, {len(self.entry_word)} words")
        if not len(self.row_entry) == len(self.row_item) == len(self.row_is_foreground):
            raise ValueError(f"{len(self.row_entry)} dictionary rows, {len(self.row_item)} items")

    @property
    def segment_is_foreground(self) -> Tensor:
        """(S,) bool."""
        return self.segment_word != BACKGROUND

    @property
    def row_word(self) -> Tensor:
        """(R,) int64: the word of every dictionary row."""
        return self.entry_word[self.row_entry]

    def with_vectors(self, segments: Tensor, entries: Tensor) -> Minibatch:
        """The same minibatch with other vectors, such as their embeddings."""
        return replace(self, segments=segments, entries=entries)

    def to(self, device: torch.device | str) -> Minibatch:
        """The same minibatch on a device."""
        return replace(
            self,
            segments=self.segments.to(device),
            segment_item=self.segment_item.to(device),
            segment_word=self.segment_word.to(device),
            entries=self.entries.to(device),
            entry_word=self.entry_word.to(device),
            row_entry=self.row_entry.to(device),
            row_item=self.row_item.to(device),
            row_is_foreground=self.row_is_foreground.to(device),
        )
