"""New examples of a word out of footage, and those that a person accepts as new clips of a dictionary."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path, PurePosixPath

from signspot.domain.recordings import Dictionary, Entry, Episode, Rights, Signer
from signspot.domain.results import told_bands
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import CLIP_LENGTH
from signspot.domain.words import Word
from signspot.errors import FormatError, InputError
from signspot.files.atomic import atomic_output, explained, new_folder, safe_name
from signspot.files.tables import RIGHTS_FIELDS, Fields, Record, csv_records, rights_fields, write_csv
from signspot.media.video import media_sha256
from signspot.spotting.peaks import Occurrence
from signspot.spotting.variants import Diversity, diverse
from signspot.stores.dictionary import add_entries, manifest_of, read_dictionary
from signspot.workflows.batch import Finished
from signspot.workflows.footage import (
    Evidence,
    EvidenceOptions,
    FootageRequest,
    SearchedVideo,
    gather_evidence,
    prepare_search,
    search_footage,
    write_evidence_sheet,
)

TABLE, SHEET, CLIPS = "mined.csv", "mined.png", "clips"
OWN_FILES = frozenset((TABLE, SHEET, CLIPS))
_ADDED_TO = "mined"  # a folder of the dictionary


@dataclass(frozen=True, slots=True, kw_only=True)
class MineOptions:
    """How many examples, and where they go."""

    out: Path  # a new folder
    diversity: Diversity = Diversity()
    today: date
    rights_cleared: bool = False
    mentioned_only: bool = False  # only where a subtitle mentions the word
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Mined:
    """What was found and written."""

    word: Word
    examples: tuple[MinedExample, ...]
    n_found: int  # before the choice
    n_videos: int
    failures: tuple[Finished[Episode, SearchedVideo], ...]
    written: tuple[Path, ...]
    bands: str = ""  # how many of those found are likely, possible, unlikely


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of the rows that a person accepted."""

    manifest: Path
    added: tuple[Entry, ...]
    known: tuple[str, ...]  # clips that the dictionary has already
    n_undecided: int  # rows that nobody has looked at
    warnings: tuple[str, ...] = ()


def mine(request: FootageRequest, options: MineOptions) -> Mined:
    prepared = prepare_search(request)
    found: list[Occurrence] = []
    failures: list[Finished[Episode, SearchedVideo]] = []
    for outcome in search_footage(prepared):
        if outcome.result is None:
            failures.append(outcome)
            continue
        found += _wanted(outcome.result, mentioned_only=options.mentioned_only)
    chosen = diverse(found, options.diversity)
    with new_folder(options.out, OWN_FILES, overwrite=options.overwrite) as folder:
        (folder / CLIPS).mkdir()
        where = EvidenceOptions(
            folder=folder / CLIPS,
            today=options.today,
            rights_cleared=options.rights_cleared,
            context_ms=0,  # the clip will be a dictionary entry: nothing but the sign, and at least a window
            least_ms=CLIP_LENGTH * FRAME_MS,
            reading=request.options.reading,
        )
        evidence = gather_evidence(chosen, where)
        examples = tuple(_example(one, rank, folder) for rank, one in enumerate(evidence, start=1))
        _write_mined(examples, folder / TABLE)
        titles = [f"{one.rank} {one.video_id} {one.cosine:.2f}" for one in examples]
        has_sheet = write_evidence_sheet(evidence, folder / SHEET, titles, overwrite=False)
    written = (options.out / TABLE, *((options.out / SHEET,) if has_sheet else ()))
    bands = told_bands(one.spotting for one in found)
    return Mined(prepared.word, examples, len(found), len(prepared.episodes), tuple(failures), written, bands)


def mined_record(mined: Mined) -> dict[str, object]:
    return {
        "word": mined.word, "found": mined.n_found, "videos": mined.n_videos,
        "examples": [_example_record(example) for example in mined.examples],
        "failures": [str(failed.failure) for failed in mined.failures],
        "written": [str(path) for path in mined.written],
    }  # fmt: skip


def accepted_record(accepted: Accepted) -> dict[str, object]:
    return {
        "manifest": str(accepted.manifest),
        "added": [entry.entry_id for entry in accepted.added],
        "known": list(accepted.known),
        "undecided": accepted.n_undecided,
        "warnings": list(accepted.warnings),
    }


def _example_record(example: MinedExample) -> dict[str, object]:
    left_out = ("accepted", "rights")
    return {name: value for name, value in asdict(example).items() if name not in left_out}


def _wanted(video: SearchedVideo, *, mentioned_only: bool) -> Sequence[Occurrence]:
    if not mentioned_only:
        return video.occurrences
    return [one for one in video.occurrences if one.spotting.provenance.subtitle is not None]


def _example(one: Evidence, rank: int, folder: Path) -> MinedExample:
    spotting, episode = one.spotting, one.occurrence.episode
    return MinedExample(
        word=spotting.word, file=one.clip.relative_to(folder).as_posix() if one.clip is not None else "", rank=rank,
        cosine=spotting.cosine, start_ms=spotting.span_ms.start, stop_ms=spotting.span_ms.stop,
        spotting_id=spotting.spotting_id, video_id=spotting.video_id, entry_id=spotting.entry_id,
        variant=spotting.variant, type_id=spotting.type_id, signer=episode.signer, language=episode.language,
        rights=episode.rights, remark=one.withheld,
    )  # fmt: skip


