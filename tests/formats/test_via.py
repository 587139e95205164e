from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.domain.results import Spotting
from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError, OutputExists
from signspot.formats.via import ViaSegment, read_via, write_via
from tests.formats.spottings import mutants, plain, spottings, write_mutant

with_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)

# As VIA 3.0.11 saves it: a person's segments, a region in a frame, a deleted segment, and a choice.
PERSONS: dict[str, Any] = {
    "project": {
        "pid": "__VIA_PROJECT_ID__",
        "rev": "__VIA_PROJECT_REV_ID__",
        "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
        "pname": "BSL week 3",
        "creator": "VGG Image Annotator (http://www.robots.ox.ac.uk/~vgg/software/via)",
        "created": 1588343615019,
        "data_format_version": "3.1.1",
        "vid_list": ["1", "2"],
    },
    "config": {
        "file": {"loc_prefix": {"1": "", "2": "", "3": "", "4": ""}},
        "ui": {"file_content_align": "center", "spatial_region_label_attribute_id": ""},
    },
    "attribute": {
        "1": {
            "aname": "gloss",
            "anchor_id": "FILE1_Z2_XY0",
            "type": 4,
            "desc": "which sign",
            "options": {"0": "APPLE", "1": "HOUSE-A"},
            "default_option_id": "",
        },
        "2": {
            "aname": "hands",
            "anchor_id": "FILE1_Z2_XY0",
            "type": 2,
            "desc": "",
            "options": {"l": "left", "r": "right"},
            "default_option_id": "",
        },
        "7": {
            "aname": "note",
            "anchor_id": "FILE1_Z2_XY0",
            "type": 1,
            "desc": "",
            "options": {},
            "default_option_id": "",
        },
    },
    "file": {
        "1": {"fid": "1", "fname": "news.mp4", "type": 4, "loc": 1, "src": ""},
        "2": {
            "fid": 2,
            "fname": "https://example.org/talk.webm",
            "type": 4,
            "loc": 2,
            "src": "https://example.org/talk.webm",
        },
    },
    "metadata": {
        "1_aB3xY9Qz": {"vid": "1", "flg": 0, "z": [1.343, 10.592], "xy": [], "av": {"1": "1", "2": "l,r"}},
        "2_Zz": {"vid": "2", "flg": 0, "z": [0, 2.0004], "xy": [], "av": {"7": "größer <b>", "9": "lost"}},
        "1_region": {"vid": "1", "flg": 0, "z": [3.25], "xy": [2, 10, 20, 40, 50], "av": {}},
        "1_gone": {"vid": "1", "flg": 1, "z": [1, 2], "xy": [], "av": {}},
    },
    "view": {"1": {"fid_list": ["1"]}, "2": {"fid_list": [2]}},
    "someone_elses": {"x": [1, 2.5, None, True]},
}


def written(content: object, folder: Path) -> Path:
    path = folder / "p.json"
    path.write_text(json.dumps(content))
    return path


def span(start: int, stop: int) -> MillisSpan:
    return MillisSpan(Millis(start), Millis(stop))


def test_segments_of_a_person_are_read_with_the_texts_they_saw(tmp_path: Path) -> None:
    assert read_via(written(PERSONS, tmp_path)) == (
        ViaSegment("2_Zz", "https://example.org/talk.webm", span(0, 2000), {"note": "größer <b>", "9": "lost"}),
        ViaSegment("1_aB3xY9Qz", "news.mp4", span(1343, 10592), {"gloss": "HOUSE-A", "hands": "left, right"}),
    )


def test_the_older_format_is_read(tmp_path: Path) -> None:
    old = copy.deepcopy(PERSONS)
    old["project"]["data_format_version"] = "3.1.0"
    old["vid_list"] = old["project"].pop("vid_list")
    old["config"]["file"] = {"path": "/data/"}
    assert read_via(written(old, tmp_path)) == read_via(written(PERSONS, tmp_path))


def test_a_project_has_all_that_via_needs(tmp_path: Path) -> None:
    """What VIA's own code reads: ids as strings, one view per file, the first attribute for the timelines."""
    video = tmp_path / "my videos" / "news #1.mp4"
    write_via([plain(0), plain(3)], {"news": video}, tmp_path / "p.json")
    project = json.loads((tmp_path / "p.json").read_text())
    assert list(project) == ["project", "config", "attribute", "file", "metadata", "view"]
    assert project["project"]["vid_list"] == ["1"] and project["view"] == {"1": {"fid_list": ["1"]}}
    file = project["file"]["1"]
    assert (file["fid"], file["fname"], file["type"], file["loc"]) == ("1", "news #1.mp4", 4, 3)
    source = project["config"]["file"]["loc_prefix"]["3"] + file["src"]
    assert source == f"file://{tmp_path}/my%20videos/news%20%231.mp4" and unquote(source) == f"file://{video}"
    assert [a["aname"] for a in project["attribute"].values()] == ["sign", "cosine", "source"]
    assert {a["anchor_id"] for a in project["attribute"].values()} == {"FILE1_Z2_XY0"}
    segment_id = "1_" + plain(0).spotting_id.removeprefix("spot:")
    assert project["metadata"][segment_id] == {
        "vid": "1",
        "flg": 0,
        "z": [0.04, 0.68],
        "xy": [],
        "av": {"1": "apple", "2": "0.500", "3": "lookup"},
    }
    assert "ui" in project["config"]


