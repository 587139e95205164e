from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Entry
from signspot.domain.tracks import FrameShape
from signspot.embedding.model import Reading
from signspot.errors import EnvironmentProblem, InputError
from signspot.learning import trunk as pretrain
from signspot.learning.clips import FrameCache, RecordedClips, dictionary_clips
from signspot.learning.config import TrunkRunConfig
from signspot.learning.runs import Interrupted, RunFolder, SavedState
from signspot.learning.trunk import ClipTest, TrunkControls, TrunkData, TrunkProgress, _Learner, _TrunkEpoch
from signspot.models.checkpoints import build_trunk, load_checkpoint
from signspot.models.embedders import DICTIONARY, embedder_from_checkpoint
from tests.learning.signs import WORDS, moving_hand, signing_hand, whole_clips
from tests.learning.trunk_run import LANDMARKS, PIXELS, data_of, trained
from tests.media.videos import Recipe, make_video

REPOSITORY = Path(__file__).parents[2]


def signs(make: Callable[..., np.ndarray], n: int, n_words: int, seed: int) -> RecordedClips:
    rng = np.random.default_rng(seed)
    labels = [i % n_words for i in range(n)]
    return whole_clips([make(label, rng) for label in labels], labels)


def learned(config: TrunkRunConfig, data: TrunkData, folder: Path) -> list[_TrunkEpoch]:
    epochs: list[_TrunkEpoch] = []

    def note(moment: TrunkProgress) -> None:
        if moment.finished is not None:
            epochs.append(moment.finished)

    trained(config, data, folder, TrunkControls(progress=note))
    return epochs


@pytest.mark.parametrize(
    ("config", "make", "n_words"),
    [
        (TrunkRunConfig(width=0.125, side=32, crop=28, stage1_epochs=9), moving_hand, 2),
        pytest.param(
            TrunkRunConfig(architecture="s3d", width=0.125, side=32, crop=28, stage1_epochs=9),
            moving_hand,
            2,
            marks=pytest.mark.soak,
        ),
        (
            TrunkRunConfig(architecture="landmark", landmark_width=64, embedding_dim=256, stage1_epochs=16),
            signing_hand,
            3,
        ),
    ],
    ids=["i3d", "s3d", "landmark"],
)
def test_a_planted_motion_is_learned(
    config: TrunkRunConfig, make: Callable[..., np.ndarray], n_words: int, tmp_path: Path
) -> None:
    # Up and down are the same pictures in opposite order: no single frame tells them apart.
    config = replace(config, sources="continuous", batch_size=8, batch_norm_momentum=0.2, decay_epochs=(14,))
    config = replace(config, learning_rate=0.02 if config.architecture == "landmark" else 0.01, evaluate_every=0)
    held_out = ClipTest("held out", signs(make, 30, n_words, seed=1))
    data = TrunkData(vocabulary=WORDS, continuous=signs(make, 48, n_words, seed=0), tests=(held_out,))
    epochs = learned(config, data, tmp_path / "run")
    assert len(epochs) == config.stage1_epochs
    assert epochs[-1].loss < 0.7 * epochs[0].loss
    assert epochs[-1].tests["held out"].class_top1 >= 0.8
    assert not epochs[0].tests


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trunk") / "run"
    torch.set_num_threads(1)
    trained(LANDMARKS, data_of(LANDMARKS), folder)
    return folder


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.learning.trunk_run", str(folder)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


def killed_after(folder: Path, n_steps: int) -> None:
    """Train, and SIGKILL the process when it has told of `n_steps`, wherever it is by then."""
    with start(folder) as process:
        assert process.stdout is not None
        for _ in range(n_steps):
            process.stdout.readline()
        process.kill()


def assert_killed_runs_end_alike(kills: list[int], uninterrupted: Path, folder: Path) -> None:
    for n_steps in kills:
        killed_after(folder, n_steps)
    with start(folder) as process:
        process.communicate(timeout=200)
    assert process.returncode == 0
    assert (folder / "last.safetensors").read_bytes() == (uninterrupted / "last.safetensors").read_bytes()
    assert (folder / "curves.jsonl").read_text() == (uninterrupted / "curves.jsonl").read_text()


