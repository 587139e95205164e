from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.errors import InputError, SubtitleError
from signspot.text.subtitles import _MAX_CUES, SubtitleFile, SubtitleOptions, read_subtitles
from tests.text.stl_writer import Block, stl
from tests.text.test_subtitles_timed_text import srt, stamp
from tests.text.test_subtitles_ttml import ttml

TEMPORARY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def read(folder: Path, data: str | bytes, name: str = "film.srt", **options: object) -> SubtitleFile:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_subtitles(path, SubtitleOptions(**options))  # type: ignore[arg-type]


def spans(file: SubtitleFile) -> list[tuple[int, int, str]]:
    return [(one.span_ms.start, one.span_ms.stop, one.text) for one in file.subtitles]


def cue(start: int, stop: int, text: str) -> str:
    return f"{stamp(start)} --> {stamp(stop)}\n{text}"


GOOD = [(1000, 2000, "one"), (3000, 4000, "two")]
AS_SRT = srt(*(cue(*good) for good in GOOD))
AS_VTT = "WEBVTT\n\n" + AS_SRT.replace(",", ".")
AS_ASS = "[Script Info]\n\n[Events]\n" + "".join(
    f"Dialogue: 0,0:00:0{start // 1000}.00,0:00:0{stop // 1000}.00,,,0,0,0,,{text}\n" for start, stop, text in GOOD
)
AS_SUB = "{1}{1}25\n" + "".join(f"{{{start // 40}}}{{{stop // 40}}}{text}\n" for start, stop, text in GOOD)
AS_TTML = ttml("<div>" + "".join(f'<p begin="{a}ms" end="{b}ms">{t}</p>' for a, b, t in GOOD) + "</div>")
AS_STL = stl(*(Block(start=(0, 0, a // 1000, 0), stop=(0, 0, b // 1000, 0), text=t.encode()) for a, b, t in GOOD))


@pytest.mark.parametrize("name", ["film.srt", "film.vtt", "film.ass", "film.sub", "film.ttml", "film.stl", "film.txt"])
@pytest.mark.parametrize("data", [AS_SRT, AS_VTT, AS_ASS, AS_SUB, AS_TTML, AS_STL], ids=range(6))
def test_the_content_decides_the_format_whatever_the_name(tmp_path: Path, data: str | bytes, name: str) -> None:
    file = read(tmp_path, data, name)
    assert spans(file) == GOOD
    assert file.warnings == ()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-8-sig"])
@pytest.mark.parametrize("data", [AS_SRT, AS_VTT, AS_ASS, AS_SUB, AS_TTML.decode()], ids=range(5))
def test_every_text_format_is_read_in_every_unicode_encoding(tmp_path: Path, data: str, encoding: str) -> None:
    if data.startswith("<tt") and encoding == "utf-16-le":
        data = "\ufeff" + data  # XML in UTF-16 must have a mark
    assert spans(read(tmp_path, data.encode(encoding), "film")) == GOOD


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n"])
def test_every_kind_of_line_end_is_read(tmp_path: Path, newline: str) -> None:
    assert spans(read(tmp_path, AS_SRT.replace("\n", newline))) == GOOD


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (cue(2000, 1000, "bad one"), r'cue 2 \(0:00:02\): ends before it starts: left out: "bad one"'),
        (cue(62_000, 62_000, "bad one"), r"cue 2 \(0:01:02\): has no length: left out"),
        ("-" + cue(2000, 3000, "bad one"), r"cue 2 \(-0:00:02\): its time is negative: left out"),
        (cue(5000, 606_000, "bad one"), r"cue 2 \(0:00:05\): lasts longer than 10 minutes: left out"),
        (cue(361_000_000, 361_001_000, "bad one"), r"cue 2 \(100:16:40\): lies beyond 100 hours: left out"),
        ("00:00:xx --> 1\nbad one", r"cue 2: its time line cannot be read: left out"),
        (cue(1000, 2000, "much " * 2001), r"cue 2 \(0:00:01\): holds more than 10,000 characters: left out"),
        (cue(1000, 2000, "one"), r"cue 2 \(0:00:01\): repeats cue 1: left out"),
        (cue(1200, 1900, "bad one"), r"cue 2 \(0:00:01\): overlaps cue 1: left out"),
    ],
)
def test_a_bad_cue_is_left_out_and_named(tmp_path: Path, bad: str, words: str) -> None:
    file = read(tmp_path, srt(cue(1000, 2000, "one"), bad, cue(3000, 4000, "two")))
    assert spans(file) == GOOD
    assert len(file.warnings) == 1
    with pytest.raises(InputError, match=rf"^film\.srt: {words}"):
        raise InputError("", file.warnings[0])


def test_cues_shown_together_are_joined_and_staggered_ones_are_cut_back(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        srt(cue(0, 2000, "top"), cue(0, 2000, "bottom"), cue(5000, 8500, "hello"), cue(6500, 10_000, "world")),
    )
    assert spans(file) == [(0, 2000, "top bottom"), (5000, 6500, "hello"), (6500, 10_000, "world")]
    assert file.warnings == (
        "film.srt: 1 cues overlap the next one: their ends were cut back (first: cue 3 (0:00:05))",
    )


@pytest.mark.parametrize(("late", "kept"), [(1200, ["hello", "world"]), (600, ["hello"])])
def test_staggered_cues_are_both_kept_up_to_four_fifths_of_overlap(tmp_path: Path, late: int, kept: list[str]) -> None:
    file = read(tmp_path, srt(cue(0, 4000, "hello"), cue(late, late + 4000, "world")))
    assert [one.text for one in file.subtitles] == kept


def test_a_cue_of_nine_minutes_is_kept(tmp_path: Path) -> None:
    assert spans(read(tmp_path, srt(cue(0, 540_000, "Good night.")))) == [(0, 540_000, "Good night.")]


def test_a_short_cue_at_the_start_of_a_long_one_is_the_one_left_out(tmp_path: Path) -> None:
    file = read(tmp_path, srt(cue(0, 1000, "short"), cue(0, 9000, "long")))
    assert spans(file) == [(0, 9000, "long")]
    assert "cue 1 (0:00:00): overlaps cue 2: left out" in file.warnings[0]


def test_roll_up_captions_say_every_line_once(tmp_path: Path) -> None:
    vtt = (
        "WEBVTT\n\n00:00:00.320 --> 00:00:02.230 align:start\n \nhello<00:00:00.640><c> world</c>\n\n"
        "00:00:02.230 --> 00:00:02.240 align:start\nhello world\n \n\n"
        "00:00:02.240 --> 00:00:04.300\nhello world\nhow<00:00:03.000><c> are you</c>\n\n"
        "00:00:04.300 --> 00:00:04.310\nhow are you\n \n"
    )
    file = read(tmp_path, vtt, "auto.vtt")
    assert spans(file) == [(320, 2240, "hello world"), (2240, 4310, "how are you")]
    assert file.warnings == ("auto.vtt: 3 cues repeat lines of the cue before (roll-up captions): repeats removed",)


def in_turn(texts: Sequence[str], start: int = 0, gap: int = 0, length: int = 400) -> list[str]:
    return [cue(start + i * (length + gap), start + i * (length + gap) + length, text) for i, text in enumerate(texts)]


def rolled(lines: Sequence[str], height: int) -> list[str]:
    """As live captions show them: every new line at the bottom, `height` lines at once."""
    return ["\n".join(lines[max(0, i - height + 1) : i + 1]) for i in range(len(lines))]


def automatic(lines: Sequence[str], start: int = 0) -> list[str]:
    """As YouTube writes what it hears: a new line below the old one, then a moment of the new one alone."""
    cues = []
    for i, line in enumerate(lines):
        begin = start + 2000 * i
        cues.append(cue(begin, begin + 1990, f"{lines[i - 1] if i else ' '}\n{line}"))
        cues.append(cue(begin + 1990, begin + 2000, f"{line}\n "))
    return cues


GLOSSES = ["HOUSE", "HOUSE", "BIG", "IX-1", "IX-1", "IX-1", "GO", "TREE", "TREE", "HOUSE"] * 3
TALK = [f"line {i} of what is said" for i in range(30)]


@pytest.mark.parametrize("gap", [0, 1, 40, 100])
def test_a_sign_that_is_repeated_is_kept_in_a_file_of_glosses(tmp_path: Path, gap: int) -> None:
    file = read(tmp_path, srt(*in_turn(GLOSSES, gap=gap)))
    assert [one.text for one in file.subtitles] == GLOSSES
    assert file.warnings == ()


@TEMPORARY
@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([0, 1, 40, 100, 500]), st.integers(1, 2000))).filter(len)
)
def test_cues_of_one_line_stay_as_they_are(tmp_path: Path, glosses: list[tuple[str, int, int]]) -> None:
    expected, time = [], 0
    for gloss, gap, length in glosses:
        expected.append((time + gap, time + gap + length, gloss))
        time += gap + length
    file = read(tmp_path, srt(*(cue(*one) for one in expected)))
    assert (spans(file), file.warnings) == (expected, ())


