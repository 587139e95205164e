"""Worlds by name. A preset never changes: a new difficulty or size is a new version."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from signspot.errors import InputError

# What makes the world hard, and how hard: the knobs that were set once, by the weakest baseline.


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """Sizes are standard deviations in shoulder widths or radians unless a line says otherwise."""

    # Between signers: personal offsets, a field over places and orientations.
    style_location: float = 0.035
    style_orientation: float = 0.10
    laxness: float = 0.10  # share by which fingers stay relaxed
    yaw_degrees: float = 6.0  # a broadcast signer stands aside by up to this much

    # Between two performances of the same signer.
    token_location: float = 0.025
    token_orientation: float = 0.07
    token_fingers: float = 0.09

    # Continuous signing (shares).
    reduction: float = 0.09  # of movement size, and of the way from the middle of the signing space
    assimilation: float = 0.07  # of the way to the neighbouring signs
    blend_frames: float = 0.8  # standard deviation of the blur that joins neighbours
    weak_drop: float = 0.08  # two-handed signs made with one hand

    # The lexicon (share of forms).
    minimal_pairs: float = 0.20
    synonyms: float = 0.04

    # The detector.
    jitter: float = 0.003  # picture widths
    dropped_hands: float = 0.05  # share of frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The size of a world and how hard it is."""

    name: str
    version: int = 1
    n_words: int
    n_annotated: int  # the most frequent words, which annotators know
    n_test_words: int  # of the annotated ones
    n_dictionary_signers: int
    n_train_signers: int
    n_test_signers: int  # never seen in training
    train_episodes: int
    test_episodes: int
    subtitles_per_episode: int
    entries_per_annotated_word: float = 2992 / 1064  # Paper 4.1
    entries_per_other_word: float = (14210 - 2992) / (9283 - 1064)  # Paper 4.1
    difficulty: Difficulty = field(default_factory=Difficulty)

    def __post_init__(self) -> None:
        if not 1 <= self.n_test_words <= self.n_annotated <= self.n_words:
            raise ValueError(f"{self.n_test_words} test words of {self.n_annotated} of {self.n_words}")


PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            name="demo", n_words=60, n_annotated=60, n_test_words=15, n_dictionary_signers=12, n_train_signers=4,
            n_test_signers=2, train_episodes=4, test_episodes=2, subtitles_per_episode=25,
        ),
        Preset(
            name="small", n_words=300, n_annotated=260, n_test_words=65, n_dictionary_signers=40, n_train_signers=12,
            n_test_signers=4, train_episodes=60, test_episodes=8, subtitles_per_episode=50,
        ),
        Preset(
            name="paper", n_words=9283, n_annotated=1064, n_test_words=264, n_dictionary_signers=148,
            n_train_signers=32, n_test_signers=8, train_episodes=891, test_episodes=32, subtitles_per_episode=100,
        ),
    )
}  # fmt: skip


def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise InputError(name, "is not a preset of the world", f"choose one of {', '.join(PRESETS)}")
    return PRESETS[name]


def chance(seed: int, *key: str | int) -> np.random.Generator:
    """A generator of its own for each key, such as ("episode", 7), whatever else was drawn before."""
    parts = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in key]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(parts)))
