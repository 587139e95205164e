from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from signspot.errors import InputError, OutputExists
from signspot.models.checkpoints import load_checkpoint
from signspot.workflows.train import TrunkRun, train_trunk_on
from tests.toy_world import ToyWorld
from tests.workflows.shapes import make_shape_corpus

TINY = """
sources = "dictionary"
width = 0.03125
side = 40
crop = 32
batch_size = 2
stage2_epochs = 1
decay_epochs = []
steps_per_epoch = 2
threads = 1
"""

BOTH = ("sources=both", "stage1_epochs=1", "evaluate_every=0")


def asked(folder: Path, **more: object) -> TrunkRun:
    (folder / "run.toml").write_text(TINY)
    return TrunkRun(config=folder / "run.toml", out=folder / "run", **more)  # type: ignore[arg-type]


def test_a_trunk_is_trained_on_the_clips_of_a_dictionary(toy_world: ToyWorld, tmp_path: Path) -> None:
    told: list[str] = []
    trained = train_trunk_on(asked(tmp_path, dictionary=toy_world.dictionary), tell=told.append)
    assert told[0].endswith(" dictionary clips")
    assert trained.results["epochs"] == 1
    assert load_checkpoint(trained.folder.last).card.architecture == "i3d"
    with pytest.raises(OutputExists, match="--resume"):
        train_trunk_on(asked(tmp_path, dictionary=toy_world.dictionary))


def test_annotations_at_frames_and_at_times_give_the_same_clips(tmp_path: Path) -> None:
    facts: list[dict[str, str]] = []
    for times in (False, True):
        folder = tmp_path / f"times {times}"
        folder.mkdir()
        place = make_shape_corpus(folder, times=times, n_train=1)
        told: list[str] = []
        request = asked(folder, corpus=place.corpus, dictionary=place.dictionary, changes=BOTH, isolated=False)
        train_trunk_on(request, tell=told.append)
        assert told[:3] == ["8 annotated clips", "8 test clips", "8 dictionary clips"]
        assert told[3].startswith("10 of 10 recordings do not say whether they may be used for training")
        facts.append(json.loads((folder / "run" / "data.json").read_text()))
    assert facts[0] == facts[1]
    assert {"continuous", "dictionary", "test test", "vocabulary"} == set(facts[0])


def test_what_may_not_or_cannot_be_used_is_counted(tmp_path: Path) -> None:
    place = make_shape_corpus(tmp_path, times=True, n_train=1)
    rows = (place.corpus / "corpus.csv").read_text().splitlines()
    expired = f"{rows[1]},true,2020-01-01"
    shutil.copy(place.corpus / "train0.mp4", place.corpus / "allowed.mp4")
    (place.corpus / "broken.mp4").write_bytes(b"no video")
    others = ("allowed.mp4,,train,true,", "broken.mp4,,train,true,")
    (place.corpus / "corpus.csv").write_text("\n".join((f"{rows[0]},may_train,expires", expired, *others)))
    marks = "video,word,time_ms,confidence\ntrain0,tree,2000,1\n"
    marks += "allowed,tree,2000,1\nallowed,tree,2500,0.2\nallowed,pear,3000,1\nallowed,tree,999999,1\nbroken,tree,9,1\n"
    (place.corpus / "annotations.csv").write_text(marks)
    told: list[str] = []
    request = asked(tmp_path, corpus=place.corpus, dictionary=place.dictionary, changes=BOTH, isolated=False)
    train_trunk_on(request, tell=told.append)
    told = ["1 annotations left out: broken.mp4 cannot be read" if "broken.mp4" in line else line for line in told]
    assert told == [
        "1 annotations left out: its video may not be used for training",
        "1 annotations left out: it lies after the end of its video",
        "1 annotations left out: broken.mp4 cannot be read",
        "1 annotated clips",
        "1 left out of the annotated clips: the word is not learned",
        "1 left out of the annotated clips: not sure enough",
        "2 dictionary clips",
        "6 left out of the dictionary clips: the word is not learned",
        told[-1],
    ]
    assert told[-1].startswith("2 of 3 recordings do not say whether")


@pytest.mark.parametrize(("sources", "words"), [("dictionary", "add --dictionary DIR"), ("both", "add --corpus DIR")])
def test_a_source_that_was_not_named_is_asked_for(tmp_path: Path, sources: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        train_trunk_on(asked(tmp_path, changes=(f"sources={sources}",)))
    assert not (tmp_path / "run").exists()
