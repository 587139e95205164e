"""`signspot spot`: find words in a video, a folder of videos, or the video of an ELAN file."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli.embed import BOX, default_store, signer_box
from signspot.cli.progress import progress_bars
from signspot.cli.shared_options import (
    BACKEND,
    DEVICE,
    FAILURES_FOUND,
    JSON,
    LANGUAGE,
    MODEL,
    NO_STORE,
    OVERWRITE,
    STORE,
    TRUST,
)
from signspot.cli.show import print_answer, print_json, warn, warn_of
from signspot.errors import InputError, one_line
from signspot.formats.tables import answer_record
from signspot.text.subtitles import SubtitleOptions
from signspot.workflows.outputs import SHARED, Output, Outputs
from signspot.workflows.spot import SpotOptions
from signspot.workflows.spot_files import Outcome, SpotRequest, spot_files
from signspot.workflows.spot_queries import read_words

_KINDS = (
    Output.CSV,
    Output.JSON,
    Output.JSONL,
    Output.PARQUET,
    Output.VTT,
    Output.SRT,
    Output.EAF,
    Output.VIA,
    Output.PLOT,
    Output.VIDEO,
)


def spot(
    video: Path = typer.Argument(metavar="VIDEO", help="A video, a folder or list of videos, or an ELAN file."),
    words: list[str] | None = typer.Argument(None, metavar="WORD", help="The words to look for."),
    words_file: Path | None = typer.Option(None, "--words", metavar="F.txt", help="More words, one a line."),
    query: list[Path] | None = typer.Option(
        None, "--query", "-q", metavar="CLIP", help="A clip of a sign to look for; give it again for more of that sign."
    ),
    dictionary: Path | None = typer.Option(
        None, "--dictionary", "-d", help="Folder, CSV or manifest of dictionary clips."
    ),
    subtitles: Path | None = typer.Option(
        None, "--subtitles", "-s", help="Search a word only where these mention it (without words: all they mention)."
    ),
    shift: float = typer.Option(0.0, "--shift", metavar="SECONDS", help="Move the subtitles later (or earlier: -2.5)."),
    padding: float = typer.Option(2.0, "--padding", metavar="SECONDS", help="Search so far around a subtitle, too."),
    encoding: str = typer.Option("", "--encoding", help="Of the subtitles, such as windows-1252, if not recognised."),
    drift: float = typer.Option(1.0, "--drift", metavar="FACTOR", help="Stretch subtitle times, such as 1.001."),
    vocabulary: Path | None = typer.Option(
        None, "--vocabulary", help="ELAN .ecv or SignBank .csv: its ids go into the ELAN output."
    ),
    model: str = MODEL,
    backend: str = BACKEND,
    device: str = DEVICE,
    store: Path | None = STORE,
    no_store: bool = NO_STORE,
    threshold: float | None = typer.Option(None, "--threshold", help="Lowest cosine that counts as found (-1 to 1)."),
    presence: float | None = typer.Option(None, "--presence", help="Or the lowest probability (0 to 1)."),
    false_alarms: str | None = typer.Option(
        None, "--false-alarms", metavar="N/h", help="Or as many as give so many false alarms an hour and word: 1/h."
    ),
    calibration: Path | None = typer.Option(None, "--calibration", help="Of `signspot calibrate`; found by itself."),
    mirror: bool = typer.Option(False, "--mirror", help="Also signs of the other hand: dictionary clips mirrored."),
    rates: str = typer.Option("", "--rates", metavar="R,R", help="Also clips so many times as fast: 0.7,1.4."),
    whole_windows: bool = typer.Option(False, "--whole-windows", help="Findings last 16 frames, not as the sign does."),
    stride: int = typer.Option(1, "--stride", min=1, help="Frames between two windows."),
    quick: bool = typer.Option(
        False,
        "--quick",
        help="An answer sooner, on long videos: compare every fourth window, then all around the best 12 places of "
        "each dictionary clip. What is found is exact; some may be missed. Keeps nothing; uses what --store holds.",
    ),
    box: str | None = BOX,
    language: str = LANGUAGE,
    json_target: Path | None = JSON,
    csv: Path | None = typer.Option(None, "--csv", metavar="F.csv", help="Table for a spreadsheet."),
    jsonl: Path | None = typer.Option(None, "--jsonl", metavar="F.jsonl", help="One JSON object per line."),
    parquet: Path | None = typer.Option(None, "--parquet", metavar="F.parquet", help="Parquet table."),
    eaf: Path | None = typer.Option(
        None, "--eaf", metavar="F.eaf", help="ELAN file, new or with tiers added to yours."
    ),
    vtt: Path | None = typer.Option(None, "--vtt", metavar="F.vtt", help="WebVTT subtitles."),
    srt: Path | None = typer.Option(None, "--srt", metavar="F.srt", help="SubRip subtitles."),
    via: Path | None = typer.Option(None, "--via", metavar="F.json", help="VGG VIA 3 project."),
    plot: Path | None = typer.Option(None, "--plot", metavar="F.png", help="Picture of the similarity over time."),
    overlay: Path | None = typer.Option(None, "--video", metavar="F.mp4", help="Video with the curves moving along."),
    overwrite: bool = OVERWRITE,
    failures: Path = typer.Option(Path("failures.jsonl"), "--failures", help="Where a batch lists what failed."),
    trust: bool = TRUST,
) -> None:
    """Say whether and where each WORD is signed, and which dictionary entry it matches best.

    With a folder of videos, a table holds all of them, and every other output is a folder that gets one file per video.
    """
    to_screen = json_target is not None and str(json_target) == "-"
    json_file = None if to_screen else json_target
    paths = (csv, json_file, jsonl, parquet, vtt, srt, eaf, via, plot, overlay)
    asked = {kind: path for kind, path in zip(_KINDS, paths, strict=True) if path is not None}
    request = SpotRequest(
        source=video,
        words=(*(words or ()), *(read_words(words_file) if words_file is not None else ())),
        queries=tuple(query or ()),
        calibration=calibration,
        dictionary=dictionary,
        model=model,
        backend=backend,
        device=device,
        subtitles=subtitles,
        subtitle_options=SubtitleOptions(shift_ms=round(shift * 1000), scale=drift, encoding=encoding),
        vocabulary=vocabulary,
        options=SpotOptions(
            threshold=threshold,
            least_presence=presence,
            false_alarms=alarm_rate(false_alarms),
            mirror=mirror,
            rates=_numbers(rates),
            refine=not whole_windows,
            padding_ms=round(padding * 1000),
            stride=stride,
            quick=quick,
            box=signer_box(box),
            language=language,
            isolated=not trust,
            store=None if no_store else store or default_store(model),
        ),
        outputs=Outputs(asked, overwrite),
        failures=failures,
    )
    _show_all(request, to_screen)


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


def _show_all(request: SpotRequest, to_screen: bool) -> None:
    records, failed, total = [], 0, 0
    with progress_bars() as progress:
        for outcome in spot_files(request, progress):
            progress.clear()
            total += 1
            for remark in outcome.remarks:
                warn(remark)
            if outcome.failure is not None:
                failed += 1
                warn(str(outcome.failure))
            elif outcome.answer is not None and to_screen:
                records.append(answer_record(outcome.answer))
                warn_of(outcome.answer)
            else:
                _show(outcome, request)
    if to_screen:
        print_json(records if request.is_batch else records[0])
    if request.is_batch:
        for kind, path in request.outputs.paths.items():
            if kind in SHARED and not to_screen:
                typer.echo(one_line(f"wrote {path}"))
    if failed:
        warn(f"{failed} of {total} videos failed: see {request.failures}")
        raise typer.Exit(FAILURES_FOUND)


def _show(outcome: Outcome, request: SpotRequest) -> None:
    answer = outcome.answer
    if answer is None:
        return
    warn_of(answer)
    if request.is_batch:
        typer.echo(one_line(f"{answer.video_id}:"))
    print_answer(answer)
    for path in outcome.written:
        typer.echo(one_line(f"wrote {path}"))
