"""Build a dictionary from whatever somebody has: clips gathered, trimmed, looked through, and every trouble named.

Look a dictionary or a corpus through before relying on it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, Episode, Rights, Word
from signspot.domain.time import FRAME_RATE, FrameSpan, MillisSpan, Progress
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, FrameShape, Pixels
from signspot.embedding.landmarks import landmark_file_of, strange_length
from signspot.embedding.model import Reading
from signspot.embedding.pictures import LONGEST_ENTRY_FRAMES
from signspot.errors import (
    DictionaryError,
    EnvironmentProblem,
    FormatError,
    InputError,
    Notice,
    OutputExists,
    SignspotError,
    VideoError,
)
from signspot.figures.sheets import SheetRow, contact_sheet
from signspot.files.atomic import atomic_output, explained, names_in, refuse_existing
from signspot.files.intake import NO_SUCH_FILE
from signspot.files.json import Node, write_json
from signspot.files.pages import Card, DictionaryPage
from signspot.files.tables import read_manifest, write_csv
from signspot.formats.bobsl import ReleasedCorpus
from signspot.formats.bobsl import import_corpus as import_released
from signspot.formats.bsldict import import_bsldict
from signspot.formats.pose import POSE_SUFFIX, read_pose
from signspot.formats.wlasl import import_msasl, import_wlasl, list_clips
from signspot.media.copies import SIGNATURE_SHAPE, FaceReader, face_groups, frame_signature, near_pairs
from signspot.media.frames import TILE_HEIGHT, TILES, read_strip, spread, strip, thumbnail, write_picture, write_strip
from signspot.media.reader import VideoReader, claimed_ms, shared_decoding
from signspot.media.trim import Trim, TrimOptions, trim_by_motion
from signspot.media.video import media_sha256, unreadable
from signspot.stores.corpus import read_corpus
from signspot.stores.dictionary import FEATURES_FILE, DictionarySource, dictionary_table, read_dictionary
from signspot.text.subtitles import read_subtitles
from signspot.workflows.batch import Engine, Finished, Work, each
from signspot.workflows.spot import late_subtitles

_SAVE_EVERY = 25  # clips: what a killed run leaves behind is a dictionary of those
_NUMBERED = re.compile(r"(?:v|var|variant|version)?[ ._-]*0*([0-9]+)([a-z]?)", re.IGNORECASE)
_Thing = TypeVar("_Thing")
_FEATURES_ONLY = "has no clip here; its stored vector is used"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """How a dictionary is built."""

    trim: TrimOptions | None = TrimOptions()  # None: clips are kept whole
    clips: Path | None = None  # where the clips of a WLASL or MS-ASL list are
    link: bool = False  # share the clips' disk space with the source instead of copying them
    signers_by_face: bool = False  # sensitive: see media.faces
    reading: Reading = Reading()
    jobs: int = 1  # processes that read clips
    anew: bool = False  # build also over what was built from another source or changed by hand
    on: date = field(default_factory=date.today)  # the day for which rights count


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What was built, and what was wrong with what it was built from."""

    folder: Path
    counts: tuple[tuple[str, int], ...]  # (what, how many), in the order to show
    read_before: int  # clips that an earlier run had finished
    frames: int  # of all clips
    kept_frames: int
    duplicates: tuple[_Duplicate, ...]
    problems: tuple[Notice, ...]  # what was left out
    remarks: tuple[Notice, ...]  # what was taken but should be known
    face_groups: int | None = None  # how many the page shows; None: nobody asked for them


def build_dictionary(source: Path, folder: Path, options: BuildOptions = BuildOptions()) -> Build:
    """Make `folder` a dictionary of the clips of `source`, or go on where an earlier run has stopped."""
    faces = FaceReader() if options.signers_by_face else None  # what is missing is said before hours of work
    listed = _listed(source, options)
    target = _BuildFolder.open(folder, source, link=options.link, anew=options.anew)
    run = _Run(target, options, list(listed.problems))
    entries = _tidied(listed)
    engine = Engine(options.jobs, partial(_reader, options.reading.quiet(), options.trim))
    with shared_decoding():
        unread = run.unread(entries)
        run.read = iter(each(unread, _reader(options.reading, options.trim), _video_of, engine))
        for entry in run.reported("reading clips", entries):
            run.take(entry)
    if not run.finished:
        first = f"; the first of {len(run.problems)} problems: {run.problems[0]}" if run.problems else ""
        raise DictionaryError(source, f"no readable clip{first}", "check the files, or get them again")
    if run.without_clip:
        target.take_features(listed.dictionary.folder)
    duplicates = run.duplicates + _near_duplicates(run.finished)
    if faces is not None:
        run.finished = [
            replace(one, face_group=group) for one, group in zip(run.finished, _face_groups(run, faces), strict=True)
        ]
    entries = [one.entry for one in run.finished] + run.without_clip
    target.save(entries, finished=True)
    run.problems += _leftover(target, entries)
    _write_sheets(_Sheets(target.root, run.finished, duplicates, run.problems), options.reading)
    return _build(run, duplicates)


