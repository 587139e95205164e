from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from signspot.learning.clips import LandmarkAugmentation, RecordedClips
from signspot.learning.trunk import _ClipBatch, _ClipBatches, _LandmarkTransform, _PixelTransform, _SourceShare
from signspot.media.frames import Augmentation
from signspot.models.embedders import CONTINUOUS, DICTIONARY
from signspot.models.landmarks import mirrored
from tests.learning.signs import whole_clips

UNCHANGED = _LandmarkTransform(
    LandmarkAugmentation(mirror_probability=0, rotation_degrees=0, stretch_jitter=0, speed_jitter=0, hand_dropout=0)
)


def recordings(n: int, n_frames: int = 30, first: int = 1) -> RecordedClips:
    """Every number of frame f of recording r is r + f / 100."""
    frames = [
        np.repeat((first + i + np.arange(n_frames, dtype=np.float32) / 100)[:, None], 258, axis=1) for i in range(n)
    ]
    return whole_clips(frames, list(range(n)), max_speed=4)


def share(n: int, domain: int, first: int) -> _SourceShare:
    return _SourceShare(recordings(n, first=first), np.arange(n), domain)


def both(n_continuous: int = 12, n_dictionary: int = 5, batch_size: int = 6, seed: int = 0) -> _ClipBatches:
    shares = (share(n_continuous, CONTINUOUS, 1), share(n_dictionary, DICTIONARY, 101))
    return _ClipBatches(shares, UNCHANGED, batch_size=batch_size, seed=(seed, 2))


def same(a: _ClipBatch, b: _ClipBatch) -> bool:
    return torch.equal(a.clips, b.clips) and torch.equal(a.labels, b.labels) and a.names == b.names


def test_every_batch_is_half_continuous_and_half_dictionary() -> None:
    batches = both()
    for step in range(20):
        batch = batches.batch(step)
        assert batch.domains.tolist() == [CONTINUOUS] * 3 + [DICTIONARY] * 3
        assert ((batch.clips[:, 0, 0] > 100) == (batch.domains == DICTIONARY)).all()


def test_an_epoch_shows_every_clip_of_the_larger_source_once() -> None:
    batches = both()
    assert batches.steps_per_epoch == 4
    labels = torch.cat([batches.batch(step).labels[:3] for step in range(4)])
    assert sorted(labels.tolist()) == list(range(12))


def test_clips_of_the_smaller_source_return_equally_often() -> None:
    batches = both()
    counts = Counter(label for step in range(10) for label in batches.batch(step).labels[3:].tolist())
    assert set(counts) == set(range(5)) and set(counts.values()) == {6}


def test_labels_and_names_belong_to_their_clips() -> None:
    batch = both().batch(3)
    for clip, label, domain, name in zip(batch.clips, batch.labels, batch.domains, batch.names, strict=True):
        assert int(clip[0, 0]) == int(label) + (1, 101)[int(domain)]
        assert name == f"recording {int(label)}"


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    in_order = [both().batch(step) for step in range(6)]
    one = both()
    assert all(same(one.batch(step), in_order[step]) for step in (5, 0, 3, 3))
    assert not same(both(seed=1).batch(0), in_order[0])


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_do_not_change_the_batches(workers: int) -> None:
    plain = list(both().batches(2, 13))
    ahead = list(both().batches(2, 13, workers=workers))
    assert len(plain) == len(ahead) == 11
    assert all(same(a, b) for a, b in zip(plain, ahead, strict=True))


def test_a_clip_is_drawn_anew_each_time() -> None:
    batches = _ClipBatches((share(1, DICTIONARY, 1),), UNCHANGED, batch_size=1, seed=(0, 2))
    drawn = {tuple(batches.batch(step).clips[0, :, 0].tolist()) for step in range(20)}
    assert len(drawn) > 15


def test_threads_end_when_nobody_listens_and_their_errors_arrive() -> None:
    ahead = both().batches(0, 1000, workers=2)
    next(ahead)
    ahead.close()  # type: ignore[attr-defined]
    broken = _ClipBatches((share(3, CONTINUOUS, 1),), _PixelTransform(), batch_size=1, seed=(0, 1))
    with pytest.raises(ValueError, match="clips of float32"):
        list(broken.batches(0, 3, workers=2))


def test_landmarks_show_the_frames_of_the_pixels_mirrored_where_they_are() -> None:
    n_frames, side = 40, 8
    pixels = np.repeat(np.arange(n_frames, dtype=np.uint8), side * side * 3).reshape(n_frames, side, side, 3)
    points = np.repeat(np.arange(1, n_frames + 1, dtype=np.float32)[:, None], 258, axis=1)
    transform = _PixelTransform(Augmentation(crop=side, colour_jitter=0, scale_jitter=0, flip_probability=0.5))
    one = _SourceShare(
        whole_clips([pixels], [0], max_speed=4),
        np.array([0]),
        landmarks=whole_clips([points], [0], max_speed=4),
    )
    batches = _ClipBatches((one,), transform, batch_size=1, seed=(0, 0))
    mirrors = 0
    for step in range(30):
        batch = batches.batch(step)
        assert batch.landmarks is not None
        numbers = batch.clips[0, :, 0, 0, 0].float()
        expected = (numbers + 1)[:, None].expand(16, 258)
        is_mirrored = not torch.equal(batch.landmarks[0], expected)
        mirrors += is_mirrored
        assert torch.equal(batch.landmarks[0], mirrored(expected) if is_mirrored else expected)
    assert 5 < mirrors < 25


@pytest.mark.parametrize(("batch_size", "n"), [(3, 4), (2, 0)])
def test_what_cannot_be_shared_out_is_refused(batch_size: int, n: int) -> None:
    with pytest.raises(ValueError, match="a batch of"):
        both(n_continuous=n, batch_size=batch_size)
