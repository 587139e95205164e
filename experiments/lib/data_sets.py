"""RWTH-BOSTON-104 as hand trajectories: real continuous ASL with the frames of every word.

The folder holds hands_condensed.csv (video, frame, x and y of both hands and the nose in pixels, 30 frames a second),
speaker.csv (video, speaker), train_words.csv and test_words.csv (video, speaker, word, startframe, endframe, both
inclusive). What is read counts frames at 25 a second, as all of signspot does: places are interpolated in time, and
a word has the frames whose time lies in it.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Word, normalise
from signspot.domain.time import FRAME_RATE, FrameSpan
from signspot.domain.tracks import LANDMARK_DIM, Bools, FloatArray, Floats, in_picture_heights
from signspot.errors import FormatError, InputError
from signspot.evaluation.measures import Scores, average_precision, ranks
from signspot.files.tables import Fields, Record, csv_records

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
    points: FloatArray  # (n_frames, 258) in picture heights
    seconds: npt.NDArray[np.float64]  # (n_frames,) since the first frame, ascending


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
                points=in_picture_heights(whole, aspects[row.text("signer")]),
                seconds=np.arange(len(whole)) / _WLASL_RATE,
            )
        )
    return tuple(clips)


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
    if not fits or (name != "name" and array.dtype.kind not in "fiu"):
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
