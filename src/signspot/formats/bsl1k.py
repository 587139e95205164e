"""BSL-1K: the metadata of its release becomes a corpus of ours.

All of it are pickles, read through the quarantine: info (the cut clips), mouthings (where a word was seen on the lips),
subtitles in either of two layouts, the vocabulary, and which split an episode belongs to. Times are seconds of the
episode. The episodes themselves are looked for under the corpus folder as show--episode.mp4, show/episode.mp4 or
show/episode/signhd.mp4. The keyword spotter heard American English: its words get their British spelling.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from signspot.atomic import atomic_output, explained, refuse_existing
from signspot.domain.corpus import Episode, Subtitle
from signspot.domain.spans import MillisSpan
from signspot.domain.words import Vocabulary, Word, normalise
from signspot.errors import FormatError
from signspot.formats.bobsl import OFFSETS, SplitAnnotations, annotations_from, episode_id
from signspot.formats.corpus_source import CorpusSource, TimedAnnotation, write_corpus_manifest
from signspot.formats.places import Place, Problem
from signspot.formats.plain_data import Node
from signspot.formats.spotting_rows import cue_times
from signspot.quarantine.load import read_metadata

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
