"""The numbers of the paper that stand beside ours: Table 2, Table 3, localisation (4.4), the spotting benchmark (4.3).

They are about BSL-1K and BSLDict, another data set with 264 test words and its own passages, so that only the order of
methods can be compared, not the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from signspot.learning.config import EmbeddingConfig

LOCALISATION = 0.8308  # the word is known; watch-read-lookup
SPOTTING = 0.170  # mAP of the trunk's classifier over all windows


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One line of the paper's tables, as shares of 1."""

    name: str
    mean_ap: float
    recall_at_5: float


_SEEN = {
    "classification": PaperRow("Table 2, classification, seen words", 0.3675, 0.4015),
    "infonce": PaperRow("Table 2, InfoNCE, seen words", 0.4252, 0.5354),
    "watch-lookup": PaperRow("Table 2, watch-lookup, seen words", 0.4365, 0.5303),
    "watch-read-lookup": PaperRow("Table 2, watch-read-lookup, seen words", 0.4811, 0.5871),
}
_UNSEEN = {
    "classification": PaperRow("Table 2, classification, unseen words", 0.1028, 0.1419),
    "infonce": PaperRow("Table 2, InfoNCE, unseen words", 0.1088, 0.1423),
    "watch-lookup": PaperRow("Table 2, watch-lookup, unseen words", 0.1105, 0.1462),
    "watch-read-lookup": PaperRow("Table 2, watch-read-lookup, unseen words", 0.1369, 0.1779),
}
_FULL = PaperRow("Table 3, watch-read-lookup with the full dictionary, unseen words", 0.1539, 0.2087)


def paper_row(protocol: str, config: EmbeddingConfig | None) -> PaperRow | None:
    """The line that belongs to a protocol and to how a run was trained; watch-read-lookup where that is not known."""
    if protocol == "all":
        return None
    loss = config.loss if config is not None else "watch-read-lookup"
    if protocol == "unseen" and config is not None and config.dictionary == "full" and loss == "watch-read-lookup":
        return _FULL
    return (_SEEN if protocol == "seen" else _UNSEEN)[loss]
