"""The model a training run leaves: the head, and with it the trunk it was trained on where that is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from signspot.models.checkpoints import Checkpoint, ModelCard, save_checkpoint
from signspot.models.head import Head
from signspot.models.networks import HEAD, describe, state_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelFile:
    """What is known about the model of a run beside its weights."""

    name: str = "embedding"
    trunk: Checkpoint | None = None  # None: the file holds the head alone and cannot embed video
    training_data: str = ""
    created_from: str = ""
    words: tuple[str, ...] = ()  # of the head's classifier, if it has one

    def save(self, path: Path, head: Head) -> None:
        """Write trunk and head as one model, in place of an older one."""
        weights = state_of(None, head)
        if self.trunk is not None:
            trunk = {name: tensor for name, tensor in self.trunk.weights.items() if not name.startswith(f"{HEAD}.")}
            weights = trunk | weights
        save_checkpoint(path, weights, self.card(head), overwrite=True)

    def card(self, head: Head) -> ModelCard:
        """The card of the joint model: the trunk's settings and frames, and the shape of the head."""
        shape = head.config
        trunk = self.trunk.card if self.trunk is not None else None
        trunk_config = trunk.config if trunk is not None else {}
        parts = [part for part in trunk.architecture.split("+") if part != HEAD] if trunk is not None else []
        return ModelCard(
            name=self.name,
            architecture="+".join([*parts, HEAD]),
            config={name: value for name, value in trunk_config.items() if not name.startswith("head_")}
            | describe(None, head),
            preprocessing=trunk.preprocessing if trunk else {},
            vocabulary=self.words if shape.classes else (trunk.vocabulary if trunk else ()),
            training_data=self.training_data or (trunk.training_data if trunk else ""),
            licence=trunk.licence if trunk else "",
            created_from=self.created_from,
        )
