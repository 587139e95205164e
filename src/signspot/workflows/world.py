"""A made-up signing world as ordinary files: clips, episodes, landmarks, subtitles, annotations, and the truth."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, Episode, Rights, SignerBox
from signspot.domain.time import FRAME_MS, Progress, TimeAxis, silent
from signspot.domain.tracks import FloatArray, LandmarkTrack, SignerLandmarks
from signspot.errors import InputError
from signspot.files.atomic import names_in, output_folder
from signspot.files.json import read_json, write_json
from signspot.formats.captions import write_subtitles
from signspot.formats.pose import POSE_SUFFIX, landmarks_beside, write_pose
from signspot.interrupts import at_interruption
from signspot.learning.material import WordSplit
from signspot.media.writer import VideoWriter
from signspot.stores.corpus import CorpusSource, SignedSign, TimedAnnotation, write_truth
from signspot.stores.dictionary import write_dictionary_manifest
from signspot.workflows.batch import in_parallel
from signspot.world.lexicon import LANGUAGE, OTHER_LANGUAGE
from signspot.world.measure import Comparison, raw_joint_scores, world_statistics
from signspot.world.people import Performance
from signspot.world.render import SIDE, Broadcast, Scene, render_frames, write_preview
from signspot.world.settings import preset_named
from signspot.world.simulation import EpisodePerformance, World

_RIGHTS = Rights(holder="signspot", licence="Apache-2.0", may_train=True, may_display=True)
_RIGHTS = replace(_RIGHTS, may_export_clips=True, may_share_embeddings=True)
_CARD = "world.json"
# Where the signer is: alone in a studio, or in the corner of a broadcast.
_STUDIO, _BROADCAST = SignerBox(0.1, 0.05, 0.9, 0.85), SignerBox(0.28, 0.165, 1.0, 0.885)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldRequest:
    """Which world, and where to put it."""

    folder: Path
    preset: str = "demo"
    seed: int = 0
    side: int = SIDE  # of the pictures
    workers: int = 0  # processes that draw; 0: one per core
    other_language: bool = False  # whether its dictionary is written too


class WorldFolder:
    """The files of a world."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.dictionary, self.corpus = folder, folder / "dictionary", folder / "corpus"
        self.other_dictionary = folder / f"dictionary-{OTHER_LANGUAGE}"  # of the second sign language, if asked for
        self.split = folder / "split.json"  # the words that are trained and those that are only tested
        self.truth = folder / "truth.parquet"  # every sign of every episode


def make_world(request: WorldRequest, progress: Progress = silent) -> WorldFolder:
    """Draw and write a world; clips and episodes that are there already are kept, so that it can be continued."""
    world = World.of(preset_named(request.preset), request.seed)
    made = WorldFolder(request.folder)
    _claim(request, world)
    entries = [*world.dictionary_entries()]
    entries += world.dictionary_entries(OTHER_LANGUAGE) if request.other_language else ()
    for folder in {made.corpus / "episodes", *(_clip(made, entry).parent for entry in entries)}:
        output_folder(folder)
    episode_ids = (*world.episodes("train"), *world.episodes("test"))
    tasks = [partial(_draw_episode, world, name, _video(made, name), request.side) for name in episode_ids]
    tasks += [partial(_draw_entry, world, entry, _clip(made, entry), request.side) for entry in entries]
    with at_interruption(lambda: f"what is drawn stays in {request.folder}: the same command draws the rest"):
        for done in in_parallel(tasks, request.workers or len(os.sched_getaffinity(0))):
            progress("drawing the world", done, len(tasks))
        _write_tables(world, made, entries, [world.perform_episode(name) for name in episode_ids])
    return made


def _claim(request: WorldRequest, world: World) -> None:
    """Make the folder ours, or refuse one that holds something else, or another world."""
    card: dict[str, object] = {"format": "signspot-world", "preset": world.preset.name}
    card |= {"version": world.preset.version, "seed": request.seed, "side": request.side}
    folder, path = request.folder, request.folder / _CARD
    if path.exists():
        if read_json(path) != card:
            raise InputError(folder, "holds another world", "name another folder, or give the same preset and seed")
        return
    if folder.exists() and (not folder.is_dir() or names_in(folder)):
        raise InputError(folder, "is there already and holds no world", "name a new folder")
    output_folder(folder)
    write_json(card, path)


def _draw_entry(world: World, entry: Entry, path: Path, side: int) -> None:
    if _is_unfinished(path):
        performance = world.perform_entry(entry)
        _film(performance, None, path, side)
        _write_landmarks(world.detected(performance, entry.entry_id), path, side)


