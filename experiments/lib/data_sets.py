"""RWTH-BOSTON-104 as hand trajectories: real continuous ASL with the frames of every word.

The folder holds hands_condensed.csv (video, frame, x and y of both hands and the nose in pixels, 30 frames a second),
speaker.csv (video, speaker), train_words.csv and test_words.csv (video, speaker, word, startframe, endframe, both
inclusive). What is read counts frames at 25 a second, as all of signspot does: places are interpolated in time, and
a word has the frames whose time lies in it.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import nn

from signspot.domain.recordings import Word, normalise
from signspot.domain.time import FRAME_RATE, FrameSpan
from signspot.domain.tracks import LANDMARK_DIM, Bools, FloatArray, Floats, in_picture_heights
from signspot.errors import FormatError, InputError
from signspot.evaluation.measures import Scores, average_precision, ranks
from signspot.files.tables import Fields, Record, csv_records
from signspot.formats.pose import read_pose

NATIVE_RATE = 30  # frames a second of the recordings
SPLITS = ("train", "test")
_POINTS = ("left-x", "left-y", "right-x", "right-y", "nose-x", "nose-y")
_HANDS = Fields(("video", "frame", *_POINTS), ())
_SPEAKERS = Fields(("video", "speaker"), ())
_WORDS = Fields(("video", "speaker", "word", "startframe", "endframe"), ())
_MAX_FRAMES = 100_000  # of one sentence: over an hour
_MAX_PIXELS = 1e6
_CORRECT = "get the files again, or correct the row"


@dataclass(frozen=True, slots=True)
class SignedWord:
    """One word of a sentence and the frames that show it."""

    word: Word
    span: FrameSpan


@dataclass(frozen=True, slots=True, eq=False)
class SignedSentence:
    """One recorded sentence."""

    video_id: str
    signer: str
    split: str  # train or test
    places: FloatArray  # (n_frames, 3, 2) x, y in pixels of the left hand, the right hand and the nose
    words: tuple[SignedWord, ...]  # in the order of the file


def read_boston104(folder: Path) -> tuple[SignedSentence, ...]:
    """All sentences that have words, in the order of the word files; anything that does not fit is refused."""
    signers = {row.text("video"): row.text("speaker") for row in _rows(folder / "speaker.csv", _SPEAKERS)}
    native = _trajectories(folder / "hands_condensed.csv")
    sentences: dict[str, SignedSentence] = {}
    for split in SPLITS:
        by_video: dict[str, list[Record]] = {}
        for row in _rows(folder / f"{split}_words.csv", _WORDS):
            by_video.setdefault(row.text("video"), []).append(row)
        for video, rows in by_video.items():
            _check_video(video, rows[0], native, signers)
            if video in sentences:
                raise FormatError(rows[0].where, f"the sentence {video} is a training sentence too", _CORRECT)
            words = tuple(_signed_word(row, len(native[video]), signers[video]) for row in rows)
            sentences[video] = SignedSentence(video, signers[video], split, _at_house_rate(native[video]), words)
    if not sentences:
        raise FormatError(folder, "no sentence has words", "get the files again")
    return tuple(sentences.values())


def _rows(path: Path, fields: Fields) -> Iterator[Record]:
    records = csv_records(path, fields)
    for problem in records.problems:
        raise FormatError(problem.where, problem.what, problem.fix)
    return iter(records.rows)


def _check_video(video: str, row: Record, native: Mapping[str, FloatArray], signers: Mapping[str, str]) -> None:
    if video not in native:
        raise FormatError(row.where, f"the sentence {video[:40]!r} has no trajectories", _CORRECT)
    if not signers.get(video):
        raise FormatError(row.where, f"speaker.csv does not say who signs the sentence {video[:40]!r}", _CORRECT)


def _trajectories(path: Path) -> dict[str, FloatArray]:
    """The places of each video, (n_frames, 3, 2) at the native rate."""
    frames: dict[str, list[list[float]]] = {}
    for row in _rows(path, _HANDS):
        held = frames.setdefault(row.text("video"), [])
        if _whole(row, "frame") != len(held):
            what = f"frame {row.text('frame')[:20]} where frame {len(held)} is expected"
            raise FormatError(row.where, what, "the frames of a video follow one another from 0")
        held.append([_number(row, name, _MAX_PIXELS) for name in _POINTS])
    return {video: np.array(held, np.float32).reshape(-1, 3, 2) for video, held in frames.items()}


def _signed_word(row: Record, n_frames: int, signer: str) -> SignedWord:
    first, last = _whole(row, "startframe"), _whole(row, "endframe")
    if not first <= last < n_frames:
        raise FormatError(row.where, f"frames {first} to {last} of a sentence of {n_frames}", _CORRECT)
    if row.text("speaker") != signer:
        raise FormatError(row.where, f"speaker.csv says that {signer[:40]!r} signs this sentence", _CORRECT)
    try:
        return SignedWord(row.word("ase"), FrameSpan(_house_frame(first), _house_frame(last + 1)))
    except ValueError as error:
        raise FormatError(row.where, str(error), _CORRECT) from error


def _house_frame(native: int) -> int:
    """The first frame at 25 a second that does not come before a native frame."""
    return -(-native * FRAME_RATE // NATIVE_RATE)


def _at_house_rate(places: FloatArray) -> FloatArray:
    """(n, 3, 2) at 30 frames a second -> the same motion at 25."""
    time = np.arange(_house_frame(len(places))) * (NATIVE_RATE / FRAME_RATE)  # in native frames
    flat = places.reshape(len(places), -1)
    columns = [np.interp(time, np.arange(len(places)), column) for column in flat.T]
    return np.stack(columns, axis=1).astype(np.float32).reshape(-1, 3, 2)


def _whole(row: Record, name: str) -> int:
    number = _number(row, name, _MAX_FRAMES)
    if number < 0 or not number.is_integer():
        raise FormatError(row.where, f"{name} is {row.text(name)[:20]!r}, which is no frame number", _CORRECT)
    return int(number)


def _number(row: Record, name: str, most: float) -> float:
    try:
        number = row.number(name)
    except ValueError as error:
        raise FormatError(row.where, str(error), _CORRECT) from error
    if number is None or not abs(number) < most:
        raise FormatError(row.where, f"{name} is {row.text(name)[:20]!r}, which is no place or frame", _CORRECT)
    return number


# Sets of real signing as landmarks: wlasl300_landmarks, asl30_landmarks and aslearn, each a landmarks.npz and a CSV.
#
# Landmarks are 258 numbers a frame in the MediaPipe layout, zeros where nothing was found. Here x, y and z are in
# picture heights (the files hold fractions of the picture, so x and z are multiplied by its aspect), at the rate of
# the file.


LANGUAGE = "ase"  # all three sets show American Sign Language
_WLASL_RATE = 25  # frames a second: the set does not say, its clips have 24 to 30
_BODY_ASPECT = 1.7  # shoulder width over the height of the nose above the shoulders, of most people
_ASPECTS = (1.3, 1.8)  # of the pictures of WLASL
_WLASL = Fields(("row", "word", "video_id", "signer", "split", "near_duplicate_of"), ("variation",))
_WLASL2000 = Fields(("video_id", "word", "split", "first_frame"), ("frames", "frames_kept"))
_USUAL_CENTRE, _USUAL_WIDTH = (0.529, 0.513), 0.252  # of the shoulders, in fractions of a picture of WLASL
_USUAL_ASPECT = 1.55
_COPY = re.compile(r"[ _]?(\(\d+\)|copy|-PopSign)$")  # how a second clip of a word is named
_ASL30 = Fields(("row", "word", "clip", "signer_or_source_video", "in_wlasl300", "duplicate_of"), ("source",))
_ASLEARN = Fields(
    ("file", "glosses_with_isolated_clip_same_signer"), ("glosses_in_filename_order", "also_in_asl_30words")
)
_DAMAGED = "get the files again"
_MAX_BYTES = 2 * 1024**3  # of one array: a small file may claim to hold any size


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LandmarkClip:
    """One recorded clip of one sign."""

    clip_id: str
    word: Word
    signer: str = ""  # the same person has the same name in wlasl300 and asl30; "" where unknown
    split: str = ""  # train, val or test where the set has official splits
    is_repeat: bool = False  # the same recording is in the set once more, or in wlasl300
    variation: str = ""  # which of a word's signs, where the set says so
    points: FloatArray  # (n_frames, 258) in picture heights
    seconds: npt.NDArray[np.float64]  # (n_frames,) since the first frame, ascending
    aspect: float = 1.0  # width over height of the picture, as far as known


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkSentence:
    """One recorded sentence and those of its words that have a clip of their own, in the order of the file's name."""

    name: str
    words: tuple[Word, ...]
    points: FloatArray  # (n_frames, 258) in picture heights
    seconds: npt.NDArray[np.float64]  # (n_frames,)


