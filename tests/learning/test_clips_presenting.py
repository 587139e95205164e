from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from signspot.learning.clips import LandmarkAugmentation
from signspot.learning.trunk import _LandmarkTransform, _PixelTransform
from signspot.media.frames import Augmentation, normalised
from signspot.models.landmarks import Body, mirrored
from tests.learning.signs import signing_hand
from tests.models.signing import signing

STILL = LandmarkAugmentation(mirror_probability=0, rotation_degrees=0, stretch_jitter=0, speed_jitter=0, hand_dropout=0)


def pixels(seed: int = 0, side: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (16, side, side, 3), dtype=np.uint8)


def test_pixels_are_changed_in_training_and_only_cut_in_a_test() -> None:
    transform, clip = _PixelTransform(Augmentation(crop=16)), pixels()
    before = clip.copy()
    shown = [transform.training(clip, np.random.default_rng(seed))[0] for seed in range(4)]
    assert all(one.shape == (16, 16, 16, 3) and one.dtype == np.uint8 for one in shown)
    assert all(not np.array_equal(one, clip[:, 2:18, 2:18]) for one in shown)
    assert not np.array_equal(shown[0], shown[1])
    assert np.array_equal(transform.testing(clip[None])[0], clip[:, 2:18, 2:18])
    assert np.array_equal(clip, before)


def test_a_mirrored_clip_says_so() -> None:
    transform = _PixelTransform(Augmentation(crop=20, colour_jitter=0, scale_jitter=0))
    clip = pixels()
    for seed in range(10):
        shown, is_mirrored = transform.training(clip, np.random.default_rng(seed))
        assert np.array_equal(shown, clip[:, :, ::-1] if is_mirrored else clip)


def test_the_network_gets_the_numbers_the_embedder_gives_it() -> None:
    clips = np.stack([pixels(0), pixels(1)])
    tensor = _PixelTransform(Augmentation(crop=20)).tensor(torch.from_numpy(clips))
    assert tensor.shape == (2, 3, 16, 20, 20)
    assert torch.allclose(tensor, torch.from_numpy(np.moveaxis(normalised(clips), -1, 1)), atol=1e-6)


def test_landmarks_are_changed_in_training_only() -> None:
    transform = _LandmarkTransform()
    clip = signing_hand(0, np.random.default_rng(0), n_frames=16)
    before = clip.copy()
    shown = [transform.training(clip, np.random.default_rng(seed))[0] for seed in range(4)]
    assert all(one.shape == (16, 258) and not np.array_equal(one, clip) for one in shown)
    assert np.array_equal(transform.testing(clip[None])[0], clip)
    assert np.array_equal(clip, before)


def test_without_any_change_landmarks_stay_as_they_are() -> None:
    clip = signing(1).numpy()[0]
    shown, _ = _LandmarkTransform(STILL).training(clip, np.random.default_rng(0))
    assert np.allclose(shown, clip, atol=1e-6)


@given(st.integers(0, 10_000))
def test_what_was_not_detected_stays_so_and_all_is_finite(seed: int) -> None:
    clip = signing(1, seed=seed).numpy()[0]
    no_lost_hands = LandmarkAugmentation(hand_dropout=0, speed_jitter=0)
    change = no_lost_hands.draw(np.random.default_rng(seed))
    before = Body.of(mirrored(torch.from_numpy(clip)) if change.mirror else torch.from_numpy(clip))
    after = Body.of(torch.from_numpy(change.apply(clip)))
    for part in ("pose", "left", "right"):
        assert torch.equal(getattr(before, part).found, getattr(after, part).found)
        assert bool(getattr(after, part).points.isfinite().all())


def test_turning_keeps_distances_and_turns_by_the_angle() -> None:
    change = LandmarkAugmentation(
        mirror_probability=0, rotation_degrees=90, stretch_jitter=0, speed_jitter=0, hand_dropout=0
    ).draw(np.random.default_rng(3))
    clip = signing(1, gaps=False).numpy()[0]
    before, after = (Body.of(torch.from_numpy(points)).right.points[0, :, :2] for points in (clip, change.apply(clip)))
    assert torch.allclose(torch.cdist(before, before), torch.cdist(after, after), atol=1e-5)
    old, new = (complex(*(points[5] - points[0]).tolist()) for points in (before, after))
    assert np.angle(new / old) == pytest.approx(change.radians, abs=1e-4)


def test_a_slower_clip_shows_fewer_of_the_frames_around_the_middle() -> None:
    clip = np.repeat(np.arange(1, 17, dtype=np.float32)[:, None], 258, axis=1)
    change = LandmarkAugmentation(
        mirror_probability=0, rotation_degrees=0, stretch_jitter=0, speed_jitter=1, hand_dropout=0
    ).draw(np.random.default_rng(1))
    shown = change.apply(clip)[:, 2]  # z, which nothing else changes
    assert (np.diff(shown) >= 0).all() and shown.min() >= 1 and shown.max() <= 16
    assert abs((shown[-1] - shown[0]) / 15 - min(1, change.speed)) < 0.1
    assert shown.mean() == pytest.approx(8.5, abs=0.6)


def test_a_lost_hand_is_lost_for_a_stretch_of_frames() -> None:
    always = LandmarkAugmentation(
        mirror_probability=0, rotation_degrees=0, stretch_jitter=0, speed_jitter=0, hand_dropout=1
    )
    clip = signing(1, gaps=False).numpy()[0]
    lost = []
    for seed in range(20):
        body = Body.of(torch.from_numpy(always.draw(np.random.default_rng(seed)).apply(clip)))
        assert bool(body.pose.found.all())
        for hand in (body.left, body.right):
            gone = np.flatnonzero(~hand.found.numpy())
            assert not len(gone) or (np.diff(gone) == 1).all()
            lost.append(len(gone))
    assert 2 < np.mean(lost) < 9


@pytest.mark.parametrize(
    ("transform", "clip"),
    [
        (_PixelTransform(), np.zeros((16, 224, 224), np.uint8)),
        (_PixelTransform(), np.zeros((16, 100, 100, 3), np.uint8)),
        (_PixelTransform(Augmentation(crop=8)), np.zeros((15, 8, 8, 3), np.uint8)),
        (_PixelTransform(), np.zeros((16, 258), np.float32)),
        (_LandmarkTransform(), np.zeros((16, 8, 8, 3), np.uint8)),
        (_LandmarkTransform(), np.zeros((15, 258), np.float32)),
    ],
)
def test_clips_of_another_kind_are_refused(transform: _PixelTransform | _LandmarkTransform, clip: np.ndarray) -> None:
    with pytest.raises(ValueError, match="clips of"):
        transform.training(clip, np.random.default_rng(0))
    with pytest.raises(ValueError, match="clips of"):
        transform.testing(clip[None])
