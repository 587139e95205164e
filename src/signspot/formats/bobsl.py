"""Sparse annotations as BSL-1K and BOBSL publish them: {split: {word: {names, times, probs}}}, in seconds.

BOBSL calls its times global_times. A time is one moment of a sign, and which moment depends on what found it: a
mouthing is found at its end, a dictionary match at its start. `OffsetRule` says so for each source; the annotation
itself keeps the time as it was published. Files written here carry two more lists, sources and offsets, which other
readers ignore.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.recordings import Episode, Subtitle
from signspot.domain.time import FRAME_MS, Millis, MillisSpan
from signspot.domain.words import Vocabulary, Word, normalise
from signspot.errors import FormatError
from signspot.files.atomic import atomic_output, explained, refuse_existing
from signspot.files.intake import Oddities, Place, Problem
from signspot.files.json import Node, read_json, write_json
from signspot.files.pickles.door import read_metadata
from signspot.stores.corpus import CorpusSource, TimedAnnotation, write_corpus_manifest
from signspot.stores.spottings import cue_times

# What annotators mark that is no word: kept out of the vocabulary.
NO_WORDS = frozenset(("_fingerspelling", "_nosigning", "_pointing", "_lexical_signing"))
_TIMES = ("global_times", "times")


@dataclass(frozen=True, slots=True)
class OffsetRule:
    """Where a sign lies around the time it was found at: the frames [time + start, time + stop) at 25 fps."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not -1000 < self.start < self.stop < 1000:
            raise ValueError(f"no window from {self.start} to {self.stop}")

    def window(self, annotation: TimedAnnotation) -> MillisSpan:
        """The time a sign takes, not before the start of its video."""
        if annotation.time_ms is None:
            raise ValueError(f"{annotation.video_id}: the annotation has a frame, not a time")
        start, stop = (annotation.time_ms + offset * FRAME_MS for offset in (self.start, self.stop))
        return MillisSpan(Millis(max(0, start)), Millis(max(0, stop)))


# How BOBSL's annotations of each source are cut out of its episodes by those who train on them.
OFFSETS: Mapping[str, OffsetRule] = {
    "mouthing": OffsetRule(-15, 4),
    "dictionary": OffsetRule(-3, 22),
    "attention": OffsetRule(-8, 18),
}


@dataclass(frozen=True, slots=True)
class SplitAnnotations:
    """The annotations of each split, the rule of each source, and what was left out."""

    by_split: Mapping[str, tuple[TimedAnnotation, ...]]
    rules: Mapping[str, OffsetRule]
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[TimedAnnotation]:
        return (annotation for annotations in self.by_split.values() for annotation in annotations)


def read_bobsl_spottings(path: Path, source: str, rule: OffsetRule | None = None) -> SplitAnnotations:
    """Read spottings of one source (mouthing, dictionary, attention); the file's own sources, if written here, win."""
    if source not in OFFSETS and rule is None:
        known = ", ".join(OFFSETS)
        raise FormatError(path, f"no offset rule is known for the source {source!r}", f"give one, or use {known}")
    return annotations_from(Node(path, read_json(path)), source, rule or OFFSETS[source])


def annotations_from(tree: Node, source: str, rule: OffsetRule) -> SplitAnnotations:
    """The annotations in a tree {split: {word: {names, times, probs}}}."""
    odd = Oddities()
    rules = {source: rule}
    by_split: dict[str, tuple[TimedAnnotation, ...]] = {}
    for split, words in tree.members().items():
        found: list[TimedAnnotation] = []
        for text, lists in words.members().items():
            if (word := _word(text, lists, odd)) is not None:
                found += _annotations(word, lists, source, rules, odd)
        by_split[split] = tuple(found)
    return SplitAnnotations(by_split, rules, odd.lines())


def _word(text: str, node: Node, odd: Oddities) -> Word | None:
    if text in NO_WORDS:
        odd.note("marks that are no words", text)
        return None
    try:
        text.encode()
        return normalise(text)
    except ValueError:
        odd.note("words that cannot be used", node.place)
        return None


