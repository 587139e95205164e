"""Files in, files out: find words in a video, a folder of videos, or the video of an ELAN file.

A folder is a batch: a video that fails is noted and the others go on.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from signspot.domain.recordings import (
    Dictionary,
    Entry,
    Episode,
    Subtitle,
    Word,
    normalise,
)
from signspot.domain.results import Spotting, VideoAnswer
from signspot.embedding.model import Model, Reading
from signspot.embedding.zoo import ModelChoice, calibration_for, load_model, opened_dictionary
from signspot.errors import EnvironmentProblem, InputError, Notice, Notify, SignspotError
from signspot.formats.elan import ElanDocument, ElanMedia, one_list, read_eaf
from signspot.formats.pose import POSE_SUFFIX
from signspot.formats.vocabularies import ExternalVocabulary, read_ecv, read_signbank, with_type_ids
from signspot.interrupts import at_interruption
from signspot.spotting.search import Query, best_only
from signspot.stores.corpus import SUBTITLE_SUFFIXES, CorpusSource, TimedAnnotation, read_corpus
from signspot.stores.spottings import answer_record
from signspot.text.subtitles import SubtitleOptions, read_subtitles
from signspot.text.synonyms import shared_sign_synonyms
from signspot.workflows.annotate import Annotated, KnownWords, annotate_prepared, known_words
from signspot.workflows.batch import Engine, FailureList, Work, each
from signspot.workflows.outputs import Context, Output, Outputs, write_outputs
from signspot.workflows.spot import SpotOptions, WantedSigns, prepare, searched_dictionary, spot_prepared


def _wanted_signs(
    dictionary: Path | None, clips: Sequence[Path], words: Sequence[str], reading: Reading
) -> WantedSigns:
    """The dictionary, with the clips added as one more sign that is named after the first of them."""
    known = Dictionary.of("", ()) if dictionary is None else opened_dictionary(dictionary, reading)
    if not clips:
        return WantedSigns(known, tuple(words))
    word = _clip_word(clips[0], {entry.word for entry in known})
    taken = {entry.entry_id for entry in known}
    shown = [Entry(entry_id=_unused(clip.stem, taken), word=word, video=clip) for clip in clips]
    asked = f"query {', '.join(clip.name for clip in clips)}"  # which a result is explained by later
    name = asked if dictionary is None else f"{known.name} and {asked}"
    ids = tuple(entry.entry_id for entry in shown)
    return WantedSigns(Dictionary.of(name, (*known, *shown), known.folder), (*words, word), ids)


def _without_still_ends(wanted: WantedSigns, model: Model, reading: Reading) -> WantedSigns:
    """The same with the clips cut to what moves, if the model needs that: their still ends are in no video."""
    entries = [
        model.without_still_ends(entry, reading) if entry.entry_id in wanted.clip_ids else entry
        for entry in wanted.dictionary
    ]
    return replace(wanted, dictionary=Dictionary.of(wanted.dictionary.name, entries, wanted.dictionary.folder))


def _clip_word(clip: Path, words: set[Word]) -> Word:
    try:
        word = normalise(clip.stem)
    except ValueError:
        word = normalise("query")
    return word if word not in words else normalise(f"query {word}")


def _unused(name: str, taken: set[str]) -> str:
    number = 1
    unused = name or "query"
    while unused in taken:
        number += 1
        unused = f"{name}-{number}"
    taken.add(unused)
    return unused


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRequest:
    """Everything a person can ask of `signspot spot`."""

    source: Path  # a video, a folder or list (.csv, .json) of videos, or an .eaf file
    words: tuple[str, ...]
    dictionary: Path | None  # None: clips to look for, or the signs that the model knows by itself
    model: ModelChoice = ModelChoice()
    subtitles: Path | None = None  # a file; for a folder of videos, a folder of files with the same names
    subtitle_options: SubtitleOptions = SubtitleOptions()
    vocabulary: str | Path | None = None  # a file, or FILE#NAME for one vocabulary of an ECV that holds several
    options: SpotOptions = SpotOptions()
    queries: tuple[Path, ...] = ()  # clips of one sign to look for, beside the words
    calibration: Path | None = None  # None: the one that is kept for the model, if any
    explain: bool = False  # explain the subtitles as a whole, as `signspot annotate` does
    synonyms: bool = False  # words under which the dictionary files one sign stand for each other
    outputs: Outputs = Outputs()
    failures: Path = Path("failures.jsonl")  # where a batch lists what failed
    jobs: int = 1  # processes that search the videos of a batch

    @property
    def is_batch(self) -> bool:
        return self.source.is_dir() or self.source.suffix.lower() in (".csv", ".json")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one video."""

    video: Path
    answer: VideoAnswer | None = None
    failure: SignspotError | None = None
    written: tuple[Path, ...] = ()
    annotated: Annotated | None = None  # of `explain`
    known_words: KnownWords | None = None  # how it compares with the annotations of the corpus

    @property
    def record(self) -> dict[str, object]:
        if self.answer is None:
            return {}
        if self.annotated is None:
            return answer_record(self.answer)
        return dataclasses.replace(self.annotated, answer=self.answer).record(self.known_words)