@dataclass(slots=True)
class _Run:
    """What has been done so far."""

    target: _BuildFolder
    options: BuildOptions
    problems: list[Notice]
    finished: list[_BuiltClip] = field(default_factory=list)
    without_clip: list[Entry] = field(default_factory=list)
    duplicates: list[_Duplicate] = field(default_factory=list)
    read_before: int = 0
    # Of the entries of `unread`, in their order.
    read: Iterator[Finished[Entry, _ReadClip]] = field(default_factory=lambda: iter(()))
    _unread: set[str] = field(default_factory=set)  # ids of entries that `read` will come to
    _sha256: dict[Path, str] = field(default_factory=dict)
    _by_content: dict[str, list[Entry]] = field(default_factory=dict)

    def reported(self, step: str, things: Sequence[_Thing]) -> Iterator[_Thing]:
        for done, thing in enumerate(things, start=1):
            yield thing
            self.options.reading.progress(step, done, len(things))

    def unread(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries whose clips no earlier run has read, each content once for a word."""
        found: dict[tuple[str, str], Entry] = {}
        for entry in self.reported("comparing files", entries):
            with contextlib.suppress(VideoError):  # said when it is taken
                if entry.video is not None and self._slot(entry, sha256 := self._digest(entry.video)).stored() is None:
                    found.setdefault((sha256, entry.word), entry)
        self._unread = {entry.entry_id for entry in found.values()}
        return list(found.values())

    def _digest(self, video: Path) -> str:
        if video not in self._sha256:
            self._sha256[video] = media_sha256(video)
        return self._sha256[video]

    def _slot(self, entry: Entry, sha256: str) -> _Slot:
        key = _facts_key(sha256, entry.kept, self.options.trim)
        return self.target.slot(entry, sha256, key, is_shown=_may_be_shown(entry.rights, self.options.on))

    def take(self, entry: Entry) -> None:
        if entry.video is None:
            self.without_clip.append(entry)
            self.problems.append(Notice(entry.entry_id, _FEATURES_ONLY, "add the clip", severity="note"))
            return
        try:
            sha256 = self._digest(entry.video)
            if self._is_there_already(entry, sha256):
                return
            found = self._stored(entry, entry.video, sha256)
        except VideoError as error:
            self.problems.append(error.notice())
            return
        if found is None:
            return
        self._by_content.setdefault(sha256, []).append(entry)
        self.finished.append(found)
        for remark in found.facts.remarks:
            self.problems.append(Notice(str(entry.video), remark, severity="note"))
        if len(self.finished) % _SAVE_EVERY == 0 and not self.target.was_finished:
            self.target.save([one.entry for one in self.finished], finished=False)

    def _is_there_already(self, entry: Entry, sha256: str) -> bool:
        """Whether the same bytes are there under the same word; under another word they are only reported."""
        others = self._by_content.get(sha256, [])
        same_word = next((other for other in others if other.word == entry.word), None)
        if others:
            other = same_word or others[0]
            self.duplicates.append(_Duplicate(entry, other, "the same file", 1.0, left_out=same_word is not None))
        return same_word is not None

    def _stored(self, entry: Entry, video: Path, sha256: str) -> _BuiltClip | None:
        slot = self._slot(entry, sha256)
        facts = slot.stored()
        if facts is not None:
            self.read_before += 1
            return _finished(entry, slot, facts)
        if entry.entry_id not in self._unread:  # the same content failed under this word
            return None
        outcome = next(self.read)
        if outcome.failure is not None or outcome.result is None:
            if (error := outcome.failure) is not None:
                self.problems.append(error.notice())
            return None
        self.target.add(video, slot, outcome.result)
        return _finished(entry, slot, slot.stored() or outcome.result.facts)


def _reader(reading: Reading, trim: TrimOptions | None) -> Work[Entry, _ReadClip]:
    def read(entry: Entry) -> _ReadClip:
        try:
            return _read_clip(_video_of(entry), entry.kept, trim, reading)
        except EnvironmentProblem as error:  # such as a missing codec: the other clips may need none
            raise VideoError(error.where, error.what, error.fix) from error

    return read


def _video_of(entry: Entry) -> Path:
    return entry.video or Path(entry.entry_id)


def _finished(entry: Entry, slot: _Slot, facts: _ClipFacts) -> _BuiltClip:
    here = replace(entry, video=slot.clip, kept=_as_kept(entry, facts))
    return _BuiltClip(here, slot.clip, slot.sha256, facts, slot.thumbnails)


def _may_be_shown(rights: Rights, on: date) -> bool:
    """Whether thumbnails may be made: where the holder says nothing, they are for the eyes of whoever has the clips."""
    return rights.may_display is not False and not (rights.expires is not None and on >= rights.expires)


def _listed(source: Path, options: BuildOptions) -> DictionarySource:
    if source.suffix.lower() in (".pkl", ".pickle"):
        fix = "run `signspot dictionary import` first and build from the folder it makes"
        raise InputError(source, "is a pickle, not a dictionary", fix)
    if source.suffix.lower() == ".json" and source.is_file():
        beside = source.parent / "videos"
        made = list_clips(source, options.clips or (beside if beside.is_dir() else source.parent))
        if made is not None:
            return DictionarySource(made.dictionary, made.problems)
    if options.clips is not None:
        raise InputError(source, "is no list of WLASL or MS-ASL, so --clips says nothing", "leave --clips out")
    return read_dictionary(source)


def _tidied(listed: DictionarySource) -> list[Entry]:
    taken: Counter[str] = Counter()
    entries = []
    for entry in listed.dictionary:
        entry_id = " ".join(entry.entry_id.split()) or entry.word
        taken[entry_id] += 1
        if taken[entry_id] > 1:
            entry_id = f"{entry_id}#{taken[entry_id]}"
            taken[entry_id] += 1
        entries.append(replace(entry, entry_id=entry_id, variant=_tidy_variant(entry.variant)))
    return entries


def _tidy_variant(variant: str) -> str:
    """One spelling for the numbers of variants; names stay as they are.

    >>> tidy_variant("v2"), tidy_variant("Variant 02"), tidy_variant("2B"), tidy_variant(" north ")
    ('2', '2', '2b', 'north')
    """
    text = " ".join(variant.split())
    numbered = _NUMBERED.fullmatch(text)
    return f"{int(numbered[1])}{numbered[2].lower()}" if numbered else text


def _near_duplicates(finished: list[_BuiltClip]) -> list[_Duplicate]:
    """Clips that look like copies of one recording; clips with the same bytes are known already."""
    distinct = list({one.sha256: one for one in finished}.values())
    pairs = near_pairs(np.stack([one.facts.signature for one in distinct]))
    kind = "nearly the same"
    return [_Duplicate(distinct[p.later].entry, distinct[p.earlier].entry, kind, p.cosine) for p in pairs]


def _face_groups(run: _Run, faces: FaceReader) -> list[int | None]:
    """A number for clips that seem to show one person; only clips that may be shown are looked at."""
    looks = [
        faces.clip_vector(one.clip, one.facts.kept, isolated=run.options.reading.isolated) if one.thumbnails else None
        for one in run.reported("comparing faces", run.finished)
    ]
    return face_groups(looks)


def _leftover(target: _BuildFolder, entries: list[Entry]) -> list[Notice]:
    """A remark about clips of earlier runs that the source no longer lists; they are never removed unasked."""
    names = target.unlisted(entries)
    if not names:
        return []
    what = f"{len(names)} clips of earlier runs are no longer listed, such as {names[0]}"
    return [Notice(str(target.root), what, "remove them by hand if they are not wanted", severity="note")]


def _build(run: _Run, duplicates: list[_Duplicate]) -> Build:
    entries = [one.entry for one in run.finished] + run.without_clip
    counts = (
        ("words", len({entry.word for entry in entries})),
        ("variants", len({(entry.word, entry.variant) for entry in entries})),
        ("clips", len(run.finished)),
        ("signers", len({entry.signer.signer_id for entry in entries if entry.signer is not None})),
    )
    return Build(
        folder=run.target.root, counts=counts, read_before=run.read_before,
        frames=sum(one.facts.n_frames for one in run.finished),
        kept_frames=sum(len(one.facts.kept) for one in run.finished), duplicates=tuple(duplicates),
        problems=tuple(problem for problem in run.problems if problem.severity == "warning"),
        remarks=tuple(problem for problem in run.problems if problem.severity == "note"),
        face_groups=len({one.face_group for one in run.finished} - {None}) if run.options.signers_by_face else None,
    )  # fmt: skip


# One clip on its way into a built dictionary: read once, trimmed, looked at.
_METHOD = "1"  # changes whenever the same clip would get other facts


@dataclass(frozen=True, slots=True, eq=False)
class _ReadClip:
    """What one reading of a clip gives."""

    facts: _ClipFacts
    strip: Pixels  # (height, n_tiles * tile_width, 3) uint8


def _facts_key(sha256: str, kept: FrameSpan | None, options: TrimOptions | None) -> str:
    """The name of the facts about a clip: the same for the same content looked at in the same way."""
    method = hashlib.sha256(f"{_METHOD} {kept} {options}".encode()).hexdigest()
    return f"{sha256[:32]}-{method[:8]}"


def _read_clip(
    video: Path, kept: FrameSpan | None, options: TrimOptions | None, reading: Reading = Reading()
) -> _ReadClip:
    """Decode a clip once and find out all about it; a part that somebody chose to keep is kept as it is."""
    small: list[Pixels] = []
    with VideoReader(video, isolated=reading.isolated) as reader:
        frames = _noted(reader, small)
        if kept is None and options is not None:
            trim = trim_by_motion(frames, options)
        else:
            n_frames = sum(1 for _ in frames)
            trim = Trim(kept or FrameSpan(0, n_frames), n_frames)
        report = reader.report
    if not 0 < trim.kept.stop <= len(small):
        what = f"has {len(small)} frames, but frames {trim.kept.start} to {trim.kept.stop} are to be kept"
        raise VideoError(video, what, "correct kept_start and kept_stop, or remove them")
    shown = small[trim.kept.start : trim.kept.stop]
    facts = _ClipFacts(
        n_frames=len(small), kept=trim.kept, kept_ms=report.axis.millis_of(trim.kept),
        remarks=tuple(remark for remark in (report.partial, *report.warnings, trim.remark) if remark),
        n_tiles=len(spread(len(shown))), tile_width=small[0].shape[1], signature=frame_signature(small, trim.kept),
    )  # fmt: skip
    return _ReadClip(facts, np.ascontiguousarray(strip(shown)))


def _as_kept(entry: Entry, facts: _ClipFacts) -> FrameSpan | None:
    """What the manifest says about the part to keep: nothing where all of the clip is."""
    return entry.kept or (facts.kept if len(facts.kept) < facts.n_frames else None)


def _noted(reader: VideoReader, small: list[Pixels]) -> Iterator[Pixels]:
    for frame in reader:
        if len(small) == LONGEST_ENTRY_FRAMES:
            what = "is longer than two minutes: a dictionary clip shows one sign"
            raise VideoError(reader.info.path, what, "cut the sign out")
        small.append(thumbnail(frame.pixels))
        yield frame.pixels


# The folder a dictionary is built in: what it may be, what it holds, and what an earlier run has left there.
#
#     dictionary.csv              the dictionary: every command reads it
#     clips/                      the clips, named after their word and their content
#     thumbnails/, index.html, contact_sheet_001.png ...    for looking through
#     problems.csv, duplicates.csv                          what was left out, and what comes twice
#     .build/                     what is known of every clip, so that the next run need not read it again
#
# Every file is written whole or not at all, and a clip is in dictionary.csv only after all its files are there.
MANIFEST, PAGE, PROBLEMS, DUPLICATES = "dictionary.csv", "index.html", "problems.csv", "duplicates.csv"
CLIPS, THUMBNAILS, SHEETS = "clips", "thumbnails", "contact_sheet_"
_STATE, _MARK, _FORMAT = ".build", "build.json", "signspot-build"
_TEMPORARY = ".signspot-*.tmp*"
_CHUNK = 1 << 20
_LONGEST_STEM = 40  # characters of a word in a file name
_FIX_OTHER = "choose another folder, or add --anew to build this one again from here"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """The files of one clip."""

    sha256: str
    clip: Path
    facts: Path
    thumbnails: Path | None  # None: the clip may not be shown

    def stored(self) -> _ClipFacts | None:
        is_whole = self.clip.is_file() and (self.thumbnails is None or self.thumbnails.is_file())
        return _read_clip_facts(self.facts) if is_whole else None


@dataclass(slots=True)
class _BuildFolder:
    """A folder that is being built from one source."""

    root: Path
    source: str
    link: bool = False
    was_finished: bool = False
    _manifests: list[str] = field(default_factory=list)  # SHA-256 of every manifest that may be there by our hand
    _is_ready: bool = False

    @classmethod
    def open(cls, root: Path, source: Path, *, link: bool = False, anew: bool = False) -> _BuildFolder:
        _refuse_source(root, source)
        folder = cls(root, str(source.resolve()), link)
        mark = root / _STATE / _MARK
        if not mark.is_file():
            _refuse_foreign(root)
            return folder
        made_from, folder._manifests, folder.was_finished = _read_mark(mark)
        if made_from != folder.source and not anew:
            raise OutputExists(root, f"was built from another source, {made_from[:200]}", _FIX_OTHER)
        manifest = root / MANIFEST
        if manifest.is_file() and media_sha256(manifest) not in folder._manifests and not anew:
            what = f"{MANIFEST} was changed by hand since it was built, and building again would undo that"
            raise OutputExists(
                root, what, f"build from {manifest} into another folder, or add --anew to lose the changes"
            )
        return folder

    def slot(self, entry: Entry, sha256: str, key: str, *, is_shown: bool) -> _Slot:
        """Where a clip of this content goes: no two different clips share a name, on any file system."""
        stem = "".join(c if c.isalnum() or c in "-'" else "_" for c in entry.word[:_LONGEST_STEM])
        suffix = entry.video.suffix.lower() if entry.video is not None else ""
        clip = self.root / CLIPS / f"{stem}-{sha256[:16]}{suffix}"
        return _Slot(
            sha256=sha256,
            clip=clip,
            facts=self.root / _STATE / f"{key}.json",
            thumbnails=self.root / THUMBNAILS / f"{key}.jpg" if is_shown else None,
        )

    def add(self, video: Path, slot: _Slot, read: _ReadClip) -> None:
        """Store a clip and what is known about it; the facts come last, for they say that all is there."""
        self._prepare()
        if not slot.clip.is_file():
            _copy(video, slot.clip, sha256=slot.sha256, link=self.link)
        if slot.thumbnails is not None:
            write_strip(read.strip, slot.thumbnails, overwrite=True)
        _write_clip_facts(read.facts, slot.facts)

    def save(self, entries: list[Entry], *, finished: bool) -> None:
        self._prepare()
        table = dictionary_table(Dictionary.of(self.root.name, entries), self.root / MANIFEST)
        # A kill between the two files must not make the manifest look like changed by hand: both versions are known.
        before, now = self._manifests[-1:], hashlib.sha256(table).hexdigest()
        self._mark([*before, now], finished=False)
        with atomic_output(self.root / MANIFEST, overwrite=True) as temporary:
            temporary.write_bytes(table)
        self._mark([now], finished=finished)

    def take_features(self, source: Path | None) -> None:
        """Copy the stored vectors of a source, which stand for clips that are not there."""
        if source is not None and (source / FEATURES_FILE).is_file():
            self._prepare()
            stored = source / FEATURES_FILE
            _copy(stored, self.root / FEATURES_FILE, sha256=media_sha256(stored), overwrite=True)

    def unlisted(self, entries: list[Entry]) -> list[str]:
        listed = {entry.video.name for entry in entries if entry.video is not None}
        folder = self.root / CLIPS
        return [name for name in names_in(folder) if name not in listed] if folder.is_dir() else []

    def _prepare(self) -> None:
        """Make the folders, and clear away what a killed run has left half written."""
        if self._is_ready:
            return
        try:
            for folder in (self.root, self.root / _STATE, self.root / CLIPS, self.root / THUMBNAILS):
                folder.mkdir(exist_ok=True)
                for left in folder.glob(_TEMPORARY):
                    left.unlink()
        except OSError as error:
            raise explained(error, self.root) from error
        self._is_ready = True
        if not (self.root / MANIFEST).is_file():
            self.save([], finished=False)

    def _mark(self, manifests: list[str], *, finished: bool) -> None:
        self._manifests = manifests
        content = {"format": _FORMAT, "version": 1, "source": self.source, "manifests": manifests, "finished": finished}
        write_json(content, self.root / _STATE / _MARK, overwrite=True)


def _read_mark(path: Path) -> tuple[str, list[str], bool]:
    node = Node(path, read_manifest(path, _FORMAT))
    return (
        node.member("source").text(),
        [text.text() for text in node.member("manifests").rows()],
        node.member("finished").value is True,
    )


def _refuse_source(root: Path, source: Path) -> None:
    if not root.parent.is_dir():
        raise InputError(root, "the folder to write to does not exist", f"create {root.parent} first")
    target, origin = root.resolve(), source.resolve()
    if target == origin or (source.is_file() and target == origin.parent):
        raise InputError(root, "is the source itself, which is never changed", "name another folder to build in")
    if source.is_dir() and target.is_relative_to(origin):
        raise InputError(root, "lies inside the source, which is never changed", "name a folder outside of it")


def _refuse_foreign(root: Path) -> None:
    if not os.path.lexists(root):
        return
    if not root.is_dir():
        raise InputError(root, "is no folder", "name a folder to build in")
    try:
        foreign = [name for name in names_in(root) if name != _STATE]
    except OSError as error:
        raise InputError(root, "cannot be looked into", "choose another folder") from error
    if foreign:
        what = f"holds something else, such as {foreign[0][:80]!r}"
        raise OutputExists(root, what, "name a new folder, or one that an earlier build made")


def _copy(source: Path, target: Path, *, sha256: str, link: bool = False, overwrite: bool = False) -> None:
    """Bring a file into the folder; a link shares the disk space where the file system can, else it is a copy."""
    with atomic_output(target, overwrite=overwrite) as temporary:
        if link:
            with contextlib.suppress(OSError):  # another disk, or one without links
                os.link(source.resolve(), temporary)
                return
        digest = hashlib.sha256()
        with temporary.open("wb") as copy:
            for chunk in _chunks(source):
                digest.update(chunk)
                copy.write(chunk)
        if digest.hexdigest() != sha256:
            raise VideoError(source, "changed while it was copied", "run the same command again")


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise unreadable(path, error) from error


# What people look at after a build: a page, contact sheets, and tables of what was left out and what comes twice.
_ROWS_PER_SHEET = 50


@dataclass(frozen=True, slots=True)
class _BuiltClip:
    """An entry whose files are all in the folder."""

    entry: Entry
    clip: Path
    sha256: str  # of the clip
    facts: _ClipFacts
    thumbnails: Path | None  # None: the clip may not be shown
    face_group: int | None = None


@dataclass(frozen=True, slots=True)
class _Duplicate:
    """An entry whose clip is that of another entry, or looks like a copy of it."""

    entry: Entry
    other: Entry
    kind: str  # "the same file" or "nearly the same"
    cosine: float  # of their signatures
    left_out: bool = False  # the same bytes under the same word add nothing

    def __str__(self) -> str:
        words = f"{self.entry.entry_id} ({self.entry.word}) and {self.other.entry_id} ({self.other.word})"
        return f"{words}: {self.kind}" + (", left out" if self.left_out else f" ({self.cosine:.2f})")


@dataclass(frozen=True, slots=True)
class _Sheets:
    """Everything there is to show."""

    folder: Path
    finished: Sequence[_BuiltClip]
    duplicates: Sequence[_Duplicate]
    problems: Sequence[Notice]


def _write_problems(problems: Iterable[Notice], path: Path, *, overwrite: bool = False) -> None:
    rows = ((p.where, p.what, p.fix, "no" if p.severity == "note" else "yes") for p in problems)
    write_csv(("file", "reason", "what_to_do", "left_out"), rows, path, overwrite=overwrite)


def _write_sheets(sheets: _Sheets, reading: Reading = Reading()) -> None:
    """Write the page, the contact sheets and the tables; those of an earlier run are replaced."""
    _write_problems(sheets.problems, sheets.folder / PROBLEMS, overwrite=True)
    write_csv(
        ("entry_id", "word", "same_as", "same_as_word", "kind", "cosine", "left_out"),
        (_row(duplicate) for duplicate in sheets.duplicates),
        sheets.folder / DUPLICATES,
        overwrite=True,
    )
    _page(sheets).write(sheets.folder / PAGE, overwrite=True)
    _write_pictures(sheets, reading)


def _row(duplicate: _Duplicate) -> tuple[str, ...]:
    entry, other = duplicate.entry, duplicate.other
    left_out = "yes" if duplicate.left_out else "no"
    words = (entry.entry_id, entry.word, other.entry_id, other.word)
    return (*words, duplicate.kind, f"{duplicate.cosine:.3f}", left_out)


def _page(sheets: _Sheets) -> DictionaryPage:
    alike: dict[str, list[str]] = {}
    for duplicate in sheets.duplicates:
        for one, other in ((duplicate.entry, duplicate.other), (duplicate.other, duplicate.entry)):
            alike.setdefault(one.entry_id, []).append(f"{duplicate.kind}: {other.entry_id}")
    cards = tuple(_card(one, sheets.folder, alike.get(one.entry.entry_id, [])) for one in sheets.finished)
    problems = tuple(str(problem) for problem in sheets.problems)
    return DictionaryPage(sheets.folder.resolve().name, cards, problems, tuple(map(str, sheets.duplicates)))


def _card(one: _BuiltClip, folder: Path, alike: list[str]) -> Card:
    kept, n_frames = one.facts.kept, one.facts.n_frames
    length = f"{len(kept) / FRAME_RATE:.1f} s"
    cut = f"{length}, cut {kept.start} + {n_frames - kept.stop} frames" if len(kept) < n_frames else length
    is_shown = one.thumbnails is not None
    return Card(
        entry=one.entry, picture=one.thumbnails.relative_to(folder).as_posix() if one.thumbnails is not None else "",
        clip=one.clip.relative_to(folder).as_posix() if is_shown else "", n_tiles=one.facts.n_tiles,
        aspect=one.facts.tile_width / TILE_HEIGHT, span_ms=one.facts.kept_ms, notes=(cut, *one.facts.remarks, *alike),
        face_group=one.face_group,
    )  # fmt: skip


def _write_pictures(sheets: _Sheets, reading: Reading) -> None:
    shown = [one for one in sheets.finished if one.thumbnails is not None]
    n_sheets = -(-len(shown) // _ROWS_PER_SHEET)
    for number in range(n_sheets):
        part = shown[number * _ROWS_PER_SHEET : (number + 1) * _ROWS_PER_SHEET]
        rows = [
            SheetRow(_title(one.entry), read_strip(one.thumbnails, one.facts.n_tiles)) for one in part if one.thumbnails
        ]
        picture = contact_sheet(rows, columns=TILES, tile_height=TILE_HEIGHT)
        write_picture(picture, sheets.folder / f"{SHEETS}{number + 1:03}.png", overwrite=True)
        reading.progress("drawing contact sheets", number + 1, n_sheets)
    # A shorter dictionary has fewer sheets than the run before.
    for old in sheets.folder.glob(f"{SHEETS}[0-9][0-9][0-9]*.png"):
        if int(old.stem.removeprefix(SHEETS)) > n_sheets:
            old.unlink()


def _title(entry: Entry) -> str:
    return f"{entry.word} {entry.variant}".strip()


# What was found out about one clip while a dictionary was built, kept so that the clip is read only once.
_FACTS_FORMAT = "signspot-clip-facts"
_STEPS = 127  # a number of a signature is stored in one byte


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ClipFacts:
    """One clip: its frames, the part of it that shows the sign, and its looks."""

    n_frames: int
    kept: FrameSpan
    kept_ms: MillisSpan  # media time of `kept`
    remarks: tuple[str, ...]  # what should be known: damage, a clip in which nothing moves
    n_tiles: int  # of its strip of thumbnails
    tile_width: int  # pixels
    signature: FloatArray  # (2, 2048), rows of length 1 or zero: see media.frame_signature


def _write_clip_facts(facts: _ClipFacts, path: Path) -> None:
    content = {
        "format": _FACTS_FORMAT, "version": 1, "n_frames": facts.n_frames, "kept": [facts.kept.start, facts.kept.stop],
        "kept_ms": [facts.kept_ms.start, facts.kept_ms.stop], "remarks": list(facts.remarks), "n_tiles": facts.n_tiles,
        "tile_width": facts.tile_width,
        "signature": base64.b64encode(_rounded(facts.signature).tobytes()).decode("ascii"),
    }  # fmt: skip
    write_json(content, path, overwrite=True)


def _read_clip_facts(path: Path) -> _ClipFacts | None:
    """The facts stored at `path`; None where there are none or they are damaged: then the clip is read again."""
    if not path.is_file():
        return None
    try:
        node = Node(path, read_manifest(path, _FACTS_FORMAT))
        kept, kept_ms = ([edge.integer() for edge in node.member(name).rows(2)] for name in ("kept", "kept_ms"))
        return _ClipFacts(
            n_frames=node.member("n_frames").integer(), kept=FrameSpan(kept[0], kept[1]),
            kept_ms=MillisSpan.of(kept_ms[0], kept_ms[1]),
            remarks=tuple(remark.text() for remark in node.member("remarks").rows()),
            n_tiles=max(1, node.member("n_tiles").integer()), tile_width=max(1, node.member("tile_width").integer()),
            signature=_signature(node.member("signature").text()),
        )  # fmt: skip
    except (FormatError, ValueError, binascii.Error):
        return None


def _rounded(signature: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    largest = np.abs(signature).max(axis=1, keepdims=True)
    return np.rint(signature / np.where(largest > 0, largest, 1) * _STEPS).astype(np.int8)


def _signature(text: str) -> FloatArray:
    rows = np.frombuffer(base64.b64decode(text, validate=True), np.int8).reshape(SIGNATURE_SHAPE).astype(np.float32)
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    signature: FloatArray = rows / np.maximum(lengths, 1)  # bytes: a row that is not zero is far longer than 1
    return signature


_SMALL = FrameShape(side=16, crop=16)  # the pictures are only counted


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How thoroughly to look."""

    full: bool = True  # decode every video to its end; otherwise only its beginning
    reading: Reading = Reading()


@dataclass(frozen=True, slots=True)
class Check:
    """What was found: how much is usable, and what is wrong with the rest."""

    name: str
    counts: tuple[tuple[str, int], ...]  # (what, how many), in the order to show
    problems: tuple[Notice, ...]  # what cannot be used
    remarks: tuple[Notice, ...] = ()  # what can be used, but should be known
    words: tuple[tuple[Word, int], ...] = ()  # the usable words of a dictionary and how many entries each has
    listed: Path | None = None  # the file that lists all problems, if one was written

    @classmethod
    def of(cls, name: str, counts: tuple[tuple[str, int], ...], found: Iterable[Notice]) -> Check:
        all_found = tuple(found)
        problems = tuple(problem for problem in all_found if problem.severity == "warning")
        return cls(name, counts, problems, tuple(problem for problem in all_found if problem.severity == "note"))


def check_dictionary(path: Path | str, options: CheckOptions = CheckOptions()) -> Check:
    """Open every clip of a dictionary; report words, variants, signers, and every clip that cannot be used."""
    source = read_dictionary(Path(path))
    problems = list(source.problems)
    usable: list[Entry] = []
    for done, entry in enumerate(source.dictionary, start=1):
        found = _video_problems(entry.video, options) if entry.video is not None else []
        problems += found
        if all(problem.severity == "note" for problem in found):
            usable.append(entry)
        options.reading.progress("checking clips", done, len(source.dictionary))
    counts = (
        ("words", len({entry.word for entry in usable})),
        ("variants", len({(entry.word, entry.variant) for entry in usable})),
        ("clips", len(usable)),
        ("with a .pose file", _with_landmarks(entry.video for entry in usable)),
        ("signers", len({entry.signer.signer_id for entry in usable if entry.signer is not None})),
    )
    words = tuple(sorted(Counter(entry.word for entry in usable).items()))
    return dataclasses.replace(Check.of(source.dictionary.name, counts, problems), words=words)


def check_corpus(path: Path | str, options: CheckOptions = CheckOptions()) -> Check:
    """Open every video and subtitle file of a corpus; report what can be used and what cannot."""
    folder = Path(path)
    source = read_corpus(folder)
    problems = list(source.problems)
    usable, cues, subtitled = [], 0, 0
    for done, episode in enumerate(source.episodes, start=1):
        found = _video_problems(episode.video, options)
        of_subtitles, n_cues = _subtitle_problems(episode, options)
        problems += found + of_subtitles
        cues += n_cues
        subtitled += n_cues > 0
        if all(problem.severity == "note" for problem in found):
            usable.append(episode)
        options.reading.progress("checking videos", done, len(source.episodes))
    counts = (
        ("videos", len(usable)), ("with a .pose file", _with_landmarks(episode.video for episode in usable)),
        ("with subtitles", subtitled), ("subtitle cues", cues), ("annotations", len(source.annotations)),
        ("signers", len({episode.signer for episode in usable if episode.signer})),
    )  # fmt: skip
    return Check.of(folder.resolve().name, counts, problems)


def _with_landmarks(videos: Iterable[Path | None]) -> int:
    """How many need no detector: they are landmarks, or have them beside."""
    return sum(video is not None and landmark_file_of(video) is not None for video in videos)


def _video_problems(video: Path, options: CheckOptions) -> list[Notice]:
    """What makes a video, or the landmarks beside it, unusable, and what should be known about them."""
    return _picture_problems(video, options) + _landmark_problems(video, options)


def _landmark_problems(video: Path, options: CheckOptions) -> list[Notice]:
    """Of the landmarks beside a video: a model that sees landmarks takes them for it."""
    file = landmark_file_of(video)
    if file is None or file == video:
        return []
    try:
        strange = strange_length(video, read_pose(file), isolated=options.reading.isolated)
    except SignspotError as error:
        return [error.notice()]
    return [Notice(str(video), remark, severity="note") for remark in strange]


def _picture_problems(video: Path, options: CheckOptions) -> list[Notice]:
    try:
        if video.suffix.lower() == POSE_SUFFIX:
            read_pose(video)
            return []
        with VideoReader(video, shape=_SMALL, isolated=options.reading.isolated) as reader:
            for n_frames, _ in enumerate(reader, start=1):
                if n_frames > CLIP_LENGTH and not options.full:
                    return []
            report = reader.report
    except SignspotError as error:
        return [error.notice()]
    if report.partial:
        fix = "the rest cannot be read: get a complete copy"
        return [Notice(str(video), "; ".join((report.partial, *report.warnings)), fix, severity="note")]
    return [Notice(str(video), warning, severity="note") for warning in report.warnings]


def _subtitle_problems(episode: Episode, options: CheckOptions) -> tuple[list[Notice], int]:
    """What makes a subtitle file unusable or should be known about it, and how many cues it has."""
    if episode.subtitles is None:
        return [Notice(str(episode.video), "has no subtitles", severity="note")], 0
    try:
        read = read_subtitles(episode.subtitles)
    except SignspotError as error:
        return [error.notice()], 0
    length_ms = claimed_ms(episode.video, isolated=options.reading.isolated)
    late = () if length_ms is None else late_subtitles(read.subtitles, length_ms)
    remarks = [Notice(str(episode.subtitles), warning, severity="note") for warning in (*read.warnings, *late)]
    return remarks, len(read.subtitles)


# Turn released data sets into dictionaries and corpora that every command reads.


def import_dictionary(
    source: Path, folder: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> Check:
    """Import BSLDict's metadata, or the lists of WLASL or MS-ASL with the clips in `folder`; say what was found.

    Of WLASL and MS-ASL thousands of clips are gone from the web: they are listed in problems.csv beside the dictionary.
    """
    if source.suffix.lower() in (".pkl", ".pickle"):
        made = import_bsldict(source, folder, overwrite=overwrite, progress=progress)
        return _check(made.dictionary, made.problems, made.missing)
    if source.suffix.lower() != ".json":
        raise InputError(source, "is no data set that can be imported", "give bsldict_v1.pkl, WLASL or MS-ASL JSON")
    listed = folder / PROBLEMS
    refuse_existing(listed, overwrite=overwrite)
    if "msasl" in source.name.lower().replace("-", "").replace("_", ""):
        clips = import_msasl([source], folder, overwrite=overwrite)
    else:
        clips = import_wlasl(source, folder, overwrite=overwrite)
    if clips.problems or listed.exists():  # the list of an earlier import is true no more
        _write_problems(clips.problems, listed, overwrite=overwrite)
    missing = sum(problem.what.endswith(NO_SUCH_FILE) for problem in clips.problems)
    found = _check(clips.dictionary, clips.problems, {})
    return replace(found, counts=(*found.counts, ("missing clips", missing)), listed=listed if clips.problems else None)


def import_corpus(files: ReleasedCorpus, folder: Path, *, overwrite: bool = False) -> Check:
    """Import annotations of BSL-1K, BOBSL or the 2022 challenge; videos that are missing are listed in problems.csv."""
    listed = folder / PROBLEMS
    refuse_existing(listed, overwrite=overwrite)
    made = import_released(files, folder, overwrite=overwrite)
    corpus = made.corpus
    if corpus.problems or listed.exists():  # the list of an earlier import is true no more
        _write_problems(corpus.problems, listed, overwrite=overwrite)
    counts = (
        ("videos", len(corpus.episodes)),
        ("with subtitles", sum(episode.subtitles is not None for episode in corpus.episodes)),
        ("missing videos", made.missing_videos), ("annotations", len(corpus.annotations)),
        ("without a video", made.left_out), ("words", len({annotation.word for annotation in corpus.annotations})),
    )  # fmt: skip
    found = Check.of(folder.resolve().name, counts, corpus.problems)
    return replace(found, listed=listed if corpus.problems else None)


def _check(dictionary: Dictionary, problems: tuple[Notice, ...], missing: Mapping[str, int]) -> Check:
    counts = [
        ("words", len(dictionary.by_word)),
        ("entries", len(dictionary)),
        ("with clips", sum(entry.video is not None for entry in dictionary)),
    ]
    counts += [(f"without {kind} vectors", count) for kind, count in missing.items()]
    return Check.of(dictionary.name, tuple(counts), problems)