def accept_mined(table: Path, dictionary: Path) -> Accepted:
    """Copy the clips of accepted rows into the dictionary's folder and list them as entries; nothing else changes."""
    rows = _read_mined(table)
    old, manifest = _before(dictionary), manifest_of(dictionary)
    own = {entry.entry_id for entry in old}
    added: list[Entry] = []
    known: list[str] = []
    for row in rows:
        if row.accepted is not True:
            continue
        clip = _clip(row, table)
        name = f"{_ADDED_TO}/{safe_name(row.word)}-{media_sha256(clip)[:16]}.mp4"
        if name in own:
            known.append(row.file)
            continue
        own.add(name)
        added.append(_entry(row, name, manifest.parent))
        _copy(clip, manifest.parent / PurePosixPath(name))
    if added:
        add_entries(dictionary, old, added)
    undecided = sum(row.accepted is None for row in rows)
    new_words = sorted({entry.word for entry in added} - set(old.by_word))
    warnings = tuple(f"{word}: the dictionary had no entry of this word" for word in new_words)
    return Accepted(manifest, tuple(added), tuple(known), undecided, warnings)


def _before(dictionary: Path) -> Dictionary:
    """What a dictionary holds; of a plain folder, without the clips that a run left there when it was stopped."""
    found = read_dictionary(dictionary).dictionary
    if manifest_of(dictionary).exists():
        return found
    own = [entry for entry in found if not entry.entry_id.startswith(f"{_ADDED_TO}/")]
    return Dictionary.of(found.name, own, found.folder)


def _clip(row: MinedExample, table: Path) -> Path:
    if not row.file:
        raise FormatError(table, f"row {row.rank} is accepted but has no clip", row.remark or "mine it again")
    path = table.parent / PurePosixPath(row.file.replace("\\", "/"))
    if ".." in path.parts[len(table.parent.parts) :] or PurePosixPath(row.file).is_absolute():
        raise FormatError(table, f"{row.file[:100]!r} does not lie beside the table", "correct the row")
    if not path.is_file() or path.suffix.lower() != ".mp4":
        raise InputError(path, "the clip of an accepted row is not there", "put it back, or mine it again")
    return path


def _entry(row: MinedExample, name: str, folder: Path) -> Entry:
    return Entry(
        entry_id=name, word=row.word, variant=row.variant, video=folder / PurePosixPath(name),
        signer=Signer(row.signer) if row.signer else None, language=row.language, type_id=row.type_id,
        rights=row.rights,
    )  # fmt: skip


def _copy(clip: Path, target: Path) -> None:
    try:
        target.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise explained(error, target.parent) from error
    if target.exists() and _digest(target) == _digest(clip):  # of a run that was stopped before the list was written
        return
    with atomic_output(target) as temporary:
        shutil.copyfile(clip, temporary)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The table of mined examples: one row for each clip, with a column `accepted` for a person to fill in.
#
# Beside the clip stands all that is known about it, so that an accepted row becomes an entry of a dictionary later and
# on another machine, as long as the clip lies where the table says.
_TEXTS = ("spotting_id", "video_id", "entry_id", "variant", "type_id", "signer", "language", "remark")
_FIELDS = Fields(
    ("accepted", "word", "file"), ("rank", "start_ms", "stop_ms", "cosine", "word_language", *_TEXTS, *RIGHTS_FIELDS)
)
_COLUMNS = (
    "accepted", "rank", "word", "variant", "cosine", "file", "video_id", "start_ms", "stop_ms", "signer", "language",
    "entry_id", "type_id", "spotting_id", *RIGHTS_FIELDS, "remark",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedExample:
    """One row."""

    word: Word
    file: str  # the clip, a path from the table; "" where its rights allow none
    accepted: bool | None = None  # None: nobody has looked at it
    rank: int = 0
    cosine: float = 0.0
    start_ms: int = 0
    stop_ms: int = 0
    spotting_id: str = ""
    video_id: str = ""
    entry_id: str = ""  # the dictionary clip it was found by
    variant: str = ""
    type_id: str = ""
    signer: str = ""
    language: str = ""
    rights: Rights = field(default_factory=Rights)
    remark: str = ""


def _write_mined(examples: Iterable[MinedExample], path: Path, *, overwrite: bool = False) -> None:
    write_csv(_COLUMNS, (_cells(example) for example in examples), path, overwrite=overwrite)


def _read_mined(path: Path) -> tuple[MinedExample, ...]:
    """Read a table again, as a spreadsheet may have left it."""
    found: list[MinedExample] = []
    records = csv_records(path, _FIELDS)
    serious = [problem for problem in records.problems if problem.severity == "warning"]
    if serious:
        raise FormatError(serious[0].where, serious[0].what, serious[0].fix)
    for row in records.rows:
        try:
            found.append(_example_of(row))
        except ValueError as error:
            raise FormatError(row.where, str(error), "correct the row") from error
    return tuple(found)


def _cells(example: MinedExample) -> list[str]:
    said = {True: "yes", False: "no", None: ""}
    values: dict[str, object] = {name: getattr(example, name) for name in _COLUMNS if hasattr(example, name)}
    rights = rights_fields(example.rights)
    values |= {name: said[value] if isinstance(value, bool) else value for name, value in rights.items()}
    values |= {"accepted": said[example.accepted], "cosine": f"{example.cosine:.4f}"}
    return [str(values.get(name, "")) for name in _COLUMNS]


def _example_of(row: Record) -> MinedExample:
    rights, problems = row.rights()
    if problems:
        raise ValueError(problems[0].what)
    start, stop, rank, cosine = (row.number(name) or 0 for name in ("start_ms", "stop_ms", "rank", "cosine"))
    texts = {name: row.text(name) for name in _TEXTS}
    return MinedExample(
        word=row.word(row.text("language")), file=row.text("file"), accepted=row.claim("accepted"), rank=int(rank),
        cosine=float(cosine), start_ms=int(start), stop_ms=int(stop), rights=rights, **texts,
    )  # fmt: skip