LINES = st.lists(st.sampled_from(["oh no", "a b", "well then", "c"]), min_size=2, max_size=30)


@TEMPORARY
@given(LINES, st.integers(2, 4))
def test_what_rolls_up_is_said_once_and_what_is_said_twice_is_kept(
    tmp_path: Path, lines: list[str], height: int
) -> None:
    numbered = [f"{line} {i}" for i, line in enumerate(lines)]
    for cues in (in_turn(rolled(numbered, height)), automatic(numbered)):
        assert [one.text for one in read(tmp_path, srt(*cues)).subtitles] == numbered
    # Twice in a row, not more: a screen full of the same line cannot be told from a cue that stays.
    twice = [line for line in numbered for _ in range(2)]
    assert [one.text for one in read(tmp_path, srt(*in_turn(rolled(["start", *twice, "end"], 2)))).subtitles] == [
        "start",
        *twice,
        "end",
    ]


def test_captions_that_roll_up_and_glosses_in_one_file_are_told_apart(tmp_path: Path) -> None:
    late = 100_000
    captions = [in_turn(rolled(TALK, 2)), in_turn(rolled(TALK, 3)), automatic(TALK)]
    for talk in captions:
        file = read(tmp_path, srt(*talk, *in_turn(GLOSSES, start=late, gap=40)))
        assert [one.text for one in file.subtitles] == [*TALK, *GLOSSES]
        assert "(roll-up captions): repeats removed" in file.warnings[0]
    first = [*in_turn(GLOSSES, gap=40), *automatic(TALK, start=late)]
    assert [one.text for one in read(tmp_path, srt(*first)).subtitles] == [*GLOSSES, *TALK]


