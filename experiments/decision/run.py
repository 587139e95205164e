"""Fit how findings of the landmark model are judged, and check it on other signing (see README.md).

    python experiments/decision/run.py --popsign FOLDER [--model NAME] [--fold-model FILE] [--kept FOLDER] [--look]

Fits on words or signers that the model never saw (WLASL, PopSign), writes the calibration that is shipped beside the
weights of --model, and checks it with --model on sets that neither was fitted on.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from experiments.lib.data_sets import read_aslearn
from experiments.lib.landmark_model import RealSigning, at_house_rate, draw_fold, sign_window
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, read_results, write_results
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
    shown_usually,
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
N_TRIALS = 72  # rounds of searches of each set
USUAL_ALARMS = (
    1.0  # per word and hour, unless the user asks for more: with 5, three of four findings on the folds are wrong
)
USUAL = 0.1  # and the lowest probability that is: chosen on the folds
USUAL_READ = 0.35  # the lowest probability near a subtitle: chosen on the folds
RATES = (1.0, 3.0, 5.0, 10.0)  # false alarms that are asked for
N_ASLEARN = 125  # words
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


def searched(make: Callable[[], Material], cohort: Cohort, seed: int, n: int, kept: Path | None) -> Searched:
    """Free searches, and searches near subtitles, where words do not compete (`annotate` chooses among all).

    `kept` names the files that they are kept in, or are already.
    """
    files = None if kept is None else (kept.with_suffix(".plain.npz"), kept.with_suffix(".read.npz"))
    if files is not None and all(path.is_file() for path in files):
        return Searched(*(Examples.read(path) for path in files))
    material = make()
    found = Searched(
        examples_of(trials(material, seed, n), cohort),
        examples_of(trials(material, seed + 1, n, is_read=True), cohort, is_read=True, compete=False),
    )
    for path, part in zip(files or (), (found.plain, found.read), strict=False):
        part.write(path)
    return found


def fitted_materials(
    data: Path, popsign: Path | None, model: LandmarkEmbedder, *, is_fold: bool
) -> dict[str, Callable[[], Material]]:
    """The sets that may enter what is shipped; each of words, or signers, that the model never saw."""
    known = set(model.words)
    sets: dict[str, Callable[[], Material]] = {}
    if is_fold:
        real = RealSigning.read(data)
        fold = draw_fold(real, FOLD_SEED)
        unknown = {sign.word for sign in fold.query}
        if unknown & known:
            raise SystemExit(f"the fold model knows {len(unknown & known)} words that are held out")
        sets["wlasl300, held-out words and signers"] = lambda: material_of("fold", *fold_signs(fold), model, 1)
        sets["wlasl300, held-out words, the same signer"] = lambda: material_of(
            "same", *same_signer_signs(real, unknown), model, 2
        )
    hands, clips = hands_signs(data, known)
    sets["wlasl2000 hands, words never learned"] = lambda: material_of("hands", hands, clips, model, 3)
    signs = [] if popsign is None else popsign_signs(popsign)
    if signs:
        tell(f"{len(signs)} clips in {popsign}, {len({one.word for one in signs} - known)} words never learned")
        name = f"popsign ({len(signs)} clips), words never learned, found by wlasl2000 hands"
        sets[name] = lambda: material_of("popsign", signs, clips, model, 4)
    return sets


def cells(fit: PresenceFit, examples: Examples) -> dict[str, Measured]:
    """How a fit does on a set, by default."""
    found = outcome(examples, shown_usually(fit, examples))
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


def plain_fit(sets: Sequence[Searched]) -> PresenceFit:
    """Of free searches, with the default."""
    return replace(fit_of(Examples.joined([one.plain for one in sets])), usual=USUAL, usual_alarms=USUAL_ALARMS)


def read_fit(sets: Sequence[Searched]) -> PresenceFit:
    """Of searches near subtitles, with the default."""
    return replace(fit_of(Examples.joined([one.read for one in sets])), usual=USUAL_READ)


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


def tell_choices(name: str, fit: PresenceFit, examples: Examples) -> None:
    """What other defaults would show, and the false alarms of searches for few words and for many."""
    tell(f"{name}: error {calibration_error(fit, examples):.3f}, bands {bands(fit, examples)}")
    for rate in RATES:
        counted = {size: round(number, 1) for size, number in alarms_at(fit, examples, rate).items()}
        tell(f"  asked {rate:g} false alarms, counted by words searched for: {counted}")
    for rate in (3.0, 5.0, 8.0, 15.0):
        for least in (0.1, 0.2, 0.3, 0.4):
            one = replace(fit, usual=least, usual_alarms=rate)
            found = outcome(examples, shown_usually(one, examples))
            tell(f"  default {rate:g}/h and {least:g}: {found}, F1 {found.f1:.3f}")


def verdict() -> str:
    """What README.md says about the results."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    found = re.search(r"\*\*Verdict\.\*\*\s*(.+?)(?:\n\n|\Z)", text, re.DOTALL)
    return " ".join(found[1].split()) if found else "Not judged yet."


