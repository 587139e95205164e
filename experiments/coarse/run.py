"""What a quick look misses and what it saves: `python experiments/coarse/run.py` writes results.json.

`spot --quick` compares every fourth window, then every window around the best places (embedding/pictures.py). Here it
looks, word by word, for the test words of drawn demo worlds in their test episodes, by the shipped trunk of the
synthetic world. Rows that a quick look computes are those of stride 1, so its curves are made from one full track;
some are also computed by `embed_near` itself, to see that they agree and how long both take.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, world_name, write_results

from signspot.domain.recordings import Episode, Word
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, EmbeddingTrack, FloatArray, Floats, WindowGrid
from signspot.embedding.model import Reading
from signspot.embedding.pictures import Extraction, PictureModel, embed_near, embed_video, nearest_of, starts_near
from signspot.embedding.zoo import model_path
from signspot.evaluation.localisation import Footage, is_near, spotting_benchmark
from signspot.evaluation.measures import Interval, mean_interval, ratio_interval
from signspot.files.atomic import atomic_output, make_folder
from signspot.models.embedders import VideoEmbedder, embedder_from_checkpoint
from signspot.spotting.peaks import find_peaks
from signspot.stores.corpus import read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.workflows.world import WorldRequest, make_world
from signspot.world.settings import preset_named
from signspot.world.simulation import World

HOME = Path(__file__).resolve().parent
READING = Reading(isolated=False)  # decoded in this process, so that its seconds count
STRIDE, CANDIDATES = 4, 12  # of a quick look
FIRST = (1, 5, 20)  # findings of a word in an episode, from the highest cosine down
TIMED_WORDS = 3  # of every episode: these are computed by `embed_near` too
COLUMNS = ("mAP", "localisation", *(f"best {n} kept" for n in FIRST), "windows computed", "processor time")
Ways = dict[str, Callable[[EmbeddingTrack, FloatArray], np.ndarray]]  # which windows each way computes


@dataclass(slots=True, eq=False)
class Looks:
    """What one way of looking gave, over words and episodes."""

    footage: dict[str, list[Footage]] = field(default_factory=dict)  # by world
    localised: list[float] = field(default_factory=list)  # by passage
    kept: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: {n: [] for n in FIRST})  # found, wanted
    computed: list[float] = field(default_factory=list)  # share of windows, by word and episode
    units: list[str] = field(default_factory=list)  # the word of each passage
    words: list[str] = field(default_factory=list)  # the word of each look


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A test episode with everything that is known about it."""

    world: World
    episode: Episode
    track: EmbeddingTrack  # at stride 1
    queries: dict[Word, FloatArray]  # (n_entries, d) of each test word


def coarse_track(track: EmbeddingTrack) -> EmbeddingTrack:
    """Every fourth row."""
    grid = WindowGrid(track.grid.n_frames, stride=STRIDE)
    return replace(track, grid=grid, vectors=track.vectors[grid.starts()])


def quick_starts(track: EmbeddingTrack, queries: FloatArray) -> np.ndarray:
    """The windows that a quick look computes, rising."""
    coarse = coarse_track(track)
    return np.union1d(coarse.grid.starts(), starts_near(coarse, queries, CANDIDATES))


WAYS: Ways = {
    "every window": lambda track, queries: track.grid.starts(),
    "quick look for one word": quick_starts,
    "every fourth window only": lambda track, queries: coarse_track(track).grid.starts(),
}
EXACT, QUICK, COARSE = WAYS


def curve_of(track: EmbeddingTrack, queries: FloatArray, starts: np.ndarray) -> FloatArray:
    """(n_windows,) the highest cosine over the entries; of windows not computed, that of the nearest one that was."""
    best: FloatArray = (track.vectors[starts] @ queries.T).max(axis=1)
    return best[nearest_of(starts, len(track.grid))]


def n_kept(exact: FloatArray, other: FloatArray, first: int) -> tuple[int, int]:
    """Of the best findings of a curve, how many another curve has in the same window; and how many they are."""
    starts = np.arange(len(exact))
    peaks = find_peaks(exact, starts, -np.inf, CLIP_LENGTH)
    wanted = peaks[np.argsort(-exact[peaks], kind="stable")[:first]]
    return int(np.isin(wanted, find_peaks(other, starts, -np.inf, CLIP_LENGTH)).sum()), len(wanted)


