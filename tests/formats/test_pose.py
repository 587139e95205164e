from __future__ import annotations

import io
import struct
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.domain.time import TimeAxis
from signspot.domain.tracks import HAND_POINTS, POSE_POINTS, LandmarkTrack, SignerLandmarks
from signspot.errors import FormatError, InputError, OutputExists
from signspot.formats.pose import landmarks_beside, read_pose, write_pose
from signspot.media.reader import VideoReader
from signspot.media.writer import VideoWriter

REAL = Path(__file__).parents[3] / "shared" / "data" / "pose_files"
Floats = npt.NDArray[np.float32]
HOLISTIC = {
    "POSE_LANDMARKS": POSE_POINTS,
    "FACE_LANDMARKS": ("0", "7"),
    "LEFT_HAND_LANDMARKS": HAND_POINTS,
    "RIGHT_HAND_LANDMARKS": HAND_POINTS,
}


@dataclass(frozen=True)
class Recipe:
    """A .pose file written as its description says, by other code than the package's."""

    places: Floats  # (frames, people, points, dimensions)
    confidence: Floats  # (frames, people, points)
    parts: tuple[tuple[str, tuple[str, ...]], ...] = tuple(HOLISTIC.items())
    version: float = 0.2
    fps: float = 25.0
    size: tuple[int, int] = (640, 480)
    dimensions: str = "XYZC"

    def __bytes__(self) -> bytes:
        def text(words: str) -> bytes:
            return struct.pack("<H", len(words.encode())) + words.encode()

        out = struct.pack("<fHHHH", self.version, *self.size, 0, len(self.parts))
        for name, points in self.parts:
            out += text(name) + text(self.dimensions) + struct.pack("<HHH", len(points), 1, 1)
            out += b"".join(map(text, points)) + struct.pack("<HH", 0, 1) + struct.pack("<HHH", 1, 2, 3)
        frames, people = self.confidence.shape[:2]
        if self.version < 0.15:
            out += struct.pack("<HHH", int(self.fps), frames % 65536, people)
        else:
            out += struct.pack("<fIH", self.fps, frames, people)
        return out + self.places.astype("<f4").tobytes() + self.confidence.astype("<f4").tobytes()


def recipe(frames: int = 4, people: int = 1, seed: int = 0) -> Recipe:
    rng = np.random.default_rng(seed)
    n = sum(map(len, HOLISTIC.values()))
    places = rng.uniform(20, 400, (frames, people, n, 3)).astype(np.float32)
    return Recipe(places, rng.uniform(0.2, 1, (frames, people, n)).astype(np.float32))


def stored(folder: Path, content: bytes, name: str = "clip.pose") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def mapped_by_hand(made: Recipe, person: int = 0) -> Floats:
    """The 258 numbers, point by point."""
    names = [(part, point) for part, points in made.parts for point in points]
    frames = []
    for f in range(len(made.places)):

        def point(part: str, name: str, f: int = f) -> tuple[float, float, float, float]:
            if (part, name) not in names:
                return 0, 0, 0, 0
            at = names.index((part, name))
            x, y, *depth = made.places[f, person, at].tolist()
            seen = float(made.confidence[f, person, at])
            found = seen > 0
            z = depth[0] if depth else 0.0
            return (x / made.size[0], y / made.size[1], z, seen) if found else (0, 0, 0, 0)

        pose = [number for name in POSE_POINTS for number in point("POSE_LANDMARKS", name)]
        hands = []
        for part in ("LEFT_HAND_LANDMARKS", "RIGHT_HAND_LANDMARKS"):
            points = [point(part, name) for name in HAND_POINTS]
            whole = all(p[3] > 0 for p in points)
            hands += [number if whole else 0.0 for p in points for number in p[:3]]
        frames.append([*pose, *hands])
    return np.array(frames, np.float32).reshape(-1, 258)


