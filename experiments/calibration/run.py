"""Whether probabilities keep their promise for signers never seen: `python experiments/calibration/run.py`.

A made-up world with eight test signers. A quick linear model learns from the training signers; a calibration is fitted
on four of the test signers and judged on the other four, whom neither has seen.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results
from joint_model import JointModel, entry_vectors, learned, track_of

from signspot.domain.recordings import Annotation, Dictionary
from signspot.domain.results import Provenance, VideoAnswer, WordAnswer
from signspot.domain.time import FRAME_MS, FrameSpan
from signspot.domain.tracks import Floats
from signspot.evaluation.calibration import Calibration, PresenceFit, Reliability, reliability
from signspot.figures.evaluation import AlarmFigure, ReliabilityFigure, plot_calibration
from signspot.files.atomic import atomic_output, make_folder
from signspot.spotting.peaks import Refinement, refined_span
from signspot.spotting.search import Query, Rule, search, similarities
from signspot.workflows.annotate import KnownWords, explained, known_words
from signspot.workflows.calibrate import (
    SHOWN,
    CalibrateRequest,
    Examples,
    LabelledVideo,
    Method,
    cohort_of,
    searched_examples,
)
from signspot.workflows.spot import SpotOptions, mentions_of
from signspot.world.settings import preset_named
from signspot.world.simulation import EpisodePerformance, World

HERE = Path(__file__).parent
PICTURE = HERE.parents[1] / "docs" / "pictures" / "calibration.png"
RATES = (0.3, 1.0, 3.0, 10.0)
LEVELS = (0.4, 0.6, 0.8)
SEARCHES = {"whole episodes": False, "near subtitles": True}
METHODS: tuple[Method, ...] = ("logistic", "isotonic")
REQUEST = CalibrateRequest(corpus=Path(), dictionary=Path(), complete=True)
ORIGIN = Provenance(media_sha256="0" * 64, model="joints", fingerprint="", dictionary="world")


@dataclass(frozen=True, slots=True, eq=False)
class Filmed:
    """An episode with its vectors and its whole truth."""

    episode: EpisodePerformance
    video: LabelledVideo


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """The episodes of the signers that are fitted on, and of those that are judged."""

    query: Query
    fitted: list[Filmed]
    held: list[Filmed]

    @classmethod
    def of(cls, world: World, model: JointModel) -> Halves:
        """Embed all test episodes; the group of a video is its signer."""
        query = Query(tuple(entry_vectors(world, model)), Dictionary.of("world", world.dictionary_entries()))
        halves: tuple[list[Filmed], list[Filmed]] = ([], [])
        for episode in world.perform_episodes("test"):
            marks = tuple(Annotation(episode.episode_id, one.word, one.span.stop - 1) for one in episode.truth)
            signer = int(episode.performance.signer.signer_id.rpartition("-")[2])
            video = LabelledVideo(track_of(world, episode, model), marks, episode.subtitles, signer)
            halves[signer % 2].append(Filmed(episode, video))
            tell(f"embedded {episode.episode_id}")
        return cls(query, *halves)

    def examples(self, half: list[Filmed], *, is_read: bool) -> Examples:
        """The candidates of one half."""
        videos = [one.video for one in half]
        return searched_examples(videos, self.query, cohort_of(self.query.words), REQUEST, is_read=is_read)


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """How a fit does on the signers that it was not fitted on."""

    fit: PresenceFit
    seen: Reliability  # of the findings that anybody would look at
    alarms: Floats  # counted in an hour for each word, where RATES were asked for

    @classmethod
    def of(cls, fit: PresenceFit, held: Examples) -> Judgement:
        """Judge a fit."""
        probability = fit.probability(held.evidence)
        shown, wrong = probability >= SHOWN, probability[~held.right]
        counted = [(wrong >= fit.least_presence(rate)).sum() / held.word_hours.sum() for rate in RATES]
        return cls(fit, reliability(probability[shown], held.right[shown]), np.array(counted))

    @property
    def cells(self) -> dict[str, Measured]:
        """For the table."""
        alarms = {alarm_column(rate): Measured(float(n)) for rate, n in zip(RATES, self.alarms, strict=True)}
        return {"ECE": Measured(self.seen.expected_error), **alarms}


def judged(halves: Halves) -> dict[str, Judgement]:
    """Fit on one half of the signers and judge on the other, by search and method."""
    found: dict[str, Judgement] = {}
    for where, is_read in SEARCHES.items():
        known = halves.examples(halves.fitted, is_read=is_read)
        held = halves.examples(halves.held, is_read=is_read)
        for method in METHODS:
            found[f"{where}, {method}"] = Judgement.of(known.fit(method), held)
            tell(f"{where}, {method}: {found[f'{where}, {method}'].cells}")
    return found


def anywhere(calibration: Calibration, halves: Halves) -> float:
    """The error of "the word is signed somewhere in this episode", for every word and episode."""
    promised, truth = [], []
    for one in halves.held:
        signed = {mark.word for mark in one.video.annotations}
        for answer in search(one.video.track, halves.query, Rule(threshold=-1.0, calibration=calibration), ORIGIN):
            promised.append(0.0 if answer.presence is None else answer.presence.probability)
            truth.append(answer.word in signed)
    return reliability(promised, truth).expected_error


def overlap(half: Sequence[Filmed], query: Query, how: Refinement | None) -> float:
    """The mean intersection over union with the true span, of every sign on which its word's best window lies."""
    shares = []
    for one in half:
        for compared in similarities(one.video.track, query.words):
            for token in (token for token in one.episode.truth if token.word == compared.word):
                near = FrameSpan(max(0, token.span.start - 30), min(len(compared.grid), token.span.stop + 30))
                window = near.start + int(compared.best[near.start : near.stop].argmax())
                if token.span.start - 8 <= compared.grid.centre(window) < token.span.stop + 8:
                    span = compared.grid.span(window) if how is None else refined_span(compared, window, how)
                    shared = max(0, min(span.stop, token.span.stop) - max(span.start, token.span.start))
                    shares.append(shared / (len(span) + len(token.span) - shared))
    return float(np.mean(shares))


