"""New words made of recorded ones: played backwards, signed elsewhere, with the hand shape of another, or compounds.

Few words are known, and a network that only tells them apart forgets what they do not need. Sign languages build words
from hand shape, place and movement; exchanging one of these makes a word nobody signs but anybody could. Both windows
of a pair are changed in the same way, so that they still show one word, by two signers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from signspot.domain.tracks import CLIP_LENGTH, FloatArray
from signspot.learning.stitching import PARTS
from signspot.spotting.multi_rate import points_at

Pair = tuple[FloatArray, FloatArray]  # windows (16, 258) of one word by two signers

_ARMS = ((13, (15, 17, 19, 21)), (14, (16, 18, 20, 22)))  # the elbow and the hand's points of the pose: left, right
_FEWEST_SHAPES = 4  # frames in which a hand must be seen to lend its shape


def made_up_word(pair: Pair, other: Pair, rng: np.random.Generator) -> Pair:
    """A new word of one or two known ones, shown by the same two signers."""
    kind = int(rng.integers(4))
    if kind == 0:
        return np.ascontiguousarray(pair[0][::-1]), np.ascontiguousarray(pair[1][::-1])
    if kind == 1:
        angle, distance = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 1.1)  # shoulder widths
        offset = (distance * np.cos(angle), distance * np.sin(angle))
        return elsewhere(pair[0], offset), elsewhere(pair[1], offset)
    if kind == 2:
        return with_shape_of(pair[0], other[0]), with_shape_of(pair[1], other[1])
    first = int(rng.integers(6, 11))  # frames of the compound that show the first word
    return compound(pair[0], other[0], first), compound(pair[1], other[1], first)


def elsewhere(window: FloatArray, offset: Sequence[float]) -> FloatArray:
    """The same hands and wrists, moved by (x, y); elbows follow half the way."""
    moved = window.copy()
    step = np.asarray(offset, dtype=np.float32)
    pose = moved[:, PARTS[0]].reshape(len(window), 33, 4)
    seen = (window[:, PARTS[0]] != 0).any(axis=1, keepdims=True)
    for part, (elbow, points) in zip(PARTS[1:], _ARMS, strict=True):
        hand = moved[:, part].reshape(len(window), 21, 3)
        hand[..., :2] += np.where((hand != 0).any(axis=(1, 2), keepdims=True), step, 0)
        moved[:, part] = hand.reshape(len(window), -1)
        pose[:, points, :2] += np.where(seen[..., None], step, 0)
        pose[:, elbow, :2] += np.where(seen, step / 2, 0)
    moved[:, PARTS[0]] = pose.reshape(len(window), -1)
    return moved


def with_shape_of(window: FloatArray, other: FloatArray) -> FloatArray:
    """The hands of `window` where they are, each with the shape that the same hand has in `other`."""
    changed = window.copy()
    frames = np.arange(len(window))
    for part in PARTS[1:]:
        own, lent = (clip[:, part].reshape(len(clip), 21, 3) for clip in (window, other))
        shown = np.flatnonzero(lent.any(axis=(1, 2)))
        if len(shown) < _FEWEST_SHAPES:
            continue
        shape = lent[shown[np.abs(frames[:, None] - shown).argmin(axis=1)]]
        hand = shape - shape[:, :1] + own[:, :1]
        changed[:, part] = np.where(own.any(axis=(1, 2), keepdims=True), hand, 0).reshape(len(window), -1)
    return changed


def compound(first: FloatArray, second: FloatArray, n_first: int) -> FloatArray:
    """The first word in `n_first` frames, the second in what is left of the 16."""
    lengths = (n_first, CLIP_LENGTH - n_first)
    shortened = (
        points_at(window, np.linspace(0, len(window) - 1, length))
        for window, length in zip((first, second), lengths, strict=True)
    )
    return np.concatenate(list(shortened))
