"""Sparse annotations as BSL-1K and BOBSL publish them: {split: {word: {names, times, probs}}}, in seconds.

BOBSL calls its times global_times. A time is one moment of a sign, and which moment depends on what found it: a
mouthing is found at its end, a dictionary match at its start. `OffsetRule` says so for each source; the annotation
itself keeps the time as it was published. Files written here carry two more lists, sources and offsets, which other
readers ignore. `import_corpus` makes a corpus of ours from such a file and the videos it is about.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.recordings import Episode, Subtitle, Vocabulary, Word, normalise
from signspot.domain.time import FRAME_MS, MillisSpan
from signspot.errors import FormatError, Notice
from signspot.files.atomic import explained, refuse_existing
from signspot.files.intake import RECORDING_SUFFIXES, Found, Oddities, Place, is_folder, read_whole, recordings
from signspot.files.json import Node, parse_json, write_json
from signspot.files.pickles.door import read_metadata
from signspot.formats.captions import write_subtitles
from signspot.formats.challenge import PICKLE_SUFFIXES, challenge_spans
from signspot.stores.corpus import SUBTITLE_SUFFIXES, CorpusSource, TimedAnnotation

# What annotators mark that is no word: kept out of the vocabulary.
_NO_WORDS = frozenset(("_fingerspelling", "_nosigning", "_pointing", "_lexical_signing"))
_TIMES = ("global_times", "times")
_MAX_BYTES = 600_000_000  # the six million dictionary spottings of BOBSL are a file of some 400 MB


@dataclass(frozen=True, slots=True)
class OffsetRule:
    """Where a sign lies around the time it was found at: the frames [time + start, time + stop) at 25 fps."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not -1000 < self.start < self.stop < 1000:
            raise ValueError(f"no window from {self.start} to {self.stop}")


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

    def write(self, path: Path, *, overwrite: bool = False) -> None:
        content: dict[str, dict[str, dict[str, list[object]]]] = {}
        for split, found in self.by_split.items():
            words = content.setdefault(split, {})
            for each in sorted(found, key=lambda a: (a.word, a.video_id, a.time_ms or 0)):
                rule = self.rules.get(each.source)
                if each.time_ms is None or rule is None:
                    missing = "time, only a frame" if each.time_ms is None else f"offset rule for {each.source!r}"
                    what = f"the annotation of {each.word!r} in {each.video_id} has no {missing}"
                    raise FormatError(path, what, "give it")
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


def _tree(path: Path) -> Node:
    """What a released file holds; a pickle is read through the quarantine."""
    if path.suffix.lower() in PICKLE_SUFFIXES:
        return Node(path, read_metadata(path))
    return Node(path, parse_json(read_whole(path, _MAX_BYTES), path))


def _annotations_from(tree: Node, source: str, rule: OffsetRule) -> SplitAnnotations:
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
    if text in _NO_WORDS:
        odd.note("marks that are not words", text)
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
        seconds, confidence = times[row].number(), probs[row].number() if probs else 1.0
        if not 0 <= confidence <= 1 or not 0 <= seconds < _MAX_SECONDS:
            odd.note("annotations with an impossible time or probability", times[row].place)
            continue
        yield _annotation(_episode_id(name), word, seconds, confidence, sources[row] if sources else source)


def _annotation(video_id: str, word: Word, seconds: float, confidence: float, source: str) -> TimedAnnotation:
    time_ms = round(seconds * 1000)
    return TimedAnnotation(video_id=video_id, word=word, time_ms=time_ms, confidence=confidence, source=source)


def _rule(node: Node) -> OffsetRule:
    start, stop = node.rows(2)
    try:
        return OffsetRule(start.integer(), stop.integer())
    except ValueError as error:
        raise node.is_not("window") from error


def _episode_id(node: Node) -> str:
    """The id of an episode; show/episode and show--episode are the same."""
    if isinstance(node.value, str):
        node = Node(node.file, node.value.replace("/", "--"), node.place)
    return node.name()


# A released corpus becomes one of ours. BSL-1K's metadata are pickles: info (the cut clips), mouthings (where a word
# was seen on the lips), subtitles in either of two layouts, the vocabulary, and which split an episode belongs to.
# BOBSL has JSON, and from its version 1.4 on pickles of columns. Times are seconds of the episode. The keyword spotter
# of BSL-1K heard American English: its words get their British spelling. The truth of the 2022 challenge has spans and
# numbers for words.

