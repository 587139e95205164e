"""Signing figures for tests: hands with finger joints, arms that reach, landmarks in the layout of MediaPipe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

# Bend of the three joints of index, middle, ring, little finger (degrees), spread (degrees), thumb (bend, inward).
HANDSHAPES: dict[str, tuple[tuple[tuple[float, float, float], ...], float, tuple[float, float]]] = {
    "flat": (((0, 0, 0),) * 4, 0, (5, 10)),
    "spread": (((0, 0, 0),) * 4, 12, (0, -15)),
    "fist": (((85, 95, 60),) * 4, 0, (40, 75)),
    "index": (((0, 0, 0), (85, 95, 60), (85, 95, 60), (85, 95, 60)), 0, (40, 75)),
    "v": (((0, 0, 0), (0, 0, 0), (85, 95, 60), (85, 95, 60)), 11, (40, 75)),
    "o": (((50, 55, 35),) * 4, 0, (35, 55)),
    "c": (((25, 40, 30),) * 4, 0, (15, 50)),
    "thumb": (((85, 95, 60),) * 4, 0, (0, -45)),
    "little": (((85, 95, 60), (85, 95, 60), (85, 95, 60), (0, 0, 0)), 0, (40, 75)),
}
_ROOTS = ((0.28, 0.97), (0.06, 1.0), (-0.14, 0.94), (-0.33, 0.83))
_PHALANGES = ((0.48, 0.29, 0.22), (0.53, 0.33, 0.24), (0.49, 0.31, 0.23), (0.38, 0.22, 0.19))


@dataclass(frozen=True)
class Hand:
    """Where a hand is and how it is held; `turn` is about the forearm, `tilt` in the picture (degrees)."""

    wrist: tuple[float, float, float]
    shape: str = "flat"
    turn: float = 0.0  # 0: palm to the viewer, 180: back
    tilt: float = 0.0  # 0: fingers up
    nod: float = 0.0  # > 0: fingers toward the viewer


def _about(axis: int, degrees: float) -> Vector:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    turn = np.eye(3)
    turn[i, i] = turn[j, j] = c
    turn[i, j], turn[j, i] = -s, s
    return turn


def hand_points(hand: Hand, size: float, *, is_left: bool) -> Vector:
    """(21, 3); x right, y down, z away from the viewer."""
    bends, spread, (thumb_bend, thumb_in) = HANDSHAPES[hand.shape]
    points = np.zeros((21, 3))
    for finger, (root, lengths, bend) in enumerate(zip(_ROOTS, _PHALANGES, bends, strict=True)):
        at = np.array([*root, 0.0])
        points[5 + 4 * finger] = at
        sideways, angle = spread * (1.5 - finger), 0.0
        for joint in range(3):
            angle += bend[joint]
            direction = _about(2, -sideways) @ _about(0, angle) @ np.array([0, 1.0, 0])
            at = at + lengths[joint] * direction
            points[6 + 4 * finger + joint] = at
    points[1] = at = np.array([0.2, 0.22, 0.06])
    angle = 55.0 - thumb_in * 0.6
    for joint, length in enumerate((0.42, 0.33, 0.27)):
        direction = _about(1, -thumb_in) @ _about(2, -angle) @ np.array([0, 1.0, 0])
        at = at + length * direction
        angle -= thumb_bend
        points[2 + joint] = at
    # Local axes: x to the thumb, y along the fingers, z out of the palm. Picture: y down, the viewer at -z.
    points = points * [1, -1, -1]
    points = points @ (_about(2, hand.tilt) @ _about(0, hand.nod) @ _about(1, hand.turn)).T
    if is_left:
        points = points * [-1, 1, 1]
    return points * size + hand.wrist


def landmarks(right: Hand | None, left: Hand | None = None, hand_size: float = 0.088) -> npt.NDArray[np.float32]:
    """One frame (258,) of a person with these hands; None: hanging down, outside the picture."""
    pose = np.zeros((33, 4))
    pose[:, 3] = 1
    face = {
        0: (0.5, 0.225, -0.12),
        2: (0.532, 0.19, -0.1),
        5: (0.468, 0.19, -0.1),
        7: (0.57, 0.205, 0),
        8: (0.43, 0.205, 0),
    }
    face |= {9: (0.525, 0.265, -0.1), 10: (0.475, 0.265, -0.1), 1: (0.52, 0.19, -0.1), 3: (0.545, 0.19, -0.1)}
    face |= {4: (0.48, 0.19, -0.1), 6: (0.455, 0.19, -0.1)}
    for index, place in face.items():
        pose[index, :3] = place
    hands = []
    for is_left, hand in ((True, left), (False, right)):
        side = 1 if is_left else -1
        shoulder = np.array([0.5 + side * 0.165, 0.42, 0.0])
        hand = hand or Hand((0.5 + side * 0.2, 0.98, -0.05), "flat", 90, 180)
        wrist = np.array(hand.wrist)
        elbow = _elbow(shoulder, wrist, side)
        points = hand_points(hand, hand_size, is_left=is_left)
        for index, place in zip(
            (11, 13, 15, 17, 19, 21, 23),
            (shoulder, elbow, wrist, points[17], points[5], points[4], (0.5 + side * 0.11, 0.98, 0)),
            strict=True,
        ):
            pose[index + (not is_left), :3] = place
        hands.append(points)
    return np.concatenate([pose.ravel(), hands[0].ravel(), hands[1].ravel()]).astype(np.float32)


def _elbow(shoulder: Vector, wrist: Vector, side: int, upper: float = 0.25, fore: float = 0.23) -> Vector:
    reach = wrist - shoulder
    distance = min(float(np.linalg.norm(reach)), upper + fore - 1e-3)
    along = reach / max(float(np.linalg.norm(reach)), 1e-6)
    share = (upper**2 - fore**2 + distance**2) / (2 * distance)
    height = np.sqrt(max(upper**2 - share**2, 0.0))
    outward = np.array([0.8 * side, 1.0, 0.2])
    outward -= along * (outward @ along)
    return shoulder + along * share + outward / np.linalg.norm(outward) * height


@dataclass(frozen=True)
class SignedClip:
    """A dictionary clip: still, a sign, still."""

    points: npt.NDArray[np.float32]  # (n_frames, 258)
    start: int
    stop: int


def signed_clip(rng: np.random.Generator) -> SignedClip:
    """Rest, rise, one to three strokes, fall, rest, with the trunk swaying a little throughout."""
    shape = str(rng.choice(list(HANDSHAPES)))
    rest = (
        Hand((0.37, 0.86, -0.1), "flat", 60, -30) if rng.random() < 0.5 else Hand((0.29, 0.97, -0.05), "flat", 90, 180)
    )
    turn, tilt = float(rng.uniform(0, 180)), float(rng.uniform(-40, 60))
    places = [_somewhere(rng)]
    for _ in range(int(rng.integers(1, 4))):
        places.append(tuple(np.add(places[-1], (*rng.uniform(-0.12, 0.12, 2), 0.0)).tolist()))
    hands = [rest, *(Hand(place, shape, turn, tilt) for place in places), rest]
    steps = [int(rng.integers(9, 17)), *(int(rng.integers(6, 14)) for _ in places[1:]), int(rng.integers(9, 17))]
    before, after = (int(still) for still in rng.integers(4, 20, 2))
    both, phase = rng.random() < 0.5, rng.uniform(0, 2 * np.pi)
    frames = [rest] * before
    for old, new, n in zip(hands[:-1], hands[1:], steps, strict=True):
        frames += [_between(old, new, (k + 0.5) / n) for k in range(n)]
    frames += [rest] * after
    points = np.stack([landmarks(hand, _mirrored(hand) if both else None) for hand in frames])
    sway = 0.004 * np.sin(2 * np.pi * np.arange(len(points)) / 90 + phase)
    points[:, 0:132:4] += sway[:, None].astype(np.float32)
    points[:, 132::3] += sway[:, None].astype(np.float32)
    return SignedClip(points, before, len(points) - after)


def _somewhere(rng: np.random.Generator) -> tuple[float, float, float]:
    x, y = rng.uniform((0.33, 0.3), (0.5, 0.66)).tolist()
    return x, y, -0.2


def _between(old: Hand, new: Hand, share: float) -> Hand:
    eased = share**3 * (10 - 15 * share + 6 * share**2)
    mixed = [
        a + (b - a) * eased
        for a, b in zip((*old.wrist, old.turn, old.tilt), (*new.wrist, new.turn, new.tilt), strict=True)
    ]
    return Hand((mixed[0], mixed[1], mixed[2]), new.shape if share > 0.4 else old.shape, mixed[3], mixed[4])


def _mirrored(hand: Hand) -> Hand:
    x, y, z = hand.wrist
    return Hand((1 - x, y, z), hand.shape, hand.turn, hand.tilt)
