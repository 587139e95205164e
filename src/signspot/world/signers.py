"""The people of the world: bodies, looks, and a manner of signing that no linear map undoes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from signspot.world.appearance import Appearance, random_appearance
from signspot.world.chance import chance
from signspot.world.difficulty import Difficulty
from signspot.world.kinematics import Camera, Proportions
from signspot.world.phonology import Floats

_WAVES = 6  # of the field of personal offsets


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """A smooth field of personal offsets: where and how somebody holds the hand depends on where it is."""

    frequencies: Floats  # (6, waves) of palm point and orientation
    phases: Floats  # (waves,)
    amplitudes: Floats  # (waves, 6)

    def offsets(self, places: Floats) -> Floats:
        """(..., 6) palm points and orientations -> (..., 6) what is added to them."""
        waves: Floats = np.sin(places @ self.frequencies + self.phases) @ self.amplitudes
        return waves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signer:
    """Somebody who signs in the world."""

    signer_id: str
    left_handed: bool
    body: Proportions
    camera: Camera  # how this person is filmed
    appearance: Appearance
    manner: Manner
    laxness: Floats  # (5,) share by which each finger stays relaxed
    coupling: float  # how much a finger moves with its neighbours
    bow: float  # how much straight paths curve, share of their length
    haste: float  # exponent of the speed profile: above 1 starts late
    tempo: float  # duration factor
    size: float  # movement factor
    sway: float  # shoulder widths
    hanging: bool  # rests with hanging arms instead of folded hands


@lru_cache(maxsize=1024)
def draw_signer(signer_id: str, seed: int, difficulty: Difficulty, *, filmed_aside: bool) -> Signer:
    """The signer of that id; `filmed_aside` for broadcasts, where the camera rarely looks straight at the signer."""
    rng = chance(seed, "signer", signer_id)
    yaw = np.radians(difficulty.yaw_degrees) * rng.uniform(-1, 1) * (1.0 if filmed_aside else 0.25)
    shared = float(np.clip(rng.normal(difficulty.laxness, difficulty.laxness / 3), 0, 0.7))
    return Signer(
        signer_id=signer_id,
        left_handed=bool(rng.random() < 0.11),
        body=_draw_body(rng),
        camera=Camera(
            shoulder_width=float(rng.uniform(0.235, 0.285)),
            centre=(float(rng.normal(0.5, 0.012)), float(rng.normal(0.42, 0.012))),
            yaw=float(yaw),
        ),
        appearance=random_appearance(rng),
        manner=_draw_manner(rng, difficulty),
        laxness=np.clip(shared + rng.normal(0, difficulty.laxness / 2, 5), 0, 0.75),
        coupling=float(rng.uniform(0, 0.3)),
        bow=float(rng.normal(0, 0.11)),
        haste=float(np.exp(rng.normal(0, 0.11))),
        tempo=float(np.exp(rng.normal(0, 0.08))),
        size=float(np.exp(rng.normal(0, 0.11))),
        sway=float(rng.uniform(0.01, 0.05)),
        hanging=bool(rng.random() < 0.1),
    )


def _draw_body(rng: np.random.Generator) -> Proportions:
    arm, hand = rng.normal(1, 0.05), rng.normal(1, 0.05)
    return Proportions(
        upper_arm=float(np.clip(0.84 * arm * rng.normal(1, 0.02), 0.72, 0.98)),
        forearm=float(np.clip(0.70 * arm * rng.normal(1, 0.02), 0.60, 0.82)),
        hand=float(np.clip(0.50 * hand, 0.42, 0.58)),
        head=float(np.clip(rng.normal(1, 0.05), 0.88, 1.12)),
        torso=float(np.clip(rng.normal(1.5, 0.06), 1.35, 1.65)),
    )


def _draw_manner(rng: np.random.Generator, difficulty: Difficulty) -> Manner:
    scales = np.repeat((difficulty.style_location, difficulty.style_orientation), 3)
    frequencies = rng.normal(0, 1, (6, _WAVES)) * np.repeat((2.2, 0.9), 3)[:, None]
    # A sine has the variance 1/2 and the waves add up, so the field has the standard deviation of its knob.
    amplitudes = rng.normal(0, 1, (_WAVES, 6)) * scales * np.sqrt(2 / _WAVES)
    return Manner(frequencies, rng.uniform(0, 2 * np.pi, _WAVES), amplitudes)