@dataclass(frozen=True, slots=True)
class Aslearn:
    """Isolated signs and sentences of one signer: for evaluation only."""

    clips: tuple[LandmarkClip, ...]
    sentences: tuple[LandmarkSentence, ...]


def read_wlasl300(folder: Path) -> tuple[LandmarkClip, ...]:
    """The clips of wlasl300_landmarks, in the order of its table: at most the first 30 frames of each.

    The set does not say how wide its pictures are. All clips of a signer get the aspect that gives the signer the usual
    proportions of a body.
    """
    path = folder / "landmarks.npz"
    points = _array(path, "X", (None, None, LANDMARK_DIM))
    rows = list(_rows(folder / "clips.csv", _WLASL))
    if [row.text("row") for row in rows] != [str(number) for number in range(len(points))]:
        raise FormatError(folder / "clips.csv", f"does not list the {len(points)} clips in their order", _DAMAGED)
    signers = np.array([row.text("signer") for row in rows])
    proportions = np.array([_proportion(clip) for clip in points])
    aspects = {name: _likely_aspect(proportions[signers == name]) for name in set(signers.tolist())}
    clips = []
    for row, clip in zip(rows, points, strict=True):
        whole = clip[np.isfinite(clip).all(axis=1)]  # a clip of fewer frames is filled up with no numbers
        clips.append(
            LandmarkClip(
                clip_id=row.text("video_id"),
                word=_word(row, row.text("word")),
                signer=f"W{row.text('signer')}",
                split=row.text("split"),
                is_repeat=bool(row.text("near_duplicate_of")),
                variation=row.text("variation"),
                points=in_picture_heights(whole, aspects[row.text("signer")]),
                seconds=np.arange(len(whole)) / _WLASL_RATE,
                aspect=aspects[row.text("signer")],
            )
        )
    return tuple(clips)


