"""Cutting the still ends of a dictionary clip: from the wrists where landmarks exist, else from what moves.

Both ways look for frames that surely move, and from the first and the last of them walk outward through the frames
that still move a little. Wrist motion is counted in pixels of a picture 360 high, as the released dictionary does
(its temp_interval: wrist motion above 5 pixels). A clip in which nothing moves is kept whole, with a remark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from signspot.domain.boxes import SignerBox
from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import FloatArray, LandmarkTrack, Pixels
from signspot.media.motion_energy import MotionEnergy
from signspot.media.reader import VideoReader
from signspot.media.signer_box import box_of_motion

REFERENCE_HEIGHT = 360  # pixels, of the released dictionary's videos
WRISTS = (15, 16)  # of the pose
_FIRST_OF_HANDS = (132, 195)  # of the 258 numbers: the x of their wrists
_LEAST_VISIBILITY = 0.3
_LONGEST_HOLD = 4  # frames one picture of a slow video is shown: about 6 pictures a second
_SHORTEST = 4  # frames: less is a glitch of the detector, no sign
NOTHING_MOVES = "nothing moves, so the clip is kept whole"
NO_WRISTS = "no wrist was found, so the clip is kept whole"

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimOptions:
    """What counts as motion."""

    wrist_pixels: float = 5.0  # within two frames, in a picture 360 high
    margin: int = 0  # frames kept around what moves

    def __post_init__(self) -> None:
        if not self.wrist_pixels > 0 or self.margin < 0:
            raise ValueError(f"cannot trim by {self}")


@dataclass(frozen=True, slots=True)
class Trim:
    """What is left of a clip."""

    kept: FrameSpan
    n_frames: int  # of the whole clip
    remark: str = ""  # why nothing was cut, where that needs a reason

    @property
    def cut_before(self) -> int:
        """Frames cut at the start."""
        return self.kept.start

    @property
    def cut_after(self) -> int:
        """Frames cut at the end."""
        return self.n_frames - self.kept.stop

    def __str__(self) -> str:
        cut = f"{self.n_frames} -> {len(self.kept)} frames ({self.cut_before} before, {self.cut_after} after)"
        return f"{cut}: {self.remark}" if self.remark else cut


def trim_clip(path: Path, options: TrimOptions = TrimOptions(), *, isolated: bool = True) -> Trim:
    """Trim a video file by what moves in it."""
    with VideoReader(path, isolated=isolated) as reader:
        return trim_by_motion((frame.pixels for frame in reader), options)


def trim_by_landmarks(track: LandmarkTrack, aspect: float, options: TrimOptions = TrimOptions()) -> Trim:
    """Trim by the wrists, or by those of the hands where the body shows none; `aspect` is picture width over height."""
    if not (np.isfinite(aspect) and aspect > 0):
        raise ValueError(f"a picture of aspect {aspect}")
    n_frames = len(track.axis)
    places = [place for place in (_wrist(track.points, wrist, aspect) for wrist in WRISTS) if place is not None]
    if not places:
        hands = (_path(track.points[:, first : first + 2], aspect) for first in _FIRST_OF_HANDS)
        places = [place for place in hands if place is not None]
    if not places:
        return Trim(FrameSpan(0, n_frames), n_frames, NO_WRISTS)
    noise = max(_jitter(place) for place in places)
    motion = np.max([_speed(place) for place in places], axis=0)
    high = max(options.wrist_pixels, 6 * noise)
    return _trimmed(motion, high, max(0.2 * options.wrist_pixels, 2 * noise), options.margin)


def trim_by_motion(
    frames: Iterable[Pixels], options: TrimOptions = TrimOptions(), *, box: SignerBox | None = None
) -> Trim:
    """Trim by the motion inside the signer's box in frames (H, W, 3); the box is found from the motion if not given."""
    energy = MotionEnergy.of(frames)
    n_frames = len(energy.blocks)
    box = box or box_of_motion(energy)
    if box is None:
        return Trim(FrameSpan(0, n_frames), n_frames, NOTHING_MOVES)
    motion = _strength(energy, box)
    # Breathing and swaying never stop: what moves in the quietest tenth of the clip is rest.
    rest, usual = np.quantile(motion, (0.1, 0.9)).tolist()
    high = max(0.2 * usual, min(3 * rest, 0.5 * usual), 1.5)
    return _trimmed(motion, high, min(high, max(0.05 * usual, 1.8 * rest, 0.3)), options.margin)


