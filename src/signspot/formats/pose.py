"""`.pose` files, in which the field exchanges landmarks: binary versions 0.1 and 0.2, MediaPipe Holistic's points.

    float version; ushort width, height, depth; ushort components
    component:  text name, text format ("XYZC"); ushort points, limbs, colours; text per point; 2 ushort per limb;
                3 ushort per colour                                 (a text is a ushort of bytes, then UTF-8)
    body:       fps, frames (0.1: ushort, 0.2: float and uint), ushort people
                float (frames, people, points, dimensions), then confidence (frames, people, points)

Points are told apart by name, so that files with fewer of them, or with a face, can be read. A file has a frame rate
and no clock: frame k at 25 fps belongs to frame k of the video it was made of. Whatever the rate of the file, frames
are picked as the reader of videos picks pictures: the nearest in time, nothing interpolated, what is missing stays so.
Only the ends of arms are never left out, which would bend to the corner of the picture: a wrist that the body lacks is
that of its hand, and where the hand is not found either, it is guessed and not called visible.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from signspot.domain.time import FRAME_RATE, TimeAxis
from signspot.domain.tracks import (
    HAND_LIMBS,
    HAND_NUMBERS,
    HAND_POINTS,
    LANDMARK_DIM,
    POSE_LIMBS,
    POSE_NUMBERS,
    POSE_POINTS,
    FloatArray,
    LandmarkTrack,
    SignerLandmarks,
)
from signspot.errors import FormatError, InputError
from signspot.files.atomic import atomic_output
from signspot.files.intake import is_there, require_file, unreadable
from signspot.media.decoder import ClockFaults, Timed, at_ticks

POSE_SUFFIX = ".pose"
_POSE, _LEFT, _RIGHT = "POSE_LANDMARKS", "LEFT_HAND_LANDMARKS", "RIGHT_HAND_LANDMARKS"
_NAMES = {_POSE: POSE_POINTS, _LEFT: HAND_POINTS, _RIGHT: HAND_POINTS}
_FIRST = {_POSE: 0, _LEFT: len(POSE_POINTS), _RIGHT: len(POSE_POINTS) + len(HAND_POINTS)}
_POINTS = len(POSE_POINTS) + 2 * len(HAND_POINTS)
_LARGEST_HEADER = 1 << 20  # bytes: that of all 543 points of Holistic has about 5,000
_BLOCK_BYTES = 8 << 20  # of a file that are looked at together
_LONGEST = 6 * 3600 * FRAME_RATE  # frames: what is held in memory
_LARGEST_SIDE = 65535  # pixels, of what the format can say
_SLOWEST, _FASTEST = 1.0, 1000.0  # frames a second
_SMALLEST_BODY = 4.0  # pixels: a smaller "body" is in fractions of the picture
_ARMS = ((12, 11, 13, 15), (11, 12, 14, 16))  # other shoulder, shoulder, elbow, wrist of the pose: left, right
# From the elbow, in upper arms along it and shoulder widths inward: where hidden wrists are (WLASL).
_LOWERED = (0.7, 0.2)
_GUESSED = 0.2  # visibility, as a detector gives it to hidden wrists: less than whatever counts as seen
_SHORT_GAP = FRAME_RATE  # frames: hands that are lost for longer may have been lowered
_COLOUR = (255, 0, 0)
_EARLIEST, _LATEST = 0.01, 100.0  # no version is earlier, or will ever be later
_DAMAGED = "get the file again, or make it again with `signspot landmarks --overwrite`"
_OTHER_LAYOUT = "give landmarks of MediaPipe Holistic: `signspot landmarks` makes them from a video"


@dataclass(frozen=True, slots=True)
class _Component:
    name: str
    dimensions: str  # such as XYZC
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Header:
    version: float
    width: int
    height: int
    components: tuple[_Component, ...]
    fps: float
    n_frames: int
    n_people: int
    n_bytes: int  # where the numbers begin

    @property
    def n_points(self) -> int:
        return sum(len(component.points) for component in self.components)

    @property
    def n_dimensions(self) -> int:
        return max((len(component.dimensions) for component in self.components), default=1) - 1


def landmarks_beside(video: Path) -> Path | None:
    """The landmarks that belong to a video: a.mov.pose or else a.pose for a.mov; None if there is none."""
    own = (video.with_name(video.name + POSE_SUFFIX), video.with_suffix(POSE_SUFFIX))
    return next((path for path in own if path != video and is_there(path)), None)


def read_pose(path: Path, video_id: str = "") -> SignerLandmarks:
    require_file(path)
    try:
        with path.open("rb") as file:
            header = _read_header(file, path)
            points = _largest_person(file, header, path)
    except OSError as error:
        raise unreadable(path, error) from error
    frames, times_ms = _ticks(header)
    points = _with_wrists(_in_fractions(points, header, path)[frames])
    track = LandmarkTrack(video_id or path.stem, TimeAxis(times_ms), points)
    return SignerLandmarks(track, max(1, header.width), max(1, header.height))


def write_pose(landmarks: SignerLandmarks, path: Path, *, overwrite: bool = False) -> None:
    """Write landmarks as version 0.2, in pixels; the same landmarks always give the same bytes.

    A point of visibility 0 is one that was not found: readers do not see its place.
    """
    if max(landmarks.width, landmarks.height) > _LARGEST_SIDE:
        what = f"a picture of {landmarks.width} x {landmarks.height} pixels does not fit into a .pose file"
        raise InputError(path, what, "scale the video down first")
    places, confidence = _separated(landmarks.track.points)
    with np.errstate(over="ignore"):  # what overflows was no place in a picture
        places[..., :2] *= np.array((landmarks.width, landmarks.height), np.float32)
    with atomic_output(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        file.write(struct.pack("<fHHH", 0.2, landmarks.width, landmarks.height, 0))
        file.write(struct.pack("<H", len(_NAMES)))
        for name, points in _NAMES.items():
            file.write(_component_bytes(name, points, POSE_LIMBS if name == _POSE else HAND_LIMBS))
        file.write(struct.pack("<fIH", FRAME_RATE, len(places), 1))
        file.write(places.astype("<f4").tobytes())
        file.write(confidence.astype("<f4").tobytes())


def _component_bytes(name: str, points: tuple[str, ...], limbs: tuple[tuple[int, int], ...]) -> bytes:
    def text(words: str) -> bytes:
        return struct.pack("<H", len(words)) + words.encode()

    parts = [text(name), text("XYZC"), struct.pack("<HHH", len(points), len(limbs), 1), *map(text, points)]
    return b"".join([*parts, *(struct.pack("<HH", *limb) for limb in limbs), struct.pack("<HHH", *_COLOUR)])


def _separated(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n, 258) -> places (n, 75, 3) and confidence (n, 75): visibility, or whether a hand was found."""
    n = len(points)
    pose = points[:, :POSE_NUMBERS].reshape(n, len(POSE_POINTS), 4)
    hands = points[:, POSE_NUMBERS:].reshape(n, 2, len(HAND_POINTS), 3)
    found = np.repeat(hands.any(axis=(2, 3)), len(HAND_POINTS), axis=1)
    places = np.concatenate([pose[..., :3], hands.reshape(n, 2 * len(HAND_POINTS), 3)], axis=1, dtype=np.float32)
    return places, np.concatenate([pose[..., 3], found], axis=1, dtype=np.float32)


