"""The options of the commands that search videos for words and write what they find: `spot` and `annotate`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

import typer

from signspot.cli.shared_options import STRIDE
from signspot.errors import InputError
from signspot.text.subtitles import SubtitleOptions
from signspot.workflows.outputs import Output
from signspot.workflows.spot import SpotOptions


@dataclass(frozen=True, slots=True)
class SubtitleTimes:
    """Where in a video its subtitles belong."""

    shift: float = typer.Option(0.0, "--shift", metavar="SECONDS", help="Move the subtitles later (or earlier: -2.5).")
    drift: float = typer.Option(1.0, "--drift", metavar="FACTOR", help="Stretch subtitle times, such as 1.001.")
    padding: float = typer.Option(2.0, "--padding", metavar="SECONDS", help="Search so far around a subtitle, too.")
    encoding: str = typer.Option("", "--encoding", help="Of the subtitles, such as windows-1252, if not recognised.")

    @property
    def reading(self) -> SubtitleOptions:
        """How the files are read."""
        return SubtitleOptions(shift_ms=round(self.shift * 1000), scale=self.drift, encoding=self.encoding)

    def on(self, options: SpotOptions) -> SpotOptions:
        """A search that looks so far around subtitles."""
        return replace(options, padding_ms=round(self.padding * 1000))


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure a finding must be, besides the threshold of its cosine."""

    presence: float | None = typer.Option(None, "--presence", help="Or the lowest probability (0 to 1).")
    false_alarms: str | None = typer.Option(
        None, "--false-alarms", metavar="N/h", help="Or as many as give so many false alarms an hour and word: 1/h."
    )
    calibration: Path | None = typer.Option(None, "--calibration", help="Of `signspot calibrate`; found by itself.")

    def on(self, options: SpotOptions) -> SpotOptions:
        """A search that is so sure."""
        return replace(options, least_presence=self.presence, false_alarms=alarm_rate(self.false_alarms))


@dataclass(frozen=True, slots=True)
class Looking:
    """How thoroughly `spot` looks, and what counts as the same sign."""

    mirror: bool = typer.Option(False, "--mirror", help="Also signs of the other hand: dictionary clips mirrored.")
    rates: str = typer.Option("", "--rates", metavar="R,R", help="Also clips so many times as fast: 0.7,1.4.")
    whole_windows: bool = typer.Option(False, "--whole-windows", help="Findings last 16 frames, not as the sign does.")
    stride: int = STRIDE
    quick: bool = typer.Option(
        False,
        "--quick",
        help="An answer sooner, on long videos: compare every fourth window, then all around the best 12 places of "
        "each dictionary clip. What is found is exact; some may be missed. Keeps nothing; uses what --store holds.",
    )

    def on(self, options: SpotOptions) -> SpotOptions:
        """A search that looks so."""
        return replace(
            options,
            mirror=self.mirror,
            rates=_numbers(self.rates),
            refine=not self.whole_windows,
            stride=self.stride,
            quick=self.quick,
        )


class OutputFiles:
    """Where results go: every field is a kind of output."""

    __slots__ = ()

    def asked_for(self, json_file: Path | None) -> dict[Output, Path]:
        """The outputs that have a path, JSON among them."""
        named = {Output[option.name.upper()]: getattr(self, option.name) for option in fields(self)}  # type: ignore[arg-type]
        return {kind: path for kind, path in ({Output.JSON: json_file} | named).items() if path is not None}


@dataclass(frozen=True, slots=True)
class SpotFiles(OutputFiles):
    """What `spot` can write."""

    csv: Path | None = typer.Option(None, "--csv", metavar="F.csv", help="Table for a spreadsheet.")
    jsonl: Path | None = typer.Option(None, "--jsonl", metavar="F.jsonl", help="One JSON object per line.")
    parquet: Path | None = typer.Option(None, "--parquet", metavar="F.parquet", help="Parquet table.")
    vtt: Path | None = typer.Option(None, "--vtt", metavar="F.vtt", help="WebVTT subtitles.")
    srt: Path | None = typer.Option(None, "--srt", metavar="F.srt", help="SubRip subtitles.")
    eaf: Path | None = typer.Option(
        None,
        "--eaf",
        metavar="F.eaf",
        help="A new ELAN file (of a batch: a folder); give yours as VIDEO to add tiers to a copy.",
    )
    via: Path | None = typer.Option(None, "--via", metavar="F.json", help="VGG VIA 3 project.")
    plot: Path | None = typer.Option(None, "--plot", metavar="F.png", help="Picture of the similarity over time.")
    video: Path | None = typer.Option(None, "--video", metavar="F.mp4", help="Video with the curves moving along.")


@dataclass(frozen=True, slots=True)
class AnnotateFiles(SpotFiles):
    """What `annotate` can write: the same, and what others publish of whole corpora."""

    challenge: Path | None = typer.Option(None, "--challenge", metavar="F.json", help="As in the 2022 challenge.")
    bobsl: Path | None = typer.Option(None, "--bobsl", metavar="F.json", help="As BOBSL publishes spottings.")
    lag: Path | None = typer.Option(None, "--lag", metavar="F.png", help="Picture of the subtitles' lag and drift.")


def alarm_rate(text: str | None) -> float | None:
    """The false alarms an hour in `1/h`, `0.5/h` or `2`."""
    if text is None:
        return None
    number = text.strip().removesuffix("/h").strip()
    try:
        rate = float(number)
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1e9:
        raise InputError("--false-alarms", f"{text!r} is no number an hour", "give one such as 1/h or 0.2/h")
    return rate


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError("--rates", f"{text!r} is no list of numbers", "give speeds such as 0.7,1.4") from error
