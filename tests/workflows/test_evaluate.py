from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from signspot.errors import InputError, OutputExists
from signspot.evaluation.measures import BootstrapOptions
from signspot.learning.head import TrainingData, make_setup, score_head
from signspot.learning.material import Material, WordSplit
from signspot.learning.runs import RunFolder
from signspot.models.checkpoints import HEAD, build_head, load_checkpoint
from signspot.workflows.evaluate import (
    Evaluation,
    EvaluationRequest,
    ProtocolChoice,
    TestFiles,
    evaluate,
    evaluate_challenge,
)
from tests.learning.planted import planted
from tests.learning.small_runs import SMALL, WORLD, run_in

FEW = BootstrapOptions(draws=20)
SPLIT = WordSplit(WORLD.annotated, WORLD.unannotated, 0, "by hand")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Test material whose passages name videos and differ in confidence, a corpus, a split and a run."""
    folder = tmp_path_factory.mktemp("evaluate")
    train, material = planted(WORLD, seed=0, n_train=24, n_test=40)
    names = tuple(f"video{number % 10} at {number}.000 s, word at frame 9" for number in range(40))
    confidence = np.where(np.arange(40) % 4 == 0, 0.6, 0.95).astype(np.float32)
    passages = replace(material.passages, names=names, confidence=confidence)
    replace(material, passages=passages).write(folder / "test")
    SPLIT.write(folder / "split.json")
    (folder / "corpus").mkdir()
    rows = "".join(f"video{number}.mp4,signer{number % 3}\n" for number in range(10))
    for number in range(10):
        (folder / "corpus" / f"video{number}.mp4").touch()
    (folder / "corpus" / "corpus.csv").write_text(f"video,signer\n{rows}")
    config = replace(SMALL, epochs=1, decay_epochs=(), training_words="train", split=folder / "split.json")
    run_in(folder / "run", config, setup=make_setup(config, TrainingData(train=train, split=SPLIT)))
    return folder


@pytest.fixture(scope="module")
def written(folder: Path) -> tuple[Evaluation, Path]:
    """The evaluation of the run, and the folder it was written to."""
    scored = evaluate(asked(folder, str(folder / "run"), spotting=True))
    scored.write(folder / "out")
    return scored, folder / "out"


def asked(folder: Path, model: str, **changes: object) -> EvaluationRequest:
    files = TestFiles(material=folder / "test")
    request = EvaluationRequest(model=model, files=files, protocol=ProtocolChoice(min_confidence=0), bootstrap=FEW)
    return replace(request, **changes)  # type: ignore[arg-type]


def by_name(evaluation: Evaluation) -> dict[str, float]:
    return {measure.name: measure.value for measure in evaluation.measures}


def material_of(folder: Path) -> Material:
    return Material.read(folder / "test")


@pytest.mark.parametrize("choice", [{}, {"stride": 8}, {"dictionary_words": "full"}])
def test_truth_scores_one_hundred_per_cent_in_everything(folder: Path, choice: dict[str, object]) -> None:
    protocol = ProtocolChoice(min_confidence=0, **choice)  # type: ignore[arg-type]
    scored = evaluate(asked(folder, "truth", protocol=protocol, spotting=True))
    assert by_name(scored) == pytest.approx(dict.fromkeys(by_name(scored), 1.0))
    assert scored.spotting is not None and scored.spotting.recall_at(0.0) == 1.0


def test_random_vectors_score_chance(folder: Path) -> None:
    found = [evaluate(asked(folder, "random", seed=seed, bootstrap=BootstrapOptions(draws=1))) for seed in range(10)]
    for name in ("mAP", "R@5", "localisation"):
        values = np.array([by_name(one)[name] for one in found])
        chance = next(measure.chance for measure in found[0].measures if measure.name == name)
        assert chance is not None and abs(values.mean() - chance) < 4 * values.std(ddof=1) / np.sqrt(len(values))
    assert by_name(found[0]) == by_name(evaluate(asked(folder, "random", seed=0)))


@pytest.mark.parametrize("stride", [1, 8])
def test_a_run_scores_what_training_says_of_its_last_model(folder: Path, stride: int) -> None:
    protocol = ProtocolChoice(name="unseen", min_confidence=0, stride=stride)
    scored = evaluate(asked(folder, str(folder / "run"), protocol=protocol))
    learned = load_checkpoint(RunFolder(folder / "run").last)
    head = build_head(learned.card.config)
    head.load_state_dict(learned.part(HEAD))
    expected = score_head(head.eval(), material_of(folder), WORLD.unannotated, stride=stride)
    assert by_name(scored)["mAP"] == pytest.approx(expected.mean_ap, abs=1e-9)
    assert by_name(scored)["R@5"] == pytest.approx(expected.recall_at_5, abs=1e-9)
    assert by_name(scored)["localisation"] == expected.localisation
    assert scored.scores.found_frame.tolist() == expected.found_frame.tolist()
    assert scored.paper is not None and scored.paper.name.startswith("Table 3")  # it read the full dictionary
    assert scored.table_rows()[0][-1] == "15.4%"


def test_the_full_dictionary_is_looked_up_when_asked_for(folder: Path) -> None:
    limited, full = (
        evaluate(asked(folder, "random", protocol=ProtocolChoice(min_confidence=0, dictionary_words=words)))
        for words in ("limited", "full")
    )
    assert (limited.scores.n_entries, full.scores.n_entries) == (16, 32)
    assert by_name(full)["localisation"] == by_name(limited)["localisation"]


def test_annotations_below_the_confidence_are_left_out_and_counted(folder: Path) -> None:
    scored = evaluate(asked(folder, "truth", protocol=ProtocolChoice()))
    assert len(scored.scores.passage_ids) == 30
    assert "10 passages left out: confidence below 0.9" in scored.summary_lines()


def test_signers_come_from_the_corpus_and_videos_stand_in_for_them(folder: Path) -> None:
    files = TestFiles(material=folder / "test", corpus=folder / "corpus")
    scored = evaluate(asked(folder, "random", files=files))
    assert (scored.test.unit, set(scored.scores.signers)) == ("signer", {"signer0", "signer1", "signer2"})
    assert scored.scores.signers[4] == "signer1"
    assert scored.measures[0].by_unit is not None and scored.measures[0].by_unit.n_units == 3
    assert evaluate(asked(folder, "random")).test.unit == "video"


@pytest.mark.parametrize(
    ("name", "words"),
    [("nowhere", "no model of this name"), ("corpus", "is not a run folder"), ("split.json", "split.json")],
)
def test_what_is_no_model_is_refused(folder: Path, name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        evaluate(asked(folder, str(folder / name) if name != "nowhere" else name))


def test_a_run_that_saw_the_test_words_is_not_scored_as_unseen(folder: Path) -> None:
    with pytest.raises(InputError, match="its test words are unseen: use --protocol unseen"):
        evaluate(asked(folder, str(folder / "run"), protocol=ProtocolChoice(name="seen")))


def test_a_protocol_of_split_words_needs_the_split(folder: Path) -> None:
    with pytest.raises(InputError, match="needs the split into training and test words: name its file with --split"):
        evaluate(asked(folder, "random", protocol=ProtocolChoice(name="unseen")))
    only = WordSplit(WORLD.annotated, WORLD.unannotated[:2], 0, "by hand")
    only.write(folder / "two.json")
    two = ProtocolChoice(name="unseen", split=folder / "two.json", min_confidence=0)
    scored = evaluate(asked(folder, "truth", protocol=two))
    assert (scored.n_words, scored.scores.n_entries) == (2, 4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "half"}, "is not a protocol"),
        ({"dictionary_words": "some"}, "choose limited or full"),
        ({"stride": 0}, "a stride is at least 1"),
        ({"min_confidence": 1.5}, "a confidence lies from 0 to 1"),
    ],
)
def test_impossible_protocols_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ProtocolChoice(**changes)  # type: ignore[arg-type]


def test_a_test_set_without_a_usable_passage_is_said(folder: Path) -> None:
    protocol = ProtocolChoice(min_confidence=0.99)
    with pytest.raises(InputError, match=r"none of them with a confidence of at least 0\.99"):
        evaluate(asked(folder, "random", protocol=protocol))
    with pytest.raises(InputError, match="there is nothing to test on: name --test MATERIAL"):
        evaluate(asked(folder, "random", files=TestFiles()))


def test_a_head_without_its_trunk_sees_no_video(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "apple").mkdir()
    (tmp_path / "apple" / "apple_1.mp4").touch()
    files = TestFiles(corpus=folder / "corpus", dictionary=tmp_path)
    for model in (str(folder / "run"), "random"):
        with pytest.raises(InputError, match="sees no video: name test material that was made before"):
            evaluate(asked(folder, model, files=files))


def test_vectors_of_another_trunk_are_refused(folder: Path, tmp_path: Path) -> None:
    narrow = material_of(folder)
    replace(narrow, tracks=[track[:, :8] for track in narrow.tracks], entry_vectors=narrow.entry_vectors[:, :8]).write(
        tmp_path / "narrow",
    )
    with pytest.raises(InputError, match="takes vectors of 32 numbers, those of the test set have 8"):
        evaluate(asked(folder, str(folder / "run"), files=TestFiles(material=tmp_path / "narrow")))
    with pytest.raises(InputError, match="not the model whose trunk made the vectors of the test set"):
        evaluate(asked(folder, "world-v1"))


def test_the_scores_can_be_computed_again_from_the_decisions(written: tuple[Evaluation, Path]) -> None:
    out = written[1]
    rows = pq.read_table(out / "decisions.parquet").to_pylist()
    by_word: dict[str, list[float]] = {}
    for passage in dict.fromkeys(row["passage"] for row in rows):
        own = [row for row in rows if row["passage"] == passage]
        ranks = sorted(row["rank"] for row in own if row["right"])
        relevant = sum(row["relevant"] for row in own)
        precision = sum((place + 1) / rank for place, rank in enumerate(ranks)) / relevant
        by_word.setdefault(own[0]["word"], []).append(precision)
        assert all(row["right"] <= (-20 <= row["found_frame"] - row["label_frame"] <= 5) for row in own)
    mean_ap = np.mean([np.mean(values) for values in by_word.values()])
    scores = json.loads((out / "scores.json").read_text())
    assert scores["measures"][0]["value"] == pytest.approx(float(mean_ap), abs=1e-12)
    assert scores["average_precision_by_word"] == pytest.approx({w: np.mean(v) for w, v in by_word.items()})


def test_the_folder_holds_a_page_that_names_its_pictures(written: tuple[Evaluation, Path]) -> None:
    scored, out = written
    names = {"scores.json", "decisions.parquet", "curves.png", "search.png", "index.html"}
    assert {path.name for path in out.iterdir()} == names
    page = (out / "index.html").read_text()
    assert page.count("<img ") == 2 + len(scored.cases) == page.count('alt="') and 'alt=""' not in page
    assert "http://" not in page and "https://" not in page and "<script" not in page
    with pytest.raises(OutputExists, match="exists already"):
        scored.write(out)


def test_the_challenge_is_scored_from_its_two_files(tmp_path: Path) -> None:
    truth = {"a": [[1, 0, 1000], [2, 2000, 3000]], "b": []}
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "half.json").write_text(json.dumps({"a": [[1, 0, 500]]}))
    assert evaluate_challenge(tmp_path / "truth.json", tmp_path / "truth.json").f1 == 1.0
    # An IoU of 0.5 passes 7 of the 13 thresholds from 0.20 to 0.80: TP 7/13, one found, two annotated.
    assert evaluate_challenge(tmp_path / "truth.json", tmp_path / "half.json").f1 == pytest.approx(2 * 7 / 13 / 3)


def test_words_of_one_sign_are_compared_with_each_other(folder: Path, tmp_path: Path) -> None:
    words = WORLD.unannotated[:2]
    rows = "".join(f"{word}{n}.mp4,{word},sign-7\n" for word in words for n in range(2))
    for word in words:
        for number in range(2):
            (tmp_path / f"{word}{number}.mp4").touch()
    (tmp_path / "dictionary.csv").write_text(f"file,word,type_id\n{rows}")
    files = TestFiles(material=folder / "test", dictionary=tmp_path)
    scored = evaluate(asked(folder, "truth", files=files))
    kinds = {kind.differs_in: kind.rate.estimate for kind in scored.confusion.kinds}
    assert kinds.pop("nothing: one sign") == 0.0 and set(kinds) <= {"look alike"}