@dataclass(frozen=True, slots=True)
class _LinkedVideo:
    path: Path
    media: ElanMedia
    n_linked: int


@dataclass(frozen=True, slots=True)
class _Run:
    """A request with everything looked up that all videos share."""

    request: SpotRequest
    query: Query
    model: Model | None  # None: on its way to another process
    model_name: str
    vocabulary: ExternalVocabulary | None
    options: SpotOptions
    annotations: tuple[TimedAnnotation, ...]

    @property
    def classes(self) -> dict[str, int]:
        """A class of the challenge is the place of the word in the sorted vocabulary of the dictionary.

        Words that only the model has come behind it: they renumber none.
        """
        by_word = self.query.dictionary.by_word
        learned = {word for word, entries in by_word.items() if all(entry.is_learned for entry in entries)}
        return {word: number for number, word in enumerate(sorted(by_word, key=lambda word: (word in learned, word)))}


def spot_files(request: SpotRequest) -> Iterator[Outcome]:
    """Search every video of the request, one outcome after the other; outputs are written as soon as they can be.

    A single video that fails raises; in a batch the failure is an outcome. The tables of a batch hold all videos and
    are written at the end, or when the user interrupts or the machine fails, with what was found until then.
    """
    elan = read_eaf(request.source) if request.source.suffix.lower() == ".eaf" else None
    corpus = _corpus(request, elan)
    episodes, unusable = corpus.episodes, _unusable(corpus)
    run = _prepared(request, corpus, elan)
    if not request.is_batch:
        _notify_of_inputs(request, elan, episodes[0])
        yield _one(episodes[0], run, request.outputs, elan)
        return
    found = _Found(classes=run.classes)
    outcomes = itertools.chain(unusable, _of_batch(episodes, run))
    with at_interruption(lambda: found.write_partly(request)):
        try:
            for outcome in outcomes:
                found.add(outcome)
                yield outcome
        except (EnvironmentProblem, OSError) as error:
            with suppress(EnvironmentProblem, OSError):  # the first trouble is the one to tell
                if said := found.write_partly(request):
                    error.add_note(said)
            raise
    found.write(request)


@dataclass(slots=True)
class _Found:
    """What the shared outputs of a batch need, without the curves: there may be thousands of videos."""

    spottings: list[Spotting] = field(default_factory=list)
    records: list[dict[str, object]] = field(default_factory=list)
    failed: list[Outcome] = field(default_factory=list)
    classes: Mapping[str, int] = field(default_factory=dict)  # the numbers of words
    searched: set[str] = field(default_factory=set)  # the paths of all videos

    def add(self, outcome: Outcome) -> None:
        self.searched.add(str(outcome.video))
        if outcome.failure is not None:
            self.failed.append(outcome)
        if outcome.answer is not None:
            self.spottings += outcome.answer
            self.records.append(outcome.record)

    def write_partly(self, request: SpotRequest) -> str:
        """Write the tables of a batch that is interrupted; what should be known about them."""
        tables = ", ".join(map(str, request.outputs.shared.values()))
        if not (self.records or self.failed):
            return ""
        self.write(request)
        return tables and f"{tables}: only the videos that were finished; repeat with --overwrite to have all"

    def write(self, request: SpotRequest) -> None:
        outputs = request.outputs
        context = Context(classes=self.classes, record=self.records, overwrite=outputs.overwrite)
        for kind, path in outputs.shared.items():
            kind.write(self.spottings, path, context)
        failed = [(outcome.video, outcome.failure) for outcome in self.failed if outcome.failure is not None]
        FailureList(request.failures).write(failed, self.searched)


