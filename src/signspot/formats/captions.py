"""Captions to watch over the video, WebVTT and SubRip: one cue per spotting, or the subtitles themselves.

Cues are sorted by time and may overlap. `&`, `<` and `>` are written as entities, which every WebVTT player and most
SubRip players show as they were; line breaks become spaces, so that no text ends its cue.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.recordings import Subtitle
from signspot.domain.results import Spotting
from signspot.domain.time import MillisSpan
from signspot.errors import FormatError
from signspot.files.atomic import atomic_output

_SUFFIXES = (".vtt", ".srt")


@dataclass(frozen=True, slots=True)
class _Cue:
    span_ms: MillisSpan
    text: str
    name: str = ""


def write_captions(spottings: Iterable[Spotting], path: Path, *, overwrite: bool = False) -> None:
    """Write the spottings of one video (or a VideoAnswer) as .vtt or .srt, each with its word and cosine."""
    found = sorted(spottings, key=lambda s: (s.span_ms, s.word, s.entry_id))
    if len(videos := {spotting.video_id for spotting in found}) > 1:
        what, fix = f"spottings of {len(videos)} videos", "captions belong to one video: write one file each"
        raise FormatError(path, what, fix)
    cues = [_Cue(one.span_ms, f"{one.word} ({one.cosine:.2f})", one.spotting_id) for one in found]
    _write(cues, path, overwrite=overwrite)


def write_subtitles(subtitles: Iterable[Subtitle], path: Path, *, overwrite: bool = False) -> None:
    """Write cues in the order of time; a cue ends where the next begins only if it says so itself."""
    cues = [_Cue(one.span_ms, one.text) for one in subtitles]
    _write(sorted(cues, key=lambda cue: cue.span_ms), path, overwrite=overwrite)


def _write(cues: Sequence[_Cue], path: Path, *, overwrite: bool) -> None:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise FormatError(path, f"no caption format ends in {path.suffix!r}", f"use one of {', '.join(_SUFFIXES)}")
    blocks = (f"{cue.span_ms.cue_times()}\n{_plain(cue.text)}" for cue in cues)
    if suffix == ".vtt":
        named = (f"{cue.name}\n{block}" if cue.name else block for cue, block in zip(cues, blocks, strict=True))
        text = "\n\n".join(("WEBVTT", *named)) + "\n"
    else:
        times = (cue.span_ms.cue_times().replace(".", ",") for cue in cues)
        shown = enumerate(zip(times, cues, strict=True), start=1)
        text = "\n".join(f"{number}\n{time}\n{_plain(cue.text)}\n" for number, (time, cue) in shown)
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(path, "a text holds half a character (a lone surrogate)", "correct the text") from error
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _plain(text: str) -> str:
    # A control character may end a line, or the whole file, in one player or another.
    printed = "".join(c if c >= " " and c != "\x7f" else " " for c in text)
    return html.escape(" ".join(printed.split()), quote=False)
