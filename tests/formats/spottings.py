"""Spottings for the tests of the formats: plain ones, and strange ones by hypothesis."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from signspot.domain.recordings import Subtitle, Word
from signspot.domain.results import Presence, Provenance, Spotting
from signspot.domain.time import Millis, MillisSpan

ODD_TEXTS = (
    "",
    " ",
    "'",
    "''=1",
    "=1+1",
    "+44",
    "-5",
    "@SUM(A1)",
    "\t=x",
    "\r",
    "\n\n-->",
    "a\0b",
    'say "hi", <b>&amp;',
    "a --> b",
    "l1\r\nl2\u2028l3\x85l4",
    "café cafe\u0301",
    "\ue000\ue0e2\ue001",  # HamNoSys: private use
    "𝠀𝠁\U0001d800",  # SignWriting: beyond the basic plane
    "\u202egnp.exe\u202c",
    "👩‍👧",
    "\ufeffbom",
    "nan",
    "null",
    "x" * 10_000,
)

texts = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text("'=+-@\t\r\n,\";＝a", max_size=6),
)


def _spans(least: int) -> st.SearchStrategy[MillisSpan]:
    times = st.integers(least, 2**40)
    return st.tuples(times, times).map(lambda pair: MillisSpan(Millis(min(pair)), Millis(max(pair))))


def spottings(video_ids: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Spotting]:
    """Any spotting that may be written."""
    return st.builds(
        Spotting,
        video_id=video_ids,
        span_ms=_spans(0),
        frame=st.integers(0, 2**40),
        word=texts.map(Word),
        entry_id=texts,
        variant=texts,
        type_id=texts,
        cosine=st.floats(-1, 1),
        presence=st.none() | st.builds(Presence, st.floats(0, 1), texts),
        provenance=st.builds(
            Provenance,
            media_sha256=texts,
            model=texts,
            fingerprint=texts,
            dictionary=texts,
            source=texts,
            subtitle=st.none() | st.builds(Subtitle, _spans(-(2**30)), texts),
        ),
    )


def plain(number: int = 0, *, video_id: str = "news", word: str = "apple") -> Spotting:
    """A spotting as a video gives it."""
    return Spotting(
        video_id=video_id,
        span_ms=MillisSpan(Millis(number * 1000 + 40), Millis(number * 1000 + 680)),
        frame=number * 25 + 9,
        word=Word(word),
        entry_id=f"{word}/{number % 3}.mp4",
        cosine=0.5 + (number % 7) / 20,
        presence=Presence(0.9, "c1") if number % 2 else None,
        provenance=Provenance(
            media_sha256="ab" * 32,
            model="landmark-v1",
            fingerprint="f" * 16,
            dictionary="bsl",
            subtitle=Subtitle(MillisSpan(Millis(0), Millis(3000)), f"An {word} a day") if number % 3 else None,
        ),
    )


def mutants(original: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Damaged copies of a file: bytes changed, cut out, doubled, put in, and the end missing."""
    rng = random.Random(seed)
    strange = (
        b"\0",
        b"\xff",
        b'"',
        b"[" * 300,
        b"NaN",
        b"-",
        b"9" * 40,
        b"\xed\xa0\x80",
        b"\\ud800",
        b"1e999",
        b",",
        b"\n",
    )
    for _ in range(count):
        content = bytearray(original)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(content) + 1)
            match rng.randrange(5):
                case 0 if at < len(content):
                    content[at] = rng.randrange(256)
                case 1:
                    del content[at : at + rng.randint(1, 30)]
                case 2:
                    content[at:at] = content[at : at + rng.randint(1, 60)]
                case 3:
                    content[at:at] = rng.choice(strange)
                case _:
                    del content[max(at, 1) :]
        yield bytes(content)


def write_mutant(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
