"""The clips of a dictionary as every view of them that a search compares with: mirrored, or at other speeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, SignerBox
from signspot.domain.time import FRAME_RATE, Progress
from signspot.domain.tracks import (
    CLIP_LENGTH,
    Embedder,
    FloatArray,
    FrameShape,
    Ints,
    Pixels,
    SimilarityTrack,
    StagedEmbedder,
)
from signspot.domain.words import Word
from signspot.embedding.detector import detector_name
from signspot.embedding.model import (
    LEFT_OUT,
    LONGEST_SECONDS,
    RecordedSign,
    SignEmbedder,
    damage_of,
    faults_of,
    for_dictionary,
    refuse_landmark_file,
    sees_landmarks,
    store_at,
)
from signspot.embedding.pictures import EntrySource
from signspot.embedding.zoo import chosen_model, load_model
from signspot.errors import DictionaryError, MissingExtra, SignspotError, VideoError
from signspot.formats.pose import landmarks_beside
from signspot.media.frames import cut_square, random_clips, shape_frame, thumbnail
from signspot.media.reader import VideoReader
from signspot.media.trim import trim_by_motion
from signspot.media.video import media_sha256
from signspot.spotting.friends import Shelf
from signspot.stores.features import EntryKey, FeatureStore

if TYPE_CHECKING:
    from signspot.embedding.landmarks import LandmarkSigns


NO_RATES = "--rates changes nothing: a model of landmarks looks for signs of every usual speed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """How clips are read, and which views of them there are."""

    mirror: bool = False
    rates: tuple[float, ...] = ()
    seed: int = 0
    isolated: bool = True
    store: Path | None = None  # where landmarks of clips are kept


class EntryViews(Protocol):
    """Where the vectors of a dictionary's entries come from."""

    @property
    def n_views(self) -> int:
        """How many vectors each entry has."""

    def vectors(self, entry: Entry) -> FloatArray:
        """(n_views, d), as it is first; raises VideoError where the entry cannot be read."""

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""


def entry_views(dictionary: Dictionary, model: Embedder, options: ViewOptions = ViewOptions()) -> EntryViews:
    """The views that a model has of a dictionary, whether it sees pictures or landmarks."""
    if sees_landmarks(model):
        from signspot.embedding.landmarks import LandmarkSigns  # torch, which only networks need

        signs = LandmarkSigns(model, options.isolated, options.store)
        return LandmarkViews(signs, 2 if options.mirror else 1, (NO_RATES,) if options.rates else ())
    views = views_of(for_dictionary(model), mirror=options.mirror, rates=options.rates)
    seed, isolated = options.seed, options.isolated
    return PictureViews(tuple(EntrySource.of(dictionary, view, seed=seed, isolated=isolated) for view in views))


@dataclass(frozen=True, slots=True)
class PictureViews:
    """Views of a model that sees pictures."""

    sources: tuple[EntrySource, ...]

    @property
    def n_views(self) -> int:
        """How many vectors each entry has."""
        return len(self.sources)

    def vectors(self, entry: Entry) -> FloatArray:
        """(n_views, d), as it is first."""
        return np.stack([source.vector(entry) for source in self.sources])

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""
        return self.sources[0].remarks(words)


