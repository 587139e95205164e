"""Bring models onto this computer, and say which there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.time import Progress
from signspot.embedding.zoo import MODEL_SUFFIX, KnownModel, known_models, refuse_name
from signspot.errors import EnvironmentProblem, SignspotError, readable_size
from signspot.files.atomic import output_folder, refuse_unwritable
from signspot.files.download import BASE_URL, DOWNLOADS, Download, fetch
from signspot.models.checkpoints import ImportOptions, ImportReport, import_checkpoint


@dataclass(frozen=True, slots=True)
class Brought:
    """A file that was fetched or imported."""

    path: Path
    report: ImportReport | None = None  # None: fetched, but no model


def list_models(folder: Path | None) -> tuple[KnownModel, ...]:
    """The models on this computer, `folder` being that of the imported ones, then those that can be fetched."""
    here = known_models(folder)
    names = {model.name for model in here}
    there = (KnownModel(n, _described(d), is_here=False) for n, d in DOWNLOADS.items() if n not in names)
    return (*here, *there)


def import_model(source: Path, folder: Path, name: str, options: ImportOptions = ImportOptions()) -> Brought:
    """Read old weights safely, or take a model of ours, and keep it under the name `name`."""
    refuse_name(name)
    _make(folder)
    path = folder / f"{name}{MODEL_SUFFIX}"
    return Brought(path, import_checkpoint(source, path, options))


def fetch_model(
    name: str, folder: Path, *, base_url: str = BASE_URL, overwrite: bool = False, progress: Progress | None = None
) -> Brought:
    """Download a released file, check its hash, and import it if it is a model."""
    downloads = folder / "downloads"
    _make(downloads)
    path = fetch(name, downloads, base_url=base_url, progress=_bytes_of(name, progress))
    if not DOWNLOADS[name].is_model:
        return Brought(path)
    options = ImportOptions(training_data=DOWNLOADS[name].what, licence="not stated by its source", overwrite=overwrite)
    return import_model(path, folder, name, options)


def _make(folder: Path) -> None:
    try:
        refuse_unwritable(folder)
        output_folder(folder)
    except SignspotError as error:
        fix = "set HOME or XDG_DATA_HOME to a folder that may be written"
        raise EnvironmentProblem(folder, f"there is no place for models: it {error.what}", fix) from error


def _described(download: Download) -> str:
    size = f", {readable_size(download.n_megabytes * 10**6)}" if download.n_megabytes else ""
    return f"{download.what}{size}"


def _bytes_of(name: str, progress: Progress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    report = progress
    return lambda done, total: report(f"fetching {name}", done, total or None)
