"""Sharing gives what the network gives for each window by itself."""

from __future__ import annotations

import importlib.util
import resource
from collections.abc import Iterator
from functools import cache
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.tracks import CLIP_LENGTH, FrameShape, Pixels
from signspot.media.reader import VideoReader
from signspot.models.backends import Backend, TorchBackend, _OpenVinoBackend
from signspot.models.embedders import VideoEmbedder
from signspot.models.i3d_shared import _contexts, is_shareable, shared_vectors
from tests.models.networks import embedder_of, moving_frames, relative_error, tiny_i3d, tiny_s3d

needs_openvino = pytest.mark.skipif(not importlib.util.find_spec("openvino"), reason="openvino is not installed")
BACKENDS = [TorchBackend(), pytest.param(_OpenVinoBackend(threads=1), marks=needs_openvino)]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def tiny(backend: Backend | None = None, width: float = 0.125, side: int = 64) -> VideoEmbedder:
    return embedder_of(tiny_i3d(width, side), side=side, backend=backend)


class Stepwise(VideoEmbedder):
    steps = 1

    @property
    def rows_per_step(self) -> int:
        return self.steps


def by_windows(frames: Pixels, model: VideoEmbedder, stride: int) -> np.ndarray:
    """The network as it was given, window by window: no folding, no sharing."""
    starts = range(0, len(frames) - CLIP_LENGTH + 1, stride)
    clips = np.array([frames[s : s + CLIP_LENGTH] for s in starts]).reshape(-1, CLIP_LENGTH, *frames.shape[1:])
    maps = torch.from_numpy(np.moveaxis(clips, -1, 1).astype(np.float32) / 255 - 0.5)
    with torch.inference_mode():
        rows: np.ndarray = torch.cat([model.trunk(one[None]).embedding for one in maps]).numpy()
    return rows


def by_sharing(frames: Pixels, model: VideoEmbedder, stride: int) -> np.ndarray:
    none = np.empty((0, model.trunk.embedding_dim), np.float32)
    return np.concatenate([none, *shared_vectors(iter(frames), model, stride)])


def test_windows_differ_enough_for_these_tests_to_mean_something() -> None:
    vectors = by_windows(moving_frames(40), tiny(), 1)
    assert np.abs(vectors - vectors.mean(axis=0)).max() > 0.1 * np.abs(vectors).max()


def test_a_window_has_the_kinds_the_design_counts() -> None:
    """PERFORMANCE B: 4 maps of 8, then 6, then 8; 10 of 24 taps in the first 3 x 3 x 3, 16 of 24 in the second.

    Those 16 are more than the 12 products that `windows.TimeConvolution` takes.
    """
    second = _contexts([0, 3, 3, 3, 3, 3, 1, 2])
    kinds = list(dict.fromkeys(second))
    third = _contexts([kinds.index(context) for context in second])
    assert (len(kinds), len(set(third))) == (6, 8)
    n_taps = [len({(t, k) for c in seen for t, k in enumerate(c) if k is not None}) for seen in (kinds, third)]
    assert n_taps == [10, 16]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("stride", [1, 2])
def test_shared_windows_equal_single_windows(stride: int, backend: Backend) -> None:
    model, frames = tiny(backend), moving_frames(57)
    expected = by_windows(frames, model, stride)
    got = by_sharing(frames, model, stride)
    assert got.shape == expected.shape
    assert relative_error(got, expected) < 1e-4


