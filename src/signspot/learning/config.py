"""Every option of a training run of the head, with the paper's value as its default."""

from __future__ import annotations

import difflib
import json
import math
import tomllib
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Literal, TypeVar, cast

from signspot.domain.tracks import FrameShape
from signspot.errors import InputError, one_line
from signspot.learning.clips import ClipOptions, ClipWindow, LandmarkAugmentation
from signspot.media.frames import Augmentation

_LARGEST = 10**9  # of any count: beyond it lies a slip of the keyboard


class _Schedule:
    """A learning rate that is divided by ten after some epochs."""

    __slots__ = ()
    learning_rate: float
    decay_epochs: tuple[int, ...]

    def learning_rate_in(self, epoch: int) -> float:
        """The learning rate of an epoch (of a stage), counted from 0.

        >>> [round(EmbeddingConfig().learning_rate_in(epoch), 9) for epoch in (0, 39, 40, 45)]
        [0.01, 0.01, 0.001, 0.0001]
        """
        return self.learning_rate * 0.1 ** sum(epoch >= decay for decay in self.decay_epochs)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingConfig(_Schedule):
    """Everything that changes what a run of `signspot train embedding` learns; PAPER.md lists the sources."""

    # What is learned from (Paper 3.1, App. C.2)
    loss: Literal["watch-read-lookup", "watch-lookup", "infonce", "classification"] = "watch-read-lookup"
    formulation: Literal["paper", "released"] = "paper"  # of the bags of watch-read-lookup
    anchors: Literal["both", "segment", "dictionary"] = "both"  # of watch-lookup
    segment_background: Literal["each-segment", "each-word"] = "each-segment"  # bags of P(seg-back), deviation D1
    average: Literal["bags", "anchors"] = "bags"  # of the loss: over all bags, or over the anchors' means
    repeats: Literal["rows", "entries"] = "rows"  # an entry that several items show counts for each, or once
    temperature: float = 0.07  # tau of Eq. 1 (Paper 4.3)

    # The head (Paper 3.2, App. C.1)
    hidden_dim: int = 512
    embedding_dim: int = 256
    activation_after_last: Literal["paper", "released"] = "paper"  # deviation D4
    domain_specific: bool = False  # own layers for continuous and dictionary clips (App. B.3)

    # Minibatches (Paper 3.2)
    batch_size: int = 128  # passages; 512 for watch-lookup (App. B.2)
    balanced: bool = True  # one passage per word in a minibatch (App. B.2)
    foreground: Literal["inside", "centre"] = "inside"  # the clip, or only its centre, lies around the label
    foreground_before: int = 20  # frames before the label that a foreground clip may reach
    foreground_after: int = 5
    background_clips: int = 10  # of each passage, outside the labelled window
    min_confidence: float = 0.5  # of the labels (App. B.6)

    # Words (Paper 4.1, 4.2)
    split: Path | None = None  # a split file; without one, all words are trained and tested
    training_words: Literal["all", "train"] = "all"  # all: test words are seen; train: they are unseen
    dictionary: Literal["limited", "full"] = "limited"  # entries of the training words, or of all words (Tab. 3)
    synonyms: Literal["keep", "english", "sign"] = "keep"  # pairs taken out of the negatives (App. B.4)

    # Optimisation (Paper 3.2; momentum and weight decay as the released trainer of the trunk)
    learning_rate: float = 1e-2
    momentum: float = 0.9
    weight_decay: float = 0.0
    epochs: int = 50
    decay_epochs: tuple[int, ...] = (40, 45)  # the learning rate is divided by ten after these
    seed: int = 0  # the paper reports three (App. B.1)

    # Test (Paper 3.2, "Test time")
    test_stride: int = 1  # frames between two windows (App. B.5)
    evaluate_every: int = 1  # epochs

    # The machine
    device: str = "cpu"  # cpu, cuda, cuda:1, mps
    precision: Literal["auto", "float32", "mixed"] = "auto"  # auto: mixed where a GPU computes in bfloat16
    threads: int = 0  # 0: as many as torch chooses; a run continues with as many as it began with

    def __post_init__(self) -> None:
        _refuse_outside(self, 1, _LARGEST, "hidden_dim embedding_dim batch_size epochs test_stride evaluate_every")
        _refuse_outside(self, 0, _LARGEST, "background_clips foreground_before foreground_after seed threads")
        _refuse_outside(self, 0, 1, "min_confidence")
        _refuse_outside(self, 1e-3, 1e3, "temperature")
        _refuse_outside(self, 0, 1e3, "learning_rate weight_decay")
        _refuse_outside(self, 0, 0.9999, "momentum")
        _refuse_run_options(self.decay_epochs, self.device)