def some_landmarks(n_frames: int, seed: int, size: tuple[int, int] = (640, 480)) -> SignerLandmarks:
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.2, 1.2, (n_frames, 258)).astype(np.float32)
    points[:, 3:132:4] = rng.uniform(0.01, 1, (n_frames, 33))
    for first, last in ((0, 132), (132, 195), (195, 258)):
        points[rng.random(n_frames) < 0.3, first:last] = 0
    return SignerLandmarks(LandmarkTrack("clip", TimeAxis(np.arange(n_frames) * 40.0), points), *size)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 40), st.integers(0, 2**32 - 1), st.integers(20, 4000), st.integers(20, 4000))
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, n_frames: int, seed: int, width: int, height: int
) -> None:
    written = some_landmarks(n_frames, seed, (width, height))
    before = written.track.points.copy()
    path = tmp_path_factory.mktemp("pose") / "clip.pose"
    write_pose(written, path)
    read = read_pose(path)
    assert (read.width, read.height, read.track.video_id) == (width, height, "clip")
    assert read.aspect == width / height
    assert np.array_equal(read.track.axis.times_ms, written.track.axis.times_ms)
    assert np.allclose(read.track.points, written.track.points, rtol=1e-6, atol=1e-6)
    assert np.array_equal(read.track.points == 0, written.track.points == 0)
    assert np.array_equal(before, written.track.points)


def test_the_same_landmarks_give_the_same_bytes_and_replace_nothing_unasked(tmp_path: Path) -> None:
    first, second = tmp_path / "a.pose", tmp_path / "b.pose"
    for path in (first, second):
        write_pose(some_landmarks(9, 1), path)
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(OutputExists, match="exists already"):
        write_pose(some_landmarks(9, 2), first)
    with pytest.raises(InputError, match=r"does not fit into a \.pose file"):
        write_pose(some_landmarks(2, 2, (70_000, 10)), tmp_path / "c.pose")


@pytest.mark.parametrize("version", [0.1, 0.2])
def test_points_are_found_by_their_names_in_both_versions(tmp_path: Path, version: float) -> None:
    made = recipe(5)
    made.confidence[1, 0, 40] = 0  # a point of the left hand: the hand is not whole
    made.confidence[2, 0, 5] = 0  # a point of the pose
    made.confidence[3] = 0  # nobody
    made = replace(made, version=version)
    read = read_pose(stored(tmp_path, bytes(made)))
    assert np.allclose(read.track.points, mapped_by_hand(made), rtol=1e-6)
    assert not read.track.points[3].any() and not read.track.points[1, 132:195].any()
    assert (read.width, read.height) == (640, 480)


def test_a_file_with_fewer_points_leaves_the_others_out(tmp_path: Path) -> None:
    parts = (("POSE_LANDMARKS", ("RIGHT_SHOULDER", "LEFT_SHOULDER")), ("RIGHT_HAND_LANDMARKS", HAND_POINTS))
    whole = recipe(3)
    made = replace(whole, places=whole.places[:, :, :23], confidence=whole.confidence[:, :, :23], parts=parts)
    points = read_pose(stored(tmp_path, bytes(made))).track.points
    expected = mapped_by_hand(made)
    expected[:, 64:66], expected[:, 67] = expected[:, 195:197], 1  # only the wrist, which the hand has, is not left out
    assert np.allclose(points, expected, rtol=1e-6)
    assert points[:, 44:48].all() and not points[:, :44].any()


def armless(whole: SignerLandmarks) -> SignerLandmarks:
    """The same without the wrists of the body."""
    points = whole.track.points.copy()
    points[:, 60:68] = 0
    return replace(whole, track=replace(whole.track, points=points))


def test_a_body_without_wrists_has_those_of_its_hands(tmp_path: Path) -> None:
    whole = some_landmarks(60, 5)
    points = whole.track.points
    points[:, :132] = np.tile(points[0, :132] + 0.001, (60, 1))
    points[20:26] = 0  # nobody: nothing is put there
    points[30:40, 195:] = 0  # the right hand is lost for a moment, and hangs at the end
    points[50:, 195:] = 0
    points[:, 132:195] = 0  # the left hand is never found
    points[40, 195:198], points[29, 195:198] = (0.5, 0.4, 0.1), (0.3, 0.6, 0.1)
    points[40, 198:], points[29, 198:] = 0.2, 0.2
    write_pose(armless(whole), tmp_path / "clip.pose")
    read = read_pose(tmp_path / "clip.pose").track.points
    right, left, hand = read[:, 64:68], read[:, 60:64], read[:, 195:]
    found = hand.any(axis=1) & read[:, :132].any(axis=1)
    assert found.any() and np.array_equal(right[found, :2], hand[found, :2]) and (right[found, 3] == 1).all()
    assert np.allclose(right[30:40, 0], np.linspace(0.3, 0.5, 12)[1:-1], atol=1e-5) and (right[30:40, 3] < 0.3).all()
    assert not read[20:26].any()
    shoulder, elbow = read[55, 48:50], read[55, 56:58]
    assert np.allclose(right[55, :2] - elbow, 0.7 * (elbow - shoulder) + 0.2 * (read[55, 44:46] - shoulder), atol=1e-5)
    assert left[:20, :2].any() and (left[:, 3] < 0.3).all(), "a place that nobody calls seen"


