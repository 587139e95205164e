"""Which clips of a dictionary seem to show the same person, by their faces: a help for whoever fills in the signers.

A vector of a face identifies a person as a fingerprint does. So nothing here runs unless it is asked for, the vectors
live in memory only and are never written, and a group has a number, never a name: who it is, a person decides. Faces
are found with dlib's detector and compared with its network, both inside the packages of the extra `faces`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import Pixels
from signspot.errors import MissingExtra
from signspot.media.reader import VideoReader
from signspot.media.thumbnails import spread

FACE_DIM = 128
_LOOKS = 3  # frames of a clip
_WEIGHTS = "face_recognition_models"
_LANDMARKS, _NETWORK = "shape_predictor_5_face_landmarks.dat", "dlib_face_recognition_resnet_model_v1.dat"
_SAME_PERSON = 0.5  # distance; the network was trained for 0.6, and a wrong union is worse than two groups
_AT_ONCE = 4000  # faces compared with each other in one table
_TALLEST = 720  # pixels: larger pictures cost time and show no more

Vector = npt.NDArray[np.float64]


class FaceReader:
    """Finds the largest face of a picture and describes it by a vector."""

    def __init__(self) -> None:
        dlib, weights = _module("dlib"), _weights()
        self._find = dlib.get_frontal_face_detector()
        self._landmarks = dlib.shape_predictor(str(weights / _LANDMARKS))
        self._network = dlib.face_recognition_model_v1(str(weights / _NETWORK))

    def vector(self, pixels: Pixels) -> Vector | None:
        """The vector (128,) of the largest face in a picture (H, W, 3) uint8 RGB; None if there is no face."""
        step = -(-pixels.shape[0] // _TALLEST)
        picture = np.ascontiguousarray(pixels[::step, ::step])
        faces = self._find(picture, 1)
        if not faces:
            return None
        largest = max(faces, key=lambda face: face.area())
        found = self._network.compute_face_descriptor(picture, self._landmarks(picture, largest))
        return np.array(found, dtype=np.float64)

    def clip_vector(self, path: Path, kept: FrameSpan, *, isolated: bool = True) -> Vector | None:
        """The middle of the vectors (128,) of some frames of a clip; None if no face is found in them."""
        wanted = {kept.start + frame for frame in spread(len(kept), _LOOKS)}
        with VideoReader(path, isolated=isolated) as reader:
            looks = [
                self.vector(frame.pixels) for number, frame in enumerate(islice(reader, kept.stop)) if number in wanted
            ]
        return middle(look for look in looks if look is not None)


def middle(vectors: Iterable[Vector]) -> Vector | None:
    """The median of each number, which one wrong face does not move far; None of none."""
    found = list(vectors)
    return np.median(found, axis=0) if found else None


def face_groups(vectors: Sequence[Vector | None]) -> list[int | None]:
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


def _people(vectors: Vector) -> npt.NDArray[np.int64]:
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
    labels: npt.NDArray[np.int64] = clustering.fit_predict(vectors).astype(np.int64)
    return labels


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
