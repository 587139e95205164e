"""Single signs as a model of landmarks sees them: where body and hands are, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.boxes import SignerBox
from signspot.domain.dictionary import Entry
from signspot.domain.spans import FRAME_RATE, FrameSpan
from signspot.domain.tracks import FloatArray, LandmarkTrack
from signspot.domain.words import Word
from signspot.errors import FormatError, VideoError
from signspot.features.store import FeatureStore
from signspot.learning.landmark_changes import LandmarkChange
from signspot.media.landmark_layout import HAND_NUMBERS, POSE_NUMBERS, SignerLandmarks, in_picture_heights
from signspot.media.landmarks import LandmarkOptions
from signspot.media.skeleton import skeletons
from signspot.media.trim import Trim, trim_by_landmarks
from signspot.models.landmark_embedder import LandmarkEmbedder
from signspot.spotting.multi_rate import window_at
from signspot.spotting.sign_span import has_raised_hand, sign_span
from signspot.workflows.landmarks import VideoLandmarks, landmark_file_of, landmarks_of
from signspot.workflows.sign_vectors import (
    FEWEST_FRAMES,
    LONGEST_SECONDS,
    NO_MOTION,
    RecordedSign,
    damage_of,
    faults_of,
    too_short,
)
from signspot.workflows.tracks import store_at

NOBODY = "nobody is found in the recording: show the upper body, in good light"
NO_HAND = "no hand is raised or moves: record the whole sign, in good light, with the hands in the picture"
HANDS_OUT = "the hands are out of the picture most of the time: sit farther from the camera"
NO_HANDS = "no hand is found in most frames: more light, or a plainer background, may help"
_MIRROR = LandmarkChange(mirror=True, radians=0.0, stretch=1.0, speed=1.0, lost_hands=((0.0, 0.0), (0.0, 0.0)))
_WRISTS = (15, 16)  # of the pose
_MOST = 0.5  # share of frames
_LONG_SECONDS = 4.0  # in 95 of 100 clips of single signs (WLASL) no hand is raised for longer


@dataclass(frozen=True, slots=True)
class LandmarkSigns:
    """Signs as a model of landmarks sees them."""

    model: LandmarkEmbedder
    isolated: bool = True
    store: Path | None = None  # where landmarks of dictionary clips are kept, never those of a recording

    @property
    def name(self) -> str:
        """What people call the model."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would."""
        return f"{self.model.fingerprint} without rest but low signs"

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.model.dim

    @property
    def threshold(self) -> float:
        """The lowest cosine that counts as alike."""
        return self.model.threshold

    def entry_vector(self, entry: Entry) -> FloatArray:
        """The vector (d,) of a dictionary clip; raises VideoError where there is none."""
        vector: FloatArray = self.entry_views(entry)[0]
        return vector

    def entry_views(self, entry: Entry) -> FloatArray:
        """The vectors (2, d) of a dictionary clip, as it is and mirrored: one window over the sign."""
        if entry.video is None:
            raise VideoError(entry.entry_id, "has no clip, and a model of landmarks needs one", "add it or remove it")
        is_found = landmark_file_of(entry.video) is not None  # then there is nothing to keep
        with store_at(None if is_found else self.store) as store:
            signer = self._read(entry.video, entry.box, store).signer
        if 0 < len(signer.track.axis) < FEWEST_FRAMES:
            raise VideoError(entry.video, too_short(len(signer.track.axis)), "give a clip of the whole sign")
        return self._vectors(signer, entry.kept or _signed(signer), entry.video)

    def remarks(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """Nothing: every vector is made of a clip."""
        del words
        return ()

    def recorded(self, path: Path, box: SignerBox | None = None) -> RecordedSign:
        """The vectors of a recording, cut to where a hand is raised, and whether the hands can be seen."""
        read = self._read(path, box)
        signer = read.signer
        if len(signer.track.axis) > LONGEST_SECONDS * FRAME_RATE:
            raise VideoError(path, f"is longer than {LONGEST_SECONDS} s", "record one sign, or cut it out")
        n_frames = len(signer.track.axis)
        if not signer.track.points[:, :POSE_NUMBERS].any():
            whole = Trim(FrameSpan(0, n_frames), n_frames)
            return RecordedSign(np.zeros((0, self.dim), np.float32), whole, faults=(NOBODY,))
        faults, trim = _faults(signer, path), Trim(_signed(signer), n_frames)
        vectors = np.zeros((0, self.dim), np.float32) if faults else self._vectors(signer, trim.kept, path)
        drawn = tuple(skeletons(signer, trim.kept))
        doubts = (*damage_of(path, read.remarks.partial, read.remarks.warnings), *doubts_of(signer.track, trim.kept))
        return RecordedSign(vectors, trim, drawn, faults, doubts)

    def _read(self, video: Path, box: SignerBox | None, store: FeatureStore | None = None) -> VideoLandmarks:
        options = LandmarkOptions(box=box, isolated=self.isolated)
        try:
            return landmarks_of(video, store=store, options=options)
        except FormatError as error:  # of a .pose file, which stands for a video here
            raise VideoError(error.where, error.what, error.fix) from error

    def _vectors(self, signer: SignerLandmarks, kept: FrameSpan, path: Path) -> FloatArray:
        """(2, d) the sign brought to 16 frames, as it is and mirrored."""
        if kept.stop > len(signer.track.axis):
            raise VideoError(path, "its landmarks do not reach to its end", "detect them again")
        points = signer.track.points
        if not points[kept.start : kept.stop].any():
            raise VideoError(path, "nobody was found in it", "show the upper body, in good light")
        heights = [in_picture_heights(view, signer.aspect) for view in (points, _MIRROR.apply(points))]
        return self.model.embed(np.stack([window_at(view, kept.start, len(kept)) for view in heights]))


def _faults(signer: SignerLandmarks, path: Path) -> tuple[str, ...]:
    """Why a recording shows no sign: too short, or nothing but rest. A hand that is held up shows one, even still."""
    faults = faults_of(trim_by_landmarks(signer.track, signer.aspect), path)
    if faults != (NO_MOTION,):
        return faults
    return () if has_raised_hand(in_picture_heights(signer.track.points, signer.aspect)) else (NO_HAND,)


def _signed(signer: SignerLandmarks) -> FrameSpan:
    """The frames of the sign: the model was trained on signs without the hands' way up and down."""
    return sign_span(in_picture_heights(signer.track.points, signer.aspect))


def doubts_of(track: LandmarkTrack, kept: FrameSpan) -> tuple[str, ...]:
    """Why what is recognised may be wrong: it may be no single sign, or its hands cannot be seen."""
    seconds = len(kept) / FRAME_RATE
    long = f"a hand is raised for {seconds:.1f} s: if these are several signs, look for them with `signspot spot`"
    return (*((long,) if seconds > _LONG_SECONDS else ()), *_hidden_hands(track, kept))


def _hidden_hands(track: LandmarkTrack, kept: FrameSpan) -> tuple[str, ...]:
    """Hands that leave the picture, or that the detector does not find."""
    points = track.points[kept.start : kept.stop]
    if not len(points):
        return ()
    wrists = points[:, :POSE_NUMBERS].reshape(len(points), -1, 4)[:, _WRISTS, :2]
    found = np.asarray(wrists.any(axis=2))
    outside = found & np.asarray(((wrists < 0) | (wrists > 1)).any(axis=2))
    # Signs of one hand leave the other hanging below the picture: both must be out.
    if (outside | ~found).all(axis=1).mean() > _MOST:
        return (HANDS_OUT,)
    hands = points[:, POSE_NUMBERS:].reshape(len(points), 2, HAND_NUMBERS)
    return (NO_HANDS,) if (~hands.any(axis=(1, 2))).mean() > _MOST else ()
