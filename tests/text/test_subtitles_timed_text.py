from __future__ import annotations

import time
from pathlib import Path

import pysubs2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.errors import SubtitleError
from signspot.text.subtitles import _Cue, _read_blocks, _read_microdvd, _read_substation, _Unreadable

SUB = Path("a.sub")
WORDS = st.lists(st.sampled_from(["the", "sign", "house", "3", "it's", "où", "好"]), min_size=1, max_size=4).map(
    " ".join
)
CUES = st.lists(
    st.tuples(st.integers(0, 99 * 3_600_000), st.integers(0, 99 * 3_600_000), WORDS), min_size=1, max_size=8
)


def stamp(ms: int, point: str = ",") -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


def srt(*cues: str) -> str:
    return "\n\n".join(f"{number}\n{cue}" for number, cue in enumerate(cues, 1)) + "\n"


@given(CUES)
def test_well_formed_srt_is_read_as_pysubs2_reads_it(cues: list[tuple[int, int, str]]) -> None:
    text = srt(*(f"{stamp(start)} --> {stamp(stop)}\n{words}" for start, stop, words in cues))
    theirs = [(event.start, event.end, event.plaintext) for event in pysubs2.SSAFile.from_string(text, "srt")]
    ours = [(c.start_ms, c.stop_ms, c.text.strip()) for c in _read_blocks(text, is_vtt=False) if isinstance(c, _Cue)]
    assert ours == theirs == cues


