"""Models by name: the built-in ones, those shipped with signspot, those imported, and those that can be fetched.

The clips of a dictionary as vectors, computed once and kept: what every search, lookup and training needs.

Bring models onto this computer, and say which there are.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, Episode, Word
from signspot.domain.time import Progress, silent
from signspot.domain.tracks import EmbeddingTrack, EntryVectors, FloatArray
from signspot.embedding.landmarks import LandmarkModel, has_detector, landmark_file_of
from signspot.embedding.model import COLOUR_MODEL, LANDMARK_MODEL, Embeds, Model, Reading, Views
from signspot.embedding.pictures import STORED_KIND, ColourModel, PictureModel, embed_video, stored_features
from signspot.errors import (
    DictionaryError,
    EnvironmentProblem,
    InputError,
    Notice,
    Notify,
    SignspotError,
    VideoError,
    notify_left_out,
    readable_size,
    unheard,
)
from signspot.evaluation.calibration import Calibration
from signspot.files.atomic import output_folder, own_folder, refuse_unwritable
from signspot.files.download import BASE_URL, DOWNLOADS, fetch
from signspot.formats.pose import POSE_SUFFIX, landmarks_beside
from signspot.media.reader import shared_decoding
from signspot.media.video import media_sha256
from signspot.models.checkpoints import ImportOptions, ImportReport, ModelCard, import_checkpoint, read_card
from signspot.spotting.friends import Gallery
from signspot.spotting.search import Query, drawn_together
from signspot.stores.calibration import CALIBRATION_SUFFIX, check_fingerprint, read_calibration
from signspot.stores.dictionary import read_dictionary
from signspot.stores.features import EntryKey, FeatureStore, default_store_folder

if TYPE_CHECKING:
    from signspot.models.checkpoints import Checkpoint


LEFT_OUT = "left out of the dictionary"
_NEEDS_DICTIONARY = f"give --dictionary, or use {LANDMARK_MODEL} (pip install 'signspot[pose]', or .pose files)"
_SAVED_EVERY = 200  # entries: a run that is stopped loses no more


@dataclass(frozen=True, slots=True, eq=False)
class _EmbeddedEntries:
    """The entries that could be embedded, and why the others could not."""

    entries: tuple[Entry, ...]
    vectors: FloatArray  # (n, n_views, d)
    failures: tuple[tuple[Entry, InputError], ...] = ()

    @property
    def stored(self) -> tuple[Notice, ...]:
        files = sorted({entry.features for entry in self.entries if entry.video is None and entry.features})
        makers = {file: stored_features(file).kinds[STORED_KIND].made_by for file in files}
        used = "stored vectors are used ({}); they fit only the trunk that made them"
        return tuple(Notice(file.parent.name, used.format(by), severity="note") for file, by in makers.items())

    def notify(self, reading: Reading) -> None:
        for notice in (*self.stored, *(Notice(LEFT_OUT, str(error)) for _, error in self.failures)):
            reading.notify(notice)


def opened_dictionary(path: Path, reading: Reading) -> Dictionary:
    source = read_dictionary(path)
    notify_left_out(source.problems, reading.notify, LEFT_OUT)
    return source.dictionary


def with_lexicon(dictionary: Dictionary | None, model: Model, *, are_named: bool = True) -> Dictionary:
    """A dictionary with the signs that a model knows by itself behind its own entries.

    They are added under the words that the dictionary lacks and, as further variants, under those that it shows in the
    language the model learned. A dictionary that says it shows other languages only is left as it is. So is one that
    states no language, unless somebody names the words: the words of subtitles would bring signs of a language that may
    not be the dictionary's.
    """
    lexicon, own = model.lexicon, Dictionary.of(model.name, ()) if dictionary is None else dictionary
    if not len(lexicon) and not len(own):
        raise InputError(model.name, "knows no words by itself", _NEEDS_DICTIONARY)
    shown = {word: {_plain(entry.language) for entry in entries} for word, entries in own.by_word.items()}
    stated = set[str]().union(*shown.values()) - {""}
    if (stated or (len(own) and not are_named)) and lexicon.language not in stated:
        return own
    taken = {entry.entry_id for entry in own}
    added = [
        entry
        for entry in lexicon.entries
        if entry.entry_id not in taken and lexicon.language in shown.get(entry.word, {lexicon.language})
    ]
    return Dictionary.of(own.name, (*own, *added), own.folder)


def _plain(language: str) -> str:
    """One code for each way to write it: sgn-ase and ASL are ase."""
    code = language.lower().removeprefix("sgn-")
    return {"asl": "ase", "us": "ase"}.get(code, code)


def embed_entries(
    entries: Sequence[Entry], model: Embeds, reading: Reading, views: Views = Views()
) -> _EmbeddedEntries:
    """The vectors of dictionary entries; those in the store are read, the others are computed and kept there."""
    usable: list[tuple[Entry, FloatArray]] = []
    failures: list[tuple[Entry, InputError]] = []
    with ExitStack() as stack:
        stack.enter_context(shared_decoding())
        kept = _KeptVectors(entries, model.name, model.entries_name(reading, views), reading, stack)
        for number, entry in enumerate(entries, start=1):
            vectors = kept.vectors(entry)
            try:
                if vectors is None:
                    vectors = model.entry(entry, reading, views)
                    kept.add(entry, vectors)
                usable.append((entry, vectors.reshape(-1, model.dim)))
            except VideoError as error:
                failures.append((entry, error))
            reading.progress("reading the dictionary", number, len(entries))
        kept.save()
    stacked = np.stack([vectors for _, vectors in usable]) if usable else np.zeros((0, 1, model.dim), np.float32)
    return _EmbeddedEntries(tuple(entry for entry, _ in usable), stacked, tuple(failures))


def embed_query(
    words: Sequence[Word], dictionary: Dictionary, model: Model, reading: Reading, views: Views = Views()
) -> Query:
    made = embed_entries([entry for word in words for entry in dictionary.entries(word)], model, reading, views)
    places: dict[Word, list[int]] = {word: [] for word in words}
    for place, entry in enumerate(made.entries):
        places[entry.word].append(place)
    found: list[EntryVectors] = []
    for word, own in places.items():
        if not own:
            why = next((str(error) for entry, error in made.failures if entry.word == word), "")
            raise DictionaryError(word, "none of its clips can be used", why)
        variants = [None if made.entries[place].is_learned else made.entries[place].variant for place in own]
        rows = drawn_together(made.vectors[own], variants, model.towards_mean)
        shown = tuple(made.entries[place] for place in own for _ in range(rows.shape[1]))
        found.append(EntryVectors(word, shown, rows.reshape(-1, rows.shape[2]), model.fingerprint))
    n_views = made.vectors.shape[1]
    if n_views < len(views):
        reading.notify(Notice("--rates changes nothing", f"{model.name} looks for signs of every usual speed"))
    made.notify(reading)
    return Query(tuple(found), dictionary, n_views)


def embed_gallery(dictionary: Dictionary, model: Model, reading: Reading, towards_mean: float = 0.0) -> Gallery:
    """The vectors of all entries, each with the mean of its word's and variant's added `towards_mean` times."""
    made = embed_entries(tuple(dictionary), model, reading)
    if not made.entries:
        why = next((f"{LEFT_OUT}: {error}" for _, error in made.failures), "")
        raise DictionaryError(dictionary.name, "none of its clips can be read", why)
    made.notify(reading)
    groups = [None if entry.is_learned else (entry.word, entry.variant) for entry in made.entries]
    return Gallery(made.entries, drawn_together(made.vectors[:, :1], groups, towards_mean)[:, 0])


class _KeptVectors:
    """The vectors of dictionary clips in a store, known by the content of the clip, of the landmarks beside it, and the
    part that is shown. Where nothing can be kept, a notice says so, and it only costs time."""

    def __init__(
        self, entries: Sequence[Entry], model: str, fingerprint: str, reading: Reading, stack: ExitStack
    ) -> None:
        self._model, self._fingerprint, self._notify = model, fingerprint, reading.notify
        self._store: FeatureStore | None = None
        self._keys: dict[Entry, EntryKey] = {}
        self._known: dict[EntryKey, FloatArray] = {}
        self._fresh: dict[EntryKey, FloatArray] = {}
        try:
            self._store = stack.enter_context(reading.opened_store())
            if self._store is not None:
                self._keys = _keys(entries, self._store, reading)
                self._known = self._store.entry_vectors(self._keys.values(), fingerprint)
        except SignspotError as problem:
            self._give_up(problem)

    def vectors(self, entry: Entry) -> FloatArray | None:
        key = self._keys.get(entry)
        return None if key is None else self._known.get(key)

    def add(self, entry: Entry, vectors: FloatArray) -> None:
        if (key := self._keys.get(entry)) is not None:
            self._known[key] = self._fresh[key] = vectors.ravel()
        if len(self._fresh) >= _SAVED_EVERY:
            self.save()

    def save(self) -> None:
        try:
            if self._store is not None and self._fresh:
                self._store.put_entry_vectors(self._fresh, self._fingerprint, model=self._model)
        except SignspotError as problem:
            self._give_up(problem)
        self._fresh = {}

    def _give_up(self, problem: SignspotError) -> None:
        self._store = None
        self._notify(Notice("vectors of the dictionary are not kept", str(problem)))


def _keys(entries: Sequence[Entry], store: FeatureStore, reading: Reading) -> dict[Entry, EntryKey]:
    """What the vectors of entries depend on beside the model; entries that cannot be read have no key."""
    videos = {entry.video: landmarks_beside(entry.video) for entry in entries if entry.video is not None}
    files = list(dict.fromkeys(path for pair in videos.items() for path in pair if path is not None))
    counted = itertools.count(1)

    def digest(path: Path) -> str:
        reading.progress("looking for changed clips", next(counted), len(files))
        return media_sha256(path)

    hashed = store.sha256s(files, digest)
    keys: dict[Entry, EntryKey] = {}
    for entry in entries:
        beside = None if entry.video is None else videos[entry.video]
        if entry.video not in hashed or (beside is not None and beside not in hashed):
            continue
        frames = "" if entry.kept is None else f"frames {entry.kept.start}-{entry.kept.stop}"
        box = "" if entry.box is None else f"box {entry.box}"
        landmarks = "" if beside is None else hashed[beside]
        keys[entry] = EntryKey(hashed[entry.video], landmarks, f"{frames} {box}".strip(), entry.video.name)
    return keys


MODEL_SUFFIX = ".safetensors"
_LANDMARK_TRUNK = "landmark"  # what cards call it
_SHIPPED = Path(__file__).parent / "shipped"
_SHIPPED_FOR = {
    "landmark-v1": "real American Sign Language, from landmarks of body and hands: the default where they can be had",
    "world-v1": "drawn figures of the synthetic world, from pictures",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_BUILT_IN = {COLOUR_MODEL: ("mean colours: shows the path, knows nothing about signing", ColourModel)}


@dataclass(frozen=True, slots=True)
class _KnownModel:
    """A model that `load_model` finds by its name, or would if it were fetched."""

    name: str
    what: str
    path: Path | None = None  # None: built in, or not on this computer
    is_here: bool = True


def models_folder(environment: Mapping[str, str]) -> Path:
    """Where imported models are kept: `$XDG_DATA_HOME/signspot/models` or ~/.local/share/signspot/models."""
    try:
        return own_folder(environment, "XDG_DATA_HOME", ".local/share") / "signspot" / "models"
    except EnvironmentProblem as error:
        what, fix = f"{error.what}, so there is no place for models", "set it, or name the model by its path"
        raise EnvironmentProblem(error.where, what, fix) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The model that a user asks for, and where it shall run."""

    name: str = ""  # a name, or the path of a .safetensors file; "": the one that can see all recordings
    backend: str = "auto"
    device: str = "cpu"

    def open(self, recordings: Iterable[Path | None], reading: Reading) -> OpenedModel:
        """The model that was asked for, or else the one that can see all recordings; None stands for a missing clip."""
        name = self.name or _chosen_model(recordings, reading.notify)
        model = load_model(name, backend=self.backend, device=self.device)
        store = reading.store if self.name else _kept_for(name, reading.store)
        return OpenedModel(model, replace(reading, store=store), name)


