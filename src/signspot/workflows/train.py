"""Train the head on material made before, and compare runs."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from signspot.domain.recordings import (
    Annotation,
    Dictionary,
    Entry,
    Episode,
    Rights,
    Synonyms,
    Vocabulary,
    Word,
    normalise,
)
from signspot.domain.time import Progress, TimeAxis
from signspot.domain.tracks import FloatArray, Vectors
from signspot.embedding.model import Embeds, Reading
from signspot.embedding.zoo import embed_entries, trunk_fingerprints
from signspot.errors import DictionaryError, FormatError, InputError, Notice
from signspot.files.atomic import refuse_existing
from signspot.formats.bsldict import RECORDS_FILE, sign_synonyms
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
    Passages,
    SynonymKind,
    WordSplit,
    draw_split,
    file_sha256,
    read_synonyms,
    refuse_material_folder,
    refuse_missing,
    unknown_rights_warning,
)
from signspot.learning.runs import FINISHED_BEFORE, RunFolder, Start, join_team, own_device
from signspot.learning.trunk import ClipTest, TrunkControls, TrunkData, train_trunk
from signspot.models.checkpoints import load_checkpoint
from signspot.stores.corpus import CorpusSource, TimedAnnotation, read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.stores.features import TrackKey, open_store
from signspot.text.subtitles import SubtitleOptions, read_subtitles
from signspot.text.synonyms import english_synonyms, shared_sign_synonyms
from signspot.workflows.spot import read_words

_Cell = str | int | float | bool | None
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
class _ComparedRow:
    """One option or result in all runs compared; None where a run lacks it."""

    name: str
    values: tuple[_Cell, ...]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Runs side by side."""

    runs: tuple[str, ...]
    options: tuple[_ComparedRow, ...]  # only those that differ
    results: tuple[_ComparedRow, ...]


def train_embedding(
    request: EmbeddingRun, controls: Controls = Controls(), tell: Callable[[str], None] = lambda line: None
) -> TrainedRun:
    """Train as asked; processes that torchrun started work as one. `tell` gets what is known before the first step."""
    config = read_config(request.config, EmbeddingConfig, request.changes)
    run = RunFolder(request.out)
    facts = _checksums(request, config)
    run.check(config, facts, request.start)
    train = Material.read(request.data)
    data = TrainingData(
        train=train,
        test=Material.read(request.test) if request.test is not None else None,
        split=WordSplit.read(config.split) if config.split is not None else None,
        synonyms=read_synonyms(request.data, config.synonyms) if config.synonyms != "keep" else None,
        model_file=_model_file(request, config, train),
    )
    setup = make_setup(config, data)
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
    return TrainedRun(run, run.read_results() or {})


def _checksums(request: EmbeddingRun, config: EmbeddingConfig) -> dict[str, str]:
    """The checksums of all that is learned from; the manifest of a material holds those of its files."""
    files = {"train": request.data, "test": request.test, "trunk": request.trunk, "split": config.split}
    for name in ("train", "test"):
        if (folder := files[name]) is not None:
            refuse_missing(folder)
            files[name] = folder / _MANIFEST
    return {name: file_sha256(path) for name, path in files.items() if path is not None}


def compare_runs(folders: tuple[Path, ...]) -> _Comparison:
    runs = [RunFolder(folder) for folder in folders]
    for run in runs:
        if not run.config.is_file():
            raise InputError(run.path, "is not a run folder: it has no config.toml", "name folders of `signspot train`")
    options = _rows([_flat(read_table(run.config)) for run in runs])
    results = _rows([_flat(run.read_results() or {"state": "not finished"}) for run in runs])
    differing = tuple(row for row in options if len(set(map(repr, row.values))) > 1)
    return _Comparison(tuple(map(str, folders)), differing, results)


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


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, _Cell]:
    """Nested tables as one, with dotted names; lists as text."""
    flat: dict[str, _Cell] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value if isinstance(value, str | int | float | bool | None) else str(value)
    return flat