@given(CUES)
def test_well_formed_ass_is_read_as_pysubs2_reads_it(cues: list[tuple[int, int, str]]) -> None:
    rounded = [(start // 10 * 10 % 35_999_000, stop // 10 * 10 % 35_999_000, words) for start, stop, words in cues]
    file = pysubs2.SSAFile()
    file.events = [pysubs2.SSAEvent(start=start, end=stop, text=words) for start, stop, words in rounded]
    found = _read_substation(file.to_string("ass"))
    assert [(c.start_ms, c.stop_ms, c.text) for c in found if isinstance(c, _Cue)] == rounded


@given(
    st.lists(st.tuples(st.integers(2, 10**6), st.integers(2, 10**6), WORDS), min_size=1), st.sampled_from([24, 25, 50])
)
def test_microdvd_counts_frames(cues: list[tuple[int, int, str]], rate: int) -> None:
    text = "\n".join(f"{{{start}}}{{{stop}}}{words}" for start, stop, words in cues)
    expected = [(start * 1000 / rate, stop * 1000 / rate, words) for start, stop, words in cues]
    for found in (_read_microdvd(text, rate, SUB), _read_microdvd(f"{{1}}{{1}}{rate}.000\n{text}", None, SUB)):
        read = [(float(c.start_ms), float(c.stop_ms), c.text) for c in found if isinstance(c, _Cue)]
        assert [r[2] for r in read] == [e[2] for e in expected]
        for (start, stop, _), (right_start, right_stop, _) in zip(read, expected, strict=True):
            assert (start, stop) == pytest.approx((right_start, right_stop), abs=1e-6)


def test_microdvd_without_a_rate_is_refused() -> None:
    for text in ("{25}{50}Hello", "{1}{1}fast\n{25}{50}Hello", "{1}{1}0\n{25}{50}x", "{1}{1}nan\n{25}{50}x"):
        with pytest.raises(SubtitleError, match="does not say how many make a second"):
            list(_read_microdvd(text, None, SUB))


@pytest.mark.parametrize(
    ("line", "start", "stop"),
    [
        ("00:00:01,000 --> 00:00:02,000", 1000, 2000),
        ("00:00:01.000 --> 00:00:02.5", 1000, 2500),
        ("0:0:1,0-->0:0:2,25", 1000, 2250),
        ("00:01.000 --> 00:02.000 align:start position:0%", 1000, 2000),
        ("00:00:01,000 -> 00:00:02,000", 1000, 2000),
        ("00:00:01,000 -- > 00:00:02,000", 1000, 2000),
        ("-00:00:01,000 --> 00:00:02,000", -1000, 2000),
        ("1234:00:01,000 --> 1234:00:02,000", 4_442_401_000, 4_442_402_000),
        ("00:00:01,000  -->  00:00:02,000  X1:1 X2:2", 1000, 2000),
    ],
)
def test_time_lines_are_read_leniently_but_exactly(line: str, start: int, stop: int) -> None:
    assert list(_read_blocks(f"1\n{line}\nx", is_vtt=False)) == [_Cue(1, start, stop, "x")]


@pytest.mark.parametrize("line", ["00:00:01,000 --> ", "soon --> later", "00:75:00,000 --> 01:00:00,000", "-->"])
def test_a_damaged_time_line_does_not_leak_its_text_into_the_cue_before(line: str) -> None:
    text = srt("00:00:01,000 --> 00:00:02,000\ngood", f"{line}\nlost", "00:00:05,000 --> 00:00:06,000\nalso good")
    first, second, third = _read_blocks(text, is_vtt=False)
    assert (first.text.strip(), third.text.strip()) == ("good", "also good")
    assert isinstance(second, _Unreadable)
    assert second.text.strip() == "lost"


def test_blank_lines_in_srt_belong_to_the_cue_and_numbers_in_the_text_stay() -> None:
    text = srt("00:00:01,000 --> 00:00:02,000\nthe answer\n\n42\nis it", "00:00:03,000 --> 00:00:04,000\n7")
    assert [cue.text.split() for cue in _read_blocks(text, is_vtt=False)] == [
        ["the", "answer", "42", "is", "it"],
        ["7"],
    ]


def test_vtt_notes_styles_regions_and_names_are_no_text() -> None:
    text = (
        "WEBVTT - a film\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nREGION\nid:fred\n\nNOTE\nfirst note\n\n"
        "intro\n00:01.000 --> 00:02.000\nHello\nyou\n\nNOTE second note\n\nsecond cue\n00:03.000 --> 00:04.000\nBye\n"
    )
    assert list(_read_blocks(text, is_vtt=True)) == [_Cue(1, 1000, 2000, "Hello\nyou"), _Cue(2, 3000, 4000, "Bye")]


def test_ass_follows_its_format_line_and_leaves_out_comments_and_drawings() -> None:
    text = (
        "[Script Info]\n[V4+ Styles]\nFormat: Name, Start\n[Events]\nFormat: Start, End, Text\n"
        "Dialogue: 0:00:01.00,0:00:02.50,{\\i1}Hi, there{\\i0}\\Nyou\\hall{a remark}\n"
        "Comment: 0:00:01.00,0:00:02.50,not shown\n"
        "Dialogue: 0:00:01.00,0:00:02.50,{\\an7\\p1}m 0 0 l 9 9{\\p0}\n"
        "Dialogue: never,0:00:02.50,lost\nDialogue:\n"
    )
    assert list(_read_substation(text)) == [
        _Cue(1, 1000, 2500, "Hi, there\nyou all"),
        _Unreadable(3, "its time line cannot be read", "lost"),
        _Unreadable(4, "its time line cannot be read", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "1\n00:00:01,000 --> 00:00:02,000\n" + "\n" * 500_000 + "x",
        "1\n00:00:01,000 --> 00:00:02,000\n" + "<a" * 500_000,
        "0" * 1_000_000 + " --> ",
        "0:0:0 " + " " * 1_000_000 + "-->",
        ("00:00:01,000 --> 00:00:02,000" + " " * 1000 + "\n") * 500,
        "-" * 1_000_000,
        "9\n" * 500_000 + "00:00:01,000 --> 00:00:02,000",
    ],
)
def test_hostile_blocks_take_linear_time(text: str) -> None:
    started = time.process_time()
    list(_read_blocks(text, is_vtt=False))
    list(_read_blocks(text, is_vtt=True))
    assert time.process_time() - started < 3


@pytest.mark.parametrize("block", ["{" * 1_000_000, "{\\p" * 300_000, "{y:" * 300_000, "{1}" * 300_000, "{}" * 500_000])
def test_hostile_codes_take_linear_time(block: str) -> None:
    started = time.process_time()
    list(_read_substation(f"[Events]\nDialogue: 0,0:00:01.00,0:00:02.50,D,,0,0,0,,{block}"))
    list(_read_microdvd(f"{{1}}{{2}}{block}", 25, SUB))
    assert time.process_time() - started < 3
