"""Where the words of the subtitles are signed, all together: spans never overlap, each mention is explained once.

Every mention of a word in a subtitle is looked for around that subtitle, as in `spot`; the places that pass are
candidates, and of all consistent choices of candidates the one of the highest total score is taken. The score of a
candidate is by how much it passes: log odds above those of the least probability, or without a calibration, cosine
above the threshold. The other words of a subtitle count against a place that resembles them as well: in where a mention
would be signed, which is said of each, found or not, and in the choice, unless probabilities are known (decision 18).
"""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.recordings import Annotation, Dictionary, Episode, Subtitle, Vocabulary, Word
from signspot.domain.results import Spotting, VideoAnswer, WordAnswer
from signspot.domain.time import FrameSpan, MillisSpan, Tolerance
from signspot.domain.tracks import FloatArray
from signspot.embedding.model import Model
from signspot.errors import InputError
from signspot.spotting.annotate import Candidate, SubtitleLag, best_explanation, likely_windows, shares
from signspot.spotting.peaks import middle_of, parted, window_near
from signspot.spotting.presence import DECIMALS
from signspot.spotting.search import Query
from signspot.stores.spottings import answer_record
from signspot.text.subtitles import read_subtitles
from signspot.text.words import find_words, words_beside
from signspot.workflows.spot import SpotOptions, opened_search, prepare, spot_prepared

_MOST_PLACES = 6  # candidates of a mention: the best few
_SURE = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class LikelyPlace:
    """Where a word would be signed, if it is: it resembles this moment, and the subtitle's other words do so less."""

    time_ms: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Mention:
    """A word in a subtitle, and where it is signed, if it is."""

    word: Word
    subtitle: Subtitle
    spotting: Spotting | None = None
    best_frame: int | None = None  # the centre of the most similar window around the subtitle, found or not
    likely: LikelyPlace | None = None  # found or not; None: nothing could be compared


@dataclass(frozen=True, slots=True, eq=False)
class Annotated:
    """A video with its subtitles explained; iterating gives the spottings in order of time."""

    answer: VideoAnswer
    mentions: tuple[Mention, ...]  # in the order of the subtitles
    lag: SubtitleLag
    unlisted: Mapping[Word, int]  # the words of the subtitles that the dictionary lacks, and how often; frequent first

    def __iter__(self) -> Iterator[Spotting]:
        return iter(self.answer)

    @property
    def n_explained(self) -> int:
        return len(self.mentions) - len(self.unexplained)

    @property
    def unexplained(self) -> tuple[Mention, ...]:
        return tuple(mention for mention in self.mentions if mention.spotting is None)

    def record(self, known: KnownWords | None = None) -> dict[str, object]:
        """For scripts: what `answer_record` says of the answer, and which mentions were explained."""
        return answer_record(self.answer) | {
            "mentions": len(self.mentions),
            "explained": self.n_explained,
            "unexplained": [
                {
                    "word": mention.word,
                    "subtitle_start_ms": mention.subtitle.span_ms.start,
                    "subtitle_stop_ms": mention.subtitle.span_ms.stop,
                    "subtitle": mention.subtitle.text,
                    "likely_ms": None if mention.likely is None else mention.likely.time_ms,
                    "likely_cosine": None if mention.likely is None else mention.likely.cosine,
                }
                for mention in self.unexplained
            ],
            "not_in_dictionary": [{"word": word, "mentions": n} for word, n in self.unlisted.items()],
            "lag_ms": self.lag.lag_ms,
            "drift": self.lag.drift,
            "known_words": None if known is None else dataclasses.asdict(known) | {"accuracy": known.accuracy},
        }


@dataclass(frozen=True, slots=True)
class KnownWords:
    """How often a word that is known to be signed near its subtitle is found at the right frame (Paper 4.2)."""

    n: int  # annotations near a subtitle that mentions their word
    n_localised: int  # where the most similar window is right
    n_explained: int  # where a sign was chosen
    n_right: int  # and it is right

    def __add__(self, other: KnownWords) -> KnownWords:
        return KnownWords(*map(operator.add, dataclasses.astuple(self), dataclasses.astuple(other)))

    @property
    def accuracy(self) -> float | None:
        return self.n_localised / self.n if self.n else None


