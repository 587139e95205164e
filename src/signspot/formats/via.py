"""Projects of the VGG Image Annotator, version 3: temporal segments in and out.

A project is one JSON object: `project` (with vid_list, the order of views), `config` (with file.loc_prefix, put before
the source of every file of a location kind), `attribute`, `file`, `view` (which files are shown together) and
`metadata`: {vid: view, flg: 0, z: [start, stop] in seconds, xy: [], av: {attribute id: value}}. Ids are strings.
We write format 3.1.1 and also read 3.1.0, which keeps vid_list outside `project`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signspot.domain.results import Spotting
from signspot.domain.time import MillisSpan
from signspot.errors import FormatError
from signspot.files.json import read_json, write_json
from signspot.stores.spottings import spotting_record

_VIDEO, _FILE_URI = 4, 3  # kinds and locations of files
_TEXT, _CHECKBOX, _RADIO, _SELECT = 1, 2, 3, 4  # kinds of attributes
_DELETED = 1  # a bit of a segment's flags
_SEGMENT_ANCHOR = "FILE1_Z2_XY0"  # an attribute of a temporal segment
_PARTS = ("project", "config", "attribute", "file", "metadata", "view")
_MAX_SECONDS = (1 << 53) / 1000  # as far as the tables go
# VIA makes one timeline for each value of the first attribute.
_ATTRIBUTES = {
    "sign": "the word whose sign was found",
    "cosine": "how alike sign and dictionary clip are",
    "source": "how it was found",
}

# A project is other people's JSON of which we know a part: the rest must survive unchanged.
_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ViaSegment:
    """A stretch of a video that somebody marked in VIA."""

    segment_id: str
    file: str  # the name VIA shows for the video
    span_ms: MillisSpan
    values: Mapping[str, str]  # attribute name -> value; options by the text people see


def read_via(path: Path) -> tuple[ViaSegment, ...]:
    """The temporal segments of a project, by file and time; regions of pictures and deleted segments are left out."""
    project = _read_project(path)
    segments = []
    for segment_id, entry in project["metadata"].items():
        try:
            if len(_of(list, entry["z"])) == 2 and not _of(int, entry.get("flg", 0)) & _DELETED:
                segments.append(_segment(segment_id, entry, project))
        except KeyError as error:
            raise _damaged(path, segment_id, f"{error.args[0]!r} is missing") from error
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            raise _damaged(path, segment_id, str(error)) from error
    return tuple(sorted(segments, key=lambda s: (s.file, s.span_ms, s.segment_id)))


def write_via(
    spottings: Iterable[Spotting], videos: Mapping[str, Path], path: Path, *, overwrite: bool = False
) -> None:
    # Not resolved: a link keeps the name people know.
    folder = os.path.commonpath([video.absolute().parent for video in videos.values()]) if videos else "/"
    prefix = Path(folder).as_uri().rstrip("/") + "/"
    attributes = {
        str(number): {"aname": name, "anchor_id": _SEGMENT_ANCHOR, "type": _TEXT, "desc": description}
        | {"options": {}, "default_option_id": ""}
        for number, (name, description) in enumerate(_ATTRIBUTES.items(), start=1)
    }
    files: _Json = {}
    segments: _Json = {}
    views: dict[str, str] = {}
    for spotting in sorted(spottings, key=lambda s: (s.video_id, s.span_ms, s.word)):
        if spotting.video_id not in views:
            if spotting.video_id not in videos:
                raise FormatError(path, f"no video is given for {spotting.video_id!r}", "name the video")
            video, number = videos[spotting.video_id].absolute(), str(len(views) + 1)
            source = video.as_uri().removeprefix(prefix)
            files[number] = {"fid": number, "fname": video.name, "type": _VIDEO, "loc": _FILE_URI, "src": source}
            views[spotting.video_id] = number
        view = views[spotting.video_id]
        seconds = [spotting.span_ms.start / 1000, spotting.span_ms.stop / 1000]
        values = {"1": spotting.word, "2": f"{spotting.cosine:.3f}", "3": spotting.provenance.source}
        segment_id = f"{view}_{str(spotting_record(spotting)['spotting_id']).removeprefix('spot:')}"
        segments.setdefault(segment_id, {"vid": view, "flg": 0, "z": seconds, "xy": [], "av": values})
    project: _Json = {
        "project": {
            # These marks tell VIA that the project was not shared on a server.
            "pid": "__VIA_PROJECT_ID__",
            "rev": "__VIA_PROJECT_REV_ID__",
            "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
            "pname": path.stem,
            "creator": "signspot",
            "created": 0,  # no clock: the same spottings give the same file
            "data_format_version": "3.1.1",
            "vid_list": list(views.values()),
        },
        "config": {
            "file": {"loc_prefix": {"1": "", "2": "", "3": prefix, "4": ""}},
            "ui": {"file_content_align": "center", "file_metadata_editor_visible": True},
        },
        "attribute": attributes,
        "file": files,
        "metadata": segments,
        "view": {number: {"fid_list": [number]} for number in views.values()},
    }
    write_json(project, path, overwrite=overwrite)


def _read_project(path: Path) -> _Json:
    content = read_json(path)
    if isinstance(content, dict) and any(key.startswith("_via_") for key in content):
        raise FormatError(path, "is a project of VIA 2", "import it in VIA 3 and save it there")
    if not isinstance(content, dict) or not all(isinstance(content.get(part), dict) for part in _PARTS):
        raise FormatError(path, "is not a VIA 3 project", f"it is a JSON object with {', '.join(_PARTS)}")
    return content


def _damaged(path: Path, segment_id: str, what: str) -> FormatError:
    return FormatError(path, f"segment {segment_id[:40]!r}: {what}", "open and save the project in VIA 3")


def _of(kind: type | tuple[type, ...], value: object) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{str(value)[:40]!r} is of the wrong kind")
    return value


def _segment(segment_id: str, entry: _Json, project: _Json) -> ViaSegment:
    start, stop = (float(_of((int, float), time)) for time in entry["z"])
    if not 0 <= start <= stop <= _MAX_SECONDS:
        raise ValueError(f"the times {start} to {stop} s")
    view = project["view"][str(entry["vid"])]
    file = project["file"][str(view["fid_list"][0])]
    values = {}
    for attribute_id, value in _of(dict, entry["av"]).items():
        attribute = project["attribute"].get(attribute_id, {})
        values[_of(str, attribute.get("aname", attribute_id))] = _shown(attribute, str(_of((str, int, float), value)))
    return ViaSegment(segment_id, _of(str, file["fname"]), MillisSpan.of(start * 1000, stop * 1000), values)


def _shown(attribute: _Json, value: str) -> str:
    """The text people see for a stored value: of a choice, VIA stores the number of the option."""
    kind, options = attribute.get("type"), attribute.get("options", {})
    if kind in (_RADIO, _SELECT):
        return str(options.get(value, value))
    if kind == _CHECKBOX:
        return ", ".join(str(options.get(part, part)) for part in value.split(","))
    return value