def answered(one: Filmed, query: Query, calibration: Calibration, options: SpotOptions) -> tuple[WordAnswer, ...]:
    """What `annotate` chooses from, in an episode near its subtitles."""
    mentions = mentions_of(one.episode.subtitles, query.dictionary.vocabulary, options)
    mentioned = replace(query, words=tuple(entries for entries in query.words if entries.word in mentions))
    rule = Rule(threshold=-1.0, calibration=calibration, least_presence=options.least_presence or 0, compete=False)
    return search(one.video.track, mentioned, rule, ORIGIN, mentions, options.padding_ms)


def localised(halves: Halves, calibration: Calibration, least: float) -> KnownWords:
    """Explain the subtitles; judged are all signs whose word a subtitle mentions near them."""
    total = KnownWords(0, 0, 0, 0)
    for one in halves.held:
        options = SpotOptions(subtitles=one.episode.subtitles, least_presence=least, calibration=calibration)
        answer = VideoAnswer(
            video_id=one.episode.episode_id,
            words=answered(one, halves.query, calibration, options),
            duration_ms=len(one.video.track.axis) * FRAME_MS,
            threshold=-1.0,
            least_presence=least,
        )
        found = explained(answer, options, halves.query.dictionary.vocabulary)
        tokens = (token for token in one.episode.truth if token.subtitle is not None)
        marks = [Annotation(one.episode.episode_id, token.word, token.span.stop - 1) for token in tokens]
        total = total + known_words(found, marks, 2000)
        tell(f"explained {one.episode.episode_id}: {total}")
    return total


def located_rows(halves: Halves, calibration: Calibration) -> Iterator[ResultRow]:
    """How well spans and places fit."""
    levels = {level: overlap(halves.fitted, halves.query, Refinement(level=level)) for level in LEVELS}
    tell(f"overlap on the fitted signers, by level: {levels}")
    for name, how in (("span: whole window", None), ("span: refined", Refinement())):
        yield ResultRow(name, {"IoU": Measured(overlap(halves.held, halves.query, how))})
    known = localised(halves, calibration, 0.5)
    yield ResultRow("most similar window", {"localised": Measured(known.accuracy or 0.0, paper=0.83)})
    precision = Measured(known.n_right / max(1, known.n_explained))
    yield ResultRow("explained", {"localised": Measured(known.n_right / known.n), "precision": precision})


