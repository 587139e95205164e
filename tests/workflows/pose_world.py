"""A small synthetic world as .pose files: a dictionary, and a corpus with subtitles and annotations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from signspot.formats.captions import write_subtitles
from signspot.world.settings import Preset
from signspot.world.simulation import World
from tests.workflows.signed import write

SMALL_WORLD = Preset(
    name="small",
    n_words=4,
    n_annotated=4,
    n_test_words=4,
    n_dictionary_signers=2,
    n_train_signers=1,
    n_test_signers=1,
    train_episodes=3,
    test_episodes=1,
    subtitles_per_episode=8,
)


def write_pose_world(folder: Path) -> Counter[str]:
    """The small world, annotated at times; how many annotations each split has."""
    world = World.of(SMALL_WORLD)
    for entry in world.dictionary_entries():
        (folder / "dictionary" / entry.word).mkdir(parents=True, exist_ok=True)
        points = world.detected(world.perform_entry(entry), entry.entry_id)
        write(points, folder / "dictionary" / entry.word / f"{entry.entry_id}.pose")
    (folder / "corpus").mkdir()
    videos, marks, counts = ["video,split,subtitles,signer"], ["video,word,time_ms,confidence"], Counter[str]()
    for split in ("train", "test"):
        for episode in world.perform_episodes(split):
            name = episode.episode_id
            write(world.detected(episode.performance, name), folder / "corpus" / f"{name}.pose")
            write_subtitles(episode.subtitles, folder / "corpus" / f"{name}.vtt")
            videos.append(f"{name}.pose,{split},{name}.vtt,{split}")
            marks += [f"{name},{mark.word},{40 * mark.frame},0.9" for mark in episode.annotations]
            counts[split] += len(episode.annotations)
    (folder / "corpus" / "corpus.csv").write_text("\n".join(videos))
    (folder / "corpus" / "annotations.csv").write_text("\n".join(marks))
    return counts
