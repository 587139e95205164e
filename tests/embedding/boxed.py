"""Networks that look at the signer, and videos that show different things in different places."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from signspot.domain.recordings import SignerBox
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import FrameShape
from signspot.embedding.pictures import _MeanColour
from signspot.media.writer import VideoWriter

LEFT, RIGHT = SignerBox(0, 0, 0.5, 1), SignerBox(0.5, 0, 1, 1)
RED, BLUE = [1, 0, 0], [0, 0, 1]


class BoxedColours(_MeanColour):
    """The mean colour of the signer's box."""

    name = "boxed colour"
    fingerprint = "colour-boxed-1"
    frame_shape = FrameShape(side=32, crop=32, keep_aspect=True, signer_box=True)


def write_halves(path: Path, n_frames: int = 20) -> Path:
    """A video that is red on the left and blue on the right."""
    pixels = np.zeros((64, 128, 3), np.uint8)
    pixels[:, :64, 0] = pixels[:, 64:, 2] = 255
    with VideoWriter(path, width=128, height=64) as writer:
        for number in range(n_frames):
            writer.write(pixels, number * FRAME_MS)
    return path
