"""How well are forms told apart on people: `python experiments/friends/people.py [--run RUN]`.

Two "dictionaries" of the same American signs by different people, from wlasl300: a word of one and the same word of the
other are one form, two words are two. That is not quite true: words have variants, and some words share a sign. Vectors
are those of the model of experiments/wlasl300 that never saw these words (RUN/fold.safetensors), and of landmark-v1,
which learned these very words; parts are compared by the shipped judge, and by one that learned from the other words.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments share their models and measures

from experiments.lib.forms import (
    LEAST_LOG_ODDS,
    FormFriends,
    FormJudge,
    as_right_handers,
    fit_judge,
    form_friends,
    form_row,
    read_judge,
)
from experiments.lib.landmark_model import Fold, RealSigning, RecordedSign, draw_fold
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results
from friends.run import at_precision
from wlasl300.run import DATA, FOLD_SEED, Embed, Method, fold_model

from signspot.domain.recordings import Entry, Signer
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import X_PLACES, FloatArray, LandmarkTrack
from signspot.embedding.zoo import model_path
from signspot.media.trim import trim_by_landmarks
from signspot.models.checkpoints import load_checkpoint
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint
from signspot.spotting.friends import FriendOptions, Friends, Gallery, Relation, friends
from signspot.workflows.lookup import usual_options

HERE = Path(__file__).parent
SHOULDERS = 0.27  # picture heights: how wide they are in most recordings
N_CLIPS = 4  # of each word from which a judge learns
EVERYTHING = FriendOptions(least_closeness=-2, rank=2)
EVERY_PAIR = FriendOptions(least_closeness=-2, rank=10_000)
CLOSENESS = usual_options("landmark-v1").least_closeness
FEW, N_DRAWS = (13, 16), 30  # different words on either side, and how often they are drawn


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """The clips of a dictionary, as landmarks and as parts; those in which no hand is found are left out."""

    signs: tuple[RecordedSign, ...]
    gallery: Gallery  # of rows of parts

    @classmethod
    def of(cls, signs: Sequence[RecordedSign], name: str) -> Recorded:
        """See every sign part by part."""
        kept, rows = [], []
        for sign in signs:
            try:
                rows.append(parts_of(sign))
                kept.append(sign)
            except ValueError:  # nobody, or no hand
                continue
        entries = tuple(
            Entry(entry_id=f"{name}-{number}", word=sign.word, signer=Signer(sign.signer), language=name)
            for number, sign in enumerate(kept)
        )
        return cls(tuple(kept), Gallery(entries, np.stack(rows)))

    def by_vectors(self, embed: Embed) -> Gallery:
        """The same clips, each as one vector."""
        return Gallery(self.gallery.entries, Method("", embed).vectors(self.signs))


def parts_of(sign: RecordedSign) -> FloatArray:
    """(1565,) the parts of a recorded sign."""
    points = sign.points.copy()
    for axis in range(3):
        points[:, X_PLACES + axis] *= SHOULDERS
    track = LandmarkTrack("", TimeAxis(np.arange(len(points), dtype=np.float64) * FRAME_MS), points)
    return form_row(points, trim_by_landmarks(track, 1.0).kept)


def judge_of_people(other_words: Recorded) -> FormJudge:
    """A judge that learned from clips of other words, four of each."""
    rows, by_word = as_right_handers(other_words.gallery), dict[str, list[int]]()
    for place, entry in enumerate(other_words.gallery.entries):
        by_word.setdefault(entry.word, []).append(place)
    chosen = [places[:N_CLIPS] for places in by_word.values() if len(places) >= N_CLIPS]
    # Which words are a minimal pair is not known; the judge looks for those that resemble each other by itself.
    return fit_judge(rows[np.array(chosen)], np.array([[0, 1]]), np.random.default_rng(0))


def cells(found: Sequence[Friends | FormFriends], n_shared: int, least: float) -> dict[str, Measured]:
    """Recall of the words that both have, at precision 0.9 and from the least closeness on."""
    judged = sorted(
        (
            (pair.closeness, pair.relation is Relation.COGNATE, pair.relation is Relation.COGNATE)
            for pair in found
            if pair.relation is not Relation.DIFFERENT_FORM
        ),
        reverse=True,
    )
    shown = [one for one in judged if one[0] >= least]
    kept = at_precision(judged)
    return {
        "recall at precision 0.9": Measured(sum(right for _, right, _ in kept) / n_shared),
        "recall": Measured(sum(right for _, right, _ in shown) / n_shared),
        "precision": Measured(sum(right for _, right, _ in shown) / max(1, len(shown))),
    }


def closer(pairs: Sequence[Friends | FormFriends]) -> dict[str, Measured]:
    """How often two clips of one word are closer than two of different words, over all pairs of words."""
    same, other = (
        np.array([pair.closeness for pair in pairs if (pair.entry.word == pair.other.word) == is_same])
        for is_same in (True, False)
    )
    return {"same word closer": Measured(float((same[:, None] > other).mean()))}


def by_parts(first: Recorded, second: Recorded, judge: FormJudge) -> dict[str, Measured]:
    """All words compared part by part."""
    pairs = form_friends(first.gallery, second.gallery, judge, -30.5)
    return cells(pairs, n_shared(first, second), LEAST_LOG_ODDS) | closer(pairs)


def by_vectors(first: Recorded, second: Recorded, embed: Embed) -> dict[str, Measured]:
    """All words compared by one vector for each clip."""
    shelves = first.by_vectors(embed), second.by_vectors(embed)
    return cells(friends(*shelves, EVERYTHING), n_shared(first, second), CLOSENESS) | closer(
        friends(*shelves, EVERY_PAIR)
    )


def listed_among_few(fold: Fold, model: LandmarkEmbedder, least_cosine: float) -> dict[str, Measured]:
    """How many pairs are listed, in the mean, where two small dictionaries share no word: all of them are wrong."""
    rng, counts = np.random.default_rng(0), []
    options = replace(usual_options("landmark-v1"), least_cosine=least_cosine)
    words = sorted({sign.word for sign in fold.query} & {sign.word for sign in fold.support})
    for _ in range(N_DRAWS):
        drawn = rng.permutation(words).tolist()
        sides = ((fold.support, drawn[: FEW[0]], "one"), (fold.query, drawn[FEW[0] : sum(FEW)], "other"))
        shelves = [
            Recorded.of([next(sign for sign in signs if sign.word == word) for word in own], name)
            for signs, own, name in sides
        ]
        counts.append(len(friends(*(gallery.by_vectors(model.embed) for gallery in shelves), options)))
    return {"wrong pairs a word": Measured(float(np.mean(counts)) / FEW[0])}


def sha256_of(path: Path) -> str:
    """Which weights were measured: a model may be replaced under the same name."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def n_shared(first: Recorded, second: Recorded) -> int:
    """How many words both have."""
    return len({entry.word for entry in first.gallery.entries} & {entry.word for entry in second.gallery.entries})


