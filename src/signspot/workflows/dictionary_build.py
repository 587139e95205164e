"""Build a dictionary from whatever somebody has: clips gathered, trimmed, looked through, and every trouble named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TypeVar

import numpy as np

from signspot.domain.corpus import Rights
from signspot.domain.dictionary import Entry
from signspot.errors import DictionaryError, InputError, SignspotError, VideoError
from signspot.formats.clip_facts import ClipFacts
from signspot.formats.manifests import DictionarySource, Problem, read_dictionary
from signspot.formats.wlasl import list_clips
from signspot.media.faces import FaceReader, face_groups
from signspot.media.frame_signature import near_pairs
from signspot.media.reader import media_sha256, shared_decoding
from signspot.media.trim import TrimOptions
from signspot.workflows.dictionary_clips import as_kept, facts_key, read_clip
from signspot.workflows.dictionary_folder import BuildFolder, Slot
from signspot.workflows.dictionary_sheets import Duplicate, Finished, Sheets, write_sheets
from signspot.workflows.tracks import Progress

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
    isolated: bool = True
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
    duplicates: tuple[Duplicate, ...]
    problems: tuple[Problem, ...]  # what was left out
    remarks: tuple[Problem, ...]  # what was taken but should be known
    face_groups: int | None = None  # how many the page shows; None: nobody asked for them


def build_dictionary(
    source: Path, folder: Path, options: BuildOptions = BuildOptions(), progress: Progress | None = None
) -> Build:
    """Make `folder` a dictionary of the clips of `source`, or go on where an earlier run has stopped."""
    faces = FaceReader() if options.signers_by_face else None  # what is missing is said before hours of work
    listed = _listed(source, options)
    target = BuildFolder.open(folder, source, link=options.link, anew=options.anew)
    run = _Run(target, options, progress, list(listed.problems))
    with shared_decoding():
        for entry in run.reported("reading clips", _tidied(listed)):
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
    write_sheets(Sheets(target.root, run.finished, duplicates, run.problems), progress)
    return _build(run, duplicates)


@dataclass(slots=True)
class _Run:
    """What has been done so far."""

    target: BuildFolder
    options: BuildOptions
    progress: Progress | None
    problems: list[Problem]
    finished: list[Finished] = field(default_factory=list)
    without_clip: list[Entry] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    read_before: int = 0
    _by_content: dict[str, list[Entry]] = field(default_factory=dict)

    def reported(self, step: str, things: Sequence[_Thing]) -> Iterator[_Thing]:
        """The things, one after the other, while the progress is shown."""
        for done, thing in enumerate(things, start=1):
            yield thing
            if self.progress is not None:
                self.progress(step, done, len(things))

    def take(self, entry: Entry) -> None:
        """Bring one entry into the dictionary, or note why not."""
        if entry.video is None:
            self.without_clip.append(entry)
            self.problems.append(Problem(entry.entry_id, _FEATURES_ONLY, "add the clip", is_remark=True))
            return
        try:
            sha256 = media_sha256(entry.video)
            if self._is_there_already(entry, sha256):
                return
            found = self._stored(entry, entry.video, sha256)
        except VideoError as error:
            self.problems.append(Problem(error.where, error.what, error.fix))
            return
        if found is None:
            return
        self._by_content.setdefault(sha256, []).append(entry)
        self.finished.append(found)
        for remark in found.facts.remarks:
            self.problems.append(Problem(str(entry.video), remark, is_remark=True))
        if len(self.finished) % _SAVE_EVERY == 0 and not self.target.was_finished:
            self.target.save([one.entry for one in self.finished], finished=False)

    def _is_there_already(self, entry: Entry, sha256: str) -> bool:
        """Whether the same bytes are there under the same word; under another word they are only reported."""
        others = self._by_content.get(sha256, [])
        same_word = next((other for other in others if other.word == entry.word), None)
        if others:
            other = same_word or others[0]
            self.duplicates.append(Duplicate(entry, other, "the same file", 1.0, left_out=same_word is not None))
        return same_word is not None

    def _stored(self, entry: Entry, video: Path, sha256: str) -> Finished | None:
        """The files of a clip, made now unless an earlier run has made them."""
        key = facts_key(sha256, entry.kept, self.options.trim)
        slot = self.target.slot(entry, sha256, key, is_shown=_may_be_shown(entry.rights, self.options.on))
        facts = slot.stored()
        if facts is not None:
            self.read_before += 1
            return _finished(entry, slot, facts)
        try:
            read = read_clip(video, entry.kept, self.options.trim, isolated=self.options.isolated)
        except SignspotError as error:  # whatever is wrong with this clip, the others are not
            self.problems.append(Problem(error.where, error.what, error.fix))
            return None
        self.target.add(video, slot, read)
        return _finished(entry, slot, slot.stored() or read.facts)


def _finished(entry: Entry, slot: Slot, facts: ClipFacts) -> Finished:
    here = replace(entry, video=slot.clip, kept=as_kept(entry, facts))
    return Finished(here, slot.clip, slot.sha256, facts, slot.thumbnails)


def _may_be_shown(rights: Rights, on: date) -> bool:
    """Whether thumbnails may be made: where the holder says nothing, they are for the eyes of whoever has the clips."""
    return rights.may_display is not False and not (rights.expires is not None and on >= rights.expires)


def _listed(source: Path, options: BuildOptions) -> DictionarySource:
    """The entries of any source."""
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
    """The entries with one spelling of variants, and ids that survive a spreadsheet."""
    taken: Counter[str] = Counter()
    entries = []
    for entry in listed.dictionary:
        entry_id = " ".join(entry.entry_id.split()) or entry.word
        taken[entry_id] += 1
        if taken[entry_id] > 1:
            entry_id = f"{entry_id}#{taken[entry_id]}"
            taken[entry_id] += 1
        entries.append(replace(entry, entry_id=entry_id, variant=tidy_variant(entry.variant)))
    return entries


def tidy_variant(variant: str) -> str:
    """One spelling for the numbers of variants; names stay as they are.

    >>> tidy_variant("v2"), tidy_variant("Variant 02"), tidy_variant("2B"), tidy_variant(" north ")
    ('2', '2', '2b', 'north')
    """
    text = " ".join(variant.split())
    numbered = _NUMBERED.fullmatch(text)
    return f"{int(numbered[1])}{numbered[2].lower()}" if numbered else text


def _near_duplicates(finished: list[Finished]) -> list[Duplicate]:
    """Clips that look like copies of one recording; clips with the same bytes are known already."""
    distinct = list({one.sha256: one for one in finished}.values())
    pairs = near_pairs(np.stack([one.facts.signature for one in distinct]))
    kind = "nearly the same"
    return [Duplicate(distinct[p.later].entry, distinct[p.earlier].entry, kind, p.cosine) for p in pairs]


def _face_groups(run: _Run, faces: FaceReader) -> list[int | None]:
    """A number for clips that seem to show one person; only clips that may be shown are looked at."""
    looks = [
        faces.clip_vector(one.clip, one.facts.kept, isolated=run.options.isolated) if one.thumbnails else None
        for one in run.reported("comparing faces", run.finished)
    ]
    return face_groups(looks)


def _leftover(target: BuildFolder, entries: list[Entry]) -> list[Problem]:
    """A remark about clips of earlier runs that the source no longer lists; they are never removed unasked."""
    names = target.unlisted(entries)
    if not names:
        return []
    what = f"{len(names)} clips of earlier runs are no longer listed, such as {names[0]}"
    return [Problem(str(target.root), what, "remove them by hand if they are not wanted", is_remark=True)]


def _build(run: _Run, duplicates: list[Duplicate]) -> Build:
    entries = [one.entry for one in run.finished] + run.without_clip
    counts = (
        ("words", len({entry.word for entry in entries})),
        ("variants", len({(entry.word, entry.variant) for entry in entries})),
        ("clips", len(run.finished)),
        ("signers", len({entry.signer.signer_id for entry in entries if entry.signer is not None})),
    )
    return Build(
        folder=run.target.root,
        counts=counts,
        read_before=run.read_before,
        frames=sum(one.facts.n_frames for one in run.finished),
        kept_frames=sum(len(one.facts.kept) for one in run.finished),
        duplicates=tuple(duplicates),
        problems=tuple(problem for problem in run.problems if not problem.is_remark),
        remarks=tuple(problem for problem in run.problems if problem.is_remark),
        face_groups=len({one.face_group for one in run.finished} - {None}) if run.options.signers_by_face else None,
    )