def _corpus(request: SpotRequest, elan: ElanDocument | None) -> CorpusSource:
    if not request.is_batch:
        video = request.source if elan is None else _linked_video(request.source, elan).path
        subtitles = request.subtitles or (_beside(video) if request.explain else None)
        return CorpusSource((Episode(video_id=request.source.stem, video=video, subtitles=subtitles),))
    source = read_corpus(request.source)
    if request.subtitles is None and request.explain:
        return source
    names = {episode.video.name for episode in source.episodes}
    beside = {} if request.subtitles is None else _subtitles_by_stem(request.subtitles, names)
    episodes = (
        dataclasses.replace(e, subtitles=beside.get(e.video.name) or beside.get(e.video.stem)) for e in source.episodes
    )
    return dataclasses.replace(source, episodes=tuple(episodes))


def _unusable(corpus: CorpusSource) -> tuple[Outcome, ...]:
    return tuple(
        Outcome(Path(problem.where), failure=InputError(problem.where, problem.what, problem.fix))
        for problem in corpus.problems
        if problem.severity == "warning"
    )


def _prepared(request: SpotRequest, corpus: CorpusSource, elan: ElanDocument | None) -> _Run:
    """Refuse what cannot work before any video is read, then embed the dictionary's clips."""
    vocabulary = None if request.vocabulary is None else _vocabulary(str(request.vocabulary), elan)
    reading, episodes = request.options.reading, corpus.episodes
    wanted = _wanted_signs(request.dictionary, request.queries, request.words, reading)
    recordings = (*(e.video for e in episodes), *(entry.video for entry in wanted.dictionary))
    opened = request.model.open(recordings, reading)
    wanted = _without_still_ends(wanted, opened.model, opened.reading)
    given = wanted.dictionary if len(wanted.dictionary) or request.dictionary is not None else None
    dictionary = searched_dictionary(given, opened.model, request.options, are_named=bool(request.words))
    dictionary = dictionary if vocabulary is None else with_type_ids(dictionary, vocabulary)
    named = (request.source, request.dictionary, request.subtitles, Path(vocabulary.source) if vocabulary else None)
    read = (path for episode in episodes for path in (episode.video, episode.subtitles))
    inputs = tuple(path for path in (*named, *read, *(entry.video for entry in dictionary)) if path)
    ids = tuple(e.video_id for e in episodes)
    request.outputs.check(inputs, ids if request.is_batch else None)
    if Output.VIDEO in request.outputs.paths:
        _refuse_without_pictures(episodes)
    if request.is_batch:
        FailureList(request.failures).refuse_foreign()
        request.outputs.make_folders(ids)  # one that may not be made is said before hours of work
    calibration = calibration_for(opened.model, request.calibration, opened.name)
    options = dataclasses.replace(request.options, calibration=calibration, reading=opened.reading)
    if request.synonyms:
        options = dataclasses.replace(options, synonyms=shared_sign_synonyms(dictionary))
    asked = options
    if _reads(request) and not wanted.words:
        asked = dataclasses.replace(options, subtitles=_all_cues(episodes, request))
    query = prepare(wanted.words, dictionary, opened.model, asked)
    if vocabulary is not None:
        _notify_of_vocabulary(query, vocabulary, reading.notify)
    return _Run(request, query, opened.model, opened.name, vocabulary, options, corpus.annotations)


def _refuse_without_pictures(episodes: tuple[Episode, ...]) -> None:
    for episode in episodes:
        if episode.video.suffix.lower() == POSE_SUFFIX:
            raise InputError(episode.video, "holds landmarks and no pictures for --video", "leave --video out")