@pytest.mark.parametrize("stride", [1, 2])
def test_every_length_has_its_windows(stride: int) -> None:
    model, frames = tiny(None, 0.125, 32), moving_frames(40, 32)
    expected = by_windows(frames, model, stride)
    for n_frames in range(41):
        got = by_sharing(frames[:n_frames], model, stride)
        n_windows = max(0, (n_frames - CLIP_LENGTH) // stride + 1)
        assert got.shape == (n_windows, 128)
        if n_windows:
            assert np.abs(got - expected[:n_windows]).max() < 1e-4 * np.abs(expected - expected.mean(axis=0)).max()


@pytest.mark.parametrize("rows_per_step", [1, 7, 9])
@pytest.mark.parametrize("stride", [1, 2])
def test_vectors_do_not_depend_on_how_many_positions_are_taken_at_a_time(rows_per_step: int, stride: int) -> None:
    """A full-size network takes one position and two windows at a time, a small one 32 and 64."""
    model, frames = Stepwise(tiny().trunk, None, tiny().settings), moving_frames(30)
    model.steps = rows_per_step
    assert relative_error(by_sharing(frames, model, stride), by_windows(frames, model, stride)) < 1e-4


@pytest.mark.parametrize(("width", "side"), [(0.25, 32), (0.125, 50), (0.125, 37), (0.125, 96)])
def test_other_widths_and_sizes_are_shared_too(width: float, side: int) -> None:
    model = tiny(None, width, side)
    frames = np.random.default_rng(3).integers(0, 256, (27, side, side, 3), dtype=np.uint8)
    assert relative_error(by_sharing(frames, model, 1), by_windows(frames, model, 1)) < 1e-4


def test_a_real_recording_is_shared_exactly(shared_data: Path) -> None:
    with VideoReader(shared_data / "real_video" / "bsl_broadcast.mp4", shape=FrameShape(64, 64)) as reader:
        frames = np.stack([frame.pixels for frame in islice(reader, 60)])
    assert relative_error(by_sharing(frames, tiny(), 1), by_windows(frames, tiny(), 1)) < 1e-4


def test_half_precision_stays_close() -> None:
    """The path of graphics cards, in the half precision a processor has."""
    model, frames = tiny(TorchBackend(dtype=torch.bfloat16)), moving_frames(40)
    expected, got = by_windows(frames, model, 1), by_sharing(frames, model, 1)
    cosine = (expected * got).sum(axis=1) / np.linalg.norm(expected, axis=1) / np.linalg.norm(got, axis=1)
    assert cosine.min() > 0.995
    assert got.dtype == np.float32


def test_frames_are_taken_as_they_are_needed() -> None:
    taken = 0

    def counted() -> Iterator[Pixels]:
        nonlocal taken
        for frame in moving_frames(100):
            taken += 1
            yield frame

    stream = shared_vectors(counted(), tiny())
    n_windows = len(next(stream))
    assert taken <= n_windows + CLIP_LENGTH + 8


def test_memory_does_not_grow_with_the_video() -> None:
    model = tiny(None, 0.125, 32)
    stream = shared_vectors(repeat(moving_frames(1, 32)[0]), model)

    def resident_mb() -> float:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20

    usage = []
    for _ in range(5):
        n_windows = sum(len(vectors) for vectors in islice(stream, 15))
        assert n_windows >= 960  # whose frames alone would be 3 MB
        usage.append(resident_mb())
    assert np.polyfit(range(4), usage[1:], 1)[0] < 2


def test_networks_that_cannot_share_say_so() -> None:
    s3d = embedder_of(tiny_s3d())
    assert is_shareable(tiny(), 1) and not is_shareable(s3d, 1) and not is_shareable(tiny(), 3)
    with pytest.raises(ValueError, match="at a stride of 3 share nothing"):
        next(shared_vectors(moving_frames(20), tiny(), 3))


def test_the_full_network_is_shared_exactly_in_a_few_windows_of_a_real_recording(shared_data: Path) -> None:
    with VideoReader(shared_data / "real_video" / "bsl_broadcast.mp4", shape=FrameShape(256, 224)) as reader:
        # Every fifth frame: neighbouring windows of so few frames would hardly differ, and any error would look large.
        frames = np.stack([frame.pixels for frame in islice(reader, 0, 18 * 5, 5)])
    model = embedder_of(tiny_i3d(width=1.0, side=64), side=224)
    expected = by_windows(frames, model, 1)
    assert expected.shape == (3, 1024)
    assert relative_error(by_sharing(frames, model, 1), expected) < 1e-4


@pytest.mark.soak
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_the_full_network_is_shared_exactly_on_a_real_recording(shared_data: Path, backend: Backend) -> None:
    with VideoReader(shared_data / "real_video" / "bsl_broadcast.mp4", shape=FrameShape(256, 224)) as reader:
        every = np.stack([frame.pixels for frame in reader])
    model = embedder_of(tiny_i3d(width=1.0, side=64), side=224, backend=backend)
    # Neighbouring windows of real footage hardly differ: measured against how they do, the rounding of the two float32
    # computations alone comes to 1e-4 (6e-5 and 4e-5 against float64). So: against their size, and far apart.
    shared, single = by_sharing(every[:28], model, 1), by_windows(every[:28], model, 1)
    assert np.abs(shared - single).max() < 1e-4 * np.abs(single).max()
    apart = every[::5][:28]
    assert relative_error(by_sharing(apart, model, 1), by_windows(apart, model, 1)) < 1e-4
