"""The default model in every command, on corpora of .pose files: a synthetic world and real signing."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import signspot
from signspot.cli import main
from signspot.domain.recordings import Subtitle
from signspot.domain.time import MillisSpan
from signspot.formats.captions import write_subtitles
from tests.workflows.pose_world import write_pose_world
from tests.workflows.signed import write

REAL = Path(__file__).parents[3] / "shared" / "data" / "auslan_daily"
HEAD = "hidden_dim = 32\nembedding_dim = 16\nbatch_size = 4\nepochs = 2\ndecay_epochs = []\nthreads = 1\n"


def real_corpus(folder: Path) -> None:
    """Signs cut from television signing (Auslan), joined to two passages; one more clip of each word is its entry."""
    corpus, dictionary = folder / "corpus", folder / "dictionary"
    corpus.mkdir(), dictionary.mkdir()
    with (REAL / "clips.csv").open(newline="") as file:
        words = [row["word"] for row in csv.DictReader(file)]
    with np.load(REAL / "landmarks.npz") as data:
        points, offsets = data["X"].astype(np.float32), data["offsets"]
    clips = defaultdict(list)
    for number, word in enumerate(words):
        if word.isalpha() and offsets[number + 1] - offsets[number] >= 12:
            clips[word].append(points[offsets[number] : offsets[number + 1]])
    chosen = sorted(clips, key=lambda word: (-len(clips[word]), word))[:12]
    for word in chosen:
        write(clips[word][0], dictionary / f"{word}.pose")
    rows, marks = ["video,split,subtitles,signer"], ["video,word,time_ms,confidence"]
    for number, split in enumerate(("train", "test")):
        turns = range(2 + number, 14 + number, 2)
        signed = [(word, clips[word][turn]) for turn in turns for word in chosen if turn < len(clips[word])]
        ends = 40 * np.cumsum([len(clip) for _, clip in signed])
        write(np.concatenate([clip for _, clip in signed]), corpus / f"{split}.pose")
        marks += [f"{split},{word},{end - 200},1" for (word, _), end in zip(signed, ends, strict=True)]
        said = [" ".join(word for word, _ in signed[first : first + 6]) for first in range(0, len(signed) - 5, 6)]
        spans = [MillisSpan.of(ends[6 * line] - 400, ends[6 * line + 5]) for line in range(len(said))]
        write_subtitles([Subtitle(*cue) for cue in zip(spans, said, strict=True)], corpus / f"{split}.vtt")
        rows.append(f"{split}.pose,{split},{split}.vtt,{split}")
    (corpus / "corpus.csv").write_text("\n".join(rows))
    (corpus / "annotations.csv").write_text("\n".join(marks))


@pytest.fixture(scope="module", params=["world", "real"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "world":
        write_pose_world(folder)
    elif REAL.is_dir():
        real_corpus(folder)
    else:
        pytest.skip("needs shared/data/auslan_daily")
    (folder / "head.toml").write_text(HEAD)
    return folder


@pytest.fixture(autouse=True)
def at_home(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(place / name))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code = main.run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return printed.out


def test_a_head_is_trained_over_it_evaluated_and_spots(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = ("--corpus", place / "corpus", "--dictionary", place / "dictionary")
    for split in ("train", "test"):
        said = run(
            capsys, "train", "material", *source, "--trunk", "landmark-v1", "--split", split, "--out", place / split
        )
        assert "labelled passages of " in said
    files = ("--data", place / "train", "--test", place / "test", "--trunk", "landmark-v1", "--out", place / "run")
    run(capsys, "train", "embedding", place / "head.toml", *files)
    trained = signspot.load_model(place / "run" / "last.safetensors")
    assert trained.dim == 16 and trained.trunk() is not None
    for model in ("landmark-v1", place / "run"):
        scores = json.loads(run(capsys, "evaluate", model, *source, "--confidence", "0.5", "--json"))
        assert 0 <= next(one["value"] for one in scores["measures"] if one["name"] == "mAP") <= 1
    video, word = next((place / "corpus").glob("test*.pose")), next((place / "dictionary").iterdir()).stem
    asked = ("spot", video, word, "-d", place / "dictionary", "--threshold", "-1", "--json")
    answer = json.loads(run(capsys, *asked, "--model", place / "run" / "last.safetensors"))
    assert answer["spottings"]


def test_probabilities_come_with_it_until_ones_own_replace_them(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(place / "own"))
    video, word = next((place / "corpus").glob("test*.pose")), next((place / "dictionary").iterdir()).stem
    asked = ("spot", video, word, "-d", place / "dictionary")
    few, many = (json.loads(run(capsys, *asked, "--false-alarms", rate, "--json")) for rate in ("1/h", "10000/h"))
    assert len(few["spottings"]) < len(many["spottings"])
    assert few["false_alarms_per_word_and_hour"] <= 1
    assert all(one["calibration"].startswith("landmark-v1:") for one in many["spottings"])
    usual = json.loads(run(capsys, *asked, "--json"))
    closing = run(capsys, *asked).splitlines()[-1]
    assert closing.startswith(f"found: presence {usual['least_presence']:.0%} or more (about ")
    assert closing.endswith(" false alarms per word and hour, as calibrated)")
    said = run(
        capsys, "calibrate", "landmark-v1", "--corpus", place / "corpus", "-d", place / "dictionary", "--complete"
    )
    assert "the calibration that comes with the model, on the same videos: error 0." in said
    own = json.loads(run(capsys, *asked, "--presence", "0", "--json"))
    assert {one["calibration"] for one in own["spottings"]}.isdisjoint(one["calibration"] for one in many["spottings"])
    by_library = signspot.spot(
        video,
        [word],
        dictionary=signspot.open_dictionary(place / "dictionary"),
        model=signspot.load_model("landmark-v1"),
    )
    assert by_library.least_presence == 0.5, "that of one's own calibration"


def test_it_is_calibrated_and_the_false_alarms_are_obeyed_everywhere(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dictionary = ("-d", place / "dictionary")
    said = run(
        capsys, "calibrate", "landmark-v1", "--corpus", place / "corpus", *dictionary, "--complete", "--overwrite"
    )
    assert "per word and hour, require --presence" in said
    video, word = next((place / "corpus").glob("test*.pose")), next((place / "dictionary").iterdir()).stem
    few = {}
    for rate in ("1000/h", "100000/h"):
        asked = (*dictionary, "--false-alarms", rate, "--json")
        counts = [
            len(json.loads(run(capsys, "spot", video, word, *asked))["spottings"]),
            len(json.loads(run(capsys, "variants", video, word, *asked))["occurrences"]),
            json.loads(run(capsys, "mine", "find", video, word, *asked, "--out", place / f"mined-{len(rate)}"))[
                "found"
            ],
        ]
        assert len(set(counts)) == 1
        few[rate] = counts[0]
    assert few["1000/h"] <= few["100000/h"] > 0


def test_vectors_of_a_corpus_are_kept_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = place / "embedded"
    first = run(capsys, "embed", place / "corpus", "--store", store, "--failures", place / "failures.jsonl")
    n_videos = len(list((place / "corpus").glob("*.pose")))
    assert first.count("computed") == n_videos
    again = run(capsys, "embed", place / "corpus", "--store", store, "--jobs", "2")
    assert again.count("was there") == n_videos
