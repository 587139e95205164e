from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Dictionary, Entry, Word
from signspot.domain.time import FRAME_MS, FrameSpan, TimeAxis
from signspot.domain.tracks import POSE_NUMBERS, LandmarkTrack, SignerLandmarks
from signspot.embedding.landmarks import HANDS_OUT, NO_HANDS, NOBODY, LandmarkModel, _doubts_of
from signspot.embedding.model import Model, Reading
from signspot.embedding.zoo import embed_gallery, load_model
from signspot.errors import VideoError
from signspot.formats.pose import read_pose, write_pose
from signspot.models.embedders import LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig
from signspot.workflows.lookup import LookupOptions, look_up
from signspot.world.settings import preset_named
from signspot.world.simulation import World
from tests.workflows.signed import resting, sign, write

HERE = Reading(isolated=False)


def landmarks(points: np.ndarray[tuple[int, ...], np.dtype[np.float32]], name: str = "x") -> SignerLandmarks:
    axis = TimeAxis(np.arange(len(points), dtype=np.float64) * FRAME_MS)
    return SignerLandmarks(LandmarkTrack(name, axis, points.astype(np.float32)), 256, 256)


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> Dictionary:
    """Four entries of the world as landmarks."""
    folder, world = tmp_path_factory.mktemp("signs"), World.of(preset_named("demo"))
    entries = []
    for entry in world.dictionary_entries()[:40:10]:
        path = folder / f"{entry.entry_id}.pose"
        write_pose(landmarks(world.detected(world.perform_entry(entry), entry.entry_id)), path)
        entries.append(replace(entry, video=path))
    return Dictionary.of("world", entries)


def random_model() -> LandmarkModel:
    torch.manual_seed(0)
    config = LandmarkEncoderConfig(classes=2, width=16, heads=2, convolutions=1, transformer_layers=1, embedding_dim=16)
    return LandmarkModel(LandmarkEmbedder(LandmarkEncoder(config), None, name="random", threshold=0.9))


@pytest.fixture(scope="module")
def signs() -> LandmarkModel:
    return random_model()


def test_a_recording_of_an_entry_finds_it_through_its_landmarks(dictionary: Dictionary, signs: LandmarkModel) -> None:
    gallery = embed_gallery(dictionary, signs, HERE)
    for entry in dictionary:
        assert entry.video is not None
        found = look_up(entry.video, signs, gallery, LookupOptions(count=2))
        assert found.guesses[0].entry == entry and found.guesses[0].cosine == pytest.approx(1, abs=1e-5)
        assert found.trim.n_frames == len(read_pose(entry.video).track.axis) and found.faults == ()
        assert 1 <= len(found.pictures) <= 6 and found.pictures[0].shape == (96, 96, 3)


def test_a_mirrored_recording_finds_the_same_entry(
    dictionary: Dictionary, signs: LandmarkModel, tmp_path: Path
) -> None:
    entry = next(iter(dictionary))
    assert entry.video is not None
    from signspot.embedding.landmarks import _mirrored

    seen = read_pose(entry.video)
    write_pose(landmarks(_mirrored(seen.track.points)), tmp_path / "left.pose")
    best = look_up(tmp_path / "left.pose", signs, embed_gallery(dictionary, signs, HERE)).guesses[0]
    assert best.entry == entry and best.is_mirrored


def signing(n_frames: int = 40) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """A body whose wrists move, with both hands found."""
    points = np.zeros((n_frames, 258), np.float32)
    pose = points[:, :POSE_NUMBERS].reshape(n_frames, 33, 4)
    pose[..., :2], pose[..., 3] = 0.5, 1
    pose[:, 15:17, 1] = 0.6 + 0.2 * np.sin(np.arange(n_frames) / 3)[:, None]
    points[:, POSE_NUMBERS:] = 0.5
    return points


