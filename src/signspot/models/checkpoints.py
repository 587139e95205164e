"""Models on disk: one .safetensors file with its model card inside; pickles of others are brought over once, checked.

Weights are named as in the released checkpoints: `i3d.` (the trunk), `mlp.` (the head); ours also `s3d.`, `landmark.`.
The card has a checksum of its own and holds that of the weights: safetensors itself does not notice a flipped bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as bytes_from_tensors
from torch import Tensor, nn

from signspot.errors import InputError, readable_size
from signspot.files.atomic import atomic_output, refuse_existing
from signspot.files.pickles.door import inspect, read_tensors
from signspot.files.pickles.scan import MAX_BYTES, is_pickle, is_safetensors
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, S3D, I3DConfig, S3DConfig
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig

Layout = Mapping[str, tuple[int, ...]]  # the shape of every tensor

_METADATA_KEY = "signspot"  # a single one: the order of several would differ from run to run
_CARD_VERSION = 1
_MAX_HEADER_BYTES = 16 * 1024**2
_DAMAGED = "get the file again"
_RELEASED_PARTS = ("i3d", "mlp")
_WRAPPERS = {"state_dict", "model_state_dict", "model", "module", "net", "i3d", "mlp"}
_COUNTER = "num_batches_tracked"  # older versions of torch do not store it, and nothing depends on it
# What the released demo does to a frame before the trunk sees it.
_RELEASED_FRAMES: dict[str, Setting] = {
    "clip_length": 16, "frame_rate": 25, "side": 256, "crop": 224, "keep_aspect": False, "signer_box": False,
    "mean": 0.5, "std": 1.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What somebody who finds the file must know."""

    name: str
    architecture: str  # i3d, i3d+mlp, s3d+mlp, landmark+mlp, ..., or what the one who saved it calls it
    config: Mapping[str, Setting] = field(default_factory=dict)  # of the networks
    preprocessing: Mapping[str, Setting] = field(default_factory=dict)
    vocabulary: tuple[str, ...] = ()  # the words of the rows of classifier and lexicon; one for each form of its sign
    training_data: str = ""
    licence: str = ""
    created_from: str = ""  # a file and its sha256, or the run that made it
    weights_sha256: str = ""  # filled in by `save_checkpoint`
    version: int = _CARD_VERSION


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A model as it lies on the disk."""

    card: ModelCard
    weights: Weights

    def part(self, name: str) -> Weights:
        """The state of one network (`i3d`, `mlp`), for its `load_state_dict`."""
        prefix = f"{name}."
        return {key.removeprefix(prefix): value for key, value in self.weights.items() if key.startswith(prefix)}

    def networks(self) -> tuple[Trunk, Head | None]:
        """The trunk and, if there is one, the head, with their weights; ValueError if card and weights do not fit."""
        names = [name for name in TRUNKS if self.part(name)]
        if not names:
            raise ValueError("there is no trunk, only a head")
        trunk = build_trunk(names[0], self.card.config)
        trunk.load_state_dict(self.part(names[0]))
        if not self.part(HEAD):
            return trunk, None
        head = build_head(self.card.config)
        head.load_state_dict(self.part(HEAD))
        return trunk, head


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the file of weights itself cannot say."""

    name: str = ""  # the name of the new file, unless given
    sha256: str = ""  # the file must have it
    training_data: str = ""
    licence: str = ""
    vocabulary: tuple[str, ...] = ()
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What was found in a file of weights, and what became of it."""

    card: ModelCard
    kind: str  # zip pickle, legacy pickle, safetensors
    n_tensors: int
    ignored: tuple[str, ...]  # what the file holds beside the weights

    @property
    def summary(self) -> str:
        ignored = f"; ignored {', '.join(self.ignored)}" if self.ignored else ""
        found = f"{self.kind}, {self.n_tensors} tensors, 0 foreign objects, shapes match"
        return f"{self.card.architecture}: {found}{ignored}"


def weights_sha256(weights: Mapping[str, Tensor]) -> str:
    """The checksum of names, types, shapes and numbers, whatever the order."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        array = weights[name].detach().cpu().contiguous().numpy()
        digest.update(f"{name}\0{array.dtype}\0{array.shape}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_checkpoint(
    path: Path, weights: Mapping[str, Tensor], card: ModelCard, *, overwrite: bool = False
) -> ModelCard:
    """Write a model whole or not at all, and give back its card with the checksum of the weights."""
    _refuse_wrong_suffix(path)
    refuse_existing(path, overwrite=overwrite)
    kept = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}
    if broken := [name for name, tensor in kept.items() if not _is_sound(name, tensor)]:
        what = f"not saved: not a number in {_listed(broken)}"
        raise InputError(path, what, "the training went wrong before this point")
    card = replace(card, weights_sha256=weights_sha256(kept))
    card_json = json.dumps(asdict(card), sort_keys=True)
    signed = json.dumps({"card": card_json, "sha256": hashlib.sha256(card_json.encode()).hexdigest()})
    content = bytes_from_tensors(kept, {_METADATA_KEY: signed})
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)
    return card