def _joined(places: FloatArray, confidence: FloatArray) -> FloatArray:
    """Places (n, 75, 3) and confidence (n, 75) -> (n, 258), zeros where not found or no number."""
    sound = np.isfinite(places).all(axis=-1) & (confidence > 0)
    n, n_pose = len(places), len(POSE_POINTS)
    # A hand of which a part is missing would have fingers in the corner of the picture.
    whole = sound[:, n_pose:].reshape(n, 2, len(HAND_POINTS)).all(axis=2)
    sound[:, n_pose:] = np.repeat(whole, len(HAND_POINTS), axis=1)
    kept = np.where(sound[..., None], places, np.float32(0))
    visible = np.where(sound, np.minimum(confidence, 1), np.float32(0))[:, :n_pose, None]
    pose = np.concatenate([kept[:, :n_pose], visible], axis=-1).reshape(n, POSE_NUMBERS)
    return np.concatenate([pose, kept[:, n_pose:].reshape(n, 2 * HAND_NUMBERS)], axis=1, dtype=np.float32)


def _with_wrists(points: FloatArray) -> FloatArray:
    """Landmarks (n, 258) at 25 a second in which every arm of a body has an end."""
    pose = points[:, :POSE_NUMBERS].reshape(len(points), len(POSE_POINTS), 4).copy()
    hands = points[:, POSE_NUMBERS:].reshape(len(points), 2, len(HAND_POINTS), 3)
    has_body = pose[..., 3].any(axis=1)  # a wrist alone would be a body without shoulders
    for side, (*_, wrist) in enumerate(_ARMS):
        taken = has_body & (pose[:, wrist, 3] == 0) & hands[:, side].any(axis=(1, 2))
        pose[taken, wrist, :2], pose[taken, wrist, 3] = hands[taken, side, 0, :2], 1
        _guess_wrist(pose, side, np.flatnonzero(has_body & (pose[:, wrist, 3] == 0)))
    return np.concatenate([pose.reshape(len(points), POSE_NUMBERS), points[:, POSE_NUMBERS:]], axis=1)