def _rows(tables: list[dict[str, _Cell]]) -> tuple[_ComparedRow, ...]:
    names = dict.fromkeys(name for table in tables for name in table)  # each once, in order
    return tuple(_ComparedRow(name, tuple(table.get(name) for table in tables)) for name in names)


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
class _DrawnSplit:
    """A split that was written, and how often its words are labelled."""

    split: WordSplit
    counted: str  # what was counted: annotations, passages or words
    counts: Mapping[Word, int]
    not_in_dictionary: int  # words
    untested: int | None  # test words without a label in test videos; None: no video is set aside for the test

    def labels(self, words: Iterable[Word]) -> int:
        return sum(self.counts[word] for word in words)

    def lines(self) -> Iterator[str]:
        for name, words in (("training", self.split.train), ("test", self.split.test)):
            labels = "" if self.counted == "words" else f": {self.labels(words):,} {self.counted}"
            yield f"{len(words):,} {name} words{labels}"
        if self.not_in_dictionary:
            yield f"{self.not_in_dictionary:,} words left out: the dictionary has no entry for them"
        if self.untested:
            yield f"{self.untested:,} test words cannot be tested: no video of the split 'test' has them"


def draw_words(request: SplitRequest) -> _DrawnSplit:
    if sum(given is not None for given in (request.corpus, request.data, request.words)) != 1:
        raise InputError("train split", "needs words to draw from", "give one of --corpus, --data and --words")
    refuse_existing(request.out, overwrite=request.overwrite)
    tested: set[Word] | None = None  # the words annotated in test videos, if there are any
    if request.words is not None:
        counted, counts = "words", Counter(dict.fromkeys(_listed_words(request.words), 1))
    elif request.data is not None:
        counted, counts = "passages", Counter(Material.read(request.data).label_counts(request.min_confidence))
    else:
        source = read_corpus(request.corpus or Path())
        sure = [mark for mark in source.annotations if mark.confidence >= request.min_confidence]
        counted, counts = "annotations", Counter(mark.word for mark in sure)
        if of_test := {episode.video_id for episode in source.episodes if episode.split == _TEST}:
            tested = {mark.word for mark in sure if mark.video_id in of_test}
    known = None if request.dictionary is None else set(read_dictionary(request.dictionary).dictionary.by_word)
    kept = {word: count for word, count in counts.items() if known is None or word in known}
    split = draw_split(kept, request.n_test, request.seed)
    split.write(request.out, overwrite=request.overwrite)
    untested = None if tested is None else sum(word not in tested for word in split.test)
    return _DrawnSplit(split, counted, kept, len(counts) - len(kept), untested)


def _listed_words(path: Path) -> Iterator[Word]:
    for text in read_words(path):
        try:
            yield normalise(text)
        except ValueError as error:
            raise InputError(path, f"{text!r} is not a word", "correct or remove the line") from error


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
    reading: Reading = Reading()
    start: Start = "new"


@dataclass(frozen=True, slots=True)
class _Listed:
    """Everything there is to learn from, before a frame is decoded."""

    episodes: tuple[Episode, ...]  # with annotations on frames
    entries: tuple[Entry, ...]
    vocabulary: Vocabulary
    left_out: Counter[str]  # annotations that cannot be used, by reason


def train_trunk_on(
    request: TrunkRun, controls: TrunkControls = TrunkControls(), tell: Callable[[str], None] = lambda line: None
) -> TrainedRun:
    config, progress = read_config(request.config, TrunkRunConfig, request.changes), request.reading.progress
    run = RunFolder(request.out)
    if request.start == "new":
        run.check(config, {}, request.start)  # before hours of decoding
    folder = request.cache or request.out.absolute().with_name(f"{request.out.absolute().name}-frames")
    frames: FrameSource = FrameCache(folder, config.frame_shape, request.reading)
    if config.architecture == "landmark":
        frames = LandmarkFrames(replace(request.reading, store=folder))
    with at_interruption(lambda: "nothing is learned yet" + f"; what is decoded stays in {folder}" * folder.is_dir()):
        listed = _listed(request, config, frames, progress)
        found = _decoded(config, listed, frames, progress)
    for line in _lines(listed, found):
        tell(line)
    sources = {name: clips.source for name, clips in found.items() if len(clips.source)}
    data = TrunkData(
        vocabulary=listed.vocabulary,
        continuous=sources.get("annotated"),
        dictionary=sources.get("dictionary"),
        tests=(ClipTest(_TEST, sources["test"]),) if "test" in sources else (),
        description=", ".join(path.name for path in (request.corpus, request.dictionary) if path is not None),
    )
    with run.opened(config, data.fingerprints(), request.start):
        if run.results.exists():
            tell(FINISHED_BEFORE)
        else:
            with at_interruption(lambda: run.to_continue(request.start)):
                train_trunk(config, data, run, controls)
    return TrainedRun(run, run.read_results() or {})