def test_hands_that_leave_the_picture_or_are_not_found_raise_a_doubt() -> None:
    whole = FrameSpan(0, 40)
    fine = signing()
    assert _doubts_of(landmarks(fine).track, whole) == ()
    out = signing()
    out[:, :POSE_NUMBERS].reshape(40, 33, 4)[:, 15:17, 1] += 0.6
    assert _doubts_of(landmarks(out).track, whole) == (HANDS_OUT,)
    one = signing()
    one[:, :POSE_NUMBERS].reshape(40, 33, 4)[:, 15, 1] += 0.6
    assert _doubts_of(landmarks(one).track, whole) == (), "one-handed signs leave the other hand below the picture"
    lost = signing()
    lost[:25, POSE_NUMBERS:] = 0
    assert _doubts_of(landmarks(lost).track, whole) == (NO_HANDS,)


def test_a_hand_that_is_raised_for_long_may_show_several_signs() -> None:
    track = landmarks(signing(110)).track
    assert _doubts_of(track, FrameSpan(0, 100)) == ()
    (doubt,) = _doubts_of(track, FrameSpan(0, 110))
    assert "4.4 s" in doubt and "signspot spot" in doubt


def test_a_recording_without_anybody_says_so_and_shows_no_pictures(signs: LandmarkModel, tmp_path: Path) -> None:
    write_pose(landmarks(np.zeros((30, 258), np.float32)), tmp_path / "nobody.pose")
    recorded = signs.recording(tmp_path / "nobody.pose", HERE)
    assert recorded.faults == (NOBODY,) and not recorded.doubts and not recorded.pictures and not len(recorded.vectors)


def test_a_clip_too_short_for_a_sign_is_refused(signs: LandmarkModel, tmp_path: Path) -> None:
    write_pose(landmarks(signing(7)), tmp_path / "short.pose")
    with pytest.raises(VideoError, match=r"too short \(7 frames, 0.3 s\)"):
        signs.entry(Entry(entry_id="short", word=Word("short"), video=tmp_path / "short.pose"), HERE)


def test_recordings_without_motion_that_are_too_short_or_too_long_say_so(signs: LandmarkModel, tmp_path: Path) -> None:
    for name, points, said in (
        ("hanging", resting(30), "no hand is raised"),
        ("before the belly", np.repeat(low(1), 30, axis=0), "no hand is raised"),
        ("short", signing(4), "too short (4 frames"),
    ):
        write_pose(landmarks(points), tmp_path / f"{name}.pose")
        recorded = signs.recording(tmp_path / f"{name}.pose", HERE)
        assert said in recorded.faults[0] and recorded.vectors.shape == (0, 16)
    write_pose(landmarks(signing(600)), tmp_path / "long.pose")
    with pytest.raises(VideoError, match="longer than 20 s"):
        signs.recording(tmp_path / "long.pose", HERE)


REAL = Path(__file__).parents[3] / "shared" / "data" / "pose_files"


def without_wrists(file: Path, folder: Path) -> Path:
    """The landmarks of a file again, without the wrists of the body."""
    seen = read_pose(file)
    points = seen.track.points.copy()
    points[:, 60:68] = 0
    write_pose(replace(seen, track=replace(seen.track, points=points)), folder / file.name)
    return folder / file.name


@pytest.fixture(scope="module")
def trained() -> Model:
    return load_model("landmark-v1")


def test_signs_are_found_in_landmarks_whose_body_has_no_wrists(
    dictionary: Dictionary, trained: Model, tmp_path: Path
) -> None:
    gallery = embed_gallery(dictionary, trained, HERE)
    for entry in dictionary:
        assert entry.video is not None
        found = look_up(without_wrists(entry.video, tmp_path), trained, gallery)
        assert found.faults == () and found.guesses[0].entry == entry and found.guesses[0].cosine > 0.98
        assert found.trim.kept.start == look_up(entry.video, trained, gallery).trim.kept.start