def read_wlasl2000(folder: Path, holistic: Sequence[LandmarkClip]) -> tuple[LandmarkClip, ...]:
    """The clips of wlasl2000_hands, in the order of its table, with a body that the set does not have.

    `holistic` are the clips of wlasl300, which has the body of many of the same recordings: there signspot learns which
    hand is which and how arms follow hands. A recording that wlasl300 lacks gets the usual body at the usual place.
    """
    hands, offsets = _unpacked_hands(folder / "landmarks.npz")
    rows = list(_rows(folder / "clips.csv", _WLASL2000))
    if len(rows) != len(offsets) - 1:
        raise FormatError(folder / "clips.csv", f"does not list the {len(offsets) - 1} clips", _DAMAGED)
    known = {clip.clip_id: clip for clip in holistic}
    clips = [hands[start:stop] for start, stop in pairwise(offsets.tolist())]
    firsts = [_whole(row, "first_frame") for row in rows]
    shared = [
        (clip, known[row.text("video_id")], first)
        for row, clip, first in zip(rows, clips, firsts, strict=True)
        if row.text("video_id") in known
    ]
    sides, bodies = _Sides.learned(shared), _Bodies.of(holistic)
    found = []
    for row, clip in zip(rows, clips, strict=True):
        twin = known.get(row.text("video_id"))
        points = bodies.with_body(sides.sorted(clip), twin)
        found.append(
            LandmarkClip(
                clip_id=row.text("video_id"),
                word=_word(row, row.text("word")),
                signer=twin.signer if twin else "",
                split=row.text("split"),
                is_repeat=bool(twin and twin.is_repeat),
                variation=twin.variation if twin else "",
                points=points,
                seconds=np.arange(len(points)) / _WLASL_RATE,
            )
        )
    return tuple(found)


