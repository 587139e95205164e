"""Whether a recording of asl30 that is trained on is also in wlasl300: `python experiments/landmark_model/leakage.py`.

For each pair of clips of one word: how far the upper body in some frames of the one is from the most similar frame of
the other, in picture heights. Recordings in both sets mostly lie below 0.007, hardly any other pair does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from experiments.lib.data_sets import LandmarkClip, read_asl30, read_wlasl300

from signspot.domain.tracks import FloatArray

DATA = Path(__file__).parents[3] / "shared" / "data"


def upper_body(clip: LandmarkClip) -> FloatArray:
    """Heights (n, 23) of the pose's points above the hips; x depends on the aspect, which wlasl300 does not tell."""
    return clip.points[:, 1:92:4]


def main(data: Path) -> None:
    """Write the smallest distances of recordings that both sets name, and of the others."""
    wlasl = [(clip, upper_body(clip)[::5]) for clip in read_wlasl300(data / "wlasl300_landmarks")]
    same, others = [], []
    for clip in read_asl30(data / "asl30_landmarks"):
        frames = upper_body(clip)
        for known, some in wlasl:
            if known.word == clip.word:
                distance = float(np.median(np.abs(some[:, None] - frames).mean(axis=2).min(axis=1)))
                (same if known.clip_id == clip.clip_id else others if not clip.is_repeat else []).append(distance)
    for name, found in (("in both sets", same), ("other pairs", others)):
        shares = np.percentile(found, (0, 1, 50, 95)).round(4).tolist()
        sys.stdout.write(f"{name}: {len(found)}, smallest, 1%, 50%, 95%: {shares} picture heights\n")


if __name__ == "__main__":
    main(DATA)
