"""Find words in a video: read, embed, compare, pick the peaks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from signspot.domain.boxes import SignerBox
from signspot.domain.corpus import Episode, Subtitle
from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.results import Provenance, Spotting, VideoAnswer, WordAnswer
from signspot.domain.spans import FRAME_MS, MillisSpan
from signspot.domain.tracks import Embedder, EntryVectors, FloatArray, SimilarityTrack
from signspot.domain.words import Vocabulary, Word, normalise
from signspot.errors import InputError, UnknownWord, VideoError
from signspot.features.extract import ExtractOptions
from signspot.features.stages import filed_under
from signspot.spotting.peaks import limited_to, spottings_of
from signspot.spotting.similarity import similarity
from signspot.text.tokenise import find_words
from signspot.workflows.entry_vectors import EntrySource, vectors_of
from signspot.workflows.tracks import Progress, VideoTrack, is_stored, quick_track_of, store_at, track_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotOptions:
    """Everything that changes the answer of `spot`."""

    threshold: float | None = None  # lowest cosine that counts as found; None: the model's own
    stride: int = 1  # frames between two windows (Paper 3.2, "Test time")
    subtitles: tuple[Subtitle, ...] | None = None  # search a word only where a subtitle mentions it
    padding_ms: int = 2000  # on both sides of a subtitle (Paper 4.1)
    language: str = "en"  # of the subtitles and the words
    seed: int = 0  # of the clips drawn from dictionary videos
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing
    store: Path | None = None  # the folder in which vectors of videos are kept; None: nowhere
    quick: bool = False  # look closely only at the most promising places, unless the video's vectors are stored
    box: SignerBox | None = None  # the part of the picture to look at; None: what the video's corpus says, if anything

    def __post_init__(self) -> None:
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InputError("threshold", f"{self.threshold} is no cosine", "give a number from -1 to 1")
        if self.stride < 1 or self.padding_ms < 0:
            raise InputError("stride and padding", "must be positive", "leave them out for the paper's values")
        if self.quick and self.stride > 1:
            raise InputError("stride", "a quick look chooses its own", "leave out one of --quick and --stride")


@dataclass(frozen=True, slots=True)
class Query:
    """The words to look for, each with its entries' vectors, ready for any number of videos."""

    words: tuple[EntryVectors, ...]
    dictionary: Dictionary
    warnings: tuple[str, ...] = ()


def spot(
    video: Path | str,
    words: Sequence[str] | str,
    *,
    dictionary: Dictionary,
    model: Embedder,
    options: SpotOptions = SpotOptions(),
) -> VideoAnswer:
    """Say whether and where each word is signed in a video, and which dictionary entry it matches best.

    Without words, `options.subtitles` must be given: every dictionary word they mention is looked for.
    """
    query = prepare([words] if isinstance(words, str) else words, dictionary, model, options)
    path = Path(video)
    answer = spot_prepared(Episode(video_id=path.stem, video=path), query, model, options)
    return dataclasses.replace(answer, warnings=query.warnings + answer.warnings)


def prepare(
    words: Sequence[str],
    dictionary: Dictionary,
    model: Embedder,
    options: SpotOptions = SpotOptions(),
    progress: Progress | None = None,
) -> Query:
    """Look the words up and embed their dictionary clips."""
    wanted = known_words(words, dictionary, options)
    total = sum(len(dictionary.entries(word)) for word in wanted)
    source = EntrySource.of(dictionary, model, seed=options.seed, isolated=options.isolated)
    done, found, warnings = 0, [], list(source.remarks(wanted))
    for word in wanted:
        usable: list[tuple[Entry, FloatArray]] = []
        for entry in dictionary.entries(word):
            try:
                usable.append((entry, source.vector(entry)))
            except VideoError as error:
                warnings.append(f"left out of the dictionary: {error}")
            done += 1
            if progress is not None:
                progress("reading the dictionary", done, total)
        found.append(vectors_of(word, usable, model, warnings[-1] if warnings else ""))
    return Query(tuple(found), dictionary, tuple(warnings))


