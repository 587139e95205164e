"""All clips of a dictionary as the parts of their signs: where body and hands are, from landmarks that are at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.tracks import FloatArray
from signspot.errors import DictionaryError, FormatError, VideoError
from signspot.features.store import FeatureStore
from signspot.media.landmark_layout import in_picture_heights
from signspot.media.landmarks import LandmarkOptions
from signspot.media.trim import trim_by_landmarks
from signspot.spotting.false_friends import Shelf
from signspot.spotting.form_parts import form_row
from signspot.workflows.entry_shelf import FilledShelf
from signspot.workflows.entry_vectors import LEFT_OUT
from signspot.workflows.landmarks import landmark_file_of, landmarks_of
from signspot.workflows.tracks import Progress, store_at


def form_shelf(
    dictionary: Dictionary, *, store: Path | None = None, isolated: bool = True, progress: Progress | None = None
) -> FilledShelf:
    """The parts of all signs of a dictionary; `store` keeps the landmarks that had to be found in videos."""
    usable: list[tuple[Entry, FloatArray]] = []
    warnings: list[str] = []
    must_look = any(entry.video is not None and landmark_file_of(entry.video) is None for entry in dictionary)
    with store_at(store if must_look else None) as kept:
        for number, entry in enumerate(dictionary, start=1):
            try:
                usable.append((entry, _parts(entry, kept, isolated=isolated)))
            except (VideoError, FormatError) as error:
                warnings.append(f"{LEFT_OUT}{error}")
            if progress is not None:
                progress(f"reading {dictionary.name}", number, len(dictionary))
    if not usable:
        raise DictionaryError(dictionary.name, "none of its clips can be read", warnings[0] if warnings else "")
    shelf = Shelf(tuple(entry for entry, _ in usable), np.stack([row for _, row in usable]))
    return FilledShelf(shelf, tuple(warnings))


def _parts(entry: Entry, store: FeatureStore | None, *, isolated: bool) -> FloatArray:
    """The parts (1565,) of one clip."""
    if entry.video is None:
        raise VideoError(entry.entry_id, "has no clip, and its parts are seen in one", "add it or remove it")
    signer = landmarks_of(entry.video, store=store, options=LandmarkOptions(box=entry.box, isolated=isolated)).signer
    moving = entry.kept or trim_by_landmarks(signer.track, signer.aspect).kept
    try:
        return form_row(in_picture_heights(signer.track.points, signer.aspect), moving)
    except ValueError as error:
        fix = "show the upper body and the hands, in good light"
        raise VideoError(entry.video, str(error), fix) from error
