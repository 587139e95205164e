"""RWTH-BOSTON-104 as hand trajectories: real continuous ASL with the frames of every word.

The folder holds hands_condensed.csv (video, frame, x and y of both hands and the nose in pixels, 30 frames a second),
speaker.csv (video, speaker), train_words.csv and test_words.csv (video, speaker, word, startframe, endframe, both
inclusive). What is read counts frames at 25 a second, as all of signspot does: places are interpolated in time, and
a word has the frames whose time lies in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.spans import FRAME_RATE, FrameSpan
from signspot.domain.tracks import FloatArray
from signspot.domain.words import Word
from signspot.errors import FormatError
from signspot.formats.records import Fields, Record, csv_records

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
