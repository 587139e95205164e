"""Networks by the names that model cards and checkpoints use: which there are, how to build one from its card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache

import torch
from torch import Tensor, nn

from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, I3DConfig
from signspot.models.landmark_encoder import LandmarkEncoder, LandmarkEncoderConfig
from signspot.models.s3d import S3D, S3DConfig

Setting = str | int | float | bool | None
Weights = dict[str, Tensor]  # float32, or int64 for counters; all finite
Trunk = I3D | S3D | LandmarkEncoder

HEAD = "mlp"  # as in the released checkpoints
_TRUNKS = {"i3d": (I3D, I3DConfig), "s3d": (S3D, S3DConfig), "landmark": (LandmarkEncoder, LandmarkEncoderConfig)}
TRUNKS = tuple(_TRUNKS)
PARTS = (*TRUNKS, HEAD)
_HEAD_PREFIX = "head_"  # of the head's settings; those of the trunk have none


def name_of(trunk: Trunk) -> str:
    """What cards call this kind of trunk."""
    return next(name for name, (kind, _) in _TRUNKS.items() if isinstance(trunk, kind))


def build_trunk(name: str, config: Mapping[str, Setting]) -> Trunk:
    """The trunk a card describes, with fresh weights."""
    kind, config_kind = _TRUNKS[name]
    known = {field.name: config[field.name] for field in fields(config_kind) if field.name in config}
    trunk: Trunk = kind(config_kind(**known))
    return trunk


def build_head(config: Mapping[str, Setting]) -> Head:
    """The head a card describes, with fresh weights."""
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
    """The weights of both, under the names of a checkpoint."""
    named: list[tuple[str, nn.Module]] = [] if trunk is None else [(name_of(trunk), trunk)]
    if head is not None:
        named.append((HEAD, head))
    return {f"{part}.{name}": tensor for part, network in named for name, tensor in network.state_dict().items()}


def layout(part: str, config: Mapping[str, Setting]) -> dict[str, tuple[int, ...]]:
    """Every name and shape in the state of the network a card describes; nothing is allocated."""
    return _layout(part, tuple(sorted(config.items())))


@cache
def _layout(part: str, config: tuple[tuple[str, Setting], ...]) -> dict[str, tuple[int, ...]]:
    with torch.device("meta"):
        network = build_head(dict(config)) if part == HEAD else build_trunk(part, dict(config))
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
