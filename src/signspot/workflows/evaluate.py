"""Score a model on a test set: the paper's benchmark, closed-vocabulary spotting, and the challenge's F1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from signspot.domain.tracks import FloatArray, WindowGrid
from signspot.evaluation.confusion import ConfusionReport, MinimalPair, look_alike_pairs, minimal_pair_report
from signspot.evaluation.decisions import Case, choose_cases
from signspot.evaluation.intervals import BootstrapOptions, Interval
from signspot.evaluation.overlap import OverlapScores, overlap_scores
from signspot.evaluation.protocol import Gallery, ProtocolOptions, ProtocolScores, TestPassage, score_passages
from signspot.evaluation.protocol_intervals import ProtocolIntervals, protocol_intervals
from signspot.formats.challenge import read_challenge
from signspot.learning.material import Ints, Material
from signspot.workflows.evaluate_paper import LOCALISATION, SPOTTING, PaperRow, paper_row
from signspot.workflows.evaluate_spotting import SpottingScores, score_spotting
from signspot.workflows.evaluate_subjects import HeadSubject, Subject, WhichModel, Windows, open_model, subject_of
from signspot.workflows.evaluate_test_set import ProtocolChoice, TestFiles, TestSet, open_test_set
from signspot.workflows.tracks import Progress, store_at

N_LISTED = 10  # decisions about each passage, beside those about the entries of its word
SAME_SIGN = "nothing: one sign"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """What the user asked for."""

    model: str  # a run folder, a model file, a name of the zoo, "truth" or "random"
    which: WhichModel = "last"  # of a run
    files: TestFiles = TestFiles()
    protocol: ProtocolChoice = ProtocolChoice()
    spotting: bool = False  # also the closed-vocabulary benchmark
    bootstrap: BootstrapOptions = BootstrapOptions()
    seed: int = 0  # of the random model


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table; shares of 1."""

    name: str
    value: float
    by_class: Interval  # with other words
    by_unit: Interval | None = None  # with other signers, or videos
    chance: float | None = None
    paper: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CaseCurves:
    """A passage worth a look: similarity over its windows."""

    case: Case
    centres: Ints  # (n_windows,) frames
    own_rows: Ints  # (m,) the entries of its word, as rows of the gallery
    own: FloatArray  # (n_windows, m) cosine
    other: FloatArray | None  # (n_windows,) cosine with the best entry of another word


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """Everything that came out."""

    request: EvaluationRequest
    test: TestSet
    scores: ProtocolScores
    measures: tuple[Measure, ...]
    cases: tuple[CaseCurves, ...]
    confusion: ConfusionReport
    spotting: SpottingScores | None
    paper: PaperRow | None
    notes: tuple[str, ...] = field(default=())

    @property
    def n_words(self) -> int:
        """How many words were tested."""
        return len(np.unique(self.scores.passages.words))

    def word(self, number: int) -> str:
        """A word of the vocabulary."""
        return self.test.material.vocabulary.words[number]

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        choice = self.request.protocol
        chosen = asdict(choice) | {"split": None if choice.split is None else str(choice.split)}
        means = self.scores.passages.class_ap
        return {
            "model": self.request.model,
            "checkpoint": self.request.which,
            "protocol": chosen,
            "passages": len(self.scores.passage_ids),
            "words": self.n_words,
            "entries": self.scores.n_entries,
            "unit": self.test.unit,
            "bootstrap": asdict(self.request.bootstrap),
            "measures": [asdict(measure) for measure in self.measures],
            "paper": None if self.paper is None else asdict(self.paper),
            "spotting": None if self.spotting is None else self.spotting.as_json(),
            "average_precision_by_word": {
                self.word(number): float(value) for number, value in zip(means.classes, means.values, strict=True)
            },
            "confusion": [asdict(kind) for kind in self.confusion.kinds],
            "notes": list(self.notes),
        }


def evaluate(request: EvaluationRequest, progress: Progress = lambda step, done, total: None) -> Evaluation:
    """Score a model as asked; vectors of videos that are in the store are not computed again."""
    model = open_model(request.model, request.which)
    with store_at(request.files.store) as store:
        test = open_test_set(request.files, request.protocol, model, store, progress)
        subject = subject_of(model, test.material, request.seed)
        gallery = Gallery(test.gallery_words, subject.entries(test.material, test.entry_rows))
        options = ProtocolOptions(keep_cosine=True, n_listed=N_LISTED)
        scores = score_passages(_passages(test, subject, request.protocol.stride, progress), gallery, options)
        stride, draws = request.protocol.stride, request.bootstrap
        spotting = score_spotting(test, subject, stride, draws, progress) if request.spotting else None
        progress("drawing intervals", 0, None)
        paper = paper_row(request.protocol.name, model.config)
        pairs = _pairs(test)
        cosine = np.asarray(scores.cosine, np.float32)
        return Evaluation(
            request=request,
            test=test,
            scores=scores,
            measures=(*_measures(scores, protocol_intervals(scores, draws), paper), *_spotting_measures(spotting)),
            cases=tuple(_case_curves(test, subject, gallery, scores, stride)),
            confusion=minimal_pair_report(cosine, gallery.words, scores.passages.words, pairs, draws),
            spotting=spotting,
            paper=paper,
            notes=(*model.notes, *test.notes, *_notes(scores)),
        )