@pytest.mark.parametrize("n_lines", [4, 5])
def test_a_few_lines_that_roll_up_among_many_that_do_not_are_cleaned(tmp_path: Path, n_lines: int) -> None:
    before, after = [f"before {i}" for i in range(40)], [f"after {i}" for i in range(40)]
    file = read(tmp_path, srt(*in_turn([*before, *rolled(TALK[:n_lines], 2), *after])))
    assert [one.text for one in file.subtitles] == [*before, *TALK[:n_lines], *after]
    assert file.warnings == (
        f"film.srt: {n_lines - 1} cues repeat lines of the cue before (roll-up captions): repeats removed",
    )


def test_captions_roll_up_across_a_gap_of_two_frames(tmp_path: Path) -> None:
    file = read(tmp_path, srt(*in_turn(rolled(TALK, 2), gap=80)))
    assert [one.text for one in file.subtitles] == TALK


def test_a_single_line_that_rolls_up_among_captions_that_do_is_cleaned(tmp_path: Path) -> None:
    middle = ["Thank you.", "And now sport.", "And now sport.\nThe cup.", "Goodbye.", "Later tonight."]
    file = read(tmp_path, srt(*in_turn([*rolled(TALK[:12], 2), *middle, *rolled(TALK[12:24], 2)])))
    said = ["Thank you.", "And now sport.", "The cup.", "Goodbye.", "Later tonight."]
    assert [one.text for one in file.subtitles] == [*TALK[:12], *said, *TALK[12:24]]


def test_a_line_that_stays_for_very_long_is_shown_for_ten_minutes(tmp_path: Path) -> None:
    stays = in_turn([TALK[5]] * 4, start=10_000, length=300_000)
    last = read(tmp_path, srt(*in_turn(rolled(TALK[:6], 2), start=7600), *stays)).subtitles[-1]
    assert (last.text, last.span_ms.duration) == (TALK[5], 600_000)