def _reads(request: SpotRequest) -> bool:
    return request.subtitles is not None or request.explain


def _notify_of_vocabulary(query: Query, vocabulary: ExternalVocabulary, notify: Notify) -> None:
    """Say what is odd in the vocabulary, and which words get no id, because it has no such sign or several."""
    for line in vocabulary.warnings:
        notify(Notice(vocabulary.source, line))
    if without := [each.word for each in query.words if not any(entry.type_id for entry in each.entries)]:
        names = "this name" if len(without) == 1 else "these names"
        notify(Notice(", ".join(without), f"the vocabulary has no sign of {names}, or several", "no id is written"))


def _one(episode: Episode, run: _Run, outputs: Outputs, elan: ElanDocument | None = None) -> Outcome:
    options, model = run.options, run.model
    if model is None:
        raise ValueError("a run without a model")
    warnings: tuple[str, ...] = ()
    if _reads(run.request):
        cues, warnings = _cues(episode, run.request)
        options = dataclasses.replace(options, subtitles=cues)
    annotated = known = None
    if run.request.explain:
        annotated = annotate_prepared(episode, run.query, model, options)
        known, answer = _compared(annotated, episode, run), annotated.answer
    else:
        answer = spot_prepared(episode, run.query, model, options)
    answer = dataclasses.replace(answer, warnings=warnings + answer.warnings)
    written = tuple(outputs.paths.values())
    outcome = Outcome(episode.video, answer, written=written, annotated=annotated, known_words=known)
    context = Context(
        videos={answer.video_id: episode.video},
        elan=elan,
        elan_media=None if elan is None else _linked_video(run.request.source, elan).media,
        vocabulary=run.vocabulary,
        reading=options.reading,
        lag=None if annotated is None else annotated.lag,
        classes=run.classes,
        # For a batch too: what its tables cannot hold is this video's trouble, and said before anything is written.
        record=outcome.record if run.request.is_batch or Output.JSON in outputs.paths else None,
    )
    noted = write_outputs(answer, outputs, context)
    answer = dataclasses.replace(answer, warnings=answer.warnings + noted)
    return dataclasses.replace(outcome, answer=answer)


def _compared(annotated: Annotated, episode: Episode, run: _Run) -> KnownWords | None:
    own = [one for one in run.annotations if one.video_id == episode.video_id]
    if not own or not annotated.answer.words:
        return None
    axis = annotated.answer.words[0].similarity.axis
    return known_words(annotated, [one.placed(axis) for one in own], run.options.padding_ms)


def _of_batch(episodes: tuple[Episode, ...], run: _Run) -> Iterator[Outcome]:
    reading = run.options.reading
    options = dataclasses.replace(run.options, reading=reading.quiet())
    request = dataclasses.replace(run.request, options=options)
    alone = dataclasses.replace(run, request=request, model=None, options=options)
    engine = Engine(run.request.jobs, partial(_in_worker, alone))
    report = partial(reading.progress, "searching videos")
    for one in each(episodes, partial(_one_of_many, run), _video, engine, report):
        yield one.result or Outcome(one.item.video, failure=one.failure)


def _in_worker(run: _Run) -> Work[Episode, Outcome]:
    """The work of a process that has to open the model for itself."""
    choice = dataclasses.replace(run.request.model, name=run.model_name)
    model = load_model(choice.name, backend=choice.backend, device=choice.device)
    return lambda episode: _thinned(_one_of_many(dataclasses.replace(run, model=model), episode))


def _thinned(outcome: Outcome) -> Outcome:
    """What another process needs to know: of the entries of a word only the best curve, which is all that is shown."""
    if outcome.answer is None:
        return outcome
    words = tuple(dataclasses.replace(word, similarity=best_only(word.similarity)) for word in outcome.answer.words)
    return dataclasses.replace(outcome, answer=dataclasses.replace(outcome.answer, words=words))


def _one_of_many(run: _Run, episode: Episode) -> Outcome:
    return _one(episode, run, run.request.outputs.for_video(episode.video_id))


def _video(episode: Episode) -> Path:
    return episode.video


