from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from experiments.lib.paper_tables import (
    SCALES,
    Method,
    PaperTable,
    Places,
    RunScores,
    Scale,
    WorldRuns,
    _verdict,
    difference,
    figure_of,
    interval_of,
    joined_scores,
    mean_scores,
    measured,
)

from signspot.errors import FormatError
from signspot.learning.config import TrunkRunConfig
from signspot.learning.head import score_head
from signspot.learning.material import Material
from signspot.world.settings import preset_named
from signspot.world.simulation import World

CONFIGS = Path(__file__).parents[2] / "configs" / "embedding"
TINY = replace(
    preset_named("demo"),
    name="tiny",
    n_words=24,
    n_annotated=20,
    n_test_words=4,
    train_episodes=2,
    test_episodes=1,
    subtitles_per_episode=6,
)
SCALE = Scale(
    name="tiny",
    preset="tiny",
    trunk=TrunkRunConfig(
        architecture="landmark",
        landmark_width=4,
        embedding_dim=8,
        reinitialise_batch_norm=False,
        batch_size=4,
        stage1_epochs=1,
        stage2_epochs=1,
        steps_per_epoch=2,
        threads=1,
        evaluate_every=0,
    ),
    batch_share=0.01,
    hidden_dim=8,
    embedding_dim=4,
    epochs=10,
)
LOOKUP = Method(name="lookup", config="table2-watch-lookup")
STRIDE = Method(name="stride", config="table-a6-stride-8")
TRUNK = Method(name="trunk")


def scores(words: list[int], ap: list[float]) -> RunScores:
    values = np.array(ap, np.float64)
    return RunScores(np.array(words, np.int64), values, values / 2, (values > 0.5).astype(np.float64))


def untold(step: str, done: float, total: float) -> None:
    pass


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other over tiny networks take minutes on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def runs(folder: Path) -> WorldRuns:
    made = WorldRuns(World.of(TINY, 0), SCALE, Places(folder, CONFIGS), untold)
    for method in (TRUNK, LOOKUP):
        made.scores(method, "unseen", 0)
    return made


def test_a_figure_is_the_mean_over_words_of_the_means_over_passages() -> None:
    run = scores([7, 7, 9], [0.0, 1.0, 0.25])
    assert figure_of(run, "mAP") == pytest.approx((0.5 + 0.25) / 2)
    assert figure_of(run, "R@5") == pytest.approx((0.25 + 0.125) / 2)
    assert figure_of(run, "localisation") == pytest.approx(1 / 3)


def test_the_estimate_of_an_interval_is_the_figure() -> None:
    run = scores([1, 1, 2, 3], [0.1, 0.9, 0.4, 0.7])
    for measure in ("mAP", "R@5", "localisation"):
        interval = interval_of(run, measure)
        assert interval.estimate == pytest.approx(figure_of(run, measure))
        assert interval.low is not None and interval.high is not None
        assert interval.low <= interval.estimate <= interval.high


def test_a_cell_is_the_mean_of_its_seeds_and_keeps_each() -> None:
    cell = measured([[scores([1, 2], [0.0, 1.0]), scores([1, 2], [0.5, 1.0])]], "mAP", 0.4)
    assert cell.runs == pytest.approx((0.5, 0.75)) and cell.mean == pytest.approx(0.625) and cell.paper == 0.4


def test_a_word_of_two_worlds_is_two_words() -> None:
    joined = joined_scores([scores([1, 1], [1.0, 1.0]), scores([1], [0.0])])
    assert figure_of(joined, "mAP") == pytest.approx(0.5)


def test_only_seeds_that_all_worlds_have_are_in_a_cell() -> None:
    cell = measured([[scores([1], [1.0]), scores([1], [0.5])], [scores([1], [0.0])]], "mAP", None)
    assert cell.runs == pytest.approx((0.5,))


def test_seeds_of_different_passages_are_not_averaged() -> None:
    with pytest.raises(ValueError, match="different test passages"):
        mean_scores([scores([1, 2], [0, 0]), scores([2, 1], [0, 0])])


