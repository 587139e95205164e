from __future__ import annotations

import contextlib
import csv
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from signspot.cli import main as cli
from signspot.domain.recordings import Signer, SignerBox, Word
from signspot.errors import DictionaryError, FormatError, OutputExists, SignspotError
from signspot.formats.wlasl import Box, _ClipRecord, import_msasl, import_wlasl
from signspot.stores.dictionary import read_dictionary
from tests.formats.spottings import mutants, write_mutant


def instance(video_id: str, **fields: object) -> dict[str, object]:
    return {
        "bbox": [385, 37, 885, 720],
        "fps": 25,
        "frame_end": -1,
        "frame_start": 1,
        "instance_id": 0,
        "signer_id": 118,
        "source": "aslbrick",
        "split": "train",
        "url": "http://aslbricks.org/New/ASL-Videos/book.mp4",
        "variation_id": 0,
        "video_id": video_id,
    } | fields


WLASL = [
    {
        "gloss": "ice cream",
        "instances": [
            instance("69241"),
            instance("00335", frame_start=21, frame_end=60, variation_id=1, signer_id=9, split="val"),
            instance("gone"),
        ],
    },
    {"gloss": "book", "instances": [instance("07069")]},
]
MSASL = [
    {
        "org_text": "match [light-a-MATCH]",
        "clean_text": "match",
        "start_time": 10.5,
        "signer_id": 0,
        "signer": 0,
        "start": 315,
        "end": 398,
        "file": "match light-a-match",
        "label": 830,
        "height": 360.0,
        "fps": 30.0,
        "end_time": 13.267,
        "url": "https://www.youtube.com/watch?v=C37R_Ix8-qs",
        "text": "match",
        "box": [0.0575, 0.2163, 1.0, 0.873],
        "width": 640.0,
    }
]


def table(tmp_path: Path, content: object, name: str = "WLASL_v0.3.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    folder = tmp_path / "clips"
    folder.mkdir()
    for name in ("69241.mp4", "00335.mp4", "07069.mp4", "C37R_Ix8-qs_000010_000013.mp4"):
        (folder / name).touch()
    return folder


def test_wlasl_becomes_a_dictionary_like_any_other(tmp_path: Path, clips: Path) -> None:
    result = import_wlasl(table(tmp_path, WLASL), clips)
    read = read_dictionary(clips)
    assert read.problems == () and read.dictionary == result.dictionary and read.dictionary.name == "WLASL"
    assert [(e.word, e.entry_id, e.variant, e.video, e.signer) for e in read.dictionary] == [
        ("book", "07069", "0", clips / "07069.mp4", Signer("118")),
        ("ice-cream", "69241", "0", clips / "69241.mp4", Signer("118")),
        ("ice-cream", "00335", "1", clips / "00335.mp4", Signer("9")),
    ]
    (book,) = read.dictionary.entries(Word("book"))
    assert book.language == "ase" and book.rights.licence.startswith("C-UDA") and book.rights.may_train is True
    assert book.rights.may_export_clips is None  # not known, so not allowed
    assert [str(p) for p in result.problems] == [f"{clips / 'gone.mp4'}: 'ice cream': no such file: add the clip"]


def test_frames_that_count_from_one_become_half_open_spans(tmp_path: Path, clips: Path) -> None:
    result = import_wlasl(table(tmp_path, WLASL), clips)
    _, first, second = result.records
    assert json.loads((clips / "clips.json").read_text())["clips"] == [asdict(one) for one in result.records]
    assert (first.start, first.stop, first.fps) == (0, None, 25)
    assert (second.start, second.stop) == (20, 60)  # 21, 22, ... 60 counted from 1
    assert second.box == Box(top=37, left=385, bottom=720, right=885, in_pixels=True)
    assert {entry.box for entry in result.dictionary} == {None}  # pixels of a picture whose size nobody told
    assert (second.text, second.split, second.source) == ("ice cream", "val", "aslbrick")
    assert second.url == "http://aslbricks.org/New/ASL-Videos/book.mp4"


def test_msasl_becomes_a_dictionary_like_any_other(tmp_path: Path, clips: Path) -> None:
    rows = [*MSASL, {**MSASL[0], "text": "fire", "url": "https://youtu.be/aaaaaaaaaaa"}]
    result = import_msasl([table(tmp_path, rows, "MSASL_train.json")], clips)
    (entry,) = read_dictionary(clips).dictionary
    assert (entry.entry_id, entry.word, entry.signer) == ("C37R_Ix8-qs_315_398", "match", Signer("0"))
    assert entry.video == clips / "C37R_Ix8-qs_000010_000013.mp4"
    (record,) = result.records
    assert record == _ClipRecord(
        entry_id="C37R_Ix8-qs_315_398",
        text="match",
        start=315,
        stop=398,
        fps=30.0,
        box=Box(0.0575, 0.2163, 1.0, 0.873),
        signer="0",
        split="train",
        source="YouTube",
        url="https://www.youtube.com/watch?v=C37R_Ix8-qs",
        label=830,
    )
    assert [entry.box for entry in result.dictionary] == [SignerBox(left=0.2163, top=0.0575, right=0.873, bottom=1.0)]
    assert "aaaaaaaaaaa_000010_000013.mp4: 'fire': no such file" in str(result.problems[0])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"video_id": "../secret"}, "is '../secret', which is not a name"),
        ({"video_id": 5}, "is 5, which is not text"),
        ({"frame_start": 0}, "no frames from 0 to -1"),
        ({"frame_start": 9, "frame_end": 8}, "no frames from 9 to 8"),
        ({"frame_end": 10**12}, "which is not a frame number"),
        ({"fps": 0}, "0 frames a second"),
        ({"bbox": [1, 2]}, "has 2 values where 4 are expected"),
        ({"bbox": [9, 9, 1, 1]}, "a box ends before it starts"),
        ({"bbox": "x"}, "is 'x', which is not a list"),
        ({"video_id": "69241"}, "comes twice"),
    ],
)
def test_a_bad_row_is_left_out_and_told(tmp_path: Path, clips: Path, fields: dict[str, object], words: str) -> None:
    rows = [{"gloss": "a", "instances": [instance("69241"), instance("00335") | fields]}]
    result = import_wlasl(table(tmp_path, rows), clips)
    assert len(result.dictionary) == 1 and len(result.problems) == 1
    assert words in str(result.problems[0])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "https://example.org/x"}, "no YouTube video in"),
        ({"url": None}, "is None, which is not text"),
        ({"start": 5, "end": 5}, "no frames from 5 to 5"),
        ({"start_time": "x"}, "is 'x', which is not a number"),
        ({"text": "", "clean_text": "?"}, "no word in '?'"),
        ({"fps": 1e9}, "frames a second"),
    ],
)
def test_a_bad_row_of_msasl_is_left_out_and_told(
    tmp_path: Path, clips: Path, fields: dict[str, object], words: str
) -> None:
    result = import_msasl([table(tmp_path, [MSASL[0], MSASL[0] | fields])], clips)
    assert len(result.dictionary) == 1 and words in str(result.problems[0])


