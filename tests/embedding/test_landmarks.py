from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Entry, Episode, SignerBox, Word
from signspot.domain.tracks import CLIP_LENGTH, WindowGrid, in_picture_heights
from signspot.embedding.landmarks import LandmarkModel, landmarks_of
from signspot.embedding.model import Reading, Views
from signspot.formats.pose import read_pose, write_pose
from signspot.models.embedders import LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig
from signspot.stores.features import open_store
from tests.media.stand_in_detector import coloured_video, install
from tests.models.networks import tiny_head
from tests.workflows.signed import sign, write

HERE = Reading(isolated=False)
COLOURS = [(60, 80, 200), (120, 90, 10), (10, 10, 10), (200, 40, 255)]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install(tmp_path / "packages", monkeypatch)


def times_asked(log: Path) -> int:
    return log.read_text().count("start") if log.exists() else 0


def test_landmarks_are_found_once_and_then_come_from_the_store(tmp_path: Path, log: Path) -> None:
    video = coloured_video(tmp_path / "a.mp4", COLOURS)
    without = landmarks_of(video, HERE)
    with open_store(tmp_path / "store") as store:
        first = landmarks_of(video, HERE, store=store)
        asked = times_asked(log)
        renamed = video.rename(tmp_path / "b.mp4")
        again = landmarks_of(renamed, HERE, store=store)
        assert times_asked(log) == asked == 2
        boxed = landmarks_of(renamed, HERE, SignerBox(0.0, 0.0, 0.5, 0.5), store)
        assert times_asked(log) == 3
    for other in (first, again):
        assert np.array_equal(without.signer.track.points, other.signer.track.points)
        assert np.array_equal(without.signer.track.axis.times_ms, other.signer.track.axis.times_ms)
        assert other.signer.aspect == without.signer.aspect == 64 / 48
    assert again.signer.track.video_id == "b" and without.pose_share == again.pose_share == 0.75
    assert without.hand_share == 0.5
    assert not np.array_equal(boxed.signer.track.points, first.signer.track.points)


def test_a_file_beside_the_video_is_believed_and_needs_no_detector(tmp_path: Path) -> None:
    video = tmp_path / "a.mp4"  # not even read
    video.write_bytes(b"")
    made = read_pose_of(tmp_path / "a.pose")
    for asked in (video, tmp_path / "a.pose"):
        assert np.array_equal(landmarks_of(asked).signer.track.points, made)


def read_pose_of(path: Path) -> np.ndarray:
    from tests.formats.test_pose import some_landmarks

    write_pose(some_landmarks(5, 0), path)
    return read_pose(path).track.points


# Tracks of landmarks


def small_model() -> LandmarkModel:
    torch.manual_seed(0)
    config = LandmarkEncoderConfig(classes=1, width=16, embedding_dim=32)
    return LandmarkModel(LandmarkEmbedder(LandmarkEncoder(config), tiny_head(32), name="landmarks"))


@pytest.mark.parametrize("n_frames", [1, 15, 16, 40])
@pytest.mark.parametrize("stride", [1, 3])
def test_landmarks_have_the_windows_of_the_grid(tmp_path: Path, n_frames: int, stride: int) -> None:
    model, trunk = small_model(), small_model().trunk()
    write(sign(0, n_frames), tmp_path / "v.pose")
    episode, reading = Episode(video_id="named", video=tmp_path / "v.pose"), Reading(stride=stride, isolated=False)
    seen = read_pose(tmp_path / "v.pose")
    points, grid = in_picture_heights(seen.track.points, seen.aspect), WindowGrid(n_frames, stride=stride)
    clips = points[np.minimum(grid.starts()[:, None] + np.arange(CLIP_LENGTH), n_frames - 1)]
    for embeds, expected in ((trunk, model.network.trunk_vectors(clips)), (model, model.network.embed(clips))):
        made = embeds.track(episode, reading).track
        np.testing.assert_allclose(made.vectors, expected, rtol=1e-3, atol=1e-3)  # rounded to half precision
        np.testing.assert_array_equal(made.vectors, np.asarray(made.vectors).astype(np.float16))
        assert (made.video_id, made.grid) == ("named", grid)
        assert made.axis.times_ms.tolist() == seen.track.axis.times_ms.tolist()
        assert made.unit_rows == (embeds is model)
        assert made.fingerprint == embeds.fingerprint


def test_the_track_of_a_landmark_trunk_is_kept_and_found_again(tmp_path: Path) -> None:
    model, trunk = small_model(), small_model().trunk()
    episode = Episode(video_id="v", video=write(sign(0, 50), tmp_path / "v.pose"))
    kept = Reading(isolated=False, store=tmp_path / "store")
    without = trunk.track(episode, replace(kept, store=None))
    first, again = (trunk.track(episode, kept) for _ in range(2))
    assert (without.was_stored, first.was_stored, again.was_stored) == (False, False, True)
    for made in (without, first, again):
        assert made.track.vectors.shape == (35, 32) and made.track.vectors.any() and not made.track.unit_rows
        assert made.track.vectors.tobytes() == without.track.vectors.tobytes()
        assert made.track.fingerprint == model.network.trunk_fingerprint
    with kept.opened_store() as store:
        assert store is not None
        (row,) = store.entries()
    assert row.key.fingerprint == first.kept_as == again.kept_as and row.dim == 32
    assert row.key.fingerprint.startswith(f"{model.network.trunk_fingerprint} windows 16 pose with wrists")
    assert not model.track(episode, kept).was_stored and model.track(episode, kept).was_stored  # rows of their own


def test_entries_of_a_landmark_trunk_are_rounded_as_tracks_are(tmp_path: Path) -> None:
    model = small_model()
    trunk = model.trunk()
    entry = Entry(entry_id="a", word=Word("a"), video=write(sign(1, 30), tmp_path / "a.pose"))
    both, plain = trunk.entry(entry, HERE, Views(mirror=True)), trunk.entry(entry, HERE)
    assert both.shape == (2, trunk.dim) and both.dtype == np.float32 and not np.array_equal(both[0], both[1])
    np.testing.assert_array_equal(both, both.astype(np.float16))
    np.testing.assert_array_equal(both[:1], plain)
    np.testing.assert_allclose(
        model.network.head_vectors(both), model.entry(entry, HERE, Views(mirror=True)), atol=2e-3
    )


def test_a_quick_look_at_landmarks_is_the_whole_track(tmp_path: Path) -> None:
    model, episode = small_model(), Episode(video_id="v", video=write(sign(0, 40), tmp_path / "v.pose"))
    exact = model.track(episode, HERE)
    quick = model.track(episode, HERE, near=np.eye(1, model.dim, dtype=np.float32))
    assert quick.remarks == exact.remarks and quick.track.vectors.tobytes() == exact.track.vectors.tobytes()
