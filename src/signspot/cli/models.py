"""`signspot models`: list, show, import and fetch.

`signspot calibrate`: measure how probable findings of a model are, so that `spot` and `annotate` can say so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from signspot.cli import options as shared
from signspot.cli.console import print_json, print_table, progress_bars, warn
from signspot.cli.options import StoreOptions, WindowOptions, give_json, grouped, say
from signspot.embedding.zoo import ModelChoice, models_folder
from signspot.errors import EnvironmentProblem, InputError, one_line
from signspot.workflows.calibrate import RATES, CalibrateRequest, CalibrationReport, calibrate_file
from signspot.workflows.spot import SpotOptions

if TYPE_CHECKING:
    from signspot.embedding.zoo import ImportedModel, ModelFacts


app = typer.Typer(help="Work with models.", no_args_is_help=True, rich_markup_mode=None)

_JSON = typer.Option(None, "--json", metavar="[-]", help="Give the result as JSON.")
_OVERWRITE = typer.Option(False, "--overwrite", help="Replace a model of the same name.")


@app.command("list")
def _list_command(json_target: Path | None = _JSON) -> None:
    """List the models on this computer and those that can be fetched."""
    from signspot.embedding.zoo import list_models

    folder = None
    try:
        folder = models_folder(os.environ)
    except EnvironmentProblem as error:
        warn(f"{error.where} {error.what}: imported ones are not listed")
    models = list_models(folder)
    if json_target is not None:
        paths = [None if model.path is None else str(model.path) for model in models]
        records = [{"name": one.name, "what": one.what, "is_here": one.is_here} for one in models]
        print_json([record | {"path": path} for record, path in zip(records, paths, strict=True)])
        return
    rows = ((model.name, "here" if model.is_here else "to fetch", model.what) for model in models)
    print_table(("model", "", "what it is"), rows)


@app.command("show")
def _show_command(
    name: str = typer.Argument(metavar="NAME", help="A name of `signspot models list`, or a .safetensors file."),
    words: bool = typer.Option(False, "--words", help="List the words that it knows without a dictionary."),
    like: str = typer.Option("", "--like", metavar="TEXT", help="Only words that begin with this, or hold it."),
    json_target: Path | None = _JSON,
) -> None:
    """Say what a model learned from, under which licence, and which words it knows without a dictionary."""
    from signspot.embedding.zoo import show_model

    facts = show_model(name)
    listed = facts.words_like(like) if words or like else {}
    if (words or like) and not listed:
        what = f"knows no word like {like!r}" if facts.words else "knows no words by itself"
        raise InputError(facts.name, what, "`signspot models list` shows the others")
    if json_target is not None:
        known = [{"word": word, "variants": n} for word, n in listed.items()]
        print_json(facts.record | ({"words": known} if listed else {}))
    elif listed:
        for word, n in listed.items():
            typer.echo(one_line(word if n == 1 else f"{word} ({n} variants)"))
    else:
        print_table(("", ""), _facts(facts))


def _facts(facts: ModelFacts) -> Iterator[tuple[str, str]]:
    card = facts.card
    yield "model", facts.name
    yield "file", "built in" if facts.path is None else str(facts.path)
    if card is not None:
        yield "network", card.architecture
        yield "learned from", card.training_data or "not stated"
        yield "licence", card.licence or "not stated"
        yield "made by", card.created_from or "not stated"
    yield "vectors", f"{facts.dim} numbers, fingerprint {facts.fingerprint[:16]}"
    yield "threshold", f"cosine {facts.threshold:.2f}"
    yield "calibration", facts.calibration or "none (`signspot calibrate` makes one)"
    n_forms = sum(facts.words.values())
    forms = f", {n_forms} signs" if n_forms > len(facts.words) else ""
    known = f"{len(facts.words)}{forms} ({facts.language}); --words lists them"
    yield "words", known if facts.words else "none: it needs a dictionary"


@app.command("import")
def _import_command(
    source: Path = typer.Argument(metavar="FILE", help="Weights: .pth, .pth.tar, .pt or .safetensors; or a model."),
    name: str = typer.Option("", "--name", help="What to call the model; otherwise as the file."),
    sha256: str = typer.Option("", "--sha256", help="Refuse the file unless it has this hash."),
    licence: str = typer.Option("", "--licence", help="The licence of the weights, for the model card."),
    overwrite: bool = _OVERWRITE,
) -> None:
    """Read old weights safely (nothing in the file is run) and keep them as a model."""
    from signspot.embedding.zoo import import_model
    from signspot.models.checkpoints import ImportOptions

    options = ImportOptions(sha256=sha256, licence=licence, overwrite=overwrite)
    _show(import_model(source, models_folder(os.environ), name or source.name.split(".")[0], options))


@app.command("fetch")
def _fetch_command(
    name: str = typer.Argument(metavar="NAME", help="A name of `signspot models list`."), overwrite: bool = _OVERWRITE
) -> None:
    """Download a released model (the only command that uses the network) and import it."""
    from signspot.embedding.zoo import fetch_model

    with progress_bars() as progress:
        fetched = fetch_model(name, models_folder(os.environ), overwrite=overwrite, progress=progress)
    _show(fetched)


def _show(imported: ImportedModel) -> None:
    path = imported.path
    if imported.report is None:
        typer.echo(one_line(f"fetched {path}; next: signspot dictionary import {path} bsldict"))
    else:
        typer.echo(one_line(imported.report.summary))
        typer.echo(one_line(f"wrote {path}; use it with --model {path.stem}"))


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
    box: str | None = shared.BOX,
    backend: str = shared.BACKEND,
    device: str = shared.DEVICE,
    *,
    windows: WindowOptions,
    keeping: StoreOptions,
) -> None:
    """Fit how probable a finding of MODEL is, on videos whose signs are annotated.

    Do not calibrate on the model's training videos; the probabilities would be too high.
    """
    with progress_bars() as progress:
        reading = windows.on(keeping.reading_for(model, progress, box=box))
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
    if (shipped := report.shipped) is not None:
        own = "too little is left to hold anything out for this one"
        if held_out is not None:
            own = f"this one, held out: {held_out.expected_error or 0:.3f}, {held_out.log_loss:.4f} (lower is better)"
        typer.echo(
            f"the calibration that comes with the model, on the same videos: error {shipped.expected_error or 0:.3f}, "
            f"log loss {shipped.log_loss:.4f}; {own}"
        )
    counted = {} if held_out is None else dict(zip(held_out.asked.tolist(), held_out.counted.tolist(), strict=True))
    for rate in (rate for rate in RATES if rate >= fit.lowest_rate):
        said = f" (held-out data: {counted[rate]:.2g} observed)" if rate in counted else ""
        typer.echo(
            f"at {rate:g} false alarms per word and hour, require --presence {fit.least_presence(rate):.3f}{said}"
        )
    say(f"wrote {report.path}")
