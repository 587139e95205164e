"""Running signing made of recorded single signs: trimmed, sped up, moved onto one body, joined by short transitions.

A window of running signing differs from a clip of one sign: it begins and ends in a neighbour, the hands do not rest,
and everything is faster. Windows for training and passages for tests are made here, at 25 frames a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, FloatArray
from signspot.domain.words import Word
from signspot.media.landmark_layout import X_PLACES
from signspot.spotting.multi_rate import points_at
from signspot.spotting.sign_span import signing_span

PARTS = (slice(0, 132), slice(132, 195), slice(195, LANDMARK_DIM))  # pose, left hand, right hand
_SHOULDERS = (11, 12)
_FEWEST_FRAMES = 5  # that are left of a sign


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSign:
    """One clip of one sign on a body of standard size."""

    word: Word
    signer: str
    points: FloatArray  # (n_frames, 258) in shoulder widths from between the shoulders, zeros where not found
    span: FrameSpan  # the frames with a raised hand


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """How far a training window may differ from the whole sign."""

    most_cut: float = 0.25  # of the sign, at either end
    most_rest: float = 0.12  # of the sign, before and after it
    neighbours: float = 0.5  # how many windows are set among other signs
    longest_neighbour: int = 8  # frames
    longest_bridge: int = 6  # frames
    most_warp: float = 0.25  # how unevenly time may pass


@dataclass(frozen=True, slots=True, kw_only=True)
class StitchOptions:
    """How signs become running signing; each range is drawn from evenly for each sign."""

    speed: tuple[float, float] = (1.2, 1.8)
    cut: tuple[float, float] = (0.05, 0.2)  # of the sign, at each end
    bridge: tuple[int, int] = (3, 7)  # frames, both included


@dataclass(frozen=True, slots=True)
class StitchedSign:
    """Where a sign ended up."""

    word: Word
    signer: str
    span: FrameSpan


@dataclass(frozen=True, slots=True, eq=False)
class StitchedPassage:
    """Running signing with known truth."""

    points: FloatArray  # (n_frames, 258)
    signs: tuple[StitchedSign, ...]


def recorded_sign(word: Word, signer: str, points: FloatArray) -> RecordedSign:
    """A clip of landmarks (n, 258), in picture heights at 25 frames a second, on a body of standard size."""
    return RecordedSign(word, signer, in_shoulder_widths(points), signing_span(points))


def in_shoulder_widths(points: FloatArray) -> FloatArray:
    """(n, 258) with the median place and width of the shoulders as origin and unit; as it is where none are found."""
    found = points[:, PARTS[0]].any(axis=1)
    if not found.any():
        return np.array(points, dtype=np.float32)
    shoulders = points[found][:, PARTS[0]].reshape(-1, 33, 4)[:, _SHOULDERS, :2].astype(np.float64)
    centre = np.median(shoulders.mean(axis=1), axis=0)
    width = max(float(np.median(np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1))), 1e-3)
    moved = np.array(points, dtype=np.float64)
    moved[:, X_PLACES] = (moved[:, X_PLACES] - centre[0]) / width
    moved[:, X_PLACES + 1] = (moved[:, X_PLACES + 1] - centre[1]) / width
    moved[:, X_PLACES + 2] /= width
    for part in PARTS:
        moved[~points[:, part].any(axis=1), part] = 0
    return moved.astype(np.float32)


def training_window(
    sign: RecordedSign,
    another: Callable[[], RecordedSign],
    rng: np.random.Generator,
    options: WindowOptions = WindowOptions(),
) -> FloatArray:
    """A random window (16, 258) on a sign: cut short or with some rest around it, perhaps between two other signs."""
    span, n = sign.span, len(sign.span)
    begin, end = (float(share) * n for share in rng.uniform(-options.most_rest, options.most_cut, size=2))
    points, start, stop = sign.points, span.start + begin, span.stop - end
    if rng.random() < options.neighbours:
        first = round(span.start + max(0.0, begin))
        last = min(len(points), max(first + _FEWEST_FRAMES, round(span.stop - max(0.0, end))))
        inside = points[first:last]
        before, after = (_neighbour(another(), side, rng, options) for side in (-1, 1))
        lead = [before, bridge(before[-1], inside[0], _bridge_length(rng, options))] if rng.random() < 0.75 else []
        tail = [bridge(inside[-1], after[0], _bridge_length(rng, options)), after] if rng.random() < 0.75 else []
        points = np.concatenate([*lead, inside, *tail])
        margins = rng.uniform(-0.1, 0.3, size=2) * len(inside)
        origin = sum(len(piece) for piece in lead)
        start, stop = origin - margins[0], origin + len(inside) + margins[1]
    time = (np.arange(CLIP_LENGTH) + 0.5) / CLIP_LENGTH
    time = time + rng.uniform(-options.most_warp, options.most_warp) * time * (1 - time)
    return points_at(points, start + time * (stop - start) - 0.5)


def stitched(
    signs: Sequence[RecordedSign], rng: np.random.Generator, options: StitchOptions = StitchOptions()
) -> StitchedPassage:
    """Join signs into one passage."""
    pieces: list[FloatArray] = []
    places: list[StitchedSign] = []
    n_frames = 0
    for sign in signs:
        piece = _sped_up(sign, rng, options)
        if pieces:
            gap = bridge(pieces[-1][-1], piece[0], int(rng.integers(*options.bridge, endpoint=True)))
            pieces.append(gap)
            n_frames += len(gap)
        pieces.append(piece)
        places.append(StitchedSign(sign.word, sign.signer, FrameSpan(n_frames, n_frames + len(piece))))
        n_frames += len(piece)
    if not pieces:
        raise ValueError("a passage without signs")
    return StitchedPassage(np.concatenate(pieces), tuple(places))


def bridge(before: FloatArray, after: FloatArray, n_frames: int) -> FloatArray:
    """The way from one frame (258,) to another in `n_frames` frames; a part that either lacks is missing on it."""
    share = ((np.arange(n_frames) + 1) / (n_frames + 1))[:, None].astype(np.float32)
    way: FloatArray = before * (1 - share) + after * share
    for part in PARTS:
        if not (before[part].any() and after[part].any()):
            way[:, part] = 0
    return way


def _sped_up(sign: RecordedSign, rng: np.random.Generator, options: StitchOptions) -> FloatArray:
    n = len(sign.span)
    start, stop = sign.span.start + rng.uniform(*options.cut) * n, sign.span.stop - rng.uniform(*options.cut) * n
    speed = rng.uniform(*options.speed)
    n_frames = max(_FEWEST_FRAMES, round((stop - start) / speed))
    return points_at(sign.points, start + (np.arange(n_frames) + 0.5) * ((stop - start) / n_frames) - 0.5)


def _neighbour(sign: RecordedSign, side: int, rng: np.random.Generator, options: WindowOptions) -> FloatArray:
    """Some frames from the end (side -1) or the start (side 1) of another sign, without the way to and from rest."""
    n_frames = int(rng.integers(1, options.longest_neighbour, endpoint=True))
    skipped = int(rng.uniform(0, 0.3) * len(sign.span))
    if side > 0:
        first = sign.span.start + skipped
        return sign.points[first : first + n_frames]
    last = sign.span.stop - skipped
    return sign.points[max(sign.span.start, last - n_frames) : last]


def _bridge_length(rng: np.random.Generator, options: WindowOptions) -> int:
    return int(rng.integers(1, options.longest_bridge, endpoint=True))
