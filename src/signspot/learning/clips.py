"""Where training clips come from: 16 frames, as pixels or as landmarks, drawn anew each time they are asked for.

A clip is (16, H, W, 3) uint8 or (16, 258) float32. A recording is the same without the limit on its length: an array in
memory, a memory map, anything that gives rows. Every clip is drawn inside a span of its recording.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from signspot.domain.recordings import Entry, Episode, Rights, SignerBox, Vocabulary
from signspot.domain.time import FrameSpan, TimeAxis
from signspot.domain.tracks import (
    CLIP_LENGTH,
    FloatArray,
    FrameShape,
    Ints,
    Pixels,
    SignerLandmarks,
    WindowGrid,
    in_picture_heights,
)
from signspot.embedding.landmarks import has_detector, landmark_file_of, landmarks_of, sign_span, window_at
from signspot.embedding.model import FEWEST_FRAMES, Reading, too_short
from signspot.embedding.pictures import LONGEST_ENTRY_FRAMES
from signspot.errors import InputError, MissingExtra, VideoError
from signspot.files.atomic import atomic_output, make_folder
from signspot.learning.material import file_sha256
from signspot.media.frames import MAX_SPEED, random_clips
from signspot.media.reader import VideoReader
from signspot.media.video import media_sha256
from signspot.models.landmarks import LandmarkChange

Frames = Pixels | FloatArray  # (n, H, W, 3) uint8, or (n, 258) float32

_TEST_STRIDE = CLIP_LENGTH // 2  # of the released evaluation: half a window


@dataclass(frozen=True, slots=True)
class ClipPlace:
    """Where a labelled sign lies: these rows of this recording."""

    name: str
    label: int
    recording: int
    span: FrameSpan
    confidence: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipWindow:
    """The frames around an annotation from which its clips are drawn: [frame - before, frame + after).

    The default is that of the released trainer, whose clips end where the annotation is (Paper App. B.7, "the last 20
    frames"); `after=5` covers the whole tolerance of Paper 4.2.
    """

    before: int = 20
    after: int = 0

    def __post_init__(self) -> None:
        if min(self.before, self.after) < 0 or self.before + self.after < CLIP_LENGTH:
            raise ValueError(f"no clip of {CLIP_LENGTH} frames fits into {self.before} before to {self.after} after")

    def around(self, frame: int) -> FrameSpan:
        """Room for at least one clip, from frame 0 on; its end may lie behind the end of a video.

        >>> ClipWindow().around(100), ClipWindow().around(7)
        (FrameSpan(start=80, stop=100), FrameSpan(start=0, stop=16))
        """
        start = max(0, frame - self.before)
        return FrameSpan(start, max(frame + self.after, start + CLIP_LENGTH))


@dataclass(frozen=True, slots=True, eq=False)
class RecordedClips:
    """Clips drawn at a random shift and, up to `max_speed`, a random speed from spans of recordings."""

    recordings: Sequence[Frames]
    places: tuple[ClipPlace, ...]
    max_speed: float = 1.0  # 1: neighbouring frames; for isolated signs see media.sampling.MAX_SPEED

    def __post_init__(self) -> None:
        for place in self.places:
            if not 0 <= place.recording < len(self.recordings) or place.span.start < 0 or not len(place.span):
                raise ValueError(f"{place.name}: no clip can be taken from {place}")

    def __len__(self) -> int:
        return len(self.places)

    def clip(self, i: int, rng: np.random.Generator) -> Frames:
        """16 frames of a span, (16, H, W, 3) uint8 or (16, 258) float32; a short span ends with its last frame."""
        place = self.places[i]
        return self._frames(place, random_clips(len(place.span), rng, max_speed=self.max_speed)[0])

    def test_clips(self, i: int) -> Frames:
        """(n, 16, ...): windows at half their length over a span; of isolated signs clips at fixed random speeds."""
        place = self.places[i]
        if self.max_speed > 1:
            numbers = random_clips(len(place.span), np.random.default_rng(i), max_speed=self.max_speed)
        else:
            starts = WindowGrid(len(place.span), stride=_TEST_STRIDE).starts()
            numbers = np.minimum(starts[:, None] + np.arange(CLIP_LENGTH), len(place.span) - 1)
        return self._frames(place, numbers)

    def _frames(self, place: ClipPlace, numbers: Ints) -> Frames:
        recording = self.recordings[place.recording]
        if place.span.stop > len(recording):
            raise ValueError(f"{place.name}: {place.span} of a recording of {len(recording)} frames")
        rows = numbers + place.span.start
        return recording[rows].view(np.ndarray)  # a plain array, also from a memory map


# Clips of annotated episodes and of dictionary entries: frames decoded into a cache on the disk, or landmarks.
#
# What cannot be used is skipped: a video that cannot be read, an annotation after its end, a recording whose holder
# forbids training.

CacheProgress = Callable[[str, int, int], None]  # the video at hand, videos done, videos in all


class FrameSource(Protocol):
    """Where the frames of recordings come from: `FrameCache` or `LandmarkFrames`."""

    def axis(self, video: Path, box: SignerBox | None = None) -> TimeAxis: ...

    def frames_in(self, video: Path, spans: Iterable[FrameSpan], box: SignerBox | None = None) -> _KeptFrames: ...

    def sign_in(self, entry: Entry) -> tuple[_KeptFrames, FrameSpan | None]:
        """The frames of a dictionary clip, and which rows show the sign; None if the clip ends before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipOptions:
    """Which clips are taken, and how."""

    window: ClipWindow = ClipWindow()
    min_confidence: float = 0.5  # Paper App. C.1: of an annotation, at least
    sampling: Literal["random", "consecutive"] = "random"  # of dictionary clips (Paper App. C.1)
    today: date = field(default_factory=date.today)  # rights may have expired


@dataclass(frozen=True, slots=True)
class FoundClips:
    """Clips to learn from."""

    source: RecordedClips
    skipped: tuple[tuple[str, str], ...] = ()  # what gave no clip, and why
    outside_vocabulary: int = 0  # annotations or entries of other words
    below_confidence: int = 0  # annotations less sure than asked for
    rights: tuple[Rights, ...] = ()  # of the videos that are used


def annotated_clips(
    episodes: Iterable[Episode],
    vocabulary: Vocabulary,
    frames: FrameSource,
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
        marks = [FrameSpan(annotation.frame, annotation.frame + 1) for annotation in sure]
        read = partial(frames.frames_in, episode.video, [*spans, *marks], episode.box)
        kept = found.read(episode.video_id, episode.rights, read) if sure else None
        if kept is None:
            continue
        found.recordings.append(kept)
        for annotation, span, mark in zip(sure, spans, marks, strict=True):
            name = f"{episode.video_id}: {annotation.word} at frame {annotation.frame}"
            rows = kept.rows(span) if kept.rows(mark) is not None else None
            found.add(name, vocabulary.id_of(annotation.word), rows, annotation.confidence)
    return replace(found.clips(max_speed=1.0), outside_vocabulary=outside, below_confidence=unsure)


def dictionary_clips(
    entries: Iterable[Entry],
    vocabulary: Vocabulary,
    frames: FrameSource,
    options: ClipOptions = ClipOptions(),
    progress: CacheProgress | None = None,
) -> FoundClips:
    """Clips of dictionary videos, each video on its own with the label of its word (Paper App. C.1)."""
    entries = tuple(entries)
    known, found = [entry for entry in entries if entry.word in vocabulary], _Found(options.today)
    for done, entry in enumerate(known):
        if progress is not None:
            progress(entry.entry_id, done, len(known))
        sign = found.read(entry.entry_id, entry.rights, partial(frames.sign_in, entry))
        if sign is not None:
            found.recordings.append(sign[0])
            found.add(entry.entry_id, vocabulary.id_of(entry.word), sign[1])
    clips = found.clips(MAX_SPEED if options.sampling == "random" else 1.0)
    return replace(clips, outside_vocabulary=len(entries) - len(known))


_Read = TypeVar("_Read")


@dataclass(slots=True)
class _Found:
    """The clips found so far."""

    today: date
    rights: list[Rights] = field(default_factory=list)
    recordings: list[_KeptFrames] = field(default_factory=list)
    places: list[ClipPlace] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def read(self, name: str, rights: Rights, read: Callable[[], _Read]) -> _Read | None:
        """What `read` gives; None, with the reason noted, if the video may not or cannot be used."""
        if rights.forbid_training(self.today):
            self.skipped.append((name, "it may not be used for training"))
            return None
        try:
            done = read()
        except InputError as error:
            self.skipped.append((name, str(error)))
            return None
        self.rights.append(rights)
        return done

    def add(self, name: str, label: int, rows: FrameSpan | None, confidence: float = 1.0) -> None:
        if rows is None or not len(rows):
            self.skipped.append((name, "the video ends before"))
        else:
            self.places.append(ClipPlace(name, label, len(self.recordings) - 1, rows, confidence))

    def clips(self, max_speed: float) -> FoundClips:
        source = RecordedClips(_StoredRecordings(self.recordings), tuple(self.places), max_speed)
        return FoundClips(source, tuple(self.skipped), rights=tuple(self.rights))


def _clip_of(entry: Entry) -> Path:
    if entry.video is None:
        raise VideoError(entry.entry_id, "the dictionary has no video for this entry", "add the clip")
    return entry.video


# The frames of videos, decoded once: raw bytes on the disk, opened as memory maps.
#
# A file holds the wanted frames of one video, each `side` x `side` x 3 bytes. Its name comes from the content of the
# video, the size of the frames and which of them are wanted; a .json file beside it, written last, holds its checksum.

_VERSION = 1  # counts up when the same name would mean other bytes
_SMALLEST = FrameShape(16, 16)  # where only the times of frames are wanted


@dataclass(frozen=True, slots=True)
class _KeptFrames(ABC):
    """Some frames of one video, in order."""

    kept: tuple[FrameSpan, ...]  # which frames of the video; apart, ascending

    def __len__(self) -> int:
        return sum(map(len, self.kept))

    @abstractmethod
    def open(self) -> Frames: ...

    def rows(self, span: FrameSpan) -> FrameSpan | None:
        """The rows that hold the frames of `span`, as far as the video goes; None if it ends before."""
        at = bisect_right(self.kept, span.start, key=lambda kept: kept.start) - 1
        if at < 0 or span.start not in self.kept[at]:
            return None
        offset = sum(map(len, self.kept[:at])) - self.kept[at].start
        return FrameSpan(span.start + offset, min(span.stop, self.kept[at].stop) + offset)


@dataclass(frozen=True, slots=True)
class _StoredFrames(_KeptFrames):
    """Pictures on the disk."""

    path: Path
    side: int  # pixels

    def open(self) -> Pixels:
        try:
            return np.memmap(self.path, np.uint8, "r", shape=(len(self), self.side, self.side, 3))
        except (OSError, ValueError) as error:  # ValueError: the file has become too short
            what = f"the decoded frames cannot be read any more ({error})"
            raise InputError(self.path, what, "run the same command again: they are decoded again") from error


class _StoredRecordings(Sequence[Frames]):
    """Recordings that are opened when they are asked for: thousands of open files are more than a system allows."""

    def __init__(self, stored: Iterable[_KeptFrames]) -> None:
        self._stored = tuple(stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, i: Any) -> Any:  # a whole number: nobody takes slices
        return self._stored[i].open()


@dataclass(frozen=True, slots=True)
class FrameCache:
    """A folder of decoded frames."""

    folder: Path
    shape: FrameShape  # of the model; frames are kept at its full side, so that training can move the crop
    reading: Reading = Reading()

    def axis(self, video: Path, box: SignerBox | None = None) -> TimeAxis:
        del box
        with VideoReader(video, shape=_SMALLEST, isolated=self.reading.isolated) as reader:
            for _ in reader:
                pass
            return reader.report.axis

    def frames_in(self, video: Path, spans: Iterable[FrameSpan], box: SignerBox | None = None) -> _StoredFrames:
        """The frames of these spans, as far as the video goes; decoded unless they are there."""
        return self._frames(video, _merged(spans), box)

    def all_frames(self, video: Path, at_most: int, box: SignerBox | None = None) -> _StoredFrames:
        """The whole of a short video; one of more than `at_most` frames is refused."""
        stored = self._frames(video, (FrameSpan(0, at_most + 1),), box)
        if len(stored) > at_most:
            raise VideoError(
                video, f"is longer than {at_most // 25} seconds: it should show one sign", "cut the sign out"
            )
        return stored

    def sign_in(self, entry: Entry) -> tuple[_StoredFrames, FrameSpan | None]:
        stored = self.all_frames(_clip_of(entry), LONGEST_ENTRY_FRAMES, entry.box)
        kept = entry.kept or FrameSpan(0, len(stored))
        return stored, kept if kept.stop <= len(stored) else None

    def _frames(self, video: Path, wanted: tuple[FrameSpan, ...], box: SignerBox | None) -> _StoredFrames:
        make_folder(self.folder)
        box = box if self.shape.signer_box else None
        seen = (self.shape.side, self.shape.keep_aspect, *([str(box)] if box else []))
        made_of = (_VERSION, media_sha256(video), *seen, *map(asdict, wanted))
        name = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:32]
        path = self.folder / f"{name}.frames"
        return self._whole(path, wanted) or self._decoded(video, path, wanted, box)

    def _whole(self, path: Path, wanted: tuple[FrameSpan, ...]) -> _StoredFrames | None:
        try:
            card = json.loads(path.with_suffix(".json").read_text())
            stored = _StoredFrames(_cut(wanted, int(card["n_frames"])), path, self.shape.side)
            n_bytes = len(stored) * stored.side**2 * 3
            is_whole = path.stat().st_size == n_bytes and file_sha256(path) == card["sha256"]
        except (OSError, ValueError, KeyError, TypeError, InputError):
            return None
        return stored if is_whole else None

    def _decoded(self, video: Path, path: Path, wanted: tuple[FrameSpan, ...], box: SignerBox | None) -> _StoredFrames:
        digest, n_frames = hashlib.sha256(), 0
        shape = FrameShape(self.shape.side, self.shape.side, self.shape.keep_aspect)
        last = max((span.stop for span in wanted), default=0)
        with (
            atomic_output(path, overwrite=True) as temporary,
            temporary.open("wb") as file,
            VideoReader(video, shape=shape, box=box, isolated=self.reading.isolated) as reader,
        ):
            for frame in islice(reader, last):
                at = bisect_right(wanted, n_frames, key=lambda span: span.start) - 1
                if at >= 0 and n_frames in wanted[at]:
                    content = np.ascontiguousarray(frame.pixels).data
                    digest.update(content)
                    file.write(content)
                n_frames += 1
        with atomic_output(path.with_suffix(".json"), overwrite=True) as temporary:
            temporary.write_text(json.dumps({"n_frames": n_frames, "sha256": digest.hexdigest()}))
        return _StoredFrames(_cut(wanted, n_frames), path, self.shape.side)


def _merged(spans: Iterable[FrameSpan]) -> tuple[FrameSpan, ...]:
    """The same frames in as few spans as possible, ascending.

    >>> merged([FrameSpan(5, 9), FrameSpan(0, 2), FrameSpan(8, 12), FrameSpan(2, 3)])
    (FrameSpan(start=0, stop=3), FrameSpan(start=5, stop=12))
    """
    joined: list[FrameSpan] = []
    for span in sorted(span for span in spans if len(span)):
        if joined and span.start <= joined[-1].stop:
            joined[-1] = FrameSpan(joined[-1].start, max(joined[-1].stop, span.stop))
        else:
            joined.append(span)
    return tuple(joined)


def _cut(spans: Iterable[FrameSpan], n_frames: int) -> tuple[FrameSpan, ...]:
    return tuple(FrameSpan(span.start, min(span.stop, n_frames)) for span in spans if span.start < n_frames)


# Landmarks of recordings, as a landmark model sees them in use: in picture heights, 25 frames a second, and of a
# dictionary clip one window over the sign. They stay in memory: about 25 kB for a clip.


@dataclass(frozen=True, slots=True, eq=False)
class _HeldLandmarks(_KeptFrames):
    points: FloatArray  # (n, 258)

    def open(self) -> FloatArray:
        return self.points


@dataclass(frozen=True, slots=True)
class LandmarkFrames:
    """The landmarks of .pose files and of videos: from a .pose file beside them, or else from the detector."""

    reading: Reading = Reading()  # its store keeps what the detector finds

    def axis(self, video: Path, box: SignerBox | None = None) -> TimeAxis:
        return self._landmarks(video, box).track.axis

    def frames_in(self, video: Path, spans: Iterable[FrameSpan], box: SignerBox | None = None) -> _KeptFrames:
        points = self._points(video, box)
        kept = _cut(_merged(spans), len(points))
        return _HeldLandmarks(kept, np.concatenate([points[:0], *(points[span.start : span.stop] for span in kept)]))

    def sign_in(self, entry: Entry) -> tuple[_KeptFrames, FrameSpan | None]:
        """The sign of a dictionary clip, brought to 16 frames: the model compares recordings with this window."""
        video, whole = _clip_of(entry), FrameSpan(0, CLIP_LENGTH)
        points = self._points(video, entry.box)
        if len(points) < FEWEST_FRAMES:
            raise VideoError(video, too_short(len(points)), "give a clip of the whole sign")
        sign = entry.kept or sign_span(points)
        rows = whole if sign.stop <= len(points) else None
        return _HeldLandmarks((whole,), window_at(points, sign.start, len(sign))), rows

    def _points(self, video: Path, box: SignerBox | None) -> FloatArray:
        signer = self._landmarks(video, box)
        if not signer.track.points.any():
            raise VideoError(video, "nobody was found in it", "show the upper body, in good light")
        return in_picture_heights(signer.track.points, signer.aspect)

    def _landmarks(self, video: Path, box: SignerBox | None) -> SignerLandmarks:
        has_file = landmark_file_of(video) is not None
        if not has_file and not has_detector():
            fix = "pip install 'signspot[pose]', or put a .pose file beside each video"
            raise MissingExtra(video, "its landmarks need the optional extra 'pose'", fix)
        with replace(self.reading, store=None if has_file else self.reading.store).opened_store() as store:
            return landmarks_of(video, self.reading, box, store).signer


# Random changes of landmark clips in training: turned, stretched, faster or slower, mirrored, a hand lost.
#
# Moving and scaling the signer are not among them: the landmark encoder does not see these.


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkAugmentation:
    """How far the changes may go; the paper works from pixels, so all of these are ours."""

    mirror_probability: float = 0.5
    rotation_degrees: float = 10.0
    stretch_jitter: float = 0.1  # x is multiplied by U(1 - jitter, 1 + jitter)
    speed_jitter: float = 0.2
    hand_dropout: float = 0.1  # how likely each hand is lost for a part of the clip

    def __post_init__(self) -> None:
        shares = (self.mirror_probability, self.stretch_jitter, self.speed_jitter, self.hand_dropout)
        if not all(0 <= share <= 1 for share in shares) or not 0 <= self.rotation_degrees <= 180:
            raise ValueError(f"no change of landmarks can be drawn from {self}")

    def draw(self, rng: np.random.Generator) -> LandmarkChange:
        """Draw the change of one clip; always ten numbers of `rng`, whatever the settings."""
        mirror, turn, stretch, speed, *hands = rng.random(10).tolist()
        lost = tuple(
            (min(ends), max(ends)) if chance < self.hand_dropout else (0.0, 0.0)
            for chance, *ends in (hands[:3], hands[3:])
        )
        return LandmarkChange(
            mirror=mirror < self.mirror_probability,
            radians=math.radians(self.rotation_degrees) * (2 * turn - 1),
            stretch=1 + self.stretch_jitter * (2 * stretch - 1),
            speed=1 + self.speed_jitter * (2 * speed - 1),
            lost_hands=lost,
        )