def read_card(path: Path) -> ModelCard:
    if not path.is_file():
        raise InputError(path, "is not a file", "name a .safetensors file")
    try:
        with path.open("rb") as file:
            start = file.read(9)
            if is_pickle(start):
                raise InputError(path, "this is a pickle", f"run `signspot models import {shlex.quote(str(path))}`")
            n_header_bytes = int.from_bytes(start[:8], "little")
            if not is_safetensors(start) or n_header_bytes > _MAX_HEADER_BYTES:
                raise InputError(path, "is not a .safetensors file", "name a model, or run `signspot models import`")
            header = json.loads(start[8:] + file.read(n_header_bytes - 1))
            return _card_from_text(path, header["__metadata__"][_METADATA_KEY])
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})", "check the name") from error
    except (KeyError, TypeError) as error:
        fix = f"run `signspot models import {shlex.quote(str(path))}`"
        raise InputError(path, "holds weights but no model card", fix) from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, "is damaged: its header cannot be read", _DAMAGED) from error


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a model; card, checksum, shapes and numbers are verified."""
    card = read_card(path)
    weights = _read_safetensors(path)
    if weights_sha256(weights) != card.weights_sha256:
        raise InputError(path, "is damaged: the weights do not have the checksum of the card", _DAMAGED)
    if broken := [name for name, tensor in weights.items() if not _is_sound(name, tensor)]:
        what = f"holds NaN, an infinite number or a negative variance in {_listed(broken)}"
        raise InputError(path, what, "get the file again, or train again with a lower learning_rate")
    if set(card.architecture.split("+")) <= set(PARTS):
        _refuse_misfits(path, weights, _expected(path, card.architecture.split("+"), card.config))
    return Checkpoint(card, weights)


def import_checkpoint(path: Path, to: Path, options: ImportOptions | None = None) -> ImportReport:
    """Bring a file of weights from elsewhere, pickle or safetensors, over to a model of ours."""
    options = options or ImportOptions()
    _refuse_wrong_suffix(to)
    refuse_existing(to, overwrite=options.overwrite)
    source = inspect(path)
    if options.sha256 and options.sha256.lower() != source.sha256:
        raise InputError(path, f"has the sha256 {source.sha256}, not the one given", "get the file again")
    if _is_ours(path):
        return _import_own(path, to, options)
    kind, found, others = _tensors_of(path)
    weights, unknown = _recognised_weights(path, found)
    card = ModelCard(
        name=options.name or to.stem,
        architecture="+".join(_parts_of(weights)),
        config=_config_of(weights),
        preprocessing=_RELEASED_FRAMES if any(name.startswith("i3d.") for name in weights) else {},
        vocabulary=options.vocabulary,
        training_data=options.training_data,
        licence=options.licence,
        created_from=f"{path.name} sha256:{source.sha256}",
    )
    _refuse_wrong_vocabulary(path, card)
    card = save_checkpoint(to, weights, card, overwrite=options.overwrite)
    ignored = sorted({place.split("/")[0] for place in (*others, *unknown)})
    return ImportReport(card=card, kind=kind, n_tensors=len(found), ignored=tuple(ignored))


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        if not is_safetensors(file.read(9)):
            return False
    try:
        with safe_open(path, "pt") as opened:
            return _METADATA_KEY in (opened.metadata() or {})
    except SafetensorError:
        return False


def _import_own(path: Path, to: Path, options: ImportOptions) -> ImportReport:
    """Keep a model of ours under another name; what the user says about it replaces what its card says."""
    own = load_checkpoint(path)
    card = replace(
        own.card,
        name=options.name or to.stem,
        training_data=options.training_data or own.card.training_data,
        licence=options.licence or own.card.licence,
        vocabulary=options.vocabulary or own.card.vocabulary,
    )
    _refuse_wrong_vocabulary(path, card)
    card = save_checkpoint(to, own.weights, card, overwrite=options.overwrite)
    return ImportReport(card=card, kind="model of signspot", n_tensors=len(own.weights), ignored=())


def _recognised_weights(path: Path, found: Mapping[str, Tensor]) -> tuple[Weights, tuple[str, ...]]:
    """Bring tensors, by their place in the file, to our names; also the places of tensors that belong to no network.

    Wrappers and prefixes may be nested in any way. A tensor that is not known, beside others that are, is refused.
    """
    places: dict[str, str] = {}
    for place in found:
        words = re.split(r"[./]", place)
        while words and words[0] in _WRAPPERS:
            words.pop(0)
        bare = ".".join(words)
        name = next((f"{part}.{bare}" for part in _RELEASED_PARTS if bare in _layout(part, {"head_classes": 1})), "")
        if name in places:
            raise InputError(path, f"holds {name} twice, at {places[name]} and {place}", "keep one of the two")
        if name:
            places[name] = place
    if not places:
        raise InputError(path, f"holds no I3D and no head, but {_listed(found)}", "only these networks can be imported")
    weights = {name: found[place] for name, place in places.items()}
    folders = {place.rpartition("/")[0] for place in places.values()}
    strangers = [place for place in found if place not in set(places.values())]
    if unexpected := [place for place in strangers if place.rpartition("/")[0] in folders]:
        raise InputError(path, f"holds unexpected tensors: {_listed(unexpected)}", "this is another network")
    expected = _expected(path, _parts_of(weights), _config_of(weights))
    _refuse_misfits(path, weights, expected)
    # In single precision and in the order of the network; counters that old versions of torch lack are zero.
    zero = torch.zeros((), dtype=torch.int64)
    types = {name: torch.int64 if name.endswith(_COUNTER) else torch.float32 for name in expected}
    return {name: weights.get(name, zero).to(kind).contiguous() for name, kind in types.items()}, tuple(strangers)


def _tensors_of(path: Path) -> tuple[str, Weights, tuple[str, ...]]:
    with path.open("rb") as file:
        start = file.read(9)
    if is_safetensors(start):
        return "safetensors", _read_safetensors(path), ()
    read = read_tensors(path)
    return str(read.report.kind), {name: torch.from_numpy(array) for name, array in read.tensors.items()}, read.others


def _read_safetensors(path: Path) -> Weights:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(path, f"is larger than {readable_size(MAX_BYTES)}", "no known model is")
        return tensors_from_bytes(path.read_bytes())
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})", "check the name") from error
    except (SafetensorError, ValueError, KeyError, RuntimeError, TypeError) as error:
        raise InputError(path, f"is damaged ({error})", _DAMAGED) from error


def _parts_of(weights: Mapping[str, Tensor]) -> list[str]:
    return [part for part in PARTS if any(name.startswith(f"{part}.") for name in weights)]


def _config_of(weights: Mapping[str, Tensor]) -> dict[str, Setting]:
    """What others' weights say about their networks: how many words each classifier knows; the rest is as released."""
    config: dict[str, Setting] = {}
    if "i3d.logits.conv3d.weight" in weights:
        config["classes"] = len(weights["i3d.logits.conv3d.weight"])
    if "mlp.res.0.weight" in weights:
        config["head_classes"] = len(weights["mlp.logits.weight"]) if "mlp.logits.weight" in weights else None
        config["head_activation_after_last"] = "released"  # Deviation D4
    return config