def load_model(name: str | Path, *, backend: str = "auto", device: str = "cpu", folder: Path | None = None) -> Model:
    """A model by its name, or by the path of its .safetensors file."""
    if str(name) in _BUILT_IN:
        _refuse_backend(str(name), backend, device, runs_in="numpy")
        return _BUILT_IN[str(name)][1]()
    path = model_path(name, folder)
    # torch is loaded only when a network is.
    from signspot.models.checkpoints import load_checkpoint

    return model_of(load_checkpoint(path), backend=backend, device=device, where=str(path))


def model_of(checkpoint: Checkpoint, *, backend: str = "auto", device: str = "cpu", where: str = "") -> Model:
    from signspot.models.embedders import embedder_from_checkpoint, landmark_embedder_from_checkpoint

    if checkpoint.card.architecture.split("+")[0] == _LANDMARK_TRUNK:
        _refuse_backend(checkpoint.card.name, backend, device, runs_in="torch")
        return LandmarkModel(landmark_embedder_from_checkpoint(checkpoint, where))
    return PictureModel(embedder_from_checkpoint(checkpoint, backend=backend, device=device, where=where))


def trunk_fingerprints(checkpoint: Checkpoint) -> Iterator[str]:
    """What vectors of a trunk may be filed under: those of another backend differ in their last digits."""
    for backend in ("auto", "torch", "openvino-bf16"):
        with suppress(EnvironmentProblem, InputError):  # not installed, or not for this model: it made none of them
            if (trunk := model_of(checkpoint, backend=backend).trunk()) is not None:
                yield trunk.fingerprint


