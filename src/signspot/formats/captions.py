"""Spottings as captions to watch over the video: WebVTT and SubRip, one cue per spotting.

Cues are sorted by time and may overlap. `&`, `<` and `>` are written as entities, which every WebVTT player and most
SubRip players show as they were; line breaks become spaces, so that no text ends its cue.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

from signspot.domain.recordings import Subtitle
from signspot.domain.results import Spotting
from signspot.errors import FormatError
from signspot.files.atomic import atomic_output
from signspot.stores.spottings import cue_times

_SUFFIXES = (".vtt", ".srt")


def write_captions(spottings: Iterable[Spotting], path: Path, *, overwrite: bool = False) -> None:
    """Write the spottings of one video (or a VideoAnswer) as .vtt or .srt, each with its word and cosine."""
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise FormatError(path, f"no caption format ends in {path.suffix!r}", f"use one of {', '.join(_SUFFIXES)}")
    cues = sorted(spottings, key=lambda s: (s.span_ms, s.word, s.entry_id))
    if len(videos := {spotting.video_id for spotting in cues}) > 1:
        raise FormatError(
            path, f"spottings of {len(videos)} videos", "captions belong to one video: write one file each"
        )
    try:
        text = (_vtt(cues) if suffix == ".vtt" else _srt(cues)).encode()
    except UnicodeEncodeError as error:
        raise FormatError(path, "a word holds half a character (a lone surrogate)", "correct the dictionary") from error
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(text)


def _vtt(cues: list[Spotting]) -> str:
    blocks = [f"{cue.spotting_id}\n{cue_times(cue.span_ms)}\n{_text(cue)}" for cue in cues]
    return "\n\n".join(["WEBVTT", *blocks]) + "\n"


def _srt(cues: list[Spotting]) -> str:
    times = [cue_times(cue.span_ms).replace(".", ",") for cue in cues]
    blocks = [f"{number}\n{times[number - 1]}\n{_text(cue)}\n" for number, cue in enumerate(cues, start=1)]
    return "\n".join(blocks)


def _text(cue: Spotting) -> str:
    # A control character may end a line, or the whole file, in one player or another.
    printed = "".join(c if c >= " " and c != "\x7f" else " " for c in cue.word)
    return html.escape(f"{' '.join(printed.split())} ({cue.cosine:.2f})", quote=False)


# Subtitles written as WebVTT, for players and for every command that reads a corpus.


def write_subtitles(subtitles: Iterable[Subtitle], path: Path, *, overwrite: bool = False) -> None:
    """Write cues in the order of time; a cue ends where the next begins only if it says so itself."""
    cues = sorted(subtitles, key=lambda subtitle: subtitle.span_ms)
    blocks = [f"{cue_times(cue.span_ms)}\n{html.escape(' '.join(cue.text.split()), quote=False)}" for cue in cues]
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_text("\n\n".join(["WEBVTT", *blocks]) + "\n", encoding="utf-8", newline="\n")