def test_a_difference_that_all_passages_share_has_a_narrow_interval_whatever_the_words() -> None:
    rng = np.random.default_rng(0)
    words = list(range(40))
    base = rng.uniform(0, 0.8, 40)
    better, worse = scores(words, list(base + 0.1)), scores(words, list(base))
    interval = interval_of(difference(better, worse), "mAP")
    assert interval.low == pytest.approx(0.1) and interval.high == pytest.approx(0.1)


def test_the_scores_of_a_trunk_are_those_of_its_vectors_as_they_are(runs: WorldRuns, folder: Path) -> None:
    world = World.of(TINY, 0)
    test = Material.read(folder / "tiny-0" / "unseen" / "both" / "test")
    expected = score_head(None, test, tuple(world.test_words))
    assert figure_of(runs.scores(TRUNK, "unseen", 0), "mAP") == pytest.approx(expected.mean_ap)


def test_a_finished_run_is_never_done_twice(runs: WorldRuns, folder: Path) -> None:
    def refused(step: str, done: float, total: float) -> None:
        raise AssertionError(step)

    before = runs.scores(LOOKUP, "unseen", 0)
    again = WorldRuns(World.of(TINY, 0), SCALE, Places(folder, CONFIGS), refused)
    assert again.is_done(LOOKUP, "unseen", 0) and not again.is_done(LOOKUP, "unseen", 1)
    np.testing.assert_array_equal(again.scores(LOOKUP, "unseen", 0).mean_ap, before.mean_ap)


def test_another_stride_at_test_time_needs_no_other_head(runs: WorldRuns, folder: Path) -> None:
    heads = folder / "tiny-0" / "unseen" / "both" / "heads"
    before = {path.name for path in heads.iterdir()}
    runs.scores(STRIDE, "unseen", 0)
    assert {path.name for path in heads.iterdir()} == before


def test_the_trunk_of_an_unseen_column_never_meets_the_test_words(runs: WorldRuns, folder: Path) -> None:
    world = World.of(TINY, 0)
    known = set(_vocabulary(folder / "tiny-0" / "unseen" / "both" / "trunk" / "last.safetensors"))
    assert known == set(world.annotated_words) - set(world.test_words)


def test_english_synonyms_need_wordnet(runs: WorldRuns) -> None:
    assert not runs.can_run(Method(name="english", config="table-a5-english-synonyms"))
    assert runs.can_run(LOOKUP) and runs.can_run(TRUNK)


def test_damaged_scores_are_refused_by_name(runs: WorldRuns, folder: Path, tmp_path: Path) -> None:
    path = next((folder / "tiny-0" / "unseen" / "both" / "scores").glob("trunk.json"))
    content = path.read_bytes()
    path.write_text('{"words": [1]}')
    try:
        with pytest.raises(FormatError, match="holds no scores of a run"):
            runs.scores(TRUNK, "unseen", 0)
    finally:
        path.write_bytes(content)


def test_a_share_of_the_footage_leaves_words_and_test_as_they_are() -> None:
    demo = SCALES["demo"]
    whole, half = demo.world(0), replace(demo, footage_share=0.5).world(0)
    assert half.preset == replace(whole.preset, train_episodes=whole.preset.train_episodes // 2)
    assert half.episodes("train") == whole.episodes("train")[:2] and half.episodes("test") == whole.episodes("test")
    assert [entry.entry_id for entry in half.dictionary_entries()] == [e.entry_id for e in whole.dictionary_entries()]
    first = (world.perform_episode("train-0000").annotations for world in (whole, half))
    assert next(first) == next(first)


def test_a_table_of_another_scale_has_the_verdict_of_that_scale(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("**Verdict.** As in\nthe paper.\n\n**Verdict, paper-quarter.** Less so.\n")
    assert _verdict(tmp_path, "small") == "As in the paper." and _verdict(tmp_path, "paper-quarter") == "Less so."
    assert _verdict(tmp_path, "paper") == "Not judged yet."


def test_a_table_has_two_columns_and_two_measures_unless_it_says_otherwise() -> None:
    table = PaperTable(name="t", title="T", rows=(TRUNK,))
    assert table.columns == ("seen", "unseen") and table.measures == ("mAP", "R@5")


def _vocabulary(model: Path) -> tuple[str, ...]:
    from signspot.models.checkpoints import read_card

    return read_card(model).vocabulary