def test_hands_alone_are_no_body(tmp_path: Path) -> None:
    whole = some_landmarks(20, 3)
    whole.track.points[:, :132] = 0
    write_pose(whole, tmp_path / "clip.pose")
    assert not read_pose(tmp_path / "clip.pose").track.points[:, :132].any()


def test_a_file_without_depth_has_none(tmp_path: Path) -> None:
    made = replace(recipe(3), places=recipe(3).places[..., :2], dimensions="XYC")
    points = read_pose(stored(tmp_path, bytes(made))).track.points
    assert np.allclose(points, mapped_by_hand(made), rtol=1e-6)
    assert not points[:, 2:132:4].any() and points[:, 0:132:4].all()


def test_what_is_no_number_was_not_found(tmp_path: Path) -> None:
    made = recipe(3)
    made.places[0, 0, 0, 1], made.places[1, 0, 36, 2], made.confidence[2, 0, 1] = np.nan, np.inf, np.nan
    points = read_pose(stored(tmp_path, bytes(made))).track.points
    assert np.isfinite(points).all()
    assert not points[0, :4].any() and not points[1, 132:195].any() and not points[2, 4:8].any()


@pytest.mark.parametrize("size", [(640, 480), (1, 1), (0, 0)])
def test_fractions_of_the_picture_are_kept_as_they_are(tmp_path: Path, size: tuple[int, int]) -> None:
    made = replace(recipe(3), places=recipe(3).places / 400, size=size)
    points = read_pose(stored(tmp_path, bytes(made))).track.points
    assert np.allclose(points, mapped_by_hand(replace(made, size=(1, 1))), rtol=1e-6)


def test_coordinates_that_cannot_be_placed_in_a_picture_are_refused(tmp_path: Path) -> None:
    made = recipe(3)
    with pytest.raises(FormatError, match="does not say how large its picture is"):
        read_pose(stored(tmp_path, bytes(replace(made, size=(0, 0)))))
    with pytest.raises(FormatError, match="measured from the body"):
        read_pose(stored(tmp_path, bytes(replace(made, places=made.places / 100 - 2))))


def test_of_several_people_the_largest_is_read_in_all_frames(tmp_path: Path) -> None:
    made = recipe(5, people=3, seed=4)
    made.places[:, 0] *= 0.5
    made.places[:, 2] *= 0.7
    made.confidence[1, 1] = 0  # the largest is not seen for a moment
    read = read_pose(stored(tmp_path, bytes(made)))
    assert np.allclose(read.track.points, mapped_by_hand(made, person=1), rtol=1e-6)
    assert not read.track.points[1].any()


@pytest.mark.parametrize("people", [0, 1])
def test_a_file_without_frames_or_people_is_empty(tmp_path: Path, people: int) -> None:
    made = replace(recipe(0), places=np.zeros((0, people, 77, 3), np.float32), confidence=np.zeros((0, people, 77)))
    assert read_pose(stored(tmp_path, bytes(made))).track.points.shape == (0, 258)


@pytest.mark.parametrize("fps", [8.0, 12.5, 24.0, 29.97, 30.0, 50.0, 60.0])
def test_frames_are_picked_by_time_and_nothing_is_invented(tmp_path: Path, fps: float) -> None:
    made = replace(recipe(61), fps=fps)
    made.confidence[20:30] = 0
    track = read_pose(stored(tmp_path, bytes(made))).track
    source = mapped_by_hand(made)
    step_ms = 1000 / fps
    ticks = 40.0 * np.arange(len(track.axis))
    assert abs(len(ticks) * 40 - 61 * step_ms) <= 40 + step_ms
    shown = np.rint(track.axis.times_ms / step_ms).astype(int)
    assert np.allclose(track.axis.times_ms, shown * step_ms)
    assert np.allclose(track.points, source[shown], rtol=1e-6)  # each is a frame of the file: missing stays missing
    early, late = track.axis.times_ms - ticks, ticks - track.axis.times_ms
    assert early.max() <= 20 and late.max() <= max(step_ms / 2, step_ms - 20) + 1e-6