def _annotations(
    word: Word, lists: Node, source: str, rules: dict[str, OffsetRule], odd: Oddities
) -> Iterator[TimedAnnotation]:
    fields = lists.members()
    names = lists.member("names").rows()
    key = next((key for key in _TIMES if key in fields), _TIMES[0])
    times = lists.member(key).rows(len(names))
    probs = fields["probs"].rows(len(names)) if "probs" in fields else None
    sources = [node.name() for node in fields["sources"].rows(len(names))] if "sources" in fields else None
    if "offsets" in fields and sources is not None:
        for each, node in zip(sources, fields["offsets"].rows(len(names)), strict=True):
            rules[each] = _rule(node)
    for row, name in enumerate(names):
        seconds = times[row].number()
        confidence = probs[row].number() if probs else 1.0
        if not 0 <= confidence <= 1 or not 0 <= seconds < 1e6:
            odd.note("annotations with an impossible time or probability", times[row].place)
            continue
        yield TimedAnnotation(
            video_id=episode_id(name),
            word=word,
            time_ms=round(seconds * 1000),
            confidence=confidence,
            source=sources[row] if sources else source,
        )


def _rule(node: Node) -> OffsetRule:
    start, stop = node.rows(2)
    try:
        return OffsetRule(start.integer(), stop.integer())
    except ValueError as error:
        raise node.is_not("window") from error


def episode_id(node: Node) -> str:
    """The id of an episode; show/episode and show--episode are the same."""
    if isinstance(node.value, str):
        node = Node(node.file, node.value.replace("/", "--"), node.place)
    return node.name()


def write_bobsl_spottings(spottings: SplitAnnotations, path: Path, *, overwrite: bool = False) -> None:
    """Write annotations in BOBSL's layout, with their sources and offset rules."""
    content: dict[str, dict[str, dict[str, list[object]]]] = {}
    for split, found in spottings.by_split.items():
        words = content.setdefault(split, {})
        for each in sorted(found, key=lambda a: (a.word, a.video_id, a.time_ms or 0)):
            rule = spottings.rules.get(each.source)
            if each.time_ms is None or rule is None:
                missing = "time, only a frame" if each.time_ms is None else f"offset rule for {each.source!r}"
                raise FormatError(
                    path, f"the annotation of {each.word!r} in {each.video_id} has no {missing}", "give it"
                )
            row = {
                "names": each.video_id,
                "global_times": each.time_ms / 1000,
                "probs": each.confidence,
                "sources": each.source,
                "offsets": [rule.start, rule.stop],
            }
            for key, value in row.items():
                words.setdefault(each.word, {}).setdefault(key, []).append(value)
    write_json(content, path, overwrite=overwrite)


# BSL-1K: the metadata of its release becomes a corpus of ours.
#
# All of it are pickles, read through the quarantine: info (the cut clips), mouthings (where a word was seen on the
# lips), subtitles in either of two layouts, the vocabulary, and which split an episode belongs to. Times are seconds
# of the episode. The episodes themselves are looked for under the corpus folder as show--episode.mp4, show/episode.mp4
# or show/episode/signhd.mp4. The keyword spotter heard American English: its words get their British spelling.


SPLITS = ("train", "val", "test")  # in info, 0, 1 and 2
BRITISH = {
    "airplane": "aeroplane",
    "center": "centre",
    "favor": "favour",
    "gray": "grey",
    "practice": "practise",
    "recognize": "recognise",
    "yogurt": "yoghurt",
}
LANGUAGE = "bfi"
_CLIP = re.compile(r"(.+)_[0-9]{6,}_[0-9]{6,}\.mp4")  # show--episode_start_end.mp4, in seconds
_MAX_SECONDS = 1e6
_MANIFEST, _SUBTITLES = "corpus.json", "subtitles"

