from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path

import pysubs2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.domain.results import Spotting
from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError, OutputExists
from signspot.formats.captions import write_captions
from tests.formats.spottings import plain, spottings

with_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
CUE = re.compile(r"(\d{2,}):(\d\d):(\d\d)[.,](\d\d\d) --> (\d{2,}):(\d\d):(\d\d)[.,](\d\d\d)")


def test_webvtt_is_written_as_the_standard_shows_it(tmp_path: Path) -> None:
    write_captions([plain(1), plain(0)], tmp_path / "a.vtt")
    assert (tmp_path / "a.vtt").read_text() == (
        f"WEBVTT\n\n{plain(0).spotting_id}\n00:00:00.040 --> 00:00:00.680\napple (0.50)\n"
        f"\n{plain(1).spotting_id}\n00:00:01.040 --> 00:00:01.680\napple (0.55)\n"
    )


def test_subrip_is_numbered_and_has_commas(tmp_path: Path) -> None:
    write_captions([plain(1), plain(0)], tmp_path / "a.srt")
    assert (tmp_path / "a.srt").read_text() == (
        "1\n00:00:00,040 --> 00:00:00,680\napple (0.50)\n\n2\n00:00:01,040 --> 00:00:01,680\napple (0.55)\n"
    )


@pytest.mark.parametrize("suffix", [".vtt", ".srt"])
@with_folder
@given(found=st.lists(spottings(st.just("news")), max_size=5))
def test_every_spotting_is_one_cue_whatever_its_word(found: list[Spotting], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_captions(found, path, overwrite=True)
    blocks = path.read_bytes().decode().removeprefix("WEBVTT\n\n").rstrip("\n")
    cues = [block.split("\n") for block in blocks.split("\n\n")] if found else []
    assert [len(cue) for cue in cues] == [3] * len(found)
    times = []
    for (_, line, text), spotting in zip(
        cues, sorted(found, key=lambda s: (s.span_ms, s.word, s.entry_id)), strict=True
    ):
        match = CUE.fullmatch(line)
        assert match is not None
        h, m, s, ms, *stop = map(int, match.groups())
        times.append(((h * 60 + m) * 60 + s) * 1000 + ms)
        assert times[-1] == spotting.span_ms.start
        assert ((stop[0] * 60 + stop[1]) * 60 + stop[2]) * 1000 + stop[3] == max(times[-1] + 1, spotting.span_ms.stop)
        assert "-->" not in text and "<" not in text
        shown = re.sub(r"[\s\x00-\x1f\x7f]+", "", spotting.word)
        assert re.sub(r"\s", "", html.unescape(text)) == f"{shown}({spotting.cosine:.2f})"
    assert times == sorted(times)


@pytest.mark.parametrize("suffix", [".vtt", ".srt"])
def test_a_subtitle_library_reads_the_same_times(suffix: str, tmp_path: Path) -> None:
    found = [plain(n) for n in range(0, 9000, 700)]
    write_captions(found, tmp_path / f"a{suffix}")
    events = pysubs2.load(str(tmp_path / f"a{suffix}"), encoding="utf-8")
    assert [(e.start, e.end) for e in events] == [(s.span_ms.start, s.span_ms.stop) for s in found]


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"use one of \.vtt, \.srt"):
        write_captions([], tmp_path / "a.ass")
    with pytest.raises(FormatError, match="spottings of 2 videos"):
        write_captions([plain(video_id="a"), plain(video_id="b")], tmp_path / "a.vtt")
    with pytest.raises(FormatError, match="half a character"):
        write_captions([dataclasses.replace(plain(), word=Word("\ud800"))], tmp_path / "a.vtt")
    write_captions([], tmp_path / "a.vtt")
    with pytest.raises(OutputExists, match="exists already"):
        write_captions([], tmp_path / "a.vtt")


def test_a_spotting_without_duration_is_shown_for_a_millisecond(tmp_path: Path) -> None:
    moment = dataclasses.replace(plain(), span_ms=MillisSpan(Millis(500), Millis(500)))
    write_captions([moment], tmp_path / "a.vtt")
    assert "00:00:00.500 --> 00:00:00.501" in (tmp_path / "a.vtt").read_text()