def evaluate_challenge(truth: Path, answers: Path) -> OverlapScores:
    """The F1 of the 2022 sign-spotting challenge for two of its JSON files."""
    return overlap_scores(read_challenge(truth), read_challenge(answers))


def passage_windows(material: Material, place: int, stride: int) -> Windows:
    """The windows inside a passage, the last pulled back to its end, and its label."""
    passages = material.passages
    start, stop, track = (int(column[place]) for column in (passages.start, passages.stop, passages.track))
    starts = start + WindowGrid(max(1, stop - start), stride=stride).starts()
    starts = np.unique(np.minimum(starts, len(material.tracks[track]) - 1))
    label = passages.label[place : place + 1], passages.label_frame[place : place + 1]
    return Windows(track, starts, *label)


def _passages(test: TestSet, subject: Subject, stride: int, progress: Progress) -> Iterator[TestPassage]:
    """Embed the windows of one passage after the other."""
    for number, place in enumerate(test.places.tolist()):
        progress("looking passages up", number, len(test.places))
        asked = passage_windows(test.material, place, stride)
        yield TestPassage(
            passage_id=test.material.passages.names[place],
            word=int(asked.label[0]),
            label_frame=int(asked.label_frame[0]),
            centres=asked.centres,
            vectors=subject.windows(test.material, asked),
            signer=test.units[place],
        )


def _case_curves(
    test: TestSet, subject: Subject, gallery: Gallery, scores: ProtocolScores, stride: int
) -> Iterator[CaseCurves]:
    words, place_of = scores.passages.words, {test.material.passages.names[place]: place for place in test.places}
    cosine = np.asarray(scores.cosine, np.float32)
    for case in choose_cases(cosine, words, gallery.words, scores.is_localised):
        asked = passage_windows(test.material, place_of[scores.passage_ids[case.passage]], stride)
        windows = subject.windows(test.material, asked)
        own_rows = np.flatnonzero(gallery.words == words[case.passage])
        other = None if case.other_row is None else windows @ gallery.vectors[case.other_row]
        yield CaseCurves(case, asked.centres, own_rows, windows @ gallery.vectors[own_rows].T, other)


def _measures(scores: ProtocolScores, spread: ProtocolIntervals, paper: PaperRow | None) -> tuple[Measure, ...]:
    mean_ap, recall, found = spread.mean_ap, spread.recall_at_k, spread.localisation
    both = (paper.mean_ap, paper.recall_at_5, LOCALISATION) if paper is not None else (None, None, None)
    chance = (scores.chance_mean_ap, scores.chance_recall_at_k, scores.chance_localisation)
    entries_ap, entries_recall = spread.entries_mean_ap, spread.entries_recall_at_k
    return (
        Measure("mAP", scores.mean_ap, mean_ap.by_class, mean_ap.by_signer, chance[0], both[0]),
        Measure("R@5", scores.recall_at_k, recall.by_class, recall.by_signer, chance[1], both[1]),
        Measure("localisation", scores.localisation, found.by_class, found.by_signer, chance[2], both[2]),
        Measure("mAP, from entries", entries_ap.estimate, entries_ap),
        Measure("R@5, from entries", entries_recall.estimate, entries_recall),
    )


def _spotting_measures(spotting: SpottingScores | None) -> tuple[Measure, ...]:
    if spotting is None:
        return ()
    found = spotting.mean_ap
    return (Measure("spotting mAP", found.estimate, found, chance=spotting.chance, paper=SPOTTING),)


def _pairs(test: TestSet) -> tuple[MinimalPair, ...]:
    """Words of one sign as the dictionary says, then words whose clips look most alike to the trunk."""
    material, words = test.material, test.material.vocabulary
    tested = np.unique(material.passages.label[test.places])
    same: set[tuple[int, int]] = set()
    for first, second in test.same_sign.pairs:
        if first < second and first in words and second in words:
            same.add((words.id_of(first), words.id_of(second)))
    rows = np.flatnonzero(np.isin(material.entry_word, tested))
    alike = look_alike_pairs(_plain(material, rows), material.entry_word[rows])
    one_sign = tuple(MinimalPair(*pair, SAME_SIGN) for pair in sorted(same))
    return (*one_sign, *(pair for pair in alike if (pair.first, pair.second) not in same))


def _plain(material: Material, rows: Ints) -> FloatArray:
    return HeadSubject(None).entries(material, rows)


def _notes(scores: ProtocolScores) -> tuple[str, ...]:
    lost = scores.left_out
    return (f"{len(lost)} passages left out: the dictionary has no entry for their word",) if lost else ()
