"""One test episode of the demo searched for words never annotated, and the answers held against the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.corpus import Episode, Subtitle
from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.results import Spotting, VideoAnswer, WordAnswer
from signspot.domain.spans import FrameSpan, MillisSpan
from signspot.domain.tracks import EntryVectors
from signspot.domain.words import Word
from signspot.errors import InputError
from signspot.formats.truth import SignedSign
from signspot.learning.material import Material
from signspot.text.subtitles import read_subtitles
from signspot.text.tokenise import find_words
from signspot.workflows.demo_methods import Classroom, Pupil, threshold_of
from signspot.workflows.spot import Query, SpotOptions, spot_prepared


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch around a subtitle that mentions a word which is signed there, and the best match in it."""

    word: Word
    span_ms: MillisSpan
    signed: tuple[FrameSpan, ...]  # where the word is signed in the stretch
    taken: FrameSpan  # the window of the highest cosine
    entry: Entry  # that it looks like
    cosine: float

    @property
    def is_found(self) -> bool:
        """Whether the best match lies where the word is signed."""
        return any(self.taken.overlaps(span) for span in self.signed)


@dataclass(frozen=True, slots=True, eq=False)
class Spotted:
    """An episode searched by every method for the test words that its subtitles mention."""

    episode: Episode
    methods: tuple[str, ...]
    answers: tuple[VideoAnswer, ...]  # of each method
    mentions: tuple[Mention, ...]  # of words that are really signed there, as the last method has them
    n_right: int  # findings of the last method at a place where their word is signed

    @property
    def answer(self) -> VideoAnswer:
        """What the last method found; only its threshold was measured."""
        return self.answers[-1]

    def clearest(self, *, is_found: bool) -> Mention | None:
        """The mention that was found, or missed, with the highest cosine."""
        alike = [mention for mention in self.mentions if mention.is_found == is_found]
        return max(alike, key=lambda mention: mention.cosine, default=None)


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What is searched, and how."""

    episode: Episode
    dictionary: Dictionary
    truth: tuple[SignedSign, ...]
    store: Path  # of the trunk's vectors
    isolated: bool = True


def search_episode(search: Search, classroom: Classroom, pupils: Sequence[Pupil]) -> Spotted:
    """Let every method look for the test words that the subtitles mention, near those subtitles."""
    episode, truth = search.episode, [sign for sign in search.truth if sign.video_id == search.episode.video_id]
    cues = read_subtitles(episode.subtitles).subtitles if episode.subtitles is not None else ()
    words = _mentioned(cues, search.dictionary, classroom.split.test)
    if not words:
        raise InputError(episode.video, "its subtitles mention no test word", "choose another seed")
    threshold = threshold_of(pupils[-1].model, classroom)
    options = SpotOptions(threshold=threshold, subtitles=cues, store=search.store, isolated=search.isolated)
    queries = (_query(words, search.dictionary, classroom.test, pupil) for pupil in pupils)
    answers = tuple(
        spot_prepared(episode, query, pupil.model, options) for query, pupil in zip(queries, pupils, strict=True)
    )
    n_right = sum(_is_right(spotting, truth) for spotting in answers[-1])
    methods = tuple(pupil.method.name for pupil in pupils)
    return Spotted(episode, methods, answers, signed_mentions(answers[-1], truth), n_right)


def truth_of(spotted: Spotted, truth: Iterable[SignedSign]) -> Iterator[tuple[MillisSpan, str]]:
    """What is really signed in the episode, and when."""
    axis = spotted.answer.words[0].similarity.axis
    for sign in truth:
        if sign.video_id == spotted.episode.video_id:
            yield axis.millis_of(_span(sign)), sign.word


def _mentioned(cues: tuple[Subtitle, ...], dictionary: Dictionary, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Those of the words that the subtitles mention, the most frequent first: an overlay has room for a few."""
    mentions = [mention.word for cue in cues for mention in find_words(cue.text, dictionary.vocabulary)]
    return tuple(sorted(set(words) & set(mentions), key=lambda word: (-mentions.count(word), word)))


def _query(words: tuple[Word, ...], dictionary: Dictionary, material: Material, pupil: Pupil) -> Query:
    """The dictionary clips of the words as a method sees them, from the trunk's vectors that are known already."""
    rows = {entry_id: row for row, entry_id in enumerate(material.entry_ids)}
    vectors = []
    for word in words:
        entries = tuple(entry for entry in dictionary.entries(word) if entry.entry_id in rows)
        own = material.entry_vectors[np.array([rows[entry.entry_id] for entry in entries], np.int64)]
        vectors.append(EntryVectors(word, entries, pupil.model.head_vectors(own), pupil.model.fingerprint))
    return Query(tuple(vectors), dictionary)


def _is_right(spotting: Spotting, truth: Iterable[SignedSign]) -> bool:
    """Whether the word of a finding is signed at its frame, give or take a window."""
    near = FrameSpan(max(0, spotting.frame - 8), spotting.frame + 8)
    return any(sign.word == spotting.word and near.overlaps(_span(sign)) for sign in truth)


def _span(sign: SignedSign) -> FrameSpan:
    return FrameSpan(sign.start_frame, sign.stop_frame)


def signed_mentions(answer: VideoAnswer, truth: Iterable[SignedSign]) -> tuple[Mention, ...]:
    """Every mention of a searched word that is signed near its subtitle; all signs of `truth` are of this video."""
    spans: dict[str, list[FrameSpan]] = {}
    for sign in truth:
        spans.setdefault(sign.word, []).append(_span(sign))
    return tuple(mention for word in answer.words for mention in _mentions(word, spans.get(word.word, ())))


def _mentions(word: WordAnswer, spans: Sequence[FrameSpan]) -> Iterator[Mention]:
    similarity = word.similarity
    for searched in word.searched_ms or ():
        stretch = similarity.axis.frames_in(searched)
        signed = tuple(span for span in spans if stretch.start <= span.start and span.stop <= stretch.stop)
        inside = (similarity.times_ms >= searched.start) & (similarity.times_ms < searched.stop)
        if not signed or not inside.any():
            continue
        window = int(np.where(inside, similarity.best, -np.inf).argmax())
        place = int(similarity.cosine[window].argmax())
        yield Mention(
            word=similarity.word,
            span_ms=searched,
            signed=signed,
            taken=similarity.grid.span(window),
            entry=similarity.entries[place],
            cosine=float(similarity.cosine[window, place]),
        )
