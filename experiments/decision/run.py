"""Fit how findings of the landmark model are judged, and check it on other signing (see README.md).

    python experiments/decision/run.py --model landmark-v2 --fold-model /tmp/v2/fold.safetensors --popsign FOLDER

Fits on words and signers that the fold model never saw (WLASL, PopSign), writes the calibration that is shipped beside
the weights of --model, and checks it with --model on sets that neither was fitted on.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from experiments.lib.data_sets import read_aslearn
from experiments.lib.landmark_model import RealSigning, at_house_rate, draw_fold, sign_window
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results
from judging import (
    SHOWN,
    Examples,
    Outcome,
    alarms_at,
    anywhere_error,
    bands,
    calibration_error,
    examples_of,
    fit_of,
    log_loss,
    outcome,
)
from material import (
    Material,
    auslan_signs,
    fold_signs,
    hands_signs,
    material_of,
    popsign_signs,
    same_signer_signs,
    track_of,
    trials,
)

from signspot.domain.recordings import Dictionary, Entry
from signspot.domain.results import Provenance
from signspot.domain.time import FRAME_RATE
from signspot.domain.tracks import EntryVectors
from signspot.embedding.zoo import model_path
from signspot.evaluation.calibration import Calibration, PresenceFit, reliability
from signspot.figures.evaluation import AlarmFigure, ReliabilityFigure, plot_calibration
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint
from signspot.spotting.presence import Cohort
from signspot.spotting.search import Query, Rule, search
from signspot.stores.calibration import CALIBRATION_SUFFIX, write_calibration

HERE = Path(__file__).parent
DATA = HERE.parents[2] / "shared" / "data"
SHIPPED = HERE.parents[1] / "src" / "signspot" / "embedding" / "shipped"
PICTURE = HERE.parents[1] / "docs" / "pictures" / "decision.png"
FOLD_SEED = 1  # as in experiments/wlasl300
N_TRIALS = 500  # searches of each set
USUAL = 0.35  # the lowest probability that is shown unless the user asks for another: chosen on the folds
USUAL_READ = 0.35  # the lowest probability near a subtitle: chosen on the folds
RATES = (1.0, 3.0, 5.0, 10.0)  # false alarms that are asked for
BELOW = 0.05  # of a cosine: as much less alike may a sign be than any that was found
COLUMNS = ("precision", "recall", "F1", "alarms per word and hour", "ECE", "ECE, word anywhere", "log loss")


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A set as the fold model or the shipped one searches it."""

    plain: Examples
    read: Examples  # with subtitles


def cohort_of(model: LandmarkEmbedder) -> Cohort:
    """The words that a model knows, rounded as they are shipped."""
    return Cohort(model.word_directions.astype(np.float16).astype(np.float32), model.words)


