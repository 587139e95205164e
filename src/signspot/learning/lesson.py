"""From a config and what it is to be trained on to a lesson: which words, which batches, which loss, which test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from signspot.domain.spans import Tolerance
from signspot.domain.words import Synonyms, Word
from signspot.errors import InputError
from signspot.learning.batches import BatchOptions, BatchSource
from signspot.learning.config import EmbeddingConfig
from signspot.learning.material import Material
from signspot.learning.material_checks import refuse_other_trunk
from signspot.learning.minibatch import Minibatch
from signspot.learning.model_file import ModelFile
from signspot.learning.objective import Objective
from signspot.learning.splits import WordSplit


class BatchStream(Protocol):
    """Where minibatches come from."""

    @property
    def steps_per_epoch(self) -> int:
        """How many minibatches an epoch has."""

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[Minibatch]:
        """The minibatches of an epoch from `first_step` on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lesson:
    """What a run learns from and is tested on."""

    batches: BatchStream
    objective: Objective
    input_dim: int  # of the trunk's vectors
    n_words: int  # of the vocabulary, for a classifier
    passage_names: tuple[str, ...] = ()
    test: Material | None = None
    test_words: tuple[Word, ...] | None = None  # None: every label of the test set
    model_file: ModelFile = ModelFile()
    report: tuple[str, ...] = ()  # what is used of the data and what is left out, for people


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingData:
    """What the user gave to learn from."""

    train: Material
    test: Material | None = None
    split: WordSplit | None = None
    synonyms: Synonyms | None = None
    model_file: ModelFile = ModelFile()


def make_lesson(config: EmbeddingConfig, data: TrainingData) -> Lesson:
    """Put together what the config asks for; what it asks for and the data lack is refused."""
    if config.training_words == "train" and data.split is None:
        raise InputError("training_words = train", "needs a split file", "add --set split=SPLIT.json")
    if config.synonyms != "keep" and data.synonyms is None:
        raise InputError(f"synonyms = {config.synonyms}", "no synonyms were given", "name where they come from")
    if data.test is not None:
        refuse_other_trunk(data.train, data.test, "test set")
    batches = BatchSource(data.train, batch_options(config, data.split), config.seed)
    return Lesson(
        batches=batches,
        objective=Objective(config, _pairs(data) if config.synonyms != "keep" else None),
        input_dim=data.train.entry_vectors.shape[1],
        n_words=len(data.train.vocabulary),
        passage_names=data.train.passages.names,
        test=data.test,
        test_words=data.split.test if data.split is not None else None,
        model_file=data.model_file,
        report=batches.report.lines(),
    )


def batch_options(config: EmbeddingConfig, split: WordSplit | None) -> BatchOptions:
    """The part of a config that shapes minibatches."""
    try:
        return BatchOptions(
            batch_size=config.batch_size,
            # Only watch-read-lookup looks at clips without a label.
            n_background=config.background_clips if config.loss == "watch-read-lookup" else 0,
            around=Tolerance(config.foreground_before, config.foreground_after),
            foreground=config.foreground,
            min_confidence=config.min_confidence,
            balanced=config.balanced,
            words=_training_words(config, split),
            dictionary=config.dictionary,
        )
    except ValueError as error:
        raise InputError("config", str(error), "correct these options") from error


def _training_words(config: EmbeddingConfig, split: WordSplit | None) -> frozenset[Word] | None:
    if split is None:
        return None
    return frozenset(split.train) if config.training_words == "train" else split.words


def _pairs(data: TrainingData) -> Tensor:
    """(n, 2) int64: the pairs of words of the vocabulary that are synonyms."""
    vocabulary = data.train.vocabulary
    held = data.synonyms.pairs if data.synonyms is not None else ()
    known = sorted((a, b) for a, b in held if a in vocabulary and b in vocabulary)
    ids = [(vocabulary.id_of(a), vocabulary.id_of(b)) for a, b in known]
    return torch.tensor(ids, dtype=torch.int64).reshape(-1, 2)