def _unpacked_hands(path: Path) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Both hands of every frame (n, 2, 21, 3) in fractions of the picture, zeros where not found; clips' offsets."""
    present, offsets = _array(path, "present", (None, 2)).astype(bool), _array(path, "offsets", (None,))
    scale = np.array([2048, 2048, 512], np.float32)  # steps of a picture
    wrist = _array(path, "wrist", (3, None)).T / scale
    fingers = _array(path, "fingers", (60, None)).T.reshape(-1, 20, 3) * (2 / scale) + wrist[:, None]
    hands = np.zeros((*present.shape, 21, 3), np.float32)
    hands[present] = np.concatenate([wrist[:, None], fingers], axis=1)
    return hands, offsets.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """Tells a left hand from a right one by where and how it is: 99.6% right on clips it did not learn from."""

    network: nn.Module

    @classmethod
    def learned(cls, shared: Sequence[tuple[FloatArray, LandmarkClip, int]]) -> _Sides:
        """From hands (n, 2, 21, 3) of recordings that also have a clip of wlasl300, whose frames start at a number."""
        numbers, is_right = [], []
        for hands, clip, first in shared:
            n = min(len(hands), len(clip.points) - first)
            if n < 1:
                continue
            both = clip.points[first : first + n, 132:].reshape(n, 2, 21, 3)[:, :, 0, :2].astype(np.float64)
            aspect = clip.aspect
            seen = np.any(clip.points[first : first + n, 132:].reshape(n, 2, 63), axis=2)
            place = hands[:n, :, 0, :2] * np.array([aspect, 1])
            apart = np.linalg.norm(place[:, :, None] - both[:, None], axis=3)  # (n, slot, side)
            apart[~np.repeat(seen[:, None], 2, axis=1)] = 9
            sure = np.asarray(hands[:n].any(axis=(2, 3))) & (apart.min(axis=2) < 0.04) & (np.ptp(apart, axis=2) > 0.07)
            described = cls._described(hands[:n])
            numbers.append(described[sure])
            is_right.append(apart.argmin(axis=2)[sure])
        inputs = torch.from_numpy(np.concatenate(numbers).astype(np.float32))
        targets = torch.from_numpy(np.concatenate(is_right)).float()
        generator = torch.Generator().manual_seed(0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network = nn.Sequential(nn.Linear(inputs.shape[1], 64), nn.GELU(), nn.Linear(64, 1))
        optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.01)
        for _ in range(1500):
            drawn = torch.randint(len(inputs), (1024,), generator=generator)
            loss = F.binary_cross_entropy_with_logits(network(inputs[drawn])[:, 0], targets[drawn])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return cls(network)

    @torch.no_grad()
    def sorted(self, hands: FloatArray) -> FloatArray:
        """Hands (n, 2, 21, 3) in any order -> left, right."""
        found = hands.any(axis=(2, 3))
        right = self.network(torch.from_numpy(self._described(hands).astype(np.float32)))[..., 0].numpy()
        right = np.where(found, right, 0)
        swap = right[:, 0] > right[:, 1]
        return np.where(swap[:, None, None, None], hands[:, ::-1], hands)

    @staticmethod
    def _described(hands: FloatArray) -> FloatArray:
        """(n, 2, 72) where each hand is, where the other one is, and its shape; which way fingers bend tells sides."""
        found: Bools = np.asarray(hands.any(axis=(2, 3)))
        size = np.maximum(np.linalg.norm(hands[:, :, 9] - hands[:, :, 0], axis=-1), 1e-3)[..., None, None]
        shape = (hands - hands[:, :, :1]) / size
        normal = np.cross(shape[:, :, 5], shape[:, :, 17])
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-6
        bent = np.einsum("nhkc,nhc->nhk", shape[:, :, [8, 12, 16, 20]] - shape[:, :, [5, 9, 13, 17]], normal)
        thumb = np.einsum("nhc,nhc->nh", shape[:, :, 4], normal)[..., None]
        is_both = np.repeat((found[:, :1] & found[:, 1:])[..., None], 2, axis=1)
        beside = np.where(is_both, hands[:, :, :1, 0] - hands[:, ::-1, :1, 0], 0)
        place = hands[:, :, 0, :2] - np.array(_USUAL_CENTRE, np.float32)
        flat = shape[:, :, 1:].reshape(*found.shape, -1)
        return np.concatenate([place, beside, is_both, np.tanh(3 * bent), np.tanh(3 * thumb), normal, flat], axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class _Bodies:
    """Bodies for hands: the usual one, and arms that follow the hands."""

    usual: FloatArray  # (33, 4) in shoulder widths from between the shoulders
    elbow: FloatArray  # (3, 2) from a right wrist (x, y, 1) to the elbow
    rest: FloatArray  # (2,) where a right wrist is whose hand is not found

    @classmethod
    def of(cls, clips: Sequence[LandmarkClip]) -> _Bodies:
        poses, wrists, elbows, rests = [], [], [], []
        for clip in clips:
            pose = clip.points[:, :132].reshape(-1, 33, 4)
            pose = pose[pose.any(axis=(1, 2))]
            if not len(pose):
                continue
            placed = _on_shoulders(pose, *_shoulders(pose))
            poses.append(np.median(placed, axis=0))
            for side in (-1, 1):  # left, right: image x is larger on the signer's left
                wrist, elbow = (placed[:, first + (side > 0)] * np.array([-side, 1, 1, 1]) for first in (15, 13))
                seen = wrist[:, 3] > 0.7
                wrists.append(wrist[seen, :2])
                elbows.append(elbow[seen, :2])
                rests.append(wrist[~seen, :2])
        ways = np.concatenate(wrists)
        elbow, *_ = np.linalg.lstsq(np.c_[ways, np.ones(len(ways))], np.concatenate(elbows), rcond=None)
        usual = np.median(poses, axis=0)
        return cls(usual.astype(np.float32), elbow.astype(np.float32), np.median(np.concatenate(rests), axis=0))

    def with_body(self, hands: FloatArray, twin: LandmarkClip | None) -> FloatArray:
        """Hands (n, 2, 21, 3), left and right, in fractions of the picture -> (n, 258) in picture heights."""
        centre, width, aspect = np.array(_USUAL_CENTRE), _USUAL_WIDTH, _USUAL_ASPECT
        pose = self.usual
        if twin is not None:
            seen = twin.points[:, :132].reshape(-1, 33, 4)
            seen = seen[seen.any(axis=(1, 2))]
            if len(seen):
                aspect = twin.aspect
                middle, unit = _shoulders(seen)
                centre, width = middle / np.array([aspect, 1]), unit / aspect
                pose = np.median(_on_shoulders(seen, middle, unit), axis=0)
        unit = width * aspect
        centre = centre * np.array([aspect, 1])
        frames = np.repeat(pose[None], len(hands), axis=0)
        whole = hands * np.array([aspect, 1, aspect], np.float32)
        for side, hand in enumerate(np.moveaxis(whole, 1, 0)):
            sign = np.array([1 if side == 0 else -1, 1])  # a right arm has smaller x in the picture: mirrored to +
            found = np.flatnonzero(hand.any(axis=(1, 2)))
            if len(found):
                place = (hand[found, 0, :2] - centre) / unit * sign
                every = np.arange(len(hand))
                wrist = np.stack([np.interp(every, found, place[:, axis]) for axis in (0, 1)], axis=1)
                visible = np.where(np.isin(every, found), 0.98, 0.6)
            else:
                wrist, visible = np.repeat(self.rest[None], len(hand), axis=0), np.full(len(hand), 0.3)
            elbow = np.c_[wrist, np.ones(len(wrist))] @ self.elbow
            for point in (15 + side, 17 + side, 19 + side, 21 + side):
                frames[:, point, :2], frames[:, point, 3] = wrist * sign, visible
            frames[:, 13 + side, :2] = elbow * sign
        frames[..., :2] = frames[..., :2] * unit + centre
        frames[..., 2] *= unit
        return np.concatenate([frames.reshape(len(hands), -1), whole.reshape(len(hands), -1)], 1).astype(np.float32)


def _shoulders(pose: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], float]:
    """The median middle and width of the shoulders of poses (n, 33, 4)."""
    both = pose[:, 11:13, :2].astype(np.float64)
    width = float(np.median(np.linalg.norm(both[:, 0] - both[:, 1], axis=-1)))
    return np.median(both.mean(axis=1), axis=0), max(width, 1e-3)


