"""Which videos, subtitles and annotations a corpus has, from a plain folder, a CSV file or our JSON manifest.

A plain folder holds videos, or landmarks (.pose) that stand for them, also in folders within it. The subtitles of
`news/a.mp4` are `news/a.vtt` or `news/subtitles/a.vtt`, with any subtitle suffix, or with a language between:
`a.en.vtt`. Where the folder holds corpus.json or else corpus.csv, that file names videos and subtitles instead.
Annotations are in corpus.json, or in annotations.csv beside the folder's other files. Where box_left, box_top,
box_right and box_bottom say in which part of the picture the signer is, they are fractions of its width and height,
counted from the upper left corner.

No video is opened, so the time of an annotation stays as it was given, in ms or as a frame, until `placed` puts it on
the video's time axis. The id of a video is its path from the folder without the suffix, the same on every machine, or
with it where videos differ in nothing else (a.mp4 and a.mov).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from signspot.domain.recordings import Annotation, Episode, Rights, Word
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import Ints
from signspot.errors import FormatError, Notice, Notify, notify_left_out, unheard
from signspot.evaluation.protocol import Decisions
from signspot.files.atomic import atomic_output
from signspot.files.intake import (
    RECORDING_SUFFIXES,
    Found,
    Listing,
    Place,
    is_folder,
    is_there,
    natural,
    nfc,
    recordings,
    unread,
)
from signspot.files.json import write_json
from signspot.files.tables import (
    BOX_FIELDS,
    RIGHTS_FIELDS,
    Fields,
    Record,
    box_fields,
    csv_records,
    json_records,
    manifest_in,
    name_in_manifest,
    nothing_usable,
    read_manifest,
    rights_fields,
)

# In the order of preference where a video has several.
SUBTITLE_SUFFIXES = (".vtt", ".srt", ".ttml", ".dfxp", ".xml", ".stl", ".ass")
_FORMAT = "signspot-corpus"
_TEXTS = ("signer", "language", "split")
_FIELDS = Fields(("video",), ("video_id", "subtitles", *_TEXTS, *BOX_FIELDS, *RIGHTS_FIELDS))
_TIMES = ("time_ms", "frame", "start_ms", "stop_ms")
_ANNOTATION_FIELDS = Fields(("video", "word"), (*_TIMES, "confidence", "source", "word_language"))
_LANGUAGE = re.compile(r"(.+)\.[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_MAX_DEPTH = 32  # of folders
_MAX_TIME = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedAnnotation:
    """A sign known to be at a time, or at a frame, of a video that has not been opened yet."""

    video_id: str
    word: Word
    time_ms: int | None = None
    frame: int | None = None
    confidence: float = 1.0
    source: str = "human"

    def __post_init__(self) -> None:
        given = [value for value in (self.time_ms, self.frame) if value is not None]
        if len(given) != 1 or not 0 <= given[0] <= _MAX_TIME:
            raise ValueError("an annotation has either a time or a frame, and it is not negative")
        if not 0 <= self.confidence <= 1:
            raise ValueError(f"confidence {self.confidence} is not between 0 and 1")

    def placed(self, axis: TimeAxis) -> Annotation:
        """Put an annotation on the frame of its video that is shown at its time."""
        where = self.video_id
        if self.frame is not None:
            frame, is_inside = self.frame, self.frame < len(axis)
        else:
            time_ms = self.time_ms or 0
            is_inside = bool(len(axis)) and time_ms <= axis.time_of(len(axis) - 1) + FRAME_MS
            frame = axis.nearest_frame(time_ms) if is_inside else 0
        if not is_inside:
            what = f"the annotation of {self.word!r} lies after the end of the video"
            raise FormatError(where, what, "correct the annotation, or get the whole video")
        return Annotation(where, self.word, frame, self.confidence, self.source)


@dataclass(frozen=True, slots=True)
class CorpusSource:
    """The videos of a corpus, their annotations, and what had to be left out."""

    episodes: tuple[Episode, ...]
    annotations: tuple[TimedAnnotation, ...] = ()
    problems: tuple[Notice, ...] = field(default=())

    def write_manifest(self, path: Path, *, overwrite: bool = False) -> None:
        content = {
            "format": _FORMAT,
            "version": 1,
            "episodes": [_episode_fields(episode, path) for episode in self.episodes],
            "annotations": [_annotation_fields(annotation) for annotation in self.annotations],
        }
        write_json(content, path, overwrite=overwrite)


def read_corpus(path: Path, *, may_be_empty: bool = False) -> CorpusSource:
    """List the videos of a corpus folder, or of the CSV or JSON file that describes one."""
    if not is_there(path):
        raise FormatError(path, "no such file or folder", "check the name")
    manifest, problems = manifest_in(path, "corpus") if is_folder(path) else (path, [])
    rows: tuple[Record, ...] = ()
    if manifest is None:
        found = _from_folder(Place(path))
    elif manifest.suffix.lower() == ".json":
        content = read_manifest(manifest, _FORMAT)
        records = json_records(manifest, content, "episodes", _FIELDS)
        marks = json_records(manifest, content, "annotations", _ANNOTATION_FIELDS)
        rows, problems = marks.rows, [*problems, *records.problems, *marks.problems]
        found = _from_records(records.rows, Place(manifest.parent))
    elif manifest.suffix.lower() == ".csv":
        records = csv_records(manifest, _FIELDS)
        problems += records.problems
        found = _from_records(records.rows, Place(manifest.parent))
    else:
        raise FormatError(path, "is not a corpus", "name a folder of videos, or its .csv or .json file")
    table = (path if manifest is None else manifest.parent) / "annotations.csv"
    if (manifest is None or manifest.suffix.lower() == ".csv") and table.is_file():
        marks = csv_records(table, _ANNOTATION_FIELDS)
        rows, problems = marks.rows, [*problems, *marks.problems]
    corpus = _collected(found, rows, problems)
    if not corpus.episodes and not may_be_empty:
        raise FormatError(path, nothing_usable("video", corpus.problems), "put videos there")
    return corpus


def read_sources(sources: Sequence[Path], notify: Notify = unheard) -> tuple[Episode, ...]:
    """All videos of videos and folders; what was left out is said, and which folders hold none."""
    episodes: list[Episode] = []
    for source in sources:
        if not source.is_dir():
            episodes.append(Episode(video_id=source.stem, video=source))
            continue
        corpus = read_corpus(source, may_be_empty=len(sources) > 1)
        episodes += corpus.episodes
        notify_left_out(corpus.problems, notify)
        if not corpus.episodes:
            notify(Notice(str(source), "holds no video", "it is passed over"))
    if not episodes:
        raise FormatError(", ".join(map(str, sources)), "no usable video in any of these folders", "put videos there")
    return tuple(episodes)


_Item = Episode | Notice


def _collected(found: Iterable[_Item], rows: Iterable[Record], problems: list[Notice]) -> CorpusSource:
    """Part episodes from problems, and give every annotation its video."""
    episodes: dict[str, Episode] = {}
    by_name: dict[str, Episode] = {}
    files: set[Path] = set()
    for item in found:
        if isinstance(item, Notice):
            problems.append(item)
        elif item.video_id in episodes or item.video in files:
            what = f"the video {item.video_id!r} comes twice"
            problems.append(Notice(str(item.video), what, "list each video once"))
        else:
            episodes[item.video_id] = by_name[item.video_id + item.video.suffix] = item
            files.add(item.video)
    annotations: list[TimedAnnotation] = []
    by_name |= episodes
    for row in rows:
        try:
            annotations.append(_annotation(row, by_name))
        except ValueError as error:
            problems.append(row.problem(str(error), "correct or remove the row"))
    return CorpusSource(tuple(episodes.values()), tuple(annotations), tuple(problems))


def _annotation(row: Record, episodes: dict[str, Episode]) -> TimedAnnotation:
    name = nfc(row.text("video").replace("\\", "/"))
    if name not in episodes:
        if alike := sorted(known for known in episodes if _without_suffix(known) == name):
            raise ValueError(f"several videos are called {name[:100]!r}: say which of {', '.join(alike[:5])}")
        raise ValueError(f"the corpus has no video {name[:100]!r}")
    time_ms, frame, start, stop = (row.number(name) for name in _TIMES)
    if (start is None) != (stop is None) or (time_ms, frame, start).count(None) != 2:
        raise ValueError("give one of time_ms, frame, or start_ms with stop_ms")
    if start is not None and stop is not None:
        if stop < start:
            raise ValueError(f"stop_ms {stop:g} lies before start_ms {start:g}")
        time_ms = (start + stop) / 2
    if frame is not None and not frame.is_integer():
        raise ValueError(f"frame {frame:g} is not a whole number")
    confidence = row.number("confidence")
    return TimedAnnotation(
        video_id=episodes[name].video_id,
        word=row.word(episodes[name].language),
        time_ms=None if time_ms is None else round(time_ms),
        frame=None if frame is None else round(frame),
        confidence=1.0 if confidence is None else confidence,
        source=row.text("source") or "human",
    )


def _from_records(rows: Sequence[Record], place: Place) -> Iterator[_Item]:
    named = {str(row.fields.get("video_id") or "") for row in rows}
    videos = (str(row.fields.get("video") or "") for row in rows if not row.fields.get("video_id"))
    short = _unmistakable({str(PurePosixPath(nfc(video.replace("\\", "/")))) for video in videos}, named)
    for row in rows:
        rights, problems = row.rights()
        yield from problems
        try:
            subtitles = place.find(row.text("subtitles")) if row.has("subtitles") else None
        except ValueError as error:
            subtitles = None
            yield row.problem(f"subtitles {str(row.fields['subtitles'])[:100]!r}: {error}", "the video is kept without")
        try:
            yield _episode(row, place, subtitles, rights, short)
        except ValueError as error:
            yield row.problem(f"{str(row.fields.get('video', ''))[:100]!r}: {error}", "correct or remove the row")


def _episode(row: Record, place: Place, subtitles: Found | None, rights: Rights, short: set[str]) -> Episode:
    video = place.find(row.text("video"))
    if video.suffix not in RECORDING_SUFFIXES:
        raise ValueError(f"{video.suffix or 'no suffix'} is no suffix of a video")
    return Episode(
        video_id=row.text("video_id") or _video_id(video.name, short),
        video=video.path,
        subtitles=subtitles.path if subtitles else None,
        signer=row.text("signer"),
        language=row.text("language"),
        split=row.text("split"),
        rights=rights,
        box=row.box(),
    )


def _unmistakable(names: Collection[str], taken: Collection[str] = ()) -> set[str]:
    """The videos, by their names from the folder, whose id needs no suffix: nothing else is called so."""
    stems = Counter(map(_without_suffix, names))
    others = {*names, *taken}
    return {name for name in names if stems[_without_suffix(name)] == 1 and _without_suffix(name) not in others}


def _without_suffix(name: str) -> str:
    return name.removesuffix(PurePosixPath(name).suffix)


def _video_id(name: str, unmistakable: Collection[str]) -> str:
    return _without_suffix(name) if name in unmistakable else name


def _from_folder(place: Place) -> Iterator[_Item]:
    others: list[Found] = []
    waiting: list[Found | None] = [None]
    while waiting:
        folder = waiting.pop()
        here = place.listing(folder)
        if folder is not None and folder.name.count("/") >= _MAX_DEPTH:
            what = f"is more than {_MAX_DEPTH} folders deep and not read"
            yield Notice(str(folder.path), what, "move its videos up")
            continue
        beside = [place.listing(inner) for inner in here.folders if _is_subtitles(inner)]
        yield from here.problems
        yield from (problem for listing in beside for problem in listing.problems)
        yield from _episodes_in(here, beside, others)
        waiting += [inner for inner in reversed(here.folders) if not _is_subtitles(inner)]
    yield from unread(others, place.root)


def _is_subtitles(folder: Found) -> bool:
    return folder.path.name.lower() == "subtitles"


def _episodes_in(here: Listing, beside: list[Listing], others: list[Found]) -> Iterator[_Item]:
    """The videos of one folder with their subtitles; `others` receives what is neither."""
    videos, rest = recordings(here.files)
    rest += [file for listing in beside for file in listing.files]
    names = {name for video in videos for name in (video.stem, video.last_name)}
    short = _unmistakable({video.name for video in videos})
    subtitles: dict[str, list[Found]] = {}
    for file in sorted(rest, key=lambda file: _preference(file, names)):
        tagged = _LANGUAGE.fullmatch(file.stem)
        stem = tagged[1] if tagged and file.stem not in names else file.stem
        if file.suffix in SUBTITLE_SUFFIXES and stem in names:
            subtitles.setdefault(stem, []).append(file)
        elif file.suffix in SUBTITLE_SUFFIXES and file.suffix != ".xml":
            yield Notice(str(file.path), "subtitles without a video", "give them the name of their video")
        elif file.name != "annotations.csv":
            others.append(file)
    for video in videos:
        own = subtitles.get(video.last_name) or subtitles.get(video.stem, [])
        if len(own) > 1:
            what = f"{len(own)} subtitle files; {own[0].path.name} is used"
            yield Notice(str(video.path), what, "remove the others")
        yield Episode(video_id=_video_id(video.name, short), video=video.path, subtitles=own[0].path if own else None)


def _preference(file: Found, names: set[str]) -> tuple[object, ...]:
    order = SUBTITLE_SUFFIXES.index(file.suffix) if file.suffix in SUBTITLE_SUFFIXES else len(SUBTITLE_SUFFIXES)
    return file.stem not in names, file.name.count("/"), order, natural(file.name)


def _episode_fields(episode: Episode, path: Path) -> dict[str, object]:
    fields: dict[str, object] = {"video": name_in_manifest(path, episode.video), "video_id": episode.video_id}
    if episode.subtitles is not None:
        fields["subtitles"] = name_in_manifest(path, episode.subtitles)
    fields |= {name: getattr(episode, name) for name in _TEXTS if getattr(episode, name)}
    return fields | box_fields(episode.box) | rights_fields(episode.rights)


def _annotation_fields(annotation: TimedAnnotation) -> dict[str, object]:
    time = ("frame", annotation.frame) if annotation.time_ms is None else ("time_ms", annotation.time_ms)
    return {
        "video": annotation.video_id,
        "word": annotation.word,
        time[0]: time[1],
        "confidence": annotation.confidence,
        "source": annotation.source,
    }


# What was really signed, as a Parquet table: one row a sign, for those who measure spotting.

_TYPES = {"str": pa.string(), "int": pa.int64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSign:
    """One sign of a video: frames [start_frame, stop_frame) at 25 a second."""

    video_id: str
    start_frame: int
    stop_frame: int
    word: str
    variant: str
    form: str  # two entries of one form look the same
    signer: str


_SCHEMA = pa.schema([pa.field(field.name, _TYPES[str(field.type)], nullable=False) for field in fields(SignedSign)])


def write_truth(signs: Iterable[SignedSign], path: Path, *, overwrite: bool = False) -> None:
    rows = list(signs)
    columns = [[getattr(row, name) for row in rows] for name in _SCHEMA.names]
    table = pa.table([pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types, strict=True)], _SCHEMA)
    with atomic_output(path, overwrite=overwrite) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_truth(path: Path) -> tuple[SignedSign, ...]:
    try:
        table = pq.read_table(path)
        if table.schema.names != _SCHEMA.names:
            raise FormatError(path, "is not a table of signed signs", "name the truth.parquet of a world")
        return tuple(SignedSign(**row) for row in table.to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise FormatError(path, f"cannot be read ({error})", "name the truth.parquet of a world") from error


# Every decision of an evaluation as a Parquet table: one row for a passage and a dictionary entry.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionNames:
    """What the numbers of the decisions stand for."""

    passages: Sequence[str]  # (P,)
    words: Sequence[str]  # (P,) annotated
    signers: Sequence[str]  # (P,)
    label_frames: Ints  # (P,)
    entries: Sequence[str]  # (E,)
    entry_words: Sequence[str]  # (E,)


def write_decisions(decisions: Decisions, names: DecisionNames, path: Path, *, overwrite: bool = False) -> None:
    """Write all of them, passage by passage; a cosine or frame is empty where nothing could be compared."""
    passage, entry = decisions.passage, decisions.entry_row
    is_compared = np.isfinite(decisions.cosine)
    columns = {
        "passage": _texts(names.passages, passage),
        "word": _texts(names.words, passage),
        "signer": _texts(names.signers, passage),
        "entry": _texts(names.entries, entry),
        "entry_word": _texts(names.entry_words, entry),
        "rank": pa.array(decisions.rank),
        "cosine": pa.array(decisions.cosine.astype(np.float32), mask=~is_compared),
        "found_frame": pa.array(decisions.found_frame, mask=~is_compared),
        "label_frame": pa.array(names.label_frames[passage]),
        "relevant": pa.array(decisions.is_relevant),
        "right": pa.array(decisions.is_right),
    }
    with atomic_output(path, overwrite=overwrite) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


def _texts(texts: Sequence[str], places: Ints) -> pa.Array:
    """Texts by their places, each held once."""
    known = pa.array([text.encode(errors="backslashreplace").decode() for text in texts], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), known).cast(pa.string())