def _refuse_backend(name: str, backend: str, device: str, *, runs_in: str) -> None:
    """A small model runs in one way only; a wrong name is still wrong."""
    if (backend, device) == ("auto", "cpu"):
        return
    from signspot.models.backends import choose_backend

    with suppress(EnvironmentProblem):  # not installed here, which changes nothing
        choose_backend(backend, device=device)
    if backend not in ("auto", runs_in):
        raise InputError(f"--backend {backend}", f"the model {name!r} runs in {runs_in} only", "leave --backend out")
    if device != "cpu":
        raise InputError(f"--device {device}", f"the model {name!r} runs on the processor only", "leave --device out")


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model, and how recordings are read for it."""

    model: Model
    reading: Reading
    name: str  # as it was chosen


def _known_models(folder: Path | None) -> tuple[_KnownModel, ...]:
    """The built-in models, the shipped ones and those in `folder`; a file that is no model is said to be none."""
    from signspot.models.checkpoints import read_card

    found = [_KnownModel(name, what) for name, (what, _) in _BUILT_IN.items()]
    kept: list[Path] = []
    with suppress(OSError):  # somebody else's home
        kept = sorted(folder.glob(f"*{MODEL_SUFFIX}")) if folder is not None else []
    for path in (*sorted(_SHIPPED.glob(f"*{MODEL_SUFFIX}")), *kept):
        try:
            card = read_card(path)
            what = f"{card.architecture}, from {card.created_from or 'unknown'}"
            what = _SHIPPED_FOR.get(path.stem, what) if path.parent == _SHIPPED else what
            found.append(_KnownModel(path.stem, what, path))
        except SignspotError as error:
            found.append(_KnownModel(path.stem, f"cannot be used: {error.what}", path))
    return tuple(found)


def _refuse_name(name: str) -> None:
    """Raise if an imported model cannot be called so: what is built in or shipped would be found instead."""
    if not _NAME.fullmatch(name):
        fix = "give --name with letters a to z, digits, - and _, at most 100"
        raise InputError(name or "name", "is no name for a model", fix)
    if name.lower() in {*_BUILT_IN, *_SHIPPED_FOR}:
        raise InputError(name, "is the name of a model that comes with signspot", "give another one with --name")


def _is_there(path: Path) -> bool:
    """Whether there is such a file; one in a folder that may not be read is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def model_path(name: str | Path, folder: Path | None = None) -> Path:
    """The file of a model by its name, or by its path, which is not looked at; built-in models have none."""
    path = Path(name)
    if path.suffix == MODEL_SUFFIX or path.parent != Path():
        return path
    if _is_there(path):  # a pickle in this folder, say: its own message tells what to do with it
        return path
    if _is_there(shipped := _SHIPPED / f"{name}{MODEL_SUFFIX}"):
        return shipped
    kept = (folder or models_folder(os.environ)) / f"{name}{MODEL_SUFFIX}"
    if not _is_there(kept):
        what = "no model of this name is on this computer"
        raise InputError(name, what, "`signspot models list` shows those that are and those that can be fetched")
    return kept