def _expected(path: Path, parts: Iterable[str], config: Mapping[str, Setting]) -> Layout:
    try:
        return {f"{part}.{name}": shape for part in parts for name, shape in _layout(part, config).items()}
    except (ValueError, TypeError, RuntimeError) as error:  # RuntimeError: torch, for impossible sizes
        reason = str(error).splitlines()[0]
        raise InputError(path, f"the card describes no network ({reason})", _DAMAGED) from error


def _refuse_misfits(path: Path, weights: Mapping[str, Tensor], expected: Layout) -> None:
    this_is = "this is another network, or a damaged file"
    if missing := [name for name in expected if name not in weights and not name.endswith(_COUNTER)]:
        raise InputError(path, f"lacks {_listed(missing)}", this_is)
    if unexpected := [name for name in weights if name not in expected]:
        raise InputError(path, f"holds unexpected tensors: {_listed(unexpected)}", this_is)
    misfits = [name for name, tensor in weights.items() if tuple(tensor.shape) != expected[name]]
    if misfits:
        shapes = f"{tuple(weights[misfits[0]].shape)} instead of {expected[misfits[0]]}"
        raise InputError(path, f"has wrong shapes: {_listed(misfits)} ({shapes})", this_is)
    if whole := [n for n, t in weights.items() if t.is_floating_point() == n.endswith(_COUNTER)]:
        raise InputError(path, f"has the wrong type of numbers in {_listed(whole)}", this_is)
    if broken := [name for name, tensor in weights.items() if not _is_sound(name, tensor)]:
        raise InputError(path, f"is not a number, or a negative variance, in {_listed(broken)}", this_is)


def _is_sound(name: str, tensor: Tensor) -> bool:
    kept = tensor.float()
    return bool(torch.isfinite(kept).all()) and not (name.endswith("running_var") and bool((kept < 0).any()))


