"""Find words in a video: read, embed, compare, pick the peaks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Dictionary, Entry, Episode, SignerBox, Subtitle
from signspot.domain.results import Provenance, Spotting, VideoAnswer, WordAnswer
from signspot.domain.time import FRAME_MS, MillisSpan, Progress
from signspot.domain.tracks import Embedder, EmbeddingTrack, EntryVectors, FloatArray, SimilarityTrack
from signspot.domain.words import MAX_WORD_LENGTH, Synonyms, Vocabulary, Word, normalise
from signspot.embedding.entries import ViewOptions, best_view, entry_views
from signspot.embedding.model import LEFT_OUT, VideoTrack, filed_under, store_at
from signspot.embedding.pictures import ExtractOptions, is_stored, quick_track_of, track_of, vectors_of
from signspot.errors import InputError, UnknownWord, VideoError
from signspot.evaluation.calibration import Calibration
from signspot.files.intake import bounded_lines, open_text
from signspot.media.reader import shared_decoding
from signspot.media.trim import trim_clip
from signspot.spotting.peaks import Refinement, limited_to, peaking_inside, spottings_of
from signspot.spotting.presence import Judge
from signspot.spotting.similarity import similarities
from signspot.stores.calibration import check_fingerprint
from signspot.stores.dictionary import read_dictionary
from signspot.text.words import find_words

_WORDS_WANTED = "name the words to look for, or a file of them with --words, or give --subtitles to take theirs"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotOptions:
    """Everything that changes the answer of `spot`."""

    threshold: float | None = None  # lowest cosine that counts as found; None: the model's own
    stride: int = 1  # frames between two windows (Paper 3.2, "Test time")
    subtitles: tuple[Subtitle, ...] | None = None  # search a word only where a subtitle mentions it
    padding_ms: int = 2000  # on both sides of a subtitle (Paper 4.1)
    language: str = "en"  # of the subtitles and the words
    synonyms: Synonyms | None = None  # words that are looked for where a subtitle mentions another of theirs
    seed: int = 0  # of the clips drawn from dictionary videos
    isolated: bool = True  # decode in a process of its own, so that a hostile file harms nothing
    store: Path | None = None  # the folder in which vectors of videos are kept; None: nowhere
    quick: bool = False  # look closely only at the most promising places, unless the video's vectors are stored
    box: SignerBox | None = None  # the part of the picture to look at; None: what the video's corpus says, if anything
    mirror: bool = False  # also look for mirrored signs, of signers of the other hand
    rates: tuple[float, ...] = ()  # also look for signs shown so many times as fast as the dictionary's, such as 1.5
    refine: bool = True  # a finding lasts as long as the sign; False: as the window of 16 frames
    calibration: Calibration | None = None  # gives probabilities; None: cosines only
    least_presence: float | None = None  # lowest probability that counts as found; None: a half, if calibrated
    false_alarms: float | None = None  # or as many as give so many false alarms in an hour, for each word

    def __post_init__(self) -> None:
        self._refuse_contradictions()
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InputError("threshold", f"{self.threshold} is no cosine", "give a number from -1 to 1")
        if self.stride < 1 or self.padding_ms < 0:
            raise InputError("stride and padding", "must be positive", "leave them out for the paper's values")
        if self.quick and self.stride > 1:
            raise InputError("stride", "a quick look chooses its own", "leave out one of --quick and --stride")
        if any(not 0.25 <= rate <= 4 for rate in self.rates):
            raise InputError("rates", f"{min(self.rates):g} to {max(self.rates):g}", "give speeds from 0.25 to 4")

    def _refuse_contradictions(self) -> None:
        if sum(given is not None for given in (self.threshold, self.least_presence, self.false_alarms)) > 1:
            raise InputError("threshold", "several are given", "give one of --threshold, --presence, --false-alarms")
        if self.least_presence is not None and not 0 <= self.least_presence <= 1:
            raise InputError("presence", f"{self.least_presence} is no probability", "give a number from 0 to 1")


@dataclass(frozen=True, slots=True)
class Query:
    """The words to look for, each with its entries' vectors, ready for any number of videos."""

    words: tuple[EntryVectors, ...]
    dictionary: Dictionary
    warnings: tuple[str, ...] = ()
    n_views: int = 1  # rows that each entry has in a word's vectors, one behind the other


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
    views = entry_views(dictionary, model, _views(options))
    done, found, warnings = 0, [], list(views.remarks(wanted))
    with shared_decoding():
        for word in wanted:
            usable: list[tuple[Entry, FloatArray]] = []
            for entry in dictionary.entries(word):
                try:
                    usable += [(entry, vector) for vector in views.vectors(entry)]
                except VideoError as error:
                    warnings.append(f"{LEFT_OUT}{error}")
                done += 1
                if progress is not None:
                    progress("reading the dictionary", done, total)
            found.append(vectors_of(word, usable, model, warnings[-1] if warnings else ""))
    return Query(tuple(found), dictionary, tuple(warnings), views.n_views)