@dataclass(frozen=True, slots=True)
class LandmarkViews:
    """Views of a model that sees landmarks; it looks for every speed in the video instead."""

    signs: LandmarkSigns
    n_views: int
    said: tuple[str, ...] = ()

    def vectors(self, entry: Entry) -> FloatArray:
        """(n_views, d), as it is first."""
        return self.signs.entry_views(entry)[: self.n_views]

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What was asked for in vain."""
        del words
        return self.said


# All clips of a dictionary as vectors, computed once and kept: what a lookup and a comparison of dictionaries need.


_SAVED_EVERY = 20  # entries: a run that is stopped loses no more


@dataclass(frozen=True, slots=True)
class FilledShelf:
    """A dictionary as vectors, and what had to be left out."""

    shelf: Shelf
    warnings: tuple[str, ...] = ()


def shelf_of(
    dictionary: Dictionary,
    model: SignEmbedder,
    store: Path | None = None,
    progress: Progress | None = None,
) -> FilledShelf:
    """The vectors of all entries of a dictionary; those in `store` are read, the others are kept there.

    A clip is known by its content, that of the landmarks beside it, and the part that is shown.
    """
    usable: list[tuple[Entry, FloatArray]] = []
    with ExitStack() as stack:
        kept = _KeptVectors(dictionary, model, stack, store, progress)
        for number, entry in enumerate(dictionary):
            vector = kept.vector(entry)
            if vector is None:
                try:
                    vector = model.entry_vector(entry)
                except VideoError as error:
                    kept.warnings.append(f"{LEFT_OUT}{error}")
                    continue
                kept.add(entry, vector)
            usable.append((entry, vector))
            if progress is not None:
                progress(f"reading {dictionary.name}", number + 1, len(dictionary))
        kept.save()
    warnings = kept.warnings
    if not usable:
        raise DictionaryError(dictionary.name, "none of its clips can be read", warnings[0] if warnings else "")
    shelf = Shelf(tuple(entry for entry, _ in usable), np.stack([vector for _, vector in usable]))
    return FilledShelf(shelf, (*model.remarks(tuple(dictionary.by_word)), *warnings))


class _KeptVectors:
    """The vectors of a dictionary's clips in a store; where nothing can be kept, that is said, and only costs time."""

    def __init__(
        self,
        dictionary: Dictionary,
        model: SignEmbedder,
        stack: ExitStack,
        folder: Path | None,
        progress: Progress | None,
    ) -> None:
        self.warnings: list[str] = []
        self._model = model
        self._store: FeatureStore | None = None
        self._keys: dict[Entry, EntryKey] = {}
        self._known: dict[EntryKey, FloatArray] = {}
        self._fresh: dict[EntryKey, FloatArray] = {}
        try:
            self._store = stack.enter_context(store_at(folder))
            if self._store is not None:
                self._keys = _keys(dictionary, model, self._store, progress)
                self._known = self._store.entry_vectors(self._keys.values(), model.fingerprint)
        except SignspotError as problem:
            self._give_up(problem)

    def vector(self, entry: Entry) -> FloatArray | None:
        key = self._keys.get(entry)
        return None if key is None else self._known.get(key)

    def add(self, entry: Entry, vector: FloatArray) -> None:
        key = self._keys.get(entry)
        if key is not None:
            self._known[key] = self._fresh[key] = vector
        if len(self._fresh) >= _SAVED_EVERY:
            self.save()

    def save(self) -> None:
        try:
            if self._store is not None and self._fresh:
                self._store.put_entry_vectors(self._fresh, self._model.fingerprint, model=self._model.name)
        except SignspotError as problem:
            self._give_up(problem)
        self._fresh = {}

    def _give_up(self, problem: SignspotError) -> None:
        self._store = None
        self.warnings.append(f"vectors of the dictionary are not kept: {problem}")


def _keys(
    dictionary: Dictionary, model: SignEmbedder, store: FeatureStore, progress: Progress | None
) -> dict[Entry, EntryKey]:
    """What the vectors of entries depend on beside the model; entries that cannot be read have no key."""
    videos = {entry.video: landmarks_beside(entry.video) for entry in dictionary if entry.video is not None}
    files = list(dict.fromkeys(path for pair in videos.items() for path in pair if path is not None))
    hashed = store.sha256s(files, _with_progress(progress, dictionary, len(files)))
    found_by = _detector_of(model)
    keys: dict[Entry, EntryKey] = {}
    for entry in dictionary:
        beside = None if entry.video is None else videos[entry.video]
        if entry.video not in hashed or (beside is not None and beside not in hashed):
            continue
        frames = "" if entry.kept is None else f"frames {entry.kept.start}-{entry.kept.stop}"
        box = "" if entry.box is None else f"box {entry.box}"
        part = " ".join(filter(None, (frames, box, "" if beside is not None else found_by)))
        landmarks = "" if beside is None else hashed[beside]
        keys[entry] = EntryKey(hashed[entry.video], landmarks, part, entry.video.name)
    return keys


def _with_progress(progress: Progress | None, dictionary: Dictionary, total: int) -> Callable[[Path], str]:
    n_hashed = 0

    def digest(path: Path) -> str:
        nonlocal n_hashed
        n_hashed += 1
        if progress is not None:
            progress(f"looking for changes in {dictionary.name}", n_hashed, total)
        return media_sha256(path)

    return digest


def _detector_of(model: SignEmbedder) -> str:
    """What finds the landmarks of clips that have none beside them; nothing if the model does not look at any."""
    with suppress(MissingExtra):
        return detector_name() if sees_landmarks(getattr(model, "model", None)) else ""
    return ""


# Single signs as vectors: clips of a dictionary, and recordings that somebody asks about.
#
# A model sees pictures or landmarks. One sign is trimmed to what moves, and embedded as a dictionary clip is. A
# recording is embedded twice, as it is and mirrored: a left-handed signer signs the mirror image. Nothing of a
# recording is kept.