def test_an_answer_that_repeats_a_line_does_not_make_captions_roll_up(tmp_path: Path) -> None:
    said = [*TALK[:10], "Stop!\nNo!", "No!\nI won't.", *TALK[10:20], "HOUSE", "HOUSE\nHOUSE", *TALK[20:]]
    file = read(tmp_path, srt(*in_turn(said)))
    assert [one.text for one in file.subtitles] == [text.replace("\n", " ") for text in said]
    assert file.warnings == ()


def test_the_last_words_of_automatic_captions_after_a_pause_are_said_once(tmp_path: Path) -> None:
    file = read(tmp_path, srt(*automatic(TALK), *automatic(["good bye"], start=200_000)))
    assert [one.text for one in file.subtitles] == [*TALK, "good bye"]


def test_the_same_words_after_a_pause_are_said_twice(tmp_path: Path) -> None:
    assert len(read(tmp_path, srt(cue(0, 1000, "No."), cue(1500, 2000, "No."))).subtitles) == 2


def test_many_warnings_become_a_number(tmp_path: Path) -> None:
    file = read(tmp_path, srt(*(cue(2000, 1000, f"bad {i}") for i in range(150))))
    assert len(file.warnings) == 102
    left_out = "150 of 150 subtitles were left out: they end before they start (first: cue 1 (0:00:02))"
    assert file.warnings[0] == f"film.srt: {left_out}"
    assert file.warnings[-1] == "film.srt: and 50 more warnings of this kind"
    assert (file.in_short[0], len(file.in_short)) == (file.warnings[0], 5)
    assert file.in_short[-1] == "film.srt: and 147 more warnings of this kind"


BAD_BLOCK = Block(start=(0, 0, 99, 0), stop=(0, 1, 0, 0), text=b"bad")


@pytest.mark.parametrize(
    ("data", "name", "why"),
    [
        (AS_SRT + "\n3\n00:xx --> 1\nbad\n\n4\n00:00:77,000 --> 00:01:00,000\nbad\n", "film.srt", "cannot be read"),
        (AS_VTT + "\nxx --> 00:04\nbad\n\n00:00:77.0 --> 00:01:00.0\nbad\n", "film.vtt", "cannot be read"),
        (AS_ASS + "Dialogue: 0,0:xx,0:00:09.00,,,0,0,0,,bad\n" * 2, "film.ass", "cannot be read"),
        (AS_SUB + "{99}{}bad\n" * 2, "film.sub", "cannot be read"),
        (AS_TTML.replace(b"</div>", b'<p begin="soon" end="9s">b</p><p begin="8s">b</p></div>'), "a.ttml", "be read"),
        (AS_TTML.replace(b"</div>", b'<p begin="9s" end="8s">b</p>' * 2 + b"</div>"), "a.ttml", "they end before"),
        (AS_STL + stl(BAD_BLOCK, BAD_BLOCK)[1024:], "film.stl", "cannot be read"),
        (AS_STL + stl(BAD_BLOCK, replace(BAD_BLOCK, extension=0))[1024:], "film.stl", "cannot be read"),
    ],
    ids=range(8),
)
def test_what_is_left_out_is_counted_in_every_format(tmp_path: Path, data: str | bytes, name: str, why: str) -> None:
    file = read(tmp_path, data, name)
    assert spans(file) == GOOD
    assert file.warnings[0].startswith(f"{name}: 2 of 4 subtitles were left out: the")
    assert why in file.warnings[0] and "(first: cue 3" in file.warnings[0]
    assert file.in_short == file.warnings
    assert len(file.warnings) == 3  # and both are named


def test_reasons_for_leaving_cues_out_are_counted_apart(tmp_path: Path) -> None:
    bad = [cue(9000, 8000, "bad"), "00:00:xx --> 1\nbad", cue(7000, 6000, "bad"), cue(3000, 4000, "[MUSIC]")]
    file = read(tmp_path, srt(*bad, *(cue(*good) for good in GOOD), cue(6000, 7000, "")))
    assert spans(file) == GOOD
    assert file.warnings[:2] == (
        "film.srt: 3 of 7 subtitles were left out: they end before they start (2, first: cue 1 (0:00:09)), "
        "their times cannot be read (1, first: cue 2)",
        "film.srt: 2 of 7 subtitles hold no words: left out (first: cue 4 (0:00:03))",
    )