def test_a_file_has_as_many_frames_as_its_video(tmp_path: Path) -> None:
    video = tmp_path / "clip.mp4"
    with VideoWriter(video, width=32, height=32) as writer:
        for number in range(47):
            writer.write(np.full((32, 32, 3), number * 5, np.uint8), number * 40)
    with VideoReader(video, isolated=False) as reader:
        shown = sum(1 for _ in reader)
    path = stored(tmp_path, bytes(recipe(47)))
    assert len(read_pose(path).track.axis) == shown == 47
    assert landmarks_beside(video) == path


def test_landmarks_beside_a_video_have_its_name(tmp_path: Path) -> None:
    assert landmarks_beside(tmp_path / "a.mp4") is None
    stored(tmp_path, b"", "a.pose")
    assert landmarks_beside(tmp_path / "a.mp4") == tmp_path / "a.pose"
    assert landmarks_beside(tmp_path / "a.pose") is None


def test_other_layouts_are_refused_in_one_line(tmp_path: Path) -> None:
    parts = (("pose_keypoints_2d", ("Nose", "Neck")), ("hand_left_keypoints_2d", ("BASE",)))
    whole = recipe(2)
    made = replace(whole, places=whole.places[:, :, :3], confidence=whole.confidence[:, :, :3], parts=parts)
    words = r"holds landmarks of another layout \(pose_keypoints_2d, hand_left_keypoints_2d\): give landmarks of Media"
    with pytest.raises(FormatError, match=words):
        read_pose(stored(tmp_path, bytes(made)))
    with pytest.raises(FormatError, match="unsupported point format; expected XYZC"):
        read_pose(stored(tmp_path, bytes(replace(recipe(2), dimensions="ZXYC"))))


def test_damage_is_told_in_the_words_of_the_user(tmp_path: Path) -> None:
    whole = bytes(recipe(4))
    for content, words in (
        (b"", "its header does not end"),
        (whole[:60], "its header does not end"),
        (whole[:-1], "is damaged or cut short: 4 frames are announced, 4.0 are there"),
        (whole[:-3000], "4 frames are announced, 1.6 are there"),
        (struct.pack("<f", 0.3) + whole[4:], r"is not a .pose file of version 0.1 or 0.2 \(but of 0.3\)"),
        (b"\x89PNG\r\n\x1a\n" + whole, "is not a .pose file, or damaged: it names no version: get .* --overwrite"),
        (struct.pack("<f", float("nan")) + whole[4:], "it names no version"),
        (bytes(replace(recipe(4), fps=0.0)), "it claims 0 frames a second"),
        (bytes(replace(recipe(4), fps=float("nan"))), "it claims nan frames a second"),
        (bytes(replace(recipe(4), parts=(("POSE_LANDMARKS", POSE_POINTS),) * 2)), "a part of the body twice"),
        (bytes(replace(recipe(3), version=0.1))[:-4], "is damaged or cut short"),
    ):
        with pytest.raises(FormatError, match=words):
            read_pose(stored(tmp_path, content))
    with pytest.raises(FormatError, match="no such file"):
        read_pose(tmp_path / "none.pose")
    with pytest.raises(FormatError, match="is not a file"):
        read_pose(tmp_path)


def test_a_claim_of_many_frames_costs_no_memory(tmp_path: Path) -> None:
    whole = bytearray(bytes(recipe(1)))
    at = len(whole) - 77 * 4 * 4 - 6
    assert struct.unpack("<IH", whole[at : at + 6]) == (1, 1)
    whole[at : at + 6] = struct.pack("<IH", 2**32 - 1, 65535)
    with pytest.raises(FormatError, match="cut short"):
        read_pose(stored(tmp_path, bytes(whole)))
    # A sparse file may really be as long as it claims.
    with stored(tmp_path, bytes(whole)).open("r+b") as file:
        file.seek(at)
        file.write(struct.pack("<IH", 2_000_000, 1))
        file.truncate(at + 6 + 2_000_000 * 77 * 16)
    with pytest.raises(FormatError, match="more than six hours"):
        read_pose(tmp_path / "clip.pose")


def check_damaged(folder: Path, content: bytes) -> None:
    path = stored(folder, content)
    try:
        read = read_pose(path)
    except FormatError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)
    else:
        assert np.isfinite(read.track.points).all()


