"""How training goes, epoch by epoch: a line of numbers, and TensorBoard where it is installed."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from signspot.evaluation.protocol import ProtocolScores


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRow:
    """One epoch; scores are None where none were taken."""

    epoch: int  # from 0
    loss: float  # mean over the steps
    learning_rate: float
    seconds: float  # of training, without evaluation
    mean_ap: float | None = None
    recall_at_5: float | None = None
    localisation: float | None = None

    def with_scores(self, scores: ProtocolScores) -> CurveRow:
        """The same epoch with what it scored on the test set."""
        return replace(
            self,
            mean_ap=float(scores.mean_ap),
            recall_at_5=float(scores.recall_at_5),
            localisation=float(scores.localisation),
        )

    def as_json(self) -> dict[str, object]:
        """As it stands in curves.jsonl and results.json."""
        return asdict(self)


def tensorboard_log(folder: Path, row: CurveRow) -> None:
    """Add an epoch to what TensorBoard shows, if the extra `train` is installed; an epoch that is repeated replaces."""
    if importlib.util.find_spec("tensorboard") is None:
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), purge_step=row.epoch) as writer:
        for name, value in row.as_json().items():
            if isinstance(value, float):
                writer.add_scalar(name, value, row.epoch)
