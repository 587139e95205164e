"""A made-up signer as landmarks: smooth motion of two hands in front of a still body, and rest between signs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import POSE_NUMBERS, LandmarkTrack, SignerLandmarks
from signspot.formats.pose import write_pose

Points = npt.NDArray[np.float32]
WORDS = ("bread", "cheese", "milk", "tea")


def sign(seed: int, n_frames: int = 24) -> Points:
    """(n_frames, 258): hands of a shape and on a path that belong to the seed."""
    rng = np.random.default_rng(seed)
    points = resting(n_frames)
    time = np.linspace(0, np.pi, n_frames)[:, None]
    for side, wrist, start in ((0, 15, (0.58, 0.62)), (1, 16, (0.42, 0.62))):
        path = np.asarray(start) + rng.uniform(-0.15, 0.15, 2) * np.sin(time) + rng.uniform(-0.08, 0.08, 2) * time / 3
        shape = np.concatenate([np.zeros((1, 2)), rng.uniform(-0.05, 0.05, (20, 2))])
        hand = points[:, POSE_NUMBERS + 63 * side :][:, :63].reshape(n_frames, 21, 3)
        hand[..., :2] = path[:, None] + shape
        hand[..., 2] = -0.02
        points[:, POSE_NUMBERS + 63 * side :][:, :63] = hand.reshape(n_frames, 63)
        points[:, 4 * wrist : 4 * wrist + 2] = path
    return points


def resting(n_frames: int) -> Points:
    """(n_frames, 258): the same body, its hands out of sight."""
    points = np.zeros((n_frames, 258), np.float32)
    pose = points[:, :POSE_NUMBERS].reshape(n_frames, 33, 4)
    places = np.random.default_rng(99).uniform(0.45, 0.55, (33, 2))
    places[:11] = places[:11] * (0.4, 0.2) + (0.3, 0.18)  # the face
    places[11], places[12], places[13], places[14] = (0.65, 0.45), (0.35, 0.45), (0.7, 0.7), (0.3, 0.7)
    places[15], places[16] = (0.62, 0.98), (0.38, 0.98)
    pose[..., :2], pose[..., 3] = places, 0.95
    points[:, :POSE_NUMBERS] = pose.reshape(n_frames, POSE_NUMBERS)
    return points


def write(points: Points, path: Path, *, overwrite: bool = False) -> Path:
    """Landmarks as a .pose file of a square picture."""
    axis = TimeAxis(np.arange(len(points)) * float(FRAME_MS))
    write_pose(SignerLandmarks(LandmarkTrack(path.stem, axis, points), 500, 500), path, overwrite=overwrite)
    return path


def write_dictionary(folder: Path) -> Path:
    """One .pose file for each of four words, with rest before and after the sign."""
    folder.mkdir()
    for seed, word in enumerate(WORDS):
        write(np.concatenate([resting(6), sign(seed), resting(6)]), folder / f"{word}.pose")
    return folder


def passage(seed: int = 1, n_frames: int = 24) -> Points:
    """60 frames or so in which one sign of the dictionary is signed, from frame 20 on."""
    return np.concatenate([resting(20), sign(seed, n_frames), resting(20)])