def main(data: Path, run: Path) -> None:
    """Measure, and write results_people.json."""
    torch.set_num_threads(1)
    real = RealSigning.read(data)
    fold = draw_fold(real, FOLD_SEED)
    first, second = Recorded.of(fold.support, "one"), Recorded.of(fold.query, "other")
    own = landmark_embedder_from_checkpoint(fold_model(fold, run / "fold.safetensors"))
    shipped = landmark_embedder_from_checkpoint(load_checkpoint(model_path("landmark-v1")))
    made_up, people = read_judge(), judge_of_people(Recorded.of(fold.seen_support, "rest"))
    rows = [
        ResultRow("parts, shipped judge (made-up signing)", by_parts(first, second, made_up)),
        ResultRow("parts, a judge that learned from people", by_parts(first, second, people)),
        ResultRow("vectors, a model that never saw these words", by_vectors(first, second, own.embed)),
        ResultRow("vectors, landmark-v1 (it learned these words)", by_vectors(first, second, shipped.embed)),
    ]
    few = f"vectors, the same model: {FEW[0]} and {FEW[1]} different words"
    rows += [
        ResultRow(f"{few}, as the command", listed_among_few(fold, own, shipped.threshold)),
        ResultRow(f"{few}, whatever the cosine", listed_among_few(fold, own, -1.0)),
    ]
    best = max(rows[:3], key=lambda one: one.cells["recall at precision 0.9"].mean)
    write_results(
        ExperimentResults(
            name="friends on people",
            title="The same American signs by different people, found in two dictionaries",
            data="real: wlasl300 landmarks",
            command="python experiments/friends/people.py",
            conditions={
                "dictionaries": f"{len(first.signs)} and {len(second.signs)} clips of {n_shared(first, second)} words "
                "in both, by disjoint signers; clips without a hand are left out, none is longer than 30 frames",
                "right": "the same word; that words have variants, and that some words share a sign, is not known",
                "recall, precision": f"from log odds {LEAST_LOG_ODDS} on; from the default closeness of the command "
                f"on, {CLOSENESS} (set on these words)",
                "weights": f"landmark-v1 {sha256_of(model_path('landmark-v1'))}, the other model "
                f"{sha256_of(run / 'fold.safetensors')} (first digits of their sha256)",
                "the other model": "that of experiments/wlasl300, whose recipe was chosen on this fold; it is made "
                "anew, by the present recipe, where RUN has none",
                "wrong pairs a word": f"listed for each of {FEW[0]} words with one clip, mean of {N_DRAWS} draws",
                "words": f"the 100 held-out words of experiments/wlasl300, fold {FOLD_SEED}",
                "interval": "none: there are few pairs",
                "runs": "one",
            },
            columns=("recall at precision 0.9", "recall", "precision", "same word closer", "wrong pairs a word"),
            rows=tuple(rows),
            verdict=f"Best of what never saw these words: {best.name}.",
        ),
        HERE / "results_people.json",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--run", type=Path, default=Path("build/experiments/wlasl300"))
    given = parser.parse_args()
    main(given.data, given.run)