def _refuse_outside(config: object, least: float, most: float, names: str) -> None:
    for name in names.split():
        if not least <= (value := getattr(config, name)) <= most:
            raise ValueError(f"{name} = {value} does not lie between {least} and {most}")


def _refuse_run_options(decay_epochs: tuple[int, ...], device: str) -> None:
    if list(decay_epochs) != sorted(set(decay_epochs)) or any(epoch < 1 for epoch in decay_epochs):
        raise ValueError(f"decay_epochs {list(decay_epochs)} do not ascend from 1")
    if device.partition(":")[0] not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device {device!r} is none of cpu, cuda, mps")


# Every option of a training run of the trunk, with the paper's value as its default.
#
# The paper says little about this training and follows "the procedure described in" its reference [BSL-1K] (Paper
# 3.2); where it is silent, the default is that of the released trainer of that work.


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkRunConfig(_Schedule):
    """Everything that changes what a run of `signspot train trunk` learns."""

    # The network
    architecture: Literal["i3d", "s3d", "landmark"] = "i3d"  # Paper 3.2; S3D in App. B.7; landmarks are ours
    width: float = 1.0  # of I3D and S3D: times the channels of every layer
    gated: bool = False  # S3D-G; the paper names S3D (App. B.7)
    landmark_width: int = 256  # of a frame's vector in the landmark encoder
    embedding_dim: int = 1024  # of the landmark encoder; I3D and S3D have 1024 times their width
    initial_model: Path | None = None  # a model of the same architecture to start from, such as the released trunk

    # What it sees (Paper 3.2; released trainer)
    side: int = 256  # pixels, of the scaled frame
    crop: int = 224  # pixels, of what is cut out of it
    keep_aspect: bool = True  # scale the shorter side and cut the middle; False: squash, as the released trainer does
    signer_box: bool = True  # look at the square around the signer, in recordings whose manifest says where that is
    colour_jitter: float = 0.2  # each channel times U(1 - jitter, 1 + jitter)
    scale_jitter: float = 0.1
    flip_probability: float = 0.5  # of pixels and landmarks alike
    rotation_degrees: float = 10.0  # of landmarks, as all that follow
    stretch_jitter: float = 0.1
    speed_jitter: float = 0.2
    hand_dropout: float = 0.1

    # What it learns from (Paper App. C.1)
    sources: Literal["both", "dictionary", "continuous"] = "both"  # Tab. 2, "I3D-both", "-BSLDict", "-BSL1K"
    window_before: int = 20  # frames before an annotation in which a clip lies (App. B.7: "the last 20 frames")
    window_after: int = 0  # 5: the whole tolerance of Paper 4.2
    stage1_confidence: float = 0.5  # of the annotations when learning from them alone
    stage2_confidence: float = 0.8  # and jointly with the dictionary
    dictionary_sampling: Literal["random", "consecutive"] = "random"  # of pixels; consecutive: 6.68 % worse (App. C.1)
    reinitialise_batch_norm: bool = True  # before stage 2; without: 48.09 % instead of 78.94 % (App. C.1)
    domain_specific_batch_norm: bool = False  # in stage 2: 62.73 % (App. C.1)

    # Optimisation (Paper 3.2; released trainer)
    pose_epochs: int = 0  # of regressing the landmarks before stage 1 (App. C.1, "pose distillation")
    stage1_epochs: int = 50
    stage2_epochs: int = 50
    decay_epochs: tuple[int, ...] = (20, 40)  # of each stage: the learning rate is divided by ten after these
    steps_per_epoch: int = 0  # 0: as many as show every clip of the larger source once
    batch_size: int = 4  # Paper 3.2
    optimiser: Literal["sgd", "adamw"] = "sgd"  # adamw: ours, for pose distillation in few steps
    learning_rate: float = 1e-2
    momentum: float = 0.9  # of sgd
    weight_decay: float = 0.0
    batch_norm_momentum: float = 0.01  # released; more for runs of a few hundred steps, whose statistics lag behind
    seed: int = 0
    evaluate_every: int = 1  # epochs; 0: only at the end

    # The machine
    device: str = "cpu"  # cpu, cuda, cuda:1, mps
    precision: Literal["auto", "float32", "mixed"] = "auto"  # auto: mixed (bfloat16) where a GPU computes in it
    threads: int = 0  # 0: as many as torch chooses; a run continues with as many as it began with

    def __post_init__(self) -> None:
        _refuse_outside(self, 1, _LARGEST, "batch_size landmark_width embedding_dim")
        counts = "pose_epochs stage1_epochs stage2_epochs steps_per_epoch evaluate_every threads"
        _refuse_outside(self, 0, _LARGEST, f"{counts} learning_rate weight_decay")
        _refuse_outside(self, 0, 2**32 - 1, "seed")
        _refuse_outside(self, 0, 1, "stage1_confidence stage2_confidence batch_norm_momentum")
        _refuse_outside(self, 0, 0.9999, "momentum")
        _refuse_outside(self, 1e-3, 4, "width")
        _refuse_run_options(self.decay_epochs, self.device)
        if self.architecture == "landmark" and (self.pose_epochs or self.domain_specific_batch_norm):
            raise ValueError("pose_epochs and domain_specific_batch_norm need architecture i3d or s3d")
        if self.gated and self.architecture != "s3d":
            raise ValueError("gated = true needs architecture s3d")
        if self.sources == "both" and self.batch_size % 2:
            raise ValueError(f"batch_size = {self.batch_size} cannot be halved between the two sources")
        if self.domain_specific_batch_norm and self.sources != "both":
            raise ValueError("domain_specific_batch_norm needs both sources")
        # What is made of the options refuses the rest.
        _ = self.frame_shape, self.clip_options, self.augmentation, self.landmark_augmentation

    @property
    def frame_shape(self) -> FrameShape:
        return FrameShape(self.side, self.crop, self.keep_aspect, self.signer_box)

    @property
    def clip_options(self) -> ClipOptions:
        confidences = [self.stage1_confidence] + ([self.stage2_confidence] if self.sources == "both" else [])
        # Landmarks of a dictionary clip are one window already: there is nothing to draw from.
        sampling = "consecutive" if self.architecture == "landmark" else self.dictionary_sampling
        window = ClipWindow(before=self.window_before, after=self.window_after)
        return ClipOptions(window=window, min_confidence=min(confidences), sampling=sampling)

    @property
    def augmentation(self) -> Augmentation:
        names = ("crop", "flip_probability", "colour_jitter", "scale_jitter")
        return Augmentation(**{name: getattr(self, name) for name in names})

    @property
    def landmark_augmentation(self) -> LandmarkAugmentation:
        names = ("rotation_degrees", "stretch_jitter", "speed_jitter", "hand_dropout")
        own = {name: getattr(self, name) for name in names}
        return LandmarkAugmentation(mirror_probability=self.flip_probability, **own)


