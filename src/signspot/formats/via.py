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
from pathlib import Path, PurePosixPath
from typing import Any

from signspot.domain.results import Spotting
from signspot.domain.time import MillisSpan
from signspot.errors import FormatError
from signspot.files.json import read_json, write_json
from signspot.stores.spottings import spotting_record

_VIDEO, _LOCAL, _FILE_URI = 4, 1, 3  # kinds and locations of files; VIA asks the user for a local file
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
    """Write a project with every spotting as a segment; `videos` says where the video of each video_id is."""
    folder = os.path.commonpath([_absolute(video).parent for video in videos.values()]) if videos else "/"
    prefix = Path(folder).as_uri().rstrip("/") + "/"
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
            "vid_list": [],
        },
        "config": {
            "file": {"loc_prefix": {"1": "", "2": "", "3": prefix, "4": ""}},
            "ui": {"file_content_align": "center", "file_metadata_editor_visible": True},
        },
        "attribute": {},
        "file": {},
        "metadata": {},
        "view": {},
    }
    _add(project, spottings, videos, path)
    write_json(project, path, overwrite=overwrite)


def add_to_via(
    spottings: Iterable[Spotting], videos: Mapping[str, Path], project: Path, path: Path, *, overwrite: bool = False
) -> None:
    """Write the project in file `project` to `path` with the spottings added; all else, and what is there, stays."""
    content = _read_project(project)
    try:
        _add(content, spottings, videos, path)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise FormatError(project, f"is not a whole VIA 3 project ({error!r})", "open and save it in VIA 3") from error
    write_json(content, path, overwrite=overwrite)


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


def _add(project: _Json, spottings: Iterable[Spotting], videos: Mapping[str, Path], path: Path) -> None:
    sign, cosine, source = (_attribute_id(project["attribute"], name) for name in _ATTRIBUTES)
    names = {file_id: file["fname"] for file_id, file in project["file"].items()}
    views: dict[str, str] = {}
    for spotting in sorted(spottings, key=lambda s: (s.video_id, s.span_ms, s.word)):
        record = spotting_record(spotting)
        if spotting.video_id not in views:
            if spotting.video_id not in videos:
                raise FormatError(path, f"no video is given for {spotting.video_id!r}", "name the video")
            views[spotting.video_id] = _view_id(project, _absolute(videos[spotting.video_id]), names)
        view = views[spotting.video_id]
        segment = {
            "vid": view,
            "flg": 0,
            "z": [spotting.span_ms.start / 1000, spotting.span_ms.stop / 1000],
            "xy": [],
            "av": {sign: spotting.word, cosine: f"{spotting.cosine:.3f}", source: spotting.provenance.source},
        }
        # What is there already may have been corrected by a person.
        project["metadata"].setdefault(f"{view}_{str(record['spotting_id']).removeprefix('spot:')}", segment)


def _attribute_id(attributes: _Json, name: str) -> str:
    """The id of our text attribute; added if there is none, under another name if the name means something else."""
    for wanted in (name, f"{name} (signspot)"):
        same_name = [(key, attribute) for key, attribute in attributes.items() if attribute["aname"] == wanted]
        for key, attribute in same_name:
            if attribute.get("anchor_id") == _SEGMENT_ANCHOR and attribute.get("type") == _TEXT:
                return str(key)
        if not same_name:
            break
    new_id = _new_id(attributes)
    attributes[new_id] = {
        "aname": wanted,
        "anchor_id": _SEGMENT_ANCHOR,
        "type": _TEXT,
        "desc": _ATTRIBUTES[name],
        "options": {},
        "default_option_id": "",
    }
    return new_id


def _view_id(project: _Json, video: Path, names: Mapping[str, str]) -> str:
    """The view that shows `video` alone; file and view are added unless the project had the file before."""
    known = [file_id for file_id, name in names.items() if PurePosixPath(name).name == video.name]
    file_id = known[0] if len(known) == 1 else _new_id(project["file"])
    if file_id not in project["file"]:
        location, source = _location(project, video.as_uri())
        project["file"][file_id] = {"fid": file_id, "fname": video.name, "type": _VIDEO, "loc": location, "src": source}
    for view_id, view in project["view"].items():
        if [str(shown) for shown in view["fid_list"]] == [file_id]:
            return str(view_id)
    view_id = _new_id(project["view"])
    project["view"][view_id] = {"fid_list": [file_id]}
    order = project["vid_list"] if "vid_list" in project else project["project"]["vid_list"]
    order.append(view_id)
    return view_id


def _location(project: _Json, uri: str) -> tuple[int, str]:
    """How VIA finds a file; where the project's own prefix does not lead to it, VIA asks the user."""
    prefix = project["config"]["file"].get("loc_prefix", {}).get(str(_FILE_URI))
    if isinstance(prefix, str) and uri.startswith(prefix):
        return _FILE_URI, uri.removeprefix(prefix)
    return _LOCAL, ""


def _new_id(objects: _Json) -> str:
    return str(max((int(key) for key in objects if key.isascii() and key.isdigit()), default=0) + 1)


def _absolute(video: Path) -> Path:
    return video.absolute()  # not resolved: a link keeps the name people know