def known_words(words: Sequence[str], dictionary: Dictionary, options: SpotOptions) -> tuple[Word, ...]:
    """Normalise the words and check that the dictionary has them; without words, take those the subtitles mention."""
    vocabulary = dictionary.vocabulary
    if not words:
        if options.subtitles is None:
            raise InputError("words", "none given", "name the words to look for, or give --subtitles to take theirs")
        mentioned = _mentions(options.subtitles, vocabulary, options.language)
        if not mentioned:
            raise InputError("subtitles", "mention no word of the dictionary", "name the words to look for")
        return tuple(sorted(mentioned))
    wanted: dict[Word, None] = {}
    for text in words:
        try:
            word = normalise(text, options.language)
        except ValueError as error:
            raise InputError(repr(text), str(error), "name a word of the dictionary") from error
        if word not in vocabulary:
            raise UnknownWord.named(text, vocabulary.near(word))
        wanted[word] = None
    return tuple(wanted)


def spot_prepared(
    episode: Episode,
    query: Query,
    model: Embedder,
    options: SpotOptions = SpotOptions(),
    progress: Progress | None = None,
) -> VideoAnswer:
    """Search one video for a prepared query."""
    read = _read(episode, query, model, options, progress)
    provenance = Provenance(
        media_sha256=read.media_sha256,
        model=model.name,
        fingerprint=filed_under(model.fingerprint, read.box),
        dictionary=query.dictionary.name,
    )
    threshold = model.threshold if options.threshold is None else options.threshold
    compared = (similarity(read.track, entries) for entries in query.words)
    if options.subtitles is None:
        answers = tuple(WordAnswer(each, spottings_of(each, threshold, provenance)) for each in compared)
    else:
        mentions = _mentions(options.subtitles, query.dictionary.vocabulary, options.language)
        answers = tuple(
            _answer_where_mentioned(each, mentions.get(each.word, ()), threshold, provenance, options.padding_ms)
            for each in compared
        )
    return VideoAnswer(
        video_id=episode.video_id,
        words=answers,
        threshold=threshold,
        duration_ms=round(read.track.axis.time_of(-1)) + FRAME_MS,
        partial=read.remarks.partial,
        warnings=read.remarks.warnings,
    )


def _read(
    episode: Episode, query: Query, model: Embedder, options: SpotOptions, progress: Progress | None
) -> VideoTrack:
    """The vectors of the video: all of them, or in a quick look those that matter for the query."""
    with store_at(options.store) as store:
        extract = ExtractOptions(stride=options.stride, isolated=options.isolated, box=options.box)
        if options.quick and not is_stored(episode, model, store, extract):
            queries = np.concatenate([entries.vectors for entries in query.words])
            return quick_track_of(episode, model, queries, options=extract, progress=progress)
        return track_of(episode, model, store=store, options=extract, progress=progress)


def _answer_where_mentioned(
    compared: SimilarityTrack,
    mentioning: tuple[Subtitle, ...],
    threshold: float,
    provenance: Provenance,
    padding_ms: int,
) -> WordAnswer:
    """Search only around the subtitles that mention the word."""
    searched = tuple(subtitle.span_ms.padded(padding_ms, padding_ms) for subtitle in mentioning)
    limited = limited_to(compared, _windows_inside(compared, searched))
    spottings = tuple(
        dataclasses.replace(found, provenance=dataclasses.replace(provenance, subtitle=_nearest(mentioning, found)))
        for found in spottings_of(limited, threshold, provenance)
    )
    return WordAnswer(limited, spottings, searched)


def _mentions(
    subtitles: tuple[Subtitle, ...], vocabulary: Vocabulary, language: str
) -> dict[Word, tuple[Subtitle, ...]]:
    """Which subtitles mention each word. All words of the dictionary compete: "ice cream" is no mention of cream."""
    found: dict[Word, list[Subtitle]] = {}
    for subtitle in subtitles:
        for word in {mention.word for mention in find_words(subtitle.text, vocabulary, language)}:
            found.setdefault(word, []).append(subtitle)
    return {word: tuple(where) for word, where in found.items()}


def _windows_inside(compared: SimilarityTrack, spans: tuple[MillisSpan, ...]) -> npt.NDArray[np.bool_]:
    """Which windows have their time in one of the spans. (n_windows,)"""
    inside = np.zeros(len(compared.grid), dtype=bool)
    for span in spans:
        start, stop = np.searchsorted(compared.times_ms, (span.start, span.stop))
        inside[start:stop] = True
    return inside


def _nearest(subtitles: tuple[Subtitle, ...], found: Spotting) -> Subtitle:
    """The subtitle whose middle lies closest to the middle of the finding."""
    middle = found.span_ms.start + found.span_ms.stop
    return min(subtitles, key=lambda s: abs(s.span_ms.start + s.span_ms.stop - middle))
