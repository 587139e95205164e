"""How much moves where: the change between neighbouring frames on a coarse grid of blocks.

What changes everywhere at once is no motion: a fade is explained by one gain and one offset for the whole picture, and
the noise of a camera or a codec by the block in the middle of all blocks of the same frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from signspot.domain.tracks import FloatArray, Pixels

_SHORT_SIDE = 72  # pixels of the small grey picture that is compared
_BLOCK = 4  # pixels of the small picture
_DARK = 0.25  # a picture with less contrast than this share of the usual is still fading in or out


@dataclass(frozen=True, slots=True, eq=False)
class MotionEnergy:
    """Grey levels by which each block changes from the frame before, beyond noise; the first frame has none."""

    blocks: FloatArray  # (n_frames, rows, columns), 0..255
    height: int  # pixels of the frames
    width: int

    @classmethod
    def of(cls, frames: Iterable[Pixels]) -> MotionEnergy:
        """Compare frames (H, W, 3) uint8 of one size as they come; two small pictures are held."""
        changes: list[FloatArray] = []
        contrasts: list[float] = []
        height = width = 0
        before: FloatArray | None = None
        for pixels in frames:
            grey = _small_grey(pixels)
            if before is not None and (pixels.shape[0], pixels.shape[1]) != (height, width):
                raise ValueError(f"a frame of {pixels.shape[:2]} after frames of {(height, width)}")
            height, width = pixels.shape[:2]
            changes.append(_block_means(np.abs(_unfaded(grey, before)) if before is not None else 0 * grey))
            contrasts.append(float(grey.std()))
            before = grey
        if not changes:
            return cls(np.zeros((0, 1, 1), np.float32), 0, 0)
        blocks = _beyond_noise(np.stack(changes))
        # Out of black anything may appear: the frames of a fade, and the one after each, say nothing about motion.
        dark = np.array(contrasts) < _DARK * np.median(contrasts)
        blocks[dark | np.append(False, dark[:-1])] = 0
        return cls(blocks, height, width)


def _small_grey(pixels: Pixels) -> FloatArray:
    """(H, W, 3) -> grey of about 72 pixels on the short side, whole blocks."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size or pixels.dtype != np.uint8:
        raise ValueError(f"a frame is (H, W, 3) uint8, not {pixels.shape} {pixels.dtype}")
    height, width = pixels.shape[:2]
    shrink = _SHORT_SIDE / min(height, width)
    size = tuple(max(_BLOCK, round(length * shrink / _BLOCK) * _BLOCK) for length in (width, height))
    small = Image.fromarray(pixels).convert("L").resize((size[0], size[1]), Image.Resampling.BOX, reducing_gap=2.0)
    return np.asarray(small, dtype=np.float32)


def _unfaded(grey: FloatArray, before: FloatArray) -> FloatArray:
    """What is left of a picture when the one before, in its best brightness and contrast, is taken away."""
    centred = before - before.mean()
    power = float((centred**2).sum())
    gain = float((centred * grey).sum()) / power if power > 0 else 1.0
    left: FloatArray = grey - grey.mean() - np.float32(gain) * centred
    return left


def _block_means(values: FloatArray) -> FloatArray:
    rows, columns = values.shape[0] // _BLOCK, values.shape[1] // _BLOCK
    means: FloatArray = values.reshape(rows, _BLOCK, columns, _BLOCK).mean(axis=(1, 3))
    return means


def _beyond_noise(blocks: FloatArray) -> FloatArray:
    # At any moment most of a picture is still, so its middle block shows what noise alone does.
    noise = np.median(blocks, axis=(1, 2), keepdims=True)
    beyond: FloatArray = np.maximum(blocks - 2 * noise, 0)
    return beyond
