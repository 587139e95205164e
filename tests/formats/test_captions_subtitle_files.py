from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import Subtitle
from signspot.domain.time import MillisSpan
from signspot.errors import FormatError, OutputExists
from signspot.formats.captions import write_subtitles
from signspot.text.subtitles import read_subtitles

TEXT = st.text(st.characters(categories=("L", "N", "P", "Zs"), include_characters="&<>"), min_size=1, max_size=40)


@given(st.lists(st.tuples(st.integers(0, 10**5), st.integers(1, 10**4), TEXT), min_size=1, max_size=6))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, cues: list[tuple[int, int, str]]
) -> None:
    path = tmp_path_factory.mktemp("vtt") / "a.vtt"
    subtitles, start = [], 0
    for number, (pause, length, text) in enumerate(cues):
        start += pause
        # Different texts: a reader joins what seems to be one cue shown for longer.
        subtitles.append(Subtitle(MillisSpan(start, start + length), f"number {number} so {text} it is"))
        start += length
    write_subtitles(reversed(subtitles), path)
    read = read_subtitles(path).subtitles
    assert [(s.span_ms, s.text.split()) for s in read] == [(s.span_ms, s.text.split()) for s in subtitles]


def test_an_existing_file_is_kept_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "a.vtt").write_text("mine")
    with pytest.raises(OutputExists):
        write_subtitles([], tmp_path / "a.vtt")
    assert (tmp_path / "a.vtt").read_text() == "mine"


def test_no_cue_begins_before_the_video(tmp_path: Path) -> None:
    write_subtitles([Subtitle(MillisSpan.of(-167, 500), "hello")], tmp_path / "a.vtt")
    assert "00:00:00.000 --> 00:00:00.500\nhello" in (tmp_path / "a.vtt").read_text()


def test_no_text_ends_its_cue_and_joined_characters_stay_joined(tmp_path: Path) -> None:
    text = "a\r\n\r\nb\0\x0b\x85c --> <i> क्\u200dष"
    write_subtitles([Subtitle(MillisSpan(0, 1), text)], tmp_path / "a.vtt")
    assert (tmp_path / "a.vtt").read_text(encoding="utf-8").endswith("\na b c --&gt; &lt;i&gt; क्\u200dष\n")
    with pytest.raises(FormatError, match="half a character"):
        write_subtitles([Subtitle(MillisSpan(0, 1), "\ud800")], tmp_path / "b.vtt")
