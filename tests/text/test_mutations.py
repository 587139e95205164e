"""Damaged subtitle files: seeded mutations of good ones give cues in order or a SubtitleError, and quickly."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from signspot.errors import SubtitleError
from signspot.text.subtitles import _MAX_DURATION_MS, _MAX_TIME_MS, SubtitleOptions, read_subtitles
from tests.text.stl_writer import Block, stl
from tests.text.test_subtitles_ttml import NTSC, ttml

LINES = [
    "Hello, <i>world</i> &amp; you",
    "- JOHN: Où est l’école ?",
    "[MUSIC] ♪ la la ♪\nsecond line",
    "\ue000 3 apples",
]
TIMES = [
    ("00:00:01,000", "00:00:02,500"),
    ("00:00:02,400", "00:00:04,000"),
    ("00:00:05,000", "00:00:06,000"),
    ("01:00:00,000", "01:00:01,000"),
]
CUES = list(zip(TIMES, LINES, strict=True))
SRT = "\n".join(f"{i}\n{a} --> {b}\n{text}\n" for i, ((a, b), text) in enumerate(CUES, 1))
VTT = "WEBVTT\n\nSTYLE\n::cue{}\n\nNOTE x\n\n" + SRT.replace(",", ".")
ASS = (
    "[Script Info]\n[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    + "".join(
        f"Dialogue: 0,{a[1:-1].replace(',', '.')},{b[1:-1].replace(',', '.')},D,,0,0,0,,{{\\i1}}{text}\n"
        for (a, b), text in CUES
    )
)
SUB = "{1}{1}25\n" + "".join(f"{{{i * 50}}}{{{i * 50 + 40}}}{{y:i}}{text}\n" for i, text in enumerate(LINES, 1))
PARAGRAPHS = "".join(
    f'<p xml:id="p{i}" begin="{a.replace(",", ".")}" end="{b.replace(",", ".")}">Hello<br/><span>wörld</span></p>'
    for i, (a, b) in enumerate(TIMES)
)
TTML = ttml(f"<div>{PARAGRAPHS}</div>").decode()
IN_TURN = '<div begin="1s" timeContainer="seq"><p dur="30f">a</p><p begin="5f" end="00:00:09:02">b</p></div>'
EBU = ttml(f"{IN_TURN}<div>{PARAGRAPHS}</div>", NTSC).decode()
STL = stl(
    *(Block(start=(10, 0, i, 0), stop=(10, 0, i + 1, 0), text=b"Caf\xc2e %d\x8anext" % i) for i in range(4)),
    first=b"10000000",
)
SEEDS = [
    ("film.srt", SRT),
    ("film.vtt", VTT),
    ("film.ass", ASS),
    ("film.sub", SUB),
    ("film.ttml", TTML),
    ("film.xml", EBU),
]
ENCODINGS = ["utf-8", "utf-8", "utf-8", "utf-16", "utf-16-le", "utf-32", "cp1252", "utf-8-sig"]
TOKENS = [
    b"-->",
    b"\n\n",
    b"\0",
    b"\xff\xfe",
    b"<",
    b"{\\p1}",
    b"9" * 30,
    b"&#x41;",
    b"<!DOCTYPE a>",
    b"-",
    b"\r",
    b"WEBVTT",
]


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def truncated(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data)) + 1]


def repeated(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:b] + data[a:b] * rng.choice([1, 2, 10]) + data[b:]


def removed(data: bytes, rng: random.Random) -> bytes:
    a = rng.randrange(len(data))
    return data[:a] + data[a + rng.choice([1, 2, 10, 50]) :] or b"x"


def inserted(data: bytes, rng: random.Random) -> bytes:
    a = rng.randrange(len(data))
    return data[:a] + rng.choice(TOKENS) * rng.choice([1, 1, 5]) + data[a:]


def redigited(data: bytes, rng: random.Random) -> bytes:
    """Other digits keep a file well formed and make its times absurd."""
    changed = bytearray(data)
    digits = [i for i, byte in enumerate(changed) if 48 <= byte <= 57]
    for i in rng.sample(digits, min(len(digits), 8)):
        changed[i] = rng.randrange(48, 58)
    return bytes(changed)


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [flipped, truncated, repeated, removed, inserted, redigited]


def mutant(rng: random.Random) -> tuple[str, bytes]:
    if rng.random() < 0.15:
        name, data = "film.stl", STL
    else:
        name, text = rng.choice(SEEDS)
        data = text.encode(rng.choice(ENCODINGS), "replace")
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = rng.choice(MUTATIONS)(data, rng)
    return name, data


def check(path: Path, data: bytes) -> bool:
    """Read one file and check what is promised of every result; whether it could be read."""
    path.write_bytes(data)
    started = time.process_time()
    try:
        file = read_subtitles(path, SubtitleOptions(shift_ms=-1000))
    except SubtitleError as error:
        assert str(error).startswith(str(path))
        assert error.fix
        return False
    finally:
        assert time.process_time() - started < 1
    spans = [subtitle.span_ms for subtitle in file.subtitles]
    assert all(a.stop <= b.start for a, b in pairwise(spans))
    assert all(0 <= span.start < span.stop <= _MAX_TIME_MS and span.duration <= _MAX_DURATION_MS for span in spans)
    assert all(subtitle.text.strip() == subtitle.text != "" for subtitle in file.subtitles)
    assert all(warning.startswith(path.name) and warning.isprintable() for warning in file.warnings)
    return True


def run(folder: Path, seed: int, n_files: int) -> int:
    rng = random.Random(seed)
    n_read = 0
    for number in range(n_files):
        name, data = mutant(rng)
        try:
            n_read += check(folder / name, data)
        except Exception as error:
            raise AssertionError(f"file {number} of seed {seed}: {name} {data!r}") from error
    return n_read


def test_the_good_files_are_read_whole(tmp_path: Path) -> None:
    for name, text in SEEDS:
        assert check(tmp_path / name, text.encode())
    assert check(tmp_path / "film.stl", STL)


@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_damaged_files_give_cues_or_a_subtitle_error(tmp_path: Path, seed: int) -> None:
    assert run(tmp_path, seed, 1000) > 300


@pytest.mark.soak
def test_a_hundred_thousand_damaged_files_give_cues_or_a_subtitle_error(tmp_path: Path) -> None:
    assert run(tmp_path, 1_000_003, 100_000) > 30_000