def _on_shoulders(pose: npt.NDArray[Any], centre: npt.NDArray[np.float64], width: float) -> FloatArray:
    placed = pose.astype(np.float32).copy()
    placed[..., :2] = (placed[..., :2] - centre) / width
    placed[..., 2] /= width
    return placed


def read_asl30(folder: Path) -> tuple[LandmarkClip, ...]:
    """The clips of asl30_landmarks, in the order of its table; those that wlasl300 has too are marked as repeats."""
    recordings = _recordings(folder / "landmarks.npz")
    rows = list(_rows(folder / "clips.csv", _ASL30))
    if [row.text("clip") for row in rows] != [name for name, _, _ in recordings]:
        raise FormatError(folder / "clips.csv", "does not list the clips of landmarks.npz in their order", _DAMAGED)
    return tuple(
        LandmarkClip(
            clip_id=row.text("clip"),
            word=_word(row, row.text("word")),
            signer=row.text("signer_or_source_video"),
            is_repeat=bool(row.text("duplicate_of")) or row.text("in_wlasl300") == "1",
            points=points,
            seconds=seconds,
        )
        for row, (_, points, seconds) in zip(rows, recordings, strict=True)
    )


def read_popsign(landmarks: Path, known: Container[Word]) -> tuple[LandmarkClip, ...]:
    """The clips of popsign from .pose files that `signspot landmarks` wrote, named `<topic>__<word>.pose`.

    Words that share a sign stand beside each other (`beads,necklace`): the first that is among the `known` ones counts,
    else the first. A sense follows a hyphen (`glass-window`) and is left out.
    """
    clips = []
    for path in sorted(landmarks.glob("*__*.pose")):
        named = _COPY.sub("", path.stem.split("__", 1)[1].replace("don_t", "dont"))
        words = [normalise(text.split("-")[0]) for text in named.split(",")]
        signer = read_pose(path)
        points = in_picture_heights(np.asarray(signer.track.points), signer.aspect)
        seconds = signer.track.axis.times_ms / 1000
        word = next((word for word in words if word in known), words[0])
        clips.append(
            LandmarkClip(
                clip_id=path.stem, word=word, signer="popsign", points=points, seconds=seconds, aspect=signer.aspect
            )
        )
    return tuple(clips)


