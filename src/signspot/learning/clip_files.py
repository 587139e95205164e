"""Clips of annotated episodes and of dictionary entries, their frames decoded into a cache on the disk.

What cannot be used is left out and told: a video that cannot be read, an annotation behind its end, a recording whose
holder forbids training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Literal

from signspot.domain.corpus import Episode, Rights
from signspot.domain.dictionary import Entry
from signspot.domain.spans import FrameSpan
from signspot.domain.words import Vocabulary
from signspot.errors import InputError, VideoError
from signspot.features.extract import LONGEST_ENTRY_FRAMES
from signspot.learning.clips import ClipPlace, ClipWindow, RecordedClips
from signspot.learning.frame_cache import FrameCache, StoredFrames, StoredRecordings
from signspot.learning.permission import is_forbidden
from signspot.media.sampling import MAX_SPEED

CacheProgress = Callable[[str, int, int], None]  # the video at hand, videos done, videos in all


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipOptions:
    """Which clips are taken, and how."""

    window: ClipWindow = ClipWindow()
    min_confidence: float = 0.5  # Paper App. C.1: of an annotation, at least
    sampling: Literal["random", "consecutive"] = "random"  # of dictionary clips (Paper App. C.1)
    today: date = field(default_factory=date.today)  # rights may have expired


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that gave no clip, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class FoundClips:
    """Clips to learn from, and what gave none."""

    source: RecordedClips
    skipped: tuple[Skipped, ...] = ()
    outside_vocabulary: int = 0  # annotations or entries of other words
    below_confidence: int = 0  # annotations less sure than asked for
    rights: tuple[Rights, ...] = ()  # of the videos that are used


def annotated_clips(
    episodes: Iterable[Episode],
    vocabulary: Vocabulary,
    cache: FrameCache,
    options: ClipOptions = ClipOptions(),
    progress: CacheProgress | None = None,
) -> FoundClips:
    """Clips of neighbouring frames around every annotation of a word of the vocabulary."""
    episodes, found, outside, unsure = tuple(episodes), _Found(options.today), 0, 0
    for done, episode in enumerate(episodes):
        if progress is not None:
            progress(episode.video_id, done, len(episodes))
        known = [annotation for annotation in episode.annotations if annotation.word in vocabulary]
        sure = [annotation for annotation in known if annotation.confidence >= options.min_confidence]
        outside, unsure = outside + len(episode.annotations) - len(known), unsure + len(known) - len(sure)
        spans = [options.window.around(annotation.frame) for annotation in sure]
        # The annotated frames are asked for too: they tell whether the video reaches that far.
        frames = [FrameSpan(annotation.frame, annotation.frame + 1) for annotation in sure]
        read = partial(cache.frames_in, episode.video, [*spans, *frames], episode.box)
        stored = found.read(episode.video_id, episode.rights, read) if sure else None
        if stored is None:
            continue
        for annotation, span, frame in zip(sure, spans, frames, strict=True):
            name = f"{episode.video_id}: {annotation.word} at frame {annotation.frame}"
            rows = stored.rows(span) if stored.rows(frame) is not None else None
            found.add(name, vocabulary.id_of(annotation.word), rows, annotation.confidence)
    return replace(found.clips(max_speed=1.0), outside_vocabulary=outside, below_confidence=unsure)


def dictionary_clips(
    entries: Iterable[Entry],
    vocabulary: Vocabulary,
    cache: FrameCache,
    options: ClipOptions = ClipOptions(),
    progress: CacheProgress | None = None,
) -> FoundClips:
    """Clips of dictionary videos, each video on its own with the label of its word (Paper App. C.1)."""
    entries = tuple(entries)
    known, found = [entry for entry in entries if entry.word in vocabulary], _Found(options.today)
    for done, entry in enumerate(known):
        if progress is not None:
            progress(entry.entry_id, done, len(known))
        stored = found.read(entry.entry_id, entry.rights, partial(_frames_of, entry, cache))
        if stored is not None:
            kept = entry.kept or FrameSpan(0, len(stored))
            rows = kept if kept.stop <= len(stored) else None
            found.add(entry.entry_id, vocabulary.id_of(entry.word), rows)
    clips = found.clips(MAX_SPEED if options.sampling == "random" else 1.0)
    return replace(clips, outside_vocabulary=len(entries) - len(known))


@dataclass(slots=True)
class _Found:
    """What has been collected so far."""

    today: date
    rights: list[Rights] = field(default_factory=list)
    stored: list[StoredFrames] = field(default_factory=list)
    places: list[ClipPlace] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    def read(self, name: str, rights: Rights, read: Callable[[], StoredFrames]) -> StoredFrames | None:
        """The frames of one video, or none and the reason is kept; a full disk is everybody's trouble."""
        if is_forbidden(rights, self.today):
            self.skipped.append(Skipped(name, "it may not be used for training"))
            return None
        try:
            stored = read()
        except InputError as error:
            self.skipped.append(Skipped(name, str(error)))
            return None
        self.stored.append(stored)
        self.rights.append(rights)
        return stored

    def add(self, name: str, label: int, rows: FrameSpan | None, confidence: float = 1.0) -> None:
        """A clip of the video read last; None where that ends too early."""
        if rows is None or not len(rows):
            self.skipped.append(Skipped(name, "the video ends before"))
        else:
            self.places.append(ClipPlace(name, label, len(self.stored) - 1, rows, confidence))

    def clips(self, max_speed: float) -> FoundClips:
        """All of it."""
        source = RecordedClips(StoredRecordings(self.stored), tuple(self.places), max_speed)
        return FoundClips(source, tuple(self.skipped), rights=tuple(self.rights))


def _frames_of(entry: Entry, cache: FrameCache) -> StoredFrames:
    if entry.video is None:
        raise VideoError(entry.entry_id, "the dictionary has no video for this entry", "add the clip")
    return cache.all_frames(entry.video, LONGEST_ENTRY_FRAMES, entry.box)
