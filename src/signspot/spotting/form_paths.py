"""In what two movements differ, whoever makes them: a little earlier, longer, or in more haste is the same movement.

A movement is the path of the palm over the 32 frames of a whole sign. People take differently long for the way up and
down, so both paths are stretched in time, in opposite ways, and the way that fits best counts; only the sign itself is
compared. Warping without limits would hide what tells movements apart: an arc from a line, two taps from three. What is
left between two paths of the same size is told by how slowly it comes and goes, in the picture and in depth: one form
by two people differs slowly, and a zigzag differs quickly from a straight line.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from signspot.domain.tracks import FloatArray
from signspot.spotting.form_parts import CORE, N_FRAMES

MEASURES = 8  # residues of three paces in the picture, of three in depth, the log ratio of the sizes, the mean size
RATIO, SIZE = 6, 7
_SHIFTS = (-2.0, -1.0, 0.0, 1.0, 2.0)  # frames
_STRETCHES = (0.87, 1.0, 1 / 0.87)
_HASTES = (-1.8, 0.0, 1.8)  # frames by which the middle comes early or late
_DEPTH = np.array([1, 1, 0.5], np.float32)  # a detector guesses depth about four times worse than what it sees
_STILL = np.float32(0.002)  # squared shoulder widths: what a hand that holds still seems to move
_PACES = ((1, 3), (3, 5), (5, 9))  # half waves over the sign
_LENGTH = CORE.stop - CORE.start
_BLOCK = 128  # clips


def path_measures(first: FloatArray, second: FloatArray) -> FloatArray:
    """Paths (n, 96) and (m, 96) -> (n, m, 8): how they differ; the same both ways but for the sign of the log ratio.

    Residues and sizes are mean squares in squared shoulder widths.
    """
    found = np.empty((len(first), len(second), MEASURES), np.float32)
    for row in range(0, len(first), _BLOCK):
        ways = _told(first[row : row + _BLOCK], _THERE)
        for column in range(0, len(second), _BLOCK):
            others = _told(second[column : column + _BLOCK], _BACK)
            found[row : row + _BLOCK, column : column + _BLOCK] = _block(ways, others)
    return found


def _block(ways: FloatArray, others: FloatArray) -> FloatArray:
    """(w, n, 51) and (w, m, 51), the same sign in w ways -> (n, m, 8)."""
    sizes, other_sizes = ((told**2).sum(axis=2) / _LENGTH for told in (ways, others))  # (w, n), (w, m)
    alike = (told / np.sqrt(size + _STILL)[..., None] for told, size in ((ways, sizes), (others, other_sizes)))
    best = np.matmul(next(alike), next(alike).transpose(0, 2, 1)).argmax(axis=0)
    rows, columns = np.arange(ways.shape[1])[:, None], np.arange(others.shape[1])
    size, other_size = sizes[best, rows], other_sizes[best, columns]
    scale = ((other_size + _STILL) / (size + _STILL)) ** 0.25
    left = ways[best, rows] * scale[..., None] - others[best, columns] / scale[..., None]
    waves = (_WAVES @ left.reshape(*best.shape, _LENGTH, 3)) ** 2 / _LENGTH
    paces = [waves[:, :, slow - 1 : quick - 1].sum(axis=2) for slow, quick in _PACES]
    measures = [pace[..., :2].sum(axis=-1) for pace in paces] + [pace[..., 2] for pace in paces]
    measures += [np.log((size + _STILL) / (other_size + _STILL)), (size + other_size) / 2]
    told: FloatArray = np.stack(measures, axis=-1).astype(np.float32)
    return told


def _told(paths: FloatArray, ways: FloatArray) -> FloatArray:
    """(n, 96) -> (w, n, 51): the sign itself, from its middle, in w ways."""
    whole = (paths.reshape(-1, N_FRAMES, 3) * _DEPTH).transpose(1, 0, 2).reshape(N_FRAMES, -1)
    told = (ways @ whole).reshape(len(ways), _LENGTH, len(paths), 3)
    told -= told.mean(axis=1, keepdims=True)
    turned: FloatArray = told.transpose(0, 2, 1, 3).reshape(len(ways), len(paths), -1)
    return np.ascontiguousarray(turned)


def _stretched(way: int) -> FloatArray:
    """(w, 17, 32): each reads the sign itself from a whole sign, at half of its pace (1) or against it (-1)."""
    frames = np.arange(CORE.start, CORE.stop, dtype=np.float64)
    from_middle = frames - frames.mean()
    bow = (from_middle / from_middle[-1]) ** 2 - 1
    every = list(product(_SHIFTS, _STRETCHES, _HASTES))
    ways = np.zeros((len(every), _LENGTH, N_FRAMES), np.float32)
    for reads, (shift, stretch, haste) in zip(ways, every, strict=True):
        at = frames.mean() + from_middle * stretch ** (way / 2) + way / 2 * (shift + haste * bow)
        at = np.clip(at, 0, N_FRAMES - 1)
        before = np.floor(at).astype(np.int64)
        after, share = np.minimum(before + 1, N_FRAMES - 1), at - before
        reads[np.arange(_LENGTH), before] += 1 - share
        reads[np.arange(_LENGTH), after] += share
    return ways


def _waves() -> FloatArray:
    """(8, 17): from half a wave over the sign to four waves (the cosine transform)."""
    at = (np.arange(_LENGTH) + 0.5) / _LENGTH
    numbers = np.arange(1, _PACES[-1][1])[:, None]
    waves: FloatArray = (np.cos(np.pi * numbers * at) * np.sqrt(2 / _LENGTH)).astype(np.float32)
    return waves


_THERE, _BACK, _WAVES = _stretched(1), _stretched(-1), _waves()
