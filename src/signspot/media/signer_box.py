"""Finding where in its picture the signer is: a square from landmarks or from motion, padded, inside the picture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signspot.domain.boxes import SignerBox
from signspot.domain.tracks import LandmarkTrack
from signspot.media.motion_energy import MotionEnergy

_SAMPLED = 50  # frames, evenly over the video
_UPPER_BODY = 25  # pose points down to the hips; legs are often guessed
_POSE_NUMBERS = 33 * 4
_LEAST_VISIBILITY = 0.3
_PADDING = 0.12  # of the box's longer side, on every side
_LEAST_MOTION = 1.0  # grey levels
_STRAY = 0.02  # share of all motion that may lie beyond each edge

Edges = npt.NDArray[np.float64]  # (4,) left, top, right, bottom in pixels


def box_of_landmarks(track: LandmarkTrack, width: int, height: int) -> SignerBox | None:
    """The box of a signer by body and hands in a picture of that size; None if nobody was found."""
    n_frames = len(track.points)
    sampled = track.points[np.unique(np.linspace(0, n_frames - 1, min(n_frames, _SAMPLED)).astype(int))]
    found = [edges for edges in (_extent(points.astype(np.float64)) for points in sampled) if edges is not None]
    if not found:
        return None
    scaled = np.array(found) * (width, height, width, height)
    body = np.median(scaled, axis=0)
    # Arms reach farther than in the median frame; a tenth of the frames may be mistakes of the detector.
    low, high = np.quantile(scaled, (0.1, 0.9), axis=0)
    return _squared(np.array([*np.minimum(body, low)[:2], *np.maximum(body, high)[2:]]), width, height)


def box_of_motion(energy: MotionEnergy) -> SignerBox | None:
    """The box of what moves, with room around it for the head, which moves least; None if nothing moves."""
    strength = energy.blocks.mean(axis=0).astype(np.float64) if len(energy.blocks) else np.zeros((1, 1))
    peak = energy.blocks.max(initial=0.0)
    if peak < _LEAST_MOTION:
        return None
    rows, columns = strength.shape
    strength[strength < 0.05 * strength.max()] = 0
    left, right = _middle_part(strength.sum(axis=0))
    top, bottom = _middle_part(strength.sum(axis=1))
    edges = np.array([left, top, right + 1, bottom + 1]) / (columns, rows, columns, rows)
    return _squared(edges * (energy.width, energy.height, energy.width, energy.height), energy.width, energy.height)


def _extent(points: npt.NDArray[np.float64]) -> Edges | None:
    """The box around the points of one frame (258,), in 0..1; None if nobody was found."""
    pose = points[:_POSE_NUMBERS].reshape(-1, 4)[:_UPPER_BODY]
    body = pose[~(pose[:, 3] < _LEAST_VISIBILITY), :2]
    places = np.concatenate([body, points[_POSE_NUMBERS:].reshape(-1, 3)[:, :2]])
    places = places[np.isfinite(places).all(axis=1) & places.any(axis=1)]
    if not len(places):
        return None
    edges: Edges = np.clip(np.concatenate([places.min(axis=0), places.max(axis=0)]), 0, 1)
    return edges


def _middle_part(strength: npt.NDArray[np.float64]) -> tuple[int, int]:
    """The first and last place of an axis between which nearly all motion lies."""
    share = np.cumsum(strength) / strength.sum()
    return int(np.searchsorted(share, _STRAY)), int(np.searchsorted(share, 1 - _STRAY))


def _squared(edges: Edges, width: int, height: int) -> SignerBox:
    """The smallest square around padded edges that the picture allows, moved inside it."""
    left, top, right, bottom = edges.tolist()
    longer = max(right - left, bottom - top) * (1 + 2 * _PADDING)
    side = int(min(max(8, np.ceil(longer)), width, height))
    x = round(min(max(0, (left + right - side) / 2), width - side))
    y = round(min(max(0, (top + bottom - side) / 2), height - side))
    return SignerBox(x / width, y / height, (x + side) / width, (y + side) / height)
