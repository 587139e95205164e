"""Sparse annotations as BSL-1K and BOBSL publish them: {split: {word: {names, times, probs}}}, in seconds.

BOBSL calls its times global_times. A time is one moment of a sign, and which moment depends on what found it: a
mouthing is found at its end, a dictionary match at its start. `OffsetRule` says so for each source; the annotation
itself keeps the time as it was published. Files written here carry two more lists, sources and offsets, which other
readers ignore.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.spans import FRAME_MS, Millis, MillisSpan
from signspot.domain.words import Word, normalise
from signspot.errors import FormatError
from signspot.formats.corpus_source import TimedAnnotation
from signspot.formats.oddities import Oddities
from signspot.formats.plain_data import Node
from signspot.formats.safe_json import read_json, write_json

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