def test_a_killed_run_continues_to_the_same_bits(uninterrupted: Path, tmp_path: Path) -> None:
    assert_killed_runs_end_alike([5], uninterrupted, tmp_path / "run")


def interrupts_once(made: Callable[..., object], call: int) -> Callable[..., object]:
    """A function that does its work, and at one call is then interrupted."""
    calls = iter(range(1, 1000))

    def interrupted(*given: object, **named: object) -> object:
        result = made(*given, **named)
        if next(calls) == call:
            raise KeyboardInterrupt
        return result

    return interrupted


@pytest.mark.parametrize(
    ("where", "name", "call"),
    [(_Learner, "forward", 2), (_Learner, "forward", 8), (torch.optim.SGD, "step", 5), (pretrain, "accuracy_of", 1)],
    ids=["in a step", "in a later stage", "between weights", "while it is tested"],
)
def test_a_run_interrupted_anywhere_continues_to_the_same_bits(
    tmp_path: Path, where: object, name: str, call: int
) -> None:
    torch.set_num_threads(1)
    data = data_of(PIXELS)
    trained(PIXELS, data, tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(where, name, interrupts_once(getattr(where, name), call))
        trained(PIXELS, data, tmp_path / "run")
    state = SavedState.load(tmp_path / "run" / "state.safetensors")
    assert state.facts["stage"] or state.facts["step"]
    trained(PIXELS, data, tmp_path / "run")
    for file in ("last.safetensors", "curves.jsonl"):
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


@pytest.mark.soak
def test_a_run_killed_at_any_moment_continues_to_the_same_bits(uninterrupted: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng()
    for attempt in range(8):
        kills = rng.integers(0, 7, 4).tolist()
        assert_killed_runs_end_alike(kills, uninterrupted, tmp_path / f"run {attempt}")


def test_all_stages_stopped_after_every_second_step_end_as_if_never_stopped(tmp_path: Path) -> None:
    data = data_of(PIXELS)
    whole = trained(PIXELS, data, tmp_path / "whole", TrunkControls(workers=2))
    stops = 0
    while True:
        torch.manual_seed(stops)  # what others draw is nothing to this run
        every_second = cycle((False, True))
        try:
            controls = TrunkControls(stop=partial(next, every_second), workers=0)
            card = trained(PIXELS, data, tmp_path / "parts", controls)
            break
        except Interrupted:
            stops += 1
    assert stops == 4  # nine steps in three stages
    assert card == whole
    curves = [(tmp_path / name / "curves.jsonl").read_text() for name in ("whole", "parts")]
    assert curves[0] == curves[1]
    assert [json.loads(line)["stage"] for line in curves[0].splitlines()] == ["pose", "stage 1", "stage 2"]


def test_training_leaves_the_generators_of_torch_and_its_settings_alone(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    trained(replace(LANDMARKS, stage2_epochs=0, stage1_epochs=1, threads=2), data_of(LANDMARKS), tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == 1
    assert not torch.are_deterministic_algorithms_enabled()


def test_another_seed_gives_another_trunk(uninterrupted: Path, tmp_path: Path) -> None:
    card = trained(replace(LANDMARKS, seed=1), data_of(LANDMARKS), tmp_path / "run")
    assert card.weights_sha256 != load_checkpoint(uninterrupted / "last.safetensors").card.weights_sha256


def test_a_run_starts_from_the_model_it_is_given(uninterrupted: Path, tmp_path: Path) -> None:
    given = uninterrupted / "last.safetensors"
    config = replace(LANDMARKS, initial_model=given, learning_rate=0.0, stage2_epochs=0, stage1_epochs=1)
    card = trained(config, data_of(config), tmp_path / "run")
    assert card.weights_sha256 == load_checkpoint(given).card.weights_sha256


def test_a_trunk_is_trained_from_the_videos_of_a_dictionary(tmp_path: Path) -> None:
    config = replace(PIXELS, sources="dictionary", domain_specific_batch_norm=False, pose_epochs=0, batch_size=3)
    entries = []
    for word in WORDS:
        video = make_video(tmp_path / f"{word}.mp4", Recipe(count=24, width=64, height=48))
        entries.append(Entry(entry_id=word, word=word, video=video))
    cache = FrameCache(tmp_path / "frames", config.frame_shape, Reading(isolated=False))
    found = dictionary_clips(entries, WORDS, cache, config.clip_options)
    data = TrunkData(
        vocabulary=WORDS, dictionary=found.source, tests=(ClipTest("dictionary", found.source, DICTIONARY),)
    )
    epochs = learned(config, data, tmp_path / "run")
    assert [epoch.stage for epoch in epochs] == ["stage 2"]
    assert epochs[0].tests["dictionary"].n_items == 3


def test_the_model_card_says_what_the_trunk_is(uninterrupted: Path) -> None:
    checkpoint = load_checkpoint(uninterrupted / "last.safetensors")
    card = checkpoint.card
    assert (card.architecture, card.vocabulary, card.training_data) == ("landmark", WORDS.words, "made-up signs")
    assert card.created_from == "signspot train trunk: stage 1 of 3 epochs, stage 2 of 3 epochs; seed 0"
    trunk = build_trunk("landmark", card.config)
    trunk.load_state_dict(checkpoint.part("landmark"))
    assert trunk.logits.weight.shape == (3, 32)  # type: ignore[union-attr]


def test_a_trunk_of_pixels_embeds_video_from_its_file(tmp_path: Path) -> None:
    config = replace(
        PIXELS, side=32, keep_aspect=True, pose_epochs=0, stage1_epochs=0, domain_specific_batch_norm=False
    )
    card = trained(config, data_of(config), tmp_path / "run")
    model = embedder_from_checkpoint(tmp_path / "run" / "last.safetensors", backend="torch")
    assert model.frame_shape == config.frame_shape == FrameShape(32, 24, keep_aspect=True, signer_box=True)
    assert card.preprocessing["mean"] == 0.5
    vectors = model.embed(np.zeros((1, 16, 24, 24, 3), np.uint8))
    assert vectors.shape == (1, model.dim)


def test_a_loss_that_is_no_number_stops_and_names_the_clips(tmp_path: Path) -> None:
    data = data_of(LANDMARKS)
    config = replace(LANDMARKS, learning_rate=1e9)
    with pytest.raises(InputError, match=r"the loss of stage 1, step .* is no number.*bad_batch.json lists its clips"):
        trained(config, data, tmp_path / "run")
    told = json.loads((tmp_path / "run" / "bad_batch.json").read_text())
    assert told["stage"] == "stage 1"
    assert len(told["clips"]) == 4 and all(name.startswith("recording ") for name in told["clips"])
    assert not (tmp_path / "run" / "last.safetensors").exists()


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    data = data_of(LANDMARKS)
    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        trained(LANDMARKS, data, folder, TrunkControls(stop=lambda: True))
    path = RunFolder(folder).state
    state = SavedState.load(path)
    for tensors, facts in (
        ({}, state.facts),
        (state.tensors, {}),
        (state.tensors, state.facts | {"stage": 9}),
        (state.tensors, state.facts | {"step": 10**6}),
        (state.tensors, state.facts | {"epochs": [{"stage": "stage 1"}]}),
    ):
        SavedState(tensors, facts).save(path)
        with pytest.raises(InputError, match="does not fit this run"):
            trained(LANDMARKS, data, folder)


def test_a_finished_run_is_not_trained_again(uninterrupted: Path) -> None:
    before = (uninterrupted / "last.safetensors").read_bytes()
    told: list[TrunkProgress] = []
    trained(LANDMARKS, data_of(LANDMARKS), uninterrupted, TrunkControls(progress=told.append))
    assert not told
    assert (uninterrupted / "last.safetensors").read_bytes() == before


def test_a_machine_without_the_device_is_told_so(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    with pytest.raises(EnvironmentProblem, match=r"cannot be used here.*choose device = cpu"):
        trained(replace(LANDMARKS, device="cuda"), data_of(LANDMARKS), tmp_path / "run")


def test_mixed_precision_learns_too(tmp_path: Path) -> None:
    config = replace(LANDMARKS, precision="mixed", stage2_epochs=0)
    card = trained(config, data_of(config), tmp_path / "run")
    plain = trained(replace(config, precision="float32"), data_of(config), tmp_path / "plain")
    assert card.weights_sha256 != plain.weights_sha256
    weights = load_checkpoint(tmp_path / "run" / "last.safetensors").weights
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
