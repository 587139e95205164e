"""WLASL and MS-ASL: their JSON files and a folder of clips become a dictionary of ours.

Written into the folder of the clips: dictionary.json, and clips.json with everything else the data set says about them.

WLASL names a clip after its video_id (`00335.mp4`); its frames count from 1 at 25 per second, the last one included,
and -1 stands for the end. MS-ASL has no names: a clip is the part of a YouTube video between two times, and the tools
for it name it `<YouTube id>_<start>_<end>.mp4`, in whole seconds of six digits each; its frames count from 0, at the
frame rate of the video, the last one not included. Both data sets are for computational use under C-UDA 1.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from signspot.domain.recordings import Dictionary, Entry, Rights, Signer, SignerBox, normalise
from signspot.domain.time import FRAME_RATE
from signspot.errors import DictionaryError, FormatError, Notice
from signspot.files.atomic import refuse_existing
from signspot.files.intake import NO_SUCH_FILE, Place
from signspot.files.json import Node, read_json, write_json
from signspot.files.tables import nothing_usable
from signspot.stores.dictionary import write_dictionary_manifest

_LANGUAGE = "ase"
_RIGHTS = Rights(licence="C-UDA 1.0 (computational use)", may_train=True)
_MANIFEST = "dictionary.json"
_SPLITS = ("train", "val", "test")
_YOUTUBE = re.compile(r"(?:[?&]v=|youtu\.be/|/embed/)([A-Za-z0-9_-]{11})(?![A-Za-z0-9_-])")
_MAX_FRAME = 10**7


@dataclass(frozen=True, slots=True)
class _ImportedClips:
    """A dictionary, what the data set says about its clips, and the clips that are missing."""

    dictionary: Dictionary
    records: tuple[_ClipRecord, ...]
    problems: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A clip a data set lists, before anybody looked for its file."""

    record: _ClipRecord
    file: str
    variant: str = ""


def import_wlasl(table: Path, folder: Path, *, overwrite: bool = False) -> _ImportedClips:
    return _imported("WLASL", _wlasl(table), folder, overwrite=overwrite)


def import_msasl(tables: Sequence[Path], folder: Path, *, overwrite: bool = False) -> _ImportedClips:
    """Turn MSASL_train.json and the like and the folder of their clips into a dictionary."""
    listed = (item for table in tables for item in _msasl(table))
    return _imported("MS-ASL", listed, folder, overwrite=overwrite)


def list_clips(table: Path, folder: Path) -> _ImportedClips | None:
    """What a JSON file of WLASL or MS-ASL says about the clips in `folder`, nothing written; None if it is neither."""
    content = read_json(table)
    first = content[0] if isinstance(content, list) and content else None
    if isinstance(first, dict) and "instances" in first:
        return _listed("WLASL", _wlasl(table), folder)
    if isinstance(first, dict) and "url" in first:
        return _listed("MS-ASL", _msasl(table), folder)
    return None


def _wlasl(table: Path) -> Iterator[_Listed | Notice]:
    for group in Node(table, read_json(table)).rows():
        gloss = group.member("gloss").text()
        for node in group.member("instances").rows():
            yield _or_problem(partial(_wlasl_clip, gloss), node)


def _msasl(table: Path) -> Iterator[_Listed | Notice]:
    last = table.stem.lower().rpartition("_")[2]  # the split is in the name of the file only
    split = last if last in _SPLITS else ""
    for node in Node(table, read_json(table)).rows():
        yield _or_problem(partial(_msasl_clip, split), node)


def _or_problem(read: Callable[[Node], _Listed], node: Node) -> _Listed | Notice:
    try:
        return read(node)
    except FormatError as error:
        return Notice(error.where, error.what, "correct or remove the row")
    except ValueError as error:
        return Notice(str(node.file), f"{node.place}: {error}", "correct or remove the row")


def _wlasl_clip(gloss: str, node: Node) -> _Listed:
    fields = node.members()
    video_id = node.member("video_id").name()
    first, last = _frame(fields, "frame_start", 1), _frame(fields, "frame_end", -1)
    if first < 1 or (last != -1 and last < first):
        raise ValueError(f"no frames from {first} to {last}")
    left, top, right, bottom = _four(fields.get("bbox"))
    record = _ClipRecord(
        entry_id=video_id,
        text=gloss,
        start=first - 1,
        stop=None if last == -1 else last,
        fps=_rate(fields.get("fps")),
        box=Box(top, left, bottom, right, in_pixels=True) if bottom else None,
        signer=_text(fields, "signer_id"),
        split=_text(fields, "split"),
        source=_text(fields, "source"),
        url=_text(fields, "url"),
    )
    return _Listed(record, f"{video_id}.mp4", _text(fields, "variation_id"))


