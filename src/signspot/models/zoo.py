"""Models by name: the built-in ones, those shipped with signspot, those imported, and those that can be fetched."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from signspot.atomic import own_folder
from signspot.domain.tracks import Embedder
from signspot.errors import EnvironmentProblem, InputError, SignspotError
from signspot.models.colour import ColourEmbedder

SUFFIX = ".safetensors"
LANDMARK_MODEL = "landmark-v1"  # of real signing, shipped: the one that people meet first
COLOUR_MODEL = "colour"
_LANDMARK_TRUNK = "landmark"  # what cards call it
_SHIPPED = Path(__file__).parent / "shipped"
_SHIPPED_FOR = {
    "landmark-v1": "real American Sign Language, from landmarks of body and hands: the default where they can be had",
    "world-v1": "drawn figures of the synthetic world, from pictures",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_BUILT_IN = {COLOUR_MODEL: ("mean colours: shows the path, knows nothing about signing", ColourEmbedder)}


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


def load_model(name: str | Path, *, backend: str = "auto", device: str = "cpu", folder: Path | None = None) -> Embedder:
    """A model by its name, or by the path of its .safetensors file; its card says whether it sees landmarks."""
    if str(name) in _BUILT_IN:
        return _BUILT_IN[str(name)][1]()
    path = model_path(name, folder)
    # torch is loaded only when a network is.
    from signspot.models.backends import choose_backend
    from signspot.models.checkpoints import read_card
    from signspot.models.embedder import embedder_from_checkpoint
    from signspot.models.landmark_embedder import landmark_embedder_from_checkpoint

    if read_card(path).architecture.split("+")[0] == _LANDMARK_TRUNK:
        choose_backend(backend, device=device)  # it runs in PyTorch on the processor; a wrong name is still wrong
        return landmark_embedder_from_checkpoint(path)
    return embedder_from_checkpoint(path, backend=backend, device=device)


def known_models(folder: Path | None) -> tuple[KnownModel, ...]:
    """The built-in models, the shipped ones and those in `folder`; a file that is no model is said to be none."""
    from signspot.models.checkpoints import read_card

    found = [KnownModel(name, what) for name, (what, _) in _BUILT_IN.items()]
    kept: list[Path] = []
    with suppress(OSError):  # somebody else's home
        kept = sorted(folder.glob(f"*{SUFFIX}")) if folder is not None else []
    for path in (*sorted(_SHIPPED.glob(f"*{SUFFIX}")), *kept):
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


def is_there(path: Path) -> bool:
    """Whether there is such a file; one in a folder that may not be read is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def model_path(name: str | Path, folder: Path | None = None) -> Path:
    """The file of a model by its name, or by its path, which is not looked at; built-in models have none."""
    path = Path(name)
    if path.suffix == SUFFIX or path.parent != Path():
        return path
    if is_there(path):  # a pickle in this folder, say: its own message tells what to do with it
        return path
    if is_there(shipped := _SHIPPED / f"{name}{SUFFIX}"):
        return shipped
    kept = (folder or models_folder(os.environ)) / f"{name}{SUFFIX}"
    if not is_there(kept):
        what = "no model of this name is on this computer"
        raise InputError(name, what, "`signspot models list` shows those that are and those that can be fetched")
    return kept