def _guess_wrist(pose: FloatArray, side: int, lost: npt.NDArray[np.int64]) -> None:
    """Put a wrist of the pose (n, 33, 4) into some frames: between its neighbours in time, or where a lowered arm ends.

    An arm without an elbow keeps its nearest wrist, and has none where it is never seen.
    """
    other, shoulder, elbow, wrist = (pose[:, point] for point in _ARMS[side])
    known = np.flatnonzero(wrist[:, 3] > 0)
    lowered = lost[((other[lost, 3] > 0) & (shoulder[lost, 3] > 0) & (elbow[lost, 3] > 0))]
    if len(known):
        wrist[lost, :2] = np.stack([np.interp(lost, known, wrist[known, axis]) for axis in (0, 1)], axis=1)
        wrist[lost, 3] = _GUESSED
        later = np.searchsorted(known, lowered)
        gap = known[np.minimum(later, len(known) - 1)] - known[np.maximum(later - 1, 0)]
        lowered = lowered[(later == 0) | (later == len(known)) | (gap > _SHORT_GAP)]
    along, inward = ((one[lowered, :2] - shoulder[lowered, :2]) for one in (elbow, other))
    wrist[lowered, :2] = elbow[lowered, :2] + _LOWERED[0] * along + _LOWERED[1] * inward
    wrist[lowered, 3] = _GUESSED


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """Which of our 75 points a file has, and where."""

    ours: npt.NDArray[np.int64]
    theirs: npt.NDArray[np.int64]
    n_axes: int  # 2 where it has no depth

    @classmethod
    def of(cls, header: _Header) -> _Known:
        pairs, first = [], 0
        for component in header.components:
            known = _NAMES.get(component.name, ())
            pairs += [
                (_FIRST[component.name] + known.index(name), first + place)
                for place, name in enumerate(component.points)
                if name in known
            ]
            first += len(component.points)
        ours, theirs = np.array(pairs, np.int64).T
        return cls(ours, theirs, min(3, header.n_dimensions))

    def points(self, places: FloatArray, confidence: FloatArray, person: int) -> FloatArray:
        """The landmarks (n, 258) of a person in a block of the file, in its unit."""
        n = len(places)
        ours, sure = np.zeros((n, _POINTS, 3), np.float32), np.zeros((n, _POINTS), np.float32)
        ours[:, self.ours, : self.n_axes] = places[:, person, self.theirs, : self.n_axes]
        sure[:, self.ours] = confidence[:, person, self.theirs]
        return _joined(ours, sure)


