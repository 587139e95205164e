from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import signspot
from signspot.cli import main as cli
from signspot.domain.recordings import Episode
from signspot.domain.results import VideoAnswer
from signspot.domain.time import MillisSpan
from signspot.embedding.model import Reading
from signspot.errors import EnvironmentProblem
from signspot.formats.elan import read_eaf
from signspot.media.writer import VideoWriter
from signspot.stores.spottings import read_spottings, spotting_record
from signspot.workflows.spot import SpotOptions, spot_prepared
from tests.toy_world import ToyWorld


def sha256s(folder: Path) -> dict[Path, str]:
    return {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def spot(world: ToyWorld, *more: str, source: Path | None = None) -> int:
    asked = ["spot", str(source or world.broadcast), "--dictionary", str(world.dictionary), "--model", "colour"]
    return cli.run([*asked, "--trust", *more])


def test_every_output_is_written_and_no_input_is_touched(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sha256s(toy_world.broadcast.parent)
    endings = {"csv": "csv", "jsonl": "jsonl", "json": "json", "parquet": "parquet", "eaf": "eaf", "vtt": "vtt"}
    endings |= {"srt": "srt", "via": "json", "plot": "png", "video": "mp4"}
    outputs = {option: tmp_path / f"{option}.{ending}" for option, ending in endings.items()}
    arguments = [word for option, path in outputs.items() for word in (f"--{option}", str(path))]
    assert spot(toy_world, "apple", "tree", "house", *arguments) == 0
    assert all(path.stat().st_size > 100 for path in outputs.values())
    assert sha256s(toy_world.broadcast.parent) == before
    tables = [list(read_spottings(outputs[kind])) for kind in ("csv", "jsonl", "json", "parquet")]
    assert all(table == tables[0] for table in tables)
    tiers = {tier.tier_id: tier for tier in read_eaf(outputs["eaf"]).tiers}
    assert [a.value for a in tiers["signspot"].annotations] == [s.word for s in tables[0]]
    assert [a.span_ms for a in tiers["signspot"].annotations] == [s.span_ms for s in tables[0]]
    printed = capsys.readouterr().out
    assert "house: not found (closest" in printed
    assert f"wrote {outputs['eaf']}" in printed


def test_json_on_the_screen_is_what_the_library_gives(toy_world: ToyWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert spot(toy_world, "apple", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    answer = signspot.spot(
        toy_world.broadcast,
        ["apple"],
        dictionary=signspot.open_dictionary(toy_world.dictionary),
        model=signspot.load_model("colour"),
        options=SpotOptions(reading=Reading(isolated=False)),
    )
    assert printed["spottings"] == [spotting_record(spotting) for spotting in answer]
    assert printed["words"][0]["found"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["spot", "no.mp4", "apple", "-d", "D"], "no.mp4"),
        (["spot", "V", "aple", "-d", "D"], "did you mean apple?"),
        (["spot", "V", "apple", "-d", "nowhere"], "nowhere"),
        (["spot", "V", "apple"], "--dictionary"),
        (["spot", "V", "apple", "-d", "D", "--model", "i3d"], "no model of this name"),
        (["spot", "V", "apple", "-d", "D", "--threshold", "7"], "is out of range"),
        (["spot", "V", "apple", "-d", "D", "--stride", "0"], "--stride"),
        (["spot", "V", "apple", "-d", "D", "--box", "0,0,1"], "not a box of four numbers left,top,right,bottom"),
        (["spot", "V", "apple", "-d", "D", "--box", "0,0,640,360"], "--box: the box 0.0,0.0,640.0,360.0 does not lie"),
        (["embed", "V", "-m", "colour", "--box", "60%,0,50%,1"], "is empty: left comes before right"),
        (["spot", "V", "apple", "-d", "D", "--csv", "V"], "is an input and is never written to"),
        (["spot", "V", "apple", "-d", "D", "--eaf", "V", "--overwrite"], "is an input and is never written to"),
        (["annotate", "C", "-d", "D", "--csv", "T"], "name them with --subtitles"),
        (["annotate", "V", "-d", "D", "--vtt", "S", "--overwrite"], "is an input and is never written to"),
        (["spot", "V", "apple", "-d", "D", "--csv", "T", "--vtt", "T"], "is named for two outputs"),
        (
            ["spot", "V", "apple", "-d", "D", "--eaf", "o.csv"],
            "not a name for the output --eaf: use a name that ends in .eaf",
        ),
        (["spot", "V", "apple", "-d", "D", "--plot", "o.jpg"], "ends in .png or .svg or .pdf"),
        (["spot", "V", "apple", "-d", "D", "--csv", "no/such/folder.csv"], "the folder to write to does not exist"),
        (["spot", "V", "apple", "-d", "D", "--subtitles", "V"], "V"),
        (["spot", "V", "-d", "D"], "name the words to look for"),
        (["dictionary", "check", "nowhere"], "nowhere"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"V": toy_world.broadcast, "D": toy_world.dictionary, "T": tmp_path / "t.csv"}
    names |= {"S": toy_world.subtitles, "C": toy_world.dictionary / "tree_1.mp4"}
    code = cli.run([str(names.get(word, word)) for word in arguments])
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith("signspot: ")
    assert captured.err.count("\n") == 1
    assert str(names.get(message, message)) in captured.err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_is_refused_before_any_work(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "mine.eaf"
    precious.write_text("mine")
    assert spot(toy_world, "apple", "--eaf", str(precious)) == 2
    assert "exists already" in capsys.readouterr().err
    assert precious.read_text() == "mine"
    assert spot(toy_world, "apple", "--eaf", str(precious), "--overwrite") == 0
    assert read_eaf(precious).tiers


def test_a_batch_goes_on_and_lists_what_failed(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    shutil.copy(toy_world.broadcast, videos / "a.mp4")
    (videos / "b.mp4").write_bytes(b"broken")
    shutil.copy(toy_world.broadcast, videos / "c.mp4")
    table, tiers, failures = tmp_path / "all.csv", tmp_path / "tiers", tmp_path / "failed.jsonl"
    outputs = ["--csv", str(table), "--eaf", str(tiers), "--failures", str(failures)]
    assert spot(toy_world, "apple", *outputs, source=videos) == 1
    assert [s.video_id for s in read_spottings(table)] == ["a"] * 3 + ["c"] * 3
    assert sorted(path.name for path in tiers.iterdir()) == ["a.eaf", "c.eaf"]
    (failed,) = [json.loads(line) for line in failures.read_text().splitlines()]
    assert failed["video"] == str(videos / "b.mp4")
    assert failed["what"]
    assert "1 of 3 videos failed" in capsys.readouterr().err


def begun_earlier(source: Path, target: Path, by_ms: int) -> Path:
    """A fragmented MP4 of the same pictures, whose edit list hides the first `by_ms`."""
    options = {"movflags": "frag_keyframe+delay_moov"}
    with av.open(str(source)) as old, av.open(str(target), "w", options=options) as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(old.streams.video[0]):
            if packet.dts is None or packet.pts is None:
                continue
            ticks = round(by_ms / 1000 / packet.time_base)
            packet.pts, packet.dts, packet.stream = packet.pts - ticks, packet.dts - ticks, stream
            new.mux(packet)
    return target


def test_a_video_that_begins_before_zero_ends_no_batch(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos, table = tmp_path / "videos", tmp_path / "all.csv"
    videos.mkdir()
    by_ms = toy_world.truth[0].span_ms.start + 167
    begun_earlier(toy_world.broadcast, videos / "a.mp4", by_ms)
    shutil.copy(toy_world.broadcast, videos / "b.mp4")
    word = toy_world.truth[0].sign.word
    outputs = ["--csv", str(table), "--vtt", str(tmp_path / "vtt"), "--failures", str(tmp_path / "failed.jsonl")]
    assert spot(toy_world, word, *outputs, source=videos) == 0
    early, usual = ([s for s in read_spottings(table) if s.video_id == name] for name in "ab")
    assert min(spotting.span_ms.start for spotting in early) >= 0
    assert early[-1].span_ms.start == pytest.approx(usual[-1].span_ms.start - by_ms, abs=41)
    assert "-1:59" not in table.read_text() + (tmp_path / "vtt" / "a.vtt").read_text() + capsys.readouterr().out


def test_a_finding_that_makes_no_sense_fails_its_video_alone(
    toy_world: ToyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever our own types refuse while the results of one video are handled, the other videos go on."""
    videos, table, failures = tmp_path / "videos", tmp_path / "all.csv", tmp_path / "failed.jsonl"
    videos.mkdir()
    for name in "abc":
        shutil.copy(toy_world.broadcast, videos / f"{name}.mp4")

    def searched(episode: Episode, *rest: Any) -> VideoAnswer:
        answer = spot_prepared(episode, *rest)
        if episode.video_id == "a":
            MillisSpan.of(40, 0)
        if episode.video_id == "b":
            bad = [replace(found, span_ms=MillisSpan.of(-167, 40)) for found in answer.words[0].spottings]
            return replace(answer, words=(replace(answer.words[0], spottings=tuple(bad)),))
        return answer

    monkeypatch.setattr("signspot.workflows.spot_files.spot_prepared", searched)
    outputs = ["--csv", str(table), "--vtt", str(tmp_path / "vtt"), "--failures", str(failures)]
    assert spot(toy_world, "apple", *outputs, source=videos) == 1
    assert [s.video_id for s in read_spottings(table)] == ["c"] * 3
    assert [path.name for path in (tmp_path / "vtt").iterdir()] == ["c.vtt"]
    failed = [json.loads(line) for line in failures.read_text().splitlines()]
    assert [Path(one["video"]).name for one in failed] == ["a.mp4", "b.mp4"]
    assert "ends before it starts" in failed[0]["what"] and "negative time" in failed[1]["what"]


def test_what_a_batch_found_is_kept_when_the_machine_fails(
    toy_world: ToyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    videos, table = tmp_path / "videos", tmp_path / "all.csv"
    videos.mkdir()
    for name in "abc":
        shutil.copy(toy_world.broadcast, videos / f"{name}.mp4")

    def searched(episode: Episode, *rest: Any) -> VideoAnswer:
        if episode.video_id == "b":
            raise EnvironmentProblem("store", "the disk is full", "free some space")
        return spot_prepared(episode, *rest)

    monkeypatch.setattr("signspot.workflows.spot_files.spot_prepared", searched)
    assert spot(toy_world, "apple", "--csv", str(table), source=videos) == 3
    assert [s.video_id for s in read_spottings(table)] == ["a"] * 3
    told = capsys.readouterr().err.splitlines()[-2:]
    assert "only the videos that were finished" in told[0] and "the disk is full" in told[1]


@pytest.mark.parametrize(("number", "code"), [("EIO", 3), ("ENOSPC", 3), ("ESTALE", 3), ("EROFS", 2), ("EISDIR", 4)])
def test_a_disk_that_fails_is_no_bug_wherever_it_is_met(
    number: str, code: int, toy_world: ToyWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object) -> None:
        raise OSError(getattr(errno, number), "as the system puts it", "/mnt/share/a.mp4")

    monkeypatch.setattr("signspot.workflows.spot_files.spot_prepared", failing)
    assert spot(toy_world, "apple") == code
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("signspot: /mnt/share/a.mp4: ") != (code == 4)
    assert ("this is a bug" in told) == (code == 4)


def test_an_output_that_is_full_is_no_bug() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "signspot", "models", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "signspot: output: the disk is full: free some space and run the same command again\n"


def test_a_list_of_failures_replaces_only_one_of_its_own(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos, failures = tmp_path / "videos", tmp_path / "failures.jsonl"
    videos.mkdir()
    shutil.copy(toy_world.broadcast, videos / "a.mp4")
    (videos / "b.mp4").write_bytes(b"broken")
    failures.write_text("my own notes")
    for precious in (failures, videos / "a.mp4"):
        before = precious.read_bytes()
        assert spot(toy_world, "apple", "--failures", str(precious), source=videos) == 2
        assert "is not a list of failures" in capsys.readouterr().err
        assert precious.read_bytes() == before
    failures.unlink()
    assert spot(toy_world, "apple", "--failures", str(failures), source=videos) == 1
    assert spot(toy_world, "apple", "--failures", str(failures), source=videos) == 1
    others = tmp_path / "others"
    others.mkdir()
    shutil.copy(toy_world.broadcast, others / "c.mp4")
    assert spot(toy_world, "apple", "--failures", str(failures), source=others) == 0
    assert "b.mp4" in failures.read_text(), "that other videos are fine changes nothing about these"
    (videos / "b.mp4").unlink()
    assert spot(toy_world, "apple", "--failures", str(failures), source=videos) == 0
    assert not failures.exists(), "a list of an earlier run is no longer true"


def test_a_mention_whose_place_another_one_has_is_not_said_to_be_too_unlike(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    span = next(one.span_ms for one in toy_world.truth if one.sign.word == "tree")
    middle = (span.start + span.stop) // 2
    cues = ((span.start - 300, middle, "A tree."), (middle, span.stop + 300, "That tree."))
    times = ["00:00:{:02}.{:03} --> 00:00:{:02}.{:03}".format(*divmod(a, 1000), *divmod(b, 1000)) for a, b, _ in cues]
    subtitles = tmp_path / "two.vtt"
    subtitles.write_text("WEBVTT\n\n" + "\n\n".join(f"{t}\n{c[2]}" for t, c in zip(times, cues, strict=True)))
    words = ["annotate", str(toy_world.broadcast), "-s", str(subtitles), "-d", str(toy_world.dictionary)]
    assert cli.run([*words, "-m", "colour", "--no-store", "--trust", "--padding", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "found signs for 1 of 2 subtitle words" in said
    assert "no sign found for: tree (its likeliest place, 0:00:" in said and "was given to another mention)" in said


def test_a_video_that_a_batch_cannot_take_is_named(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    shutil.copy(toy_world.broadcast, videos / "y.mp4")
    (videos / "z.mp4").symlink_to(toy_world.broadcast)  # leads out of the folder
    (videos / "notes.txt").write_text("not a video, and no trouble")
    failures = tmp_path / "failed.jsonl"
    assert spot(toy_world, "apple", "--failures", str(failures), source=videos) == 1
    assert "1 of 2 videos failed" in capsys.readouterr().err
    assert "notes.txt" not in failures.read_text()


def test_videos_of_one_stem_and_in_folders_have_outputs_of_their_own(toy_world: ToyWorld, tmp_path: Path) -> None:
    videos, table, captions = tmp_path / "videos", tmp_path / "all.csv", tmp_path / "captions"
    (videos / "day 2").mkdir(parents=True)
    for name in ("y.mp4", "y.mov", "day 2/y.mp4"):
        shutil.copy(toy_world.broadcast, videos / name)
    assert spot(toy_world, "apple", "--csv", str(table), "--vtt", str(captions), source=videos) == 0
    assert {s.video_id for s in read_spottings(table)} == {"y.mp4", "y.mov", "day 2/y"}
    written = {str(path.relative_to(captions)) for path in captions.rglob("*.vtt")}
    assert written == {"y.mp4.vtt", "y.mov.vtt", "day 2/y.vtt"}


def test_no_output_leads_out_of_its_folder(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(toy_world.broadcast, tmp_path / "a.mp4")
    (tmp_path / "corpus.csv").write_text("video,video_id\na.mp4,../out\n")
    assert spot(toy_world, "apple", "--vtt", str(tmp_path / "in"), source=tmp_path / "corpus.csv") == 2
    assert "../out: no output can be named after this video_id" in capsys.readouterr().err
    assert not (tmp_path / "out.vtt").exists()


def test_subtitles_of_one_of_two_videos_of_the_same_stem(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.mp4", "a.mov"):
        shutil.copy(toy_world.broadcast, tmp_path / name)
    shutil.copy(toy_world.subtitles, tmp_path / "a.mov.vtt")
    failures = tmp_path / "failed.jsonl"
    assert spot(toy_world, "-s", str(tmp_path), "--failures", str(failures), "--json", source=tmp_path) == 1
    captured = capsys.readouterr()
    (answer,) = json.loads(captured.out)
    assert answer["video_id"] == "a.mov"
    assert "a.mp4: no subtitles of this name" in captured.err


def test_an_empty_folder_among_several_is_passed_over(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, other, store = tmp_path / "empty", tmp_path / "other", tmp_path / "store"
    empty.mkdir()
    other.mkdir()
    asked = ["embed", "-m", "colour", "--store", str(store), "--trust"]
    assert cli.run([*asked, str(empty), str(toy_world.broadcast)]) == 0
    assert f"signspot: {empty}: holds no video: it is passed over" in capsys.readouterr().err
    assert cli.run([*asked, str(empty), str(other)]) == 2
    assert "no usable video in any of these folders" in capsys.readouterr().err
    assert cli.run([*asked, str(empty)]) == 2


def test_subtitles_beside_the_videos_are_found_and_a_video_without_them_fails_alone(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.mp4", "b.mp4"):
        shutil.copy(toy_world.broadcast, tmp_path / name)
    shutil.copy(toy_world.subtitles, tmp_path / "a.en.vtt")
    failures = tmp_path / "failed.jsonl"
    assert spot(toy_world, "-s", str(tmp_path), "--failures", str(failures), "--json", source=tmp_path) == 1
    captured = capsys.readouterr()
    (answer,) = json.loads(captured.out)
    assert len(answer["spottings"]) == len(toy_world.truth)
    assert "b.mp4: no subtitles of this name" in captured.err


def test_outputs_of_a_batch_that_exist_are_refused_before_any_work(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos, captions = tmp_path / "videos", tmp_path / "captions"
    videos.mkdir()
    captions.mkdir()
    shutil.copy(toy_world.broadcast, videos / "a.mp4")
    (captions / "a.vtt").write_text("mine")
    table = tmp_path / "t.csv"
    assert spot(toy_world, "apple", "--vtt", str(captions), "--csv", str(table), source=videos) == 2
    assert "a.vtt: exists already" in capsys.readouterr().err
    assert not table.exists()


def test_json_in_a_file_is_json_on_the_screen(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "answer.json"
    assert spot(toy_world, "apple", "house", "--json", str(target)) == 0
    capsys.readouterr()
    assert spot(toy_world, "apple", "house", "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(target.read_text())


def watched_run(world: ToyWorld, folder: Path, stdout: Path | None) -> bytes:
    """Search two videos with a person at the terminal; what the terminal was sent. None: results go there as well."""
    videos = folder / "videos"
    videos.mkdir()
    for name in ("a.mp4", "b.mp4"):
        shutil.copy(world.broadcast, videos / name)
    command = [sys.executable, "-m", "signspot", "spot", str(videos), "apple", "-d", str(world.dictionary), "--trust"]
    command += ["--model", "colour"]
    terminal, its_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with contextlib.nullcontext(its_end) if stdout is None else stdout.open("w") as out:
        run = subprocess.Popen(command, stdout=out, stderr=its_end, env=environment)
    os.close(its_end)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal closes with the program
        while block := os.read(terminal, 4096):
            shown += block
    os.close(terminal)
    assert run.wait() == 0
    return shown


def test_results_in_a_file_are_whole_while_bars_are_shown(toy_world: ToyWorld, tmp_path: Path) -> None:
    shown = watched_run(toy_world, tmp_path, tmp_path / "out.txt")
    results = (tmp_path / "out.txt").read_text()
    assert results.count("apple/apple_") == 6
    assert {"a:", "b:"} <= set(results.splitlines())
    assert "reading" not in results
    assert b"reading" in shown
    assert b"apple/apple_" not in shown


def test_nothing_is_printed_while_bars_are_on_the_screen(toy_world: ToyWorld, tmp_path: Path) -> None:
    """Bars hide the cursor and show it again when they are gone; what is printed in between would be erased."""
    shown = watched_run(toy_world, tmp_path, None)
    with_bars = b"".join(part.partition(b"\x1b[?25h")[0] for part in shown.split(b"\x1b[?25l")[1:])
    assert b"reading" in with_bars
    assert shown.count(b"apple/apple_") == 6
    assert b"apple/apple_" not in with_bars


def test_no_command_changes_a_source(toy_world: ToyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder, video = str(toy_world.dictionary), str(toy_world.broadcast)
    before = sha256s(toy_world.broadcast.parent)
    for command in (
        ["spot", video, "apple", "-d", folder, "--model", "colour", "--subtitles", str(toy_world.subtitles)],
        ["dictionary", "check", folder],
        ["corpus", "check", str(toy_world.broadcast.parent), "--full"],
        ["embed", video, "--model", "colour", "--store", str(tmp_path / "store")],
        ["models", "list"],
    ):
        assert cli.run(command) in (0, 1), command
        assert sha256s(toy_world.broadcast.parent) == before, command


def test_a_damaged_file_of_the_store_is_said_once_by_the_command_that_meets_it(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    source = str(toy_world.broadcast)
    searches = (
        ["embed", source, "--model", "colour", "--store", str(store)],
        ["spot", source, "apple", "-d", str(toy_world.dictionary), "--model", "colour", "--store", str(store)],
    )
    assert cli.run(searches[0]) == 0
    for command in searches:
        capsys.readouterr()
        (shard,) = (store / "shards").iterdir()
        shard.write_bytes(shard.read_bytes()[:-1] + b"?")
        assert cli.run(command) == 0
        (said,) = (line for line in capsys.readouterr().err.splitlines() if "computed again" in line)
        assert said == (
            f"signspot: {shard}: the stored vectors of broadcast: does not have the checksum it was written with: "
            "the track is computed again"
        )
        assert cli.run(command) == 0
        assert "computed again" not in capsys.readouterr().err


def test_an_elan_file_gets_tiers_beside_its_own(toy_world: ToyWorld, tmp_path: Path) -> None:
    first, second = tmp_path / "first.eaf", tmp_path / "second.eaf"
    assert spot(toy_world, "tree", "--eaf", str(first)) == 0
    assert spot(toy_world, "apple", "--eaf", str(second), source=first) == 0
    before = {tier.tier_id: tier for tier in read_eaf(first).tiers}
    after = {tier.tier_id: tier for tier in read_eaf(second).tiers}
    assert all(after[name] == tier for name, tier in before.items())
    assert [a.value for a in after["signspot-2"].annotations] == ["apple"] * 3


def test_annotations_that_cannot_be_read_are_said(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound, broken = tmp_path / "sound.eaf", tmp_path / "interview.eaf"
    assert spot(toy_world, "tree", "--eaf", str(sound)) == 0
    assert spot(toy_world, "tree", "--json", source=sound) == 0
    assert capsys.readouterr().err == ""
    broken.write_text(sound.read_text().replace('TIME_SLOT_REF1="ts1"', 'TIME_SLOT_REF1="ts99"', 1))
    for output in (["--json"], ["--eaf", str(tmp_path / "out.eaf")]):
        assert spot(toy_world, "tree", *output, source=broken) == 0
        said = capsys.readouterr().err
        what = (
            "3 of 6 annotations cannot be read (1: their time slots are missing; 2: what they refer to cannot be read)"
        )
        assert said.count(f"signspot: interview.eaf: {what}\n") == 1
        assert said.count("annotations with a time slot that does not exist: 1 (a1)") == 1


@pytest.mark.parametrize(
    ("url", "relative", "message"),
    [
        ("", "./videos/v.mp4", ""),
        ("", "{}/videos/v.mp4", ""),
        ("", "./gone.mp4", "its video is not on this computer: gone.mp4"),
        ("C:\\x\\gone.mp4", "", "its video is not on this computer: gone.mp4"),
        ("", "", "is linked to no video"),
    ],
)
def test_the_video_of_an_elan_file_is_found_by_either_url(
    url: str, relative: str, message: str, toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "videos").mkdir()
    shutil.copy(toy_world.broadcast, tmp_path / "videos" / "v.mp4")
    eaf = tmp_path / "x.eaf"
    media = f'<MEDIA_DESCRIPTOR MEDIA_URL="{url}" RELATIVE_MEDIA_URL="{relative.format(tmp_path)}"/>'
    eaf.write_text(f"<ANNOTATION_DOCUMENT><HEADER>{media}</HEADER></ANNOTATION_DOCUMENT>")
    assert spot(toy_world, "tree", "--json", source=eaf) == (2 if message else 0)
    captured = capsys.readouterr()
    assert f"x.eaf: {message}: " in captured.err if message else len(json.loads(captured.out)["spottings"]) == 2


def test_subtitles_can_be_shifted(toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = tmp_path / "late.vtt"
    truth = next(t for t in toy_world.truth if t.sign.word == "tree")
    start, stop = truth.span_ms.start + 20_000, truth.span_ms.stop + 20_000
    late.write_text(f"WEBVTT\n\n00:{start // 60000:02}:{start % 60000 / 1000:06.3f} --> "
                    f"00:{stop // 60000:02}:{stop % 60000 / 1000:06.3f}\nA tree.\n")  # fmt: skip
    assert spot(toy_world, "--subtitles", str(late), "--shift", "-20", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["spottings"]
    assert found["subtitle"] == "A tree."
    assert found["subtitle_start_ms"] == truth.span_ms.start


def test_a_dictionary_check_counts_and_names_what_is_broken(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["dictionary", "check", str(toy_world.dictionary)]) == 0
    assert "5 words · 6 variants · 6 clips" in capsys.readouterr().out
    broken = tmp_path / "dictionary"
    shutil.copytree(toy_world.dictionary, broken)
    (broken / "tree" / "tree_1.mp4").write_bytes(b"")
    assert cli.run(["dictionary", "check", str(broken), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["counts"]["words"] == 4
    assert "tree_1.mp4" in result["problems"][0]["where"]


def test_a_corpus_check_pairs_videos_with_subtitles(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    shutil.copy(toy_world.broadcast, corpus)
    shutil.copy(toy_world.subtitles, corpus)
    whole = toy_world.broadcast.read_bytes()
    (corpus / "half.mp4").write_bytes(whole[: len(whole) // 2])
    assert cli.run(["corpus", "check", str(corpus), "--full"]) == 0
    printed = capsys.readouterr().out
    assert "2 videos · 0 with a .pose file · 1 with subtitles · 9 subtitle cues" in printed
    assert "half.mp4: partial, " in printed and "no problems, 2 notes" in printed
    with (corpus / toy_world.subtitles.name).open("a", encoding="utf-8") as file:
        file.write("\n00:10:00.000 --> 00:10:02.000\nToo late.\n")
    assert cli.run(["corpus", "check", str(corpus)]) == 0
    assert "1 of 10 subtitles begin after the video's end" in capsys.readouterr().out


def test_subtitles_that_are_left_out_are_counted_by_every_command_that_reads_them(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(toy_world.broadcast, tmp_path / "news.mp4")
    bad = "".join(f"\n00:00:0{i}.x --> 00:00:09.000\nA tree.\n" for i in range(7))
    good = toy_world.subtitles.read_text(encoding="utf-8")
    subtitles = tmp_path / "news.vtt"
    subtitles.write_text(f"{good.rstrip()}\n{bad}", encoding="utf-8")
    said = "news.vtt: 7 of 16 subtitles were left out: their times cannot be read (first: cue 10)"
    assert spot(toy_world, "--subtitles", str(subtitles), source=tmp_path / "news.mp4") == 0
    shown = capsys.readouterr().err
    assert said in shown and "cue 12: " in shown and "cue 13: " not in shown and "and 4 more warnings" in shown
    folder = ("-d", str(toy_world.dictionary), "--model", "colour")
    assert cli.run(["annotate", str(tmp_path / "news.mp4"), "--subtitles", str(subtitles), *folder]) == 0
    assert said in capsys.readouterr().err
    assert cli.run(["corpus", "check", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert said in shown and "cue 16: " in shown


def test_checks_name_boxes_outside_their_picture(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.mp4", "b.mp4"):
        shutil.copy(toy_world.broadcast, tmp_path / name)
    columns = "box_left,box_top,box_right,box_bottom"
    (tmp_path / "corpus.csv").write_text(f"video,{columns}\na.mp4,0.1,0.1,1.2,1\nb.mp4,0,0,1,0.5\n")
    (tmp_path / "dictionary.csv").write_text(f"word,file,{columns}\na,a.mp4,0.1,0.1,1.2,1\nb,b.mp4,0,0,1,0.5\n")
    for kind, counted in (("corpus", "1 video ·"), ("dictionary", "1 word ·")):
        assert cli.run([kind, "check", str(tmp_path)]) == 1
        printed = capsys.readouterr().out
        assert counted in printed
        assert "line 2: 'a.mp4': the box 0.1,0.1,1.2,1.0 does not lie in its picture" in printed


def test_only_the_box_is_searched(toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    video = tmp_path / "inset.mp4"
    with signspot.VideoReader(toy_world.broadcast) as reader, VideoWriter(video, width=256, height=128) as writer:
        for frame in reader:  # the broadcast small, in the lower right corner of a grey picture
            picture = np.full((128, 256, 3), 128, np.uint8)
            picture[64:, 192:] = np.array(Image.fromarray(frame.pixels).resize((64, 64)))
            writer.write(picture, frame.time_ms)

    def found(source: Path, *more: str) -> list[tuple[str, str]]:
        assert spot(toy_world, "apple", "tree", "--json", *more, source=source) == 0
        spottings = json.loads(capsys.readouterr().out)["spottings"]
        return [(each["word"], each["entry_id"]) for each in spottings]

    everything = found(toy_world.broadcast)
    assert everything
    assert found(video, "--box", "0.75,0.5,1,1") == found(video, "--box", "75%,50%,100%,100%") == everything
    assert found(video) != everything


def test_a_bug_is_told_in_one_line_with_exit_code_4(
    toy_world: ToyWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("signspot.embedding.zoo.load_model", lambda *_, **__: 1 / 0)
    assert spot(toy_world, "apple") == 4
    message = capsys.readouterr().err
    assert "this is a bug in signspot: ZeroDivisionError" in message
    assert "Traceback" not in message
    arguments = ["spot", str(toy_world.broadcast), "apple", "-d", str(toy_world.dictionary)]
    assert cli.run(arguments, debug=True) == 4
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_is_exit_code_130(
    toy_world: ToyWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("signspot.workflows.spot_files.spot_prepared", interrupt)
    assert spot(toy_world, "apple") == 130
    assert capsys.readouterr().err == "signspot: interrupted\n"


def test_the_table_of_an_interrupted_batch_is_said_to_be_partial(
    toy_world: ToyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "videos").mkdir()
    for name in ("a.mp4", "b.mp4"):
        shutil.copy(toy_world.broadcast, tmp_path / "videos" / name)

    def interrupted(episode: Episode, *more: Any) -> VideoAnswer:
        if episode.video_id == "b":
            raise KeyboardInterrupt
        return spot_prepared(episode, *more)

    monkeypatch.setattr("signspot.workflows.spot_files.spot_prepared", interrupted)
    assert spot(toy_world, "apple", "--csv", "all.csv", source=tmp_path / "videos") == 130
    said = capsys.readouterr().err
    assert "all.csv: only the videos that were finished; repeat with --overwrite to have all" in said
    assert {one.video_id for one in read_spottings(tmp_path / "all.csv")} == {"a"}


def test_nothing_is_asked_of_a_network(toy_world: ToyWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert spot(toy_world, "tree", "--eaf", str(tmp_path / "x.eaf")) == 0


def test_real_recordings_go_through(shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = tmp_path / "dictionary"
    for name in ("apple", "eat", "coffee"):
        if (shared_data / "aslearn" / "words" / f"{name}.mp4").exists():
            (words / name).mkdir(parents=True)
            shutil.copy(shared_data / "aslearn" / "words" / f"{name}.mp4", words / name)
    before = sha256s(shared_data / "real_video")
    videos = [shared_data / "real_video" / "bsl_broadcast.mp4", shared_data / "real_video" / "drink_17730.mp4"]
    videos.append(shared_data / "aslearn" / "sentences" / "ieatapple.mp4")
    for video in videos:
        plot = tmp_path / f"{video.stem}.png"
        assert (
            cli.run(["spot", str(video), "eat", "-d", str(words), "-m", "colour", "--json", "--plot", str(plot)]) == 0
        )
        answer = json.loads(capsys.readouterr().out)
        assert answer["duration_ms"] > 1000
        assert answer["words"][0]["best_cosine"] is not None
    assert sha256s(shared_data / "real_video") == before


def test_one_clip_may_show_several_words(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(toy_world.dictionary / "tree" / "tree_1.mp4", tmp_path / "clip.mp4")
    (tmp_path / "dictionary.csv").write_text("word,file\ntree,clip.mp4\nwood,clip.mp4\ntree,clip.mp4\n")
    assert cli.run(["dictionary", "check", str(tmp_path), "--words"]) == 1
    printed = capsys.readouterr().out
    assert "2 words" in printed
    assert "clip.mp4 tree comes twice" in printed
    assert "1 wood" in printed


def test_what_is_not_in_the_vocabulary_is_said(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "signbank.csv"
    table.write_text("Signbank ID,Dataset,Annotation ID Gloss (English)\n17,BSL,TREE\n")
    assert spot(toy_world, "tree", "apple", "--vocabulary", str(table), "--json") == 0
    captured = capsys.readouterr()
    assert "apple: the vocabulary has no sign of this name, or several" in captured.err
    assert "tree: the vocabulary" not in captured.err
    assert {s["word"]: s["type_id"] for s in json.loads(captured.out)["spottings"]} == {"tree": "17", "apple": ""}


def counted_ecv(path: Path) -> Path:
    """An ECV as that of the BSL Corpus: every vocabulary counts its entries anew."""
    glosses = {"tags": ("NA", "Ambiguous", "other"), "nouns": ("TREE", "APPLE"), "mouth": ("WATER", "tree")}
    lists = "".join(
        f'<CONTROLLED_VOCABULARY CV_ID="{name}">'
        + "".join(
            f'<CV_ENTRY_ML CVE_ID="cveid{number}"><CVE_VALUE LANG_REF="eng">{gloss}</CVE_VALUE></CV_ENTRY_ML>'
            for number, gloss in enumerate(some)
        )
        + "</CONTROLLED_VOCABULARY>"
        for name, some in glosses.items()
    )
    path.write_text(f'<CV_RESOURCE><LANGUAGE LANG_ID="eng"/>{lists}</CV_RESOURCE>')
    return path


def linked_glosses(path: Path) -> tuple[set[tuple[str, str]], str]:
    tier = read_eaf(path).tiers[-3]
    return {(one.value, one.cve_ref) for one in tier.annotations}, tier.vocabulary


@pytest.mark.parametrize("name", ["signs.ecv", "sign#s.ecv", "signs.ecv#tags"])
def test_the_vocabulary_that_is_named_gives_its_own_glosses(
    name: str, toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ecv, out = counted_ecv(tmp_path / name), tmp_path / "x.eaf"
    assert spot(toy_world, "tree", "apple", "water", "--vocabulary", f"{ecv}#nouns", "--eaf", str(out)) == 0
    assert linked_glosses(out) == ({("TREE", "cveid0"), ("APPLE", "cveid1"), ("water", "")}, "nouns")
    (written,) = read_eaf(out).vocabularies
    assert (written.cv_id, written.ecv_url) == ("nouns", f"file://{ecv}")
    assert "water: the vocabulary has no sign of this name" in capsys.readouterr().err
    # Added to that file, the vocabulary of its tiers is meant.
    again = tmp_path / "again.eaf"
    assert spot(toy_world, "tree", "--vocabulary", str(ecv), "--eaf", str(again), source=out) == 0
    assert linked_glosses(again) == ({("TREE", "cveid0")}, "nouns")
    assert read_eaf(again).vocabularies == (written,)
    assert "the vocabulary 'nouns' is taken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("", "holds 3 vocabularies: tags, nouns, mouth: choose one by its name, such as --vocabulary"),
        ("#noun", "has no vocabulary 'noun', only tags, nouns, mouth"),
        ("#", "has no vocabulary '', only tags, nouns, mouth"),
        ("x#nouns", "no such file"),
    ],
)
def test_a_vocabulary_that_is_not_clear_is_refused_before_any_work(
    chosen: str, message: str, toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ecv = counted_ecv(tmp_path / "signs.ecv")
    assert spot(toy_world, "tree", "--vocabulary", f"{ecv}{chosen}", "--eaf", str(tmp_path / "x.eaf")) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["signs.ecv"]


def test_one_dataset_of_a_table_may_be_named(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "signbank.csv"
    table.write_text("Signbank ID,Dataset,Annotation ID Gloss (English)\n17,BSL,TREE\n18,NGT,TREE\n19,NGT,APPLE\n")
    for chosen, ids in (("", {"tree": "", "apple": "19"}), ("#BSL", {"tree": "17", "apple": ""})):
        assert spot(toy_world, "tree", "apple", "--vocabulary", f"{table}{chosen}", "--json") == 0
        assert {s["word"]: s["type_id"] for s in json.loads(capsys.readouterr().out)["spottings"]} == ids


def test_words_without_an_id_are_said_in_one_line(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ecv = counted_ecv(tmp_path / "signs.ecv")
    assert spot(toy_world, "tree", "apple", "water", "--vocabulary", f"{ecv}#tags", "--json") == 0
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "the vocabulary has no sign" in line]
    assert "tree, apple, water: the vocabulary has no sign of these names, or several" in said


def test_words_that_are_not_found_are_one_line(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    folder, words = tmp_path / "dictionary", [f"word{number}" for number in range(40)]
    shutil.copytree(toy_world.dictionary, folder)
    for word in words:
        (folder / word).mkdir()
        shutil.copy(toy_world.dictionary / "house" / "house_1.mp4", folder / word / f"{word}_1.mp4")
    asked = ["spot", str(toy_world.broadcast), "tree", "-d", str(folder), "--model", "colour", "--trust"]
    for missing in (words[:2], words):
        assert cli.run([*asked, *missing]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if "word0" in line]
        assert line.startswith("not found: word0")
        assert all(word in line for word in missing)
        assert line.endswith("; needed 0.950, uncalibrated")
        assert line.count("closest") == (2 if missing == words[:2] else 0)


def test_words_that_no_subtitle_mentions_share_the_line(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cue = tmp_path / "one.vtt"
    cue.write_text("WEBVTT\n\n00:00:01.000 --> 00:00:04.000\nA house.\n")
    assert spot(toy_world, "house", "tree", "apple", "--subtitles", str(cue)) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"not found: house \(closest 0\.\d+\); needed 0\.950, uncalibrated; "
        "not searched, since no subtitle mentions them: tree, apple",
        line,
    )


NO_HOMES = [None, "relative", "/nowhere at all", "/dev/null/x", "/proc"]


def without_home(monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)


@pytest.mark.parametrize("home", NO_HOMES)
def test_without_a_home_nothing_is_kept_and_the_search_goes_on(
    home: str | None, toy_world: ToyWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_home(monkeypatch, home)
    assert cli.run(["spot", str(toy_world.broadcast), "apple", "-d", str(toy_world.dictionary), "--trust"]) == 0
    said = capsys.readouterr()
    assert "vectors are not kept (--store DIR keeps them)" in said.err and "apple/apple_1.mp4" in said.out


@pytest.mark.parametrize("home", NO_HOMES)
def test_without_a_home_commands_that_keep_something_say_what_to_do(
    home: str | None,
    toy_world: ToyWorld,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    without_home(monkeypatch, home)
    monkeypatch.chdir(tmp_path)
    assert cli.run(["models", "list"]) == 0
    assert "landmark-v1" in capsys.readouterr().out
    for words, fix in (
        (["models", "import", "x.pth"], "set "),
        (["models", "fetch", "bsldict"], "set "),
        (["embed", str(toy_world.broadcast), "-m", "colour"], "name a folder with --store"),
    ):
        assert cli.run(words) == 3
        error = capsys.readouterr().err
        assert fix in error and error.count("\n") == 1 and "a bug" not in error
    assert list(tmp_path.iterdir()) == [] and not Path("/nowhere at all").exists()


def test_the_home_of_somebody_else_is_none(
    toy_world: ToyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = os.stat

    def closed(path: Any, *more: Any, **named: Any) -> os.stat_result:
        if str(path).startswith(f"{tmp_path}{os.sep}"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *more, **named)

    without_home(monkeypatch, str(tmp_path))
    monkeypatch.setattr(os, "stat", closed)
    asked = ["spot", str(toy_world.broadcast), "apple", "-d", str(toy_world.dictionary), "--trust"]
    for words, code in ((["models", "list"], 0), (asked, 0), ([*asked, "-m", "unknown"], 2)):
        assert cli.run(words) == code, capsys.readouterr().err


@pytest.mark.parametrize("has_home", [True, False])
def test_pictures_leave_nothing_in_the_home_folder_but_what_is_ours(
    has_home: bool, toy_world: ToyWorld, tmp_path: Path
) -> None:
    home, scratch, plot = tmp_path / "home", tmp_path / "scratch", tmp_path / "plot.png"
    home.mkdir()
    scratch.mkdir()
    own = {"HOME": str(home) if has_home else "/dev/null/x", "TMPDIR": str(scratch)}
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("XDG_", "MPL"))}
    words = ["spot", str(toy_world.broadcast), "apple", "-d", str(toy_world.dictionary), "-m", "colour"]
    done = subprocess.run(
        [sys.executable, "-m", "signspot", *words, "--plot", str(plot)],
        env=kept | own,
        capture_output=True,
        text=True,
        check=True,
    )
    assert plot.stat().st_size > 100 and done.stderr == ""
    assert {path.relative_to(home).as_posix() for path in home.glob("*/*")} <= {".cache/signspot"}
    assert list(scratch.iterdir()) == []


def test_several_processes_give_the_same_files_and_the_same_failures(
    toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    for name in "abc":
        shutil.copy(toy_world.broadcast, videos / f"{name}.mp4")
    (videos / "bad.mp4").write_bytes(b"no video")
    printed = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        out.mkdir()
        outputs = ["--csv", str(out / "all.csv"), "--json", str(out / "all.json"), "--vtt", str(out / "vtt")]
        asked = ["apple", "house", *outputs, "--no-store", "--failures", str(out / "failures.jsonl"), "--jobs", jobs]
        assert spot(toy_world, *asked, source=videos) == 1
        printed.append(capsys.readouterr().out.replace(str(out), ""))
    assert printed[0] == printed[1] and printed[0].count("house: not found") == 3
    one, two = ({path.relative_to(tmp_path / j): d for path, d in sha256s(tmp_path / j).items()} for j in "12")
    assert one == two and len(one) == 6
