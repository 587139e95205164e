"""Results that were written in one format, in any other: tables, captions, ELAN, VIA, the spotting challenge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from signspot.atomic import output_folder, refuse_existing
from signspot.domain.results import Provenance, Spotting
from signspot.domain.words import Word, normalise
from signspot.errors import FormatError, InputError
from signspot.evaluation.overlap import SignSpan
from signspot.formats.captions import write_captions
from signspot.formats.challenge import write_challenge
from signspot.formats.eaf import add_spottings, new_eaf, write_eaf
from signspot.formats.intake import bounded_lines, is_folder, open_text
from signspot.formats.manifests import read_corpus
from signspot.formats.safe_json import read_json
from signspot.formats.tables import read_spottings, write_spottings
from signspot.formats.via import ViaSegment, read_via, write_via
from signspot.workflows.evidence import safe_name
from signspot.workflows.tracks import Progress


class ExportFormat(Enum):
    """A format, by the ending of its files."""

    CSV = ".csv"
    JSON = ".json"
    JSONL = ".jsonl"
    PARQUET = ".parquet"
    VTT = ".vtt"
    SRT = ".srt"
    EAF = ".eaf"
    VIA = ".via.json"
    CHALLENGE = ".challenge.json"


PER_VIDEO = frozenset({ExportFormat.VTT, ExportFormat.SRT, ExportFormat.EAF})
_TABLES = frozenset({ExportFormat.CSV, ExportFormat.JSON, ExportFormat.JSONL, ExportFormat.PARQUET})
_NAME_THEM = "say where they are with --videos"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Which results, and what to make of them."""

    results: Path  # a table of spottings (.csv, .json, .jsonl, .parquet) or a VIA project
    targets: Mapping[ExportFormat, Path]  # of several videos, captions and ELAN files go into a folder
    videos: Path | None = None  # a video, a folder or a list of videos: VIA and ELAN files name them
    classes: Path | None = None  # a text file, one word a line: the challenge numbers words by their line
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    n_spottings: int
    n_videos: int
    written: tuple[Path, ...]
    classes: Mapping[str, int] = field(default_factory=dict)  # of the challenge
    warnings: tuple[str, ...] = ()


def read_results(path: Path) -> Iterator[Spotting]:
    """The spottings of a result file of any kind that can be read, one at a time."""
    if path.suffix.lower() == ".json" and _is_via(path):
        segments = read_via(path)
        stems = Counter(Path(file).stem for file in {segment.file for segment in segments})
        return (_of_segment(segment, is_alone=stems[Path(segment.file).stem] == 1) for segment in segments)
    return read_spottings(path)


def export(request: ExportRequest, progress: Progress | None = None) -> Exported:
    """Write the results in every format that was asked for, each file whole or not at all."""
    if not request.targets:
        raise InputError(request.results, "no format was asked for", "name an output, such as --eaf F.eaf")
    spottings = sorted(read_results(request.results), key=lambda one: (one.video_id, one.span_ms, one.word))
    by_video: dict[str, list[Spotting]] = {}
    for one in spottings:
        by_video.setdefault(one.video_id, []).append(one)
    _refuse(request, by_video)
    videos = _videos(request, tuple(by_video))
    classes = _class_numbers(spottings, request.classes) if ExportFormat.CHALLENGE in request.targets else {}
    written: list[Path] = []
    warnings: list[str] = []
    for number, (kind, path) in enumerate(request.targets.items()):
        if progress is not None:
            progress("writing", number, len(request.targets))
        if kind in _TABLES:
            write_spottings(spottings, path, overwrite=request.overwrite)
        elif kind is ExportFormat.VIA:
            write_via(spottings, videos, path, overwrite=request.overwrite)
        elif kind is ExportFormat.CHALLENGE:
            write_challenge(_challenge(by_video, classes), path, overwrite=request.overwrite)
        else:
            files = _per_video_paths(kind, path, tuple(by_video))
            if len(by_video) != 1:
                output_folder(path)
            for video_id, own in by_video.items():
                warnings += _write_one(own, files[video_id], videos.get(video_id), overwrite=request.overwrite)
            written += files.values()
            continue
        written.append(path)
    return Exported(len(spottings), len(by_video), tuple(written), classes, tuple(warnings))


def _is_via(path: Path) -> bool:
    content = read_json(path)
    return isinstance(content, dict) and {"project", "metadata", "view"} <= set(content)