def look(scene: Scene, found: dict[str, Looks]) -> None:
    """Look for every test word in an episode, in every way."""
    performed = scene.world.perform_episode(scene.episode.video_id)
    words = list(scene.queries)
    curves: dict[str, list[FloatArray]] = {name: [] for name in WAYS}
    for word, queries in scene.queries.items():
        for name, chosen in WAYS.items():
            starts = chosen(scene.track, queries)
            curves[name].append(curve_of(scene.track, queries, starts))
            found[name].computed.append(len(starts) / len(scene.track.grid))
            found[name].words.append(f"{scene.world.seed} {word}")
            for n in FIRST:
                found[name].kept[n].append(n_kept(curves[EXACT][-1], curves[name][-1], n))
    centres = scene.track.grid.starts() + scene.track.grid.length // 2
    signs = [(words.index(one.word), one.span.stop - 1) for one in performed.truth if one.word in scene.queries]
    label_class, label_frame = np.array(signs, np.int64).T
    for name, own in curves.items():
        footage = Footage(centres, np.stack(own, axis=1), label_class, label_frame)
        found[name].footage.setdefault(str(scene.world.seed), []).append(footage)
        for passage in performed.passages:
            label = passage.annotations[0]
            inside = (centres >= passage.span.start) & (centres < passage.span.stop)
            if label.word in scene.queries and inside.any():
                curve = np.where(inside, own[words.index(label.word)], -np.inf)
                found[name].localised.append(float(is_near(centres[curve.argmax()], label.frame)))
                found[name].units.append(f"{scene.world.seed} {label.word}")


def precision_of(looks: Looks) -> Floats:
    """The average precision of each word over all windows, worlds one after another."""
    return np.concatenate([spotting_benchmark(footage).values for footage in looks.footage.values()])


def scenes(seed: int, model: VideoEmbedder, runs: Path) -> Iterator[Scene]:
    """The test episodes of a world, drawn and embedded once."""
    made = make_world(WorldRequest(folder=runs / f"demo-{seed}", preset="demo", seed=seed, side=128, workers=1))
    world, dictionary = World.of(preset_named("demo"), seed), read_dictionary(made.dictionary).dictionary
    own = PictureModel(model)
    queries = {
        word: np.concatenate([own.entry(entry, READING) for entry in dictionary.entries(word)])
        for word in world.test_words
    }
    for episode in read_corpus(made.corpus).episodes:
        if episode.split == "test":
            kept = runs / f"demo-{seed}-{episode.video_id}.npy"
            yield Scene(world, episode, full_track(episode, model, kept), queries)


def full_track(episode: Episode, model: VideoEmbedder, kept: Path) -> EmbeddingTrack:
    """The vectors at stride 1, computed once and kept."""
    if not kept.exists():
        track = embed_video(episode, model, READING).track
        with atomic_output(kept) as temporary, temporary.open("xb") as stream:
            np.save(stream, np.asarray(track.vectors), allow_pickle=False)
    vectors = np.load(kept, allow_pickle=False)
    grid = WindowGrid(len(vectors) + CLIP_LENGTH - 1)
    axis = TimeAxis(np.arange(grid.n_frames, dtype=np.float64) * FRAME_MS)
    return EmbeddingTrack(episode.video_id, grid, axis, vectors, model.fingerprint)


@dataclass(frozen=True, slots=True)
class Timed:
    """Processor seconds of the same episode in three ways, and how far `embed_near` is from the curves made here."""

    exact: float
    coarse: float
    quick: tuple[float, ...]  # one for each word
    difference: float


def timed(scene: Scene, model: VideoEmbedder) -> Timed:
    """Compute an episode with every window, with every fourth, and by a quick look for some words."""
    exact, coarse = (
        _seconds(partial(embed_video, scene.episode, model, replace(READING, stride=stride)))[0]
        for stride in (1, STRIDE)
    )
    seconds, furthest = [], 0.0
    for queries in list(scene.queries.values())[:TIMED_WORDS]:
        quick = partial(embed_near, scene.episode, model, queries, READING, stride=STRIDE, candidates=CANDIDATES)
        spent, near = _seconds(quick)
        made = curve_of(scene.track, queries, quick_starts(scene.track, queries))
        seconds.append(spent)
        furthest = max(furthest, float(np.abs((near.track.vectors @ queries.T).max(axis=1) - made).max()))
    return Timed(exact, coarse, tuple(seconds), furthest)


