"""Find words in a video: read, embed, compare, pick the peaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from signspot.domain.recordings import (
    MAX_WORD_LENGTH,
    Dictionary,
    Episode,
    Subtitle,
    Synonyms,
    Vocabulary,
    Word,
    normalise,
)
from signspot.domain.results import VideoAnswer
from signspot.domain.time import FRAME_MS
from signspot.embedding.model import Model, Reading, VideoTrack, Views
from signspot.embedding.zoo import ModelChoice, calibration_for, embed_query, with_lexicon
from signspot.errors import InputError, Notice, UnknownWord
from signspot.evaluation.calibration import Calibration
from signspot.files.intake import bounded_lines, open_text
from signspot.spotting.search import Query, Rule, search
from signspot.stores.calibration import check_fingerprint
from signspot.text.words import find_words

_WORDS_WANTED = "name the words to look for, or a file of them with --words, or give --subtitles to take theirs"
_NAMED = 12  # words of a notice


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotOptions:
    """Everything that changes the answer of `spot`."""

    threshold: float | None = None  # lowest cosine that counts as found; None: the model's own
    subtitles: tuple[Subtitle, ...] | None = None  # search a word only where a subtitle mentions it
    padding_ms: int = 2000  # on both sides of a subtitle (Paper 4.1)
    language: str = "en"  # of the subtitles and the words
    synonyms: Synonyms | None = None  # words that are looked for where a subtitle mentions another of theirs
    quick: bool = False  # look closely only at the most promising places, unless the video's vectors are stored
    views: Views = Views()  # also look for mirrored signs, and at other speeds
    refine: bool = True  # a finding lasts as long as the sign; False: as the window of 16 frames
    compete: bool = True  # where probabilities are known, a moment is given to the word it resembles most
    calibration: Calibration | None = None  # gives probabilities; None: that of the model, if it has one
    least_presence: float | None = None  # lowest probability that counts as found; None: the calibration's usual one
    false_alarms: float | None = None  # or as many as give this many false alarms per word and hour
    lexicon: bool = True  # also look for the signs that the model knows by itself
    reading: Reading = Reading()

    def __post_init__(self) -> None:
        self._refuse_contradictions()
        if self.threshold is not None and not -1 <= self.threshold <= 1:
            raise InputError("threshold", f"{self.threshold} is out of range", "use a cosine from -1 to 1")
        if self.padding_ms < 0:
            raise InputError("padding", "must not be negative", "leave it out for the paper's 2 seconds")
        if self.quick and self.reading.stride > 1:
            raise InputError("stride", "a quick look chooses its own", "leave out one of --quick and --stride")

    def _refuse_contradictions(self) -> None:
        if sum(given is not None for given in (self.threshold, self.least_presence, self.false_alarms)) > 1:
            raise InputError("threshold", "several are given", "give one of --threshold, --presence, --false-alarms")
        if self.least_presence is not None and not 0 <= self.least_presence <= 1:
            raise InputError("presence", f"{self.least_presence} is out of range", "use a probability from 0 to 1")

    def rule(self, model: Model, n_words: int | None = None) -> Rule:
        threshold = model.threshold if self.threshold is None else self.threshold
        if self.calibration is None:
            if not self.least_presence is self.false_alarms is None:
                what = "no probability is known: this model is not calibrated"
                raise InputError(model.name, what, "run `signspot calibrate` first, or give --threshold")
            return Rule(threshold=threshold, refine=self.refine, compete=False)
        check_fingerprint(self.calibration, model.name, model.fingerprint)
        fit = self.calibration.fit_for(is_read=self.subtitles is not None)
        least = fit.usual_presence(n_words) if self.least_presence is None else self.least_presence
        if self.false_alarms is not None:
            least = fit.least_presence(self.false_alarms, n_words)
        return Rule(
            threshold=threshold, calibration=self.calibration, refine=self.refine, compete=self.compete,
            least_presence=None if self.threshold is not None else least,
        )  # fmt: skip

    def calibrated_for(self, model: Model) -> SpotOptions:
        """The same with the calibration of the model, unless one is given."""
        if self.calibration is not None:
            return self
        return replace(self, calibration=calibration_for(model, None, model.name))


def spot(
    video: Path | str,
    words: Sequence[str] | str,
    *,
    dictionary: Dictionary | None = None,
    model: Model | None = None,
    options: SpotOptions = SpotOptions(),
) -> VideoAnswer:
    """Say whether and where each word is signed in a video, and which dictionary entry it matches best.

    Without a dictionary, or for words that it lacks, the signs that the model learned are looked for. Without a model,
    the one that can see all recordings is used. Without words, `options.subtitles` must be given: every known word they
    mention is looked for.
    """
    reading, said = options.reading.collecting()
    path = Path(video)
    wanted = [words] if isinstance(words, str) else words
    options = replace(options, reading=reading)
    model, dictionary, options = opened_search(path, dictionary, model, options, are_named=bool(wanted))
    query = prepare(wanted, dictionary, model, options)
    answer = spot_prepared(Episode(video_id=path.stem, video=path), query, model, options)
    return replace(answer, warnings=(*map(str, said), *answer.warnings))


def opened_search(
    video: Path, dictionary: Dictionary | None, model: Model | None, options: SpotOptions, *, are_named: bool
) -> tuple[Model, Dictionary, SpotOptions]:
    """What a search needs, where some of it is not given: the model, all that it can look for, and how to read."""
    if model is None:
        opened = ModelChoice().open((video, *(entry.video for entry in dictionary or ())), options.reading)
        model, options = opened.model, replace(options, reading=opened.reading)
    searched = searched_dictionary(dictionary, model, options, are_named=are_named)
    return model, searched, options.calibrated_for(model)


def searched_dictionary(
    dictionary: Dictionary | None, model: Model, options: SpotOptions, *, are_named: bool
) -> Dictionary:
    """The dictionary and, unless they are not wanted, the model's own signs; `are_named`: somebody names the words."""
    if options.lexicon:
        return with_lexicon(dictionary, model, are_named=are_named)
    if dictionary is None:
        raise InputError("dictionary", "none given", "give one, or do without --no-lexicon")
    return dictionary