def _draw_episode(world: World, name: str, path: Path, side: int) -> None:
    if _is_unfinished(path):
        number = (*world.episodes("train"), *world.episodes("test")).index(name)
        scene = Broadcast(world.seed * 10_007 + number)
        performance = world.perform_episode(name).performance
        _film(performance, scene, path, side)
        _write_landmarks(scene.placement.apply(world.detected(performance, name)), path, side)


def _is_unfinished(video: Path) -> bool:
    return not video.exists() or landmarks_beside(video) is None


def _write_landmarks(points: FloatArray, video: Path, side: int) -> None:
    """Landmarks (n_frames, 258) as a detector would give them, beside the video they belong to."""
    axis = TimeAxis(np.arange(len(points), dtype=np.float64) * FRAME_MS)
    landmarks = SignerLandmarks(LandmarkTrack(video.stem, axis, points), side, side)
    write_pose(landmarks, video.with_suffix(POSE_SUFFIX), overwrite=True)


def _film(performance: Performance, scene: Scene | None, path: Path, side: int) -> None:
    if path.exists():
        return
    frames = render_frames(performance.points, performance.mouth, performance.signer.appearance, scene, side=side)
    with VideoWriter(path, width=side, height=side) as writer:
        for number, frame in enumerate(frames):
            writer.write(frame, number * FRAME_MS)


def _clip(made: WorldFolder, entry: Entry) -> Path:
    folder = made.other_dictionary if entry.language == OTHER_LANGUAGE else made.dictionary
    return folder / "clips" / f"{entry.entry_id}.mp4"


def _video(made: WorldFolder, episode_id: str) -> Path:
    return made.corpus / "episodes" / f"{episode_id}.mp4"


def _write_tables(world: World, made: WorldFolder, entries: list[Entry], episodes: list[EpisodePerformance]) -> None:
    filmed = [replace(entry, video=_clip(made, entry), rights=_RIGHTS, box=_STUDIO) for entry in entries]
    for folder, language in ((made.dictionary, LANGUAGE), (made.other_dictionary, OTHER_LANGUAGE)):
        if own := [entry for entry in filmed if entry.language == language]:
            name = "world" if language == LANGUAGE else f"world-{language}"
            write_dictionary_manifest(Dictionary.of(name, own, folder), folder / "dictionary.json", overwrite=True)
    for episode in episodes:
        write_subtitles(episode.subtitles, _video(made, episode.episode_id).with_suffix(".vtt"), overwrite=True)
    _corpus(made, episodes).write_manifest(made.corpus / "corpus.json", overwrite=True)
    signs = (
        SignedSign(
            video_id=one.episode_id,
            start_frame=token.span.start,
            stop_frame=token.span.stop,
            word=token.word,
            variant=token.variant,
            form=token.form_id,
            signer=token.signer_id,
        )
        for one in episodes
        for token in one.truth
    )
    write_truth(signs, made.truth, overwrite=True)
    train = tuple(word for word in world.annotated_words if word not in world.test_words)
    drawn = "one of each stratum of frequency, by the world"
    WordSplit(train, tuple(world.test_words), world.seed, drawn).write(made.split, overwrite=True)


def _corpus(made: WorldFolder, episodes: list[EpisodePerformance]) -> CorpusSource:
    listed = tuple(
        Episode(
            video_id=episode.episode_id,
            video=_video(made, episode.episode_id),
            subtitles=_video(made, episode.episode_id).with_suffix(".vtt"),
            signer=episode.performance.signer.signer_id,
            language=LANGUAGE,
            split=episode.split,
            rights=_RIGHTS,
            box=_BROADCAST,
        )
        for episode in episodes
    )
    annotations = tuple(
        TimedAnnotation(**asdict(annotation)) for episode in episodes for annotation in episode.annotations
    )
    return CorpusSource(listed, annotations)


def preview_world(folder: Path, preset: str, seed: int) -> tuple[Path, ...]:
    """Pictures of a world; `folder` is made if need be, and pictures of the same names are replaced."""
    output_folder(folder)
    return write_preview(World.of(preset_named(preset), seed), folder)


@dataclass(frozen=True, slots=True)
class _WorldMeasures:
    """How a world compares with the paper's corpora, and how hard it is for the weakest baseline."""

    preset: str
    version: int
    seed: int
    statistics: tuple[Comparison, ...]
    mean_ap: float
    recall_at_5: float
    localisation: float
    chance_mean_ap: float


def measure_world(preset: str, seed: int) -> _WorldMeasures:
    """Perform the test episodes and compare raw joints."""
    world = World.of(preset_named(preset), seed)
    scores = raw_joint_scores(world)
    means = (scores.mean_ap, scores.recall_at_5, scores.localisation, scores.chance_mean_ap)
    return _WorldMeasures(preset, world.preset.version, seed, world_statistics(world), *means)