def read_aslearn(folder: Path) -> Aslearn:
    """The isolated signs of aslearn, sorted by word, and its sentences, in the order of glosses.csv."""
    recordings = {name: (points, seconds) for name, points, seconds in _recordings(folder / "landmarks.npz")}
    clips = tuple(
        LandmarkClip(clip_id=name, word=normalise(Path(name).stem), points=points, seconds=seconds)
        for name, (points, seconds) in sorted(recordings.items())
        if name.startswith("words/")
    )
    known = {clip.word for clip in clips}
    sentences = []
    for row in _rows(folder / "glosses.csv", _ASLEARN):
        name = f"sentences/{row.text('file')}"
        words = tuple(_word(row, text) for text in row.text("glosses_with_isolated_clip_same_signer").split())
        if name not in recordings or not known.issuperset(words):
            raise FormatError(row.where, "names a recording that landmarks.npz does not hold", _DAMAGED)
        sentences.append(LandmarkSentence(row.text("file"), words, *recordings[name]))
    return Aslearn(clips, tuple(sentences))


def _recordings(path: Path) -> list[tuple[str, FloatArray, npt.NDArray[np.float64]]]:
    """The name, the landmarks and the times of each recording of a file that holds them one after another."""
    points, seconds = _array(path, "X", (None, LANDMARK_DIM)), _array(path, "time", (None,))
    names, offsets, aspects = (
        _array(path, "name", (None,)),
        _array(path, "offsets", (None,)),
        _array(path, "aspect", (None,)),
    )
    starts = offsets.astype(np.int64)
    fits = len(starts) == len(names) + 1 == len(aspects) + 1 and starts[0] == 0 and starts[-1] == len(points)
    if not fits or len(seconds) != len(points) or not (np.diff(starts) > 0).all():
        raise FormatError(path, "holds recordings that do not fit their offsets", _DAMAGED)
    if not (np.isfinite(aspects) & (aspects > 0)).all() or not np.isfinite(seconds).all():
        raise FormatError(path, "holds times or aspects that are not numbers", _DAMAGED)
    found = []
    for number, name in enumerate(names.tolist()):
        frames = slice(starts[number], starts[number + 1])
        times = seconds[frames].astype(np.float64) - float(seconds[frames][0])
        if not (np.diff(times) > 0).all():
            raise FormatError(path, f"the times of {str(name)[:60]!r} do not ascend", _DAMAGED)
        found.append((str(name), in_picture_heights(points[frames], float(aspects[number])), times))
    return found