def _listed(request: TrunkRun, config: TrunkRunConfig, frames: FrameSource, progress: Progress) -> _Listed:
    if config.sources != "dictionary" and request.corpus is None:
        raise InputError(f"sources = {config.sources}", "needs annotated episodes", "add --corpus DIR")
    if config.sources != "continuous" and request.dictionary is None:
        raise InputError(f"sources = {config.sources}", "needs dictionary clips", "add --dictionary DIR")
    left_out, episodes, entries = Counter[str](), tuple[Episode, ...](), tuple[Entry, ...]()
    if request.corpus is not None and config.sources != "dictionary":
        episodes = tuple(_annotated(request.corpus, frames, left_out, progress))
    if request.dictionary is not None and config.sources != "continuous":
        entries = tuple(read_dictionary(request.dictionary).dictionary)
    labelled = {annotation.word for episode in episodes for annotation in episode.annotations}
    shown = {entry.word for entry in entries}
    words = labelled & shown if config.sources == "both" else labelled | shown
    if request.split is not None:
        words &= set(WordSplit.read(request.split).train)
    if not words:
        raise InputError(request.config, "there is no word to learn", "check annotations, dictionary and split")
    return _Listed(episodes, entries, Vocabulary.of(words), left_out)


def _annotated(corpus: Path, frames: FrameSource, left_out: Counter[str], progress: Progress) -> Iterator[Episode]:
    """The episodes with their annotations on frames; a video is only opened where an annotation has a time instead."""
    source = read_corpus(corpus)
    left_out.update(problem.what for problem in source.problems if problem.severity == "warning")
    marks: dict[str, list[TimedAnnotation]] = defaultdict(list)
    for mark in source.annotations:
        marks[mark.video_id].append(mark)
    for done, episode in enumerate(source.episodes):
        progress("reading the times of the videos", done, len(source.episodes))
        of_video = marks[episode.video_id]
        if episode.rights.forbid_training(date.today()):
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
    """The annotations as frames of their video; without an axis they all have a frame."""
    for mark in marks:
        try:
            if axis is not None:
                yield mark.placed(axis)
            elif mark.frame is not None:
                yield Annotation(mark.video_id, mark.word, mark.frame, mark.confidence, mark.source)
        except FormatError:
            left_out["it lies after the end of its video"] += 1


def _decoded(config: TrunkRunConfig, listed: _Listed, frames: FrameSource, progress: Progress) -> dict[str, FoundClips]:
    options, found = config.clip_options, dict[str, FoundClips]()

    def step(name: str) -> CacheProgress:
        return lambda video, done, total: progress(f"reading the {name} clips", done, total)

    for name, is_test in (("annotated", False), ("test", True)):
        if chosen := [episode for episode in listed.episodes if (episode.split == _TEST) == is_test]:
            found[name] = annotated_clips(chosen, listed.vocabulary, frames, options, step(name))
    if listed.entries:
        clips = dictionary_clips(listed.entries, listed.vocabulary, frames, options, step("dictionary"))
        found["dictionary"] = clips
    return found


def _lines(listed: _Listed, found: Mapping[str, FoundClips]) -> Iterator[str]:
    """For people: how many clips there are, and what gave none."""
    yield from (f"{count} annotations left out: {why}" for why, count in listed.left_out.items())
    for name, clips in found.items():
        yield f"{len(clips.source)} {name} clips"
        reasons = Counter(why for _, why in clips.skipped)
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
    reading: Reading = Reading()
    today: date = field(default_factory=date.today)  # rights may have expired


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialSources:
    """What material is made of."""

    corpus: CorpusSource
    dictionary: Dictionary
    trunk: Embeds  # whose vectors are used


