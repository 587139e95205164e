from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from safetensors.torch import load_file

from signspot.learning.config import EmbeddingConfig
from signspot.learning.head import TrainingData, make_setup, new_head, score_head
from signspot.learning.material import Material
from tests.learning.planted import World, planted
from tests.learning.small_runs import run_in

WORLD = World()  # 40 words, half of them never annotated


@dataclass(frozen=True)
class Scores:
    annotated: float  # mAP on the training passages
    unannotated: float  # mAP on passages by other signers, of words that no label ever named
    chance: float


def learned(folder: Path, loss: str, seed: int, data: tuple[Material, Material]) -> Scores:
    train, test = data
    config = EmbeddingConfig(
        loss=loss,  # type: ignore[arg-type]
        hidden_dim=64,
        embedding_dim=32,
        batch_size=20,
        epochs=12,
        decay_epochs=(8,),
        dictionary="full",
        evaluate_every=12,
        threads=1,
        seed=seed,
    )
    setup = make_setup(config, TrainingData(train=train))
    weights = load_file(run_in(folder / loss, config, setup=setup).last)
    head = new_head(config, setup)
    head.load_state_dict({name.removeprefix("mlp."): tensor for name, tensor in weights.items()})
    unannotated = score_head(head, test, WORLD.unannotated)
    return Scores(score_head(head, train, None).mean_ap, unannotated.mean_ap, unannotated.chance_mean_ap)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_reading_subtitles_teaches_words_that_were_never_annotated(tmp_path: Path, seed: int) -> None:
    data = planted(WORLD, seed, n_train=400, n_test=100)
    lookup = learned(tmp_path, "watch-lookup", seed, data)
    reading = learned(tmp_path, "watch-read-lookup", seed, data)
    # Both learn what they are told, and equally well: the problem is not made to fail one of them.
    assert lookup.annotated > 10 * lookup.chance
    assert lookup.annotated == pytest.approx(reading.annotated, abs=0.1)
    assert reading.unannotated > lookup.unannotated + 0.1
    assert reading.unannotated > 3 * reading.chance
