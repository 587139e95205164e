from __future__ import annotations

import io
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttconv.stl import reader as ttconv_reader

from signspot.text.subtitles import _Cue, _is_stl, _read_stl, _Unreadable
from tests.text.stl_writer import Block, stl


def drop_frame_count(hours: int, minutes: int, seconds: int, frames: int) -> int:
    """Real frames before a 29.97 drop-frame code, by counting: codes 0 and 1 of a minute do not exist but in tens."""
    dropped = sum(2 for minute in range(1, hours * 60 + minutes + 1) if minute % 10)
    return ((hours * 60 + minutes) * 60 + seconds) * 30 + frames - dropped


def test_times_at_25_frames_are_exact() -> None:
    (cue,) = _read_stl(stl(Block(start=(0, 1, 2, 3), stop=(0, 1, 4, 24), text=b"Hello"))).cues
    assert cue == _Cue(1, 62_120, 64_960, "Hello")


@given(st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(2, 29)))
def test_drop_frame_codes_count_real_frames(code: tuple[int, int, int, int]) -> None:
    (cue,) = _read_stl(stl(Block(start=code, stop=code, text=b"x"), rate=b"STL30.01")).cues
    assert isinstance(cue, _Cue)
    assert cue.start_ms == Fraction(drop_frame_count(*code) * 1001, 30)


@pytest.mark.parametrize(
    ("code", "ms"),
    [
        ((0, 0, 59, 29), Fraction(1799 * 1001, 30)),
        ((0, 1, 0, 2), Fraction(1800 * 1001, 30)),
        ((0, 10, 0, 0), Fraction(17_982 * 1001, 30)),
        ((1, 0, 0, 0), Fraction(107_892 * 1001, 30)),
    ],
)
def test_the_smpte_table_of_dropped_frames_holds(code: tuple[int, int, int, int], ms: Fraction) -> None:
    (cue,) = _read_stl(stl(Block(start=code, stop=code, text=b"x"), rate=b"STL30.01")).cues
    assert isinstance(cue, _Cue)
    assert cue.start_ms == ms


def test_letters_line_breaks_and_colours_are_read_as_ttconv_reads_them() -> None:
    text = b"\x07\x0b\x0bCaf\xc2e ouvert\x8a\x8a\x03Gr\xc8u\xfbe"
    data = stl(Block(start=(0, 0, 1, 0), stop=(0, 0, 2, 0), text=text))
    (cue,) = _read_stl(data).cues
    assert cue.text.split() == ["Café", "ouvert", "Grüße"]
    body = ttconv_reader.to_model(io.BytesIO(data)).get_body()
    assert body is not None
    theirs = "".join(e.get_text() for e in body.dfs_iterator() if hasattr(e, "get_text"))
    assert theirs.replace(" ", "") == "".join(cue.text.split())


@pytest.mark.parametrize(("code", "name"), [(b"01", "iso8859_5"), (b"03", "iso8859_7"), (b"04", "iso8859_8")])
def test_other_alphabets_are_read(code: bytes, name: str) -> None:
    letters = {"iso8859_5": "Привет", "iso8859_7": "Γειά", "iso8859_8": "שלום"}[name]
    data = stl(Block(start=(0, 0, 1, 0), stop=(0, 0, 2, 0), text=letters.encode(name)), alphabet=code)
    assert next(_read_stl(data).cues).text == letters


def test_a_cumulative_set_is_one_cue() -> None:
    first = Block(start=(0, 0, 1, 0), stop=(0, 0, 9, 0), text=b"one", cumulative=1)
    second = Block(start=(0, 0, 3, 0), stop=(0, 0, 9, 0), text=b"two", cumulative=2)
    last = Block(start=(0, 0, 5, 0), stop=(0, 0, 10, 0), text=b"three", cumulative=3)
    assert list(_read_stl(stl(first, second, last)).cues) == [_Cue(1, 1000, 10_000, "one\ntwo\nthree")]


def test_long_texts_join_and_comments_and_user_data_stay_out() -> None:
    times = {"start": (0, 0, 1, 0), "stop": (0, 0, 2, 0)}
    blocks = [
        Block(text=b"never shown", is_comment=True, **times),
        Block(text=b"user data", extension=0xFE, **times),
        Block(text=b"a" * 112, extension=0, **times),
        Block(text=b" b", **times),
    ]
    assert [cue.text for cue in _read_stl(stl(*blocks)).cues] == ["a" * 112 + " b"]


def test_an_impossible_time_code_costs_one_cue() -> None:
    bad = Block(start=(0, 0, 1, 25), stop=(0, 0, 2, 0), text=b"bad")
    good = Block(start=(0, 0, 3, 0), stop=(0, 0, 4, 0), text=b"good")
    assert list(_read_stl(stl(bad, good)).cues) == [
        _Unreadable(1, "its time code is impossible", "bad"),
        _Cue(2, 3000, 4000, "good"),
    ]


def test_the_header_tells_the_start_of_the_programme() -> None:
    assert _read_stl(stl(first=b"10000000")).start_of_programme_ms == 36_000_000
    assert _read_stl(stl(first=b"1000xx00")).start_of_programme_ms == 0


def test_an_unknown_rate_and_a_cut_off_block_are_remarked() -> None:
    source = _read_stl(stl(Block(start=(0, 0, 1, 0), stop=(0, 0, 2, 0), text=b"x"), rate=b"STL99.01")[:-5])
    assert "STL99.01 is unknown" in source.remarks[0]
    assert "cut off" in source.remarks[1]
    assert not list(source.cues)


def test_other_files_are_no_stl() -> None:
    assert not _is_stl(b"1\n00:00:01,000 --> 00:00:02,000\nSTL\n" * 99)