def _all_cues(episodes: tuple[Episode, ...], request: SpotRequest) -> tuple[Subtitle, ...]:
    """What all subtitles of a batch say; a file that cannot be read fails with its video, not here."""
    cues: list[Subtitle] = []
    for episode in episodes:
        try:
            cues += _cues(episode, request)[0]
        except InputError:
            if not request.is_batch:
                raise
    return tuple(cues)


def _cues(episode: Episode, request: SpotRequest) -> tuple[tuple[Subtitle, ...], tuple[str, ...]]:
    if episode.subtitles is None:
        if request.subtitles is None:
            raise InputError(episode.video, "no subtitles of it are known", "name them with --subtitles")
        what = f"no subtitles of this name in {request.subtitles}"
        raise InputError(episode.video, what, "add them, or search all")
    read = read_subtitles(episode.subtitles, request.subtitle_options)
    return read.subtitles, read.in_short


def _subtitles_by_stem(folder: Path, videos: Collection[str]) -> dict[str, Path]:
    """news.vtt and news.en.vtt both belong to news.mp4; the shorter name is taken. news.mov.vtt is that of news.mov."""
    if not folder.is_dir():
        raise InputError(folder, "a folder of videos needs a folder of subtitles", "name the folder that holds them")
    suffixes = (*SUBTITLE_SUFFIXES, ".ssa", ".sub")
    found = (path for path in folder.iterdir() if path.suffix.lower() in suffixes and path.is_file())
    files = sorted(found, key=lambda path: (-len(path.name), path.name))
    of_one = {path.stem: path for path in files if path.stem in videos}
    shared = [path for path in files if path.stem not in videos]
    return {stem: path for path in shared for stem in (path.stem, path.name.split(".")[0])} | of_one


def _beside(video: Path) -> Path | None:
    if not video.is_file():
        return None
    found = _subtitles_by_stem(video.parent, {path.name for path in video.parent.iterdir()})
    return found.get(video.name) or found.get(video.stem)


def _linked_video(path: Path, elan: ElanDocument) -> _LinkedVideo:
    media = [found for found in elan.resolve_media(path) if found.media.name]
    linked = [found for found in media if not found.media.mime_type.startswith("audio/")]
    for found in linked:
        if found.path is not None:
            return _LinkedVideo(found.path, found.media, len(linked))
    if not linked:
        raise InputError(path, "is linked to no video", "link one in ELAN, or name the video itself")
    names = ", ".join(found.media.name for found in linked)
    raise InputError(path, f"its video is not on this computer: {names}", "put it beside the ELAN file")


def _notify_of_inputs(request: SpotRequest, elan: ElanDocument | None, episode: Episode) -> None:
    """Say what is odd in the ELAN file, and which video and subtitles are taken without being named."""
    notify, name = request.options.reading.notify, request.source.name
    if elan is not None:
        linked = _linked_video(request.source, elan)
        chosen = f"of its {linked.n_linked} videos, {linked.path.name} is searched" if linked.n_linked > 1 else ""
        for line in filter(None, (elan.unread, *elan.warnings, chosen)):
            notify(Notice(name, line))
    if episode.subtitles is not None and request.subtitles is None:
        notify(Notice(episode.video.name, "the subtitles beside it are taken", episode.subtitles.name, severity="note"))


def _vocabulary(given: str, elan: ElanDocument | None) -> ExternalVocabulary:
    """The vocabulary in a file: the one that is named, or the one that the tiers of the ELAN file use."""
    path, name = _file_and_name(given)
    read = read_signbank(path) if path.suffix.lower() in (".csv", ".tsv", ".txt") else read_ecv(path)
    return one_list(read, elan) if name is None else read.only(name)


def _file_and_name(given: str) -> tuple[Path, str | None]:
    """FILE#NAME taken apart; either may hold a # of its own, so the longest name of a file that is there counts."""
    parts = given.split("#")
    for n_parts in range(len(parts), 0, -1):
        path = Path("#".join(parts[:n_parts]))
        with suppress(OSError):  # a name too long for any file
            if path.is_file():
                return path, "#".join(parts[n_parts:]) if n_parts < len(parts) else None
    return Path(given), None
