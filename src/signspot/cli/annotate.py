"""`signspot annotate`: find the signs of the words in the subtitles, consistently."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from signspot.cli.embed import BOX, default_store, signer_box
from signspot.cli.progress import progress_bars
from signspot.cli.shared_options import (
    BACKEND,
    DEVICE,
    DICTIONARY,
    FAILURES_FOUND,
    JSON,
    MODEL,
    NO_STORE,
    OVERWRITE,
    STORE,
    TRUST,
)
from signspot.cli.show import print_json, warn, warn_of
from signspot.cli.spot import alarm_rate
from signspot.errors import one_line
from signspot.text.subtitles import SubtitleOptions
from signspot.workflows.outputs import SHARED, Output, Outputs
from signspot.workflows.spot import SpotOptions
from signspot.workflows.spot_files import Outcome, SpotRequest, spot_files

if TYPE_CHECKING:
    from signspot.workflows.annotate import Annotated


def annotate(
    video: Path = typer.Argument(metavar="VIDEO", help="A video, an ELAN file, or a corpus: folder, .csv or .json."),
    dictionary: Path = DICTIONARY,
    subtitles: Path | None = typer.Option(
        None, "--subtitles", "-s", help="What is said; of a corpus, a folder, or without it those that it names."
    ),
    shift: float = typer.Option(0.0, "--shift", metavar="SECONDS", help="Move the subtitles later (or earlier: -2.5)."),
    drift: float = typer.Option(1.0, "--drift", metavar="FACTOR", help="Stretch subtitle times, such as 1.001."),
    padding: float = typer.Option(2.0, "--padding", metavar="SECONDS", help="Search so far around a subtitle, too."),
    synonyms: bool = typer.Option(False, "--synonyms", help="Also signs that the dictionary files under both words."),
    model: str = MODEL,
    backend: str = BACKEND,
    device: str = DEVICE,
    calibration: Path | None = typer.Option(None, "--calibration", help="Of `signspot calibrate`; found by itself."),
    threshold: float | None = typer.Option(None, "--threshold", help="Lowest cosine that counts (-1 to 1)."),
    presence: float | None = typer.Option(None, "--presence", help="Lowest probability that counts (0 to 1)."),
    false_alarms: str | None = typer.Option(
        None, "--false-alarms", metavar="N/h", help="Or as many as give so many false alarms an hour and word: 1/h."
    ),
    language: str = typer.Option("en", "--language", help="Written language of the subtitles."),
    stride: int = typer.Option(1, "--stride", min=1, help="Frames between two windows."),
    box: str | None = BOX,
    store: Path | None = STORE,
    no_store: bool = NO_STORE,
    vocabulary: Path | None = typer.Option(None, "--vocabulary", help="ELAN .ecv or SignBank .csv, for the ELAN file."),
    json_target: Path | None = JSON,
    eaf: Path | None = typer.Option(None, "--eaf", metavar="F.eaf", help="ELAN file, new or yours with tiers added."),
    vtt: Path | None = typer.Option(None, "--vtt", metavar="F.vtt", help="WebVTT subtitles."),
    csv: Path | None = typer.Option(None, "--csv", metavar="F.csv", help="Table for a spreadsheet."),
    parquet: Path | None = typer.Option(None, "--parquet", metavar="F.parquet", help="Parquet table."),
    challenge: Path | None = typer.Option(None, "--challenge", metavar="F.json", help="As in the 2022 challenge."),
    bobsl: Path | None = typer.Option(None, "--bobsl", metavar="F.json", help="As BOBSL publishes spottings."),
    lag: Path | None = typer.Option(None, "--lag", metavar="F.png", help="Picture of the subtitles' lag and drift."),
    overwrite: bool = OVERWRITE,
    failures: Path = typer.Option(Path("failures.jsonl"), "--failures", help="Where a batch lists what failed."),
    trust: bool = TRUST,
) -> None:
    """Find where the words of the subtitles are signed: no two signs at once, each mention at most once.

    Of a corpus, tables and JSON files hold all videos, and every other output is a folder with one file per video.
    """
    to_screen = json_target is not None and str(json_target) == "-"
    asked = {
        Output.JSON: None if to_screen else json_target,
        Output.CSV: csv,
        Output.PARQUET: parquet,
        Output.VTT: vtt,
        Output.EAF: eaf,
        Output.CHALLENGE: challenge,
        Output.BOBSL: bobsl,
        Output.LAG: lag,
    }
    request = SpotRequest(
        source=video,
        words=(),
        dictionary=dictionary,
        model=model,
        backend=backend,
        device=device,
        subtitles=subtitles,
        subtitle_options=SubtitleOptions(shift_ms=round(shift * 1000), scale=drift),
        vocabulary=vocabulary,
        explain=True,
        synonyms=synonyms,
        calibration=calibration,
        options=SpotOptions(
            threshold=threshold,
            least_presence=presence,
            false_alarms=alarm_rate(false_alarms),
            padding_ms=round(padding * 1000),
            stride=stride,
            box=signer_box(box),
            language=language,
            isolated=not trust,
            store=None if no_store else store or default_store(model),
        ),
        outputs=Outputs({kind: path for kind, path in asked.items() if path is not None}, overwrite),
        failures=failures,
    )
    _show_all(request, to_screen)


def _show_all(request: SpotRequest, to_screen: bool) -> None:
    from signspot.workflows.annotate import KnownWords

    records, failed, known = [], 0, KnownWords(0, 0, 0, 0)
    with progress_bars() as progress:
        for outcome in spot_files(request, progress):
            progress.clear()
            for remark in outcome.remarks:
                warn(remark)
            if outcome.failure is not None:
                failed += 1
                warn(str(outcome.failure))
                continue
            known = known + outcome.known_words if outcome.known_words is not None else known
            records.append(_shown(outcome, to_screen))
    if to_screen:
        print_json(records if request.is_batch else records[0])
    else:
        for kind, path in request.outputs.paths.items():
            if request.is_batch and kind in SHARED:
                typer.echo(one_line(f"wrote {path}"))
        if known.accuracy is not None:
            typer.echo(
                f"{known.n} annotated signs near a subtitle that mentions them: {known.accuracy:.1%} localised, the "
                f"word known; {known.n_explained} explained, {known.n_right} of those at the right place"
            )
    if failed:
        warn(f"{failed} videos failed: see {request.failures}")
        raise typer.Exit(FAILURES_FOUND)


def _shown(outcome: Outcome, to_screen: bool) -> dict[str, object]:
    from signspot.formats.tables import answer_record

    answer, annotated = outcome.answer, outcome.annotated
    if answer is None or annotated is None:
        return {}
    warn_of(answer)
    if not to_screen:
        typer.echo(one_line(f"{answer.video_id}: {_summary(annotated)}"))
        for path in outcome.written:
            typer.echo(one_line(f"wrote {path}"))
    known = outcome.known_words
    return answer_record(answer) | {
        "mentions": len(annotated.mentions),
        "explained": annotated.n_explained,
        "lag_ms": annotated.lag.lag_ms,
        "drift": annotated.lag.drift,
        "known_words": None if known is None else asdict(known) | {"accuracy": known.accuracy},
    }


def _summary(annotated: Annotated) -> str:
    said = f"{annotated.n_explained} of {len(annotated.mentions)} mentions explained"
    lag = annotated.lag
    if lag.lag_ms is None or lag.drift is None:
        return f"{said}; too few to tell how far the subtitles are off"
    side = "after" if lag.lag_ms >= 0 else "before"
    where = f"signs {abs(lag.lag_ms) / 1000:.1f} s {side} the middle of their subtitles"
    return f"{said}; {where}, drift {lag.drift * 60:+.3f} s a minute"