# Frozen dataclasses of options from and to TOML files, checked strictly.
#
# An unknown key, a value of another type, and a value the dataclass itself refuses (ValueError in `__post_init__`) are
# errors that name the file and the key. Fields may be bool, int, float, str, Literal, Path (relative to the file),
# tuples of these, dataclasses (a table), or any of them `| None` (None: the key is absent).

_MAX_BYTES = 1 << 20  # a file of options is a page of text

_Kind = TypeVar("_Kind")
_CALLED = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


_Origin = tuple[str | Path, Path]  # where a value was written, for messages, and the folder of relative paths


class _Misfit(Exception): ...


def read_config(path: Path, kind: type[_Kind], changes: Sequence[str] = ()) -> _Kind:
    """The options of a TOML file, then `changes` of the form key=value (as in TOML; quotes may be left out)."""
    values = _fields_of(read_table(path), kind, (path, path.parent))
    for change in changes:
        _merge(values, _change(change, kind))
    return _made(kind, values, path)


def as_toml(config: object) -> str:
    """All options of a dataclass, defaults included; `read_config` reads it back."""
    if not is_dataclass(config):
        raise ValueError(f"{type(config).__name__} holds no options")
    plain, tables = [], []
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value):
            tables.append(f"\n[{item.name}]\n{as_toml(value)}")
        elif value is not None:
            plain.append(f"{item.name} = {_written(value)}\n")
    return "".join(plain + tables)