def test_warnings_show_control_characters_instead_of_sending_them(tmp_path: Path) -> None:
    file = read(tmp_path, srt(cue(2000, 1000, "\x1b[31mred\u202e"), cue(3000, 4000, "ok")), "a\x1b.srt")
    assert all(warning.isprintable() for warning in file.warnings)


LISTS = st.lists(
    st.tuples(st.integers(0, 60_000), st.integers(-2000, 20_000), st.integers(0, 9)), min_size=1, max_size=25
)


@TEMPORARY
@given(LISTS)
def test_whatever_the_cues_the_result_is_in_order_and_no_word_vanishes_unsaid(
    tmp_path: Path, cues: list[tuple[int, int, int]]
) -> None:
    written = srt(
        *(cue(start, max(0, start + length), f"w{i} t{text}") for i, (start, length, text) in enumerate(cues))
    )
    file = read(tmp_path, written)
    found = [one.span_ms for one in file.subtitles]
    assert found == sorted(found)
    assert all(span.start < span.stop for span in found)
    assert all(a.stop <= b.start for a, b in pairwise(found))
    said = " ".join(one.text for one in file.subtitles).split() + " ".join(file.warnings).replace('"', " ").split()
    assert all(f"w{i}" in said for i in range(len(cues)))


@TEMPORARY
@given(
    st.lists(st.integers(0, 10**7), min_size=2, max_size=20, unique=True).map(sorted),
    st.integers(-5000, 5000),
    st.sampled_from([1.0, 1.001, 0.999, 25 / 24, 0.96, 1.5]),
    st.integers(0, 3000),
)
def test_times_are_shifted_and_scaled_exactly(
    tmp_path: Path, times: list[int], shift: int, scale: float, start: int
) -> None:
    pairs = [(a, b) for a, b in zip(times[::2], times[1::2], strict=False) if b - a < 100_000]
    expected = {}
    for i, pair in enumerate(pairs):
        moved = tuple(round((time - start) * Fraction(str(scale)) + shift) for time in pair)
        if moved[1] > max(0, moved[0]):
            expected[f"w{i}"] = (max(0, moved[0]), moved[1])
    options = {"shift_ms": shift, "scale": scale, "start_of_programme_ms": start}
    file = read(tmp_path, srt(*(cue(a, b, f"w{i}") for i, (a, b) in enumerate(pairs)), cue(0, 0, "x")), **options)
    assert {text: (begin, end) for begin, end, text in spans(file)} == expected


def test_a_broadcast_file_counts_from_the_start_its_header_states(tmp_path: Path) -> None:
    block = Block(start=(10, 0, 1, 0), stop=(10, 0, 2, 0), text=b"one")
    file = read(tmp_path, stl(block, first=b"10000000"), "film.stl")
    assert spans(file) == [(1000, 2000, "one")]
    assert file.warnings == ("film.stl: its header says that the programme starts at 10:00:00: times count from there",)
    at_once = Block(start=(10, 0, 0, 0), stop=(10, 0, 2, 0), text=b"one")
    assert spans(read(tmp_path, stl(at_once, first=b"10000000"), "film.stl")) == [(0, 2000, "one")]
    untouched = read(tmp_path, stl(block, first=b"10000000"), "film.stl", start_of_programme_ms=0)
    assert spans(untouched) == [(36_001_000, 36_002_000, "one")]


def test_a_header_of_another_version_is_ignored_and_a_late_start_is_remarked(tmp_path: Path) -> None:
    early = stl(Block(start=(0, 0, 1, 0), stop=(0, 0, 2, 0), text=b"one"), first=b"10000000")
    assert spans(read(tmp_path, early, "film.stl")) == [(1000, 2000, "one")]
    late = read(tmp_path, srt(cue(36_001_000, 36_002_000, "one")))
    assert late.warnings == (
        "film.srt: its first cue is at 10:00:01: if that is a time code, move them with --shift (-36000 for ten hours)",
    )
    (said,) = read(tmp_path, srt(cue(3_600_000, 3_602_000, "one"))).warnings  # an hour: where many programmes start
    assert "its first cue is at 1:00:00: if that is a time code" in said
    moved = read(tmp_path, srt(cue(36_001_000, 36_002_000, "one")), start_of_programme_ms=36_000_000)
    assert (spans(moved), moved.warnings) == ([(1000, 2000, "one")], ())