def damage(rng: np.random.Generator, whole: bytes) -> bytes:
    content = bytearray(whole)
    for _ in range(int(rng.integers(1, 6))):
        # Most of the trouble is in the header and in the counts behind it.
        place = int(rng.integers(0, len(content) if rng.random() < 0.3 else min(len(content), 1200)))
        content[place] = int(rng.integers(256))
    if rng.random() < 0.3:
        del content[int(rng.integers(len(content))) :]
    return bytes(content)


@pytest.mark.parametrize("version", [0.1, 0.2])
def test_damaged_files_are_refused_or_read_and_nothing_else(tmp_path: Path, version: float) -> None:
    rng = np.random.default_rng(int(version * 10))
    whole = bytes(replace(recipe(3), version=version))
    for length in range(0, len(whole), 97):
        check_damaged(tmp_path, whole[:length])
    for _ in range(150):
        check_damaged(tmp_path, damage(rng, whole))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thousands_of_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    sources = [bytes(replace(recipe(3, people=p), version=v)) for v in (0.1, 0.2) for p in (1, 3)]
    sources += [path.read_bytes() for path in sorted(REAL.glob("*.pose"))] if REAL.is_dir() else []
    for number in range(5_000):
        check_damaged(tmp_path, damage(rng, sources[number % len(sources)]))


def test_pose_format_reads_what_we_write(tmp_path: Path) -> None:
    pose_format = pytest.importorskip("pose_format", reason="needs pose-format (the extra dev)")
    written = some_landmarks(7, 3)
    write_pose(written, tmp_path / "clip.pose")
    theirs = pose_format.Pose.read((tmp_path / "clip.pose").read_bytes())
    assert [(c.name, tuple(c.points)) for c in theirs.header.components] == [
        (name, points) for name, points in HOLISTIC.items() if name != "FACE_LANDMARKS"
    ]
    assert (theirs.header.dimensions.width, theirs.header.dimensions.height) == (640, 480)
    assert theirs.body.fps == 25 and theirs.body.data.shape == (7, 1, 75, 3)
    pose = written.track.points[:, :132].reshape(7, 33, 4)
    assert np.allclose(theirs.body.data.data[:, 0, :33, 0], pose[..., 0] * 640)
    assert np.allclose(theirs.body.data.data[:, 0, :33, 1], pose[..., 1] * 480)
    assert np.array_equal(theirs.body.confidence[:, 0, :33], pose[..., 3])
    right = written.track.points[:, 195:].reshape(7, 21, 3)
    assert np.array_equal(theirs.body.confidence[:, 0, -1] > 0, right.any(axis=(1, 2)))
    assert np.allclose(theirs.body.data.data[:, 0, 54:, 2], right[..., 2])


def test_we_read_what_pose_format_writes(tmp_path: Path) -> None:
    pose_format = pytest.importorskip("pose_format", reason="needs pose-format (the extra dev)")
    made = recipe(6)
    made.confidence[2:4, 0, 35:] = 0
    theirs = pose_format.Pose.read(bytes(replace(made, version=0.1)))
    buffer = io.BytesIO()
    theirs.write(buffer)
    read = read_pose(stored(tmp_path, buffer.getvalue()))
    assert np.allclose(read.track.points, mapped_by_hand(made), rtol=1e-6)


@pytest.mark.skipif(not REAL.is_dir(), reason="needs shared/data/pose_files")
def test_real_files_are_read_as_pose_format_reads_them() -> None:
    pose_format = pytest.importorskip("pose_format", reason="needs pose-format (the extra dev)")
    for path in sorted(REAL.glob("*.pose")):
        theirs, ours = pose_format.Pose.read(path.read_bytes()), read_pose(path)
        size = theirs.header.dimensions.width, theirs.header.dimensions.height
        parts = tuple((c.name, tuple(c.points)) for c in theirs.header.components)
        made = Recipe(theirs.body.data.data, theirs.body.confidence, parts, size=size)
        shown = np.rint(ours.track.axis.times_ms * theirs.body.fps / 1000).astype(int)
        assert np.allclose(ours.track.points, mapped_by_hand(made)[shown], rtol=1e-5), path
        assert set(shown.tolist()) == set(range(len(theirs.body.data)))
        assert 0 < np.median(ours.track.points[:, 44]) < 1  # the left shoulder is in the picture
