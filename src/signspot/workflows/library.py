"""The small steps that library users take one at a time."""

from __future__ import annotations

import warnings
from pathlib import Path

from signspot.domain.corpus import Episode
from signspot.domain.dictionary import Dictionary
from signspot.domain.tracks import Embedder, EmbeddingTrack
from signspot.features.extract import ExtractOptions, embed_video
from signspot.features.stages import sees_landmarks
from signspot.formats.manifests import read_dictionary
from signspot.workflows.tracks import track_of


def embed(video: Path | str, model: Embedder, *, stride: int = 1, isolated: bool = True) -> EmbeddingTrack:
    """The embedding of every window of a video, with the media time of every frame."""
    path = Path(video)
    episode = Episode(video_id=path.stem, video=path)
    options = ExtractOptions(stride=stride, isolated=isolated)
    if sees_landmarks(model):
        read = track_of(episode, model, options=options)
        track, said = read.track, (*read.remarks.warnings, read.remarks.partial)
    else:
        extraction = embed_video(episode, model, options=options)
        track, said = extraction.track, (*extraction.report.warnings, extraction.report.partial)
    for message in filter(None, said):
        warnings.warn(f"{path}: {message}", stacklevel=2)
    return track


def open_dictionary(path: Path | str) -> Dictionary:
    """A dictionary from a folder of clips, a CSV or a manifest; warns about what had to be left out."""
    source = read_dictionary(Path(path))
    for problem in source.problems:
        warnings.warn(f"left out: {problem.where}: {problem.what}", stacklevel=2)
    return source.dictionary
