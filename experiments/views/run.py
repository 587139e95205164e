"""What `--mirror` and `--rates` bring, and what they cost: `python experiments/views/run.py [SEED]`.

Test episodes of a made-up world are searched as they were signed, as their mirror image (a left-handed signer), and
faster or slower. The model is the linear map of experiments/calibration, which has not seen these signers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "calibration"))  # whose model is used here too

from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results
from joint_model import JointModel
from run import kept_model

from signspot.domain.recordings import Word
from signspot.domain.time import FRAME_RATE
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, WindowGrid, unit
from signspot.embedding.pictures import frames_at_rate
from signspot.evaluation.localisation import is_near
from signspot.media.frames import random_clips
from signspot.spotting.peaks import find_peaks
from signspot.world.measure import body_joints, windows
from signspot.world.settings import chance, preset_named
from signspot.world.simulation import World

RATES = (0.7, 1.4)
VIEWS = {"as it is": ((False, 1.0),), "--mirror": ((False, 1.0), (True, 1.0)),
         "--rates 0.7,1.4": tuple((False, rate) for rate in (1.0, *RATES))}  # fmt: skip
FOOTAGE = {"as signed": (False, 1.0), "the mirror image": (True, 1.0), "1.4 times as fast": (False, 1.4),
           "0.7 times as fast": (False, 0.7)}  # fmt: skip
N_EPISODES = 4  # one of each test signer
REACH = 2 * FRAME_RATE  # frames before and after a sign in which it is looked for
_OTHER_SIDE = [1, 0, 3, 2, 5, 4, *range(27, 48), *range(6, 27)]  # of the joints of world/measure.py
View = tuple[bool, float]  # mirrored, and at which speed


@dataclass(frozen=True, slots=True, eq=False)
class Filmed:
    """An episode in one of the ways in which it is shown."""

    vectors: FloatArray  # (n_windows, d) unit rows
    signs: tuple[tuple[Word, int], ...]  # words and the last frames of their signs


def mirrored(joints: FloatArray) -> FloatArray:
    """(n, 92) -> (n, 92) as the mirror shows it."""
    places = joints.reshape(len(joints), -1, 2)[:, _OTHER_SIDE] * np.array([-1, 1], np.float32)
    return np.asarray(places + np.array([1, 0], np.float32), np.float32).reshape(joints.shape)


def entry_vectors(world: World, model: JointModel) -> dict[Word, dict[View, FloatArray]]:
    """For each test word its entries (n, d), once for every view."""
    views = sorted({view for some in VIEWS.values() for view in some})
    found: dict[Word, dict[View, list[FloatArray]]] = {}
    for entry in (entry for entry in world.dictionary_entries() if entry.word in world.test_words):
        performance = world.perform_entry(entry)
        moving = performance.moving
        joints = body_joints(world.detected(performance, entry.entry_id))[moving.start : moving.stop]
        numbers = random_clips(len(joints), chance(world.seed, "clips", entry.entry_id))
        of_word = found.setdefault(entry.word, {view: [] for view in views})
        for is_mirrored, rate in views:
            seen = mirrored(joints) if is_mirrored else joints
            shown = numbers[:, frames_at_rate(rate)]
            clips = np.concatenate([windows(seen[frames], WindowGrid(CLIP_LENGTH)) for frames in shown])
            of_word[is_mirrored, rate].append(unit(model.vectors(clips).mean(axis=0)))
    return {word: {view: np.stack(rows) for view, rows in own.items()} for word, own in found.items()}


def filmed(world: World, model: JointModel) -> Iterator[dict[str, Filmed]]:
    """The test episodes in all ways."""
    for episode_id in world.episodes("test")[:N_EPISODES]:
        episode = world.perform_episode(episode_id)
        joints = body_joints(world.detected(episode.performance, episode_id))
        shown: dict[str, Filmed] = {}
        for name, (is_mirrored, speed) in FOOTAGE.items():
            frames = np.arange(0, len(joints) - 1, speed)
            quick = np.stack([np.interp(frames, np.arange(len(joints)), column) for column in joints.T], axis=1)
            seen = mirrored(quick.astype(np.float32)) if is_mirrored else quick.astype(np.float32)
            grid = WindowGrid(len(seen))
            blocks = [model.vectors(windows(seen, grid)[first : first + 1000]) for first in range(0, len(grid), 1000)]
            signs = tuple(
                (t.word, round((t.span.stop - 1) / speed)) for t in episode.truth if t.word in world.test_words
            )
            shown[name] = Filmed(unit(np.concatenate(blocks)), signs)
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} embedded {episode_id}\n")
        yield shown


def curves(one: Filmed, entries: dict[Word, dict[View, FloatArray]], views: Sequence[View]) -> dict[Word, FloatArray]:
    """The highest cosine of every window with any view of any entry, word by word."""
    return {
        word: (one.vectors @ np.concatenate([own[v] for v in views]).T).max(axis=1) for word, own in entries.items()
    }


def localised(one: Filmed, found: dict[Word, FloatArray]) -> Iterator[tuple[bool, float]]:
    """Of every sign: is the most similar window within two seconds at it, and the cosine there."""
    for word, last in one.signs:
        begin = max(0, last - REACH - CLIP_LENGTH // 2)
        near = found[word][begin : last + REACH]
        window = begin + int(near.argmax())
        yield bool(is_near(np.array([window + CLIP_LENGTH // 2]), np.array([last])).any()), float(near.max())


def alarms(one: Filmed, found: dict[Word, FloatArray], least: float) -> tuple[int, float]:
    """Peaks from a cosine on that are at no sign of their word, and the hours that were searched for all words."""
    n = 0
    for word, curve in found.items():
        peaks = find_peaks(curve, np.arange(len(curve)), least, CLIP_LENGTH) + CLIP_LENGTH // 2
        labels = np.array([last for other, last in one.signs if other == word], np.int64)
        n += int((~is_near(peaks[:, None], labels).any(axis=1)).sum())
    return n, len(one.vectors) * len(found) / (FRAME_RATE * 3600)


def rows(episodes: Sequence[dict[str, Filmed]], entries: dict[Word, dict[View, FloatArray]]) -> Iterator[ResultRow]:
    """A row for each kind of footage and of search."""
    usual = [
        cosine
        for shown in episodes
        for right, cosine in localised(shown["as signed"], curves(shown["as signed"], entries, VIEWS["as it is"]))
        if right
    ]
    least = float(np.median(usual))
    for footage in FOOTAGE:
        for name, views in VIEWS.items():
            right: list[bool] = []
            n_alarms, hours = 0, 0.0
            for shown in episodes:
                found = curves(shown[footage], entries, views)
                right += [is_right for is_right, _ in localised(shown[footage], found)]
                more, searched = alarms(shown[footage], found, least)
                n_alarms, hours = n_alarms + more, hours + searched
            cells = {"localised": Measured(float(np.mean(right))), "false alarms": Measured(n_alarms / hours)}
            yield ResultRow(f"{footage}, {name} ({len(right)} signs)", cells)


def verdict(table: Sequence[ResultRow]) -> str:
    """What the rows say."""
    share = {row.name.partition(" (")[0]: row.cells["localised"].mean for row in table}
    left, mirror = share["the mirror image, as it is"], share["the mirror image, --mirror"]
    fast, rates = share["1.4 times as fast, as it is"], share["1.4 times as fast, --rates 0.7,1.4"]
    return (
        f"--mirror: of signs by left-handed signers {100 * mirror:.0f}% instead of {100 * left:.0f}% are localised. "
        f"--rates: of signs 1.4 times as fast {100 * rates:.0f}% instead of {100 * fast:.0f}%. "
        "Both add false alarms. Synthetic signing."
    )


def main() -> None:
    """Measure and write results.json."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    world = World.of(preset_named("small"), seed)
    # The map was learned from the training signers of the same world with more test signers: they are the same people.
    model = kept_model(World.of(replace(preset_named("small"), n_test_signers=8, test_episodes=16), seed))
    entries = entry_vectors(world, model)
    table = tuple(rows(list(filmed(world, model)), entries))
    write_results(
        ExperimentResults(
            name="views",
            title="What --mirror and --rates bring, and what they cost",
            data=f"synthetic world: small, version {world.preset.version}, seed {seed}, {N_EPISODES} test episodes",
            command=f"python experiments/views/run.py {seed}",
            conditions={
                "model": "linear discriminants of joints, learned from the training signers (experiments/calibration)",
                "words": f"the {len(entries)} test words",
                "localised": "the most similar window within 2 s of a sign is at it (-20/+5 frames)",
                "false alarms": "in an hour for each word, from the cosine on that half of the signs localised as "
                "signed, without other views, reach",
                "runs": "one",
            },
            columns=("localised", "false alarms"),
            rows=table,
            verdict=verdict(table),
            is_percent=False,
        ),
        Path(__file__).parent / "results.json",
    )


if __name__ == "__main__":
    main()
