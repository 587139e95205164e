"""Bring models onto this computer, and say which there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from signspot.domain.time import Progress, silent
from signspot.embedding.zoo import MODEL_SUFFIX, KnownModel, known_models, refuse_name
from signspot.errors import EnvironmentProblem, SignspotError, readable_size
from signspot.files.atomic import output_folder, refuse_unwritable
from signspot.files.download import BASE_URL, DOWNLOADS, fetch
from signspot.models.checkpoints import ImportOptions, ImportReport, import_checkpoint


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A file that was fetched or imported."""

    path: Path
    report: ImportReport | None = None  # None: fetched, but no model


def list_models(folder: Path | None) -> tuple[KnownModel, ...]:
    """The models on this computer, `folder` being that of the imported ones, then those that can be fetched."""
    here = known_models(folder)
    names = {model.name for model in here}
    there = []
    for name, download in DOWNLOADS.items():
        size = f", {readable_size(download.n_megabytes * 10**6)}" if download.n_megabytes else ""
        if name not in names:
            there.append(KnownModel(name, f"{download.what}{size}", is_here=False))
    return (*here, *there)


def import_model(source: Path, folder: Path, name: str, options: ImportOptions = ImportOptions()) -> ImportedModel:
    """Read old weights safely, or take a model of ours, and keep it under the name `name`."""
    refuse_name(name)
    _make(folder)
    path = folder / f"{name}{MODEL_SUFFIX}"
    return ImportedModel(path, import_checkpoint(source, path, options))


def fetch_model(
    name: str, folder: Path, *, base_url: str = BASE_URL, overwrite: bool = False, progress: Progress = silent
) -> ImportedModel:
    """Download a released file, check its hash, and import it if it is a model."""
    downloads = folder / "downloads"
    _make(downloads)

    def report(done: int, total: int) -> None:
        progress(f"fetching {name}", done, total or None)

    path = fetch(name, downloads, base_url=base_url, progress=report)
    if not DOWNLOADS[name].is_model:
        return ImportedModel(path)
    options = ImportOptions(training_data=DOWNLOADS[name].what, licence="not stated by its source", overwrite=overwrite)
    return import_model(path, folder, name, options)


def _make(folder: Path) -> None:
    try:
        refuse_unwritable(folder)
        output_folder(folder)
    except SignspotError as error:
        fix = "set HOME or XDG_DATA_HOME to a folder that may be written"
        raise EnvironmentProblem(folder, f"there is no place for models: it {error.what}", fix) from error