def annotate(
    video: Path | str,
    *,
    subtitles: Path | str | Sequence[Subtitle],
    dictionary: Dictionary | None = None,
    model: Model | None = None,
    options: SpotOptions = SpotOptions(),
) -> Annotated:
    """Find where the words of the subtitles are signed, consistently.

    Without a dictionary, or for words that it lacks, the signs that the model learned are looked for. Without a model,
    the one that can see all recordings is used.
    """
    warnings: tuple[str, ...] = ()
    if isinstance(subtitles, Path | str):
        read = read_subtitles(Path(subtitles))
        subtitles, warnings = read.subtitles, read.in_short
    reading, noticed = options.reading.collecting()
    options = dataclasses.replace(options, subtitles=tuple(subtitles), reading=reading)
    path = Path(video)
    model, dictionary, options = opened_search(path, dictionary, model, options, are_named=False)
    query = prepare((), dictionary, model, options)
    found = annotate_prepared(Episode(video_id=path.stem, video=path), query, model, options)
    answer = dataclasses.replace(found.answer, warnings=(*map(str, noticed), *warnings, *found.answer.warnings))
    return dataclasses.replace(found, answer=answer)


def annotate_prepared(episode: Episode, query: Query, model: Model, options: SpotOptions) -> Annotated:
    """Explain the subtitles of one video with a prepared query."""
    if options.subtitles is None:
        raise InputError(episode.video, "no subtitles to explain", "give --subtitles")
    # Which word a moment is given to is decided for all mentions together.
    answer = spot_prepared(episode, query, model, dataclasses.replace(options, compete=False))
    return explained(answer, options, query.dictionary.vocabulary)


def explained(answer: VideoAnswer, options: SpotOptions, vocabulary: Vocabulary) -> Annotated:
    """Choose, among all findings of an answer, those that explain the subtitles best together."""
    by_word = {word.word: word for word in answer.words}
    heard = [one for subtitle in options.subtitles or () for one in _heard(subtitle, by_word, options, vocabulary)]
    places = [place for number, one in enumerate(heard) for place in one.places(number, answer)]
    chosen = _parted([places[place] for place in best_explanation([one.candidate for one in places])], answer)
    taken = {one.candidate.mention: one.spotting for one in chosen}
    mentions = tuple(one.mention(taken.get(number)) for number, one in enumerate(heard))
    words = tuple(
        dataclasses.replace(word, spottings=tuple(one.spotting for one in chosen if one.spotting.word == word.word))
        for word in answer.words
    )
    answer = dataclasses.replace(answer, words=words)
    texts = (subtitle.text for subtitle in options.subtitles or ())
    unlisted = Counter(word for text in texts for word in words_beside(text, vocabulary, options.language))
    return Annotated(answer, mentions, SubtitleLag.of(answer), dict(unlisted.most_common()))


@dataclass(frozen=True, slots=True)
class _Place:
    """A candidate and the finding it stands for."""

    candidate: Candidate
    spotting: Spotting


