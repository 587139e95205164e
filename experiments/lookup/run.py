"""How often a recording by somebody unknown finds its word: `python experiments/lookup/run.py [PRESET SEED]`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments share their vectors

from applications.tables import arguments, conditions, share
from applications.world_vectors import Question, WorldVectors, world_vectors
from experiments.lib.paper_tables import ExperimentResults, ResultRow, write_results

from signspot.domain.results import Band
from signspot.spotting.lookup import Guess, LookupLimits, guesses

LIMITS = LookupLimits(possible=0.6, clear=0.05)
Answers = list[tuple[Question, tuple[Guess, ...]]]


def asked(made: WorldVectors, views: tuple[int, ...]) -> Answers:
    """All questions, each seen in these views: 0 as recorded, 1 mirrored."""
    return [
        (question, guesses(question.vectors[list(views)], made.entries, made.whole_vectors, LIMITS))
        for question in made.questions
    ]


def row(name: str, answers: Answers) -> ResultRow:
    """Shares of questions whose word is first, or among the six."""
    words = np.unique([question.word for question, _ in answers], return_inverse=True)[1]
    right = [[guess.word == question.word for guess in found] for question, found in answers]
    first, six = np.array([hits[0] for hits in right]), np.array([any(hits) for hits in right])
    return ResultRow(name, {"top-1": share(first, words), "top-6": share(six, words)})


def band_row(band: Band, answers: Answers) -> ResultRow:
    """How often the first word is right where it is said to be likely, possible, unlikely."""
    said = [(question, found[0]) for question, found in answers if found[0].band is band]
    words = np.unique([question.word for question, _ in said], return_inverse=True)[1]
    first = np.array([guess.word == question.word for question, guess in said], bool)
    name = f'first word said to be "{band.value}" ({len(said)} of {len(answers)} questions)'
    return ResultRow(name, {"top-1": share(first, words)} if said else {})


def main() -> None:
    """Measure and write results.json."""
    preset, seed = arguments()
    made = world_vectors(preset, seed)
    answers = asked(made, (0, 1))
    rows = [row("test signers, as recorded and mirrored", answers)]
    for signer in sorted({question.signer_id for question in made.questions}):
        own = [(question, found) for question, found in answers if question.signer_id == signer]
        hand = "left" if made.world.signer(signer).left_handed else "right"
        rows.append(row(f"{signer}, {hand}-handed", own))
    rows.append(row("as recorded only", asked(made, (0,))))
    rows.append(row("mirrored recordings, compared as recorded only", asked(made, (1,))))
    rows += [band_row(band, answers) for band in Band]
    best = rows[0].cells["top-6"].mean
    write_results(
        ExperimentResults(
            name="lookup",
            title="A recording of one sign by a signer never seen: is its word among the first six?",
            data=f"synthetic world: {preset}, version {made.world.preset.version}, seed {seed}",
            command=f"python experiments/lookup/run.py {preset} {seed}",
            conditions=conditions(made)
            | {"words": str(len(made.world.vocabulary)), "questions": str(len(made.questions)), "bands": str(LIMITS)},
            columns=("top-1", "top-6"),
            rows=tuple(rows),
            verdict=f"{'Reached' if best >= 0.9 else 'Missed'}: top-6 {100 * best:.1f}% (aim 90%), synthetic world.",
        ),
        Path(__file__).parent / "results.json",
    )


if __name__ == "__main__":
    main()
