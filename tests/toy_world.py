"""A toy world for the first walk through the software: a drawn figure whose hands take the colour of the sign.

It makes ordinary files (dictionary clips, a "broadcast" with subtitles) in which the truth is known and the mean-colour
embedder can find its way. It shows that the path works and says nothing about real signing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from signspot.domain.recordings import Subtitle, Word
from signspot.domain.time import FRAME_MS, MillisSpan
from signspot.domain.tracks import Pixels
from signspot.formats.captions import write_subtitles
from signspot.media.writer import VideoWriter

SIDE = 256
_REST = (40, 40, 40)


@dataclass(frozen=True, slots=True)
class ColourSign:
    """One variant of a word: the colour of the hands and how they move (turns and lift of a path in the plane)."""

    word: Word
    variant: str
    colour: tuple[int, int, int]
    turns: tuple[float, float]


SIGNS = (
    ColourSign(Word("apple"), "1", (255, 0, 0), (1, 1)),
    ColourSign(Word("apple"), "2", (255, 0, 255), (2, 0)),
    ColourSign(Word("garden"), "1", (255, 255, 0), (0, 1)),
    ColourSign(Word("house"), "1", (0, 0, 255), (1, 0)),
    ColourSign(Word("tree"), "1", (0, 255, 0), (1, 2)),
    ColourSign(Word("water"), "1", (0, 255, 255), (3, 1)),
)


@dataclass(frozen=True, slots=True)
class Signed:
    """The truth about one sign of the broadcast."""

    sign: ColourSign
    span_ms: MillisSpan


@dataclass(frozen=True, slots=True)
class ToyWorld:
    """Where the files are and what is true."""

    dictionary: Path
    broadcast: Path
    subtitles: Path
    truth: tuple[Signed, ...]


def make_toy_world(folder: Path, seed: int = 0) -> ToyWorld:
    """Write a dictionary of six clips and a subtitled broadcast of about 40 seconds into `folder`."""
    rng = np.random.default_rng(seed)
    dictionary = folder / "dictionary"
    for sign in SIGNS:
        word_folder = dictionary / sign.word
        word_folder.mkdir(parents=True, exist_ok=True)
        clip = [*_still(6), *_performed(sign, 44), *_still(6)]
        _write(word_folder / f"{sign.word}_{sign.variant}.mp4", clip)
    # "house" is in the dictionary and in a subtitle but is never signed: not finding it is the right answer.
    told = [SIGNS[i] for i in rng.permutation([0, 1, 2, 4, 5, 0, 2, 4])]
    frames, truth = _broadcast(told, rng)
    broadcast, subtitles = folder / "broadcast.mp4", folder / "broadcast.vtt"
    _write(broadcast, frames)
    write_subtitles(_subtitles(truth), subtitles, overwrite=True)
    return ToyWorld(dictionary, broadcast, subtitles, truth)


def _broadcast(told: list[ColourSign], rng: np.random.Generator) -> tuple[list[Pixels], tuple[Signed, ...]]:
    frames: list[Pixels] = [*_still(30)]
    truth: list[Signed] = []
    for sign in told:
        start, length = len(frames), int(rng.integers(14, 21))
        frames += _performed(sign, length)
        truth.append(Signed(sign, MillisSpan.of(start * FRAME_MS, len(frames) * FRAME_MS)))
        frames += _still(int(rng.integers(60, 110)))
    return frames, tuple(truth)


def _subtitles(truth: tuple[Signed, ...]) -> tuple[Subtitle, ...]:
    texts = {"apple": "She picked two apples.", "garden": "The garden was quiet.", "tree": "An old tree stood there,"}
    cues = [
        Subtitle(one.span_ms.padded(700, 900), texts.get(one.sign.word, f"and there was {one.sign.word}."))
        for one in truth
    ]
    last = truth[-1].span_ms.stop
    return (*cues, Subtitle(MillisSpan.of(last + 1000, last + 2500), "That is all from the house."))


def _performed(sign: ColourSign, length: int) -> Iterator[Pixels]:
    for phase in np.linspace(0, 1, length):
        weight = float(np.clip(8 * min(phase, 1 - phase) + 0.4, 0, 1))  # the colour comes and goes as the hands rise
        lift = float(np.sin(np.pi * phase))
        swing = (np.sin(2 * np.pi * sign.turns[0] * phase), np.sin(2 * np.pi * sign.turns[1] * phase))
        colour = tuple(round(weight * c + (1 - weight) * r) for c, r in zip(sign.colour, _REST, strict=True))
        yield _figure(colour, lift, (float(swing[0]), float(swing[1])))


def _still(count: int) -> list[Pixels]:
    return [_figure(_REST, 0.0, (0.0, 0.0))] * count


def _figure(hands: tuple[int, ...], lift: float, swing: tuple[float, float]) -> Pixels:
    """Head, body, two arms and two hands; `lift` from 0 (hands down) to 1 (in front of the chest)."""
    picture = Image.new("RGB", (SIDE, SIDE))
    draw = ImageDraw.Draw(picture)
    draw.rounded_rectangle((84, 116, 172, 250), radius=30, fill=(30, 30, 36))
    draw.ellipse((100, 28, 156, 100), fill=(46, 42, 38))
    for side in (-1, 1):
        x = 128 + side * (78 - 46 * lift) + 16 * swing[0] * lift
        y = 226 - 86 * lift + 16 * swing[1] * lift
        draw.line(((128 + side * 40, 134), (128 + side * 70, 190 - 20 * lift), (x, y)), fill=(40, 40, 46), width=14)
        draw.ellipse((x - 30, y - 30, x + 30, y + 30), fill=hands)
    return np.asarray(picture)


def _write(path: Path, frames: list[Pixels]) -> None:
    with VideoWriter(path, width=SIDE, height=SIDE, overwrite=True) as writer:
        for number, pixels in enumerate(frames):
            writer.write(pixels, number * FRAME_MS)
