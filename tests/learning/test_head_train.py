from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from signspot.errors import EnvironmentProblem, InputError
from signspot.learning.batches import Minibatch
from signspot.learning.config import EmbeddingConfig
from signspot.learning.head import Controls, HeadProgress, _BatchStream, new_head, score_head, train_head
from signspot.learning.losses import step_generator
from signspot.learning.runs import Interrupted, RunFolder, SavedState
from signspot.models.head import Head
from tests.learning.small_runs import SMALL, run_in, small_setup

ROOT = Path(__file__).parents[2]


def models_of(run: RunFolder) -> tuple[bytes, bytes]:
    return run.last.read_bytes(), run.best.read_bytes()


def curve(run: RunFolder) -> list[dict[str, object]]:
    """What curves.jsonl says, but for how long it took."""
    rows = [json.loads(line) for line in run.curves.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that nothing disturbed."""
    return run_in(tmp_path_factory.mktemp("whole") / "run")


@dataclass(frozen=True)
class SomeBatches:
    """Minibatches of a setup, changed or counted on their way."""

    inner: _BatchStream
    last: Minibatch

    @property
    def steps_per_epoch(self) -> int:
        return self.inner.steps_per_epoch

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[Minibatch]:
        for step, batch in enumerate(self.inner.epoch(epoch, first_step), first_step):
            yield self.last if (epoch, step) == (1, 2) else batch


def test_training_is_sgd_with_momentum_on_the_loss_of_each_batch(tmp_path: Path) -> None:
    config = replace(SMALL, epochs=2, decay_epochs=(1,), weight_decay=0.01)
    run = run_in(tmp_path / "run", config)
    setup = small_setup(config)
    head = new_head(config, setup)
    # SGD by hand, as its textbook says it: v = 0.9 v + (g + decay w), w = w - rate v.
    velocity = [torch.zeros_like(p) for p in head.parameters()]
    for epoch, rate in ((0, 1e-2), (1, 1e-3)):
        for step in range(setup.batches.steps_per_epoch):
            batch = setup.batches.minibatch(epoch, step)  # type: ignore[attr-defined]
            loss = setup.objective.loss(head, batch, Controls().team, step_generator(0, epoch, step))
            gradients = torch.autograd.grad(loss, list(head.parameters()))
            with torch.no_grad():
                for v, p, g in zip(velocity, head.parameters(), gradients, strict=True):
                    v.mul_(0.9).add_(g + 0.01 * p)
                    p.sub_(rate * v)
    learned = load_file(run.last)
    for name, tensor in head.state_dict().items():
        torch.testing.assert_close(learned[f"mlp.{name}"], tensor, rtol=1e-4, atol=1e-6)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(whole: RunFolder, tmp_path: Path) -> None:
    assert models_of(run_in(tmp_path / "again")) == models_of(whole)
    assert curve(RunFolder(tmp_path / "again")) == curve(whole)
    assert models_of(run_in(tmp_path / "other", replace(SMALL, seed=1))) != models_of(whole)


@pytest.mark.parametrize("stop_after", [1, 5, 6, 7, 17])
def test_a_run_that_is_stopped_and_continued_ends_with_the_same_bits(
    whole: RunFolder, tmp_path: Path, stop_after: int
) -> None:
    steps = iter(range(1, 100))
    with pytest.raises(Interrupted):
        run_in(tmp_path / "run", controls=Controls(stop=lambda: next(steps) == stop_after))
    run = run_in(tmp_path / "run", start="resume")
    assert models_of(run) == models_of(whole)
    assert curve(run) == curve(whole)


@pytest.mark.parametrize(
    ("name", "call", "saved"),
    [("signspot.models.head.Head.forward", 12, 1), ("signspot.learning.head.score_head", 2, 12)],
)
def test_a_run_interrupted_anywhere_continues_to_the_same_bits(
    whole: RunFolder, tmp_path: Path, name: str, call: int, saved: int
) -> None:
    calls = iter(range(1, 1000))
    original = score_head if name.endswith("score_head") else Head.forward

    def interrupted(*given: Any, **named: Any) -> Any:
        result = original(*given, **named)
        if next(calls) == call:
            raise KeyboardInterrupt
        return result

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(name, interrupted)
        run_in(tmp_path / "run")
    facts = SavedState.load(tmp_path / "run" / "state.safetensors").facts
    assert 6 * facts["epoch"] + facts["step"] >= saved  # type: ignore[operator]
    run = run_in(tmp_path / "run", start="resume")
    assert models_of(run) == models_of(whole)
    assert curve(run) == curve(whole)


@pytest.mark.parametrize("loss", ["watch-lookup", "infonce", "classification"])
def test_every_loss_continues_to_the_bit(tmp_path: Path, loss: str) -> None:
    config = replace(SMALL, loss=loss, epochs=2, domain_specific=loss == "watch-lookup")  # type: ignore[arg-type]
    undisturbed = run_in(tmp_path / "whole", config)
    steps = iter(range(100))
    with pytest.raises(Interrupted):
        run_in(tmp_path / "run", config, Controls(stop=lambda: next(steps) == 7))
    assert models_of(run_in(tmp_path / "run", config, start="resume")) == models_of(undisturbed)


def check_kills(folder: Path, kills: int, seed: int) -> None:
    command = [sys.executable, "-m", "tests.learning.small_runs", str(folder), str(kills), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n_runs, n_kills = map(int, done.stdout.split())
    assert n_kills == kills
    undisturbed = RunFolder(folder / "whole")
    for number in range(n_runs):
        run = RunFolder(folder / str(number))
        assert models_of(run) == models_of(undisturbed)
        assert curve(run) == curve(undisturbed)
        assert not list(run.path.glob(".signspot-*"))


def test_killed_at_any_moment_training_continues_to_the_same_bits(tmp_path: Path) -> None:
    check_kills(tmp_path, kills=2, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_fifty_kills_leave_the_same_bits(tmp_path: Path) -> None:
    check_kills(tmp_path, kills=50, seed=2)


def test_a_state_is_saved_inside_an_epoch_when_the_time_has_come(tmp_path: Path) -> None:
    ticks = iter(range(10**6))
    seen: list[bool] = []
    state = tmp_path / "run" / "state.safetensors"

    def look(moment: HeadProgress) -> None:
        seen.append(state.exists())
        if len(seen) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in(tmp_path / "run", controls=Controls(save_seconds=6, clock=lambda: float(next(ticks)), progress=look))
    assert seen == [False, False, False, True]


def test_a_complete_run_is_not_trained_again(whole: RunFolder) -> None:
    before = {path: path.stat().st_mtime_ns for path in (whole.last, whole.best, whole.state, whole.results)}
    run_in(whole.path, start="resume")
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_loss_that_is_no_number_stops_the_run_and_names_its_batch(tmp_path: Path) -> None:
    setup = small_setup()
    bad = setup.batches.minibatch(1, 2)  # type: ignore[attr-defined]
    bad = replace(bad, segments=torch.where(bad.segment_item[:, None] == 3, math.nan, bad.segments))
    run = RunFolder(tmp_path / "run")
    with pytest.raises(InputError, match=r"loss of epoch 2, step 3 has no number: bad_batch\.json lists") as caught:
        run_in(run.path, setup=replace(setup, batches=SomeBatches(setup.batches, bad)))
    assert "\n" not in str(caught.value)
    described = json.loads(run.bad_batch.read_text())
    assert (described["epoch"], described["step"]) == (1, 2)
    assert [one["passage"] for one in described["passages"]] == list(bad.passages)
    assert described["passages"][0]["name"] == setup.passage_names[bad.passages[0]]
    assert all(torch.isfinite(tensor).all() for tensor in load_file(run.state).values())
    # What was saved before it is sound: with good data the run goes on from there.
    assert run_in(run.path, start="resume").read_results() is not None


def test_a_gradient_that_is_no_number_never_reaches_the_weights(tmp_path: Path) -> None:
    setup = small_setup()

    class Steep:
        def loss(self, head: Head, batch: Minibatch, *_: object) -> Tensor:
            row = next(head.parameters())[0]
            return torch.sqrt((row * 0.0).sum()) + 1.0  # 1, with a gradient of infinity times zero

    # At the very first step: one step later the weights, and a state saved between, would hold it already.
    steep = replace(setup, objective=Steep())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="loss of epoch 1, step 1 has no number"):
        run_in(tmp_path / "run", controls=Controls(save_seconds=0.0), setup=steep)
    assert not (tmp_path / "run" / "state.safetensors").exists()


def test_a_learning_rate_far_too_high_ends_in_a_clear_error_or_in_numbers(tmp_path: Path) -> None:
    config = replace(SMALL, learning_rate=1e3, momentum=0.99, loss="classification", epochs=20)
    with pytest.raises(InputError, match="lower learning_rate"):
        run_in(tmp_path / "run", config)


def test_the_best_model_is_the_one_that_scored_highest(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run", replace(SMALL, epochs=6, decay_epochs=(), learning_rate=0.2))
    rows = curve(run)
    best = max(range(len(rows)), key=lambda epoch: (float(str(rows[epoch]["mean_ap"])), -epoch))
    config = replace(SMALL, epochs=best + 1, decay_epochs=(), learning_rate=0.2)
    assert load_file(run_in(tmp_path / "short", config).last).keys() == load_file(run.best).keys()
    for name, tensor in load_file(tmp_path / "short" / "last.safetensors").items():
        assert torch.equal(tensor, load_file(run.best)[name])
    results = run.read_results()
    assert results is not None
    assert results["best"]["epoch"] == best  # type: ignore[index]


def test_the_scores_of_the_curve_are_those_of_the_saved_model(whole: RunFolder) -> None:
    setup = small_setup()
    head = new_head(SMALL, setup)
    head.load_state_dict({name.removeprefix("mlp."): tensor for name, tensor in load_file(whole.last).items()})
    assert setup.test is not None
    scores = score_head(head, setup.test, None)
    assert curve(whole)[-1]["mean_ap"] == pytest.approx(scores.mean_ap, abs=1e-9)


def test_scores_are_taken_as_often_as_asked_and_at_the_end(tmp_path: Path) -> None:
    rows = curve(run_in(tmp_path / "run", replace(SMALL, epochs=5, decay_epochs=(), evaluate_every=2)))
    assert [row["mean_ap"] is not None for row in rows] == [False, True, False, True, True]


def test_without_a_test_set_the_last_model_is_kept_as_the_best(tmp_path: Path) -> None:
    run = run_in(tmp_path / "run", setup=replace(small_setup(), test=None))
    assert run.last.read_bytes() == run.best.read_bytes()


def test_progress_tells_the_step_the_loss_and_the_time_left(tmp_path: Path) -> None:
    ticks = iter(range(10**6))
    seen: list[HeadProgress] = []
    run_in(tmp_path / "run", controls=Controls(progress=seen.append, clock=lambda: float(next(ticks))))
    steps = [moment for moment in seen if moment.finished is None]
    assert [(moment.epoch, moment.step) for moment in steps] == [(e, s) for e in range(3) for s in range(1, 7)]
    assert steps[-1].seconds_left == 0
    assert all(a.seconds_left > 0 for a in steps[:-1])
    finished = [moment.finished for moment in seen if moment.finished is not None]
    assert [row.loss for row in finished] == [row["loss"] for row in curve(RunFolder(tmp_path / "run"))]
    assert steps[5].loss == finished[0].loss


def test_a_device_that_is_not_there_is_an_error_of_the_machine(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a graphics card")
    with pytest.raises(EnvironmentProblem, match="cuda: cannot be used here"):
        run_in(tmp_path / "run", replace(SMALL, device="cuda"))


def test_mixed_precision_learns_about_the_same(whole: RunFolder, tmp_path: Path) -> None:
    rows = curve(run_in(tmp_path / "run", replace(SMALL, precision="mixed")))
    for mixed, exact in zip(rows, curve(whole), strict=True):
        assert mixed["loss"] == pytest.approx(exact["loss"], rel=0.05)
    assert rows != curve(whole)


def test_a_run_continues_with_as_many_threads_as_it_began_with(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    config = replace(SMALL, threads=0)
    steps = iter(range(100))
    used: set[int] = set()
    torch.set_num_threads(1)
    try:
        with pytest.raises(Interrupted):
            run_in(tmp_path / "run", config, Controls(stop=lambda: next(steps) == 3))
        torch.set_num_threads(2)
        run_in(tmp_path / "run", config, Controls(progress=lambda _: used.add(torch.get_num_threads())), start="resume")
        assert used == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_state_of_another_network_is_refused(whole: RunFolder, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.state.write_bytes(whole.state.read_bytes())
    config = replace(SMALL, hidden_dim=8)
    with pytest.raises(InputError, match="does not fit this run"):
        train_head(config, small_setup(config), run)


def test_the_draws_of_a_step_depend_on_nothing_but_its_place() -> None:
    def draw(*place: int) -> list[float]:
        return torch.rand(4, generator=step_generator(*place)).tolist()

    assert draw(0, 3, 5) == draw(0, 3, 5)
    places = [(seed, epoch, step) for seed in range(3) for epoch in range(3) for step in range(3)]
    assert len({tuple(draw(*place)) for place in places}) == len(places)


def test_a_config_says_which_head_is_made() -> None:
    config: EmbeddingConfig = replace(SMALL, domain_specific=True, activation_after_last="released")
    shape = new_head(config, small_setup(config)).config
    assert (shape.domains, shape.activation_after_last, shape.classes) == (2, "released", None)
    config = replace(SMALL, loss="classification")
    assert new_head(config, small_setup(config)).config.classes == 16
