"""A small signing world in vectors, with known truth, for tests of learning.

Every word has a latent vector. A clip of continuous signing shows a mixture of the signs its 16 frames overlap; a
dictionary clip shows one sign, articulated with care. Both go through a nonlinear map of their own (the domain shift:
`tanh` of a random rotation and offset), after the habits of a signer (an offset of the latent vector) and noise are
added. A passage is a sentence of distinct words, one sign after the other; its subtitle names most of them, in order,
and sometimes a word that is not signed. One sign of each passage is labelled, but only words of `annotated` ever are.
Nothing in here knows which loss is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Vocabulary, Word
from signspot.learning.material import Material, Passages

SIGN_FRAMES = 20  # at 25 fps a slow sign; the paper's are 7 to 13 within a longer mouthing
LATENT, DIM = 16, 32


@dataclass(frozen=True, kw_only=True)
class World:
    n_words: int = 40
    n_annotated: int = 20
    n_signers: int = 6
    variants: int = 2  # dictionary clips of a word, by other signers
    words_per_passage: int = 6
    noise: float = 0.3
    habit: float = 0.5  # how far signers differ, in units of how far words differ
    dropped: float = 0.2  # share of signs the subtitle does not name
    added: float = 0.2  # chance that the subtitle names a word that is not signed

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(tuple(Word(f"word{number:03}") for number in range(self.n_words)))

    @property
    def annotated(self) -> tuple[Word, ...]:
        return self.vocabulary.words[: self.n_annotated]

    @property
    def unannotated(self) -> tuple[Word, ...]:
        return self.vocabulary.words[self.n_annotated :]


@dataclass(frozen=True)
class _Domain:
    """A nonlinear map from latent vectors to what a trunk would give."""

    mixing: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64]

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> _Domain:
        return cls(rng.normal(size=(LATENT, DIM)) / np.sqrt(LATENT), rng.normal(size=DIM) * 0.5)

    def __call__(self, latent: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        return np.tanh(latent @ self.mixing + self.offset).astype(np.float32)


def planted(world: World, seed: int, n_train: int, n_test: int) -> tuple[Material, Material]:
    """Training passages labelled with annotated words, test passages labelled with words that never are."""
    rng = np.random.default_rng(seed)
    latents = rng.normal(size=(world.n_words, LATENT))
    continuous, isolated = _Domain.drawn(rng), _Domain.drawn(rng)
    entry_word = np.repeat(np.arange(world.n_words), world.variants)
    shown = latents[entry_word] + world.habit * rng.normal(size=(len(entry_word), LATENT))
    entries = isolated(shown + world.noise * rng.normal(size=shown.shape))
    habits = world.habit * rng.normal(size=(world.n_signers, LATENT))
    train_labels = np.arange(world.n_annotated)
    test_labels = np.arange(world.n_annotated, world.n_words)

    def material(n_passages: int, labels: npt.NDArray[np.int64], signers: npt.NDArray[np.int64]) -> Material:
        tracks, rows = [], []
        for number in range(n_passages):
            label = int(labels[number % len(labels)])
            others = rng.permutation(np.delete(np.arange(world.n_words), label))[: world.words_per_passage - 1]
            signed = rng.permutation(np.append(others, label))
            tracks.append(_track(world, latents[signed] + habits[rng.choice(signers)], continuous, rng))
            place = int(np.flatnonzero(signed == label)[0])
            mentioned = [int(w) for w in signed if w == label or rng.random() >= world.dropped]
            if rng.random() < world.added:
                mentioned.append(int(rng.integers(world.n_words)))
            rows.append((label, (place + 1) * SIGN_FRAMES, mentioned))
        words = [word for _, _, mentioned in rows for word in mentioned]
        n_frames = world.words_per_passage * SIGN_FRAMES
        passages = Passages(
            names=tuple(f"passage {number}" for number in range(n_passages)),
            track=np.arange(n_passages),
            start=np.zeros(n_passages, np.int64),
            stop=np.full(n_passages, n_frames),
            label=np.array([label for label, _, _ in rows]),
            label_frame=np.array([min(frame, n_frames - 1) for _, frame, _ in rows]),
            confidence=np.ones(n_passages, np.float32),
            word_offsets=np.cumsum([0, *(len(mentioned) for _, _, mentioned in rows)]),
            words=np.array(words, np.int64),
        )
        ids = tuple(f"entry {number}" for number in range(len(entry_word)))
        return Material(world.vocabulary, tracks, passages, ids, entries, entry_word, "planted")

    # The last two signers are met in the test alone.
    heard, unheard = np.arange(world.n_signers - 2), np.arange(world.n_signers - 2, world.n_signers)
    return material(n_train, train_labels, heard), material(n_test, test_labels, unheard)


def _track(
    world: World, signs: npt.NDArray[np.float64], domain: _Domain, rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """The vectors of all windows of one sentence; a window shows each sign in proportion to its frames of it."""
    frames = np.repeat(signs, SIGN_FRAMES, axis=0)
    sums = np.concatenate([np.zeros((1, LATENT)), np.cumsum(frames, axis=0)])
    windows = (sums[16:] - sums[:-16]) / 16
    return domain(windows + world.noise * rng.normal(size=windows.shape))