def _card_from_text(path: Path, text: str) -> ModelCard:
    signed = json.loads(text)
    if hashlib.sha256(signed["card"].encode()).hexdigest() != signed["sha256"]:
        raise InputError(path, "is damaged: its model card does not have its checksum", _DAMAGED)
    known = json.loads(signed["card"])
    if known.get("version") != _CARD_VERSION:
        raise InputError(path, "has a model card of another version", "update signspot")
    if set(known) != {item.name for item in fields(ModelCard)} or not _has_card_types(known):
        raise InputError(path, "has a model card that is not one of ours", _DAMAGED)
    return ModelCard(**(known | {"vocabulary": tuple(known["vocabulary"])}))


def _has_card_types(known: dict[str, object]) -> bool:
    for name, value in known.items():
        match name:
            case "config" | "preprocessing":
                fits = isinstance(value, dict) and all(
                    isinstance(held, Setting) and not (isinstance(held, float) and not math.isfinite(held))
                    for held in value.values()
                )
            case "vocabulary":
                fits = isinstance(value, list) and all(isinstance(word, str) for word in value)
            case "version":
                fits = value == _CARD_VERSION
            case _:
                fits = isinstance(value, str)
        if not fits:
            return False
    return True


def _refuse_wrong_suffix(path: Path) -> None:
    if path.suffix != ".safetensors":
        raise InputError(path, "a model is written to a .safetensors file", f"name it {path.stem}.safetensors")


_COUNTS = ("classes", "prototypes")  # ends of the settings that count rows of words


def _refuse_wrong_vocabulary(path: Path, card: ModelCard) -> None:
    counts = [str(value) for key, value in card.config.items() if key.endswith(_COUNTS) and value is not None]
    if card.vocabulary and counts and str(len(card.vocabulary)) not in counts:
        given = f"{len(card.vocabulary)} words given for a classifier of {' and '.join(counts)}"
        raise InputError(path, given, "give the vocabulary it was trained with")


def _listed(names: Iterable[str]) -> str:
    first = list(names)
    return ", ".join(first[:3]) + (f" and {len(first) - 3} more" if first[3:] else "")


# Networks by the names that model cards and checkpoints use: which there are, how to build one from its card.

Setting = str | int | float | bool | None
Weights = dict[str, Tensor]  # float32, or int64 for counters; all finite
Trunk = I3D | S3D | LandmarkEncoder

HEAD = "mlp"  # as in the released checkpoints
_TRUNKS = {"i3d": (I3D, I3DConfig), "s3d": (S3D, S3DConfig), "landmark": (LandmarkEncoder, LandmarkEncoderConfig)}
TRUNKS = tuple(_TRUNKS)
PARTS = (*TRUNKS, HEAD)
_HEAD_PREFIX = "head_"  # of the head's settings; those of the trunk have none


def _name_of(trunk: Trunk) -> str:
    return next(name for name, (kind, _) in _TRUNKS.items() if isinstance(trunk, kind))


def build_trunk(name: str, config: Mapping[str, Setting]) -> Trunk:
    kind, config_kind = _TRUNKS[name]
    known = {field.name: config[field.name] for field in fields(config_kind) if field.name in config}
    return kind(config_kind(**known))  # type: ignore[no-any-return]


def build_head(config: Mapping[str, Setting]) -> Head:
    names = {field.name: f"{_HEAD_PREFIX}{field.name}" for field in fields(HeadConfig)}
    known = {name: config[key] for name, key in names.items() if key in config}
    return Head(HeadConfig(**known))  # type: ignore[arg-type]


def describe(trunk: Trunk | None, head: Head | None = None) -> dict[str, Setting]:
    """The settings of a card from which the same networks can be built again."""
    settings: dict[str, Setting] = asdict(trunk.config) if trunk is not None else {}
    if head is not None:
        settings |= {f"{_HEAD_PREFIX}{name}": value for name, value in asdict(head.config).items()}
    return settings


def state_of(trunk: Trunk | None, head: Head | None = None) -> Weights:
    named: list[tuple[str, nn.Module]] = [] if trunk is None else [(_name_of(trunk), trunk)]
    if head is not None:
        named.append((HEAD, head))
    return {f"{part}.{name}": tensor for part, network in named for name, tensor in network.state_dict().items()}


def _layout(part: str, config: Mapping[str, Setting]) -> dict[str, tuple[int, ...]]:
    """Every name and shape in the state of the network a card describes; nothing is allocated."""
    return _cached_layout(part, tuple(sorted(config.items())))


@cache
def _cached_layout(part: str, config: tuple[tuple[str, Setting], ...]) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        network = build_head(dict(config)) if part == HEAD else build_trunk(part, dict(config))
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