@dataclass(frozen=True, slots=True, kw_only=True)
class SignModel:
    """Which model, and how it reads."""

    name: str = ""  # a name, or the path of a .safetensors file; "": what can see the clips best
    backend: str = "auto"
    device: str = "cpu"
    seed: int = 0
    isolated: bool = True


def sign_embedder(wanted: SignModel, dictionary: Dictionary, store: Path | None = None) -> PictureSigns | LandmarkSigns:
    """The model of a name, of either kind, for the signs of a dictionary; `store` keeps landmarks of its clips."""
    name = chosen_model(wanted.name, (entry.video for entry in dictionary)).name
    model = load_model(name, backend=wanted.backend, device=wanted.device)
    return signs_of(model, dictionary, SignReading(seed=wanted.seed, isolated=wanted.isolated, store=store))


@dataclass(frozen=True, slots=True, kw_only=True)
class SignReading:
    """How clips are read."""

    seed: int = 0
    isolated: bool = True
    store: Path | None = None  # where landmarks of dictionary clips are kept


def signs_of(model: Embedder, dictionary: Dictionary, how: SignReading = SignReading()) -> PictureSigns | LandmarkSigns:
    """Signs as a model of either kind sees them."""
    if sees_landmarks(model):
        from signspot.embedding.landmarks import LandmarkSigns  # torch, which only networks need

        return LandmarkSigns(model, how.isolated, how.store)
    return PictureSigns(model, EntrySource.of(dictionary, model, seed=how.seed, isolated=how.isolated))


@dataclass(frozen=True, slots=True)
class PictureSigns:
    """Signs as a model of pictures sees them."""

    model: Embedder
    source: EntrySource

    @property
    def name(self) -> str:
        """What people call the model."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        seed = self.source.seed  # of the moments at which clips are taken
        return f"{self.model.fingerprint} seed {seed}" if seed else self.model.fingerprint

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.model.dim

    @property
    def threshold(self) -> float:
        """The lowest cosine that counts as alike."""
        return self.model.threshold

    def entry_vector(self, entry: Entry) -> FloatArray:
        """The vector (d,) of a dictionary entry."""
        return self.source.vector(entry)

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""
        return self.source.remarks(words)

    def recorded(self, path: Path, box: SignerBox | None = None) -> RecordedSign:
        """Read a recording once: trimmed by what moves, brought to the model's size."""
        refuse_landmark_file(path, self.model)
        watched = _Watched(path, self.model, box)
        with VideoReader(path, isolated=self.source.isolated) as reader:
            trim = trim_by_motion(watched.frames(reader))
        faults, doubts = faults_of(trim, path), damage_of(path, reader.report.partial, reader.report.warnings)
        if faults:
            return RecordedSign(np.zeros((0, self.dim), np.float32), trim, tuple(watched.pictures), faults)
        kept = slice(trim.kept.start, trim.kept.stop)
        shown = np.stack(watched.shaped[kept])
        clips = shown[random_clips(len(shown), np.random.default_rng(self.source.seed))]
        vectors = np.stack([_one_vector(view, self.model) for view in (clips, clips[:, :, :, ::-1])])
        return RecordedSign(vectors, trim, tuple(watched.pictures[kept]), doubts=doubts)


@dataclass(slots=True)
class _Watched:
    """What is remembered of the frames that pass by: their large pictures are let go."""

    path: Path
    model: Embedder
    box: SignerBox | None
    shaped: list[Pixels] = field(default_factory=list)
    pictures: list[Pixels] = field(default_factory=list)

    def frames(self, reader: VideoReader) -> Iterator[Pixels]:
        most = LONGEST_SECONDS * FRAME_RATE
        for frame in islice(reader, most + 1):
            if len(self.shaped) == most:
                what = f"is longer than {LONGEST_SECONDS} s"
                raise VideoError(self.path, what, "record one sign; `signspot spot` searches long videos")
            pixels = frame.pixels if self.box is None else cut_square(frame.pixels, self.box)
            self.shaped.append(shape_frame(pixels, self.model.frame_shape))
            self.pictures.append(thumbnail(pixels))
            yield pixels