def searched_auslan(given: argparse.Namespace, model: LandmarkEmbedder) -> Searched:
    """Another sign language, only to check on."""
    kept = None if given.kept is None else given.kept / "auslan"
    make = partial(_auslan, given.data, model)
    return searched(make, cohort_of(model), 100, given.trials, kept)


def _auslan(data: Path, model: LandmarkEmbedder) -> Material:
    return material_of("auslan", *auslan_signs(data), model, 5)


def main(given: argparse.Namespace) -> None:
    """Fit, check, write."""
    torch.set_num_threads(1)
    shipped = landmark_embedder_from_checkpoint(model_path(given.model))
    judging = landmark_embedder_from_checkpoint(model_path(given.fold_model or given.model))
    rows: list[ResultRow] = []
    sets: dict[str, Searched] = {}
    materials = fitted_materials(given.data, given.popsign, judging, is_fold=bool(given.fold_model))
    for number, (name, make) in enumerate(materials.items()):
        kept = None if given.kept is None else given.kept / f"fit-{number}"
        if given.only not in ("", f"fit-{number}"):
            continue
        sets[name] = searched(make, cohort_of(judging), 10 * number, given.trials, kept)
        tell(f"searched {name}: {sets[name].plain.word_hours:.0f} word-hours")
    if given.only:
        if given.only == "auslan":
            searched_auslan(given, shipped)
        return
    for name, held in sets.items():  # each set by a fit on all others
        others = [one for other, one in sets.items() if other != name or len(sets) == 1]
        by = "the others" if len(sets) > 1 else "itself"
        fit, near = plain_fit(others), read_fit(others)
        rows.append(ResultRow(f"{name}, fitted on {by}", cells(fit, held.plain) | alarm_cells(fit, held.plain)))
        rows.append(ResultRow("... near subtitles", cells(near, held.read)))
        tell_choices(name, fit, held.plain)
    plain, read = plain_fit([*sets.values()]), read_fit([*sets.values()])
    right = np.concatenate([one.plain.evidence[one.plain.right, 0] for one in sets.values()])
    cohort = cohort_of(shipped)
    calibration = Calibration(
        model=shipped.name, fingerprint=shipped.fingerprint, plain=plain, read=read,
        cohort=cohort.vectors, cohort_words=cohort.words, fitted_on="; ".join(sets), lowest=float(right.min()) - BELOW,
    )  # fmt: skip
    write_calibration(calibration, SHIPPED / f"{shipped.name}{CALIBRATION_SUFFIX}", overwrite=True)
    auslan = searched_auslan(given, shipped)
    name = "auslan_daily, another language (never fitted)"
    rows.append(ResultRow(name, cells(plain, auslan.plain) | alarm_cells(plain, auslan.plain)))
    rows.append(ResultRow("... near subtitles", cells(read, auslan.read)))
    tell_choices(name, plain, auslan.plain)
    rows += aslearn_rows(given.data, shipped, calibration) if given.look else []
    drawn({"held-out words and signers": (plain, Examples.joined([one.plain for one in sets.values()])),
           "another sign language": (plain, auslan.plain)})  # fmt: skip
    results = ExperimentResults(
        name="decision",
        title="Which findings are shown, and how far their probabilities can be believed",
        data=f"real: {', '.join(sets)}; checked on auslan_daily and aslearn",
        command="python experiments/decision/run.py --popsign FOLDER --look",
        conditions={
            "searches": f"{given.trials} rounds of each set: 1 to 256 words, of which a fifth is there, "
            "1 to 5 clips each, passages of 4 to 120 signs",
            "right": "the middle of a finding lies on a sign of its word, or at most 3 frames beside it",
            "default": f"at most {USUAL_ALARMS:g} false alarms per word and hour, and presence {USUAL:g} or more; "
            f"near subtitles presence {USUAL_READ:g}",
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
    least = calibration.plain.usual_presence(N_ASLEARN)
    ruled = Rule(threshold=model.threshold, calibration=calibration, least_presence=least)
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
    parser.add_argument("--kept", type=Path, help="a folder that keeps the searches, so that another fit is quick")
    parser.add_argument("--only", default="", help="search for --kept only: fit-0, fit-1... or auslan")
    parser.add_argument("--look", action="store_true", help="also look at aslearn: count how often (README.md)")
    parser.add_argument("--verdict", action="store_true", help="only take over the verdict that README.md has by now")
    asked = parser.parse_args()
    if asked.verdict:
        write_results(replace(read_results(HERE / "results.json"), verdict=verdict()), HERE / "results.json")
    else:
        main(asked)
