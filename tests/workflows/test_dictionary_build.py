"""Dictionaries are built from real clips: what comes out is read back by the same reader every command uses."""

from __future__ import annotations

import csv
import hashlib
import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import Dictionary, Entry, Word, normalise
from signspot.domain.time import FrameSpan
from signspot.embedding.model import Reading
from signspot.embedding.pictures import ColourModel
from signspot.errors import DictionaryError, EnvironmentProblem, InputError, OutputExists, SignspotError
from signspot.stores.dictionary import EntryFeatures, FeatureSet, read_dictionary, write_dictionary_manifest
from signspot.workflows.dictionary import (
    Build,
    BuildOptions,
    CheckOptions,
    _tidy_variant,
    build_dictionary,
    check_dictionary,
)
from tests.media.moving_clips import MOVING, STILL, make_clip, moving_frames, store

HERE = BuildOptions(reading=Reading(isolated=False), on=date(2026, 1, 1))


def sha256s(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def three_clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    make_clip(folder / "Apple.mp4", 1)
    make_clip(folder / "ice_cream_02.mp4", 2)
    make_clip(folder / "tree" / "any.mp4", 3)
    return folder


@pytest.fixture
def source(three_clips: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(three_clips, tmp_path / "source"))


def build(source: Path, folder: Path, options: BuildOptions = HERE) -> Build:
    return build_dictionary(source, folder, options)


def entries(folder: Path) -> dict[Word, Entry]:
    read = read_dictionary(folder)
    assert read.problems == ()
    return {entry.word: entry for entry in read.dictionary}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_folder_becomes_a_dictionary_with_trims_and_the_source_stays_as_it_was(source: Path, tmp_path: Path) -> None:
    before = sha256s(source)
    result = build(source, tmp_path / "built")
    assert sha256s(source) == before
    assert dict(result.counts) == {"words": 3, "variants": 3, "clips": 3, "signers": 0}
    made = entries(tmp_path / "built")
    assert list(made) == ["apple", "ice-cream", "tree"]
    assert made[Word("ice-cream")].variant == "2"
    for entry in made.values():
        assert entry.kept is not None and entry.video is not None
        assert abs(entry.kept.start - STILL) <= 2 and abs(entry.kept.stop - (STILL + MOVING)) <= 2
        assert hashlib.sha256(entry.video.read_bytes()).hexdigest() in before.values()
    assert (result.frames, result.kept_frames) == (120, sum(len(entry.kept or ()) for entry in made.values()))
    assert check_dictionary(tmp_path / "built", CheckOptions(reading=Reading(isolated=False))).problems == ()
    for name in ("index.html", "contact_sheet_001.png", "problems.csv", "duplicates.csv"):
        assert (tmp_path / "built" / name).is_file()


def test_a_vector_is_made_of_the_kept_part_only(tmp_path: Path) -> None:
    colours = [(255, 0, 0)] * 20 + [(0, 255, 0)] * 20 + [(0, 0, 255)] * 20
    video = store(tmp_path / "a.mp4", [np.full((64, 64, 3), colour, np.uint8) for colour in colours])
    entry = Entry(entry_id="a", word=Word("a"), video=video, kept=FrameSpan(20, 40))
    assert ColourModel().entry(entry, Reading(isolated=False))[0] == pytest.approx([0, 1, 0], abs=0.05)
    beyond = replace(entry, kept=FrameSpan(20, 61))
    with pytest.raises(SignspotError, match="has 60 frames, but its dictionary keeps frames 20 to 61"):
        ColourModel().entry(beyond, Reading(isolated=False))


def test_every_trouble_is_named_and_the_rest_is_built(source: Path, tmp_path: Path) -> None:
    (source / "broken.mp4").write_bytes(b"no video at all")
    (source / "empty.mp4").touch()
    (source / "page.mp4").write_text("<!doctype html><p>not found")
    unreadable = source / "long.mp4"
    store(unreadable, moving_frames(4, still=1500, moving=20))
    result = build(source, tmp_path / "built")
    reasons = {Path(problem.where).name: problem.what for problem in result.problems}
    assert set(reasons) == {"broken.mp4", "empty.mp4", "page.mp4", "long.mp4"}
    assert "empty file" in reasons["empty.mp4"] and "longer than two minutes" in reasons["long.mp4"]
    assert len(entries(tmp_path / "built")) == 3
    written = rows(tmp_path / "built" / "problems.csv")
    assert {(Path(row["file"]).name, row["reason"]) for row in written if row["left_out"] == "yes"} == set(
        reasons.items()
    )


def test_missing_files_of_a_table_are_named_with_their_line(source: Path, tmp_path: Path) -> None:
    (source / "dictionary.csv").write_text(
        "word,file,signer,kept_start,kept_stop\nAPPLE!,Apple.mp4,S7,3,9\ntree,gone.mp4,S7,,\nTree,tree/any.mp4,,0,99\n"
    )
    result = build(source / "dictionary.csv", tmp_path / "built")
    texts = [str(problem) for problem in result.problems]
    assert "line 3" in texts[0] and "no such file" in texts[0]
    assert "has 40 frames, but frames 0 to 99 are to be kept" in texts[1]
    made = entries(tmp_path / "built")
    assert [*made] == ["apple"]
    # What somebody chose to keep is not trimmed again.
    assert made[Word("apple")].kept == FrameSpan(3, 9)
    signer = made[Word("apple")].signer
    assert signer is not None and signer.signer_id == "S7"


def test_the_same_bytes_count_once_a_word_and_copies_are_only_reported(source: Path, tmp_path: Path) -> None:
    shutil.copy(source / "Apple.mp4", source / "apple_2.mp4")
    shutil.copy(source / "Apple.mp4", source / "fruit.mp4")
    store(source / "pear.mp4", moving_frames(3)[2:])
    result = build(source, tmp_path / "built")
    found = {(one.entry.entry_id, one.other.entry_id, one.kind, one.left_out) for one in result.duplicates}
    assert found == {
        ("apple_2.mp4", "Apple.mp4", "the same file", True),
        ("fruit.mp4", "Apple.mp4", "the same file", False),
        ("tree/any.mp4", "pear.mp4", "nearly the same", False),
    }
    assert set(entries(tmp_path / "built")) == {"apple", "fruit", "ice-cream", "pear", "tree"}
    written = rows(tmp_path / "built" / "duplicates.csv")
    assert {(row["entry_id"], row["same_as"], row["kind"], row["left_out"] == "yes") for row in written} == found


def test_a_second_run_reads_no_clip_again_and_writes_the_same(source: Path, tmp_path: Path) -> None:
    first = build(source, tmp_path / "built")
    before = sha256s(tmp_path / "built")
    second = build(source, tmp_path / "built")
    assert (first.read_before, second.read_before) == (0, 3)
    assert sha256s(tmp_path / "built") == before
    assert replace(second, read_before=0) == first


def test_clips_added_to_the_source_are_the_only_ones_read(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "built")
    make_clip(source / "new.mp4", 9)
    (source / "Apple.mp4").unlink()
    result = build(source, tmp_path / "built")
    assert result.read_before == 2
    assert set(entries(tmp_path / "built")) == {"ice-cream", "new", "tree"}
    assert any("no longer listed, such as apple-" in str(remark) for remark in result.remarks)
    assert any(path.name.startswith("apple-") for path in (tmp_path / "built" / "clips").iterdir())


def test_other_ways_to_trim_are_not_mixed_up(source: Path, tmp_path: Path) -> None:
    trimmed = build(source, tmp_path / "built")
    whole = build(source, tmp_path / "built", replace(HERE, trim=None))
    assert (whole.read_before, whole.kept_frames) == (0, 120)
    assert all(entry.kept is None for entry in entries(tmp_path / "built").values())
    again = build(source, tmp_path / "built")
    assert (again.read_before, again.kept_frames) == (3, trimmed.kept_frames)


def test_a_word_may_have_forty_clips_and_names_may_collide(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for number in range(40):
        make_clip(source / "apple" / f"{number}.mp4", number)
    make_clip(source / "Apple.mp4", 100)
    make_clip(source / "APPLE.mp4", 101)
    make_clip(source / "apple .mp4", 102)
    result = build(source, tmp_path / "built")
    assert dict(result.counts)["clips"] == 43 and dict(result.counts)["words"] == 1
    read = read_dictionary(tmp_path / "built")
    assert len(read.dictionary) == 43 and read.problems == ()
    names = [path.name.lower() for path in (tmp_path / "built" / "clips").iterdir()]
    assert len(names) == len(set(names)) == 43


def test_words_no_file_system_takes_are_no_trouble(source: Path, tmp_path: Path) -> None:
    words = ["and/or", "x" * 200, "..", "a\\b", "苹果", "=1+1", "con"]
    lines = [f'"{word}",Apple.mp4' for word in words]
    (source / "dictionary.csv").write_text("\n".join(["word,file", *lines]), encoding="utf-8")
    result = build(source, tmp_path / "built")
    assert set(entries(tmp_path / "built")) == {normalise(word) for word in words if word != ".."}
    assert [problem.what for problem in result.problems if ".." in problem.what]
    assert all(path.parent == tmp_path / "built" / "clips" for path in (tmp_path / "built" / "clips").rglob("*.mp4"))


def test_what_may_not_be_shown_gets_no_picture(source: Path, tmp_path: Path) -> None:
    (source / "dictionary.csv").write_text(
        "word,file,may_display,expires\napple,Apple.mp4,no,\ntree,tree/any.mp4,yes,2025-01-01\nice,ice_cream_02.mp4,,\n"
    )
    build(source, tmp_path / "built")
    assert len(list((tmp_path / "built" / "thumbnails").iterdir())) == 1
    assert (tmp_path / "built" / "index.html").read_text().count("its holder does not allow it") == 2
    assert len(entries(tmp_path / "built")) == 3


def test_links_share_the_file_and_copies_do_not(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "linked", replace(HERE, link=True))
    build(source, tmp_path / "copied")
    linked, copied = (entries(tmp_path / name)[Word("apple")].video for name in ("linked", "copied"))
    assert linked is not None and linked.samefile(source / "Apple.mp4")
    assert copied is not None and not copied.samefile(source / "Apple.mp4")


def test_a_wlasl_list_is_built_and_nothing_is_written_beside_it(source: Path, tmp_path: Path) -> None:
    (source / "videos").mkdir()
    shutil.move(source / "Apple.mp4", source / "videos" / "00335.mp4")
    instances = [
        {"video_id": "00335", "frame_start": 1, "frame_end": -1, "fps": 25, "signer_id": 4, "variation_id": 1},
        {"video_id": "00336", "frame_start": 1, "frame_end": -1, "fps": 25, "signer_id": 4, "variation_id": 0},
    ]
    (source / "WLASL_v0.3.json").write_text(json.dumps([{"gloss": "Apple Pie", "instances": instances}]))
    before = sha256s(source)
    result = build(source / "WLASL_v0.3.json", tmp_path / "built")
    assert sha256s(source) == before
    entry = entries(tmp_path / "built")[Word("apple-pie")]
    assert (entry.variant, entry.language, entry.rights.may_train) == ("1", "ase", True)
    assert "00336.mp4" in result.problems[0].where and "no such file" in result.problems[0].what
    moved = Path(shutil.move(source / "videos", tmp_path / "elsewhere"))
    again = build(source / "WLASL_v0.3.json", tmp_path / "other", replace(HERE, clips=moved))
    assert again.counts == result.counts


def test_entries_with_stored_vectors_only_come_along(source: Path, tmp_path: Path) -> None:
    vectors = np.eye(2, 1024, dtype=np.float32)
    present = np.ones(2, bool)
    features = EntryFeatures(("a", "b"), {"i3d": FeatureSet("bsldict", vectors, present)})
    features.write(source)
    stored = [Entry(entry_id=name, word=Word(word)) for name, word in (("a", "apple"), ("b", "bread"))]
    clip = Entry(entry_id="c", word=Word("apple"), video=source / "Apple.mp4")
    write_dictionary_manifest(Dictionary.of("bsldict", [*stored, clip]), source / "dictionary.json")
    result = build(source, tmp_path / "built")
    assert dict(result.counts) == {"words": 2, "variants": 2, "clips": 1, "signers": 0}
    read = read_dictionary(tmp_path / "built")
    assert {entry.entry_id: entry.video is None for entry in read.dictionary} == {"a": True, "b": True, "c": False}


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        ("source", InputError, "is the source itself, which is never changed"),
        ("source/inside", InputError, "lies inside the source"),
        ("no/such/place", InputError, "the folder to write to does not exist"),
        ("file", InputError, "is no folder"),
        ("full", OutputExists, "holds something else, such as 'thesis.docx'"),
    ],
)
def test_a_folder_that_cannot_be_built_in_is_refused_untouched(
    source: Path, tmp_path: Path, target: str, kind: type[SignspotError], message: str
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.docx").write_text("mine")
    before = sha256s(tmp_path)
    for anew in (False, True):
        with pytest.raises(kind, match=message):
            build(source, tmp_path / target, replace(HERE, anew=anew))
    assert sha256s(tmp_path) == before


def test_sources_without_a_readable_clip_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    for name, content in (("empty", None), ("text", "read me.txt"), ("broken", "apple.mp4")):
        (tmp_path / name).mkdir()
        if content:
            (tmp_path / name / content).write_text("nothing")
        with pytest.raises(DictionaryError, match=r"no usable clip|no readable clip; the first of 1 problems: .*apple"):
            build(tmp_path / name, tmp_path / "built")
    with pytest.raises(DictionaryError, match="no such file or folder"):
        build(tmp_path / "nowhere", tmp_path / "built")
    (tmp_path / "bsldict_v1.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="signspot dictionary import"):
        build(tmp_path / "bsldict_v1.pkl", tmp_path / "built")
    assert not (tmp_path / "built").exists()


def test_a_dictionary_changed_by_hand_is_not_replaced_unasked(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "built")
    manifest = tmp_path / "built" / "dictionary.csv"
    corrected = manifest.read_text(encoding="utf-8-sig").replace("apple,", "pear,", 1)
    manifest.write_text(corrected, encoding="utf-8")
    with pytest.raises(OutputExists, match="was changed by hand"):
        build(source, tmp_path / "built")
    assert manifest.read_text(encoding="utf-8") == corrected
    # The corrected table is itself a source, and its words and trims stay.
    build(manifest, tmp_path / "corrected")
    assert set(entries(tmp_path / "corrected")) == {"ice-cream", "pear", "tree"}
    build(source, tmp_path / "built", replace(HERE, anew=True))
    assert "apple" in entries(tmp_path / "built")


def test_a_folder_of_another_source_is_not_replaced_unasked(source: Path, tmp_path: Path) -> None:
    make_clip(tmp_path / "other" / "moon.mp4", 8)
    build(source, tmp_path / "built")
    with pytest.raises(OutputExists, match="was built from another source"):
        build(tmp_path / "other", tmp_path / "built")
    assert "apple" in entries(tmp_path / "built")
    build(tmp_path / "other", tmp_path / "built", replace(HERE, anew=True))
    assert set(entries(tmp_path / "built")) == {"moon"}


@contextmanager
def files_of_at_most(n_bytes: int) -> Iterator[None]:
    """As on a full disk: writing more than that to any file fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_the_build_in_one_line_and_the_next_run_goes_on(source: Path, tmp_path: Path) -> None:
    store(source / "zebra.mp4", list(np.random.default_rng(0).integers(0, 255, (40, 256, 256, 3), np.uint8)))
    assert (source / "zebra.mp4").stat().st_size > 600_000 > (source / "Apple.mp4").stat().st_size
    with files_of_at_most(600_000), pytest.raises(EnvironmentProblem, match="the disk is full"):
        build(source, tmp_path / "built")
    assert not list((tmp_path / "built").rglob(".signspot-*"))
    result = build(source, tmp_path / "built")
    assert result.read_before == 3
    assert len(entries(tmp_path / "built")) == 4


def test_a_clip_that_vanishes_meanwhile_is_named_and_the_progress_reaches_the_end(source: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, float, float | None]] = []

    def watch(step: str, done: float, total: float | None) -> None:
        seen.append((step, done, total))
        (source / "tree" / "any.mp4").unlink(missing_ok=True)

    result = build_dictionary(
        source, tmp_path / "built", replace(HERE, reading=Reading(isolated=False, progress=watch))
    )
    assert [(Path(p.where).name, p.what) for p in result.problems] == [("any.mp4", "no such file")]
    assert [done for step, done, _ in seen if step == "reading clips"] == [1, 2, 3]
    assert seen[-1] == ("drawing contact sheets", 1, 1)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "signspot", "dictionary", "build", *arguments]


def test_a_killed_build_leaves_a_dictionary_and_the_next_run_finishes_it(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "built"
    for number in range(60):
        make_clip(source / f"word{number:02}.mp4", number)
    running = subprocess.Popen(command(str(source), str(folder), "--trust"), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list((folder / ".build").glob("*.json")) if folder.is_dir() else []) < 30 and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    n_usable = len(read_dictionary(folder).dictionary)
    assert n_usable >= 25
    half = next((folder / "clips").iterdir())
    (half.parent / ".signspot-0123.tmp.mp4").write_bytes(b"half")  # as a kill in the middle of copying leaves it
    result = build(source, folder)
    assert 25 <= result.read_before < 60
    assert len(read_dictionary(folder).dictionary) == 60
    assert not list(folder.rglob(".signspot-*"))
    fresh = build(source, tmp_path / "fresh")
    assert fresh.counts == result.counts
    assert (folder / "dictionary.csv").read_bytes() == (tmp_path / "fresh" / "dictionary.csv").read_bytes()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_build_killed_again_and_again_ends_like_one_that_was_not(tmp_path: Path) -> None:
    source, folder, rng = tmp_path / "source", tmp_path / "built", np.random.default_rng(0)
    for number in range(120):
        make_clip(source / f"word{number:03}.mp4", number)
    for _ in range(40):
        running = subprocess.Popen(command(str(source), str(folder), "--trust"), stdout=subprocess.DEVNULL)
        time.sleep(float(rng.uniform(1, 4)))
        running.send_signal(signal.SIGKILL)
        if running.wait() == 0:
            break
        if (folder / "clips").is_dir() and any((folder / "clips").glob("word*")):
            assert all(entry.video is not None for entry in read_after_a_kill(folder))
    build(source, folder)
    build(source, tmp_path / "fresh")
    assert (folder / "dictionary.csv").read_bytes() == (tmp_path / "fresh" / "dictionary.csv").read_bytes()


def read_after_a_kill(folder: Path) -> list[Entry]:
    try:
        read = read_dictionary(folder)
    except DictionaryError as error:
        assert "no usable clip" in str(error)
        return []
    assert read.problems == ()
    return list(read.dictionary)


def test_damaged_files_of_an_earlier_run_are_made_again(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "built")
    facts = [path for path in (tmp_path / "built" / ".build").iterdir() if path.name != "build.json"]
    facts[0].write_bytes(b"{")
    next((tmp_path / "built" / "thumbnails").iterdir()).unlink()
    result = build(source, tmp_path / "built")
    assert 1 <= result.read_before < 3 and not result.problems


@pytest.mark.parametrize(
    ("variant", "tidy"), [("v2", "2"), ("Version_03", "3"), ("2B", "2b"), ("", ""), ("north  east", "north east")]
)
def test_variants_have_one_spelling(variant: str, tidy: str) -> None:
    assert _tidy_variant(variant) == tidy
    assert _tidy_variant(tidy) == tidy


def test_several_processes_build_the_same_dictionary(source: Path, tmp_path: Path) -> None:
    (source / "broken.mp4").write_bytes(b"no video")
    built = [build_dictionary(source, tmp_path / f"built{jobs}", replace(HERE, jobs=jobs)) for jobs in (1, 2)]
    assert built[0].counts == built[1].counts and built[0].kept_frames == built[1].kept_frames
    assert [(p.where, p.what) for p in built[0].problems] == [(p.where, p.what) for p in built[1].problems]
    facts = [sorted((tmp_path / f"built{jobs}").rglob("*.json")) for jobs in (1, 2)]
    assert [path.read_bytes() for path in facts[0] if ".build" in str(path)] == [
        path.read_bytes() for path in facts[1] if ".build" in str(path)
    ]