def _one_vector(clips: Pixels, model: Embedder) -> FloatArray:
    """Clips (n, 16, H, W, 3) of one sign -> (d,), as a dictionary clip is embedded."""
    embedder = for_dictionary(model)
    clips = np.ascontiguousarray(clips)
    if isinstance(embedder, StagedEmbedder):
        mean = embedder.trunk_vectors(clips).mean(axis=0, dtype=np.float64).astype(np.float32)
        staged: FloatArray = embedder.head_vectors(mean[None])[0]
        return staged
    vector: FloatArray = embedder.embed(clips).mean(axis=0, dtype=np.float64).astype(np.float32)
    return vector


# Other views of a query: mirrored, for signers of the other hand, and at other speeds.
#
# A view is the model itself behind glasses: what it is shown is mirrored or resampled in time first. A query is
# embedded once with each view, and whichever resembles a window most counts.


Clips = Pixels | FloatArray


def frames_at_rate(rate: float, length: int = CLIP_LENGTH) -> Ints:
    """Which frames of a clip show it `rate` times as fast around its middle, its ends held still: (length,).

    >>> frames_at_rate(2.0, 8).tolist(), frames_at_rate(0.5, 8).tolist()
    ([0, 0, 0, 2, 4, 6, 7, 7], [2, 2, 3, 3, 4, 4, 5, 5])
    """
    if not 0.25 <= rate <= 4:
        raise ValueError(f"a sign shown {rate} times as fast is no longer that sign: use 0.25 to 4")
    middle = (length - 1) / 2
    places = np.floor(middle + (np.arange(length) - middle) * rate + 0.5 - 1e-9)
    frames: Ints = np.clip(places, 0, length - 1).astype(np.int64)
    return frames


class View:
    """A model that sees its clips mirrored or at another speed."""

    def __init__(self, model: Embedder, *, is_mirrored: bool, rate: float) -> None:
        self._model, self._is_mirrored, self._frames = model, is_mirrored, frames_at_rate(rate)

    @property
    def name(self) -> str:
        """That of the model."""
        return self._model.name

    @property
    def fingerprint(self) -> str:
        """That of the model: its vectors are compared with those of the model."""
        return self._model.fingerprint

    @property
    def dim(self) -> int:
        """That of the model."""
        return self._model.dim

    @property
    def frame_shape(self) -> FrameShape:
        """That of the model."""
        return self._model.frame_shape

    @property
    def threshold(self) -> float:
        """That of the model."""
        return self._model.threshold

    def embed(self, clips: Clips) -> FloatArray:
        """(n, 16, H, W, 3) -> (n, dim) of the changed clips."""
        return self._model.embed(self.seen(clips))

    def seen(self, clips: Clips) -> Clips:
        """(n, 16, H, W, 3): the clips through the glasses."""
        shown: Clips = clips[:, self._frames]
        # A view of the pixels backwards is not what every backend takes.
        mirrored: Clips = shown[:, :, :, ::-1].copy()
        return mirrored if self._is_mirrored else shown


class StagedView(View):
    """The same for a model with a trunk and a head."""

    def __init__(self, model: StagedEmbedder, *, is_mirrored: bool, rate: float) -> None:
        super().__init__(model, is_mirrored=is_mirrored, rate=rate)
        self._staged = model

    @property
    def trunk_dim(self) -> int:
        """That of the model."""
        return self._staged.trunk_dim

    def trunk_vectors(self, clips: Clips) -> FloatArray:
        """(n, 16, H, W, 3) -> (n, trunk dim) of the changed clips."""
        return self._staged.trunk_vectors(self.seen(clips))

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        """As the model does."""
        return self._staged.head_vectors(vectors)


def views_of(model: Embedder, *, mirror: bool, rates: tuple[float, ...]) -> tuple[Embedder, ...]:
    """The model as it is, then one view for every other pair of speed and side."""
    sides = (False, True) if mirror else (False,)
    others = [(side, rate) for side in sides for rate in dict.fromkeys((1.0, *rates)) if side or rate != 1]
    made: list[Embedder] = [model]
    for side, rate in others:
        if isinstance(model, StagedEmbedder):
            made.append(StagedView(model, is_mirrored=side, rate=rate))
        else:
            made.append(View(model, is_mirrored=side, rate=rate))
    return tuple(made)


def best_view(similarity: SimilarityTrack, n_views: int) -> SimilarityTrack:
    """Of entries that stand in `n_views` columns each, one behind the other, the column of the highest cosine."""
    if n_views == 1:
        return similarity
    n_entries = len(similarity.entries) // n_views
    cosine = similarity.cosine.reshape(len(similarity.grid), n_entries, n_views).max(axis=2)
    return dataclasses.replace(similarity, entries=similarity.entries[::n_views], cosine=cosine)
