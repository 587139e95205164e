"""How the place of a word is decided in running signing: `python experiments/landmark_model/places.py RUN`.

Five clips of words never trained, by signers never seen, are stitched to a passage; one clip of each word by somebody
else is the query. RUN holds student.safetensors and fold.safetensors of experiments/wlasl300. Asked is what
experiments/aslearn asks, and whether a word's peak lies within two frames of the word.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from experiments.lib.data_sets import sentence_word_scores
from experiments.lib.landmark_model import (
    Fold,
    RealSigning,
    RecordedSign,
    StitchedPassage,
    draw_fold,
    multi_rate_windows,
    sign_window,
    stitched,
)
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results

from signspot.domain.recordings import Vocabulary
from signspot.domain.tracks import FloatArray
from signspot.embedding.landmarks import Rates, sign_span, window_at
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint
from signspot.models.landmarks import LandmarkChange
from signspot.spotting.annotate import likely_windows

DATA = Path(__file__).parents[3] / "shared" / "data"
HERE = Path(__file__).parent
FOLD_SEED, SEEDS, N_PASSAGES, N_SIGNS = 1, (0, 1, 2), 150, 5
RATES = Rates(stride=2)
SLACK = 2  # frames beside a word that count as found
COLUMNS = ("order", "localisation", "presence mAP", "word-ranking mAP")
CUTS = ((0.0, 0.0), (0.1, 0.1), (-0.1, -0.1), (0.15, 0.0), (0.0, 0.15))  # of a query, at its start and its end
MIRROR = LandmarkChange(mirror=True, radians=0.0, stretch=1.0, speed=1.0, lost_hands=((0.0, 0.0), (0.0, 0.0)))
VERDICT = (
    "Comparing by the whitened trunk instead of the trained head gains 2 points of order, 3 of localisation and 4 of "
    "both mAP. After that, no way to decide the place is two points ahead in what `spot` reports: smoothing and a "
    "soft maximum gain half a point, and the weighted centre gains 2 of order by answering between two peaks, where "
    "nothing is signed. `spot` stays as it is. If the words of a passage are known beforehand, sharing each moment "
    "among them by their similarity gains 4 of both: `annotate` reports that place for every word."
)

Score = Callable[[FloatArray], FloatArray]  # cosines (lengths, n_windows, n_words) -> (n_windows, n_words)
Place = Callable[[FloatArray], FloatArray]  # scores (n_windows, n_words) -> (n_words,) numbers of windows


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """The passages of one seed and the query of each word."""

    passages: tuple[StitchedPassage, ...]
    queries: tuple[RecordedSign, ...]  # in the order of the vocabulary
    vocabulary: Vocabulary

    @classmethod
    def draw(cls, fold: Fold, seed: int) -> Test:
        """Signs of one signer where somebody has five words, else of several."""
        rng = np.random.default_rng(seed)
        vocabulary = Vocabulary.of({sign.word for sign in fold.support} & {sign.word for sign in fold.query})
        pool = [sign for sign in fold.query if sign.word in vocabulary]
        passages = []
        for _ in range(N_PASSAGES):
            first = pool[int(rng.integers(len(pool)))]
            own = {sign.word: sign for sign in pool if sign.signer == first.signer}
            known = own if len(own) >= N_SIGNS else {pool[i].word: pool[i] for i in rng.permutation(len(pool))}
            chosen = [list(known)[i] for i in rng.permutation(len(known))[:N_SIGNS]]
            passages.append(stitched([known[word] for word in chosen], rng))
        examples = [[sign for sign in fold.support if sign.word == word] for word in vocabulary]
        queries = tuple(signs[int(rng.integers(len(signs)))] for signs in examples)
        return cls(tuple(passages), queries, vocabulary)


def best_length(cosine: FloatArray) -> FloatArray:
    """As `spot` does."""
    best: FloatArray = cosine.max(axis=0)
    return best


def peak(score: FloatArray) -> FloatArray:
    """The best window."""
    place: FloatArray = score.argmax(axis=0).astype(np.float32)
    return place


def smoothed(cosine: FloatArray) -> FloatArray:
    """Each length smoothed over two frames to either side."""
    around: FloatArray = np.pad(cosine, ((0, 0), (1, 1), (0, 0)), mode="edge")
    return best_length(np.asarray((around[:, :-2] + 2 * around[:, 1:-1] + around[:, 2:]) / 4, np.float32))


def neighbouring_lengths(cosine: FloatArray) -> FloatArray:
    """The best mean of two neighbouring lengths."""
    return best_length(np.asarray((cosine[1:] + cosine[:-1]) / 2, np.float32))


def soft_lengths(cosine: FloatArray) -> FloatArray:
    """A soft maximum over the lengths."""
    soft: FloatArray = 0.05 * np.log(np.exp(cosine / 0.05).mean(axis=0))
    return soft


def usual_height(cosine: FloatArray) -> FloatArray:
    """Each length less its mean over the passage."""
    return best_length(cosine - cosine.mean(axis=(1, 2), keepdims=True))


def weighted_centre(score: FloatArray) -> FloatArray:
    """The mean place, weighted by the score."""
    weight = np.exp((score - score.max(axis=0)) / 0.02)
    centre: FloatArray = (weight * np.arange(len(score))[:, None]).sum(axis=0) / weight.sum(axis=0)
    return centre


def among_rivals(score: FloatArray) -> FloatArray:
    """Each word where it is likely among the other words of the passage, as `annotate` takes them."""
    place: FloatArray = likely_windows(score).astype(np.float32)
    return place


def query_vectors(model: LandmarkEmbedder, signs: Sequence[RecordedSign], *, cuts: int, mirror: bool) -> FloatArray:
    """One unit row for each sign: the mean over the first `cuts` cuts, and over the mirror image if `mirror`."""
    views = [np.stack([_cut(sign, *cut) for sign in signs]) for cut in CUTS[:cuts]]
    if mirror:
        views.append(np.stack([sign_window(MIRROR.apply(sign.points)) for sign in signs]))
    total = np.sum([model.embed(view) for view in views], axis=0)
    rows: FloatArray = total / np.linalg.norm(total, axis=1, keepdims=True)
    return rows


def _cut(sign: RecordedSign, begin: float, end: float) -> FloatArray:
    span = sign_span(sign.points)
    return window_at(sign.points, span.start + begin * len(span), len(span) * (1 - begin - end))


def figures(
    test: Test, windows: Sequence[FloatArray], queries: FloatArray, score: Score, place: Place = peak
) -> tuple[float, ...]:
    """The columns for one seed; `windows` has (lengths, n_windows, d) for each passage."""
    best, peaks, found = [], [], []
    words = [[test.vocabulary.id_of(sign.word) for sign in passage.signs] for passage in test.passages]
    for passage, vectors, signed in zip(test.passages, windows, words, strict=True):
        scores = score(vectors @ queries.T)
        frames = np.zeros(len(test.vocabulary), np.float32)
        frames[signed] = np.minimum(place(scores[:, signed]) * RATES.stride + 8, len(passage.points) - 1)
        best.append(scores.max(axis=0))
        peaks.append(frames)
        for word, sign in zip(signed, passage.signs, strict=True):
            found.append(sign.span.start - SLACK <= frames[word] < sign.span.stop + SLACK)
    judged = sentence_word_scores(np.stack(best), np.stack(peaks), words)
    return tuple(float(np.mean(one)) for one in (judged.in_order, found, judged.presence, judged.ranking))


def rows_of(test: Test, head: LandmarkEmbedder, trunk: LandmarkEmbedder) -> dict[str, tuple[float, ...]]:
    """Every way to decide, for one seed."""
    cut = [np.stack(list(multi_rate_windows(passage.points, RATES))) for passage in test.passages]

    def embedded(model: LandmarkEmbedder) -> list[FloatArray]:
        return [model.embed(some.reshape(-1, *some.shape[2:])).reshape(*some.shape[:2], -1) for some in cut]

    plain = query_vectors(trunk, test.queries, cuts=1, mirror=False)
    by_trunk = embedded(trunk)
    ways: dict[str, Score] = {
        "whitened trunk, best length (shipped)": best_length,
        "... smoothed in time": smoothed,
        "... the mean of neighbouring lengths": neighbouring_lengths,
        "... a soft maximum over lengths": soft_lengths,
        "... less the usual height of a length": usual_height,
    }
    rows = {name: figures(test, by_trunk, plain, score) for name, score in ways.items()}
    rows["... the weighted centre of the curve"] = figures(test, by_trunk, plain, best_length, weighted_centre)
    rows["... shared with the passage's other words"] = figures(test, by_trunk, plain, best_length, among_rivals)
    for name, cuts, mirror in (("five cuts", 5, False), ("the mirror image", 1, True)):
        views = query_vectors(trunk, test.queries, cuts=cuts, mirror=mirror)
        rows[f"... the query's mean with {name}"] = figures(test, by_trunk, views, best_length)
    by_head = query_vectors(head, test.queries, cuts=1, mirror=False)
    return {"trained head, best length": figures(test, embedded(head), by_head, best_length)} | rows


def main(run: Path, data: Path) -> None:
    """Write results.json."""
    torch.set_num_threads(1)
    head, trunk = (landmark_embedder_from_checkpoint(run / f"{name}.safetensors") for name in ("student", "fold"))
    fold = draw_fold(RealSigning.read(data), FOLD_SEED)
    drawn = [rows_of(Test.draw(fold, seed), head, trunk) for seed in SEEDS]
    rows = []
    for name in drawn[0]:
        runs = np.array([one[name] for one in drawn])
        cells = {
            column: Measured(float(runs[:, i].mean()), tuple(runs[:, i].tolist())) for i, column in enumerate(COLUMNS)
        }
        rows.append(ResultRow(name, cells))
    results = ExperimentResults(
        name="landmark model: places",
        title="Words never trained in running signing by signers never seen: how to compare, and how to decide where",
        data="real: passages stitched from clips of wlasl300 landmarks",
        command="python experiments/landmark_model/places.py RUN",
        conditions={
            "passages": f"{N_PASSAGES} of {N_SIGNS} signs for each of the seeds {SEEDS}; one query for a word",
            "windows": f"{RATES.lengths} frames, every second frame",
            "localisation": f"the peak lies within {SLACK} frames of the word",
            "model": f"trained on fold {FOLD_SEED} of experiments/wlasl300, without these words and signers",
        },
        columns=COLUMNS,
        rows=tuple(rows),
        verdict=VERDICT,
    )
    write_results(results, HERE / "results.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    main(options.run, options.data)
