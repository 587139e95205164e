"""The vectors of a video: from the store if they are there, otherwise computed, and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from signspot.domain.corpus import Episode
from signspot.domain.tracks import Embedder, EmbeddingTrack
from signspot.errors import InputError, SignspotError
from signspot.features.extract import ExtractOptions, embed_video
from signspot.features.shards import Remarks, as_stored
from signspot.features.store import FeatureStore, open_store
from signspot.formats.manifests import read_corpus
from signspot.media.reader import media_sha256

Progress = Callable[[str, float, float | None], None]  # what is going on, how much is done, how much there is if known


@dataclass(frozen=True, slots=True)
class VideoTrack:
    """The vectors of a video, what was noticed while reading it, and whether they were computed before."""

    track: EmbeddingTrack
    media_sha256: str
    remarks: Remarks
    was_stored: bool = False


def track_of(
    episode: Episode,
    model: Embedder,
    *,
    store: FeatureStore | None = None,
    options: ExtractOptions = ExtractOptions(),
    progress: Progress | None = None,
) -> VideoTrack:
    """Look the video up in the store by its content; compute and keep what is not there."""
    sha256 = media_sha256(episode.video)
    known = store.find(sha256, model.fingerprint, options.stride) if store is not None else None
    stored = store.get(sha256, model.fingerprint, options.stride) if store is not None and known is not None else None
    if stored is not None and known is not None:
        track = dataclasses.replace(stored, video_id=episode.video_id)
        return VideoTrack(track, sha256, known.remarks, was_stored=True)

    def report(done: float, expected: float | None) -> None:
        if progress is not None:
            progress(f"reading {episode.video.name}", done, expected)

    made = embed_video(episode, model, options=options, progress=report)
    remarks = Remarks(made.report.partial, made.report.warnings)
    if store is not None:
        store.put(sha256, made.track, remarks)
    return VideoTrack(as_stored(made.track), sha256, remarks)


@dataclass(frozen=True, slots=True)
class Embedded:
    """What became of one video of `embed_files`."""

    video: Path
    made: VideoTrack | None = None
    failure: SignspotError | None = None


def embed_files(
    sources: tuple[Path, ...],
    model: Embedder,
    store: Path,
    options: ExtractOptions = ExtractOptions(),
    progress: Progress | None = None,
) -> Iterator[Embedded]:
    """Fill the store with the vectors of videos and folders of videos; those that are there cost nothing."""
    with open_store(store) as opened:
        for episode in (episode for source in sources for episode in _episodes(source)):
            try:
                made = track_of(episode, model, store=opened, options=options, progress=progress)
                yield Embedded(episode.video, made)
            except InputError as error:  # an unreadable video is its own trouble; a full disk is everybody's
                yield Embedded(episode.video, failure=error)


def store_at(folder: Path | None) -> FeatureStore | nullcontext[None]:
    """The store in `folder`, or none."""
    return nullcontext() if folder is None else open_store(folder)


def _episodes(source: Path) -> tuple[Episode, ...]:
    return read_corpus(source).episodes if source.is_dir() else (Episode(video_id=source.stem, video=source),)
