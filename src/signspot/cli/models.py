"""`signspot models`: list, import and fetch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from signspot.cli.console import print_json, print_table, progress_bars, warn
from signspot.embedding.zoo import models_folder
from signspot.errors import EnvironmentProblem, one_line

if TYPE_CHECKING:
    from signspot.embedding.zoo import ImportedModel

app = typer.Typer(help="Work with models.", no_args_is_help=True, rich_markup_mode=None)

_JSON = typer.Option(None, "--json", metavar="[-]", help="Give the result as JSON.")
_OVERWRITE = typer.Option(False, "--overwrite", help="Replace a model of the same name.")


@app.command("list")
def list_command(json_target: Path | None = _JSON) -> None:
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


@app.command("import")
def import_command(
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
def fetch_command(
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
