"""How far the figures of the paper's benchmark would be off with other words, and with other signers."""

from __future__ import annotations

from dataclasses import dataclass

from signspot.evaluation.intervals import BootstrapOptions, Interval, class_interval, mean_interval, unit_interval
from signspot.evaluation.protocol import ProtocolScores
from signspot.evaluation.ranking import Floats


@dataclass(frozen=True, slots=True)
class BothIntervals:
    """The same figure with other words and with other signers."""

    by_class: Interval
    by_signer: Interval


@dataclass(frozen=True, slots=True)
class ProtocolIntervals:
    """The figures of `ProtocolScores` with their intervals."""

    mean_ap: BothIntervals
    recall_at_k: BothIntervals
    localisation: BothIntervals
    entries_mean_ap: Interval
    entries_recall_at_k: Interval


def protocol_intervals(scores: ProtocolScores, options: BootstrapOptions = BootstrapOptions()) -> ProtocolIntervals:
    """How far the figures would be off with other words, and with other signers.

    Signers are drawn only where every passage names its signer; the opposite direction has words alone.
    """
    passages, entries = scores.passages, scores.entries
    signers = scores.signers if all(scores.signers) else ("",) * len(scores.signers)

    def both(values: Floats) -> BothIntervals:
        by_signer = unit_interval(values, passages.words, signers, options)
        return BothIntervals(class_interval(values, passages.words, options), by_signer)

    return ProtocolIntervals(
        mean_ap=both(passages.ap),
        recall_at_k=both(passages.recall),
        localisation=BothIntervals(
            mean_interval(scores.is_localised, passages.words, options),
            mean_interval(scores.is_localised, signers, options),
        ),
        entries_mean_ap=class_interval(entries.ap, entries.words, options),
        entries_recall_at_k=class_interval(entries.recall, entries.words, options),
    )
