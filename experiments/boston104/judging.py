"""Scores of windows against entries, judged: found at the right time, and ranked before what is not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from experiments.lib.data_sets import SignedSentence

from signspot.domain.tracks import Bools, FloatArray, Floats, Ints
from signspot.evaluation.measures import average_precision, class_means, ranks

SLACK = 1  # frames beside a word that count as found


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One test sentence against the entries of other signers."""

    sentence: SignedSentence
    entry_words: tuple[str, ...]  # (n_entries,)
    score: FloatArray  # (n_frames, n_entries) of the window around each frame, higher is more alike


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Pairs of a sentence and one of its words that another signer's entries show; and words over sentences."""

    sentences: tuple[str, ...]  # (P,) of the pairs
    words: tuple[str, ...]  # (P,)
    is_localised: Bools  # (P,) the best entry of the word has its highest score within a frame of the word
    chance: Floats  # (P,) the share of frames that would be right
    pair_ap: Floats  # (P,) the paper's: entries ranked for the sentence; right are those of the word at the right time
    searched: tuple[str, ...]  # (W,) words that occur in some test sentences but not in all
    word_ap: Floats  # (W,) all test sentences ranked by the word's best score

    @property
    def localisation(self) -> float:
        """The share of pairs that are found at the right time."""
        return float(self.is_localised.mean())

    @property
    def word_map(self) -> float:
        """The mean over words of the average precision of sentences."""
        return float(self.word_ap.mean())

    @property
    def paper_map(self) -> float:
        """The mean over words of the average precision of entries (Paper 4.2)."""
        return class_means(self.pair_ap, np.unique(self.words, return_inverse=True)[1]).mean


def judge(answers: Iterable[Answer]) -> Judged:
    """Judge all answers of a test set."""
    pairs: list[tuple[str, str, bool, float, float]] = []
    best_of: list[tuple[dict[str, float], set[str]]] = []
    for answer in answers:
        signed = {one.word for one in answer.sentence.words}
        best: FloatArray = answer.score.max(axis=0)
        place: Ints = answer.score.argmax(axis=0)
        rank, names = ranks(best), np.array(answer.entry_words)
        best_of.append(({word: float(best[names == word].max()) for word in set(answer.entry_words)}, set(signed)))
        for word in sorted(signed & set(answer.entry_words)):
            rows = np.flatnonzero(names == word)
            near = _frames_near(answer.sentence, word)
            found = near[place[rows]]
            precision = average_precision(rank[rows[found]], len(rows))
            pairs.append(
                (answer.sentence.video_id, word, bool(found[best[rows].argmax()]), float(near.mean()), precision)
            )
    searched, word_ap = _words_over_sentences(best_of)
    columns = list(zip(*pairs, strict=True))
    return Judged(
        sentences=tuple(columns[0]),
        words=tuple(columns[1]),
        is_localised=np.array(columns[2], np.bool_),
        chance=np.array(columns[3], np.float64),
        pair_ap=np.array(columns[4], np.float64),
        searched=searched,
        word_ap=word_ap,
    )


def _frames_near(sentence: SignedSentence, word: str) -> Bools:
    near = np.zeros(len(sentence.places), np.bool_)
    for one in sentence.words:
        if one.word == word:
            near[max(0, one.span.start - SLACK) : one.span.stop + SLACK] = True
    return near


def _words_over_sentences(best_of: list[tuple[dict[str, float], set[str]]]) -> tuple[tuple[str, ...], Floats]:
    searched: list[str] = []
    precisions: list[float] = []
    for word in sorted(set().union(*(signed for _, signed in best_of))):
        held = [(best[word], word in signed) for best, signed in best_of if word in best]
        truth = np.array([is_there for _, is_there in held], np.bool_)
        if truth.any() and not truth.all():
            rank = ranks(np.array([score for score, _ in held]))
            searched.append(word)
            precisions.append(average_precision(rank[truth], int(truth.sum())))
    return tuple(searched), np.array(precisions, np.float64)
