"""The small steps that library users take one at a time."""

from __future__ import annotations

import warnings
from pathlib import Path

from signspot.domain.corpus import Episode
from signspot.domain.dictionary import Dictionary
from signspot.domain.tracks import Embedder, EmbeddingTrack
from signspot.features.extract import ExtractOptions, embed_video
from signspot.formats.manifests import read_dictionary


def embed(video: Path | str, model: Embedder, *, stride: int = 1, isolated: bool = True) -> EmbeddingTrack:
    """The embedding of every window of a video, with the media time of every frame."""
    path = Path(video)
    episode = Episode(video_id=path.stem, video=path)
    extraction = embed_video(episode, model, options=ExtractOptions(stride=stride, isolated=isolated))
    for message in (*extraction.report.warnings, extraction.report.partial):
        if message:
            warnings.warn(f"{path}: {message}", stacklevel=2)
    return extraction.track


def open_dictionary(path: Path | str) -> Dictionary:
    """A dictionary from a folder of clips, a CSV or a manifest; warns about what had to be left out."""
    source = read_dictionary(Path(path))
    for problem in source.problems:
        warnings.warn(f"left out: {problem.where}: {problem.what}", stacklevel=2)
    return source.dictionary
