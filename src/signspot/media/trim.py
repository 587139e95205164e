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
from PIL import Image

from signspot.domain.recordings import SignerBox
from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray, Floats, LandmarkTrack, Pixels
from signspot.media.reader import VideoReader

_REFERENCE_HEIGHT = 360  # pixels, of the released dictionary's videos
_WRISTS = (15, 16)  # of the pose
_FIRST_OF_HANDS = (132, 195)  # of the 258 numbers: the x of their wrists
_LEAST_VISIBILITY = 0.3
_LONGEST_HOLD = 4  # frames one picture of a slow video is shown: about 6 pictures a second
_SHORTEST = 4  # frames: less is a glitch of the detector, no sign
NOTHING_MOVES = "nothing moves, so the clip is kept whole"
NO_WRISTS = "no wrist was found, so the clip is kept whole"


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

    def __str__(self) -> str:
        cut = f"{self.kept.start} before, {self.n_frames - self.kept.stop} after"
        return f"{self.n_frames} -> {len(self.kept)} frames ({cut})" + (f": {self.remark}" if self.remark else "")


def trim_clip(path: Path, *, isolated: bool = True) -> Trim:
    with VideoReader(path, isolated=isolated) as reader:
        return trim_by_motion(frame.pixels for frame in reader)


def trim_by_landmarks(track: LandmarkTrack, aspect: float, options: TrimOptions = TrimOptions()) -> Trim:
    """Trim by the wrists, or by those of the hands where the body shows none; `aspect` is picture width over height."""
    if not (np.isfinite(aspect) and aspect > 0):
        raise ValueError(f"a picture of aspect {aspect}")
    wrists = (track.points[:, 4 * wrist : 4 * wrist + 4] for wrist in _WRISTS)
    seen = (np.where(wrist[:, 3:] < _LEAST_VISIBILITY, 0, wrist[:, :2]) for wrist in wrists)
    places = [path for path in (_path(wrist, aspect) for wrist in seen) if path is not None]
    if not places:
        hands = (_path(track.points[:, first : first + 2], aspect) for first in _FIRST_OF_HANDS)
        places = [place for place in hands if place is not None]
    if not places:
        return Trim(FrameSpan(0, len(track.axis)), len(track.axis), NO_WRISTS)
    noise = max(_jitter(place) for place in places)
    motion = np.max([_speed(place) for place in places], axis=0)
    high = max(options.wrist_pixels, 6 * noise)
    return _trimmed(motion, high, max(0.2 * options.wrist_pixels, 2 * noise), options.margin)


def trim_by_motion(frames: Iterable[Pixels], options: TrimOptions = TrimOptions()) -> Trim:
    energy = _MotionEnergy.of(frames)
    n_frames, box = len(energy.blocks), _box_of_motion(energy)
    if box is None:
        return Trim(FrameSpan(0, n_frames), n_frames, NOTHING_MOVES)
    motion = _strength(energy, box)
    # Breathing and swaying never stop: what moves in the quietest tenth of the clip is rest.
    rest, usual = np.quantile(motion, (0.1, 0.9)).tolist()
    high = max(0.2 * usual, min(3 * rest, 0.5 * usual), 1.5)
    return _trimmed(motion, high, min(high, max(0.05 * usual, 1.8 * rest, 0.3)), options.margin)


def _path(places: FloatArray, aspect: float) -> Floats | None:
    x, y = places.astype(np.float64).T
    seen = np.isfinite(x) & np.isfinite(y) & ((x != 0) | (y != 0))
    if not seen.any():
        return None
    frames = np.arange(len(places))
    path = np.stack([np.interp(frames, frames[seen], axis[seen]) for axis in (x * aspect, y)], axis=1)
    return path * _REFERENCE_HEIGHT


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
    return np.asarray(np.hypot(moved[:, 0], moved[:, 1]))


def _strength(energy: _MotionEnergy, box: SignerBox) -> Floats:
    """The motion (n_frames,) inside a box: the mean of its six most changed blocks, held pictures bridged."""
    rows, columns = energy.blocks.shape[1:]
    top, bottom = (round(edge * rows) for edge in (box.top, box.bottom))
    left, right = (round(edge * columns) for edge in (box.left, box.right))
    down, across = slice(min(top, rows - 1), max(bottom, top + 1)), slice(min(left, columns - 1), max(right, left + 1))
    inside = energy.blocks[:, down, across].reshape(len(energy.blocks), -1)
    strongest = np.sort(inside, axis=1)[:, -6:].mean(axis=1).astype(np.float64)
    # A video of few pictures a second stands still between them: only a longer stillness counts.
    bridged = _windows(_windows(strongest, _LONGEST_HOLD + 1).max(axis=-1), _LONGEST_HOLD + 1).min(axis=-1)
    return np.asarray(np.median(_windows(bridged, 3), axis=-1))  # single flashes, as of a key picture, taken out