def _views(options: SpotOptions) -> ViewOptions:
    return ViewOptions(
        mirror=options.mirror,
        rates=options.rates,
        seed=options.seed,
        isolated=options.isolated,
        store=options.store,
    )


def known_words(words: Sequence[str], dictionary: Dictionary, options: SpotOptions) -> tuple[Word, ...]:
    """Normalise the words and check that the dictionary has them; without words, take those the subtitles mention."""
    vocabulary = dictionary.vocabulary
    if not words:
        if options.subtitles is None:
            raise InputError("words", "none given", _WORDS_WANTED)
        mentioned = mentions_of(options.subtitles, vocabulary, options)
        if not mentioned:
            what = f"mention no word of the dictionary ({len(options.subtitles)} with text and times were read)"
            raise InputError("subtitles", what, "check their times and language, and the dictionary")
        return tuple(sorted(mentioned))
    wanted: dict[Word, None] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    for text in words:
        try:
            word = normalise(text, options.language)
        except ValueError as error:
            raise InputError(repr(text), str(error), "name a word of the dictionary") from error
        if word not in vocabulary:
            unknown[text] = vocabulary.near(word)
        wanted[word] = None
    if unknown:
        raise UnknownWord.named(unknown)
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
    search = _Search.of(read.track, model, options, provenance)
    compared = (best_view(each, query.n_views) for each in similarities(read.track, query.words))
    if options.subtitles is None:
        answers = tuple(search.answer(each) for each in compared)
    else:
        mentions = mentions_of(options.subtitles, query.dictionary.vocabulary, options)
        answers = tuple(search.answer_where_mentioned(each, mentions.get(each.word, ())) for each in compared)
    duration_ms = round(read.track.axis.time_of(-1)) + FRAME_MS
    return VideoAnswer(
        video_id=episode.video_id,
        words=answers,
        threshold=search.lowest_cosine(answers),
        duration_ms=duration_ms,
        partial=read.remarks.partial,
        warnings=(*read.remarks.warnings, *late_subtitles(options.subtitles or (), duration_ms)),
        least_presence=search.least_presence,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Search:
    """How the words of one video are looked for, and what counts as found."""

    provenance: Provenance
    threshold: float  # lowest cosine
    least_presence: float | None  # lowest probability; None: the cosine decides
    judge: Judge | None  # None: uncalibrated
    refinement: Refinement | None
    padding_ms: int

    @classmethod
    def of(cls, track: EmbeddingTrack, model: Embedder, options: SpotOptions, provenance: Provenance) -> _Search:
        """Look up what counts as found."""
        judge = None
        if options.calibration is None and not (options.least_presence is options.false_alarms is None):
            what = "no probability is known: this model is not calibrated"
            raise InputError(model.name, what, "run `signspot calibrate` first, or give --threshold")
        if options.calibration is not None:
            check_fingerprint(options.calibration, model)
            judge = Judge.of(options.calibration, track, is_read=options.subtitles is not None)
        is_chance = judge is not None and options.threshold is None
        least = 0.5 if options.least_presence is None else options.least_presence
        if judge is not None and options.false_alarms is not None:
            least = judge.fit.least_presence(options.false_alarms)
        threshold = model.threshold if options.threshold is None else options.threshold
        return cls(
            provenance=provenance,
            threshold=threshold,
            least_presence=least if is_chance else None,
            judge=judge,
            refinement=Refinement() if options.refine else None,
            padding_ms=options.padding_ms,
        )

    def lowest_cosine(self, answers: Sequence[WordAnswer]) -> float:
        """The lowest cosine that counted as found; where probabilities decide, that of the findings."""
        if self.least_presence is None:
            return self.threshold
        found = (spotting.cosine for answer in answers for spotting in answer.spottings)
        return min(found, default=self.threshold)

    def answer(self, compared: SimilarityTrack, searched: tuple[MillisSpan, ...] | None = None) -> WordAnswer:
        """The findings of a word, and how probable it is that it is there at all."""
        if self.judge is None:
            found = spottings_of(compared, self.threshold, self.provenance, self.refinement)
            return WordAnswer(compared, found, searched)
        judged = self.judge(compared)
        shown = (
            judged.cosine >= self.threshold
            if self.least_presence is None
            else (judged.probability >= self.least_presence)
        )
        found = judged.spottings(compared, shown, self.provenance, self.refinement)
        return WordAnswer(compared, found, searched, judged.anywhere)

    def answer_where_mentioned(self, compared: SimilarityTrack, mentioning: tuple[Subtitle, ...]) -> WordAnswer:
        """Search only around the subtitles that mention the word."""
        searched = tuple(subtitle.span_ms.padded(self.padding_ms, self.padding_ms) for subtitle in mentioning)
        inside = windows_inside(compared, searched)
        answer = self.answer(limited_to(compared, inside), searched)
        whole = peaking_inside(answer.spottings, compared, inside)
        spottings = tuple(
            dataclasses.replace(
                found, provenance=dataclasses.replace(self.provenance, subtitle=_nearest(mentioning, found))
            )
            for found in whole
        )
        return dataclasses.replace(answer, spottings=spottings)


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


def mentions_of(
    subtitles: tuple[Subtitle, ...], vocabulary: Vocabulary, options: SpotOptions
) -> dict[Word, tuple[Subtitle, ...]]:
    """Which subtitles mention each word, or a synonym of it.

    All words of the dictionary compete: "ice cream" is no mention of cream.
    """
    found: dict[Word, list[Subtitle]] = {}
    for subtitle in subtitles:
        written = {mention.word for mention in find_words(subtitle.text, vocabulary, options.language)}
        if options.synonyms is not None:
            written |= {other for word in written for other in options.synonyms.of_word(word) if other in vocabulary}
        for word in written:
            found.setdefault(word, []).append(subtitle)
    return {word: tuple(where) for word, where in found.items()}


def late_subtitles(subtitles: Sequence[Subtitle], duration_ms: float) -> tuple[str, ...]:
    """Whether subtitles lie where there is no video: they may be those of another one, or their times be off."""
    n_late = sum(subtitle.span_ms.start >= duration_ms for subtitle in subtitles)
    if not n_late:
        return ()
    late = f"{n_late} of {len(subtitles)} subtitles begin after the video's end at {duration_ms / 1000:.1f} s"
    return (f"{late}: are they of this video, and their times right (--shift, --drift)?",)


def windows_inside(compared: SimilarityTrack, spans: tuple[MillisSpan, ...]) -> npt.NDArray[np.bool_]:
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


# What is looked for: words of a dictionary, and clips that somebody has of a sign.


_MOST_WORDS = 100_000


@dataclass(frozen=True, slots=True)
class Shelf:
    """The entries to compare with, the words to look for, and what had to be left out."""

    dictionary: Dictionary
    words: tuple[str, ...]
    problems: tuple[str, ...] = ()
    clip_ids: tuple[str, ...] = ()  # of the entries that are no part of the dictionary


def query_shelf(dictionary: Path | None, clips: Sequence[Path], words: Sequence[str]) -> Shelf:
    """The dictionary, with the clips added as one more sign that is named after the first of them."""
    if dictionary is None and not clips:
        raise InputError("dictionary", "none given", "name one with --dictionary, or clips of a sign with --query")
    if dictionary is None and words:
        raise InputError(words[0], "a word is looked up in a dictionary", "name one with --dictionary")
    source = None if dictionary is None else read_dictionary(dictionary)
    known = () if source is None else tuple(source.dictionary)
    problems = [] if source is None else [one for one in source.problems if not one.is_remark]
    said = tuple(f"{LEFT_OUT}{problem}" for problem in problems)
    if not clips:
        return Shelf(Dictionary.of("", ()) if source is None else source.dictionary, tuple(words), said)
    word = _clip_word(clips[0], {entry.word for entry in known})
    taken = {entry.entry_id for entry in known}
    shown = [Entry(entry_id=_unused(clip.stem, taken), word=word, video=clip) for clip in clips]
    asked = f"query {', '.join(clip.name for clip in clips)}"  # which a result is explained by later
    name = asked if source is None else f"{source.dictionary.name} and {asked}"
    folder = None if source is None else source.dictionary.folder
    ids = tuple(entry.entry_id for entry in shown)
    return Shelf(Dictionary.of(name, (*known, *shown), folder), (*words, word), said, ids)


def without_still_ends(shelf: Shelf, *, isolated: bool = True) -> Shelf:
    """The same with the clips cut to what moves: their still ends are in no video."""
    said: list[str] = []
    entries: list[Entry] = []
    for entry in shelf.dictionary:
        if entry.entry_id in shelf.clip_ids and entry.video is not None:
            trim = trim_clip(entry.video, isolated=isolated)
            said += [f"{entry.video}: {trim.remark}"] if trim.remark else []
            entry = replace(entry, kept=trim.kept if len(trim.kept) else None)
        entries.append(entry)
    dictionary = Dictionary.of(shelf.dictionary.name, entries, shelf.dictionary.folder)
    return replace(shelf, dictionary=dictionary, problems=(*shelf.problems, *said))


def read_words(path: Path) -> tuple[str, ...]:
    """The words of a text file, one a line; empty lines and those that begin with # are passed over."""
    words: list[str] = []
    with open_text(path) as file:
        for line in bounded_lines(file, path):
            if (text := line.strip()) and not text.startswith("#"):
                words.append(text)
            if len(words) > _MOST_WORDS or len(text) > MAX_WORD_LENGTH:
                raise InputError(path, "is no list of words", "write one word on each line")
    if not words:
        raise InputError(path, "holds no word", "write one word on each line")
    return tuple(words)


def _clip_word(clip: Path, words: set[Word]) -> Word:
    """The name of the clip, if no word of the dictionary has it already."""
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