def _seconds(work: Callable[[], Extraction]) -> tuple[float, Extraction]:
    begun = time.process_time()
    done = work()
    return time.process_time() - begun, done


def rows_of(found: dict[str, Looks], times: list[Timed]) -> list[ResultRow]:
    """Every way, then the quick ways minus every window."""
    exact = found[EXACT]
    seconds = {
        EXACT: sum(one.exact for one in times),
        QUICK: sum(sum(one.quick) / len(one.quick) for one in times),
        COARSE: sum(one.coarse for one in times),
    }
    rows, differences = [], []
    for name, looks in found.items():
        cells = {
            "mAP": mean_interval(precision_of(looks)),
            "localisation": mean_interval(looks.localised, looks.units),
            "windows computed": mean_interval(looks.computed, looks.words),
        }
        for n in FIRST:
            kept, wanted = np.array(looks.kept[n]).T
            cells[f"best {n} kept"] = ratio_interval(kept, wanted, looks.words)
        measured = {column: _measured(cell) for column, cell in cells.items()}
        measured["processor time"] = Measured(seconds[name] / seconds[EXACT])
        rows.append(ResultRow(name, measured))
        if name != EXACT:
            lost = {
                "mAP": mean_interval(precision_of(looks) - precision_of(exact)),
                "localisation": mean_interval(np.subtract(looks.localised, exact.localised), looks.units),
            }
            differences.append(ResultRow(f"{name} − {EXACT}", {name: _measured(cell) for name, cell in lost.items()}))
    return rows + differences


def _measured(cell: Interval) -> Measured:
    return Measured(cell.estimate, (), cell.low, cell.high)


def main() -> None:
    """Look in every way and write results.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, nargs="+", default=[0, 1], help="seeds of the worlds")
    worlds = parser.parse_args().worlds
    torch.set_num_threads(1)
    runs = Path(os.environ.get("SIGNSPOT_EXPERIMENTS") or "build/experiments") / "coarse"
    make_folder(runs)
    model = embedder_from_checkpoint(model_path("world-v1"))
    found, times, minutes = {name: Looks() for name in WAYS}, [], 0.0
    for scene in (scene for seed in worlds for scene in scenes(seed, model, runs)):
        look(scene, found)
        if not minutes:
            timed(scene, model)  # the first time, programs are compiled
        times.append(timed(scene, model))
        minutes += len(scene.track.axis) * FRAME_MS / 60_000
        sys.stderr.write(f"world {scene.world.seed}, {scene.episode.video_id}: {times[-1]}\n")
    write_results(results_of(found, times, minutes, worlds), HOME / "results.json")


def results_of(found: dict[str, Looks], times: list[Timed], minutes: float, worlds: list[int]) -> ExperimentResults:
    """The table and the conditions it was measured in."""
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    n_looks, quick = len(found[EXACT].computed), [second for one in times for second in one.quick]
    return ExperimentResults(
        name="coarse",
        title="Ours: a quick look beside every window",
        data="; ".join(world_name(World.of(preset_named("demo"), seed)) for seed in worlds),
        command=f"python experiments/coarse/run.py --worlds {' '.join(map(str, worlds))}",
        conditions={
            "test": f"{len(times)} test episodes, {minutes:.1f} minutes drawn as video; {n_looks} looks for one word "
            f"in one episode; {len(found[EXACT].localised)} passages",
            "model": "world-v1, the trunk without a head",
            "mAP": "over the words, of the average precision of all windows of the test episodes, against all signs",
            "localisation": "passages whose known word is most similar at the right time (-20/+5 frames)",
            "best n kept": "of the n most similar places of a word in an episode, found by looking at every window, "
            "those that are found in the same window",
            "processor time": f"of reading and embedding, as a share of that of every window "
            f"({sum(one.exact for one in times):.1f} s); {len(quick)} quick looks, "
            f"from {min(quick):.1f} to {max(quick):.1f} s an episode",
            "agreement": f"cosines of those quick looks differ by at most {max(one.difference for one in times):.1e}",
            "interval": "95 %, by drawing the words again",
        },
        columns=COLUMNS,
        rows=tuple(rows_of(found, times)),
        verdict=" ".join(readme.partition("**Verdict.**")[2].partition("\n\n")[0].split()) or "Not judged yet.",
    )


if __name__ == "__main__":
    main()