def searched(material: Material, cohort: Cohort, seed: int, n: int = N_TRIALS) -> Searched:
    """Free searches, and searches near subtitles, where words do not compete (`annotate` chooses among all)."""
    read = trials(material, seed + 1, n // 2, is_read=True)
    return Searched(
        examples_of(trials(material, seed, n), cohort), examples_of(read, cohort, is_read=True, compete=False)
    )


def fitted_materials(data: Path, popsign: Path | None, model: LandmarkEmbedder) -> dict[str, Callable[[], Material]]:
    """The sets that may enter what is shipped; each of words, or signers, that the model never saw."""
    known = set(model.words)
    real = RealSigning.read(data)
    fold = draw_fold(real, FOLD_SEED)
    sets: dict[str, Callable[[], Material]] = {}
    if not {sign.word for sign in fold.query} & known:
        sets["wlasl300, held-out words and signers"] = lambda: material_of("fold", *fold_signs(fold), model, 1)
        unknown = {sign.word for sign in fold.query}
        sets["wlasl300, held-out words, the same signer"] = lambda: material_of(
            "same", *same_signer_signs(real, unknown), model, 2
        )
    sets["wlasl2000 hands, words never learned"] = lambda: material_of("hands", *hands_signs(data, known), model, 3)
    if popsign is not None:
        signs = popsign_signs(popsign)
        clips = [item.sign for item in real.wlasl300 if not item.is_repeat]
        sets["popsign, found by clips of wlasl300"] = lambda: material_of("popsign", signs, clips, model, 4)
    return sets


def cells(fit: PresenceFit, examples: Examples, least: float) -> dict[str, Measured]:
    """How a fit does on a set."""
    found = outcome(examples, fit.probability(examples.evidence) >= least)
    return _outcome_cells(found) | {
        "ECE": Measured(calibration_error(fit, examples)),
        "ECE, word anywhere": Measured(anywhere_error(fit, examples)),
        "log loss": Measured(log_loss(fit, examples)),
    }


def _outcome_cells(found: Outcome) -> dict[str, Measured]:
    numbers = (found.precision, found.recall, found.f1, found.false_alarms)
    return {name: Measured(number) for name, number in zip(COLUMNS[:4], numbers, strict=True)}


def alarm_cells(fit: PresenceFit, examples: Examples) -> dict[str, Measured]:
    """False alarms per word and hour that were counted where RATES were asked for: the mean over numbers of words."""
    return {f"asked {rate:g}": Measured(float(np.mean([*alarms_at(fit, examples, rate).values()]))) for rate in RATES}


def usual(fit: PresenceFit) -> PresenceFit:
    """With the default."""
    return replace(fit, usual=USUAL)


def aslearn_outcome(data: Path, model: LandmarkEmbedder, rule: Rule) -> tuple[Outcome, list[tuple[float, bool]]]:
    """All 125 words in all sentences: a word of a sentence that is found is right once; the rest is false.

    Also the probability of each finding, and whether it is right.
    """
    aslearn = read_aslearn(data / "aslearn")
    rows = model.embed(np.stack([sign_window(at_house_rate(clip.points, clip.seconds)) for clip in aslearn.clips]))
    entries = [Entry(entry_id=clip.clip_id, word=clip.word) for clip in aslearn.clips]
    words = tuple(
        EntryVectors(entry.word, (entry,), row[None], model.fingerprint)
        for entry, row in zip(entries, rows, strict=True)
    )
    query = Query(words, Dictionary.of("aslearn", entries))
    origin = Provenance(media_sha256="0" * 64, model=model.name, fingerprint=model.fingerprint, dictionary="aslearn")
    n_shown = n_right = n_there = 0
    hours, findings = 0.0, list[tuple[float, bool]]()
    for sentence in aslearn.sentences:
        points = at_house_rate(sentence.points, sentence.seconds)
        answers = search(track_of(points, model, sentence.name), query, rule, origin)
        hours += len(words) * len(points) / FRAME_RATE / 3600
        n_there += len(set(sentence.words))
        for answer in answers:
            is_there, found = answer.word in sentence.words, answer.spottings
            n_shown += len(found)
            n_right += bool(found) and is_there
            surest = sorted((one.presence.probability for one in found if one.presence is not None), reverse=True)
            findings += [(sure, is_there and place == 0) for place, sure in enumerate(surest)]
    return Outcome(n_right / max(1, n_shown), n_right / n_there, (n_shown - n_right) / hours), findings


def drawn(fits: Mapping[str, tuple[PresenceFit, Examples]]) -> None:
    """The picture of the docs."""
    lines, alarms = {}, {}
    for name, (fit, examples) in fits.items():
        probability = fit.probability(examples.evidence)
        shown = probability >= SHOWN
        seen = reliability(probability[shown], examples.right[shown])
        full = seen.counts > 0
        lines[name] = ReliabilityFigure(
            seen.promised[full], seen.observed[full], seen.counts[full], seen.expected_error
        )
        counted = [np.mean([*alarms_at(fit, examples, rate).values()]) for rate in RATES]
        alarms[name] = AlarmFigure(np.array(RATES), np.array(counted))
    plot_calibration(lines, alarms, PICTURE, overwrite=True)


def tell(line: str) -> None:
    """A line of the log."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def verdict() -> str:
    """What README.md says about the results."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    found = re.search(r"\*\*Verdict\.\*\*\s*(.+?)(?:\n\n|\Z)", text, re.DOTALL)
    return " ".join(found[1].split()) if found else "Not judged yet."


def main(given: argparse.Namespace) -> None:
    """Fit, check, write."""
    torch.set_num_threads(1)
    shipped = landmark_embedder_from_checkpoint(model_path(given.model))
    judging = landmark_embedder_from_checkpoint(model_path(given.fold_model or given.model))
    rows: list[ResultRow] = []
    sets: dict[str, Searched] = {}
    for number, (name, make) in enumerate(fitted_materials(given.data, given.popsign, judging).items()):
        sets[name] = searched(make(), cohort_of(judging), 10 * number, given.trials)
        tell(f"searched {name}")
    for name, held in sets.items():  # each set by a fit on all others
        others = [one for other, one in sets.items() if other != name or len(sets) == 1]
        fit = usual(fit_of(Examples.joined([one.plain for one in others])))
        by = "the others" if len(sets) > 1 else "itself"
        rows.append(
            ResultRow(f"{name}, fitted on {by}", cells(fit, held.plain, fit.usual) | alarm_cells(fit, held.plain))
        )
        read = fit_of(Examples.joined([one.read for one in others]))
        rows.append(ResultRow("... near subtitles", cells(read, held.read, USUAL_READ)))
        tell(f"{rows[-2]} {rows[-1]}")
    plain, read = (
        usual(fit_of(Examples.joined([one.plain for one in sets.values()]))),
        fit_of(Examples.joined([one.read for one in sets.values()])),
    )
    right = np.concatenate([one.plain.evidence[one.plain.right, 0] for one in sets.values()])
    cohort = cohort_of(shipped)
    calibration = Calibration(
        model=shipped.name, fingerprint=shipped.fingerprint, plain=plain, read=replace(read, usual=USUAL_READ),
        cohort=cohort.vectors, cohort_words=cohort.words, fitted_on="; ".join(sets), lowest=float(right.min()) - BELOW,
    )  # fmt: skip
    write_calibration(calibration, SHIPPED / f"{shipped.name}{CALIBRATION_SUFFIX}", overwrite=True)
    auslan = searched(material_of("auslan", *auslan_signs(given.data), shipped, 5), cohort, 100, given.trials)
    rows.append(
        ResultRow(
            "auslan_daily, another language (never fitted)",
            cells(plain, auslan.plain, plain.usual) | alarm_cells(plain, auslan.plain),
        )
    )
    rows.append(ResultRow("... near subtitles", cells(read, auslan.read, USUAL_READ)))
    tell(f"{rows[-2]} bands {bands(plain, auslan.plain)}")
    rows += aslearn_rows(given.data, shipped, calibration) if given.look else []
    drawn({"held-out words and signers": (plain, Examples.joined([one.plain for one in sets.values()])),
           "another sign language": (plain, auslan.plain)})  # fmt: skip
    results = ExperimentResults(
        name="decision",
        title="Which findings are shown, and how far their probabilities can be believed",
        data=f"real: {', '.join(sets)}; checked on auslan_daily and aslearn",
        command="python experiments/decision/run.py",
        conditions={
            "searches": f"{given.trials} of each set: 1 to 300 words, 1 to 5 clips each, passages of 3 to 24 signs",
            "right": "the middle of a finding lies on a sign of its word, or at most 3 frames beside it",
            "default": f"presence {USUAL:g}; near subtitles {USUAL_READ:g}",
            "ECE": f"of findings with a probability of {SHOWN:g} or more",
            "log loss": "nats for each sign found",
            "model": shipped.fingerprint,
        },
        columns=(*COLUMNS, *(f"asked {rate:g}" for rate in RATES)),
        rows=tuple(rows),
        verdict=verdict(),
        is_percent=False,
    )
    write_results(results, HERE / "results.json")


def aslearn_rows(data: Path, model: LandmarkEmbedder, calibration: Calibration) -> list[ResultRow]:
    """The look at aslearn: by the threshold of the model alone, and by the calibration."""
    by_cosine = Rule(threshold=model.threshold, compete=False)
    ruled = Rule(threshold=model.threshold, calibration=calibration, least_presence=calibration.plain.usual)
    before, _ = aslearn_outcome(data, model, by_cosine)
    after, _ = aslearn_outcome(data, model, ruled)
    _, all_found = aslearn_outcome(data, model, replace(ruled, least_presence=SHOWN))
    error = reliability([sure for sure, _ in all_found], [right for _, right in all_found]).expected_error
    return [
        ResultRow(f"aslearn, 125 words, cosine {model.threshold:g}, no competition", _outcome_cells(before)),
        ResultRow("aslearn, 125 words, by default (never fitted)", _outcome_cells(after) | {"ECE": Measured(error)}),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", default="landmark-v1", help="whose calibration is shipped")
    parser.add_argument("--fold-model", default="", help="a model without the held-out words and signers")
    parser.add_argument("--popsign", type=Path, help="a folder of .pose files that `signspot landmarks` wrote")
    parser.add_argument("--trials", type=int, default=N_TRIALS)
    parser.add_argument("--look", action="store_true", help="also look at aslearn: count how often (README.md)")
    main(parser.parse_args())
