"""The one seam between recordings and vectors: what every model can do, and how recordings are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from signspot.domain.recordings import Entry, Episode, SignerBox, Word
from signspot.domain.results import Provenance
from signspot.domain.time import FRAME_RATE, Progress, silent
from signspot.domain.tracks import EmbeddingTrack, FloatArray, Pixels
from signspot.errors import InputError, Notice, Notify, VideoError, unheard
from signspot.formats.pose import POSE_SUFFIX
from signspot.media.trim import NO_WRISTS, NOTHING_MOVES, Trim
from signspot.stores.features import FeatureStore, Remarks, open_store

LANDMARK_MODEL = "landmark-v1"  # shipped, trained on real signing: the default
COLOUR_MODEL = "colour"
LONGEST_SECONDS = 20  # of a recording of one sign
FEWEST_FRAMES = 8  # a third of a second: the shortest signs take as long
NO_MOTION = "nothing moves in it: record a sign, in good light, with the camera held still"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How recordings are read: made once for a command, passed whole."""

    store: Path | None = None  # the folder that keeps vectors; None: they are not kept
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing
    box: SignerBox | None = None  # the part of the video to look at; None: where its corpus says the signer is
    stride: int = 1  # frames between two windows (Paper 3.2, "Test time")
    seed: int = 0  # of the clips drawn from dictionary videos
    progress: Progress = silent
    notify: Notify = unheard  # called at once with what should be known about the request as a whole

    def __post_init__(self) -> None:
        if self.stride < 1:
            raise InputError("stride", f"{self.stride} is out of range", "use 1 or more frames")

    def opened_store(self) -> FeatureStore | nullcontext[None]:
        return nullcontext() if self.store is None else open_store(self.store)

    def quiet(self) -> Reading:
        """The same for another process, which cannot call this one."""
        return replace(self, progress=silent, notify=unheard)

    def collecting(self) -> tuple[Reading, list[Notice]]:
        """The same, and a list of what it will be notified of."""
        said: list[Notice] = []

        def notify(notice: Notice) -> None:
            said.append(notice)
            self.notify(notice)

        return replace(self, notify=notify), said


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Transforms of a dictionary clip that a search compares with besides the clip itself."""

    mirror: bool = False  # for signers of the other hand
    rates: tuple[float, ...] = ()  # the clip this many times as fast

    def __post_init__(self) -> None:
        if any(not 0.25 <= rate <= 4 for rate in self.rates):
            given = ", ".join(f"{rate:g}" for rate in self.rates)
            raise InputError("rates", f"{given}: out of range", "give speeds from 0.25 to 4")

    def __len__(self) -> int:
        return (1 + self.mirror) * len({1.0, *self.rates})


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """The vectors of a video, what was noticed while reading it, and where the vectors are kept."""

    track: EmbeddingTrack
    media_sha256: str
    remarks: Remarks
    kept_as: str  # the fingerprint that the store files the rows under
    was_stored: bool = False
    box: SignerBox | None = None  # the part of the pictures that was looked at; None: all

    def provenance(self, model: str, dictionary: str) -> Provenance:
        fingerprint = filed_under(self.track.fingerprint, self.box)
        return Provenance(media_sha256=self.media_sha256, model=model, fingerprint=fingerprint, dictionary=dictionary)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSign:
    """A recording of one sign, ready to be looked up."""

    vectors: FloatArray  # (2, d): as recorded, and mirrored; (0, d) where there is a fault
    trim: Trim
    pictures: tuple[Pixels, ...] = ()  # (96, W, 3) uint8, of the part that moves
    faults: tuple[str, ...] = ()  # why nothing can be found by it
    doubts: tuple[str, ...] = ()  # why what is found may be wrong


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """The signs that a model knows by itself, as entries of a dictionary that has no clips."""

    entries: tuple[Entry, ...]  # one for each form of a word's sign
    prototypes: FloatArray  # (n_entries, d) unit rows: to find the signs in videos, beside clips or instead of them
    directions: FloatArray  # (n_entries, d) unit rows: to tell which of these words a recording of one sign shows

    @classmethod
    def of(
        cls, model: str, words: Sequence[Word], language: str, prototypes: FloatArray, directions: FloatArray
    ) -> Lexicon:
        """Words by their rows: one that has several rows has as many variants, numbered from 1."""
        n_rows, seen, entries = Counter(words), Counter[Word](), []
        for word in words:
            seen[word] += 1
            variant = str(seen[word]) if n_rows[word] > 1 else ""
            name = f"{model}: {word} {variant}".rstrip()
            entries.append(Entry(entry_id=name, word=word, variant=variant, language=language))
        return cls(tuple(entries), prototypes, directions)

    @classmethod
    def empty(cls, dim: int) -> Lexicon:
        nothing = np.zeros((0, dim), np.float32)
        return cls((), nothing, nothing)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def n_words(self) -> int:
        return len({entry.word for entry in self.entries})

    @property
    def language(self) -> str:
        return self.entries[0].language if self.entries else ""


class Embeds(Protocol):
    """Turns videos and dictionary clips into vectors: a model, or its trunk alone."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would: weights, preprocessing, precision."""

    @property
    def dim(self) -> int: ...
    def track(self, episode: Episode, reading: Reading) -> VideoTrack:
        """The vectors of all windows of a video: from the store, or computed and kept.

        They are rounded as on the disk even the first time and without a store, so that answers never differ.
        """

    def entry(self, entry: Entry, reading: Reading, views: Views = Views()) -> FloatArray:
        """(n_views, d) of a dictionary clip, the plain view first; raises VideoError if the clip is unusable."""

    def entries_name(self, reading: Reading, views: Views = Views()) -> str:
        """The fingerprint that vectors of dictionary clips are kept under."""