@dataclass(frozen=True, slots=True, eq=False)
class _MadeMaterial:
    """Material, how many annotations were left out of it by reason, and what else should be known."""

    material: Material
    n_annotations: int
    left_out: tuple[tuple[str, int], ...]
    problems: tuple[Notice, ...]
    rights: tuple[Rights, ...] = ()  # of the videos and clips that are used

    def lines(self) -> tuple[str, ...]:
        """For people: what was made, and one line for everything left out."""
        material, columns = self.material, self.material.passages
        made = f"{len(columns)} labelled passages of {len(material.tracks)} videos, {len(set(columns.label))} words"
        entries = f"{len(material.entry_ids)} dictionary entries of {len(material.vocabulary)} words"
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
    wordnet: Path | None = None  # WordNet's files, for English synonyms
    overwrite: bool = False


def write_training_material(
    files: MaterialFiles, trunk: Embeds, options: MaterialOptions = MaterialOptions()
) -> _MadeMaterial:
    """Make material from files and write it as a folder, with the synonyms that are known."""
    refuse_material_folder(files.out, overwrite=files.overwrite)
    corpus, read = read_corpus(files.corpus), read_dictionary(files.dictionary)
    synonyms: dict[SynonymKind, Synonyms] = {"sign": dictionary_synonyms(read.dictionary)}
    if files.wordnet is not None:
        synonyms["english"] = english_synonyms(read.dictionary.vocabulary, files.wordnet)
    made = make_training_material(MaterialSources(corpus=corpus, dictionary=read.dictionary, trunk=trunk), options)
    made.material.write(files.out, synonyms=synonyms, overwrite=files.overwrite)
    problems = (*corpus.problems, *read.problems, *made.problems)
    return replace(made, material=Material.read(files.out, verify=False), problems=problems)


def dictionary_synonyms(dictionary: Dictionary) -> Synonyms:
    """Words that the dictionary calls similar or related, or files one sign under (Paper App. B.4)."""
    shared = shared_sign_synonyms(dictionary)
    if dictionary.folder is None or not (dictionary.folder / RECORDS_FILE).is_file():
        return shared
    return Synonyms(shared.pairs | sign_synonyms(dictionary.folder).pairs)


def make_training_material(sources: MaterialSources, options: MaterialOptions = MaterialOptions()) -> _MadeMaterial:
    """Labelled passages, the trunk vectors of their videos, and those of all dictionary entries."""
    videos = _Videos(sources, options)
    for episode in sources.corpus.episodes:
        videos.add(episode)
    if not any(videos.passages):
        why = "; ".join(f"{count}: {reason}" for reason, count in (+videos.left_out).items()) or "it has no annotations"
        raise InputError("the corpus", f"no labelled passage ({why})", "check annotations, subtitles and dictionary")
    entries, vectors = _entries(sources, options, videos.problems)
    vocabulary = sources.dictionary.vocabulary
    material = Material(
        vocabulary=vocabulary,
        tracks=videos.tracks(),
        passages=Passages.of(videos.passages, vocabulary),
        entry_ids=tuple(entry.entry_id for entry in entries),
        entry_vectors=vectors,
        entry_word=np.array([vocabulary.id_of(entry.word) for entry in entries], np.int64),
        fingerprint=sources.trunk.fingerprint,
    )
    material.check("training material")
    n_annotations = sum(len(marks) for marks in videos.annotations.values())
    rights = (*videos.rights, *(entry.rights for entry in entries))
    return _MadeMaterial(material, n_annotations, tuple((+videos.left_out).items()), tuple(videos.problems), rights)


