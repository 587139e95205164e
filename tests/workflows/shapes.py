"""A tiny signing corpus as real files: a square whose motion and colour are the sign, over a still figure of noise."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.recordings import Subtitle
from signspot.domain.time import FRAME_MS, MillisSpan
from signspot.domain.tracks import Pixels
from signspot.formats.captions import write_subtitles
from signspot.media.writer import VideoWriter

SIDE = 48
WORDS = ("apple", "house", "tree", "water")
_SIGN, _PAUSE = 20, 32  # frames
_CORNERS = {
    "apple": ((8, 8), (8, 39)),
    "house": ((39, 39), (39, 8)),
    "tree": ((8, 39), (39, 39)),
    "water": ((39, 8), (8, 8)),
}
_COLOURS = {"apple": (230, 40, 40), "house": (40, 230, 40), "tree": (60, 60, 240), "water": (230, 230, 40)}


@dataclass(frozen=True)
class Signed:
    """The truth about one sign of an episode."""

    word: str
    start: int  # frames
    stop: int


@dataclass(frozen=True)
class ShapeCorpus:
    """Where the files are and what is true."""

    dictionary: Path
    corpus: Path
    truth: dict[str, tuple[Signed, ...]]  # by episode


def make_shape_corpus(folder: Path, *, times: bool, n_train: int = 2) -> ShapeCorpus:
    """Two clips of every word, and episodes that sign all words twice; annotated at frames, or at times."""
    rng = np.random.default_rng(0)
    for word in WORDS:
        (folder / "dictionary" / word).mkdir(parents=True)
        for variant in ("1", "2"):
            clip = [*_still(4, rng), *_signed(word, 2 * _SIGN, rng), *_still(4, rng)]
            write_video(folder / "dictionary" / word / f"{word}_{variant}.mp4", clip)
    corpus = folder / "corpus"
    corpus.mkdir()
    splits = {f"train{number}": "train" for number in range(n_train)} | {"test": "test"}
    truth = {name: _episode(corpus / f"{name}.mp4", rng) for name in splits}
    _table(
        corpus / "corpus.csv", ("video", "subtitles", "split"), ((f"{n}.mp4", f"{n}.vtt", s) for n, s in splits.items())
    )
    marked = (
        (name, one.word, one.stop * FRAME_MS if times else one.stop) for name, all_ in truth.items() for one in all_
    )
    _table(corpus / "annotations.csv", ("video", "word", "time_ms" if times else "frame"), marked)
    return ShapeCorpus(folder / "dictionary", corpus, truth)


def _episode(path: Path, rng: np.random.Generator) -> tuple[Signed, ...]:
    frames, signed = _still(_PAUSE, rng), []
    first, second = rng.permutation(WORDS), rng.permutation(WORDS)
    if first[-1] == second[0]:  # signed twice in a row, each of the two signs would be near both subtitles
        second = second[::-1]
    for word in (*first, *second):
        start = len(frames)
        frames += _signed(str(word), _SIGN, rng)
        signed.append(Signed(str(word), start, len(frames)))
        frames += _still(_PAUSE, rng)
    write_video(path, frames)
    cues = (
        Subtitle(MillisSpan((s.start - 16) * FRAME_MS, (s.stop + 16) * FRAME_MS), f"The {s.word} is here.")
        for s in signed
    )
    write_subtitles(cues, path.with_suffix(".vtt"))
    return tuple(signed)


def _signed(word: str, n_frames: int, rng: np.random.Generator) -> list[Pixels]:
    frames = _still(n_frames, rng)
    places = np.linspace(*_CORNERS[word], n_frames)
    for frame, place in zip(frames, places, strict=True):
        x, y = np.rint(place + rng.uniform(-1, 1, 2)).astype(int)
        frame[max(0, y - 7) : y + 7, max(0, x - 7) : x + 7] = _COLOURS[word]
    return frames


def _still(n_frames: int, rng: np.random.Generator) -> list[Pixels]:
    return list(rng.integers(60, 90, (n_frames, SIDE, SIDE, 3), dtype=np.uint8))


def write_video(path: Path, frames: Sequence[Pixels]) -> None:
    with VideoWriter(path, width=SIDE, height=SIDE) as writer:
        for number, pixels in enumerate(frames):
            writer.write(pixels, number * FRAME_MS)


def _table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows((header, *rows))
