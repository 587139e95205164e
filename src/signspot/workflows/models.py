"""Bring models onto this computer, and say which there are."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from signspot.domain.time import Progress, silent
from signspot.embedding.zoo import (
    MODEL_SUFFIX,
    KnownModel,
    calibration_for,
    known_models,
    load_model,
    model_path,
    refuse_name,
)
from signspot.errors import EnvironmentProblem, SignspotError, readable_size
from signspot.files.atomic import output_folder, refuse_unwritable
from signspot.files.download import BASE_URL, DOWNLOADS, fetch
from signspot.models.checkpoints import ImportOptions, ImportReport, ModelCard, import_checkpoint, read_card


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


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What can be said of a model: from its card, and from the model itself."""

    name: str
    path: Path | None  # None: built in
    card: ModelCard | None
    dim: int
    threshold: float
    fingerprint: str
    calibration: str  # what it was fitted on; "": there is none
    words: dict[str, int]  # that it knows by itself, sorted, and how many forms of each
    language: str  # of these

    @property
    def record(self) -> dict[str, object]:
        card = {} if self.card is None else asdict(self.card)
        card.pop("vocabulary", None)
        return card | {
            "name": self.name, "path": None if self.path is None else str(self.path), "dim": self.dim,
            "threshold": self.threshold, "fingerprint": self.fingerprint, "calibration": self.calibration or None,
            "n_words": len(self.words), "n_forms": sum(self.words.values()), "language": self.language,
        }  # fmt: skip

    def words_like(self, text: str) -> dict[str, int]:
        """The words that begin so and, behind them, those that hold it; all for no text."""
        wanted = text.strip().lower().replace(" ", "-")
        found = [word for word in self.words if wanted in word]
        return {word: self.words[word] for word in sorted(found, key=lambda word: not word.startswith(wanted))}


def show_model(name: str) -> ModelFacts:
    """The facts about one model on this computer."""
    model = load_model(name)
    path: Path | None = None
    with suppress(SignspotError):  # a built-in model has no file
        path = model_path(name)
    calibration = calibration_for(model, None, name)
    words = Counter(str(entry.word) for entry in model.lexicon.entries)
    return ModelFacts(
        model.name, path, None if path is None else read_card(path), model.dim, model.threshold, model.fingerprint,
        "" if calibration is None else calibration.fitted_on, dict(sorted(words.items())), model.lexicon.language,
    )  # fmt: skip


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