def _largest_person(file: BinaryIO, header: _Header, path: Path) -> FloatArray:
    """The landmarks (n_frames, 258) of the person who fills most of the picture, in the unit of the file."""
    known, points = _Known.of(header), np.zeros((header.n_frames, LANDMARK_DIM), np.float32)
    sizes = np.zeros(max(1, header.n_people))
    if header.n_people > 1:
        for _, places, confidence in _blocks(file, header, path):
            sizes += [_area(known.points(places, confidence, person)) for person in range(header.n_people)]
    for first, places, confidence in _blocks(file, header, path):
        points[first : first + len(places)] = known.points(places, confidence, int(sizes.argmax()))
    return points


def _area(points: FloatArray) -> float:
    """The sum over frames of the box around a person; nothing where nobody was found."""
    places, confidence = _separated(points)
    found = (confidence > 0)[..., None]
    if not found.any():
        return 0.0
    plane = places[..., :2].astype(np.float64)
    low = np.where(found, plane, np.inf).min(axis=1)
    high = np.where(found, plane, -np.inf).max(axis=1)
    sides = np.where(found.any(axis=1), high - low, 0.0) if len(plane) else np.zeros((0, 2))
    return float(sides.prod(axis=1).sum())


def _in_fractions(points: FloatArray, header: _Header, path: Path) -> FloatArray:
    places, confidence = _separated(points)
    seen = places[confidence > 0][:, :2]
    if not len(seen):
        return points
    if np.quantile(np.abs(seen), 0.9) <= _SMALLEST_BODY:
        if (seen[:, 0] < 0).mean() > 0.2:
            what = "its coordinates are neither pixels nor fractions of the picture, but measured from the body"
            raise FormatError(path, what, "give the file as it was before it was normalised")
        return points
    if min(header.width, header.height) < 2:
        raise FormatError(path, "does not say how large its picture is", "write its width and height in pixels")
    places[..., :2] /= np.array((header.width, header.height), np.float32)
    return _joined(places, confidence)


