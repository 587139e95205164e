"""What the bags of Watch-Read-Lookup hold, and how often they are right: `python experiments/reading/clips.py`.

Minibatches as for Table 2, unseen words; the truth about every clip is known in the world. Nothing is trained; the
vectors are read where `experiments/table2/run.py` left them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from experiments.lib.bags import paper_bags
from experiments.lib.paper_tables import (
    SMALL,
    ExperimentResults,
    Measured,
    ResultRow,
    world_name,
    world_split,
    write_results,
)

from signspot.domain.time import FrameSpan, Tolerance
from signspot.domain.tracks import CLIP_LENGTH
from signspot.learning.batches import BatchOptions, BatchSource, PassageWindows
from signspot.learning.losses import Paper
from signspot.learning.material import Material
from signspot.world.settings import preset_named
from signspot.world.simulation import World

HOME = Path(__file__).resolve().parent
COLUMNS = ("bags", "positive pairs", "negative pairs", "fewest negative pairs")
BATCHES, PASSAGES, CLIPS, SLACK = 2, 400, 10, 2  # SLACK: frames of a sign that may lie outside a clip, at each end


def bag_rows(source: BatchSource) -> list[ResultRow]:
    """Of each anchor, how many bags a minibatch has and how many pairs a bag."""
    batches = [paper_bags(source.minibatch(0, step), Paper()) for step in range(BATCHES)]
    rows = []
    for anchor in batches[0]:
        held = [bags[anchor] for bags in batches]
        positive, negative = (
            np.concatenate([pairs.flatten(1).sum(1).numpy() for pairs in sides])
            for sides in ([bags.positive for bags in held], [bags.negative for bags in held])
        )
        values = (len(positive) / BATCHES, positive.mean(), negative.mean(), negative.min())
        cells = {column: Measured(float(value)) for column, value in zip(COLUMNS, values, strict=True)}
        rows.append(ResultRow(anchor, cells))
    return rows


def shares_shown(world: World, material: Material, known: frozenset[int]) -> tuple[float, float]:
    """Of background clips, those that show a background word; of background words, those that are signed at all."""
    passages, rng = material.passages, np.random.default_rng(0)
    lengths = np.array([len(track) for track in material.tracks], np.int64)[passages.track]
    windows = PassageWindows.of(passages, lengths, Tolerance(), "inside")
    drawn = rng.permutation(np.flatnonzero(np.isin(passages.label, list(known)) & (windows.n_background > 0)))[
        :PASSAGES
    ]
    shown, signed = [], []
    truth = {track: world.perform_episode(world.episodes("train")[track]).truth for track in set(passages.track[drawn])}
    for passage, starts in zip(drawn, windows.draw_background(drawn, CLIPS, rng), strict=True):
        mentioned = set(passages.words[passages.word_offsets[passage] : passages.word_offsets[passage + 1]].tolist())
        words = (mentioned & known) - {int(passages.label[passage])}
        whole = FrameSpan(int(passages.start[passage]), int(passages.stop[passage]))
        signs = [(one.span, material.vocabulary.id_of(one.word)) for one in truth[passages.track[passage]]]
        signed += [any(word == other and _holds(whole, span, 0) for span, other in signs) for word in words]
        for start in starts.tolist():
            clip = FrameSpan(start, start + CLIP_LENGTH)
            shown.append(any(word in words and _holds(clip, span, SLACK) for span, word in signs))
    return float(np.mean(shown)), float(np.mean(signed))


def _holds(clip: FrameSpan, sign: FrameSpan, slack: int) -> bool:
    return clip.start - slack <= sign.start and sign.stop <= clip.stop + slack


def main() -> None:
    """Count, and write results-clips.json."""
    world = World.of(preset_named(SMALL.preset), 0)
    runs = Path(os.environ.get("SIGNSPOT_EXPERIMENTS") or "build/experiments")
    material = Material.read(runs / f"{SMALL.preset}-0" / "unseen" / "both" / "train", verify=False)
    words = frozenset(world_split(world).train)
    options = BatchOptions(
        batch_size=round(128 * SMALL.batch_share), words=words, dictionary="limited", n_background=CLIPS, prefetch=0
    )
    shown, signed = shares_shown(world, material, frozenset(material.vocabulary.id_of(word) for word in words))
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    write_results(
        ExperimentResults(
            name="reading",
            title="Ours: what the bags of Watch-Read-Lookup hold",
            data=world_name(world),
            command="python experiments/reading/clips.py",
            conditions={
                "counted": f"in {BATCHES} minibatches of {options.batch_size} passages, unseen words; pairs of one bag",
                "background clips": f"{100 * shown:.0f}% show a background word of their subtitle; up to {SLACK} frames"
                f" may be missing at either end; {PASSAGES} passages",
                "background words": f"{100 * signed:.0f}% are signed somewhere in their passage",
            },
            columns=COLUMNS,
            rows=tuple(bag_rows(BatchSource(material, options, 0))),
            verdict=" ".join(readme.partition("**Bags.**")[2].partition("\n\n")[0].split()),
            is_percent=False,
        ),
        HOME / "results-clips.json",
    )


if __name__ == "__main__":
    main()