_SPLITS = ("train", "val", "test")  # in info, 0, 1 and 2
_BRITISH = {
    "airplane": "aeroplane", "center": "centre", "favor": "favour", "gray": "grey", "practice": "practise",
    "recognize": "recognise", "yogurt": "yoghurt",
}  # fmt: skip
_LANGUAGE = "bfi"
_CLIP = re.compile(r"(.+)_[0-9]{6,}_[0-9]{6,}\.mp4")  # show--episode_start_end.mp4, in seconds
_MAX_SECONDS = 1e6
_MANIFEST, _SUBTITLES = "corpus.json", "subtitles"
_WHOLE_EPISODE = "signhd"  # show/episode/signhd.mp4 is the episode

Subtitles = Mapping[str, tuple[Subtitle, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedCorpus:
    """The released files at hand, and what they do not say themselves."""

    annotations: Path
    videos: Path | None = None  # a folder in that of the corpus; None: the latter itself
    subtitles: Path | None = None  # a folder of subtitle files in that of the corpus, or BSL-1K's pickle
    vocabulary: Path | None = None  # only its words are kept; those of the challenge are numbered by it
    splits: Path | None = None  # subset2episode.pkl or .json
    source: str = ""  # of the annotations; "": as the name of their file says
    rule: OffsetRule | None = None  # of that source; None: as it is known
    min_confidence: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _ImportedCorpus:
    """The corpus that was written, and what could not be used for want of a video."""

    corpus: CorpusSource  # its problems include the missing videos
    missing_videos: int
    left_out: int  # annotations of missing videos


def _read_vocabulary(path: Path) -> Vocabulary:
    """The words of BSL-1K or BOBSL, or of a text with a word a line; the id of a word is its position."""
    if path.suffix.lower() in (".txt", ".csv", ""):
        lines = [line.strip() for line in read_whole(path).decode("utf-8-sig", "replace").splitlines()]
        tree = Node(path, {"words": [line for line in lines if line]})
    else:
        tree = _tree(path)
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


def _clips(info: Node) -> SplitAnnotations:
    videos = info.member("videos")
    names = videos.member("name").rows()
    keys = ("word", "split", "mouthing_time", "mouthing_prob")
    columns = [videos.member(key).rows(len(names)) for key in keys]
    by_split: dict[str, list[TimedAnnotation]] = {split: [] for split in _SPLITS}
    for row, node in enumerate(names):
        word, split, time, prob = (column[row] for column in columns)
        if not 0 <= (number := split.integer()) < len(_SPLITS):
            raise split.is_not("split: 0, 1 or 2")
        if (clip := _CLIP.fullmatch(node.text().rpartition("/")[2])) is None:
            raise node.is_not("name of a clip (show--episode_start_end.mp4)")
        video_id, seconds = Node(node.file, clip[1], node.place).name(), _seconds(time)
        try:
            found = _annotation(video_id, normalise(word.text()), seconds, prob.number(), "mouthing")
        except ValueError as error:
            raise word.wrong(str(error)) from error
        by_split[_SPLITS[number]].append(_british(found))
    return SplitAnnotations({split: tuple(found) for split, found in by_split.items()}, OFFSETS)


def _british(annotation: TimedAnnotation) -> TimedAnnotation:
    return dataclasses.replace(annotation, word=Word(_BRITISH.get(annotation.word, annotation.word)))


def _seconds(node: Node) -> float:
    seconds = node.number()
    if not 0 <= seconds < _MAX_SECONDS:
        raise node.is_not("time in seconds")
    return seconds


def _read_bsl1k_subtitles(path: Path) -> Subtitles:
    """The subtitles of every episode in the order of time, from {split: {columns}} or {episode: [cues]}."""
    found: dict[str, list[Subtitle]] = {}
    for name, node in _tree(path).members().items():
        cues = _columns(node) if isinstance(node.value, dict) else _cues(name, node)
        for video_id, subtitle in cues:
            found.setdefault(video_id, []).append(subtitle)
    return {video_id: tuple(sorted(cues, key=lambda cue: cue.span_ms)) for video_id, cues in sorted(found.items())}


def _columns(split: Node) -> Iterator[tuple[str, Subtitle]]:
    names = split.member("name").rows()
    columns = [split.member(key).rows(len(names)) for key in ("start_time", "end_time", "subtitle")]
    for name, start, end, text in zip(names, *columns, strict=True):
        yield _episode_id(name), _subtitle(start, end, text.text())


def _cues(name: str, episode: Node) -> Iterator[tuple[str, Subtitle]]:
    video_id = _episode_id(Node(episode.file, name, "the episode"))
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


def _read_splits(path: Path) -> Mapping[str, str]:
    """Which split each episode belongs to, from {split: [show/episode, ...]}."""
    splits: dict[str, str] = {}
    for split, node in _tree(path).members().items():
        for episode in node.rows():
            if splits.setdefault(_episode_id(episode), split) != split:
                raise episode.wrong(f"is in two splits: {episode.value!r}")
    return splits


def _read_released(files: ReleasedCorpus, vocabulary: Vocabulary | None = None) -> SplitAnnotations:
    """The annotations of a released file, whichever it is; `vocabulary` numbers the words of the challenge."""
    tree, path = _tree(files.annotations), files.annotations
    members = tree.members()
    if "videos" in members:
        return _clips(tree)
    if "episode_name" not in members and all(isinstance(node.value, list | tuple) for node in members.values()):
        return _challenge(tree, vocabulary)
    named = [source for source in OFFSETS if source[:4] in path.name.lower()]  # mouthing_spottings.json, ...
    if not files.source and len(named) != 1:
        what = "its name does not say what found its annotations, and so where a sign lies around its time"
        raise FormatError(path, what, f"give --source: {', '.join(OFFSETS)}")
    source = files.source or named[0]
    if (rule := files.rule or OFFSETS.get(source)) is None:
        fix = f"give one, or use {', '.join(OFFSETS)}"
        raise FormatError(path, f"no offset rule is known for the source {source!r}", fix)
    if "episode_name" in members:
        return _from_columns(tree, source, rule)
    found = _annotations_from(tree, source, rule)
    if path.suffix.lower() not in PICKLE_SUFFIXES:
        return found
    by_split = {split: tuple(map(_british, marks)) for split, marks in found.by_split.items()}
    return dataclasses.replace(found, by_split=by_split)


def _from_columns(tree: Node, source: str, rule: OffsetRule) -> SplitAnnotations:
    """BOBSL 1.4: {episode_name, annot_word, annot_time, annot_prob}, of which no split is known."""
    names = tree.member("episode_name").rows()
    words, times = (tree.member(name).rows(len(names)) for name in ("annot_word", "annot_time"))
    probs = tree.members().get("annot_prob")
    all_probs = probs.rows(len(names)) if probs else None
    odd = Oddities()
    found: list[TimedAnnotation] = []
    for row, name in enumerate(names):
        seconds, confidence = times[row].number(), all_probs[row].number() if all_probs else 1.0
        if not 0 <= confidence <= 1 or not 0 <= seconds < _MAX_SECONDS:
            odd.note("annotations with an impossible time or probability", times[row].place)
        elif (word := _word(words[row].text(), words[row], odd)) is not None:
            video = Node(name.file, name.text().removesuffix(".mp4"), name.place)
            found.append(_annotation(_episode_id(video), word, seconds, confidence, source))
    return SplitAnnotations({"": tuple(found)}, {source: rule}, odd.lines())


def _challenge(tree: Node, vocabulary: Vocabulary | None) -> SplitAnnotations:
    """The truth of the 2022 challenge: a sign is taken to be in the middle of its span, as in our own tables."""
    if vocabulary is None:
        fix = "give them with --vocabulary: a text with a word a line, the first for 0"
        raise FormatError(tree.file, "has numbers in place of words", fix)
    found: list[TimedAnnotation] = []
    for video_id, spans in challenge_spans(tree).items():
        for one in spans:
            if not 0 <= one.sign < len(vocabulary):
                what = f"{video_id} has the class {one.sign}, and the vocabulary {len(vocabulary)} words"
                raise FormatError(tree.file, what, "give the vocabulary the classes were numbered by")
            time_ms = round((one.span_ms.start + one.span_ms.stop) / 2)
            word = vocabulary.words[one.sign]
            found.append(TimedAnnotation(video_id=video_id, word=word, time_ms=time_ms))
    return SplitAnnotations({"": tuple(found)}, {})


def import_corpus(files: ReleasedCorpus, folder: Path, *, overwrite: bool = False) -> _ImportedCorpus:
    """Write corpus.json, and subtitles/*.vtt from a pickle of subtitles, into a folder at or above the videos."""
    refuse_existing(folder / _MANIFEST, overwrite=overwrite)
    videos = _inside(files.videos or folder, folder)
    vocabulary = _read_vocabulary(files.vocabulary) if files.vocabulary else None
    found = _read_released(files, vocabulary)
    splits = dict(_read_splits(files.splits)) if files.splits else {}
    for split, annotation in ((split, each) for split, marks in found.by_split.items() for each in marks):
        splits.setdefault(annotation.video_id, split)
    cues: Subtitles = {}
    written: dict[str, Path] = {}
    if files.subtitles is not None and is_folder(files.subtitles):
        beside = _by_name(Place(_inside(files.subtitles, folder)), SUBTITLE_SUFFIXES)
        written = {name: there[0].path for name, there in beside.items()}
    elif files.subtitles is not None:
        cues = _read_bsl1k_subtitles(files.subtitles)
    language = _LANGUAGE if found.rules else ""  # the challenge is of another
    episodes, problems = _episodes({**dict.fromkeys(cues, ""), **splits}, Place(videos), language)
    if not episodes:
        what = f"none of the {len(problems)} videos of {files.annotations.name} is there"
        example = f", such as {problems[0].where}.mp4" if problems else ""
        raise FormatError(videos, what, f"put them there under their names{example}")
    kept = {episode.video_id for episode in episodes}
    annotations = _kept(found, kept, vocabulary, files.min_confidence)
    own = {video_id: of_video for video_id, of_video in cues.items() if video_id in kept}
    written |= _write_subtitles(own, folder / _SUBTITLES, overwrite=overwrite) if own else {}
    complete = tuple(dataclasses.replace(each, subtitles=written.get(each.video_id)) for each in episodes)
    odd = (Notice(str(files.annotations), line) for line in found.warnings)
    corpus = CorpusSource(complete, annotations, (*problems, *odd))
    try:
        corpus.write_manifest(folder / _MANIFEST, overwrite=overwrite)
    except FormatError as error:
        fix = "keep fewer annotations: give --confidence or --vocabulary"
        raise FormatError(error.where, error.what, fix) from error
    left_out = sum(annotation.video_id not in kept for annotation in found)
    missing = sum(problem.severity == "warning" for problem in problems)
    return _ImportedCorpus(corpus=corpus, missing_videos=missing, left_out=left_out)


def _inside(inner: Path, folder: Path) -> Path:
    """A folder in, or the same as, that of the corpus: a corpus names files from its own folder."""
    if not is_folder(inner):
        raise FormatError(inner, "no such folder", "name the folder the videos are in")
    if not inner.resolve().is_relative_to(folder.resolve()):
        fix = "choose a folder for the corpus that lies above its videos and subtitles"
        raise FormatError(inner, f"does not lie in {folder}", fix)
    return folder / inner.resolve().relative_to(folder.resolve())


def _by_name(place: Place, suffixes: Collection[str]) -> dict[str, list[Found]]:
    """The files under a folder by what an episode may be called: one, show--one for show/one and show/one/signhd."""
    found: dict[str, list[Found]] = {}
    waiting: list[Found | None] = [None]
    while waiting:
        listing = place.listing(waiting.pop())
        waiting += reversed(listing.folders)
        for file in (file for file in listing.files if file.suffix in suffixes):
            parts = file.name.removesuffix(file.path.suffix).removesuffix(f"/{_WHOLE_EPISODE}").split("/")
            for name in dict.fromkeys((parts[-1], "--".join(parts[-2:]))):
                found.setdefault(name, []).append(file)
    return found


def _episodes(splits: Mapping[str, str], place: Place, language: str) -> tuple[list[Episode], list[Notice]]:
    files = _by_name(place, RECORDING_SUFFIXES)
    episodes: list[Episode] = []
    problems: list[Notice] = []
    for video_id, split in sorted(splits.items()):
        there, _ = recordings(files.get(video_id, ()))
        if not there:
            problems.append(Notice(video_id, "the video of this episode is not there", f"add {video_id}.mp4"))
            continue
        if len(there) > 1:
            what = f"{len(there)} videos have this name; {there[0].name} is used"
            problems.append(Notice(video_id, what, "remove the others", severity="note"))
        episodes.append(Episode(video_id=video_id, video=there[0].path, language=language, split=split))
    return episodes, problems


def _kept(
    found: SplitAnnotations, episodes: Collection[str], vocabulary: Vocabulary | None, min_confidence: float
) -> tuple[TimedAnnotation, ...]:
    """The annotations of these episodes and words, each once, at the moment at which a mouthing would be found.

    That moment, near the end of a sign, is where training and evaluation take the annotations of a corpus to be.
    """
    later = {source: (rule.stop - OFFSETS["mouthing"].stop) * FRAME_MS for source, rule in found.rules.items()}
    unique: dict[tuple[str, int, Word], TimedAnnotation] = {}
    for each in found:
        is_wanted = each.confidence >= min_confidence and (vocabulary is None or each.word in vocabulary)
        if is_wanted and each.video_id in episodes:
            time_ms = max(0, (each.time_ms or 0) + later.get(each.source, 0))
            unique.setdefault((each.video_id, time_ms, each.word), dataclasses.replace(each, time_ms=time_ms))
    return tuple(unique[key] for key in sorted(unique))


def _write_subtitles(subtitles: Subtitles, folder: Path, *, overwrite: bool) -> dict[str, Path]:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise explained(error, folder) from error
    paths = {video_id: folder / f"{video_id}.vtt" for video_id in subtitles}
    for video_id, path in paths.items():
        write_subtitles(subtitles[video_id], path, overwrite=overwrite)
    return paths