Subtitles = Mapping[str, tuple[Subtitle, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bsl1kFiles:
    """The released files at hand; all are optional, but one must name the episodes."""

    info: Path | None = None
    mouthings: Path | None = None
    subtitles: Path | None = None
    vocabulary: Path | None = None  # only its words are kept
    splits: Path | None = None  # subset2episode.pkl


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCorpus:
    """The corpus that was written and its subtitles by episode."""

    corpus: CorpusSource
    subtitles: Subtitles


def read_bsl1k_vocabulary(path: Path) -> Vocabulary:
    """The 1064 words of BSL-1K; the id of a word is its position."""
    tree = Node(path, read_metadata(path))
    nodes = tree.member("words").rows()
    try:
        vocabulary = Vocabulary(tuple(normalise(node.text()) for node in nodes))
    except ValueError as error:
        raise FormatError(path, f"words: {error}", "get the file again") from error
    ids = tree.members().get("words_to_id")
    for text, number in ids.members().items() if ids else ():
        if not 0 <= number.integer() < len(nodes) or nodes[number.integer()].value != text:
            raise number.wrong("is not the position of the word")
    return vocabulary


def read_bsl1k_mouthings(path: Path) -> SplitAnnotations:
    """Where words were seen on the lips: {split: {word: {names, times, probs}}}."""
    found = annotations_from(Node(path, read_metadata(path)), "mouthing", OFFSETS["mouthing"])
    by_split = {split: tuple(map(_british, annotations)) for split, annotations in found.by_split.items()}
    return SplitAnnotations(by_split, found.rules, found.warnings)


def read_bsl1k_info(path: Path) -> SplitAnnotations:
    """The annotations behind the cut clips of info.pkl."""
    videos = Node(path, read_metadata(path)).member("videos")
    names = videos.member("name").rows()
    columns = {
        name: videos.member(name).rows(len(names)) for name in ("word", "split", "mouthing_time", "mouthing_prob")
    }
    by_split: dict[str, list[TimedAnnotation]] = {split: [] for split in SPLITS}
    for row, node in enumerate(names):
        word, split, time, prob = (column[row] for column in columns.values())
        if not 0 <= (number := split.integer()) < len(SPLITS):
            raise split.is_not("split: 0, 1 or 2")
        by_split[SPLITS[number]].append(_british(_mouthing(_clip_episode(node), word, time, prob)))
    return SplitAnnotations({split: tuple(found) for split, found in by_split.items()}, OFFSETS)


def _clip_episode(node: Node) -> str:
    match = _CLIP.fullmatch(node.text().rpartition("/")[2])
    if match is None:
        raise node.is_not("name of a clip (show--episode_start_end.mp4)")
    return Node(node.file, match[1], node.place).name()


def _mouthing(video_id: str, word: Node, time: Node, prob: Node) -> TimedAnnotation:
    try:
        return TimedAnnotation(
            video_id=video_id,
            word=normalise(word.text()),
            time_ms=round(_seconds(time) * 1000),
            confidence=prob.number(),
            source="mouthing",
        )
    except ValueError as error:
        raise word.wrong(str(error)) from error


def _british(annotation: TimedAnnotation) -> TimedAnnotation:
    return dataclasses.replace(annotation, word=Word(BRITISH.get(annotation.word, annotation.word)))


def _seconds(node: Node) -> float:
    seconds = node.number()
    if not 0 <= seconds < _MAX_SECONDS:
        raise node.is_not("time in seconds")
    return seconds


def read_bsl1k_subtitles(path: Path) -> Subtitles:
    """The subtitles of every episode in the order of time, from {split: {columns}} or {episode: [cues]}."""
    found: dict[str, list[Subtitle]] = {}
    for name, node in Node(path, read_metadata(path)).members().items():
        cues = _columns(node) if isinstance(node.value, dict) else _cues(name, node)
        for video_id, subtitle in cues:
            found.setdefault(video_id, []).append(subtitle)
    return {video_id: tuple(sorted(cues, key=lambda cue: cue.span_ms)) for video_id, cues in sorted(found.items())}


def _columns(split: Node) -> Iterator[tuple[str, Subtitle]]:
    names = split.member("name").rows()
    columns = [split.member(key).rows(len(names)) for key in ("start_time", "end_time", "subtitle")]
    for name, start, end, text in zip(names, *columns, strict=True):
        yield episode_id(name), _subtitle(start, end, text.text())


def _cues(name: str, episode: Node) -> Iterator[tuple[str, Subtitle]]:
    video_id = episode_id(Node(episode.file, name, "the episode"))
    for cue in episode.rows():
        span = cue.member("span")
        parts = [span] if isinstance(span.value, dict) else span.rows()
        text = "".join(part.member("text").text_or_nothing() for part in parts)
        yield video_id, _subtitle(cue.member("start"), cue.member("end"), text)


def _subtitle(start: Node, end: Node, text: str) -> Subtitle:
    first, last = _seconds(start), _seconds(end)
    if last < first:
        raise end.wrong("lies before the start of its subtitle")
    return Subtitle(MillisSpan.of(first * 1000, last * 1000), " ".join(text.split()))


def read_bsl1k_splits(path: Path) -> Mapping[str, str]:
    """Which split each episode belongs to, from {split: [show/episode, ...]}."""
    splits: dict[str, str] = {}
    for split, node in Node(path, read_metadata(path)).members().items():
        for episode in node.rows():
            if splits.setdefault(episode_id(episode), split) != split:
                raise episode.wrong(f"is in two splits: {episode.value!r}")
    return splits


def import_bsl1k(files: Bsl1kFiles, folder: Path, *, overwrite: bool = False) -> ImportedCorpus:
    """Write corpus.json and subtitles/*.vtt into the folder of the episodes."""
    refuse_existing(folder / _MANIFEST, overwrite=overwrite)
    sets = [read_bsl1k_mouthings(files.mouthings)] if files.mouthings else []
    sets += [read_bsl1k_info(files.info)] if files.info else []
    subtitles = read_bsl1k_subtitles(files.subtitles) if files.subtitles else {}
    splits = dict(read_bsl1k_splits(files.splits)) if files.splits else {}
    for split, annotation in ((s, a) for each in sets for s, found in each.by_split.items() for a in found):
        splits.setdefault(annotation.video_id, split)
    episodes, problems = _episodes({**dict.fromkeys(subtitles, ""), **splits}, Place(folder))
    if not episodes:
        what = f"none of the {len(problems)} episodes of BSL-1K is there"
        raise FormatError(folder, what, "put the videos there as show--episode.mp4")
    kept = {episode.video_id for episode in episodes}
    vocabulary = read_bsl1k_vocabulary(files.vocabulary) if files.vocabulary else None
    annotations = _kept((a for each in sets for a in each), kept, vocabulary)
    own = {video_id: cues for video_id, cues in subtitles.items() if video_id in kept}
    written = _write_subtitles(own, folder / _SUBTITLES, overwrite=overwrite)
    problems += [Problem(str(files.mouthings), line) for each in sets for line in each.warnings]
    complete = tuple(dataclasses.replace(each, subtitles=written.get(each.video_id)) for each in episodes)
    corpus = CorpusSource(complete, annotations, tuple(problems))
    write_corpus_manifest(corpus, folder / _MANIFEST, overwrite=overwrite)
    return ImportedCorpus(corpus=corpus, subtitles=own)


def _episodes(splits: Mapping[str, str], place: Place) -> tuple[list[Episode], list[Problem]]:
    """The episodes whose videos are there; one problem for each that is not."""
    episodes: list[Episode] = []
    problems: list[Problem] = []
    for video_id, split in sorted(splits.items()):
        show, _, episode = video_id.partition("--")
        for name in (f"{video_id}.mp4", f"{show}/{episode}.mp4", f"{show}/{episode}/signhd.mp4"):
            try:
                video = place.find(name).path
            except ValueError:
                continue
            episodes.append(Episode(video_id=video_id, video=video, language=LANGUAGE, split=split))
            break
        else:
            problems.append(Problem(video_id, "the video of this episode is not there", f"add {video_id}.mp4"))
    return episodes, problems


def _kept(
    annotations: Iterable[TimedAnnotation], episodes: set[str], vocabulary: Vocabulary | None
) -> tuple[TimedAnnotation, ...]:
    """The annotations of these episodes and words, each once: a clip of info is a mouthing that was cut out."""
    unique: dict[tuple[str, int | None, Word], TimedAnnotation] = {}
    for each in annotations:
        if each.video_id in episodes and (vocabulary is None or each.word in vocabulary):
            unique.setdefault((each.video_id, each.time_ms, each.word), each)
    return tuple(unique[key] for key in sorted(unique, key=lambda key: (key[0], key[1] or 0, key[2])))


def _write_subtitles(subtitles: Subtitles, folder: Path, *, overwrite: bool) -> dict[str, Path]:
    written: dict[str, Path] = {}
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise explained(error, folder) from error
    for video_id, cues in subtitles.items():
        path = written[video_id] = folder / f"{video_id}.vtt"
        with atomic_output(path, overwrite=overwrite) as temporary:
            temporary.write_text("\n\n".join(("WEBVTT", *map(_vtt, cues))) + "\n", encoding="utf-8", newline="\n")
    return written


def _vtt(cue: Subtitle) -> str:
    # A control character may end a line, or the whole file, in one player or another.
    text = "".join(c if c.isprintable() else " " for c in cue.text)
    return f"{cue_times(cue.span_ms)}\n{html.escape(' '.join(text.split()), quote=False)}"
