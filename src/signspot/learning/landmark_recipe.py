"""How the shipped landmark model is trained: two teachers that differ in what they see, then one student of both.

The student's head is left behind: signs are compared by its trunk (see `landmark_projection`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.words import Vocabulary, Word
from signspot.learning.landmark_projection import ProjectionConfig, compared_by_trunk
from signspot.learning.landmark_training import (
    LandmarkLesson,
    LandmarkNetworks,
    LandmarkTrainingConfig,
    Step,
    train_landmark_model,
)
from signspot.models.checkpoints import ModelCard, load_checkpoint, networks_of, save_checkpoint
from signspot.models.landmark_encoder import LandmarkEncoder
from signspot.models.networks import describe, state_of

ARCHITECTURE = "landmark+mlp"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The trainings, one after the other."""

    teachers: tuple[LandmarkTrainingConfig, ...] = (
        LandmarkTrainingConfig(seed=0),
        LandmarkTrainingConfig(words_per_batch=48, made_up=0.25, synthetic=0.35, seed=1),
    )
    student: LandmarkTrainingConfig = LandmarkTrainingConfig(
        steps=3000, words_per_batch=48, fall=0.7, made_up=0.45, synthetic=0.2, seed=2
    )
    projection: ProjectionConfig = ProjectionConfig()

    @property
    def n_steps(self) -> int:
        """Steps in all."""
        return sum(config.steps for config in (*self.teachers, self.student))

    def __str__(self) -> str:
        counts = " and ".join(f"{config.steps} (seed {config.seed})" for config in self.teachers)
        student = f"{self.student.steps} steps (seed {self.student.seed})"
        return f"teachers of {counts} steps, then {student}, compared by the trunk"


def train_by_recipe(
    lesson: LandmarkLesson, folder: Path, told: Callable[[Step], None] = lambda step: None, recipe: Recipe = Recipe()
) -> LandmarkNetworks:
    """Train the model; all networks stay in `folder`, and those that lie there are not trained again."""
    folder.mkdir(parents=True, exist_ok=True)
    teachers = []
    for number, config in enumerate(recipe.teachers, start=1):
        teachers.append(_trained(folder / f"teacher-{number}.safetensors", lesson, config, told))
    taught = LandmarkLesson(lesson.signs, lesson.synthetic, teachers)
    student = _trained(folder / "student.safetensors", taught, recipe.student, told)
    return compared_by_trunk(student, lesson, recipe.student, recipe.projection)


def model_card(networks: LandmarkNetworks, *, name: str, created_from: str) -> ModelCard:
    """What is known of a landmark model by itself."""
    return ModelCard(
        name=name,
        architecture=ARCHITECTURE,
        config=describe(networks.trunk, networks.head),
        preprocessing={"frame_rate": 25, "clip_length": 16, "unit": "picture heights"},
        vocabulary=tuple(networks.vocabulary),
        created_from=created_from,
    )


def _trained(
    path: Path, lesson: LandmarkLesson, config: LandmarkTrainingConfig, told: Callable[[Step], None]
) -> LandmarkNetworks:
    """The networks of a file, which a training leaves there where it does not exist."""
    if not path.is_file():
        networks = train_landmark_model(lesson, config, told)
        card = model_card(networks, name=path.stem, created_from=f"{config.steps} steps with seed {config.seed}")
        save_checkpoint(path, state_of(networks.trunk, networks.head), card)
    checkpoint = load_checkpoint(path)
    trunk, head = networks_of(checkpoint)
    if not isinstance(trunk, LandmarkEncoder) or head is None:
        raise ValueError(f"{path} holds no landmark model")
    vocabulary = Vocabulary.of(Word(word) for word in checkpoint.card.vocabulary)
    return LandmarkNetworks(trunk.eval(), head.eval(), vocabulary)