def _of_segment(segment: ViaSegment, *, is_alone: bool) -> Spotting:
    """A segment of a VIA project: what it does not say stays empty."""
    text = segment.values.get("sign") or next(iter(segment.values.values()), "")
    try:
        word, cosine = normalise(text), float(segment.values.get("cosine") or 0)
    except ValueError as error:
        raise FormatError(segment.file, f"the segment {segment.segment_id[:40]!r}: {error}", "name its sign") from error
    return Spotting(
        video_id=Path(segment.file).stem if is_alone else Path(segment.file).name,
        span_ms=segment.span_ms,
        frame=(segment.span_ms.start + segment.span_ms.stop) // 80,
        word=word,
        entry_id="",
        cosine=max(-1.0, min(1.0, cosine)) if cosine == cosine else 0.0,
        provenance=Provenance(
            media_sha256="", model="", fingerprint="", dictionary="", source=segment.values.get("source") or "human"
        ),
    )


def _refuse(request: ExportRequest, by_video: Mapping[str, Sequence[Spotting]]) -> None:
    """Refuse what exists before anything is written."""
    seen: set[Path] = set()
    for kind, path in request.targets.items():
        if path.resolve() in seen or path.resolve() == request.results.resolve():
            raise InputError(path, "is named twice, or is the input", "give each output a name of its own")
        seen.add(path.resolve())
        if kind in PER_VIDEO and len(by_video) != 1 and path.exists() and not is_folder(path):
            raise InputError(path, "is a file, but several videos give one file each", "name a folder")
        for file in _per_video_paths(kind, path, tuple(by_video)).values() if kind in PER_VIDEO else (path,):
            if file.parent != path or path.exists():  # a folder that is made later holds nothing yet
                refuse_existing(file, overwrite=request.overwrite)


def _per_video_paths(kind: ExportFormat, path: Path, video_ids: Sequence[str]) -> dict[str, Path]:
    if len(video_ids) == 1:
        return {video_ids[0]: path}
    files = {video_id: path / f"{safe_name(video_id)}{kind.value}" for video_id in video_ids}
    if len(set(files.values())) < len(files):
        raise InputError(path, "two videos would have files of the same name", "export them one after the other")
    return files


def _videos(request: ExportRequest, video_ids: Sequence[str]) -> dict[str, Path]:
    """Where the videos are, by their ids."""
    if not {ExportFormat.EAF, ExportFormat.VIA} & set(request.targets):
        return {}
    if request.videos is None:
        raise InputError(request.results, "ELAN files and VIA projects name the videos", _NAME_THEM)
    if is_folder(request.videos) or request.videos.suffix.lower() in (".csv", ".json"):
        known = {episode.video_id: episode.video for episode in read_corpus(request.videos).episodes}
        known |= {episode.stem: episode for episode in known.values() if episode.stem not in known}
    else:
        known = {request.videos.stem: request.videos}
        known |= {video_ids[0]: request.videos} if len(video_ids) == 1 else {}
    if missing := [video_id for video_id in video_ids if video_id not in known]:
        raise InputError(request.videos, f"has no video {missing[0][:80]!r}, which the results name", _NAME_THEM)
    return {video_id: known[video_id] for video_id in video_ids}


def _write_one(spottings: Sequence[Spotting], path: Path, video: Path | None, *, overwrite: bool) -> tuple[str, ...]:
    if video is None or path.suffix.lower() != ".eaf":
        write_captions(spottings, path, overwrite=overwrite)
        return ()
    document = add_spottings(new_eaf(video, path, date=datetime.now(UTC).astimezone()), spottings)
    write_eaf(document, path, overwrite=overwrite)
    return document.warnings


def _class_numbers(spottings: Sequence[Spotting], path: Path | None) -> dict[str, int]:
    """The number of each word: its line in a file, from 0, or else its place in the alphabet of the results."""
    if path is None:
        return {word: number for number, word in enumerate(sorted({one.word for one in spottings}))}
    with open_text(path) as file:
        lines = [line.strip() for line in bounded_lines(file, path)]
    try:
        numbers: dict[str, int] = {normalise(line): number for number, line in enumerate(lines) if line}
    except ValueError as error:
        raise FormatError(path, str(error), "one word a line") from error
    if missing := sorted({one.word for one in spottings} - set(numbers)):
        raise FormatError(path, f"has no line for {missing[0][:60]!r}, which was found", "add the word at the end")
    return numbers


def _challenge(
    by_video: Mapping[str, Sequence[Spotting]], classes: Mapping[str, int]
) -> dict[str, tuple[SignSpan, ...]]:
    return {
        video_id: tuple(SignSpan(classes[Word(one.word)], one.span_ms) for one in own)
        for video_id, own in by_video.items()
    }