@with_folder
@given(found=st.lists(spottings(st.sampled_from(["a", "b"])), max_size=5))
def test_every_spotting_comes_back_as_a_segment(found: list[Spotting], tmp_path: Path) -> None:
    videos = {"a": tmp_path / "a.mp4", "b": tmp_path / "deeper" / "b.mp4"}
    write_via(found, videos, tmp_path / "p.json", overwrite=True)
    expected = {}
    for s in sorted(found, key=lambda s: (s.video_id, s.span_ms, s.word)):
        expected.setdefault((s.video_id, s.spotting_id), (f"{s.video_id}.mp4", s.span_ms, s.word, f"{s.cosine:.3f}"))
    segments = read_via(tmp_path / "p.json")
    assert sorted((s.file, s.span_ms, s.values["sign"], s.values["cosine"]) for s in segments) == sorted(
        expected.values()
    )


def test_the_same_spottings_give_the_same_bytes(tmp_path: Path) -> None:
    found, videos = [plain(n) for n in range(9)], {"news": tmp_path / "news.mp4"}
    for name, order in (("1", found), ("2", found[::-1])):
        (tmp_path / name).mkdir()
        write_via(order, videos, tmp_path / name / "p.json")
    assert (tmp_path / "1/p.json").read_bytes() == (tmp_path / "2/p.json").read_bytes()


def with_segment(**changes: object) -> dict[str, Any]:
    project = copy.deepcopy(PERSONS)
    project["metadata"]["1_aB3xY9Qz"] |= changes
    return project


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "not a VIA 3 project"),
        ({"project": {}}, "not a VIA 3 project"),
        ({"_via_settings": {}, "_via_img_metadata": {}}, "project of VIA 2"),
        (with_segment(z=[5, 2]), "segment '1_aB3xY9Qz': the times 5.0 to 2.0 s"),
        (with_segment(z=[-1, 2]), "times -1.0 to 2.0"),
        (with_segment(z=[1, 1e300]), "times 1.0 to 1e"),
        (with_segment(z=["1", 2]), "'1' is of the wrong kind"),
        (with_segment(z=[True, 2]), "'True' is of the wrong kind"),
        (with_segment(z=None), "'None' is of the wrong kind"),
        (with_segment(vid="99"), "'99' is missing"),
        (with_segment(av=[1]), "is of the wrong kind"),
        (with_segment(av={"1": {}}), "is of the wrong kind"),
        (with_segment(flg="0"), "is of the wrong kind"),
        (PERSONS | {"metadata": {"1_x": 5}}, "segment '1_x'"),
        (PERSONS | {"view": {"1": {"fid_list": []}, "2": {"fid_list": [2]}}}, "segment '1_aB3xY9Qz'"),
        (PERSONS | {"attribute": {"1": 5}}, "segment '1_aB3xY9Qz'"),
    ],
)
def test_a_damaged_project_is_refused_with_its_reason(content: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=words):
        read_via(written(content, tmp_path))


def test_bad_numbers_and_depth_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    for content, words in (("NaN", "not a number"), ("[" * 200, "100 levels"), ('{"a":1,"a":1}', "comes twice")):
        path.write_text(content)
        with pytest.raises(FormatError, match=words):
            read_via(path)


def test_bad_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no video is given for 'news'"):
        write_via([plain(0)], {}, tmp_path / "p.json")
    with pytest.raises(FormatError, match="half a character"):
        half = dataclasses.replace(plain(), word=Word("\ud800"))
        write_via([half], {"news": tmp_path / "news.mp4"}, tmp_path / "p.json")
    write_via([], {}, tmp_path / "p.json")
    with pytest.raises(OutputExists, match="exists already"):
        write_via([], {}, tmp_path / "p.json")


def read_mutants(count: int, folder: Path) -> None:
    original = json.dumps(PERSONS).encode()
    refused = 0
    for content in mutants(original, count, seed=11):
        path = write_mutant(folder / "m.json", content)
        try:
            read_via(path)
        except FormatError:
            refused += 1
    assert count // 3 < refused < count


def test_damaged_projects_raise_nothing_but_format_errors(tmp_path: Path) -> None:
    read_mutants(500, tmp_path)


@pytest.mark.soak
def test_twenty_thousand_damaged_projects(tmp_path: Path) -> None:
    read_mutants(20_000, tmp_path)
