"""Two sentences that are not signed in the order of their file's name: `python experiments/aslearn/recorded.py`.

Draws them, and below each its words as they are signed alone, as skeletons: docs/pictures/aslearn-order.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from experiments.lib.data_sets import read_aslearn
from experiments.lib.landmark_model import at_house_rate
from PIL import Image

from signspot.domain.recordings import Word
from signspot.domain.time import FRAME_MS, FrameSpan, TimeAxis
from signspot.domain.tracks import FloatArray, LandmarkTrack, Pixels, SignerLandmarks
from signspot.embedding.landmarks import signing_span
from signspot.figures.sheets import SheetRow, contact_sheet, skeletons
from signspot.files.atomic import atomic_output

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "aslearn"
PICTURE = ROOT / "docs" / "pictures" / "aslearn-order.png"
SHOWN = {"hamburgerdinnereat.mp4": ("dinner", "eat", "hamburger"), "cheeseluncheat.mp4": ("lunch", "eat", "cheese")}
PARTS, COLUMNS = 3, 12


def drawn(points: FloatArray) -> list[Pixels]:
    """Up to 18 frames while a hand is raised; the pictures of this set are as wide as high."""
    axis = TimeAxis(FRAME_MS * np.arange(len(points), dtype=np.float64))
    landmarks, span = SignerLandmarks(LandmarkTrack("", axis, points), 100, 100), signing_span(points)
    ends = [span.start + len(span) * part // PARTS for part in range(PARTS + 1)]
    return [one for part in range(PARTS) for one in skeletons(landmarks, FrameSpan(ends[part], ends[part + 1]))]


def main() -> None:
    """Write the picture."""
    aslearn = read_aslearn(DATA)
    clips = {clip.word: clip for clip in aslearn.clips}
    rows = []
    for sentence in aslearn.sentences:
        if words := SHOWN.get(sentence.name):
            rows.append(SheetRow(sentence.name, drawn(at_house_rate(sentence.points, sentence.seconds))))
            found = (clips[Word(word)] for word in words)
            rows += [SheetRow(clip.word, drawn(at_house_rate(clip.points, clip.seconds))) for clip in found]
    with atomic_output(PICTURE, overwrite=True) as temporary:
        Image.fromarray(contact_sheet(rows, columns=COLUMNS)).save(temporary, format="png", optimize=True)


if __name__ == "__main__":
    main()
