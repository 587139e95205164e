"""The landmarks of a video as embeddings at several speeds: a model of landmarks finds a sign however fast it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry, Episode, SignerBox
from signspot.domain.time import FRAME_MS, FRAME_RATE, FrameSpan, silent
from signspot.domain.tracks import (
    CLIP_LENGTH,
    HAND_NUMBERS,
    LANDMARK_DIM,
    POSE_NUMBERS,
    Bools,
    EmbeddingTrack,
    FloatArray,
    Floats,
    LandmarkTrack,
    RateTrack,
    SignerLandmarks,
    WindowGrid,
    in_picture_heights,
)
from signspot.embedding.detector import detector_name, find_landmarks
from signspot.embedding.model import (
    FEWEST_FRAMES,
    LONGEST_SECONDS,
    NO_MOTION,
    Lexicon,
    Reading,
    RecordedSign,
    VideoTrack,
    Views,
    damage_of,
    faults_of,
    filed_under,
    too_short,
)
from signspot.errors import FormatError, MissingExtra, VideoError
from signspot.figures.sheets import skeletons
from signspot.formats.pose import POSE_SUFFIX, landmarks_beside, read_pose
from signspot.media.reader import VideoReader, claimed_ms
from signspot.media.trim import Trim, trim_by_landmarks
from signspot.media.video import media_sha256
from signspot.stores.features import FeatureStore, Remarks, RowFile, TrackKey, as_stored

if TYPE_CHECKING:
    from signspot.models.embedders import LandmarkEmbedder

# Landmarks at several speeds: windows of 10 to 34 frames, each brought to the 16 frames that a model takes. Isolated
# signs are slow and running ones are fast, so a query is compared with windows of several lengths around one frame.
# Positions in a recording are real numbers: 2.5 lies half way between the frames 2 and 3.

Positions = npt.NDArray[np.floating[Any]]

LENGTHS = (10, 16, 24, 34)  # frames at 25 a second: from hasty signing to a sign shown by itself


@dataclass(frozen=True, slots=True)
class Rates:
    """Which windows a recording is cut into: of each length, around every `stride`-th frame of the usual grid."""

    lengths: tuple[int, ...] = LENGTHS
    stride: int = 1

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1 or self.stride < 1:
            raise ValueError(f"no windows of {self.lengths} frames, stride {self.stride}")


def points_at(points: FloatArray, positions: Positions) -> FloatArray:
    """Landmarks (n, 258) at any positions (m,) -> (m, 258), held still before the first and after the last frame.

    Between two frames a part lies on a straight line; where only one of them shows the part, the nearer frame counts.
    """
    at = np.clip(positions, 0, len(points) - 1)
    before = np.floor(at).astype(np.int64)
    after = np.minimum(before + 1, len(points) - 1)
    share = (at - before).astype(np.float32)[:, None]
    first, second = np.asarray(points[before], np.float32), np.asarray(points[after], np.float32)
    nearest = np.where(share < 0.5, first, second)
    # Number by number, which is fast: a coordinate of a found part that is exactly zero loses half a frame at most.
    between: FloatArray = np.where((first == 0) | (second == 0), nearest, first * (1 - share) + second * share)
    return between


def window_at(points: FloatArray, start: float, length: float) -> FloatArray:
    """The landmarks from position `start` on, `length` frames brought to 16: (16, 258)."""
    return points_at(points, start + (np.arange(CLIP_LENGTH) + 0.5) * (length / CLIP_LENGTH) - 0.5)


def windows_around(points: FloatArray, starts: npt.NDArray[np.int64], length: int) -> FloatArray:
    """Windows of `length` frames brought to 16, with the middle of the usual windows at `starts`: (n, 16, 258)."""
    offsets = (np.arange(CLIP_LENGTH) + 0.5) * (length / CLIP_LENGTH) - 0.5 + (CLIP_LENGTH - length) / 2
    windows = points_at(points, (starts[:, None] + offsets).ravel())
    return windows.reshape(len(starts), CLIP_LENGTH, LANDMARK_DIM)


_WINDOWS_AT_ONCE = 512  # of each length: hours of landmarks are never cut into windows all at once


@dataclass(frozen=True, slots=True)
class RateRows:
    """The windows of all lengths around one frame as one row, which is how the store keeps them."""

    network: LandmarkEmbedder
    rates: Rates = Rates()
    is_trunk: bool = False  # rows of the trunk's vectors, before the head

    @property
    def fingerprint(self) -> str:
        fingerprint = self.network.trunk_fingerprint if self.is_trunk else self.network.fingerprint
        return f"{fingerprint} windows {' '.join(map(str, self.rates.lengths))}"

    @property
    def dim(self) -> int:
        return (self.network.trunk_dim if self.is_trunk else self.network.dim) * len(self.rates.lengths)

    def blocks(self, landmarks: SignerLandmarks, first: int = 0) -> Iterator[FloatArray]:
        """Rows (n, lengths x d) of the windows from number `first` on; zeros for a window that nobody is seen in."""
        points = in_picture_heights(np.asarray(landmarks.track.points), landmarks.aspect)
        starts = WindowGrid(len(points), stride=self.rates.stride).starts()
        for start in range(first, len(starts), _WINDOWS_AT_ONCE):
            some = starts[start : start + _WINDOWS_AT_ONCE]
            yield np.concatenate([self._embedded(points, some, length) for length in self.rates.lengths], axis=1)

    def track(self, rows: EmbeddingTrack, video_id: str) -> EmbeddingTrack:
        """The track to compare with, of a track that the rows are the vectors of."""
        if self.is_trunk:
            return replace(rows, video_id=video_id, fingerprint=self.network.trunk_fingerprint)
        lengths, d = self.rates.lengths, self.network.dim
        places = sorted(range(len(lengths)), key=lambda place: lengths[place] != CLIP_LENGTH)  # the usual one first
        usual, *others = (rows.vectors[:, place * d : (place + 1) * d] for place in places)
        named = (video_id, rows.grid, rows.axis, usual, self.network.fingerprint)
        return RateTrack(*named, other_rates=tuple(others), lengths=tuple(lengths[place] for place in places))

    def _embedded(self, points: FloatArray, starts: npt.NDArray[np.int64], length: int) -> FloatArray:
        windows = windows_around(points, starts, length)
        vectors: FloatArray = (self.network.trunk_vectors if self.is_trunk else self.network.embed)(windows)
        vectors[~windows.any(axis=(1, 2))] = 0
        return vectors


# Which frames of a clip of one sign show the sign: without the hands' way up and down, and without their rest.
# Dictionaries show people who rest before and after the sign, with their arms hanging or their hands before the belly.
# Positions are counted in shoulder widths below the shoulders, so the unit of the landmarks does not matter.

_PARTS = (slice(0, 132), slice(132, 195), slice(195, LANDMARK_DIM))  # pose, left hand, right hand
_SHOULDERS, _WRISTS = (11, 12), (15, 16)  # of the pose
_RAISED_HAND, _RAISED_WRIST = 1.35, 0.8  # shoulder widths below the shoulders: what is lower hangs
_LOW = 0.75  # shoulder widths below the shoulders: hands may rest there, before the belly
_NEAR = 0.25  # shoulder widths from where they rest: what goes further does not rest
_STEP = 0.06  # shoulder widths: hands that rest tremble by less
_WAY, _TO_AND_FRO = 0.6, 2.0  # shoulder widths; times as far as its ends are apart: the way of a hand that signs
_PAUSE = 10  # frames: hands that are still for less before a low sign have not rested
_SEEN = 0.5  # visibility
_ANGLES = np.arange(16) * np.pi / 16
_DIRECTIONS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])  # (2, 16), of a half turn
_FEWEST = 5  # frames: fewer are a mistake of the detector


def sign_span(points: FloatArray) -> FrameSpan:
    """The frames of the sign in a clip of landmarks (n, 258): a hand is raised, and has left its rest before the belly.

    Hands rest while they are low and where they were at first; looked at from the end, where they are at last. Hands
    that go to and fro down there do not rest but sign. How fast they move does not matter.
    experiments/landmark_model/resting.py says what that brings.
    """
    raised, signer = signing_span(points), _Signer.of(points)
    if signer is None:
        return raised
    hands = [signer.place(side)[raised.start : raised.stop] for side in (0, 1)]
    n_before, n_after = _rests(hands)
    if len(raised) - n_before - n_after < _FEWEST:
        return raised
    return FrameSpan(raised.start + n_before, raised.stop - n_after)


def _has_raised_hand(points: FloatArray) -> bool:
    """Whether a hand is found above where hands rest, for some frames: even if it is held still, it shows something."""
    signer = _Signer.of(points)
    return signer is not None and _is_above([signer.hand(side) for side in (0, 1)])


def _is_above(hands: list[Floats]) -> bool:
    with np.errstate(invalid="ignore"):  # comparisons with what is not found
        return any(int((hand[:, 1] < _LOW).sum()) >= _FEWEST for hand in hands)


def _rests(hands: list[Floats]) -> tuple[int, int]:
    """The number of frames for which both hands (n, 2) rest, from the first on and up to the last."""
    n = len(hands[0])
    n_before, n_after = _resting(hands), _resting([hand[::-1] for hand in hands])
    parts = [(0, n_before), (n - n_after, n)] if _is_above(hands) else [(0, n)]
    signs = [sign for part in parts if (sign := _low_sign([hand[slice(*part)] for hand in hands], part[0]))]
    if not signs or n - n_before - n_after < _FEWEST:  # then the frames with a raised hand count
        return n_before, n_after
    n_first, n_last = min(sign.start for sign in signs), n - max(sign.stop for sign in signs)
    return _rest_before_low_sign(n_before, n_first), _rest_before_low_sign(n_after, n_last)


def _rest_before_low_sign(n_near: int, n_still: int) -> int:
    """The frames of rest, by how long low hands stay near where they were, and how long they are still, from one end.

    Hands that were still for a while leave their rest: that way is no part of the sign. Others sign at once.
    """
    leaves_rest = n_still >= _PAUSE and n_near - n_still <= _PAUSE
    if leaves_rest or n_near < _FEWEST:
        return n_near
    return min(n_still, n_near) if n_still >= _PAUSE else 0


def _low_sign(hands: list[Floats], first: int) -> FrameSpan | None:
    """From the first to the last step of low hands (n, 2) which all go to and fro; None if one of them does not."""
    spans = [_to_and_fro(hand) for hand in hands if np.isfinite(hand[:, 1]).any()]
    moved = [span for span in spans if span is not None]
    if not moved or len(moved) < len(spans):
        return None
    return FrameSpan(first + min(span.start for span in moved), first + max(span.stop for span in moved))


def _to_and_fro(hand: Floats) -> FrameSpan | None:
    """From the first to the last step of a hand (n, 2) that goes far without getting far; None if it does not."""
    frames = np.flatnonzero(np.isfinite(hand[:, 1]))
    around = np.pad(hand[frames], ((1, 1), (0, 0)), mode="edge")
    path = np.median([around[:-2], around[1:-1], around[2:]], axis=0)  # single leaps of the detector taken out
    steps = [0]
    for number, place in enumerate(path):
        if np.linalg.norm(place - path[steps[-1]]) >= _STEP:
            steps.append(number)
    stops = path[steps]
    way = float(np.linalg.norm(np.diff(stops, axis=0), axis=1).sum())
    farthest = float(np.ptp(stops @ _DIRECTIONS, axis=0).max())
    if way < max(_WAY, _TO_AND_FRO * farthest):
        return None
    return FrameSpan(int(frames[steps[1]]), int(frames[steps[-1]]) + 1)


def _resting(hands: list[Floats]) -> int:
    """The number of frames for which both hands (n, 2) are low and near where they were, from the first on."""
    resting = np.ones(len(hands[0]), dtype=bool)
    for hand in hands:
        seen = np.isfinite(hand[:, 1])
        if seen.any():
            left = np.linalg.norm(hand - hand[seen.argmax()], axis=1)
            with np.errstate(invalid="ignore"):  # comparisons with what is not seen
                resting &= ~seen | ((hand[:, 1] > _LOW) & (left < _NEAR))
    return int(resting.argmin()) if not resting.all() else len(resting)


def signing_span(points: FloatArray) -> FrameSpan:
    """The frames of landmarks (n, 258) from the first raised hand to the last; all if none is."""
    whole, signer = FrameSpan(0, len(points)), _Signer.of(points)
    if signer is None:
        return whole
    raised = np.zeros(len(points), dtype=bool)
    for side in (0, 1):
        hand, wrist = signer.hand(side), signer.wrist(side)
        with np.errstate(invalid="ignore"):
            raised |= (hand[:, 1] < _RAISED_HAND) | (wrist[:, 1] < _RAISED_WRIST)
    frames = np.flatnonzero(raised)
    return FrameSpan(int(frames[0]), int(frames[-1]) + 1) if len(frames) >= _FEWEST else whole


def _is_found(part: FloatArray) -> Bools:
    """In which frames a part (n, points, numbers) was detected: what is not a number was not."""
    return np.asarray(part.any(axis=(1, 2)) & np.isfinite(part).all(axis=(1, 2)))


@dataclass(frozen=True, slots=True, eq=False)
class _Signer:
    """Where the hands are, in shoulder widths from between the shoulders; NaN where they are not found."""

    points: FloatArray  # (n, 258)
    found: Bools  # (n,) the body
    origin: Floats  # (2,)
    width: float

    @classmethod
    def of(cls, points: FloatArray) -> _Signer | None:
        """None where nobody is found."""
        pose = points[:, _PARTS[0]].reshape(-1, 33, 4)
        found = _is_found(pose)
        if not found.any():
            return None
        shoulders = pose[found][:, _SHOULDERS, :2].astype(np.float64)
        width = max(float(np.median(np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1))), 1e-4)
        return cls(points, found, np.median(shoulders.mean(axis=1), axis=0), width)

    def hand(self, side: int) -> Floats:
        """(n, 2) the middle of the left (0) or right (1) hand."""
        hand = self.points[:, _PARTS[1 + side]].reshape(-1, 21, 3)
        return self._where(_is_found(hand), hand[..., :2].mean(axis=1))

    def wrist(self, side: int) -> Floats:
        """(n, 2) the wrist that belongs to the body."""
        wrist = self.points[:, _PARTS[0]].reshape(-1, 33, 4)[:, _WRISTS[side]]
        return self._where(self.found & (wrist[:, 3] > _SEEN), wrist[:, :2])

    def place(self, side: int) -> Floats:
        """(n, 2) the hand, or the wrist where the hand is not found."""
        hand = self.hand(side)
        return np.where(np.isfinite(hand), hand, self.wrist(side))

    def _where(self, seen: Bools, place: FloatArray) -> Floats:
        return np.where(seen[:, None], (place.astype(np.float64) - self.origin) / self.width, np.nan)


# The landmarks of videos: from the file beside them, from the store, or found by the detector, and kept.

_OTHER_LENGTH = (1000.0, 0.05)  # ms and share of the video by which its landmarks may be shorter or longer


@dataclass(frozen=True, slots=True, eq=False)
class VideoLandmarks:
    """The landmarks of a video and what was noticed while reading it."""

    signer: SignerLandmarks
    remarks: Remarks = Remarks()

    @property
    def pose_share(self) -> float:
        return self._share(self.signer.track.points[:, :POSE_NUMBERS])

    @property
    def hand_share(self) -> float:
        return self._share(self.signer.track.points[:, POSE_NUMBERS:])

    def _share(self, part: FloatArray) -> float:
        return float(part.any(axis=1).mean()) if len(part) else 0.0


def landmarks_of(
    video: Path, reading: Reading = Reading(), box: SignerBox | None = None, store: FeatureStore | None = None
) -> VideoLandmarks:
    """The landmarks of a video, or of a .pose file: read if there is such a file beside it, else found, and kept.

    What the detector finds is rounded as in the store also the first time, and without a store, so that answers never
    differ. A file that somebody put beside a video is believed, whatever the box.
    """
    beside = landmark_file_of(video)
    if beside is not None:
        return VideoLandmarks(read_pose(beside, video.stem))
    sha256, filed = media_sha256(video), filed_under(_landmarks_name(video), box)
    known = store.find(TrackKey(sha256, filed)) if store is not None else None
    track = store.get(TrackKey(sha256, filed)) if store is not None else None
    if track is not None and known is not None:
        return VideoLandmarks(_signer(track, video, reading), known.remarks)
    found = detected(video, reading, box)
    track = _kept(found.signer.track, filed)
    if store is not None:
        store.put(sha256, track, found.remarks)
    points = as_stored(track).vectors.astype("float32")
    return replace(found, signer=replace(found.signer, track=replace(found.signer.track, points=points)))


def detected(video: Path, reading: Reading, box: SignerBox | None = None) -> VideoLandmarks:
    step = f"finding landmarks in {video.name}"

    def in_frames(done_ms: float, expected_ms: float | None) -> None:
        # Frames per second are what tells a fast machine from a slow one.
        reading.progress(step, done_ms / FRAME_MS, None if expected_ms is None else expected_ms / FRAME_MS)

    found = find_landmarks(video, box=box, isolated=reading.isolated, progress=in_frames)
    return VideoLandmarks(found.signer, Remarks(found.report.partial, found.report.warnings))


def landmark_file_of(video: Path) -> Path | None:
    """The .pose file that says where body and hands are: the video itself if it is one, or the one beside it."""
    return video if video.suffix.lower() == POSE_SUFFIX else landmarks_beside(video)


def strange_length(video: Path, landmarks: SignerLandmarks, *, isolated: bool) -> tuple[str, ...]:
    """Why the file of landmarks beside a video may be that of another recording: it lasts longer, or less long."""
    file = landmark_file_of(video)
    if file is None or file == video:
        return ()
    video_ms = claimed_ms(video, isolated=isolated)
    landmarks_ms, (least_ms, share) = len(landmarks.track.axis) * FRAME_MS, _OTHER_LENGTH
    if video_ms is None or abs(landmarks_ms - video_ms) <= max(least_ms, share * video_ms):
        return ()
    lengths = f"lasts {landmarks_ms / 1000:.1f} s, the video {video_ms / 1000:.1f} s"
    return (f"{file.name}, whose landmarks are taken, {lengths}: if it is of another recording, remove or replace it",)


def _landmarks_name(video: Path) -> str:
    """What the landmarks of a video are filed under: the content of its .pose file, or else the detector."""
    beside = landmark_file_of(video)
    if beside is not None:
        return f"pose with wrists {media_sha256(beside)}"  # as read: `read_pose` completes arms
    try:
        return detector_name()
    except MissingExtra as error:
        ways = f"{error.fix}, or put a .pose file beside each video, or choose another --model"
        raise MissingExtra(video, error.what.replace("needs", "its landmarks need"), ways) from error


def has_detector() -> bool:
    try:
        return bool(detector_name())
    except MissingExtra:
        return False


def _kept(track: LandmarkTrack, filed: str) -> EmbeddingTrack:
    grid = WindowGrid(len(track.axis), length=1)
    return EmbeddingTrack(track.video_id, grid, track.axis, track.points, filed, unit_rows=False)


def _signer(track: EmbeddingTrack, video: Path, reading: Reading) -> SignerLandmarks:
    with VideoReader(video, isolated=reading.isolated) as reader:
        info = reader.info
    points = track.vectors.astype("float32", copy=False)
    return SignerLandmarks(LandmarkTrack(video.stem, track.axis, points), info.width, info.height)


# The vectors of a video for a model that sees landmarks: windows of several lengths around every frame.

_FEW_HANDS = 0.1  # share of frames: hands at rest are out of sight, too, but nobody rests for so long


def _read_track(episode: Episode, made: RateRows, reading: Reading) -> VideoTrack:
    """Look the video up in the store; find its landmarks, embed them and keep both where it is not there.

    Rows are rounded as on the disk also the first time, and without a store, so that answers never differ.
    """
    sha256, box = media_sha256(episode.video), reading.box or episode.box
    name = f"{made.fingerprint} {_landmarks_name(episode.video)}"
    key = TrackKey(sha256, filed_under(name, box), reading.stride)
    with reading.opened_store() as store:
        known = store.find(key) if store is not None else None
        rows = store.open_track(key) if store is not None else None
        if rows is not None and known is not None:
            track = made.track(rows, episode.video_id)
            return VideoTrack(track, sha256, known.remarks, key.fingerprint, was_stored=True, box=box)
        found = landmarks_of(episode.video, reading, box, store)
        if not len(found.signer.track.axis):
            raise VideoError(episode.video, "holds no frames", "give a recording of somebody who signs")
        doubts = (*_doubts(found), *strange_length(episode.video, found.signer, isolated=reading.isolated))
        remarks = replace(found.remarks, warnings=(*found.remarks.warnings, *doubts))
        new = RowFile(made.dim, np.float16) if store is None else store.unfinished(key, made.dim)
        with new as file:
            rows = _embedded(found, made, file, reading)
            if store is not None:
                store.put(sha256, replace(rows, fingerprint=key.fingerprint), remarks, made.network.name)
    return VideoTrack(made.track(rows, episode.video_id), sha256, remarks, key.fingerprint, box=box)


def _embedded(found: VideoLandmarks, made: RateRows, file: RowFile, reading: Reading) -> EmbeddingTrack:
    track = found.signer.track
    grid = WindowGrid(len(track.axis), stride=made.rates.stride)
    for block in made.blocks(found.signer, len(file)):
        file.append(block)
        reading.progress(f"embedding the windows of {track.video_id}", len(file), len(grid))
    return EmbeddingTrack(track.video_id, grid, track.axis, file.mapped(), made.fingerprint, unit_rows=False)


def _doubts(found: VideoLandmarks) -> tuple[str, ...]:
    if not found.pose_share:
        return ("nobody was found in it: no landmarks, so nothing can be compared",)
    if found.hand_share < _FEW_HANDS:
        return (f"a hand was found in only {found.hand_share:.0%} of the frames: signs will be missed",)
    return ()


# Single signs as a model of landmarks sees them: where body and hands are, frame by frame.

NOBODY = "nobody is found in the recording: show the upper body, in good light"
NO_HAND = "no hand is raised or moves: record the whole sign, in good light, with the hands in the picture"
HANDS_OUT = "the hands are out of the picture most of the time: sit farther from the camera"
NO_HANDS = "no hand is found in most frames: more light, or a plainer background, may help"
_SIGN_WRISTS = (15, 16)  # of the pose
_MOST = 0.5  # share of frames
_LONG_SECONDS = 4.0  # in 95 of 100 clips of single signs (WLASL) no hand is raised for longer


class LandmarkModel:
    """A model that sees landmarks of body and hands."""

    towards_mean = 1.0  # chosen in experiments/queries

    def __init__(self, network: LandmarkEmbedder) -> None:
        self.network = network
        self.name, self.fingerprint, self.dim = network.name, network.fingerprint, network.dim
        self.threshold, self.backend = network.threshold, network.backend
        self.word_vectors = network.word_directions
        self.words = network.words if len(self.word_vectors) else ()
        rows = network.word_prototypes, self.word_vectors
        self.lexicon = Lexicon.of(self.name, self.words, network.language, *rows)
        self._places = {entry.entry_id: place for place, entry in enumerate(self.lexicon.entries)}

    def track(self, episode: Episode, reading: Reading, near: FloatArray | None = None) -> VideoTrack:
        """Windows of several lengths around every frame; looking closely costs next to nothing, so all are exact."""
        del near
        return _read_track(episode, RateRows(self.network, Rates(stride=reading.stride)), reading)

    def entry(self, entry: Entry, reading: Reading, views: Views = Views()) -> FloatArray:
        """One window over the sign, as it is and, if asked for, mirrored; every speed is looked for in the video.

        Of an entry of its lexicon, the prototype, which has no mirror image.
        """
        if entry.is_learned and entry.entry_id in self._places:
            return np.repeat(self.lexicon.prototypes[[self._places[entry.entry_id]]], 1 + views.mirror, axis=0)
        return self.network.embed(_entry_windows(entry, reading))[: 1 + views.mirror]

    def entries_name(self, reading: Reading, views: Views = Views()) -> str:
        del reading
        return _entries_name(self.fingerprint, views)

    def recording(self, clip: Path, reading: Reading) -> RecordedSign:
        """Cut to where a hand is raised; says whether the hands can be seen."""
        read = _read(clip, reading, reading.box)
        signer = read.signer
        n_frames = len(signer.track.axis)
        if n_frames > LONGEST_SECONDS * FRAME_RATE:
            raise VideoError(clip, f"is longer than {LONGEST_SECONDS} s", "record one sign, or cut it out")
        if not signer.track.points[:, :POSE_NUMBERS].any():
            whole = Trim(FrameSpan(0, n_frames), n_frames)
            return RecordedSign(np.zeros((0, self.dim), np.float32), whole, faults=(NOBODY,))
        faults, trim = _faults(signer, clip), Trim(_signed(signer), n_frames)
        windows = None if faults else _sign_windows(signer, trim.kept, clip)
        vectors = np.zeros((0, self.dim), np.float32) if windows is None else self.network.embed(windows)
        drawn = tuple(skeletons(signer, trim.kept))
        doubts = (*damage_of(clip, read.remarks), *_doubts_of(signer.track, trim.kept))
        return RecordedSign(vectors, trim, drawn, faults, doubts)

    def without_still_ends(self, entry: Entry, reading: Reading) -> Entry:
        """Nothing to cut: it sees where the hands are raised."""
        del reading
        return entry

    def trunk(self) -> _LandmarkTrunk:
        return _LandmarkTrunk(self.network)


class _LandmarkTrunk:
    """The first stage of a landmark model."""

    def __init__(self, network: LandmarkEmbedder) -> None:
        self._network = network
        self.name, self.fingerprint, self.dim = network.name, network.trunk_fingerprint, network.trunk_dim

    def track(self, episode: Episode, reading: Reading) -> VideoTrack:
        """Windows of 16 frames, as the head of a model is trained on (Paper 3.2)."""
        rates = Rates(lengths=(CLIP_LENGTH,), stride=reading.stride)
        return _read_track(episode, RateRows(self._network, rates, is_trunk=True), reading)

    def entry(self, entry: Entry, reading: Reading, views: Views = Views()) -> FloatArray:
        """One window over the sign, rounded as tracks are."""
        vectors = self._network.trunk_vectors(_entry_windows(entry, reading))[: 1 + views.mirror]
        return vectors.astype(np.float16).astype(np.float32)

    def entries_name(self, reading: Reading, views: Views = Views()) -> str:
        del reading
        return _entries_name(self.fingerprint, views)


def _entries_name(fingerprint: str, views: Views) -> str:
    """Nothing is drawn by chance; but a clip without a .pose file is seen through the detector."""
    seen_by = f" {detector_name()}" if has_detector() else ""
    return f"{fingerprint} without rest but low signs{' mirrored' * views.mirror}{seen_by}"


def _mirrored(points: FloatArray) -> FloatArray:
    from signspot.models.landmarks import LandmarkChange  # torch, which takes seconds to load

    change = LandmarkChange(mirror=True, radians=0.0, stretch=1.0, speed=1.0, lost_hands=((0.0, 0.0), (0.0, 0.0)))
    return change.apply(points)


def _entry_windows(entry: Entry, reading: Reading) -> FloatArray:
    """(2, 16, 258): the sign of a dictionary clip, as it is and mirrored."""
    if entry.video is None:
        raise VideoError(entry.entry_id, "has no clip, and a model of landmarks needs one", "add it or remove it")
    # Landmarks of a file need no store; those of a clip are kept, those of a recording never.
    with replace(reading, store=None if landmark_file_of(entry.video) else reading.store).opened_store() as store:
        signer = _read(entry.video, reading, entry.box, store).signer
    if 0 < len(signer.track.axis) < FEWEST_FRAMES:
        raise VideoError(entry.video, too_short(len(signer.track.axis)), "give a clip of the whole sign")
    return _sign_windows(signer, entry.kept or _signed(signer), entry.video)


def _read(video: Path, reading: Reading, box: SignerBox | None, store: FeatureStore | None = None) -> VideoLandmarks:
    try:
        return landmarks_of(video, replace(reading, progress=silent), box, store)
    except FormatError as error:  # of a .pose file, which stands for a video here
        raise VideoError(error.where, error.what, error.fix) from error


def _sign_windows(signer: SignerLandmarks, kept: FrameSpan, path: Path) -> FloatArray:
    """(2, 16, 258) the sign brought to 16 frames, as it is and mirrored."""
    if kept.stop > len(signer.track.axis):
        raise VideoError(path, "its landmarks do not reach to its end", "detect them again")
    points = signer.track.points
    if not points[kept.start : kept.stop].any():
        raise VideoError(path, "nobody was found in it", "show the upper body, in good light")
    heights = [in_picture_heights(view, signer.aspect) for view in (points, _mirrored(points))]
    return np.stack([window_at(view, kept.start, len(kept)) for view in heights])


def _faults(signer: SignerLandmarks, path: Path) -> tuple[str, ...]:
    """Why a recording shows no sign: too short, or nothing but rest. A hand that is held up shows one, even still."""
    faults = faults_of(trim_by_landmarks(signer.track, signer.aspect), path)
    if faults != (NO_MOTION,):
        return faults
    return () if _has_raised_hand(in_picture_heights(signer.track.points, signer.aspect)) else (NO_HAND,)


def _signed(signer: SignerLandmarks) -> FrameSpan:
    """The frames of the sign: the model was trained on signs without the hands' way up and down."""
    return sign_span(in_picture_heights(signer.track.points, signer.aspect))


def _doubts_of(track: LandmarkTrack, kept: FrameSpan) -> tuple[str, ...]:
    seconds = len(kept) / FRAME_RATE
    long = f"a hand is raised for {seconds:.1f} s: if these are several signs, look for them with `signspot spot`"
    return (*((long,) if seconds > _LONG_SECONDS else ()), *_hidden_hands(track, kept))


def _hidden_hands(track: LandmarkTrack, kept: FrameSpan) -> tuple[str, ...]:
    points = track.points[kept.start : kept.stop]
    if not len(points):
        return ()
    wrists = points[:, :POSE_NUMBERS].reshape(len(points), -1, 4)[:, _SIGN_WRISTS, :2]
    found = np.asarray(wrists.any(axis=2))
    outside = found & np.asarray(((wrists < 0) | (wrists > 1)).any(axis=2))
    # Signs of one hand leave the other hanging below the picture: both must be out.
    if (outside | ~found).all(axis=1).mean() > _MOST:
        return (HANDS_OUT,)
    hands = points[:, POSE_NUMBERS:].reshape(len(points), 2, HAND_NUMBERS)
    return (NO_HANDS,) if (~hands.any(axis=(1, 2))).mean() > _MOST else ()
