"""From subtitles and annotations to labelled passages (Paper 4.1).

A passage is a subtitle longer than 2 s with 2 s on both sides. An annotation labels the passages that hold it and whose
subtitle mentions its word. Where none mentions it, it labels the passage whose subtitle is on screen at that moment,
and its word stands before those of the subtitle: a sign that the subtitles leave out is still a sign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from signspot.domain.corpus import Annotation, Subtitle
from signspot.domain.spans import FrameSpan, TimeAxis
from signspot.domain.words import Vocabulary, Word
from signspot.learning.material import Passages
from signspot.text.tokenise import find_words


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageOptions:
    """What counts as a passage; the defaults are the paper's (4.1)."""

    padding_ms: int = 2000  # on both sides of a subtitle
    min_subtitle_ms: int = 2000  # a subtitle is longer than this
    language: str = "en"  # of the subtitles


@dataclass(frozen=True, slots=True, eq=False)
class Footage:
    """One video with what is written and known about it."""

    video_id: str
    axis: TimeAxis
    subtitles: Sequence[Subtitle]
    annotations: Sequence[Annotation]


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """One passage with one label."""

    name: str
    span: FrameSpan
    annotation: Annotation
    words: tuple[Word, ...]  # in the order of their mentions, repeats included, the label's among them


@dataclass(frozen=True, slots=True, eq=False)
class FoundPassages:
    """The passages of a video, and how many annotations label none, by reason."""

    passages: tuple[LabelledPassage, ...]
    left_out: Counter[str]


def labelled_passages(footage: Footage, vocabulary: Vocabulary, options: PassageOptions) -> FoundPassages:
    """Every (subtitle, annotation) pair of a video that can be learned from, in the order of the annotations."""
    longer = [cue for cue in footage.subtitles if cue.span_ms.duration > options.min_subtitle_ms]
    starts, stops = (np.array([getattr(cue.span_ms, end) for cue in longer]) for end in ("start", "stop"))
    mentions: dict[int, tuple[Word, ...]] = {}
    left_out: Counter[str] = Counter()
    found: list[LabelledPassage] = []
    for annotation in footage.annotations:
        time_ms = footage.axis.time_of(annotation.frame)
        is_near = (starts - options.padding_ms <= time_ms) & (time_ms < stops + options.padding_ms)
        near = [int(number) for number in np.flatnonzero(is_near)]
        for number in near:
            if number not in mentions:
                words = find_words(longer[number].text, vocabulary, options.language)
                mentions[number] = tuple(mention.word for mention in words)
        chosen = [number for number in near if annotation.word in mentions[number]]
        chosen = chosen or [number for number in near if starts[number] <= time_ms < stops[number]]
        if annotation.word not in vocabulary:
            left_out["the dictionary has no entry for the word"] += 1
        elif not near:
            left_out[f"no subtitle of over {options.min_subtitle_ms / 1000:g} s is near"] += 1
        elif not chosen:
            left_out["it lies between subtitles that do not mention its word"] += 1
        else:
            found += (_passage(footage, longer[number], annotation, mentions[number], options) for number in chosen)
    return FoundPassages(tuple(found), left_out)


def _passage(
    footage: Footage, cue: Subtitle, annotation: Annotation, words: tuple[Word, ...], options: PassageOptions
) -> LabelledPassage:
    span = footage.axis.frames_in(cue.span_ms.padded(options.padding_ms, options.padding_ms))
    all_words = words if annotation.word in words else (annotation.word, *words)
    name = f"{footage.video_id} at {cue.span_ms.start / 1000:.3f} s, {annotation.word} at frame {annotation.frame}"
    return LabelledPassage(name, span, annotation, all_words)


def passage_columns(by_track: Sequence[Iterable[LabelledPassage]], vocabulary: Vocabulary) -> Passages:
    """The passages of all tracks as the columns of training material."""
    numbered = [(track, passage) for track, passages in enumerate(by_track) for passage in passages]
    columns = np.array(
        [
            (track, p.span.start, p.span.stop, vocabulary.id_of(p.annotation.word), p.annotation.frame)
            for track, p in numbered
        ],
        np.int64,
    ).reshape(-1, 5)
    track, start, stop, label, label_frame = np.ascontiguousarray(columns.T)
    return Passages(
        names=tuple(passage.name for _, passage in numbered),
        track=track,
        start=start,
        stop=stop,
        label=label,
        label_frame=label_frame,
        confidence=np.array([passage.annotation.confidence for _, passage in numbered], np.float32),
        word_offsets=np.cumsum([0, *(len(passage.words) for _, passage in numbered)], dtype=np.int64),
        words=np.array([vocabulary.id_of(word) for _, passage in numbered for word in passage.words], np.int64),
    )
