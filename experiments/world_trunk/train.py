"""Train the trunk that signspot ships for its synthetic world: `python experiments/world_trunk/train.py [RUN]`.

The world is `small` with a seed nobody else uses, so that its words, signers and sentences are none of those the trunk
is later used on. Clips are drawn as `signspot world make --side 128` draws them, cut to the signer's box. The trunk
learns to see the body: pose distillation (Paper App. C.1) from annotated and dictionary clips. It is told no words.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FrameShape
from signspot.learning.clips import ClipPlace, ClipWindow, RecordedClips
from signspot.learning.config import TrunkRunConfig
from signspot.learning.runs import RunFolder
from signspot.learning.trunk import TrunkControls, TrunkData, train_trunk
from signspot.media.frames import shape_frame
from signspot.models.checkpoints import load_checkpoint, save_checkpoint
from signspot.world.people import Performance
from signspot.world.render import Broadcast, Studio, render_frames
from signspot.world.settings import preset_named
from signspot.world.simulation import World

SEED = 1000
SIDE, CROP = 72, 64
STUDIO, BROADCAST = (0.1, 0.05, 0.9, 0.85), (0.28, 0.165, 1.0, 0.885)  # the signer: left, top, right, bottom
PICTURE = 128
Task = tuple[Performance, FrameSpan, int | None]
WINDOW = ClipWindow(before=20, after=5)
CONFIG = TrunkRunConfig(
    width=0.25,
    side=SIDE,
    crop=CROP,
    window_after=5,
    sources="continuous",
    pose_epochs=16,
    stage1_epochs=0,
    decay_epochs=(12, 15),
    flip_probability=0.0,  # left-handed signers are among the world's own
    batch_size=16,
    optimiser="adamw",  # SGD stays where one mean posture is answered for every clip (README)
    learning_rate=1e-3,
    batch_norm_momentum=0.05,
    seed=SEED,
)


def drawn(task: Task) -> np.ndarray:
    """The frames of a stretch of a performance, as the trunk sees them: (n, SIDE, SIDE, 3) uint8."""
    performance, span, scene_seed = task
    appearance = performance.signer.appearance
    scene = Studio(appearance.background) if scene_seed is None else Broadcast(scene_seed)
    left, top, right, bottom = (round(PICTURE * edge) for edge in (STUDIO if scene_seed is None else BROADCAST))
    points, mouth = performance.points[span.start : span.stop], performance.mouth[span.start : span.stop]
    frames = render_frames(points, mouth, appearance, scene, side=PICTURE)
    shape = FrameShape(SIDE, SIDE, keep_aspect=True)
    return np.stack([shape_frame(np.ascontiguousarray(frame[top:bottom, left:right]), shape) for frame in frames])


def annotated(world: World, split: str, n_episodes: int) -> tuple[list[Task], list[ClipPlace], list[np.ndarray]]:
    """What to draw around the annotations of episodes, their places, and their landmarks."""
    tasks, places, landmarks = [], [], []
    words = {word: number for number, word in enumerate(world.annotated_words)}
    for episode in islice(world.perform_episodes(split), n_episodes):
        performance = episode.performance
        for annotation in episode.annotations:
            span = WINDOW.around(annotation.frame)
            if span.stop > len(performance):
                continue
            number = len(tasks)
            tasks.append((_cut(performance, span), FrameSpan(0, len(span)), SEED * 100 + number))
            landmarks.append(performance.points[span.start : span.stop])
            places.append(
                ClipPlace(
                    f"{episode.episode_id}:{annotation.frame}",
                    words[annotation.word],
                    number,
                    FrameSpan(0, len(span)),
                    annotation.confidence,
                )
            )
    return tasks, places, landmarks


def entries(world: World) -> tuple[list[Task], list[ClipPlace], list[np.ndarray]]:
    """The same for the moving part of the dictionary entries of annotated words."""
    tasks, places, landmarks = [], [], []
    words = {word: number for number, word in enumerate(world.annotated_words)}
    for entry in world.dictionary_entries():
        if entry.word not in words:
            continue
        performance = world.perform_entry(entry)
        span = performance.moving
        places.append(ClipPlace(entry.entry_id, words[entry.word], len(tasks), FrameSpan(0, len(span))))
        tasks.append((performance, span, None))
        landmarks.append(performance.points[span.start : span.stop])
    return tasks, places, landmarks


def _cut(performance: Performance, span: FrameSpan) -> Performance:
    """Only what is drawn travels to the process that draws it."""
    rows = slice(span.start, span.stop)
    return replace(performance, points=performance.points[rows], mouth=performance.mouth[rows])


def main(run: Path, n_episodes: int) -> None:
    """Draw, train, and leave the trunk in RUN/world-v1.safetensors."""
    world = World.of(preset_named("small"), SEED)
    drawings: list[Task] = []
    places: list[ClipPlace] = []
    landmarks: list[np.ndarray] = []
    for tasks, found, points in (annotated(world, "train", n_episodes), entries(world)):
        places += [replace(place, recording=place.recording + len(drawings)) for place in found]
        drawings += tasks
        landmarks += points
    with ProcessPoolExecutor() as pool:
        pixels = list(pool.map(drawn, drawings, chunksize=8))
    data = TrunkData(
        vocabulary=world.annotated_words,
        continuous=RecordedClips(pixels, tuple(places)),
        continuous_landmarks=RecordedClips(landmarks, tuple(places)),
        description=f"synthetic signing: world small version {world.preset.version}, seed {SEED}",
    )
    folder = RunFolder(run)
    with folder.opened(CONFIG, data.fingerprints(), "resume" if run.exists() else "new"):
        train_trunk(CONFIG, data, folder, TrunkControls(progress=told))
    write_shipped(folder.last, run / "world-v1.safetensors")


def write_shipped(trained: Path, shipped: Path) -> None:
    """The same weights under the name they are shipped by; the words were never told, so the card lists none."""
    trunk = load_checkpoint(trained)
    card = replace(trunk.card, name=shipped.stem, vocabulary=(), licence="Apache-2.0")
    save_checkpoint(shipped, trunk.weights, card, overwrite=True)


def told(moment: object) -> None:
    """One line now and then."""
    sys.stderr.write(f"{moment}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "world-trunk"), int(sys.argv[2]) if len(sys.argv) > 2 else 24)