def _array(path: Path, name: str, shape: tuple[int | None, ...]) -> npt.NDArray[Any]:
    """One array of an .npz file; `None` in a shape stands for any length from 1."""
    try:
        with path.open("rb") as opened:
            with zipfile.ZipFile(opened) as archive:
                if archive.getinfo(f"{name}.npy").file_size > _MAX_BYTES:
                    raise ValueError("too large")
            opened.seek(0)
            with np.load(opened, allow_pickle=False) as arrays:
                array: npt.NDArray[Any] = arrays[name]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(path, f"holds no array {name!r} that can be read ({error})", _DAMAGED) from error
    fits = array.ndim == len(shape) and all(
        got >= 1 and wanted in (None, got) for got, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or (name != "name" and array.dtype.kind not in "bfiu"):
        raise FormatError(path, f"the array {name!r} is {array.dtype} of shape {array.shape}", _DAMAGED)
    return array


def _word(row: Record, text: str) -> Word:
    try:
        return normalise(text)
    except ValueError as error:
        raise FormatError(row.where, str(error), _DAMAGED) from error


def _proportion(points: npt.NDArray[Any]) -> float:
    """Shoulder width over the height of the nose above the shoulders, in units of the file."""
    pose = points[np.isfinite(points).all(axis=1), :132].astype(np.float64).reshape(-1, 33, 4)
    if not len(pose):
        return float("nan")
    width = np.median(np.abs(pose[:, 11, 0] - pose[:, 12, 0]))
    height = np.median(np.linalg.norm(pose[:, 11:13, :2].mean(1) - pose[:, 0, :2], axis=-1))
    return float(width / max(height, 1e-3))


def _likely_aspect(proportions: npt.NDArray[np.float64]) -> float:
    usable = proportions[np.isfinite(proportions) & (proportions > 0)]
    return float(np.clip(_BODY_ASPECT / np.median(usable), *_ASPECTS)) if len(usable) else _ASPECTS[1]


# Words found in sentences whose words and order are known, but not their times.
#
# Conventions: `best` and `peak` have a row for each sentence and a column for each word: the highest score of the word
# anywhere in the sentence and when it was reached. Three questions are asked: does a word's score rank the sentences
# that hold it first (presence); does a sentence rank its words first (ranking); do neighbours peak in signed order
# (order).


@dataclass(frozen=True, slots=True, eq=False)
class SentenceWordScores:
    """What each query found; the means are the figures."""

    presence: Floats  # (W,) average precision of each word that some sentences hold and some do not
    ranking: Floats  # (S,) average precision of each sentence that holds a word
    in_order: Bools  # (P,) whether a pair of neighbours peaks in the signed order; equal times are not in order
    pair_sentence: npt.NDArray[np.int64]  # (P,) the sentence of each pair


def sentence_word_scores(best: Scores, peak: Scores, words: Sequence[Sequence[int]]) -> SentenceWordScores:
    """Compare `best` and `peak` (n_sentences, n_words) with the numbers of the words of each sentence, as signed."""
    n_sentences, n_words = best.shape
    if peak.shape != best.shape or len(words) != n_sentences:
        what = f"scores of {best.shape}, peaks of {peak.shape}, {len(words)} sentences"
        raise InputError("sentences", what, "give one row for each sentence")
    holds = np.zeros(best.shape, dtype=bool)
    for sentence, signed in enumerate(words):
        if any(not 0 <= word < n_words for word in signed):
            raise InputError("sentences", f"sentence {sentence} holds a word that has no column", "number the words")
        holds[sentence, list(signed)] = True
    told_apart = [word for word in range(n_words) if 0 < holds[:, word].sum() < n_sentences]
    pairs = [(sentence, first, second) for sentence, signed in enumerate(words) for first, second in pairwise(signed)]
    return SentenceWordScores(
        np.array([_precision(best[:, word], holds[:, word]) for word in told_apart]),
        np.array([_precision(row, held) for row, held in zip(best, holds, strict=True) if held.any()]),
        np.array([peak[sentence, first] < peak[sentence, second] for sentence, first, second in pairs], dtype=bool),
        np.array([sentence for sentence, _, _ in pairs], dtype=np.int64),
    )


def _precision(scores: Scores, right: Bools) -> float:
    return average_precision(ranks(scores)[right], int(right.sum()))