@dataclass(frozen=True, slots=True, eq=False)
class _Heard:
    """A mention before it is explained."""

    subtitle: Subtitle
    near: MillisSpan  # where it may be signed
    names: tuple[WordAnswer, ...]  # its word, then the synonyms that may stand for it
    rivals: tuple[WordAnswer, ...]  # the other words of the subtitle

    def places(self, number: int, answer: VideoAnswer) -> list[_Place]:
        own = [place for word in self.names for place in self._near(word, number, answer)]
        return sorted(own, key=lambda place: -place.candidate.score)[:_MOST_PLACES]

    def mention(self, spotting: Spotting | None) -> Mention:
        similarity = self.names[0].similarity
        times_ms = similarity.times_ms
        first, stop = np.searchsorted(times_ms, (self.near.start, self.near.stop)).tolist()
        curves = np.round(self._curves(self.names[0], slice(first, stop)), DECIMALS)  # as findings are chosen
        if not np.isfinite(curves[:, 0]).any():
            return Mention(similarity.word, self.subtitle, spotting)
        best, likely = int(curves[:, 0].argmax()), int(likely_windows(curves)[0])
        place = LikelyPlace(round(times_ms[first + likely]), float(curves[likely, 0]))
        return Mention(similarity.word, self.subtitle, spotting, similarity.grid.centre(first + best), place)

    def _near(self, word: WordAnswer, number: int, answer: VideoAnswer) -> Iterator[_Place]:
        axis = word.similarity.axis
        for spotting in word.spottings:
            if self.near.start <= axis.time_of(spotting.frame) < self.near.stop:
                frames = axis.frames_in(spotting.span_ms)
                span = frames if len(frames) else FrameSpan(spotting.frame, spotting.frame + 1)
                origin = dataclasses.replace(spotting.provenance, subtitle=self.subtitle)
                # Only the middle is surely taken: long spans are where a sign may reach, and are cut where another is.
                candidate = Candidate(number, middle_of(span), self._score(spotting, word, answer))
                yield _Place(candidate, dataclasses.replace(spotting, provenance=origin))

    def _score(self, spotting: Spotting, word: WordAnswer, answer: VideoAnswer) -> float:
        """By how much a finding passes; a little more than nothing for one that only just does."""
        if spotting.presence is not None and answer.least_presence is not None:
            return max(_log_odds(spotting.presence.probability) - _log_odds(answer.least_presence), 1e-6)
        window = window_near(word.similarity.grid, spotting.frame)
        share = float(shares(self._curves(word, slice(window, window + 1)))[0, 0])
        return max(share * (spotting.cosine - answer.threshold), 1e-6)

    def _curves(self, word: WordAnswer, windows: slice) -> FloatArray:
        """The best cosines of a word, then of its rivals: (n_windows, 1 + n_rivals)."""
        cosines = (one.similarity.cosine[windows] for one in (word, *self.rivals))
        return np.stack([cosine.max(axis=1, initial=-np.inf) for cosine in cosines], axis=1)


def _heard(
    subtitle: Subtitle, by_word: Mapping[Word, WordAnswer], options: SpotOptions, vocabulary: Vocabulary
) -> Iterator[_Heard]:
    found = [one.word for one in find_words(subtitle.text, vocabulary, options.language) if one.word in by_word]
    near = subtitle.span_ms.padded(options.padding_ms, options.padding_ms)
    for word in found:
        names = (word, *sorted(options.synonyms.of_word(word) if options.synonyms is not None else ()))
        rivals = [by_word[other] for other in dict.fromkeys(found) if other not in names]
        yield _Heard(subtitle, near, tuple(by_word[name] for name in names if name in by_word), tuple(rivals))


def _parted(places: list[_Place], answer: VideoAnswer) -> list[_Place]:
    """The findings in order of time, none of them into the next."""
    if not places:
        return []
    axis = answer.words[0].similarity.axis
    ordered = sorted(places, key=lambda one: one.candidate.span)
    spans = [axis.frames_in(one.spotting.span_ms) for one in ordered]
    for number, (one, before, after) in enumerate(zip(ordered, spans, parted(spans), strict=True)):
        if before != after:
            spotting = dataclasses.replace(one.spotting, span_ms=axis.millis_of(after))
            ordered[number] = _Place(one.candidate, spotting)
    return ordered


def _log_odds(probability: float) -> float:
    inside = min(max(probability, 1 - _SURE), _SURE)
    return float(np.log(inside / (1 - inside)))


def known_words(annotated: Annotated, annotations: Sequence[Annotation], padding_ms: int) -> KnownWords:
    """Hold an annotated video against annotations of the same video, each with the nearest mention of its word."""
    axis = annotated.answer.words[0].similarity.axis if annotated.answer.words else None
    counts = [0, 0, 0, 0]
    for annotation in annotations:
        if axis is None or annotation.frame >= len(axis):
            continue
        time_ms = axis.time_of(annotation.frame)
        alike = (mention for mention in annotated.mentions if mention.word == annotation.word)
        mention = min(alike, key=lambda one: _distance_ms(one.subtitle, time_ms), default=None)
        if mention is None or _distance_ms(mention.subtitle, time_ms) >= padding_ms:
            continue
        right = Tolerance().around(annotation.frame)
        counts[0] += 1
        counts[1] += mention.best_frame is not None and mention.best_frame in right
        counts[2] += mention.spotting is not None
        counts[3] += mention.spotting is not None and mention.spotting.frame in right
    return KnownWords(*counts)


def _distance_ms(subtitle: Subtitle, time_ms: float) -> float:
    return max(subtitle.span_ms.start - time_ms, time_ms - subtitle.span_ms.stop, 0)