class _Videos:
    """What the videos of a corpus give, as it comes together."""

    def __init__(self, sources: MaterialSources, options: MaterialOptions) -> None:
        self._sources, self._options = sources, options
        self._vocabulary = sources.dictionary.vocabulary
        self._keys: list[TrackKey] = []  # what the rows of the videos with passages are filed under
        self._tracks: list[Vectors] = []  # their rows, where no store keeps them
        self.annotations: dict[str, list[TimedAnnotation]] = defaultdict(list)
        for annotation in sources.corpus.annotations:
            self.annotations[annotation.video_id].append(annotation)
        self.passages: list[tuple[LabelledPassage, ...]] = []
        self.rights: list[Rights] = []  # of the videos with passages
        self.left_out: Counter[str] = Counter()
        self.problems: list[Notice] = []

    def tracks(self) -> Sequence[Vectors]:
        store = self._options.reading.store
        return tuple(self._tracks) if store is None else _StoredTracks(store, tuple(self._keys))

    def add(self, episode: Episode) -> None:
        """Use one video; whatever is wrong with it is its own trouble."""
        marks, split = self.annotations.get(episode.video_id, []), self._options.split
        reason = "its video has no subtitles" if episode.subtitles is None else ""
        if episode.rights.forbid_training(self._options.today):
            reason = "its video may not be used for training"
        if split and episode.split != split:
            reason = f"its video is not in the split {split!r}"
        if reason:
            self.left_out[reason] += len(marks)
            return
        try:
            self._add(episode, marks)
        except InputError as error:
            self.left_out["its video or its subtitles cannot be used"] += len(marks)
            self.problems.append(error.notice())

    def _add(self, episode: Episode, marks: list[TimedAnnotation]) -> None:
        known = [mark for mark in marks if mark.word in self._vocabulary]
        self.left_out["the dictionary has no entry for the word"] += len(marks) - len(known)
        if not known or episode.subtitles is None:
            return
        subtitles = read_subtitles(episode.subtitles, self._options.subtitles)
        self.problems += [Notice(str(subtitles.path), warning, severity="note") for warning in subtitles.warnings]
        made = self._sources.trunk.track(episode, self._options.reading)
        if made.remarks.partial:
            self.problems.append(Notice(str(episode.video), made.remarks.partial, severity="note"))
        annotations = tuple(_on_frames(known, made.track.axis, self.left_out))
        footage = Footage(episode.video_id, made.track.axis, subtitles.subtitles, annotations)
        passages, left_out = footage.labelled_passages(self._vocabulary, self._options.passages)
        self.left_out += left_out
        if passages:
            self.passages.append(passages)
            self.rights.append(episode.rights)
            self._keys.append(TrackKey(made.media_sha256, made.kept_as))
            if self._options.reading.store is None:
                self._tracks.append(made.track.vectors)


class _StoredTracks(Sequence[Vectors]):
    """Tracks of a store, opened when they are used: a corpus has more videos than a process may have open files."""

    def __init__(self, folder: Path, keys: tuple[TrackKey, ...]) -> None:
        self._store, self._keys = open_store(folder), keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, number: Any) -> Any:  # a whole number: nobody takes slices
        rows = self._store.open_rows(self._keys[number])
        if rows is None:
            what = "the stored vectors of this video are gone or damaged"
            where = self._keys[number].media_sha256[:12]
            raise InputError(where, what, "run the same command again: they are computed anew")
        return rows


def _entries(
    sources: MaterialSources, options: MaterialOptions, problems: list[Notice]
) -> tuple[tuple[Entry, ...], FloatArray]:
    """The entries that have a vector of the trunk, and the vectors: (n, trunk dim)."""
    forbidden, allowed = list[Entry](), list[Entry]()
    for entry in sources.dictionary:
        (forbidden if entry.rights.forbid_training(options.today) else allowed).append(entry)
    made = embed_entries(allowed, sources.trunk, options.reading)
    problems += [error.notice() for _, error in made.failures]
    problems += [Notice(one.entry_id, "may not be used for training", "it is left out") for one in forbidden]
    if not made.entries:
        what = f"none of its {len(sources.dictionary)} entries can be used; the first problem: {problems[-1].what}"
        raise DictionaryError(sources.dictionary.name, what, "check its clips and their rights")
    problems += made.stored
    return made.entries, made.vectors[:, 0]


def _counted(problems: Iterable[Notice]) -> Iterator[str]:
    """One line for each kind of problem, however often it came."""
    by_kind: dict[tuple[str, str], list[Notice]] = defaultdict(list)
    for problem in problems:
        by_kind[problem.what, problem.fix].append(problem)
    for alike in by_kind.values():
        yield str(alike[0]) if len(alike) == 1 else f"{len(alike)} times such as {alike[0]}"
