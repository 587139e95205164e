"""`signspot calibrate`: measure how probable findings of a model are, so that `spot` and `annotate` can say so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import typer

from signspot.cli import options as shared
from signspot.cli.console import progress_bars
from signspot.cli.options import StoreOptions, give_json, grouped, say
from signspot.embedding.zoo import ModelChoice
from signspot.workflows.calibrate import RATES, CalibrateRequest, CalibrationReport, calibrate_file
from signspot.workflows.spot import SpotOptions


@grouped
def calibrate(
    model: str = typer.Argument(metavar="MODEL", help="A name of `signspot models list`, or a .safetensors file."),
    corpus: Path = typer.Option(..., "--corpus", "-c", help="Videos with annotations: a folder, .csv or .json."),
    dictionary: Path = shared.DICTIONARY,
    split: str = typer.Option("", "--split", help="Only the videos of this split: not those the model learned from."),
    complete: bool = typer.Option(
        False,
        "--complete",
        help="Every sign of the annotated words is annotated. Without it, signs that nobody annotated near a subtitle "
        "are left out, probabilities are on the low side, and searches near subtitles are not told apart.",
    ),
    method: Literal["auto", "logistic", "isotonic"] = typer.Option(
        "auto", "--method", help="logistic, isotonic, or auto: isotonic where at least 1,000 candidates are right."
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="F.calibration", help="Where to write it; without, where `spot` finds it by itself."
    ),
    plot: Path | None = typer.Option(
        None, "--plot", metavar="F.png", help="Draw promised and observed probabilities, and false alarms."
    ),
    json_target: Path | None = shared.JSON,
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a calibration that exists."),
    language: str = shared.LANGUAGE,
    stride: int = shared.STRIDE,
    box: str | None = shared.BOX,
    backend: str = shared.BACKEND,
    device: str = shared.DEVICE,
    *,
    keeping: StoreOptions,
) -> None:
    """Fit how probable a finding of MODEL is, on videos whose signs are annotated.

    Do not calibrate on the model's training videos; the probabilities would be too high.
    """
    with progress_bars() as progress:
        reading = keeping.reading_for(model, progress, box=box, stride=stride)
        request = CalibrateRequest(
            model=ModelChoice(name=model, backend=backend, device=device), corpus=corpus, dictionary=dictionary,
            split=split, complete=complete, method=method, options=SpotOptions(language=language, reading=reading),
            out=out, plot=plot, overwrite=overwrite,
        )  # fmt: skip
        report = calibrate_file(request, os.environ)
    if not give_json(report.as_json(), json_target, overwrite=overwrite):
        _tell(report)
        if plot is not None:
            say(f"wrote {plot}")


def _tell(report: CalibrationReport) -> None:
    typer.echo(f"{report.n_right} right and {report.n_wrong} wrong candidates of {report.n_groups} signers or videos")
    for name, error in (("", report.expected_error), (" near subtitles", report.expected_error_read)):
        if error is not None:
            typer.echo(f"expected calibration error{name}, signers or videos held out in turn: {error:.3f}")
    held_out, fit = report.held_out, report.calibration.plain
    if (shipped := report.shipped) is not None and held_out is not None:
        typer.echo(
            f"the calibration that comes with the model, on the same videos: error {shipped.expected_error or 0:.3f}, "
            f"log loss {shipped.log_loss:.4f}; this one, held out: {held_out.expected_error or 0:.3f}, "
            f"{held_out.log_loss:.4f} (lower is better)"
        )
    counted = {} if held_out is None else dict(zip(held_out.asked.tolist(), held_out.counted.tolist(), strict=True))
    for rate in (rate for rate in RATES if rate >= fit.lowest_rate):
        said = f" (held-out data: {counted[rate]:.2g} observed)" if rate in counted else ""
        typer.echo(
            f"at {rate:g} false alarms per word and hour, require --presence {fit.least_presence(rate):.3f}{said}"
        )
    say(f"wrote {report.path}")
