"""Train the trunk on annotated episodes and a dictionary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from signspot.domain.corpus import Annotation, Episode
from signspot.domain.dictionary import Entry
from signspot.domain.spans import TimeAxis
from signspot.domain.tracks import FrameShape
from signspot.domain.words import Vocabulary
from signspot.errors import FormatError, InputError
from signspot.formats.manifests import TimedAnnotation, placed, read_corpus, read_dictionary
from signspot.interrupts import at_interruption
from signspot.learning.clip_files import CacheProgress, FoundClips, annotated_clips, dictionary_clips
from signspot.learning.config import read_config
from signspot.learning.frame_cache import FrameCache
from signspot.learning.permission import is_forbidden, told_of_unknown
from signspot.learning.pretrain import TrunkControls, train_trunk
from signspot.learning.run_folder import FINISHED_BEFORE, RunFolder, Start, results_of
from signspot.learning.splits import read_split
from signspot.learning.trunk_config import TrunkRunConfig
from signspot.learning.trunk_stages import ClipTest, TrunkData
from signspot.media.reader import VideoReader
from signspot.workflows.tracks import Progress
from signspot.workflows.train import TrainedRun

_TEST = "test"  # the split of episodes that are never trained on
_SMALLEST = FrameShape(16, 16)  # where only the times of frames are wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class TrunkRun:
    """What the user asked to be trained."""

    config: Path
    out: Path  # the run folder
    corpus: Path | None = None
    dictionary: Path | None = None
    split: Path | None = None  # only the training words of this file
    cache: Path | None = None  # of decoded frames; None: beside the run folder
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
    if config.architecture == "landmark":
        raise InputError(request.config, "landmarks cannot be read from a corpus yet", "choose i3d or s3d")
    run = RunFolder(request.out)
    if request.start == "new":
        run.check(config, {}, request.start)  # before hours of decoding
    listed = _listed(request, config, progress)
    data = _decoded(request, config, listed, tell, progress)
    with run.opened(config, data.fingerprints(), request.start):
        if run.results.exists():
            tell(FINISHED_BEFORE)
        else:
            with at_interruption(lambda: run.to_continue(request.start)):
                train_trunk(config, data, run, controls)
    return TrainedRun(run, results_of(run) or {})


def _listed(request: TrunkRun, config: TrunkRunConfig, progress: Progress) -> _Listed:
    if config.sources != "dictionary" and request.corpus is None:
        raise InputError(f"sources = {config.sources}", "needs annotated episodes", "add --corpus DIR")
    if config.sources != "continuous" and request.dictionary is None:
        raise InputError(f"sources = {config.sources}", "needs dictionary clips", "add --dictionary DIR")
    left_out: Counter[str] = Counter()
    episodes: tuple[Episode, ...] = ()
    entries: tuple[Entry, ...] = ()
    if request.corpus is not None and config.sources != "dictionary":
        episodes = tuple(_annotated(request.corpus, left_out, progress, isolated=request.isolated))
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


def _annotated(corpus: Path, left_out: Counter[str], progress: Progress, *, isolated: bool) -> Iterator[Episode]:
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
            axis = None if all(m.frame is not None for m in of_video) else _axis_of(episode.video, isolated=isolated)
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


def _axis_of(video: Path, *, isolated: bool) -> TimeAxis:
    with VideoReader(video, shape=_SMALLEST, isolated=isolated) as reader:
        for _ in reader:
            pass
        return reader.report.axis


def _decoded(
    request: TrunkRun, config: TrunkRunConfig, listed: _Listed, tell: Callable[[str], None], progress: Progress
) -> TrunkData:
    folder = request.cache or request.out.absolute().with_name(f"{request.out.absolute().name}-frames")
    cache, options = FrameCache(folder, config.frame_shape, request.isolated), config.clip_options
    found: dict[str, FoundClips] = {}
    with at_interruption(lambda: f"nothing is learned yet; videos that are decoded stay so in {folder}"):
        for name, is_test in (("annotated", False), ("test", True)):
            if chosen := [episode for episode in listed.episodes if (episode.split == _TEST) == is_test]:
                found[name] = annotated_clips(chosen, listed.vocabulary, cache, options, _step(progress, name))
        if listed.entries:
            shown = _step(progress, "dictionary")
            found["dictionary"] = dictionary_clips(listed.entries, listed.vocabulary, cache, options, shown)
    for line in _lines(listed, found):
        tell(line)
    sources = {name: clips.source for name, clips in found.items() if len(clips.source)}
    return TrunkData(
        vocabulary=listed.vocabulary,
        continuous=sources.get("annotated"),
        dictionary=sources.get("dictionary"),
        tests=(ClipTest(_TEST, sources["test"]),) if "test" in sources else (),
        description=", ".join(path.name for path in (request.corpus, request.dictionary) if path is not None),
    )


def _step(progress: Progress, name: str) -> CacheProgress:
    return lambda video, done, total: progress(f"decoding the {name} clips", done, total)


def _lines(listed: _Listed, found: Mapping[str, FoundClips]) -> Iterator[str]:
    """For people: how many clips there are, and what gave none."""
    yield from (f"{count} annotations left out: {why}" for why, count in listed.left_out.items())
    for name, clips in found.items():
        yield f"{len(clips.source)} {name} clips"
        reasons = Counter(skipped.why for skipped in clips.skipped)
        reasons["the word is not learned"] += clips.outside_vocabulary
        reasons["not sure enough"] += clips.below_confidence
        yield from (f"{count} left out of the {name} clips: {why}" for why, count in (+reasons).items())
    yield from told_of_unknown(rights for clips in found.values() for rights in clips.rights)
