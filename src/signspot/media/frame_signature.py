"""Telling copies of one recording from other recordings of the same person: a signature of what changes in a clip.

Clips of a dictionary share their signer, their clothes and their wall; whole pictures of different signs look alike. So
what stays the same all through the clip is taken away first. One half of a signature is of the whole clip: copies that
were scaled or compressed again keep it. The other is of the part that moves: copies that were cut a few frames earlier
or later keep that. Mirrored, cropped or slowed copies keep neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PIL import Image

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import FloatArray, Pixels

SIGNATURE_SHAPE = (2, 2048)  # the kept part and the whole clip: 8 moments of 16 x 16 places each
# The cosine of two halves. Set between copies (0.946 and above) and other signs (0.857 and below) of 24 rendered clips
# of one signer; not yet checked on a real dictionary.
NEARLY_THE_SAME = 0.92
_MOMENTS, _SIDE = 8, 16
_LEAST_CHANGE = 1.0  # grey levels; less is noise
_BLOCK = 1024  # signatures compared at once


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two clips that look like copies of one recording, by their place in the list; `later` comes after `earlier`."""

    later: int
    earlier: int
    cosine: float


def frame_signature(frames: Sequence[Pixels], kept: FrameSpan) -> FloatArray:
    """The signature (2, 2048) float32 of frames (H, W, 3): rows of length 1, or zero if nothing changes."""
    greys = np.stack([_grey(pixels) for pixels in frames])
    return np.stack([_half(greys[kept.start : kept.stop]), _half(greys)])


def near_pairs(signatures: FloatArray, least: float = NEARLY_THE_SAME) -> list[NearPair]:
    """For every clip of (n, 2, 2048) the earlier one most like it, where a cosine is at least `least`."""
    pairs = []
    for start in range(0, len(signatures), _BLOCK):
        block = signatures[start : start + _BLOCK]
        earlier = signatures[: start + len(block)]
        cosine = np.maximum(*(block[:, half] @ earlier[:, half].T for half in range(2)))
        # Only earlier rows count: every pair is named once, and the list stays as short as the dictionary.
        cosine[np.arange(cosine.shape[1]) >= start + np.arange(len(block))[:, None]] = -1
        nearest = cosine.argmax(axis=1)
        highest = cosine[np.arange(len(block)), nearest]
        found = np.flatnonzero(highest >= least)
        pairs += [NearPair(start + int(row), int(nearest[row]), min(1.0, float(highest[row]))) for row in found]
    return pairs


def _half(greys: FloatArray) -> FloatArray:
    # Each moment is a mean over an eighth of the clip, so a shift of a few frames changes little.
    edges = np.linspace(0, len(greys), _MOMENTS + 1)
    moments = np.stack([_mean(greys, start, stop) for start, stop in pairwise(edges.tolist())])
    changes = (moments - moments.mean(axis=0)).ravel()
    length = float(np.linalg.norm(changes))
    if length < _LEAST_CHANGE * np.sqrt(len(changes)):
        return np.zeros(SIGNATURE_SHAPE[1], np.float32)
    half: FloatArray = (changes / length).astype(np.float32)
    return half


def _grey(pixels: Pixels) -> FloatArray:
    small = Image.fromarray(pixels).convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float32)


def _mean(greys: FloatArray, start: float, stop: float) -> FloatArray:
    """The mean over the frames that [start, stop) touches, each by the share it touches."""
    frames = np.arange(len(greys))
    shares = np.clip(np.minimum(frames + 1, stop) - np.maximum(frames, start), 0, 1)
    mean: FloatArray = np.tensordot(shares / shares.sum(), greys, axes=1).astype(np.float32)
    return mean
