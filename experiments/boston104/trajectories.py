"""Hand trajectories as the vectors of a trunk: clips of 16 frames, whitened; and changed copies of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from experiments.lib.data_sets import SignedSentence, SignedWord

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import CLIP_LENGTH, FloatArray

VELOCITY_WEIGHT = 2.0  # of a frame's motion beside its place
WHITENED_DIM = 24  # of the 128 numbers of a clip
HALF_WHITENED = 0.5  # 0: principal components as they are, 1: all of equal size


@dataclass(frozen=True, slots=True)
class Postures:
    """Where each signer's hands are on average, and how far they move: from training sentences alone."""

    mean: Mapping[str, FloatArray]  # (4,) pixels from the nose
    spread: Mapping[str, float]  # pixels

    @classmethod
    def of(cls, sentences: Iterable[SignedSentence]) -> Postures:
        """Measure the signers of these sentences."""
        by_signer: dict[str, list[FloatArray]] = {}
        for sentence in sentences:
            by_signer.setdefault(sentence.signer, []).append(_from_nose(sentence))
        places = {signer: np.concatenate(parts) for signer, parts in by_signer.items()}
        return cls(
            {signer: part.mean(axis=0) for signer, part in places.items()},
            {signer: float(part.std(axis=0).mean()) for signer, part in places.items()},
        )

    def motion(self, sentence: SignedSentence) -> FloatArray:
        """(n_frames, 4) x, y of both hands in the signer's own measure."""
        motion: FloatArray = (_from_nose(sentence) - self.mean[sentence.signer]) / self.spread[sentence.signer]
        return motion


def _from_nose(sentence: SignedSentence) -> FloatArray:
    nose = np.median(sentence.places[:, 2], axis=0)  # the head moves with grammar, so its usual place is the origin
    places: FloatArray = (sentence.places[:, :2] - nose).reshape(-1, 4)
    return places


def frames_of(motion: FloatArray) -> FloatArray:
    """(n, 4) places -> (n, 8) places and velocities."""
    velocity = np.gradient(motion, axis=0) * VELOCITY_WEIGHT
    return np.concatenate([motion, velocity], axis=1).astype(np.float32)


def clips(frames: FloatArray, centres: npt.ArrayLike, length: float = CLIP_LENGTH) -> FloatArray:
    """(n_clips, 16, 8): 16 moments spread over `length` frames around each centre; the ends of a sentence stand."""
    moments = (np.arange(CLIP_LENGTH) - (CLIP_LENGTH - 1) / 2) * (length / CLIP_LENGTH)
    time = np.clip(np.asarray(centres, np.float64)[:, None] + moments, 0, len(frames) - 1)
    before = np.minimum(time.astype(np.int64), len(frames) - 2)
    share = (time - before)[..., None]
    mixed: FloatArray = (frames[before] * (1 - share) + frames[before + 1] * share).astype(np.float32)
    return mixed


def windows(frames: FloatArray, length: float = CLIP_LENGTH) -> FloatArray:
    """(n_frames, 16, 8): the clip around every frame."""
    return clips(frames, np.arange(len(frames)), length)


def token(frames: FloatArray, span: FrameSpan, length: float = CLIP_LENGTH) -> FloatArray:
    """(16, 8): the clip around the middle of a word."""
    clip: FloatArray = clips(frames, [(span.start + span.stop - 1) / 2], length)[0]
    return clip


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """An affine map from flattened clips (n, 128) to vectors (n, d)."""

    mean: FloatArray  # (128,)
    matrix: FloatArray  # (128, d)

    def __call__(self, some_clips: FloatArray) -> FloatArray:
        """(n, 16, 8) -> (n, d)."""
        vectors: FloatArray = ((some_clips.reshape(len(some_clips), -1) - self.mean) @ self.matrix).astype(np.float32)
        return vectors


def centred(some_clips: FloatArray) -> Projection:
    """The map that only takes the mean of these clips away."""
    flat = some_clips.reshape(len(some_clips), -1)
    return Projection(flat.mean(axis=0), np.eye(flat.shape[1], dtype=np.float32))


def whitened(some_clips: FloatArray) -> Projection:
    """Principal components, half whitened, of numbers of size 1: neighbouring frames say the same sixteen times."""
    flat = some_clips.reshape(len(some_clips), -1)
    mean = flat.mean(axis=0)
    directions, variances, _ = np.linalg.svd(np.cov((flat - mean).T))
    matrix = directions[:, :WHITENED_DIM] / variances[:WHITENED_DIM] ** (HALF_WHITENED / 2)
    size = float(np.sqrt((((flat - mean) @ matrix) ** 2).mean()))
    return Projection(mean, (matrix / size).astype(np.float32))


def word_whitened(tokens: FloatArray, words: Sequence[str], mean: FloatArray) -> Projection:
    """The closed form of learning: directions count the less, the more tokens of one word differ in them."""
    flat, names = tokens.reshape(len(tokens), -1), np.asarray(words)
    within = np.zeros((flat.shape[1], flat.shape[1]))
    weights = 0.0
    for name in np.unique(names):
        own = flat[names == name] - flat[names == name].mean(axis=0)
        weight = min(1.0, 15 / len(own))  # john alone has a sixth of all tokens
        within += weight * own.T @ own
        weights += weight * (len(own) - 1)
    within /= weights
    within += 0.1 * np.trace(within) / len(within) * np.eye(len(within))
    directions, variances, _ = np.linalg.svd(within)
    return Projection(mean, (directions / np.sqrt(variances)).astype(np.float32))


def changed(
    motion: FloatArray, words: Sequence[SignedWord], rng: np.random.Generator
) -> tuple[FloatArray, tuple[SignedWord, ...]]:
    """A sentence signed a little faster or slower, larger or smaller, turned, elsewhere and less steadily."""
    rate = float(np.exp(rng.normal(0, 0.2)))
    time = np.arange(max(20, round(len(motion) / rate))) * rate
    columns = [np.interp(time, np.arange(len(motion)), column) for column in motion.T]
    angle, size = rng.normal(0, 0.1), np.exp(rng.normal(0, 0.1))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) * size
    turned = (np.stack(columns, axis=1).reshape(-1, 2, 2) @ turn).reshape(-1, 4)
    moved = np.tile(rng.normal(0, 0.2, 2), 2) + rng.normal(0, 0.1, 4)
    unsteady = turned + moved + rng.normal(0, 0.05, turned.shape)
    spans = [(round(one.span.start / rate), round(one.span.stop / rate)) for one in words]
    return unsteady.astype(np.float32), tuple(
        SignedWord(one.word, FrameSpan(start, max(start + 1, stop)))
        for one, (start, stop) in zip(words, spans, strict=True)
    )