def test_a_cue_moved_across_the_start_begins_with_the_video(tmp_path: Path) -> None:
    file = read(tmp_path, srt(cue(0, 1000, "gone"), cue(1000, 2000, "half")), shift_ms=-1500)
    assert spans(file) == [(0, 500, "half")]
    assert [warning.split(": ")[2] for warning in file.warnings] == [
        "lies before the start of the video",
        "begins before the video",
    ]


def test_frames_without_a_rate_ask_for_it(tmp_path: Path) -> None:
    with pytest.raises(SubtitleError, match=r"film\.sub: counts in frames .*give the frame rate of its video"):
        read(tmp_path, "{25}{50}one", "film.sub")
    assert spans(read(tmp_path, "{25}{50}one", "film.sub", frames_per_second=25)) == [(1000, 2000, "one")]


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (b"", "film.srt", "is empty"),
        (b" \n\n", "film.srt", "is empty"),
        (b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 40, "film.srt", "is a binary file"),
        (b"hello", "film.srt", "holds no cues"),
        (b"WEBVTT\n\n", "film.vtt", "holds no cues"),
        (b"[Script Info]\n", "film.ass", "holds no cues"),
        (AS_STL[:1024], "film.stl", "holds no cues"),
        (ttml(""), "film.ttml", "holds no cues"),
        (b"hello", "film.doc", r"not in a subtitle format known here: SRT, WebVTT, .* are read"),
        (b"hello", "film.ttml", "is not an XML file"),
        (b"<?xml version='1.0'?><html/>", "film.xml", "not TTML: its first element is <html>"),
        (b"<!DOCTYPE tt [<!ENTITY a 'b'>]><tt>&a;</tt>", "film.ttml", "holds a DTD"),
        (AS_SRT.encode() + b" " * 20_000_000, "film.srt", "larger than 20 MB"),
    ],
    ids=range(13),
)
def test_each_useless_file_has_its_own_message(tmp_path: Path, data: bytes, name: str, words: str) -> None:
    with pytest.raises(SubtitleError, match=rf"{name}: .*{words}"):
        read(tmp_path, data, name)


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.srt")
    for name, words in (("missing.srt", "does not exist"), (".", "is a folder"), ("pipe.srt", "not a regular file")):
        with pytest.raises(SubtitleError, match=words):
            read_subtitles(tmp_path / name)
    for odd in (Path("a\0b.srt"), tmp_path / ("x" * 5000)):
        with pytest.raises(SubtitleError, match=r"cannot be read"):
            read_subtitles(odd)


def test_too_many_cues_are_refused(tmp_path: Path) -> None:
    line = "00:00:01,000 --> 00:00:02,000\n"
    with pytest.raises(SubtitleError, match="more than 200,000 cues"):
        read(tmp_path, line * (_MAX_CUES + 1))


@pytest.mark.parametrize(
    "options",
    [{"scale": 0.0}, {"scale": float("nan")}, {"frames_per_second": 0.0}, {"encoding": "rot13"}, {"encoding": "x"}],
)
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"subtitle (scale|frame rate|encoding)"):
        SubtitleOptions(**options)  # type: ignore[arg-type]


def test_the_file_is_never_changed(tmp_path: Path) -> None:
    read(tmp_path, AS_SRT)
    assert (tmp_path / "film.srt").read_text() == AS_SRT


def test_a_large_honest_file_is_read_in_seconds(tmp_path: Path) -> None:
    text = srt(*(cue(i * 1500, i * 1500 + 1000, f"<i>JOHN: line {i}</i>\nand more") for i in range(20_000)))
    started = time.process_time()
    assert len(read(tmp_path, text).subtitles) == 20_000
    assert time.process_time() - started < 5
