"""Whether a recording may be learned from, by what is known of its rights."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from signspot.domain.corpus import Rights


def is_forbidden(rights: Rights, today: date) -> bool:
    """Whether training is known not to be allowed, or no longer; saying nothing does not forbid it."""
    return rights.may_train is False or (rights.expires is not None and today >= rights.expires)


def told_of_unknown(used: Iterable[Rights]) -> tuple[str, ...]:
    """One line if rights of recordings that are learned from say nothing about training, none otherwise."""
    all_used = tuple(used)
    n_unknown = sum(rights.may_train is None for rights in all_used)
    what = f"{n_unknown} of {len(all_used)} recordings do not say whether they may be used for training"
    return (f"{what}: make sure that they may, and note it as may_train",) if n_unknown else ()
