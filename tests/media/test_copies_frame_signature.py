"""Copies of a recording are told from other recordings of the same scene; an oracle of loops names the pairs."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray, Pixels
from signspot.media import copies as module
from signspot.media.copies import _NEARLY_THE_SAME, SIGNATURE_SHAPE, frame_signature, near_pairs
from signspot.media.trim import trim_by_motion
from signspot.world.people import _random_appearance
from signspot.world.render import render_frames
from tests.media.moving_clips import moving_frames
from tests.world.figures import signed_clip


def signature(frames: list[Pixels]) -> FloatArray:
    return frame_signature(frames, trim_by_motion(frames).kept)


def compressed(pixels: Pixels, side: int) -> Pixels:
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((side, side)).save(buffer, "JPEG", quality=25)
    return np.asarray(Image.open(buffer).convert("RGB"))


def closest(a: FloatArray, b: FloatArray) -> float:
    return float(max(a[0] @ b[0], a[1] @ b[1]))


def test_copies_keep_their_signature_and_other_signs_of_the_same_signer_have_another() -> None:
    rng = np.random.default_rng(3)
    look = _random_appearance(rng)
    points = [signed_clip(rng).points for _ in range(6)]
    clips = [list(render_frames(p, np.zeros(len(p), np.float32), look, side=96)) for p in points]
    originals = [signature(clip) for clip in clips]
    scaled = [signature([compressed(frame, 64) for frame in clip]) for clip in clips]
    cut = [signature(clip[3:]) for clip in clips]
    assert min(closest(a, b) for a, b in zip(originals, scaled, strict=True)) >= _NEARLY_THE_SAME
    assert min(closest(a, b) for a, b in zip(originals, cut, strict=True)) >= _NEARLY_THE_SAME
    others = [closest(a, b) for i, a in enumerate(originals) for b in originals[:i]]
    assert max(others) < _NEARLY_THE_SAME


def test_a_still_clip_is_like_nothing_not_even_itself() -> None:
    still = [np.full((40, 40, 3), 120, np.uint8)] * 20
    zero = frame_signature(still, FrameSpan(0, 20))
    assert zero.shape == SIGNATURE_SHAPE
    assert not zero.any()
    assert near_pairs(np.stack([zero, zero])) == []


@pytest.mark.parametrize("n_frames", [1, 2, 7, 9])
def test_clips_shorter_than_the_moments_have_a_signature(n_frames: int) -> None:
    made = frame_signature(moving_frames(1, still=0, moving=max(2, n_frames))[:n_frames], FrameSpan(0, n_frames))
    lengths = np.linalg.norm(made, axis=1)
    assert np.isfinite(made).all()
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in lengths)


@given(st.integers(0, 9), st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(max_examples=60)
def test_pairs_are_those_of_two_loops_whatever_the_block(n_clips: int, seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_clips, 2, 5)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    by_hand = []
    for later in range(n_clips):
        cosines = [(closest(rows[later], rows[earlier]), -earlier) for earlier in range(later)]
        if cosines and max(cosines)[0] >= 0.5:
            by_hand.append((later, -max(cosines)[1]))
    before, module._BLOCK = module._BLOCK, block
    try:
        found = near_pairs(rows, 0.5)
    finally:
        module._BLOCK = before
    assert [(pair.later, pair.earlier) for pair in found] == by_hand