def _msasl_clip(split: str, node: Node) -> _Listed:
    fields = node.members()
    url = node.member("url").text()
    if (video := _YOUTUBE.search(url)) is None:
        raise ValueError(f"no YouTube video in {url[:80]!r}")
    start, stop = _frame(fields, "start", 0), _frame(fields, "end", 0)
    seconds = [math.floor(node.member(name).number()) for name in ("start_time", "end_time")]
    if not 0 <= start < stop or not 0 <= seconds[0] <= seconds[1] < _MAX_FRAME:
        raise ValueError(f"no frames from {start} to {stop}")
    box = _four(fields.get("box"))
    record = _ClipRecord(
        entry_id=f"{video[1]}_{start}_{stop}",
        text=_text(fields, "text") or _text(fields, "clean_text"),
        start=start,
        stop=stop,
        fps=_rate(node.member("fps")),
        box=Box.clamped(*box) if box[2] else None,
        signer=_text(fields, "signer_id"),
        split=split,
        source="YouTube",
        url=url,
        label=fields["label"].integer() if "label" in fields else None,
    )
    return _Listed(record, f"{video[1]}_{seconds[0]:06}_{seconds[1]:06}.mp4")


def _text(fields: Mapping[str, Node], name: str) -> str:
    return fields[name].text_or_nothing() if name in fields else ""


def _frame(fields: Mapping[str, Node], name: str, otherwise: int) -> int:
    number = fields[name].integer() if name in fields else otherwise
    if abs(number) > _MAX_FRAME:
        raise fields[name].is_not("frame number")
    return number


def _rate(node: Node | None) -> float:
    rate = float(FRAME_RATE) if node is None else node.number()
    if not 1 <= rate <= 1000:
        raise ValueError(f"{rate:g} frames a second")
    return rate


def _four(node: Node | None) -> list[float]:
    return [0.0] * 4 if node is None or node.is_missing else [number.number() for number in node.rows(4)]


def _imported(name: str, listed: Iterable[_Listed | Notice], folder: Path, *, overwrite: bool) -> _ImportedClips:
    for file in (_CLIPS_FILE, _MANIFEST):
        refuse_existing(folder / file, overwrite=overwrite)
    made = _listed(name, listed, folder)
    content = {"format": "signspot-clips", "version": 1, "clips": [asdict(record) for record in made.records]}
    write_json(content, folder / _CLIPS_FILE, overwrite=overwrite)
    write_dictionary_manifest(made.dictionary, folder / _MANIFEST, overwrite=overwrite)
    return made


def _listed(name: str, listed: Iterable[_Listed | Notice], folder: Path) -> _ImportedClips:
    place = Place(folder)
    entries: dict[str, Entry] = {}
    records: dict[str, _ClipRecord] = {}
    problems: list[Notice] = []
    for item in listed:
        if isinstance(item, Notice):
            problems.append(item)
            continue
        try:
            entry = _entry(item, place)
            if entry.entry_id in entries:
                raise ValueError("comes twice")
            entries[entry.entry_id], records[entry.entry_id] = entry, item.record
        except ValueError as error:
            fix = "add the clip" if str(error) == NO_SUCH_FILE else "the clip is left out"
            problems.append(Notice(str(folder / item.file), f"{item.record.text[:40]!r}: {error}", fix))
    if not entries:
        what = nothing_usable("clip", problems)
        raise DictionaryError(folder, f"{what} of {name}", "put the clips there under their released names")
    dictionary = Dictionary.of(name, entries.values())
    ordered = tuple(records[entry.entry_id] for entry in dictionary)
    return _ImportedClips(dictionary, ordered, tuple(problems))


def _entry(listed: _Listed, place: Place) -> Entry:
    record = listed.record
    return Entry(
        entry_id=record.entry_id,
        word=normalise(record.text),
        variant=listed.variant,
        video=place.find(listed.file).path,
        signer=Signer(record.signer) if record.signer else None,
        language=_LANGUAGE,
        rights=_RIGHTS,
        box=record.box.signer_box if record.box else None,
    )


# What a released data set says about its clips, beyond what our entries hold: clips.json beside the manifest.

_CLIPS_FILE = "clips.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClipRecord:
    """One clip as released: the frames [start, stop) of the video it was cut from, at `fps`, and where to find it."""

    entry_id: str
    text: str  # the gloss as released
    start: int
    stop: int | None  # None: to the end of the video
    fps: float
    box: Box | None = None
    signer: str = ""
    split: str = ""
    source: str = ""
    url: str = ""
    label: int | None = None

    def __post_init__(self) -> None:
        if self.start < 0 or (self.stop is not None and self.stop < self.start) or not self.fps > 0:
            raise ValueError(f"no frames from {self.start} to {self.stop} at {self.fps} a second")


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a picture: fractions of its height and width in 0..1, or pixels; (0, 0) is the upper left corner."""

    top: float
    left: float
    bottom: float
    right: float
    in_pixels: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.top <= self.bottom and 0 <= self.left <= self.right):
            raise ValueError("a box ends before it starts")
        if not self.in_pixels and max(self.bottom, self.right) > 1:
            raise ValueError("a box outside its picture")

    @property
    def signer_box(self) -> SignerBox | None:
        """The same as our entries have it; None if it is empty, or in pixels of a picture whose size is not known."""
        if self.in_pixels or not (self.left < self.right and self.top < self.bottom):
            return None
        return SignerBox(self.left, self.top, self.right, self.bottom)

    @classmethod
    def clamped(cls, top: float, left: float, bottom: float, right: float) -> Box:
        """The part of a box that lies in the picture; pose detectors often reach a little over the edge."""
        top, left, bottom, right = (min(1.0, max(0.0, edge)) for edge in (top, left, bottom, right))
        return cls(top, left, bottom, right)
