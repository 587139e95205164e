from __future__ import annotations

import csv
import json
import pickle
import re
import sys
from pathlib import Path

import pytest

import signspot
from signspot.cli import main as cli
from signspot.errors import InputError
from signspot.media.copies import FaceReader
from signspot.stores.corpus import read_corpus
from tests.media.moving_clips import make_clip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    make_clip(tmp_path / "source" / "Apple.mp4", 1)
    make_clip(tmp_path / "source" / "tree_02.mp4", 2)
    (tmp_path / "source" / "bad.mp4").write_text("no video")
    return tmp_path / "source"


def build(*arguments: object) -> int:
    return cli.run(["dictionary", "build", *map(str, arguments), "--trust"])


def test_a_build_says_what_it_made_and_what_it_left_out(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(source, tmp_path / "built") == 1
    printed = capsys.readouterr().out
    assert "2 words · 2 variants · 2 clips · 0 signers" in printed
    assert re.search("trimmed from 40 to (18|19|20|21|22) frames", printed)
    assert "bad.mp4: is not a video that can be read" in printed
    assert f"use it with --dictionary {tmp_path / 'built'}" in printed
    (source / "bad.mp4").unlink()
    assert build(source, tmp_path / "built") == 0
    assert "2 clips were finished before" in capsys.readouterr().out
    assert [entry.word for entry in signspot.open_dictionary(tmp_path / "built")] == ["apple", "tree"]


def test_json_holds_all_of_it_on_the_screen_and_in_a_file(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(source, tmp_path / "built", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["counts"] == {"words": 2, "variants": 2, "clips": 2, "signers": 0}
    assert shown["problems"][0]["where"].endswith("bad.mp4") and shown["frames"] == 80
    assert build(source, tmp_path / "built", "--json", tmp_path / "report.json") == 1
    assert json.loads((tmp_path / "report.json").read_text()) == shown | {"read_before": 2}
    assert build(source, tmp_path / "other", "--json", tmp_path / "report.json") == 2
    assert not (tmp_path / "other").exists()


def test_many_lines_of_a_kind_are_counted_not_listed(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(30):
        (source / f"bad{number}.mp4").write_text(f"no video {number}")
    assert build(source, tmp_path / "built") == 1
    printed = capsys.readouterr().out
    assert printed.count("left out:") == 11
    assert f"left out: 21 more in {tmp_path / 'built' / 'problems.csv'}" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["S", "S"], 2, "is the source itself"),
        (["nowhere", "D"], 2, "no such file or folder"),
        (["S", "no/such/place"], 2, "the folder to write to does not exist"),
        (["S", "D", "--clips", "S"], 2, "so --clips says nothing"),
        (["S", "D", "--margin", "-1"], 2, "--margin"),
    ],
)
def test_wrong_input_is_one_line(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    places = {"S": source, "D": tmp_path / "built"}
    assert build(*(places.get(word, word) for word in arguments)) == code
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "built").exists()


def test_faces_are_looked_at_only_when_asked_and_need_the_extra(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "dlib", None)
    assert build(source, tmp_path / "built", "--signers-by-face") == 3
    assert "pip install 'signspot[faces]'" in capsys.readouterr().err
    assert not (tmp_path / "built").exists()

    def refuse(_: FaceReader) -> None:
        raise RuntimeError("a face was looked at")

    monkeypatch.setattr(FaceReader, "__init__", refuse)
    assert build(source, tmp_path / "built") == 1
    assert "face group" not in (tmp_path / "built" / "index.html").read_text()


SPOTTINGS = {
    "train": {
        "Ice Cream": {"names": ["5085", "gone"], "global_times": [2.0, 9.0], "probs": [0.9, 1]},
        "_pointing": {"names": ["5085"], "global_times": [3.0], "probs": [1]},
    },
    "test": {"apple": {"names": ["7", "7"], "global_times": [1.0, 4.0], "probs": [0.7, 0.95]}},
}


def released(folder: Path, content: object = SPOTTINGS, name: str = "dict_spottings.json") -> Path:
    """A folder as BOBSL has it: videos, subtitles, and spottings beside them."""
    for path in ("videos/mp4/5085.mp4", "videos/mp4/7.mp4", "subtitles/aligned/7.vtt", f"spottings/{name}"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    file = folder / "spottings" / name
    file.write_bytes(pickle.dumps(content) if file.suffix == ".pkl" else json.dumps(content).encode())
    return file


def test_released_annotations_become_a_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["corpus", "import", str(released(tmp_path)), str(tmp_path), "--subtitles", str(tmp_path / "subtitles")]
    assert cli.run(command) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first.endswith("2 videos · 1 with subtitles · 1 missing video · 3 annotations · 1 without a video · 2 words")
    assert "cannot be used: gone: the video of this episode is not there: add gone.mp4" in others
    assert others[-1] == f"wrote {tmp_path}; use it with --corpus {tmp_path}"
    corpus = read_corpus(tmp_path)
    assert [(e.video_id, e.split, e.language) for e in corpus.episodes] == [
        ("5085", "train", "bfi"),
        ("7", "test", "bfi"),
    ]
    assert corpus.episodes[1].subtitles == tmp_path / "subtitles" / "aligned" / "7.vtt" and not corpus.problems
    # A dictionary spotting is at the start of its sign: 18 frames before the moment a mouthing is found at.
    assert [(a.word, a.time_ms, a.source) for a in corpus.annotations] == [
        ("ice-cream", 2720, "dictionary"),
        ("apple", 1720, "dictionary"),
        ("apple", 4720, "dictionary"),
    ]
    with (tmp_path / "problems.csv").open(encoding="utf-8-sig", newline="") as file:
        assert next(csv.DictReader(file))["file"] == "gone"
    assert cli.run(command) == 2 and "exists already" in capsys.readouterr().err
    (tmp_path / "videos" / "gone.mp4").touch()
    assert cli.run([*command, "--overwrite", "--confidence", "0.95", "--json", "-"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["counts"]["videos"] == 3 and record["counts"]["annotations"] == 2
    assert record["counts"]["missing videos"] == 0


COLUMNS = {
    "episode_name": ["5085", "7.mp4"],
    "annot_word": ["ice cream", "apple"],
    "annot_time": [2.0, 1.0],
    "annot_prob": [0.9, 0.5],
}
NESTED = {"train": {"apple": {"names": ["7"], "times": [1.0]}, "ice cream": {"names": ["5085"], "times": [2.0]}}}
INFO = {
    "videos": {
        "name": ["train/apple/7_000001_000003.mp4", "train/ice/5085_000001_000003.mp4"],
        "word": ["apple", "ice cream"],
        "split": [0, 2],
        "mouthing_time": [1.0, 2.0],
        "mouthing_prob": [1.0, 1.0],
    }
}
CHALLENGE = {"7": [[1, 900, 1100]], "5085": [[0, 1500, 2500.4]]}


@pytest.mark.parametrize(
    ("content", "name", "options", "later"),
    [
        (COLUMNS, "mouthing_spottings_v2.pkl", (), 0),
        (COLUMNS, "i3d_labels.pkl", ("--source", "i3d", "--window", "0", "19"), 600),
        (NESTED, "mouthings.pkl", (), 0),
        (NESTED, "attention_spottings.json", (), 560),
        (NESTED, "x.json", ("--source", "dictionary"), 720),
        (INFO, "info.pkl", (), 0),
        (CHALLENGE, "truth.json", ("--vocabulary", "classes.txt"), 0),
        (CHALLENGE, "truth.pkl", ("--vocabulary", "classes.txt"), 0),
    ],
)
def test_every_released_layout_is_known_by_what_it_holds(
    tmp_path: Path, content: object, name: str, options: tuple[str, ...], later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("classes.txt").write_text("ice cream\napple\n")
    assert (
        cli.run(["corpus", "import", str(released(tmp_path, content, name)), ".", "--videos", "videos", *options]) == 0
    )
    found = {(a.video_id, str(a.word)): a.time_ms for a in read_corpus(tmp_path).annotations}
    assert found == {("7", "apple"): 1000 + later, ("5085", "ice-cream"): 2000 + later}


@pytest.mark.parametrize(
    ("content", "name", "options", "words"),
    [
        (NESTED, "x.json", (), "its name does not say what found its annotations.*give --source: mouthing, dict"),
        (NESTED, "x.json", ("--source", "swin"), "no offset rule is known for the source 'swin'"),
        (NESTED, "x.json", ("--source", "swin", "--window", "5", "1"), "--window 5 1: no window from 5 to 1"),
        (CHALLENGE, "x.json", (), "numbers in place of words: give them with --vocabulary"),
        (CHALLENGE, "x.json", ("--vocabulary", "one.txt"), "7 has the class 1, and the vocabulary 1 words"),
        ([], "x.json", (), "which is not a table"),
        (NESTED, "dict.json", ("--videos", "/"), "/: does not lie in .*choose a folder for the corpus that lies above"),
        (NESTED, "dict.json", ("--videos", "spottings"), r"none of the 2 videos of dict.json is there.* 5085.mp4"),
        (NESTED, "dict.json", ("--subtitles", "gone.pkl"), "gone.pkl: cannot be opened"),
        (InputError, "dict.pkl", (), "Nothing was run"),
    ],
)
def test_what_cannot_be_imported_is_told_and_nothing_is_written(
    tmp_path: Path,
    content: object,
    name: str,
    options: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.txt").write_text("ice cream\n")
    assert cli.run(["corpus", "import", str(released(tmp_path, content, name)), ".", *options]) == 2
    assert re.search(words, capsys.readouterr().err)
    assert not Path("corpus.json").exists() and not Path("problems.csv").exists()


def test_several_videos_of_one_name_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = released(tmp_path)
    (tmp_path / "videos" / "old").mkdir()
    (tmp_path / "videos" / "old" / "7.mkv").touch()
    (tmp_path / "videos" / "old" / "7.pose").touch()  # landmarks are no second video
    assert cli.run(["corpus", "import", str(file), str(tmp_path)]) == 0
    assert "7: 2 videos have this name; videos/mp4/7.mp4 is used: remove the others" in capsys.readouterr().out