@pytest.mark.skipif(not REAL.is_dir(), reason="needs shared/data/pose_files")
def test_real_signs_look_the_same_without_the_wrists_of_the_body(trained: Model, tmp_path: Path) -> None:
    for name, least in (
        ("essen", 0.97),
        ("kleine", 0.97),
        ("pizza", 0.97),
        ("kinder", 0.85),
    ):  # its left hand is never found
        whole = trained.recording(REAL / f"{name}.pose", HERE)
        less = trained.recording(without_wrists(REAL / f"{name}.pose", tmp_path), HERE)
        assert less.faults == () and float((whole.vectors[0] * less.vectors[0]).sum()) > least, name


def low(n_frames: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Somebody who is found, with both hands before the belly."""
    points = sign(0, n_frames)
    points[:, [61, 65]] = 0.75  # the shoulders are 0.3 apart, at 0.45
    points[:, POSE_NUMBERS + 1 :: 3] = 0.75
    return points


def test_a_sign_that_is_held_without_moving_is_looked_up(signs: LandmarkModel, tmp_path: Path) -> None:
    ear = np.repeat(resting(1), 30, axis=0)
    ear[:, 64:66] = 0.3, 0.35
    ear[:, POSE_NUMBERS + 63 :] = sign(0, 1)[:, POSE_NUMBERS + 63 :]
    ear[:, POSE_NUMBERS + 64 :: 3] -= 0.27
    trembling = ear.copy()
    trembling[:, POSE_NUMBERS + 63 :] += np.random.default_rng(0).normal(0, 0.002, (30, 63)).astype(np.float32)
    up = np.concatenate([resting(12), ear, resting(12)])  # appears at once, as in a cut clip
    for name, points, kept in (
        ("held", ear, FrameSpan(0, 30)),
        ("trembling", trembling, FrameSpan(0, 30)),
        ("between rests", up, FrameSpan(12, 42)),
    ):
        recorded = signs.recording(write(points, tmp_path / f"{name}.pose"), HERE)
        assert recorded.faults == () and recorded.vectors.shape == (2, 16) and recorded.pictures, name
        assert recorded.trim.kept == kept and recorded.trim.remark == "", name


def test_a_low_sign_keeps_its_frames(signs: LandmarkModel, tmp_path: Path) -> None:
    points, turns = low(60), 0.06 * np.sin(np.arange(60) * 6 * np.pi / 60).astype(np.float32)
    turns[28:32] += 0.08  # beyond what counts as near where the hands were
    for side, wrist in ((1, 60), (-1, 64)):
        points[:, wrist] = points[0, wrist] + side * turns
        hand = slice(POSE_NUMBERS + (0 if side == 1 else 63), POSE_NUMBERS + (63 if side == 1 else 126), 3)
        points[:, hand] = points[0, hand] + side * turns[:, None]
    recorded = signs.recording(write(points, tmp_path / "low.pose"), HERE)
    assert recorded.faults == () and len(recorded.trim.kept) > 50


def test_an_entry_without_a_clip_is_left_out_and_named(dictionary: Dictionary, signs: LandmarkModel) -> None:
    entry = next(iter(dictionary))
    more = Dictionary.of("world", [*dictionary, replace(entry, entry_id="gone", video=None)])
    reading, said = HERE.collecting()
    gallery = embed_gallery(more, signs, reading)
    assert len(gallery.entries) == 4 and "gone: has no clip" in str(said[0])


def test_a_sign_is_what_lies_between_the_first_raised_hand_and_the_last(signs: LandmarkModel, tmp_path: Path) -> None:
    idle, busy = resting(30), sign(0, 30)
    recorded = signs.recording(write(np.concatenate([idle, busy, idle]), tmp_path / "long.pose"), HERE)
    alone = signs.recording(write(busy, tmp_path / "alone.pose"), HERE)
    assert recorded.trim.kept == FrameSpan(30, 60) and recorded.trim.n_frames == 90
    np.testing.assert_allclose(recorded.vectors, alone.vectors, atol=1e-5)
