"""Telling copies of one recording from other recordings of the same person: a signature of what changes in a clip.

Clips of one signer look alike as pictures, so what stays the same all through the clip is subtracted first. One half of
a signature is of the whole clip (kept by scaled or recompressed copies), the other of the part that moves (kept by
copies that were cut a few frames earlier or later). Mirrored, cropped or slowed copies keep neither.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray, Floats, Pixels
from signspot.errors import MissingExtra
from signspot.media.frames import spread
from signspot.media.reader import VideoReader

SIGNATURE_SHAPE = (2, 2048)  # the kept part and the whole clip: 8 moments of 16 x 16 places each
# The cosine of two halves. Set between copies (0.946 and above) and other signs (0.857 and below) of 24 rendered clips
# of one signer; not yet checked on a real dictionary.
_NEARLY_THE_SAME = 0.92
_MOMENTS, _SIDE = 8, 16
_LEAST_CHANGE = 1.0  # grey levels; less is noise
_BLOCK = 1024  # signatures compared at once


@dataclass(frozen=True, slots=True)
class _NearPair:
    """Two clips that look like copies of one recording, by their place in the list; `later` comes after `earlier`."""

    later: int
    earlier: int
    cosine: float


def frame_signature(frames: Sequence[Pixels], kept: FrameSpan) -> FloatArray:
    """The signature (2, 2048) float32 of frames (H, W, 3): rows of length 1, or zero if nothing changes."""
    small = (Image.fromarray(p).convert("L").resize((_SIDE, _SIDE), Image.Resampling.BOX) for p in frames)
    greys = np.stack([np.asarray(image, dtype=np.float32) for image in small])
    return np.stack([_half(greys[kept.start : kept.stop]), _half(greys)])


def near_pairs(signatures: FloatArray, least: float = _NEARLY_THE_SAME) -> list[_NearPair]:
    """For every clip of (n, 2, 2048) the earlier one most like it, where a cosine is at least `least`."""
    pairs = []
    for start in range(0, len(signatures), _BLOCK):
        block = signatures[start : start + _BLOCK]
        earlier = signatures[: start + len(block)]
        cosine = np.maximum(*(block[:, half] @ earlier[:, half].T for half in range(2)))
        # Only earlier rows count: every pair is named once, and the list stays as short as the dictionary.
        cosine[np.arange(cosine.shape[1]) >= start + np.arange(len(block))[:, None]] = -1
        nearest = cosine.argmax(axis=1)
        highest = cosine[np.arange(len(block)), nearest]
        found = np.flatnonzero(highest >= least)
        pairs += [_NearPair(start + int(row), int(nearest[row]), min(1.0, float(highest[row]))) for row in found]
    return pairs


def _half(greys: FloatArray) -> FloatArray:
    # Each moment is a mean over an eighth of the clip, so a shift of a few frames changes little.
    edges = np.linspace(0, len(greys), _MOMENTS + 1)
    moments = np.stack([_mean(greys, start, stop) for start, stop in pairwise(edges.tolist())])
    changes = (moments - moments.mean(axis=0)).ravel()
    length = float(np.linalg.norm(changes))
    if length < _LEAST_CHANGE * np.sqrt(len(changes)):
        return np.zeros(SIGNATURE_SHAPE[1], np.float32)
    return np.asarray((changes / length).astype(np.float32))


def _mean(greys: FloatArray, start: float, stop: float) -> FloatArray:
    """The mean over the frames that [start, stop) touches, each by the share it touches."""
    frames = np.arange(len(greys))
    shares = np.clip(np.minimum(frames + 1, stop) - np.maximum(frames, start), 0, 1)
    return np.asarray(np.tensordot(shares / shares.sum(), greys, axes=1).astype(np.float32))


# Which clips of a dictionary seem to show the same person, by their faces: a help for whoever fills in the signers. A
# vector of a face identifies a person as a fingerprint does. So nothing here runs unless it is asked for, the vectors
# live in memory only and are never written, and a group has a number, never a name: who it is, a person decides. Faces
# are found with dlib's detector and compared with its network, both inside the packages of the extra `faces`.

_LOOKS = 3  # frames of a clip
_WEIGHTS = "face_recognition_models"
_LANDMARKS, _NETWORK = "shape_predictor_5_face_landmarks.dat", "dlib_face_recognition_resnet_model_v1.dat"
_SAME_PERSON = 0.5  # distance; the network was trained for 0.6, and a wrong union is worse than two groups
_AT_ONCE = 4000  # faces compared with each other in one table
_TALLEST = 720  # pixels: larger pictures cost time and show no more


class FaceReader:
    """Finds the largest face of a picture and describes it by a vector."""

    def __init__(self) -> None:
        dlib, weights = _module("dlib"), _weights()
        self._find = dlib.get_frontal_face_detector()
        self._landmarks = dlib.shape_predictor(str(weights / _LANDMARKS))
        self._network = dlib.face_recognition_model_v1(str(weights / _NETWORK))

    def vector(self, pixels: Pixels) -> Floats | None:
        """The vector (128,) of the largest face in a picture (H, W, 3) uint8 RGB; None if there is no face."""
        step = -(-pixels.shape[0] // _TALLEST)
        picture = np.ascontiguousarray(pixels[::step, ::step])
        faces = self._find(picture, 1)
        if not faces:
            return None
        largest = max(faces, key=lambda face: face.area())
        found = self._network.compute_face_descriptor(picture, self._landmarks(picture, largest))
        return np.array(found, dtype=np.float64)

    def clip_vector(self, path: Path, kept: FrameSpan, *, isolated: bool = True) -> Floats | None:
        """The middle of the vectors (128,) of some frames of a clip; None if no face is found in them."""
        wanted = {kept.start + frame for frame in spread(len(kept), _LOOKS)}
        with VideoReader(path, isolated=isolated) as reader:
            looks = [
                self.vector(frame.pixels) for number, frame in enumerate(islice(reader, kept.stop)) if number in wanted
            ]
        return _middle([look for look in looks if look is not None])


def _middle(vectors: Sequence[Floats]) -> Floats | None:
    return np.median(vectors, axis=0) if vectors else None


def face_groups(vectors: Sequence[Floats | None]) -> list[int | None]:
    """A number from 1 for every clip, the same for faces that look like one person, larger groups first.

    None for a clip without a face, or with one that no other clip shows.
    """
    seen = [place for place, vector in enumerate(vectors) if vector is not None]
    groups: list[int | None] = [None] * len(vectors)
    if len(seen) < 2:
        return groups
    labels = _people(np.stack([vector for vector in vectors if vector is not None])).tolist()
    sizes = Counter(labels)
    numbers = {label: number for number, (label, size) in enumerate(sizes.most_common(), start=1) if size > 1}
    for place, label in zip(seen, labels, strict=True):
        groups[place] = numbers.get(label)
    return groups


def _people(vectors: Floats) -> npt.NDArray[np.int64]:
    """A label (n,) for every vector (n, 128): mean distances within a label are below that of one person."""
    if len(vectors) == 1:
        return np.zeros(1, np.int64)
    if len(vectors) > _AT_ONCE:  # the table of all distances would not fit: first parts, then their centres
        parts = [_people(vectors[start : start + _AT_ONCE]) for start in range(0, len(vectors), _AT_ONCE)]
        firsts = np.cumsum([0, *(int(part.max()) + 1 for part in parts[:-1])])
        fine = np.concatenate([part + first for part, first in zip(parts, firsts, strict=True)])
        centres = np.stack([vectors[fine == label].mean(axis=0) for label in range(int(fine.max()) + 1)])
        return _people(centres)[fine] if len(centres) < len(vectors) else fine
    # Average linkage: a chain of look-alikes does not join two people, as it does in density clustering.
    clustering = _module("sklearn.cluster").AgglomerativeClustering(
        n_clusters=None, distance_threshold=_SAME_PERSON, linkage="average"
    )
    return np.asarray(clustering.fit_predict(vectors).astype(np.int64))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra.named("grouping signers by face", "faces") from error


def _weights() -> Path:
    # The package itself cannot be imported: it needs a module that newer Pythons no longer bring.
    found = importlib.util.find_spec(_WEIGHTS)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra.named("grouping signers by face", "faces")
    return Path(found.submodule_search_locations[0]) / "models"