def kept_model(world: World) -> JointModel:
    """The model of a world, learned once and kept with other finished runs."""
    folder = Path(os.environ.get("SIGNSPOT_EXPERIMENTS") or "build/experiments") / "calibration"
    make_folder(folder)
    path = folder / f"joints-small-{world.seed}.npz"
    if not path.exists():
        model = learned(world, tell)
        with atomic_output(path) as temporary:
            np.savez(temporary, mean=model.mean, linear=model.linear)
    with np.load(path, allow_pickle=False) as arrays:
        return JointModel(arrays["mean"], arrays["linear"])


def alarm_column(rate: float) -> str:
    """The name of a column."""
    return f"alarms at {rate:g}/h"


def verdict() -> str:
    """What README.md says about the results."""
    found = re.search(
        r"\*\*Verdict\.\*\*\s*(.+?)(?:\n\n|\Z)", (HERE / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    return " ".join(found[1].split()) if found else "Not judged yet."


def tell(line: str) -> None:
    """A line of the log."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def drawn(judgements: dict[str, Judgement]) -> None:
    """The picture of the docs; both methods have the same false alarms."""
    reliabilities, alarms = {}, {}
    for name, one in judgements.items():
        seen, full = one.seen, one.seen.counts > 0
        reliabilities[name] = ReliabilityFigure(
            seen.promised[full], seen.observed[full], seen.counts[full], seen.expected_error
        )
        alarms[name.partition(",")[0]] = AlarmFigure(np.array(RATES), one.alarms)
    plot_calibration(reliabilities, alarms, PICTURE, overwrite=True)


def main() -> None:
    """Learn, calibrate, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=16, help="of the eight test signers together")
    given = parser.parse_args()
    seed = given.seed
    world = World.of(replace(preset_named("small"), n_test_signers=8, test_episodes=given.episodes), seed)
    model = kept_model(world)
    halves = Halves.of(world, model)
    judgements = judged(halves)
    cohort = cohort_of(halves.query.words)
    calibration = Calibration(
        model=model.name,
        fingerprint=model.fingerprint,
        plain=judgements["whole episodes, logistic"].fit,
        read=judgements["near subtitles, logistic"].fit,
        cohort=cohort.vectors,
        cohort_words=cohort.words,
        fitted_on="half of the test signers",
    )
    rows = [ResultRow(name, one.cells) for name, one in judgements.items()]
    rows.append(ResultRow("word anywhere in an episode", {"ECE": Measured(anywhere(calibration, halves))}))
    for row in located_rows(halves, calibration):
        tell(str(row))
        rows.append(row)
    results = ExperimentResults(
        name="calibration",
        title="Do probabilities keep their promise?",
        data=f"synthetic world: small, version {world.preset.version}, seed {seed}, with 8 test signers",
        command=f"python experiments/calibration/run.py --seed {seed} --episodes {given.episodes}",
        conditions={
            "model": "linear discriminants of joints, learned from the training signers (no network)",
            "fitted on": f"{len(halves.fitted)} episodes of 4 test signers, all signs known",
            "judged on": f"{len(halves.held)} episodes of 4 other test signers",
            "ECE": f"10 bins, findings with a probability from {SHOWN:g}; last row: all words and episodes",
            "alarms": "false alarms counted in an hour for each word, where so many were asked for",
            "localised": "signs whose word a subtitle within 2 s mentions, the word known, -20/+5 frames",
        },
        columns=("ECE", *map(alarm_column, RATES), "IoU", "localised", "precision"),
        rows=tuple(rows),
        verdict=verdict(),
        is_percent=False,
    )
    write_results(results, HERE / "results.json")
    drawn(judgements)


if __name__ == "__main__":
    main()