@pytest.mark.parametrize("content", [{}, 5, [5], [{"gloss": "a"}], [{"instances": []}]], ids=str)
def test_another_file_is_refused(tmp_path: Path, clips: Path, content: object) -> None:
    with pytest.raises(FormatError, match=r"which is no|has no field"):
        import_wlasl(table(tmp_path, content), clips)


def test_without_any_clip_the_user_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DictionaryError, match=r"no usable clip; the first of 4 problems: .*69241.mp4.* of WLASL"):
        import_wlasl(table(tmp_path, WLASL), tmp_path / "empty")
    assert not list((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("name", ["WLASL_v0.3.json", "MSASL_train.json"])
def test_thousands_of_missing_clips_become_a_number_and_a_list(
    tmp_path: Path, clips: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    if name.startswith("W"):
        content: object = [*WLASL, {"gloss": "tree", "instances": [instance(f"{i:05}x") for i in range(2000)]}]
        n_missing = 2001
    else:
        times = [{"start_time": 100.0 + i, "end_time": 101.0 + i, "start": i, "end": 5000} for i in range(2000)]
        content = [*MSASL, *(MSASL[0] | one for one in times)]
        n_missing = 2000
    listed = clips / "problems.csv"
    command = ["dictionary", "import", str(table(tmp_path, content, name)), str(clips)]
    assert cli.run(command) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) <= 6
    assert f"{n_missing:,} missing clips" in printed[0] and "entrie " not in printed[0]
    count = f"cannot be used: {n_missing:,} clips of the list"
    assert printed[1] == f"{count}: {listed} names them all, the first are:"
    assert sum("no such file: add the clip" in line for line in printed) == 3
    with listed.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == n_missing
    assert all(row["reason"].endswith("no such file") and row["file"].endswith(".mp4") for row in rows)
    assert read_dictionary(clips).problems == ()
    assert cli.run(command) == 2  # nothing is replaced unasked
    for row in rows:
        Path(row["file"]).touch()
    assert cli.run([*command, "--overwrite"]) == 0
    assert "missing clips" in capsys.readouterr().out
    assert len(listed.read_text(encoding="utf-8-sig").splitlines()) == 1


def test_a_few_missing_clips_are_named(tmp_path: Path, clips: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["dictionary", "import", str(table(tmp_path, WLASL)), str(clips)]) == 0
    printed = capsys.readouterr().out
    assert "1 missing clip" in printed and "names them all" not in printed
    assert f"cannot be used: {clips / 'gone.mp4'}: 'ice cream': no such file: add the clip" in printed


def test_an_existing_dictionary_is_replaced_only_when_asked(tmp_path: Path, clips: Path) -> None:
    path = table(tmp_path, WLASL)
    first = import_wlasl(path, clips)
    with pytest.raises(OutputExists, match="exists already"):
        import_wlasl(path, clips)
    assert import_wlasl(path, clips, overwrite=True) == first


def test_a_damaged_table_gives_a_dictionary_or_a_typed_error(tmp_path: Path, clips: Path) -> None:
    for content in mutants(json.dumps(WLASL).encode(), 1000, seed=7):
        with contextlib.suppress(SignspotError):
            import_wlasl(write_mutant(tmp_path / "m.json", content), clips, overwrite=True)
    for content in mutants(json.dumps(MSASL).encode(), 1000, seed=8):
        with contextlib.suppress(SignspotError):
            import_msasl([write_mutant(tmp_path / "m.json", content)], clips, overwrite=True)
