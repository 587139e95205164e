"""People whose hands rest before the belly: `python experiments/landmark_model/resting.py RUN`.

Many dictionaries show people who do not let their arms hang before and after a sign, and the hands then seem to be
raised all the time. Clips of words never trained, by signers never seen, are looked up among one or five examples, as
they are and with such a rest put before and after them. RUN holds fold.safetensors of experiments/wlasl300.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from experiments.lib.landmark_model import PARTS, Fold, RealSigning, RecordedSign, bridge, draw_fold
from experiments.lib.paper_tables import ExperimentResults, ResultRow, write_results

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray
from signspot.embedding.landmarks import sign_span, signing_span, window_at
from signspot.models.embedders import landmark_embedder_from_checkpoint

sys.path.insert(0, str(Path(__file__).parents[1] / "wlasl300"))
from run import DATA, FOLD_SEED, Method, few_shot

HERE = Path(__file__).parent
HEIGHTS = (1.05, 1.25)  # shoulder widths below the shoulders
LENGTHS = (12, 30)  # frames at 25 a second
BESIDE = 0.12  # shoulder widths from the middle to either hand
TREMBLING = 0.012  # shoulder widths: deviation from frame to frame
WAY = 5  # frames from rest to the sign
_WRISTS = (15, 16)
VERDICT = (
    "Cut to the frames with a raised hand, a clip of somebody who rests in front of the belly is hardly recognised. "
    "Without the still frames there, it is recognised nearly as well as others, which also gain slightly."
)


def rested(sign: RecordedSign, rng: np.random.Generator) -> RecordedSign:
    """The sign with both hands before the belly for a while, at either end."""
    signed = sign.points[sign.span.start : sign.span.stop]
    height = rng.uniform(*HEIGHTS)
    before, after = (_rest(frame, height, int(rng.integers(*LENGTHS)), rng) for frame in (signed[0], signed[-1]))
    way_up, way_down = bridge(before[-1], signed[0], WAY), bridge(signed[-1], after[0], WAY)
    points = np.concatenate([before, way_up, signed, way_down, after])
    return replace(sign, points=points, span=FrameSpan(0, len(points)))


def _rest(frame: FloatArray, height: float, n_frames: int, rng: np.random.Generator) -> FloatArray:
    """One frame (258,) held, with its hands moved: (n_frames, 258)."""
    held = np.repeat(frame[None], n_frames, axis=0)
    pose = held[:, PARTS[0]].reshape(n_frames, 33, 4)
    for part, wrist, side in zip(PARTS[1:], _WRISTS, (1, -1), strict=True):
        place = np.array([side * BESIDE, height]) + rng.normal(0, TREMBLING, (n_frames, 2))
        hand = held[:, part].reshape(n_frames, 21, 3)
        if hand.any():
            hand[..., :2] += (place - hand[:, 0, :2])[:, None]
        held[:, part] = hand.reshape(n_frames, -1)
        pose[:, wrist : wrist + 8 : 2, :2] += (place - pose[:, wrist, :2])[:, None]  # the wrist and the hand's points
        pose[:, wrist, 3] = 0.9
    held[:, PARTS[0]] = pose.reshape(n_frames, -1)
    return held


def cut_by(span: Callable[[FloatArray], FrameSpan], fold: Fold) -> Fold:
    """The same clips, each with nothing but its span."""

    def cut(sign: RecordedSign) -> RecordedSign:
        kept = span(sign.points)
        return replace(sign, points=sign.points[kept.start : kept.stop], span=FrameSpan(0, len(kept)))

    return replace(fold, query=tuple(map(cut, fold.query)), support=tuple(map(cut, fold.support)))


class WholeClip(Method):
    """Clips that are cut already."""

    __slots__ = ()

    def vectors(self, signs: list[RecordedSign]) -> FloatArray:  # type: ignore[override]
        """One unit row for each clip, of all its frames."""
        return self.embed(np.stack([window_at(sign.points, 0, len(sign.points)) for sign in signs]))


def main(run: Path, data: Path) -> None:
    """Write results_resting.json."""
    torch.set_num_threads(1)
    method = WholeClip("fold", landmark_embedder_from_checkpoint(run / "fold.safetensors").embed)
    fold, rng = draw_fold(RealSigning.read(data), FOLD_SEED), np.random.default_rng(0)
    at_rest = replace(fold, query=tuple(rested(sign, rng) for sign in fold.query))
    rows = tuple(
        ResultRow(f"{name}: {way}", few_shot(method, cut_by(span, some)))
        for name, some in (("clips as they are", fold), ("with rest before the belly", at_rest))
        for way, span in (("raised hands", signing_span), ("raised hands, without rest", sign_span))
    )
    results = ExperimentResults(
        name="landmark model: resting hands",
        title="Words never trained, by signers never seen, whose hands rest before the belly",
        data="real: clips of wlasl300 landmarks, some with a rest that a program put before and after them",
        command="python experiments/landmark_model/resting.py RUN",
        conditions={
            "rest": f"{LENGTHS[0]} to {LENGTHS[1] - 1} frames, {HEIGHTS[0]} to {HEIGHTS[1]} shoulder widths below the "
            "shoulders, at either end of the clips that are looked up; the examples are as they are",
            "model": f"trained on fold {FOLD_SEED} of experiments/wlasl300; the two limits of rest were chosen on it",
        },
        columns=tuple(rows[0].cells),
        rows=rows,
        verdict=VERDICT,
    )
    write_results(results, HERE / "results_resting.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    main(options.run, options.data)