def _ticks(header: _Header) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The frame of the file for every frame at 25 a second, and its time in ms."""
    step_ms = 1000 / header.fps
    pictures = (Timed(frame, frame * step_ms, step_ms) for frame in range(header.n_frames))
    picked = [(timed.content, timed.time_ms) for timed in at_ticks(pictures, ClockFaults())]
    return np.array([f for f, _ in picked], np.int64), np.array([t for _, t in picked], np.float64)


class _Bytes:
    """The header of a file, taken piece by piece."""

    def __init__(self, content: bytes, path: Path) -> None:
        self._content, self._path, self.taken = content, path, 0

    def take(self, layout: str) -> tuple[float, ...]:
        return struct.unpack(f"<{layout}", self._next(struct.calcsize(f"<{layout}")))

    def text(self) -> str:
        (length,) = self.take("H")
        try:
            return self._next(int(length)).decode()
        except UnicodeDecodeError as error:
            raise FormatError(self._path, "is not a .pose file, or damaged: a name is not text", _DAMAGED) from error

    def _next(self, n_bytes: int) -> bytes:
        piece = self._content[self.taken : self.taken + n_bytes]
        if len(piece) < n_bytes:
            raise FormatError(self._path, "is not a .pose file, or damaged: its header does not end", _DAMAGED)
        self.taken += n_bytes
        return piece


def _read_header(file: BinaryIO, path: Path) -> _Header:
    taken = _Bytes(file.read(_LARGEST_HEADER), path)
    version, width, height, _ = taken.take("fHHH")
    newer = math.isclose(version, 0.2, abs_tol=1e-3)
    if not _EARLIEST <= version < _LATEST:
        raise FormatError(path, "is not a .pose file, or damaged: it names no version", _DAMAGED)
    if not newer and not math.isclose(version, 0.1, abs_tol=1e-3):
        what = f"is not a .pose file of version 0.1 or 0.2 (but of {version:.3g})"
        raise FormatError(path, what, "write it again with a newer pose-format")
    components = tuple(_component(taken) for _ in range(int(taken.take("H")[0])))
    _refuse_other_layouts(components, path)
    fps, n_frames, n_people = taken.take("fIH" if newer else "HHH")
    header = _Header(version, int(width), int(height), components, fps, int(n_frames), int(n_people), taken.taken)
    if not _SLOWEST <= fps <= _FASTEST:
        raise FormatError(path, f"is damaged: it claims {fps:g} frames a second", _DAMAGED)
    return _measured(header, file.seek(0, 2), path)


def _component(taken: _Bytes) -> _Component:
    name, dimensions = taken.text(), taken.text()
    n_points, n_limbs, n_colours = (int(count) for count in taken.take("HHH"))
    component = _Component(name, dimensions, tuple(taken.text() for _ in range(n_points)))
    taken.take(f"{4 * n_limbs + 6 * n_colours}x")
    return component


def _refuse_other_layouts(components: tuple[_Component, ...], path: Path) -> None:
    names = [component.name for component in components]
    ours = [component for component in components if set(component.points) & set(_NAMES.get(component.name, ()))]
    if not ours:
        said = ", ".join(name[:40] for name in names[:4]) or "nothing"
        raise FormatError(path, f"holds landmarks of another layout ({said})", _OTHER_LAYOUT)
    if len({component.name for component in ours}) < len(ours):
        raise FormatError(path, "is damaged: it names a part of the body twice", _DAMAGED)
    if any(len(set(component.points)) < len(component.points) for component in ours):
        raise FormatError(path, "is damaged: it names a point twice", _DAMAGED)
    if any(not component.dimensions.startswith("XY") or component.dimensions[-1] != "C" for component in components):
        raise FormatError(path, "unsupported point format; expected XYZC", _OTHER_LAYOUT)


def _measured(header: _Header, n_bytes: int, path: Path) -> _Header:
    """The header with the number of frames that the file really holds."""
    a_frame = 4 * header.n_people * header.n_points * (header.n_dimensions + 1)
    left = n_bytes - header.n_bytes
    frames = left // a_frame if a_frame else 0
    if header.version < 0.15 and a_frame:
        # Version 0.1 counts frames modulo 65,536.
        is_whole = left % a_frame == 0 and frames % (1 << 16) == header.n_frames
    else:
        is_whole, frames = frames >= header.n_frames or not a_frame, header.n_frames if a_frame else 0
    if not is_whole:
        what = f"is damaged or cut short: {header.n_frames} frames are announced, {left / a_frame:.1f} are there"
        raise FormatError(path, what, _DAMAGED)
    if a_frame > _BLOCK_BYTES or max(frames, frames / header.fps * FRAME_RATE) > _LONGEST:
        raise FormatError(path, "holds more than six hours, or a crowd", "cut it into several files")
    return replace(header, n_frames=frames)


def _blocks(file: BinaryIO, header: _Header, path: Path) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """The frames of a file, some at a time: the number of the first, places (n, people, points, axes), confidence."""
    shape = (header.n_people, header.n_points)
    per_frame = header.n_people * header.n_points
    if not per_frame:
        return
    at_once = max(1, _BLOCK_BYTES // (4 * per_frame * (header.n_dimensions + 1)))
    middle = header.n_bytes + 4 * header.n_frames * per_frame * header.n_dimensions
    for first in range(0, header.n_frames, at_once):
        n = min(at_once, header.n_frames - first)
        start = header.n_bytes + 4 * first * per_frame * header.n_dimensions
        places = _numbers(file, start, (n, *shape, header.n_dimensions), path)
        yield first, places, _numbers(file, middle + 4 * first * per_frame, (n, *shape), path)


def _numbers(file: BinaryIO, start: int, shape: tuple[int, ...], path: Path) -> FloatArray:
    file.seek(start)
    content = file.read(4 * math.prod(shape))
    if len(content) < 4 * math.prod(shape):
        raise FormatError(path, "became shorter while it was read", "try again once it is complete")
    return np.frombuffer(content, "<f4").astype(np.float32).reshape(shape)