def read_table(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise InputError(path, "is larger than 1 MB", "name a file of options")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})", "name a TOML file of options") from error
    except UnicodeDecodeError as error:
        raise InputError(path, "is not UTF-8 text", "save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"is not valid TOML ({error})", "correct it") from error


def _change(text: str, kind: type) -> dict[str, object]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {text}", "is not of the form key=value", "such as --set epochs=10")
    try:
        held: object = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        held = value.strip()  # a word without quotes
    for name in reversed(key.strip().split(".")):
        held = {name: held}
    return _fields_of(cast("dict[str, object]", held), kind, (f"--set {text}", Path()))


def _merge(values: dict[str, object], changes: dict[str, object]) -> None:
    for name, change in changes.items():
        held = values.get(name)
        if isinstance(held, dict) and isinstance(change, dict):
            _merge(held, change)
        else:
            values[name] = change


def _fields_of(table: dict[str, object], kind: type, origin: _Origin, prefix: str = "") -> dict[str, object]:
    """Values of the right types by field; those of nested dataclasses stay dictionaries until all is merged."""
    hints = typing.get_type_hints(kind)
    known = [item.name for item in fields(kind) if item.init]
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            fix = f"did you mean {prefix}{near[0]}?" if near else f"the options are {', '.join(known)}"
            raise InputError(origin[0], f"{prefix + key!r} is not an option", fix)
        try:
            nested = _dataclass_in(hints[key])
            if nested is not None and isinstance(value, dict):
                values[key] = _fields_of(value, nested, origin, f"{prefix}{key}.")
            else:
                values[key] = _value(value, hints[key], origin)
        except _Misfit as misfit:
            shown = one_line(repr(value))[:60]
            raise InputError(origin[0], f"{prefix}{key} is {shown}, but it takes {misfit}", "correct it") from misfit
    return values


def _made(kind: type[_Kind], values: dict[str, object], path: Path) -> _Kind:
    hints = typing.get_type_hints(kind)
    complete = {
        name: _made(nested, value, path)
        if (nested := _dataclass_in(hints[name])) and isinstance(value, dict)
        else value
        for name, value in values.items()
    }
    try:
        return kind(**complete)
    except ValueError as error:
        raise InputError(path, str(error), "correct this option") from error
    except TypeError as error:  # a field without default is absent
        raise InputError(path, f"lacks options ({str(error).partition(') ')[2]})", "add them") from error


def _value(value: object, hint: object, origin: _Origin) -> object:
    """`value` as the type of its field, or a `_Misfit` that says what the field takes."""
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return _value(value, next(one for one in arguments if one is not type(None)), origin)
    if typing.get_origin(hint) is Literal:
        if not any(value == one and type(value) is type(one) for one in arguments):
            near = difflib.get_close_matches(str(value), [str(one) for one in arguments], n=1)
            raise _Misfit(" or ".join(_written(one) for one in arguments) + (f" (perhaps {near[0]}?)" if near else ""))
        return value
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise _Misfit("a list in brackets")
        hints = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(value) != len(hints):
            raise _Misfit(f"a list of {len(hints)}")
        return tuple(_value(one, each, origin) for one, each in zip(value, hints, strict=True))
    if hint is Path:
        if not isinstance(value, str) or not value or "\0" in value:
            raise _Misfit("the name of a file")
        return (origin[1] / value).absolute()
    if hint is float and type(value) is int:
        value = float(value)
    if type(value) is not hint or (isinstance(value, float) and not math.isfinite(value)):
        raise _Misfit(_CALLED[hint] if isinstance(hint, type) and hint in _CALLED else "a table of options")
    return value


def _dataclass_in(hint: object) -> type | None:
    candidates = (hint, *typing.get_args(hint))
    return next((one for one in candidates if isinstance(one, type) and is_dataclass(one)), None)


def _written(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case tuple() | list():
            return f"[{', '.join(_written(one) for one in value)}]"
        case str() | Path():
            # JSON's escapes are TOML's, but for the one control character JSON leaves alone.
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007F")
        case _:
            return repr(value)