class Model(Embeds, Protocol):
    """Whatever turns recordings into comparable vectors: rows of length 1 (f of Paper 3.1)."""

    @property
    def threshold(self) -> float:
        """The lowest cosine that counts as found unless the user says otherwise."""

    @property
    def backend(self) -> str:
        """Where it runs and how precisely, such as openvino-fp32."""

    @property
    def words(self) -> tuple[Word, ...]:
        """The words it can name without a dictionary; one of several forms is named as often."""

    @property
    def word_vectors(self) -> FloatArray:
        """(n_words, d) unit rows: the directions of `words`."""

    @property
    def lexicon(self) -> Lexicon:
        """The same words as entries, which `entry` knows the vectors of."""

    @property
    def towards_mean(self) -> float:
        """How many times the mean of a variant's clips is added to each of them in a search; 0: they stay."""

    def track(self, episode: Episode, reading: Reading, near: FloatArray | None = None) -> VideoTrack:
        """As in `Embeds`; with `near` (n, d), it may look closely only where one of these queries may be signed."""

    def recording(self, clip: Path, reading: Reading) -> RecordedSign:
        """The vectors of a recording of one sign, which are never kept; raises VideoError if it cannot be read."""

    def without_still_ends(self, entry: Entry, reading: Reading) -> Entry:
        """A clip that nobody trimmed, cut to the sign if the model needs that."""

    def trunk(self) -> Embeds | None:
        """Its first stage, whose vectors a head is trained on; None: it has none."""


def trunk_of(model: Model) -> Embeds:
    trunk = model.trunk()
    if trunk is None:
        raise InputError(model.name, "has no trunk whose vectors could be used", "name a model that is a network")
    return trunk


def filed_under(fingerprint: str, box: SignerBox | None) -> str:
    """The fingerprint of vectors of one part of the picture: never mistaken for another part, or the whole."""
    return fingerprint if box is None else f"{fingerprint} box {box}"


def refuse_landmark_file(path: Path, name: str) -> None:
    if path.suffix.lower() == POSE_SUFFIX:
        what = f"holds landmarks and no pictures, which the model {name!r} needs"
        raise VideoError(path, what, f"give the video, or use --model {LANDMARK_MODEL}")


def faults_of(trim: Trim, path: Path) -> tuple[str, ...]:
    """Why a recording shows no sign: too short, or nothing moves."""
    if trim.n_frames < FEWEST_FRAMES:
        return (f"{path.name} {too_short(trim.n_frames)}: record the whole sign",)
    return (NO_MOTION,) if trim.remark in (NOTHING_MOVES, NO_WRISTS) else ()


def damage_of(path: Path, remarks: Remarks) -> tuple[str, ...]:
    """What was noticed while a recording was read, as doubts about what is found by it."""
    return tuple(f"{path.name}: {said}" for said in (remarks.partial, *remarks.warnings) if said)


def too_short(n_frames: int) -> str:
    return f"is too short ({n_frames} frame{'s' * (n_frames != 1)}, {n_frames / FRAME_RATE:.1f} s)"