# Which model is used when none is named: the shipped one of real signing, wherever landmarks can be had.
_CHOSEN = "sees body and hands; it learned American Sign Language only (--model for others)"
_FALLEN_BACK = (
    f"compares mean colours and knows nothing about signing; {LANDMARK_MODEL} would need landmarks of all recordings"
)
_GET_LANDMARKS = "pip install 'signspot[pose]', or put a .pose file beside"
_NAMED = 3  # recordings without landmarks


def _chosen_model(recordings: Iterable[Path | None], notify: Notify = unheard) -> str:
    """The name of the model that can see all recordings; None stands for a missing clip.

    Where any recording is a .pose file, only a model of landmarks will do.
    """
    paths = list(recordings)
    finds = has_detector()
    blind = [path for path in paths if path is None or not (finds or landmark_file_of(path))]
    if not blind or any(path is not None and path.suffix.lower() == POSE_SUFFIX for path in paths):
        notify(Notice(f"model {LANDMARK_MODEL}", _CHOSEN, severity="note"))
        return LANDMARK_MODEL
    named = ", ".join(path.name for path in blind[:_NAMED] if path is not None)
    more = f" and {len(blind) - _NAMED} more of {len(paths)}" if len(blind) > _NAMED else ""
    fix = f"{_GET_LANDMARKS} {named or 'each'}{more} (--model for others)"
    notify(Notice(f"model {COLOUR_MODEL}", _FALLEN_BACK, fix))
    return COLOUR_MODEL


