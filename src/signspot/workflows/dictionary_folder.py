"""The folder a dictionary is built in: what it may be, what it holds, and what an earlier run has left there.

    dictionary.csv              the dictionary: every command reads it
    clips/                      the clips, named after their word and their content
    thumbnails/, index.html, contact_sheet_001.png ...    for looking through
    problems.csv, duplicates.csv                          what was left out, and what comes twice
    .build/                     what is known of every clip, so that the next run need not read it again

Every file is written whole or not at all, and a clip is in dictionary.csv only after all its files are there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from signspot.atomic import atomic_output, explained, names_in
from signspot.domain.dictionary import Dictionary, Entry
from signspot.errors import InputError, OutputExists, VideoError
from signspot.formats.clip_facts import ClipFacts, read_clip_facts, write_clip_facts
from signspot.formats.dictionary_source import dictionary_table
from signspot.formats.entry_features import FEATURES_FILE
from signspot.formats.plain_data import Node
from signspot.formats.records import read_manifest
from signspot.formats.safe_json import write_json
from signspot.media.files import media_sha256, unreadable
from signspot.media.thumbnails import write_strip
from signspot.workflows.dictionary_clips import ReadClip

MANIFEST, PAGE, PROBLEMS, DUPLICATES = "dictionary.csv", "index.html", "problems.csv", "duplicates.csv"
CLIPS, THUMBNAILS, SHEETS = "clips", "thumbnails", "contact_sheet_"
_STATE, _MARK, _FORMAT = ".build", "build.json", "signspot-build"
_TEMPORARY = ".signspot-*.tmp*"
_CHUNK = 1 << 20
_LONGEST_STEM = 40  # characters of a word in a file name
_FIX_OTHER = "choose another folder, or add --anew to build this one again from here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The files of one clip."""

    sha256: str
    clip: Path
    facts: Path
    thumbnails: Path | None  # None: the clip may not be shown

    def stored(self) -> ClipFacts | None:
        """What is known about the clip, if all of its files are there."""
        is_whole = self.clip.is_file() and (self.thumbnails is None or self.thumbnails.is_file())
        return read_clip_facts(self.facts) if is_whole else None


@dataclass(slots=True)
class BuildFolder:
    """A folder that is being built from one source."""

    root: Path
    source: str
    link: bool = False
    was_finished: bool = False
    _manifests: list[str] = field(default_factory=list)  # SHA-256 of every manifest that may be there by our hand
    _is_ready: bool = False

    @classmethod
    def open(cls, root: Path, source: Path, *, link: bool = False, anew: bool = False) -> BuildFolder:
        """Look whether `root` can be built from `source`; nothing is written yet."""
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

    def slot(self, entry: Entry, sha256: str, key: str, *, is_shown: bool) -> Slot:
        """Where a clip of this content goes: no two different clips share a name, on any file system."""
        stem = "".join(c if c.isalnum() or c in "-'" else "_" for c in entry.word[:_LONGEST_STEM])
        suffix = entry.video.suffix.lower() if entry.video is not None else ""
        clip = self.root / CLIPS / f"{stem}-{sha256[:16]}{suffix}"
        return Slot(
            sha256=sha256,
            clip=clip,
            facts=self.root / _STATE / f"{key}.json",
            thumbnails=self.root / THUMBNAILS / f"{key}.jpg" if is_shown else None,
        )

    def add(self, video: Path, slot: Slot, read: ReadClip) -> None:
        """Store a clip and what is known about it; the facts come last, for they say that all is there."""
        self._prepare()
        if not slot.clip.is_file():
            _copy(video, slot.clip, sha256=slot.sha256, link=self.link)
        if slot.thumbnails is not None:
            write_strip(read.strip, slot.thumbnails, overwrite=True)
        write_clip_facts(read.facts, slot.facts)

    def save(self, entries: list[Entry], *, finished: bool) -> None:
        """Write the manifest of these entries."""
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
        """Clips an earlier run put here that the dictionary no longer lists."""
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
    """Raise if building into `root` would put files among those of the source."""
    if not root.parent.is_dir():
        raise InputError(root, "the folder to write to does not exist", f"create {root.parent} first")
    target, origin = root.resolve(), source.resolve()
    if target == origin or (source.is_file() and target == origin.parent):
        raise InputError(root, "is the source itself, which is never changed", "name another folder to build in")
    if source.is_dir() and target.is_relative_to(origin):
        raise InputError(root, "lies inside the source, which is never changed", "name a folder outside of it")


def _refuse_foreign(root: Path) -> None:
    """Raise if `root` is there and is anything but an empty folder."""
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
