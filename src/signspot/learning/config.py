"""Every option of a training run of the head, with the paper's value as its default."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from signspot.learning.toml_options import as_toml, read_config

__all__ = ["EmbeddingConfig", "as_toml", "read_config"]

LARGEST = 10**9  # of any count: beyond it lies a slip of the keyboard


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingConfig:
    """Everything that changes what a run of `signspot train embedding` learns; PAPER.md lists the sources."""

    # What is learned from (Paper 3.1, App. C.2)
    loss: Literal["watch-read-lookup", "watch-lookup", "infonce", "classification"] = "watch-read-lookup"
    formulation: Literal["paper", "released"] = "paper"  # of the bags of watch-read-lookup
    anchors: Literal["both", "segment", "dictionary"] = "both"  # of watch-lookup
    segment_background: Literal["each-segment", "each-word"] = "each-segment"  # bags of P(seg-back), deviation D1
    average: Literal["bags", "anchors"] = "bags"  # of the loss: over all bags, or over the anchors' means
    repeats: Literal["rows", "entries"] = "rows"  # an entry that several items show counts for each, or once
    temperature: float = 0.07  # tau of Eq. 1 (Paper 4.3)

    # The head (Paper 3.2, App. C.1)
    hidden_dim: int = 512
    embedding_dim: int = 256
    activation_after_last: Literal["paper", "released"] = "paper"  # deviation D4
    domain_specific: bool = False  # own layers for continuous and dictionary clips (App. B.3)

    # Minibatches (Paper 3.2)
    batch_size: int = 128  # passages; 512 for watch-lookup (App. B.2)
    balanced: bool = True  # one passage per word in a minibatch (App. B.2)
    foreground: Literal["inside", "centre"] = "inside"  # the clip, or only its centre, lies around the label
    foreground_before: int = 20  # frames before the label that a foreground clip may reach
    foreground_after: int = 5
    background_clips: int = 10  # of each passage, outside the labelled window
    min_confidence: float = 0.5  # of the labels (App. B.6)

    # Words (Paper 4.1, 4.2)
    split: Path | None = None  # a split file; without one, all words are trained and tested
    training_words: Literal["all", "train"] = "all"  # all: test words are seen; train: they are unseen
    dictionary: Literal["limited", "full"] = "limited"  # entries of the training words, or of all words (Tab. 3)
    synonyms: Literal["keep", "english", "sign"] = "keep"  # pairs taken out of the negatives (App. B.4)

    # Optimisation (Paper 3.2; momentum and weight decay as the released trainer of the trunk)
    learning_rate: float = 1e-2
    momentum: float = 0.9
    weight_decay: float = 0.0
    epochs: int = 50
    decay_epochs: tuple[int, ...] = (40, 45)  # the learning rate is divided by ten after these
    seed: int = 0  # the paper reports three (App. B.1)

    # Test (Paper 3.2, "Test time")
    test_stride: int = 1  # frames between two windows (App. B.5)
    evaluate_every: int = 1  # epochs

    # The machine
    device: str = "cpu"  # cpu, cuda, cuda:1, mps
    precision: Literal["auto", "float32", "mixed"] = "auto"  # auto: mixed where a GPU computes in bfloat16
    threads: int = 0  # 0: as many as torch chooses; a run continues with as many as it began with

    def __post_init__(self) -> None:
        for name in ("hidden_dim", "embedding_dim", "batch_size", "epochs", "test_stride", "evaluate_every"):
            refuse_outside(name, getattr(self, name), 1, LARGEST)
        for name in ("background_clips", "foreground_before", "foreground_after", "seed", "threads"):
            refuse_outside(name, getattr(self, name), 0, LARGEST)
        refuse_outside("min_confidence", self.min_confidence, 0, 1)
        refuse_outside("temperature", self.temperature, 1e-3, 1e3)
        refuse_outside("learning_rate", self.learning_rate, 0, 1e3)
        refuse_outside("weight_decay", self.weight_decay, 0, 1e3)
        refuse_outside("momentum", self.momentum, 0, 0.9999)
        refuse_run_options(self.decay_epochs, self.device)

    def learning_rate_in(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0.

        >>> [round(EmbeddingConfig().learning_rate_in(epoch), 9) for epoch in (0, 39, 40, 45)]
        [0.01, 0.01, 0.001, 0.0001]
        """
        return decayed(self.learning_rate, self.decay_epochs, epoch)


def differing_options(first: EmbeddingConfig, second: EmbeddingConfig) -> tuple[str, ...]:
    """The names of the options that two configurations do not share."""
    return tuple(i.name for i in fields(first) if getattr(first, i.name) != getattr(second, i.name))


def refuse_outside(name: str, value: float, least: float, most: float) -> None:
    """Raise ValueError unless an option lies in its range."""
    if not least <= value <= most:
        raise ValueError(f"{name} = {value} does not lie between {least} and {most}")


def refuse_run_options(decay_epochs: tuple[int, ...], device: str) -> None:
    """Raise ValueError for a schedule or a device that no run can have."""
    if list(decay_epochs) != sorted(set(decay_epochs)) or any(epoch < 1 for epoch in decay_epochs):
        raise ValueError(f"decay_epochs {list(decay_epochs)} do not ascend from 1")
    if device.partition(":")[0] not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device {device!r} is none of cpu, cuda, mps")


def decayed(learning_rate: float, decay_epochs: tuple[int, ...], epoch: int) -> float:
    """The learning rate of an epoch, counted from 0: a tenth after each of the epochs named."""
    return learning_rate * 0.1 ** sum(epoch >= decay for decay in decay_epochs)