def prepare(words: Sequence[str], dictionary: Dictionary, model: Model, options: SpotOptions = SpotOptions()) -> Query:
    wanted = _known_words(words, dictionary, model, options)
    learned = [word for word in wanted if all(entry.is_learned for entry in dictionary.entries(word))]
    if learned and not all(entry.is_learned for entry in dictionary):
        named = ", ".join(learned[:_NAMED]) + (f" and {len(learned) - _NAMED} more" if learned[_NAMED:] else "")
        what = f"not in the dictionary, so searched as {model.name} learned it ({model.lexicon.language})"
        options.reading.notify(Notice(named, what, "--no-lexicon leaves them out", severity="note"))
    return embed_query(wanted, dictionary, model, options.reading, options.views)


def _known_words(words: Sequence[str], dictionary: Dictionary, model: Model, options: SpotOptions) -> tuple[Word, ...]:
    """Normalise the words and say which the dictionary lacks; without words, take those the subtitles mention."""
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
        else:
            wanted[word] = None
    if unknown:
        lexicon = model.name if any(entry.is_learned for entry in dictionary) else ""
        has_dictionary = not all(entry.is_learned for entry in dictionary)
        missing = UnknownWord.named(unknown, lexicon, has_dictionary=has_dictionary)
        if not wanted:
            raise missing
        options.reading.notify(missing.notice())
    return tuple(wanted)


def spot_prepared(episode: Episode, query: Query, model: Model, options: SpotOptions = SpotOptions()) -> VideoAnswer:
    near = np.concatenate([entries.vectors for entries in query.words]) if options.quick else None
    return answered(episode, model.track(episode, options.reading, near), query, model, options)


def answered(
    episode: Episode, read: VideoTrack, query: Query, model: Model, options: SpotOptions = SpotOptions()
) -> VideoAnswer:
    subtitles = options.subtitles
    n_words = None if subtitles is not None else len(query.words)
    rule = options.rule(model, n_words)
    mentions = None if subtitles is None else mentions_of(subtitles, query.dictionary.vocabulary, options)
    provenance = read.provenance(model.name, query.dictionary.name)
    answers = search(read.track, query, rule, provenance, mentions, options.padding_ms)
    duration_ms = round(read.track.axis.time_of(-1)) + FRAME_MS
    least, alarms = rule.least_presence, None
    if options.calibration is not None and least is not None:
        alarms = options.calibration.fit_for(is_read=subtitles is not None).false_alarms(least, n_words)
    return VideoAnswer(
        video_id=episode.video_id, words=answers, threshold=rule.lowest_cosine(answers), duration_ms=duration_ms,
        partial=read.remarks.partial, warnings=(*read.remarks.warnings, *late_subtitles(subtitles or (), duration_ms)),
        least_presence=least, false_alarms=alarms,
    )  # fmt: skip


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


# What is looked for: words of a dictionary, and clips that somebody has of a sign.
_MOST_WORDS = 100_000


@dataclass(frozen=True, slots=True)
class WantedSigns:
    """The entries to compare with, and the words to look for."""

    dictionary: Dictionary  # without a name and entries, where none is given
    words: tuple[str, ...]
    clip_ids: tuple[str, ...] = ()  # of the entries that are no part of the dictionary


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