def _windows(values: Floats, length: int) -> Floats:
    """The `length` (odd) values around every frame, along a new last axis; the ends are repeated."""
    around = [(length // 2, length // 2), *((0, 0) for _ in values.shape[1:])]
    return np.asarray(np.lib.stride_tricks.sliding_window_view(np.pad(values, around, mode="edge"), length, axis=0))


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


# How much moves where: the change between neighbouring frames on a coarse grid of blocks. What changes everywhere at
# once is no motion: a fade is explained by one gain and one offset for the whole picture, and the noise of a camera or
# a codec by the block in the middle of all blocks of the same frame.

_SHORT_SIDE = 72  # pixels of the small grey picture that is compared
_BLOCK = 4  # pixels of the small picture
_DARK = 0.25  # a picture with less contrast than this share of the usual is still fading in or out


@dataclass(frozen=True, slots=True, eq=False)
class _MotionEnergy:
    """Grey levels by which each block changes from the frame before, beyond noise; the first frame has none."""

    blocks: FloatArray  # (n_frames, rows, columns), 0..255
    height: int  # pixels of the frames
    width: int

    @classmethod
    def of(cls, frames: Iterable[Pixels]) -> _MotionEnergy:
        """Compare frames (H, W, 3) uint8 of one size as they come; two small pictures are held."""
        changes: list[FloatArray] = []
        contrasts: list[float] = []
        height = width = 0
        before: FloatArray | None = None
        for pixels in frames:
            grey = _small_grey(pixels)
            if before is not None and (pixels.shape[0], pixels.shape[1]) != (height, width):
                raise ValueError(f"a frame of {pixels.shape[:2]} after frames of {(height, width)}")
            height, width = pixels.shape[:2]
            change = np.abs(_unfaded(grey, before)) if before is not None else 0 * grey
            rows, columns = change.shape[0] // _BLOCK, change.shape[1] // _BLOCK
            changes.append(change.reshape(rows, _BLOCK, columns, _BLOCK).mean(axis=(1, 3)))
            contrasts.append(float(grey.std()))
            before = grey
        if not changes:
            return cls(np.zeros((0, 1, 1), np.float32), 0, 0)
        blocks = np.stack(changes)
        # At any moment most of a picture is still, so its middle block shows what noise alone does.
        blocks = np.maximum(blocks - 2 * np.median(blocks, axis=(1, 2), keepdims=True), 0)
        # Out of black anything may appear: the frames of a fade, and the one after each, say nothing about motion.
        dark = np.array(contrasts) < _DARK * np.median(contrasts)
        blocks[dark | np.append(False, dark[:-1])] = 0
        return cls(blocks, height, width)


def _small_grey(pixels: Pixels) -> FloatArray:
    """(H, W, 3) -> grey of about 72 pixels on the short side, whole blocks."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size or pixels.dtype != np.uint8:
        raise ValueError(f"a frame is (H, W, 3) uint8, not {pixels.shape} {pixels.dtype}")
    height, width = pixels.shape[:2]
    shrink = _SHORT_SIDE / min(height, width)
    size = tuple(max(_BLOCK, round(length * shrink / _BLOCK) * _BLOCK) for length in (width, height))
    small = Image.fromarray(pixels).convert("L").resize((size[0], size[1]), Image.Resampling.BOX, reducing_gap=2.0)
    return np.asarray(small, dtype=np.float32)


def _unfaded(grey: FloatArray, before: FloatArray) -> FloatArray:
    """What is left of a picture when the one before, in its best brightness and contrast, is taken away."""
    centred = before - before.mean()
    power = float((centred**2).sum())
    gain = float((centred * grey).sum()) / power if power > 0 else 1.0
    return np.asarray(grey - grey.mean() - np.float32(gain) * centred)


# Finding where in its picture the signer is: a square from landmarks or from motion, padded, inside the picture.

_PADDING = 0.12  # of the box's longer side, on every side
_LEAST_MOTION = 1.0  # grey levels
_STRAY = 0.02  # share of all motion that may lie beyond each edge


def _box_of_motion(energy: _MotionEnergy) -> SignerBox | None:
    """The box of what moves, with room around it for the head, which moves least; None if nothing moves."""
    strength = energy.blocks.mean(axis=0).astype(np.float64) if len(energy.blocks) else np.zeros((1, 1))
    peak = energy.blocks.max(initial=0.0)
    if peak < _LEAST_MOTION:
        return None
    rows, columns = strength.shape
    strength[strength < 0.05 * strength.max()] = 0
    left, right = _middle_part(strength.sum(axis=0))
    top, bottom = _middle_part(strength.sum(axis=1))
    edges = np.array([left, top, right + 1, bottom + 1]) / (columns, rows, columns, rows)
    return _squared(edges * (energy.width, energy.height, energy.width, energy.height), energy.width, energy.height)


def _middle_part(strength: npt.NDArray[np.float64]) -> tuple[int, int]:
    """The first and last place of an axis between which nearly all motion lies."""
    share = np.cumsum(strength) / strength.sum()
    return int(np.searchsorted(share, _STRAY)), int(np.searchsorted(share, 1 - _STRAY))


def _squared(edges: Floats, width: int, height: int) -> SignerBox:
    """The smallest square around padded edges that the picture allows, moved inside it."""
    left, top, right, bottom = edges.tolist()
    longer = max(right - left, bottom - top) * (1 + 2 * _PADDING)
    side = int(min(max(8, np.ceil(longer)), width, height))
    x = round(min(max(0, (left + right - side) / 2), width - side))
    y = round(min(max(0, (top + bottom - side) / 2), height - side))
    return SignerBox(x / width, y / height, (x + side) / width, (y + side) / height)
