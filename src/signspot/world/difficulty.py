"""What makes the world hard, and how hard: the knobs that were set once, by the weakest baseline."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """Sizes are standard deviations in shoulder widths or radians unless a line says otherwise."""

    # Between signers: personal offsets, a field over places and orientations.
    style_location: float = 0.035
    style_orientation: float = 0.10
    laxness: float = 0.10  # share by which fingers stay relaxed
    yaw_degrees: float = 6.0  # a broadcast signer stands aside by up to this much

    # Between two performances of the same signer.
    token_location: float = 0.025
    token_orientation: float = 0.07
    token_fingers: float = 0.09

    # Continuous signing (shares).
    reduction: float = 0.09  # of movement size, and of the way from the middle of the signing space
    assimilation: float = 0.07  # of the way to the neighbouring signs
    blend_frames: float = 0.8  # standard deviation of the blur that joins neighbours
    weak_drop: float = 0.08  # two-handed signs made with one hand

    # The lexicon (share of forms).
    minimal_pairs: float = 0.20
    synonyms: float = 0.04

    # The detector.
    jitter: float = 0.003  # picture widths
    dropped_hands: float = 0.05  # share of frames
