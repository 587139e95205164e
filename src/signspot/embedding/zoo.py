"""Models by name: the built-in ones, those shipped with signspot, those imported, and those that can be fetched."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from signspot.domain.recordings import Dictionary, Episode
from signspot.domain.tracks import EmbeddingTrack
from signspot.embedding.landmarks import LandmarkModel, has_detector, landmark_file_of
from signspot.embedding.model import COLOUR_MODEL, LANDMARK_MODEL, Model, Reading
from signspot.embedding.pictures import ColourModel, PictureModel, embed_video
from signspot.errors import EnvironmentProblem, InputError, Notice, Notify, SignspotError, unheard
from signspot.evaluation.calibration import Calibration
from signspot.files.atomic import own_folder
from signspot.formats.pose import POSE_SUFFIX
from signspot.stores.calibration import CALIBRATION_SUFFIX, check_fingerprint, read_calibration
from signspot.stores.dictionary import read_dictionary
from signspot.stores.features import default_store_folder

if TYPE_CHECKING:
    from signspot.models.checkpoints import Checkpoint

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
class KnownModel:
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


def open_model(choice: ModelChoice, recordings: Iterable[Path | None], reading: Reading) -> OpenedModel:
    """The model that was asked for, or else the one that can see all recordings; None stands for a missing clip."""
    name = choice.name or _chosen_model(recordings, reading.notify)
    model = load_model(name, backend=choice.backend, device=choice.device)
    store = reading.store if choice.name else _kept_for(name, reading.store)
    return OpenedModel(model, replace(reading, store=store), name)


def known_models(folder: Path | None) -> tuple[KnownModel, ...]:
    """The built-in models, the shipped ones and those in `folder`; a file that is no model is said to be none."""
    from signspot.models.checkpoints import read_card

    found = [KnownModel(name, what) for name, (what, _) in _BUILT_IN.items()]
    kept: list[Path] = []
    with suppress(OSError):  # somebody else's home
        kept = sorted(folder.glob(f"*{MODEL_SUFFIX}")) if folder is not None else []
    for path in (*sorted(_SHIPPED.glob(f"*{MODEL_SUFFIX}")), *kept):
        try:
            card = read_card(path)
            what = f"{card.architecture}, from {card.created_from or 'unknown'}"
            what = _SHIPPED_FOR.get(path.stem, what) if path.parent == _SHIPPED else what
            found.append(KnownModel(path.stem, what, path))
        except SignspotError as error:
            found.append(KnownModel(path.stem, f"cannot be used: {error.what}", path))
    return tuple(found)


def refuse_name(name: str) -> None:
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
