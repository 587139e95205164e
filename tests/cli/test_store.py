from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from signspot.cli import main as cli
from signspot.stores.features import open_store
from tests.stores.store_tracks import entry_key, entry_vector, make_track, media
from tests.toy_world import ToyWorld


def filled(folder: Path) -> str:
    with open_store(folder) as store:
        store.put(media(1), make_track(1, video_id="news\x1b[31m"), model="colour")
        store.put_entry_vectors({entry_key(2): entry_vector(2)}, "colour-1", model="colour")
    return str(folder)


def test_searches_and_lookups_fill_one_store_and_it_forgets_them(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, clip = str(tmp_path / "store"), str(toy_world.dictionary / "tree" / "tree_1.mp4")
    how = ["-d", str(toy_world.dictionary), "--model", "colour", "--trust", "--store", store]
    assert cli.run(["spot", str(toy_world.broadcast), "apple", *how]) == 0
    assert cli.run(["lookup", clip, *how]) == 0
    capsys.readouterr()
    assert cli.run(["store", "list", "--store", store]) == 0
    shown = capsys.readouterr().out
    assert toy_world.broadcast.stem in shown and "colour: 1 recording, 6 dictionary clips" in shown
    assert cli.run(["store", "remove", str(toy_world.broadcast), clip, "--store", store]) == 0
    shown = capsys.readouterr().out
    assert "1 recording (13.1 kB) removed: 897 windows of colour" in shown and f"{clip}: 1 dictionary clip" in shown
    assert cli.run(["store", "list", str(toy_world.broadcast), clip, "--store", store]) == 0
    assert capsys.readouterr().out.count("nothing is kept") == 2
    assert cli.run(["store", "list", "--json", "--store", store]) == 0
    assert len(json.loads(capsys.readouterr().out)["clips"]) == 5


def test_names_of_recordings_do_no_harm_on_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["store", "list", "--store", filled(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and media(1)[:12] in shown


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2), ("", 2)])
def test_everything_is_removed_only_if_somebody_says_yes(
    tmp_path: Path, answer: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert cli.run(["store", "remove", "--all", "--store", filled(tmp_path)]) == code
    said = capsys.readouterr()
    assert "1 recording, 1 dictionary clip" in said.out
    assert ("nothing was removed: answer y, or give --yes" in said.err) == bool(code)
    with open_store(tmp_path) as store:
        assert bool(store.kept().media) == bool(code)


def test_yes_removes_everything_and_a_dry_run_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = filled(tmp_path)
    for more, done in (("--dry-run", "would be removed"), ("--yes", "removed")):
        assert cli.run(["store", "remove", "--all", more, "--store", store]) == 0
        assert f"1 recording, 1 dictionary clip (1.2 kB) {done}" in capsys.readouterr().out
    assert cli.run(["store", "remove", "--all", "--yes", "--store", store]) == 0
    assert capsys.readouterr().out == f"{store}: nothing is kept\n"


def test_damage_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = filled(tmp_path)
    assert cli.run(["store", "verify", "--store", store]) == 0
    assert capsys.readouterr().out == f"{store}: 1 recording, 1 dictionary clip (1.2 kB): nothing is damaged\n"
    (shard,) = (tmp_path / "shards").iterdir()
    shard.write_bytes(b"?")
    assert cli.run(["store", "verify", "--store", store]) == 1
    assert capsys.readouterr().out.startswith(f"damaged: {shard}: does not have the checksum")
    assert cli.run(["store", "verify", "--json", "--store", store]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["file"] == str(shard) and media(1)[:12] in problem["fix"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["remove"], "say what to forget"),
        (["remove", "--all", "--model", "colour"], "say what to forget"),
        (["remove", "--all", "--sha256", "0" * 64], "say what to forget"),
        (["remove", "gone.mp4"], "nothing of this name is kept"),
        (["list", "gone.mp4"], "nothing of this name is kept"),
        (["list", "--store", "nowhere"], "nowhere: there is no such folder"),
        (["list", "--store", "n" * 300], "there is no such folder"),
        (["remove", "n" * 300], "nothing of this name is kept"),
        (["remove", "F"], "is a folder: name one video file"),
    ],
)
def test_wrong_input_is_one_line_and_removes_nothing(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = filled(tmp_path)
    command, *rest = (str(tmp_path) if word == "F" else word for word in arguments)
    assert cli.run(["store", command, "--store", store, *rest]) == 2
    assert said in capsys.readouterr().err
    with open_store(tmp_path) as opened:
        assert len(opened.kept().media) == 2