def _wrist(points: FloatArray, wrist: int, aspect: float) -> Floats | None:
    """The path of a wrist of the body."""
    places = points[:, 4 * wrist : 4 * wrist + 4]
    hidden = places[:, 3] < _LEAST_VISIBILITY
    return _path(np.where(hidden[:, None], 0, places[:, :2]), aspect)


def _path(places: FloatArray, aspect: float) -> Floats | None:
    """Places (n_frames, 2), zeros where unseen, in pixels at 360 high; gaps bridged; None if it is never seen."""
    x, y = places.astype(np.float64).T
    seen = np.isfinite(x) & np.isfinite(y) & ((x != 0) | (y != 0))
    if not seen.any():
        return None
    frames = np.arange(len(places))
    path = np.stack([np.interp(frames, frames[seen], axis[seen]) for axis in (x * aspect, y)], axis=1)
    return path * REFERENCE_HEIGHT


def _jitter(path: Floats) -> float:
    """The standard deviation of the detector's noise, in pixels, whatever the motion."""
    if len(path) < 4:
        return 0.0
    # The third difference of a smooth path is nearly nothing; that of noise is noise times the root of 1 + 9 + 9 + 1.
    return float(1.4826 * np.median(np.abs(np.diff(path, n=3, axis=0))) / np.sqrt(20))


def _speed(path: Floats) -> Floats:
    """Pixels (n_frames,) moved from the frame before to the frame after, single leaps of the detector taken out."""
    steady = np.median(_windows(path, 5), axis=-1)
    around = _windows(steady, 3)
    moved = around[..., 2] - around[..., 0]
    speed: Floats = np.hypot(moved[:, 0], moved[:, 1])
    return speed


def _strength(energy: MotionEnergy, box: SignerBox) -> Floats:
    """The motion (n_frames,) inside a box: the mean of its six most changed blocks, held pictures bridged."""
    rows, columns = energy.blocks.shape[1:]
    top, bottom = (round(edge * rows) for edge in (box.top, box.bottom))
    left, right = (round(edge * columns) for edge in (box.left, box.right))
    inside = energy.blocks[
        :, min(top, rows - 1) : max(bottom, top + 1), min(left, columns - 1) : max(right, left + 1)
    ].reshape(len(energy.blocks), -1)
    strongest = np.sort(inside, axis=1)[:, -6:].mean(axis=1).astype(np.float64)
    # A video of few pictures a second stands still between them: only a longer stillness counts.
    bridged = _windows(_windows(strongest, _LONGEST_HOLD + 1).max(axis=-1), _LONGEST_HOLD + 1).min(axis=-1)
    steady: Floats = np.median(_windows(bridged, 3), axis=-1)  # single flashes, as of a key picture, taken out
    return steady


def _windows(values: Floats, length: int) -> Floats:
    """The `length` (odd) values around every frame, along a new last axis; the ends are repeated."""
    around = [(length // 2, length // 2), *((0, 0) for _ in values.shape[1:])]
    windows: Floats = np.lib.stride_tricks.sliding_window_view(np.pad(values, around, mode="edge"), length, axis=0)
    return windows


def _trimmed(motion: Floats, high: float, low: float, margin: int) -> Trim:
    """From the first to the last frame above `high`, and outward from there while above `low`."""
    n_frames = len(motion)
    sure = np.flatnonzero(motion > high)
    if not len(sure):
        return Trim(FrameSpan(0, n_frames), n_frames, NOTHING_MOVES)
    still = np.flatnonzero(motion <= low)
    before, after = still[still < sure[0]], still[still > sure[-1]]
    start = int(before[-1]) + 1 if len(before) else 0
    stop = int(after[0]) if len(after) else n_frames
    kept = FrameSpan(max(0, start - margin), min(n_frames, stop + margin))
    if len(kept) < _SHORTEST:
        return Trim(FrameSpan(0, n_frames), n_frames, NOTHING_MOVES)
    return Trim(kept, n_frames)