def _kept_for(chosen: str, folder: Path | None) -> Path | None:
    """Where vectors are kept: mean colours that nobody asked for are not worth a place in the usual folder."""
    if chosen != COLOUR_MODEL or folder is None:
        return folder
    with suppress(EnvironmentProblem):  # not everybody has a home
        return None if folder == default_store_folder(os.environ) else folder
    return folder


# Where calibrations are kept: beside the file of their model, or in a folder by the model's fingerprint.


def kept_at(model: Model, environment: Mapping[str, str]) -> Path:
    """Where `calibrate` keeps the calibration of a model: `calibrations/` beside the folder of imported models."""
    digest = hashlib.sha256(model.fingerprint.encode()).hexdigest()[:16]
    return models_folder(environment).with_name("calibrations") / f"{digest}{CALIBRATION_SUFFIX}"


def calibration_for(model: Model, named: Path | None, model_name: str) -> Calibration | None:
    """The calibration that was named, or the one beside the model's file, or the one that is kept; None: uncalibrated.

    A shipped model has one beside it, which one's own, made by `signspot calibrate`, replaces. A named one must fit;
    one of the others that is for another model is passed over.
    """
    if named is not None:
        calibration = read_calibration(named)
        check_fingerprint(calibration, model.name, model.fingerprint)
        return calibration
    for path in _places(model, model_name):
        if _is_there(path):
            found = read_calibration(path)
            if found.fingerprint == model.fingerprint:
                return found
    return None


def shipped_calibration(model: Model) -> Calibration | None:
    """The calibration that comes with a model; None: it has none."""
    path = (_SHIPPED / model.name).with_suffix(CALIBRATION_SUFFIX)
    found = read_calibration(path) if _NAME.fullmatch(model.name) and _is_there(path) else None
    return found if found is not None and found.fingerprint == model.fingerprint else None


def _places(model: Model, model_name: str) -> tuple[Path, ...]:
    places: list[Path] = []
    with suppress(SignspotError):  # a built-in model has no file
        places.append(model_path(model_name).with_suffix(CALIBRATION_SUFFIX))
    with suppress(SignspotError):  # nor has everybody a home
        places.append(kept_at(model, os.environ))
    return tuple(sorted(places, key=lambda path: path.parent == _SHIPPED))


# The small steps that library users take one at a time.


def embed(video: Path | str, model: Model, reading: Reading = Reading()) -> EmbeddingTrack:
    """The embedding of every window of a video, with the media time of every frame; nothing is rounded or kept."""
    path = Path(video)
    episode = Episode(video_id=path.stem, video=path)
    if isinstance(model, PictureModel):
        found = embed_video(episode, model.network, reading)
        track, said = found.track, (*found.report.warnings, found.report.partial)
    else:
        read = model.track(episode, reading)
        track, said = read.track, (*read.remarks.warnings, read.remarks.partial)
    for message in filter(None, said):
        warnings.warn(f"{path}: {message}", stacklevel=2)
    return track


def open_dictionary(path: Path | str) -> Dictionary:
    """A dictionary from a folder of clips, a CSV or a manifest; warns about what had to be left out."""
    source = read_dictionary(Path(path))
    for problem in source.problems:
        warnings.warn(f"left out: {problem.where}: {problem.what}", stacklevel=2)
    return source.dictionary


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A file that was fetched or imported."""

    path: Path
    report: ImportReport | None = None  # None: fetched, but no model


def list_models(folder: Path | None) -> tuple[_KnownModel, ...]:
    """The models on this computer, `folder` being that of the imported ones, then those that can be fetched."""
    here = _known_models(folder)
    names = {model.name for model in here}
    there = []
    for name, download in DOWNLOADS.items():
        size = f", {readable_size(download.n_megabytes * 10**6)}" if download.n_megabytes else ""
        if name not in names:
            there.append(_KnownModel(name, f"{download.what}{size}", is_here=False))
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
    _refuse_name(name)
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
