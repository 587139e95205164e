"""Train the head on material made before, and compare runs."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import overload

import numpy as np

from signspot.domain.recordings import Annotation, Dictionary, Entry, Episode, Rights
from signspot.domain.time import Progress, TimeAxis
from signspot.domain.tracks import Embedder, EmbeddingTrack, FloatArray, Vectors, WindowGrid
from signspot.domain.words import Synonyms, Vocabulary, Word, normalise
from signspot.embedding.model import filed_under, sees_landmarks, stage_vectors, store_at, trunk_fingerprint
from signspot.embedding.pictures import (
    STORED_KIND,
    EntryOptions,
    EntrySource,
    ExtractOptions,
    embed_entry,
    seen_box,
    track_of,
)
from signspot.embedding.zoo import load_model
from signspot.errors import DictionaryError, EnvironmentProblem, FormatError, InputError, VideoError
from signspot.files.atomic import refuse_existing
from signspot.files.intake import Problem
from signspot.formats.bsldict import RECORDS_FILE, read_bsldict_records, sign_synonyms
from signspot.interrupts import at_interruption, undisturbed
from signspot.learning.clips import (
    CacheProgress,
    FoundClips,
    FrameCache,
    FrameSource,
    LandmarkFrames,
    annotated_clips,
    dictionary_clips,
)
from signspot.learning.config import EmbeddingConfig, TrunkRunConfig, read_config, read_table
from signspot.learning.head import Controls, ModelFile, TrainingData, make_setup, train_head
from signspot.learning.material import (
    Footage,
    LabelledPassage,
    Material,
    PassageOptions,
    SynonymKind,
    WordSplit,
    check_material,
    draw_split,
    file_sha256,
    is_forbidden,
    label_counts,
    labelled_passages,
    passage_columns,
    read_material,
    read_split,
    read_synonyms,
    refuse_material_folder,
    refuse_missing,
    unknown_rights_warning,
    write_material,
    write_split,
)
from signspot.learning.runs import FINISHED_BEFORE, RunFolder, Start, join_team, own_device, results_of
from signspot.learning.trunk import ClipTest, TrunkControls, TrunkData, train_trunk
from signspot.media.reader import shared_decoding
from signspot.media.video import media_sha256
from signspot.models.checkpoints import Checkpoint, load_checkpoint
from signspot.models.embedders import embedder_from_checkpoint, landmark_embedder_from_checkpoint
from signspot.stores.corpus import CorpusSource, TimedAnnotation, placed, read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.stores.features import FeatureStore
from signspot.text.subtitles import SubtitleOptions, read_subtitles
from signspot.text.synonyms import english_synonyms, shared_sign_synonyms
from signspot.workflows.spot import read_words

Cell = str | int | float | bool | None
_MANIFEST = "material.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRun:
    """What the user asked to be trained."""

    config: Path
    data: Path  # a folder of training material
    out: Path  # the run folder
    test: Path | None = None  # a folder of test material
    trunk: Path | None = None  # the model that made the vectors: with it the result can embed video
    changes: tuple[str, ...] = ()  # key=value, over the config
    start: Start = "new"


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """What a run left."""

    folder: RunFolder
    results: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One option or result in all runs compared; None where a run lacks it."""

    name: str
    values: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side."""

    runs: tuple[str, ...]
    options: tuple[ComparedRow, ...]  # only those that differ
    results: tuple[ComparedRow, ...]


def train_embedding(
    request: EmbeddingRun, controls: Controls = Controls(), tell: Callable[[str], None] = lambda line: None
) -> TrainedRun:
    """Train as asked; processes that torchrun started work as one. `tell` gets what is known before the first step."""
    config = read_config(request.config, EmbeddingConfig, request.changes)
    run = RunFolder(request.out)
    facts = data_facts(request, config)
    run.check(config, facts, request.start)
    setup = make_setup(config, _data_of(request, config))
    with join_team(os.environ, config.device) as team:
        team.wait()  # everyone has checked the folder before the leader changes it
        with run.opened(config, facts, request.start) if team.is_leader else nullcontext():
            team.wait()
            if team.is_leader:
                for line in (FINISHED_BEFORE,) if run.results.exists() else setup.report:
                    tell(line)
            # A team stops after a step that all have done; alone, a run stops where it stands.
            own = replace(controls, team=team, device=own_device(config.device, os.environ))
            with (
                at_interruption(lambda: run.to_continue(request.start)),
                undisturbed() if team.size > 1 else nullcontext(),
            ):
                train_head(config, setup, run, own)
            team.wait()
    return TrainedRun(run, results_of(run) or {})


def data_facts(request: EmbeddingRun, config: EmbeddingConfig) -> dict[str, str]:
    """The checksums of all that is learned from; the manifest of a material holds those of its files."""
    for folder in (request.data, request.test):
        if folder is not None:
            refuse_missing(folder)
    files = {
        "train": request.data / _MANIFEST,
        "test": request.test / _MANIFEST if request.test is not None else None,
        "trunk": request.trunk,
        "split": config.split,
    }
    return {name: file_sha256(path) for name, path in files.items() if path is not None}


def compare_runs(folders: tuple[Path, ...]) -> Comparison:
    """The options in which runs differ, and what came out of each."""
    runs = [RunFolder(folder) for folder in folders]
    for run in runs:
        if not run.config.is_file():
            raise InputError(run.path, "is no run folder: it has no config.toml", "name folders of `signspot train`")
    options = _rows([_flat(read_table(run.config)) for run in runs])
    results = _rows([_flat(results_of(run) or {"state": "not finished"}) for run in runs])
    differing = tuple(row for row in options if len(set(map(repr, row.values))) > 1)
    return Comparison(tuple(map(str, folders)), differing, results)


def _data_of(request: EmbeddingRun, config: EmbeddingConfig) -> TrainingData:
    train = read_material(request.data)
    return TrainingData(
        train=train,
        test=read_material(request.test) if request.test is not None else None,
        split=read_split(config.split) if config.split is not None else None,
        synonyms=read_synonyms(request.data, config.synonyms) if config.synonyms != "keep" else None,
        model_file=_model_file(request, config, train),
    )


def _model_file(request: EmbeddingRun, config: EmbeddingConfig, train: Material) -> ModelFile:
    run, made_by = request.out.absolute().name, f"signspot train embedding, run {request.out.absolute().name}"
    words = tuple(train.vocabulary) if config.loss == "classification" else ()
    if request.trunk is None:
        return ModelFile(name=run, created_from=f"{made_by}; trunk {train.fingerprint[:12]}", words=words)
    checkpoint = load_checkpoint(request.trunk)
    if train.fingerprint not in trunk_fingerprints(checkpoint):
        what = "is not the trunk that made the vectors of the training material"
        raise InputError(request.trunk, what, "name the model the material was made with")
    return ModelFile(name=run, trunk=checkpoint, created_from=f"{made_by}; trunk {checkpoint.card.name}", words=words)


def trunk_fingerprints(checkpoint: Checkpoint) -> Iterator[str]:
    """What vectors of a trunk may be filed under: those of another backend differ in their last digits."""
    if checkpoint.card.architecture.startswith("landmark"):
        yield trunk_fingerprint(landmark_embedder_from_checkpoint(checkpoint))
        return
    for backend in ("auto", "torch", "openvino-bf16"):
        with suppress(EnvironmentProblem):  # a backend that is not installed made none of them here
            yield trunk_fingerprint(embedder_from_checkpoint(checkpoint, backend=backend))


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, Cell]:
    """Nested tables as one, with dotted names; lists as text."""
    flat: dict[str, Cell] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value if isinstance(value, str | int | float | bool | None) else str(value)
    return flat


def _rows(tables: list[dict[str, Cell]]) -> tuple[ComparedRow, ...]:
    names = dict.fromkeys(name for table in tables for name in table)  # each once, in order
    return tuple(ComparedRow(name, tuple(table.get(name) for table in tables)) for name in names)


# Draw which words are trained and which are tested (Paper 4.1).


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRequest:
    """Where the words come from (one of corpus, data and words), and how many to set aside."""

    out: Path
    n_test: int
    seed: int = 0
    corpus: Path | None = None
    data: Path | None = None  # a folder of material
    words: Path | None = None  # a text with a word a line
    dictionary: Path | None = None  # only words with an entry
    min_confidence: float = 0.5  # of annotations that count
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class DrawnSplit:
    """A split that was written, and how often its words are labelled."""

    split: WordSplit
    counted: str  # what was counted: annotations, passages or words
    counts: Mapping[Word, int]
    not_in_dictionary: int  # words
    untested: int | None  # test words without a label in test videos; None: no video is set aside for the test

    def labels(self, words: Iterable[Word]) -> int:
        """How often these words are labelled."""
        return sum(self.counts[word] for word in words)

    def lines(self) -> Iterator[str]:
        """What to tell the user."""
        for name, words in (("training", self.split.train), ("test", self.split.test)):
            labels = "" if self.counted == "words" else f": {self.labels(words):,} {self.counted}"
            yield f"{len(words):,} {name} words{labels}"
        if self.not_in_dictionary:
            yield f"{self.not_in_dictionary:,} words left out: the dictionary has no entry for them"
        if self.untested:
            yield f"{self.untested:,} test words cannot be tested: no video of the split 'test' has them"


def draw_words(request: SplitRequest) -> DrawnSplit:
    """Draw test words of all frequencies and write the split."""
    if sum(given is not None for given in (request.corpus, request.data, request.words)) != 1:
        raise InputError("train split", "needs words to draw from", "give one of --corpus, --data and --words")
    refuse_existing(request.out, overwrite=request.overwrite)
    tested: Counter[Word] | None = None
    if request.words is not None:
        counted, counts = "words", Counter(dict.fromkeys(_listed_words(request.words), 1))
    elif request.data is not None:
        counted, counts = "passages", Counter(label_counts(read_material(request.data), request.min_confidence))
    else:
        counted, (counts, tested) = "annotations", _annotated_words(request)
    known = None if request.dictionary is None else set(read_dictionary(request.dictionary).dictionary.by_word)
    kept = {word: count for word, count in counts.items() if known is None or word in known}
    split = draw_split(kept, request.n_test, request.seed)
    write_split(split, request.out, overwrite=request.overwrite)
    untested = None if tested is None else sum(word not in tested for word in split.test)
    return DrawnSplit(split, counted, kept, len(counts) - len(kept), untested)


def _listed_words(path: Path) -> Iterator[Word]:
    for text in read_words(path):
        try:
            yield normalise(text)
        except ValueError as error:
            raise InputError(path, f"{text!r} is no word", "correct or remove the line") from error


def _annotated_words(request: SplitRequest) -> tuple[Counter[Word], Counter[Word] | None]:
    """How often each word is annotated, in all videos and in those of the test, if there are any."""
    source = read_corpus(request.corpus or Path())
    of_test = {episode.video_id for episode in source.episodes if episode.split == _TEST}
    sure = [mark for mark in source.annotations if mark.confidence >= request.min_confidence]
    tested = Counter(mark.word for mark in sure if mark.video_id in of_test)
    return Counter(mark.word for mark in sure), tested if of_test else None


# Train the trunk on annotated episodes and a dictionary.


_TEST = "test"  # the split of episodes that are never trained on


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkRun:
    """What the user asked to be trained."""

    config: Path
    out: Path  # the run folder
    corpus: Path | None = None
    dictionary: Path | None = None
    split: Path | None = None  # only the training words of this file
    cache: Path | None = None  # of decoded frames or detected landmarks; None: beside the run folder
    changes: tuple[str, ...] = ()  # key=value, over the config
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing
    start: Start = "new"


@dataclass(frozen=True, slots=True)
class _Listed:
    """Everything there is to learn from, before a frame is decoded."""

    episodes: tuple[Episode, ...]  # with annotations on frames
    entries: tuple[Entry, ...]
    vocabulary: Vocabulary
    left_out: Counter[str]  # annotations that cannot be used, by reason


def train_trunk_on(
    request: TrunkRun,
    controls: TrunkControls = TrunkControls(),
    tell: Callable[[str], None] = lambda line: None,
    progress: Progress = lambda step, done, total: None,
) -> TrainedRun:
    """Train as asked; `tell` gets what is known before the first step."""
    config = read_config(request.config, TrunkRunConfig, request.changes)
    run = RunFolder(request.out)
    if request.start == "new":
        run.check(config, {}, request.start)  # before hours of decoding
    folder = request.cache or request.out.absolute().with_name(f"{request.out.absolute().name}-frames")
    frames: FrameSource = FrameCache(folder, config.frame_shape, request.isolated)
    if config.architecture == "landmark":
        frames = LandmarkFrames(folder, request.isolated)
    with at_interruption(lambda: "nothing is learned yet" + f"; what is decoded stays in {folder}" * folder.is_dir()):
        listed = _listed(request, config, frames, progress)
        found = _decoded(config, listed, frames, progress)
    for line in _lines(listed, found):
        tell(line)
    data = _trunk_data(request, listed, found)
    with run.opened(config, data.fingerprints(), request.start):
        if run.results.exists():
            tell(FINISHED_BEFORE)
        else:
            with at_interruption(lambda: run.to_continue(request.start)):
                train_trunk(config, data, run, controls)
    return TrainedRun(run, results_of(run) or {})


def _listed(request: TrunkRun, config: TrunkRunConfig, frames: FrameSource, progress: Progress) -> _Listed:
    if config.sources != "dictionary" and request.corpus is None:
        raise InputError(f"sources = {config.sources}", "needs annotated episodes", "add --corpus DIR")
    if config.sources != "continuous" and request.dictionary is None:
        raise InputError(f"sources = {config.sources}", "needs dictionary clips", "add --dictionary DIR")
    left_out: Counter[str] = Counter()
    episodes: tuple[Episode, ...] = ()
    entries: tuple[Entry, ...] = ()
    if request.corpus is not None and config.sources != "dictionary":
        episodes = tuple(_annotated(request.corpus, frames, left_out, progress))
    if request.dictionary is not None and config.sources != "continuous":
        entries = tuple(read_dictionary(request.dictionary).dictionary)
    labelled = {annotation.word for episode in episodes for annotation in episode.annotations}
    shown = {entry.word for entry in entries}
    words = labelled & shown if config.sources == "both" else labelled | shown
    if request.split is not None:
        words &= set(read_split(request.split).train)
    if not words:
        raise InputError(request.config, "there is no word to learn", "check annotations, dictionary and split")
    return _Listed(episodes, entries, Vocabulary.of(words), left_out)


def _annotated(corpus: Path, frames: FrameSource, left_out: Counter[str], progress: Progress) -> Iterator[Episode]:
    """The episodes with their annotations on frames; a video is only opened where an annotation has a time instead."""
    source = read_corpus(corpus)
    left_out.update(problem.what for problem in source.problems if not problem.is_remark)
    marks: dict[str, list[TimedAnnotation]] = defaultdict(list)
    for mark in source.annotations:
        marks[mark.video_id].append(mark)
    for done, episode in enumerate(source.episodes):
        progress("reading the times of the videos", done, len(source.episodes))
        of_video = marks[episode.video_id]
        if is_forbidden(episode.rights, date.today()):
            left_out["its video may not be used for training"] += len(of_video)
            continue
        try:
            has_frames = all(mark.frame is not None for mark in of_video)
            axis = None if has_frames else frames.axis(episode.video, episode.box)
        except InputError as error:  # an unreadable video is its own trouble
            left_out[str(error)] += len(of_video)
            continue
        yield replace(episode, annotations=tuple(_on_frames(of_video, axis, left_out)))


def _on_frames(marks: list[TimedAnnotation], axis: TimeAxis | None, left_out: Counter[str]) -> Iterator[Annotation]:
    for mark in marks:
        try:
            if axis is not None:
                yield placed(mark, axis)
            elif mark.frame is not None:
                yield Annotation(mark.video_id, mark.word, mark.frame, mark.confidence, mark.source)
        except FormatError:
            left_out["it lies after the end of its video"] += 1


def _decoded(config: TrunkRunConfig, listed: _Listed, frames: FrameSource, progress: Progress) -> dict[str, FoundClips]:
    options, found = config.clip_options, dict[str, FoundClips]()
    for name, is_test in (("annotated", False), ("test", True)):
        if chosen := [episode for episode in listed.episodes if (episode.split == _TEST) == is_test]:
            found[name] = annotated_clips(chosen, listed.vocabulary, frames, options, _step(progress, name))
    if listed.entries:
        shown = _step(progress, "dictionary")
        found["dictionary"] = dictionary_clips(listed.entries, listed.vocabulary, frames, options, shown)
    return found


def _trunk_data(request: TrunkRun, listed: _Listed, found: Mapping[str, FoundClips]) -> TrunkData:
    sources = {name: clips.source for name, clips in found.items() if len(clips.source)}
    return TrunkData(
        vocabulary=listed.vocabulary,
        continuous=sources.get("annotated"),
        dictionary=sources.get("dictionary"),
        tests=(ClipTest(_TEST, sources["test"]),) if "test" in sources else (),
        description=", ".join(path.name for path in (request.corpus, request.dictionary) if path is not None),
    )


def _step(progress: Progress, name: str) -> CacheProgress:
    return lambda video, done, total: progress(f"reading the {name} clips", done, total)


def _lines(listed: _Listed, found: Mapping[str, FoundClips]) -> Iterator[str]:
    """For people: how many clips there are, and what gave none."""
    yield from (f"{count} annotations left out: {why}" for why, count in listed.left_out.items())
    for name, clips in found.items():
        yield f"{len(clips.source)} {name} clips"
        reasons = Counter(skipped.why for skipped in clips.skipped)
        reasons["the word is not learned"] += clips.outside_vocabulary
        reasons["not sure enough"] += clips.below_confidence
        yield from (f"{count} left out of the {name} clips: {why}" for why, count in (+reasons).items())
    yield from unknown_rights_warning(rights for clips in found.values() for rights in clips.rights)


# From a corpus, a dictionary and a trunk to the material that a head is trained on or tested with.


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
            *unknown_rights_warning(self.rights),
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
        self._tracks: list[Vectors] = []  # their rows, where no store keeps them
        self.annotations: dict[str, list[TimedAnnotation]] = defaultdict(list)
        for annotation in sources.corpus.annotations:
            self.annotations[annotation.video_id].append(annotation)
        self.passages: list[tuple[LabelledPassage, ...]] = []
        self.rights: list[Rights] = []  # of the videos with passages
        self.left_out: Counter[str] = Counter()
        self.problems: list[Problem] = []

    def tracks(self) -> Sequence[Vectors]:
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


class _StoredTracks(Sequence[Vectors]):
    """Tracks of a store, opened when they are used: a corpus has more videos than a process may have open files."""

    def __init__(self, store: FeatureStore, keys: tuple[tuple[str, str], ...]) -> None:
        self._store, self._keys = store, keys

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, number: int) -> Vectors: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Vectors]: ...
    def __getitem__(self, number: int | slice) -> Vectors | Sequence[Vectors]:
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
