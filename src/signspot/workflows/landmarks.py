"""The landmarks of videos: from the file beside them, from the store, or found by the detector, and kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from signspot.atomic import output_folder, refuse_existing
from signspot.domain.boxes import SignerBox
from signspot.domain.spans import FRAME_MS
from signspot.domain.tracks import EmbeddingTrack, LandmarkTrack, WindowGrid
from signspot.errors import InputError, MissingExtra, SignspotError, trouble_of
from signspot.features.shards import Remarks, as_stored
from signspot.features.stages import filed_under
from signspot.features.store import FeatureStore
from signspot.formats.corpus_source import read_sources
from signspot.formats.places import has_twin
from signspot.formats.pose_files import SUFFIX, landmarks_beside, read_pose, write_pose
from signspot.media.landmark_layout import POSE_NUMBERS, SignerLandmarks
from signspot.media.landmark_process import detector_name
from signspot.media.landmarks import LandmarkOptions, find_landmarks
from signspot.media.reader import VideoReader, claimed_ms, media_sha256
from signspot.workflows.tracks import Progress

_OTHER_LENGTH = (1000.0, 0.05)  # ms and share of the video by which its landmarks may be shorter or longer


@dataclass(frozen=True, slots=True, eq=False)
class VideoLandmarks:
    """The landmarks of a video and what was noticed while reading it."""

    signer: SignerLandmarks
    remarks: Remarks = Remarks()

    @property
    def pose_share(self) -> float:
        """The share of frames in which a body was found."""
        return _share(self.signer.track, 0, POSE_NUMBERS)

    @property
    def hand_share(self) -> float:
        """The share of frames in which at least one hand was found."""
        return _share(self.signer.track, POSE_NUMBERS, None)


def landmarks_of(
    video: Path,
    *,
    store: FeatureStore | None = None,
    options: LandmarkOptions = LandmarkOptions(),
    progress: Progress | None = None,
) -> VideoLandmarks:
    """The landmarks of a video, or of a .pose file: read if there is such a file beside it, else found, and kept.

    What the detector finds is rounded as in the store also the first time, and without a store, so that answers never
    differ. A file that somebody put beside a video is believed, whatever the box.
    """
    beside = landmark_file_of(video)
    if beside is not None:
        return VideoLandmarks(read_pose(beside, video.stem))
    sha256, filed = media_sha256(video), filed_under(landmarks_name(video), options.box)
    known = store.find(sha256, filed) if store is not None else None
    track = store.get(sha256, filed) if store is not None else None
    if track is not None and known is not None:
        return VideoLandmarks(_signer(track, video, options), known.remarks)
    found = _found(video, options, progress)
    track = _kept(found.signer.track, filed)
    if store is not None:
        store.put(sha256, track, found.remarks)
    points = as_stored(track).vectors.astype("float32")
    return replace(found, signer=replace(found.signer, track=replace(found.signer.track, points=points)))


def landmark_file_of(video: Path) -> Path | None:
    """The .pose file that says where body and hands are: the video itself if it is one, or the one beside it."""
    return video if video.suffix.lower() == SUFFIX else landmarks_beside(video)


def strange_length(video: Path, landmarks: SignerLandmarks, *, isolated: bool) -> tuple[str, ...]:
    """Why the file of landmarks beside a video may be that of another recording: it lasts longer, or less long."""
    file = landmark_file_of(video)
    if file is None or file == video:
        return ()
    video_ms = claimed_ms(video, isolated=isolated)
    landmarks_ms, (least_ms, share) = len(landmarks.track.axis) * FRAME_MS, _OTHER_LENGTH
    if video_ms is None or abs(landmarks_ms - video_ms) <= max(least_ms, share * video_ms):
        return ()
    lengths = f"lasts {landmarks_ms / 1000:.1f} s, the video {video_ms / 1000:.1f} s"
    return (f"{file.name}, whose landmarks are taken, {lengths}: if it is of another recording, remove or replace it",)


def landmarks_name(video: Path) -> str:
    """What the landmarks of a video are filed under: the content of its .pose file, or else the detector."""
    beside = landmark_file_of(video)
    if beside is not None:
        return f"pose with wrists {media_sha256(beside)}"  # as read: `read_pose` completes arms
    try:
        return detector_name()
    except MissingExtra as error:
        ways = f"{error.fix}, or put a .pose file beside each video, or choose another --model"
        raise MissingExtra(video, error.what.replace("needs", "its landmarks need"), ways) from error


def has_detector() -> bool:
    """Whether landmarks can be found in videos on this computer."""
    try:
        return bool(detector_name())
    except MissingExtra:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkRequest:
    """Of which videos to write the landmarks, and where."""

    sources: tuple[Path, ...]  # videos, and folders of videos
    out: Path | None = None  # a folder; None: each beside its video
    box: SignerBox | None = None  # None: what the source says, or the whole picture
    isolated: bool = True
    overwrite: bool = False  # find again what is there already


@dataclass(frozen=True, slots=True, eq=False)
class Landmarked:
    """What became of one video of `landmark_files`."""

    video: Path
    file: Path
    made: VideoLandmarks | None = None  # None: it was there already, or it failed
    failure: SignspotError | None = None
    remarks: tuple[str, ...] = ()  # what should be known about all that was given; with the first video


def landmark_files(request: LandmarkRequest, progress: Progress | None = None) -> Iterator[Landmarked]:
    """Write a .pose file for every video; those that are there already cost nothing."""
    episodes, remarks = read_sources(request.sources)
    files = [_file(episode.video, request.out) for episode in episodes]
    twice = [file for file, count in Counter(files).items() if count > 1]
    if twice:
        raise InputError(twice[0], "would hold the landmarks of two videos", "give them one after the other")
    detector_name()  # says what is missing before anything is made
    if request.out is not None:
        output_folder(request.out)
    for number, (episode, file) in enumerate(zip(episodes, files, strict=True)):
        said = () if number else remarks
        if file.exists() and not request.overwrite:
            yield Landmarked(episode.video, file, remarks=said)
            continue
        options = LandmarkOptions(box=request.box or episode.box, isolated=request.isolated)
        try:
            refuse_existing(file, overwrite=request.overwrite)  # before minutes of work
            made = _found(episode.video, options, progress)
            write_pose(made.signer, file, overwrite=request.overwrite)
            yield Landmarked(episode.video, file, made, remarks=said)
        except (SignspotError, ValueError) as error:
            yield Landmarked(episode.video, file, failure=trouble_of(episode.video, error), remarks=said)


def _found(video: Path, options: LandmarkOptions, progress: Progress | None) -> VideoLandmarks:
    found = find_landmarks(video, options, _in_frames(video, progress))
    return VideoLandmarks(found.signer, Remarks(found.report.partial, found.report.warnings))


def _kept(track: LandmarkTrack, filed: str) -> EmbeddingTrack:
    """Landmarks as the store keeps them: vectors of windows of one frame."""
    grid = WindowGrid(len(track.axis), length=1)
    return EmbeddingTrack(track.video_id, grid, track.axis, track.points, filed, unit_rows=False)


def _signer(track: EmbeddingTrack, video: Path, options: LandmarkOptions) -> SignerLandmarks:
    with VideoReader(video, isolated=options.isolated) as reader:
        info = reader.info
    points = track.vectors.astype("float32", copy=False)
    return SignerLandmarks(LandmarkTrack(video.stem, track.axis, points), info.width, info.height)


def _in_frames(video: Path, progress: Progress | None) -> Callable[[float, float | None], None] | None:
    """Report media time as frames: their number in a second is what tells a fast machine from a slow one."""
    if progress is None:
        return None
    step = f"finding landmarks in {video.name}"

    def report(done_ms: float, expected_ms: float | None) -> None:
        progress(step, done_ms / FRAME_MS, None if expected_ms is None else expected_ms / FRAME_MS)

    return report


def _file(video: Path, out: Path | None) -> Path:
    name = f"{video.name if has_twin(video) else video.stem}{SUFFIX}"
    return video.with_name(name) if out is None else out / name


def _share(track: LandmarkTrack, first: int, last: int | None) -> float:
    return float(track.points[:, first:last].any(axis=1).mean()) if len(track.points) else 0.0
