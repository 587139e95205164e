"""Are planted false friends of two languages found: `python experiments/friends/run.py [PRESET SEED]`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments share their vectors

from applications.tables import arguments, conditions
from applications.world_vectors import TwoDictionaries, both_dictionaries, world_vectors
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results

from signspot.spotting.friends import FriendOptions, Friends, Gallery, Relation, friends

DEFAULT = FriendOptions()
PRECISION = 0.9
TEST_SEEDS = (2, 3, 4)  # of worlds of which neither the model nor the default closeness knows anything
Pairs = set[tuple[str, str]]
Judged = list[tuple[float, bool, bool]]  # closeness, of the same form, planted


def found_pairs(both: TwoDictionaries, options: FriendOptions) -> tuple[Friends, ...]:
    """Everything that is called a false friend, the closest first."""
    first, second = Gallery(both.entries, both.vectors), Gallery(both.other_entries, both.other_vectors)
    return tuple(pair for pair in friends(first, second, options) if pair.relation is Relation.FALSE_FRIEND)


def planted_pairs(both: TwoDictionaries) -> Pairs:
    """What the world planted."""
    return {(friend.word, friend.other_word) for friend in both.world.lexicon.false_friends}


def same_form(both: TwoDictionaries) -> Pairs:
    """All different words of which some variants have the same form: planted pairs, and cognates of synonyms."""
    lexicon = both.world.lexicon
    return {
        (word, other)
        for word, senses in lexicon.senses.items()
        for other, others in lexicon.other_senses.items()
        if word != other and {sense.form_id for sense in senses} & {sense.form_id for sense in others}
    }


def judged(worlds: list[TwoDictionaries], options: FriendOptions) -> Judged:
    """The pairs found in some worlds, the closest first, and whether they are right."""
    found: Judged = []
    for both in worlds:
        true, planted = same_form(both), planted_pairs(both)
        for pair in found_pairs(both, options):
            words = (pair.entry.word, pair.other.word)
            found.append((pair.closeness, words in true, words in planted))
    return sorted(found, reverse=True)


def row(name: str, found: Judged, n_planted: int) -> ResultRow:
    """Recall of the planted pairs, precision by the forms."""
    precision = sum(right for _, right, _ in found) / max(1, len(found))
    recall = sum(planted for *_, planted in found) / max(1, n_planted)
    return ResultRow(name, {"recall of planted pairs": Measured(recall), "precision": Measured(precision)})


def at_precision(found: Judged) -> Judged:
    """The longest list of the closest pairs of which at least nine in ten are true."""
    right = np.cumsum([is_right for _, is_right, _ in found])
    enough = np.flatnonzero(right / np.arange(1, len(found) + 1) >= PRECISION) if found else np.array([], int)
    return found[: int(enough[-1]) + 1] if len(enough) else []


def main() -> None:
    """Measure and write results.json."""
    preset, seed = arguments()
    made = world_vectors(preset, seed)
    own, tests = [both_dictionaries(made, seed)], [both_dictionaries(made, other) for other in TEST_SEEDS]
    rows: list[ResultRow] = []
    for name, worlds in (("other worlds", tests), ("the world by which the default was set", own)):
        n_planted = sum(len(planted_pairs(both)) for both in worlds)
        rows.append(row(f"{name} ({n_planted} planted), default options", judged(worlds, DEFAULT), n_planted))
        for rank in (1, 2, 3):
            everything = judged(worlds, FriendOptions(least_closeness=-2, rank=rank))
            title = f"{name}, each among the other's first {rank}, at precision 0.9"
            rows.append(row(title, at_precision(everything), n_planted))
    best = rows[DEFAULT.rank].cells["recall of planted pairs"].mean
    write_results(
        ExperimentResults(
            name="friends",
            title="False friends planted between two languages",
            data=f"synthetic worlds: {preset}, version {made.world.preset.version}, seeds {TEST_SEEDS}; set on {seed}",
            command=f"python experiments/friends/run.py {preset} {seed}",
            conditions=conditions(made)
            | {
                "tested on": f"both languages of worlds {TEST_SEEDS}: no sign and no signer was seen in training",
                "right": "the two words share a form: planted, or cognates of synonyms",
                "default options": str(DEFAULT),
                "interval": "none: there are few pairs",
            },
            columns=("recall of planted pairs", "precision"),
            rows=tuple(rows),
            verdict=f"{'Reached' if best >= 0.9 else 'Missed'}: {100 * best:.1f}% of the planted pairs "
            "at precision 0.9 (aim 90%) on synthetic worlds.",
        ),
        Path(__file__).parent / "results.json",
    )


if __name__ == "__main__":
    main()
