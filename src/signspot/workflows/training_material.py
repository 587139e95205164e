"""From a corpus, a dictionary and a trunk to the material that a head is trained on or tested with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import overload

import numpy as np

from signspot.domain.corpus import Annotation, Episode, Rights
from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.spans import TimeAxis
from signspot.domain.tracks import Embedder, EmbeddingTrack, FloatArray, WindowGrid
from signspot.domain.words import Synonyms
from signspot.errors import DictionaryError, FormatError, InputError, VideoError
from signspot.features.extract import EntryOptions, ExtractOptions, embed_entry, seen_box
from signspot.features.stages import filed_under, sees_landmarks, stage_vectors
from signspot.features.store import FeatureStore
from signspot.formats.bsldict_records import RECORDS_FILE, read_bsldict_records, sign_synonyms
from signspot.formats.manifests import CorpusSource, Problem, TimedAnnotation, placed, read_corpus, read_dictionary
from signspot.learning.material import Material, Track
from signspot.learning.material_checks import check_material
from signspot.learning.material_files import SynonymKind, read_material, refuse_material_folder, write_material
from signspot.learning.passages import Footage, LabelledPassage, PassageOptions, labelled_passages, passage_columns
from signspot.learning.permission import is_forbidden, told_of_unknown
from signspot.media.reader import media_sha256, shared_decoding
from signspot.models.zoo import load_model
from signspot.text.subtitles import SubtitleOptions, read_subtitles
from signspot.text.synonyms import english_synonyms, shared_sign_synonyms
from signspot.workflows.entry_vectors import STORED_KIND, EntrySource
from signspot.workflows.tracks import Progress, store_at, track_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialOptions:
    """Which part of a corpus is used, and how."""

    split: str = ""  # only the videos of this split; "": all
    passages: PassageOptions = PassageOptions()
    subtitles: SubtitleOptions = SubtitleOptions()
    seed: int = 0  # of the clips drawn from a dictionary video
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing
    today: date = field(default_factory=date.today)  # rights may have expired


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialSources:
    """What material is made of."""

    corpus: CorpusSource
    dictionary: Dictionary
    model: Embedder  # of two stages: vectors of its trunk are used
    store: FeatureStore | None = None  # where vectors of videos are kept


@dataclass(frozen=True, slots=True, eq=False)
class MadeMaterial:
    """Material, how many annotations were left out of it by reason, and what else should be known."""

    material: Material
    n_annotations: int
    left_out: tuple[tuple[str, int], ...]
    problems: tuple[Problem, ...]
    rights: tuple[Rights, ...] = ()  # of the videos and clips that are used

    def lines(self) -> tuple[str, ...]:
        """For people: what was made, and one line for everything left out."""
        columns = self.material.passages
        made = (
            f"{len(columns)} labelled passages of {len(self.material.tracks)} videos, {len(set(columns.label))} words"
        )
        entries = f"{len(self.material.entry_ids)} dictionary entries of {len(self.material.vocabulary)} words"
        return (
            f"{made}; {entries}",
            *(f"{count} of {self.n_annotations} annotations left out: {reason}" for reason, count in self.left_out),
            *_counted(self.problems),
            *told_of_unknown(self.rights),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialFiles:
    """Where everything is."""

    corpus: Path
    dictionary: Path
    out: Path  # the folder to write
    store: Path | None = None
    wordnet: Path | None = None  # WordNet's files, for English synonyms
    overwrite: bool = False


def load_trunk(name: str, *, backend: str = "auto", device: str = "cpu") -> Embedder:
    """The model whose trunk makes the vectors; landmarks of a corpus cannot be read yet."""
    model = load_model(name, backend=backend, device=device)
    if sees_landmarks(model):
        what = "sees landmarks, which cannot be read from a corpus yet"
        raise InputError(name, what, "choose a model that sees pictures, or write material from arrays (docs/guides)")
    return model


def write_training_material(
    files: MaterialFiles,
    model: Embedder,
    options: MaterialOptions = MaterialOptions(),
    progress: Progress | None = None,
) -> MadeMaterial:
    """Make material from files and write it as a folder, with the synonyms that are known."""
    stage_vectors(model, "trunk")
    refuse_material_folder(files.out, overwrite=files.overwrite)
    corpus, read = read_corpus(files.corpus), read_dictionary(files.dictionary)
    synonyms: dict[SynonymKind, Synonyms] = {"sign": dictionary_synonyms(read.dictionary)}
    if files.wordnet is not None:
        synonyms["english"] = english_synonyms(read.dictionary.vocabulary, files.wordnet)
    with store_at(files.store) as store:
        sources = MaterialSources(corpus=corpus, dictionary=read.dictionary, model=model, store=store)
        made = make_training_material(sources, options, progress)
        write_material(made.material, files.out, synonyms=synonyms, overwrite=files.overwrite)
    problems = (*corpus.problems, *read.problems, *made.problems)
    return replace(made, material=read_material(files.out, verify=False), problems=problems)


def dictionary_synonyms(dictionary: Dictionary) -> Synonyms:
    """Words that the dictionary calls similar or related, or files one sign under (Paper App. B.4)."""
    shared = shared_sign_synonyms(dictionary)
    if dictionary.folder is None or not (dictionary.folder / RECORDS_FILE).is_file():
        return shared
    return Synonyms(shared.pairs | sign_synonyms(read_bsldict_records(dictionary.folder).records).pairs)


def make_training_material(
    sources: MaterialSources, options: MaterialOptions = MaterialOptions(), progress: Progress | None = None
) -> MadeMaterial:
    """Labelled passages, the trunk vectors of their videos, and those of all dictionary entries."""
    made_by = stage_vectors(sources.model, "trunk")
    videos = _Videos(sources, options, progress)
    for episode in sources.corpus.episodes:
        videos.add(episode)
    if not any(videos.passages):
        why = "; ".join(f"{count}: {reason}" for reason, count in (+videos.left_out).items()) or "it has no annotations"
        raise InputError("the corpus", f"no labelled passage ({why})", "check annotations, subtitles and dictionary")
    with shared_decoding():
        entries, vectors = _entries(sources, options, videos.problems, progress)
    vocabulary = sources.dictionary.vocabulary
    material = Material(
        vocabulary=vocabulary,
        tracks=videos.tracks(),
        passages=passage_columns(videos.passages, vocabulary),
        entry_ids=tuple(entry.entry_id for entry in entries),
        entry_vectors=vectors,
        entry_word=np.array([vocabulary.id_of(entry.word) for entry in entries], np.int64),
        fingerprint=made_by.fingerprint,
    )
    check_material(material, "training material")
    n_annotations = sum(len(marks) for marks in videos.annotations.values())
    rights = (*videos.rights, *(entry.rights for entry in entries))
    return MadeMaterial(material, n_annotations, tuple((+videos.left_out).items()), tuple(videos.problems), rights)


class _Videos:
    """What the videos of a corpus give, as it comes together."""

    def __init__(self, sources: MaterialSources, options: MaterialOptions, progress: Progress | None) -> None:
        self._sources, self._options, self._progress = sources, options, progress
        self._vocabulary = sources.dictionary.vocabulary
        self._keys: list[tuple[str, str]] = []  # of the videos with passages: sha256, what their rows are filed under
        self._tracks: list[Track] = []  # their rows, where no store keeps them
        self.annotations: dict[str, list[TimedAnnotation]] = defaultdict(list)
        for annotation in sources.corpus.annotations:
            self.annotations[annotation.video_id].append(annotation)
        self.passages: list[tuple[LabelledPassage, ...]] = []
        self.rights: list[Rights] = []  # of the videos with passages
        self.left_out: Counter[str] = Counter()
        self.problems: list[Problem] = []

    def tracks(self) -> Sequence[Track]:
        """The rows of the videos that have passages."""
        store = self._sources.store
        if store is None:
            return tuple(self._tracks)
        return _StoredTracks(store, tuple(self._keys))

    def add(self, episode: Episode) -> None:
        """Use one video; whatever is wrong with it is its own trouble."""
        marks = self.annotations.get(episode.video_id, [])
        if reason := self._reason_against(episode):
            self.left_out[reason] += len(marks)
            return
        try:
            self._add(episode, marks)
        except InputError as error:
            self.left_out["its video or its subtitles cannot be used"] += len(marks)
            self.problems.append(Problem(error.where, error.what, error.fix))

    def _reason_against(self, episode: Episode) -> str:
        if self._options.split and episode.split != self._options.split:
            return f"its video is not in the split {self._options.split!r}"
        if is_forbidden(episode.rights, self._options.today):
            return "its video may not be used for training"
        return "its video has no subtitles" if episode.subtitles is None else ""

    def _add(self, episode: Episode, marks: list[TimedAnnotation]) -> None:
        known = [mark for mark in marks if mark.word in self._vocabulary]
        self.left_out["the dictionary has no entry for the word"] += len(marks) - len(known)
        if not known or episode.subtitles is None:
            return
        subtitles = read_subtitles(episode.subtitles, self._options.subtitles)
        self.problems += [Problem(str(subtitles.path), warning, is_remark=True) for warning in subtitles.warnings]
        asked = ExtractOptions(isolated=self._options.isolated, stage="trunk")
        made = track_of(episode, self._sources.model, store=self._sources.store, options=asked, progress=self._progress)
        if made.remarks.partial:
            self.problems.append(Problem(str(episode.video), made.remarks.partial, is_remark=True))
        annotations = self._placed(known, made.track.axis)
        footage = Footage(episode.video_id, made.track.axis, subtitles.subtitles, annotations)
        found = labelled_passages(footage, self._vocabulary, self._options.passages)
        self.left_out += found.left_out
        if found.passages:
            self.passages.append(found.passages)
            self.rights.append(episode.rights)
            self._keys.append((made.media_sha256, filed_under(made.track.fingerprint, made.box)))
            if self._sources.store is None:
                self._tracks.append(made.track.vectors)

    def _placed(self, marks: list[TimedAnnotation], axis: TimeAxis) -> list[Annotation]:
        annotations: list[Annotation] = []
        for mark in marks:
            try:
                annotations.append(placed(mark, axis))
            except FormatError:
                self.left_out["it lies after the end of its video"] += 1
        return annotations


class _StoredTracks(Sequence[Track]):
    """Tracks of a store, opened when they are used: a corpus has more videos than a process may have open files."""

    def __init__(self, store: FeatureStore, keys: tuple[tuple[str, str], ...]) -> None:
        self._store, self._keys = store, keys

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, number: int) -> Track: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Track]: ...
    def __getitem__(self, number: int | slice) -> Track | Sequence[Track]:
        if isinstance(number, slice):
            return _StoredTracks(self._store, self._keys[number])
        rows = self._store.open_rows(*self._keys[number])
        if rows is None:
            what = "the stored vectors of this video are gone or damaged"
            raise InputError(self._keys[number][0][:12], what, "run the same command again: they are computed anew")
        return rows


def _entries(
    sources: MaterialSources, options: MaterialOptions, problems: list[Problem], progress: Progress | None
) -> tuple[list[Entry], FloatArray]:
    """The entries that have a vector of the trunk, and the vectors: (n, trunk dim)."""
    source = EntrySource.of(sources.dictionary, sources.model, seed=options.seed, isolated=options.isolated)
    usable: list[Entry] = []
    vectors: list[FloatArray] = []
    for number, entry in enumerate(sources.dictionary):
        if progress is not None:
            progress("reading the dictionary", number, len(sources.dictionary))
        try:
            if is_forbidden(entry.rights, options.today):
                raise VideoError(entry.entry_id, "may not be used for training", "it is left out")
            vectors.append(_entry_vector(entry, source, sources.store))
            usable.append(entry)
        except InputError as error:
            problems.append(Problem(error.where, error.what, error.fix))
    if not usable:
        what = f"none of its {len(sources.dictionary)} entries can be used; the first problem: {problems[-1].what}"
        raise DictionaryError(sources.dictionary.name, what, "check its clips and their rights")
    problems += [Problem(remark, "", is_remark=True) for remark in source.remarks(sources.dictionary.by_word)]
    return usable, np.stack(vectors)


def _entry_vector(entry: Entry, source: EntrySource, store: FeatureStore | None) -> FloatArray:
    if entry.video is not None:
        return _clip_vector(entry, entry.video, source, store)
    stored = source.stored.vector(STORED_KIND, entry.entry_id) if source.stored is not None else None
    if stored is None:
        raise VideoError(entry.entry_id, "has neither a clip nor a stored vector", "add the clip or remove it")
    dim = stage_vectors(source.model, "trunk").dim
    if len(stored) != dim:
        what = f"its stored vector has {len(stored)} numbers, those of the model {source.model.name!r} have {dim}"
        raise VideoError(entry.entry_id, what, "use the model that made the stored vectors, such as bsldict")
    return stored


def _clip_vector(entry: Entry, video: Path, source: EntrySource, store: FeatureStore | None) -> FloatArray:
    """The vector of a clip, looked up by its content and kept; rounded as on the disk also without a store."""
    kept = f" {entry.kept.start}-{entry.kept.stop}" if entry.kept is not None else ""
    made_by = filed_under(stage_vectors(source.model, "trunk").fingerprint, seen_box(entry, source.model))
    drawn_by = f"{made_by} entry {source.seed}{kept}"
    sha256 = media_sha256(video)
    track = store.open_track(sha256, drawn_by) if store is not None else None
    if track is None:
        asked = EntryOptions(seed=source.seed, isolated=source.isolated, stage="trunk")
        row = embed_entry(entry, source.model, asked)[None].astype(np.float16)
        track = EmbeddingTrack(entry.entry_id, WindowGrid(1), TimeAxis(np.zeros(1)), row, drawn_by, unit_rows=False)
        if store is not None:
            with suppress(InputError):  # a store that may only be read
                store.put(sha256, track)
    vector: FloatArray = track.vectors[0].astype(np.float32)
    return vector


def _counted(problems: Iterable[Problem]) -> Iterator[str]:
    """One line for each kind of problem, however often it came."""
    by_kind: dict[tuple[str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        by_kind[problem.what, problem.fix].append(problem)
    for alike in by_kind.values():
        yield str(alike[0]) if len(alike) == 1 else f"{len(alike)} times such as {alike[0]}"
