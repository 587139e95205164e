"""Subtitles written as WebVTT, for players and for every command that reads a corpus."""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path

from signspot.atomic import atomic_output
from signspot.domain.corpus import Subtitle
from signspot.formats.spotting_rows import cue_times


def write_subtitles(subtitles: Iterable[Subtitle], path: Path, *, overwrite: bool = False) -> None:
    """Write cues in the order of time; a cue ends where the next begins only if it says so itself."""
    cues = sorted(subtitles, key=lambda subtitle: subtitle.span_ms)
    blocks = [f"{cue_times(cue.span_ms)}\n{html.escape(' '.join(cue.text.split()), quote=False)}" for cue in cues]
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_text("\n\n".join(["WEBVTT", *blocks]) + "\n", encoding="utf-8", newline="\n")
