"""Make the judge of forms with which signs are compared part by part: `python experiments/friends/learn.py [FILE]`.

It learns how much two clips of one form differ from forms of made-up worlds, each signed by eight people, and their
minimal pairs. Finished rows are kept in `$SIGNSPOT_EXPERIMENTS`, by default `build/experiments`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # the experiments share their folder

from applications.world_vectors import FOLDER
from experiments.lib.forms import SHIPPED, FormJudge, as_right_handers, fit_judge, form_row, write_judge

from signspot.domain.recordings import Entry, Signer, Word
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import FloatArray, LandmarkTrack
from signspot.files.atomic import atomic_output, make_folder
from signspot.media.trim import trim_by_landmarks
from signspot.spotting.friends import Gallery
from signspot.world.settings import chance, preset_named
from signspot.world.simulation import World

LEARNED_FROM = (1001, 1002, 1003)  # seeds of small worlds
N_CLIPS = 8  # of each form, by different people


def kept(name: str, make: Callable[[], FloatArray]) -> FloatArray:
    """An array of the folder of finished runs, made if it is not there."""
    folder = Path(os.environ.get(FOLDER) or "build/experiments") / "friends"
    make_folder(folder)
    path = folder / f"{name}.npy"
    if not path.exists():
        made = make()
        with atomic_output(path) as temporary:
            np.save(temporary, made, allow_pickle=False)
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} made {name}\n")
    rows: FloatArray = np.load(path, allow_pickle=False)
    return rows


def rows_of(world: World, entries: Sequence[Entry]) -> FloatArray:
    """(n, 1565) the parts of some entries, as a detector of landmarks would see them, still ends cut by what moves."""
    rows = []
    for entry in entries:
        points = world.detected(world.perform_entry(entry), entry.entry_id)
        axis = TimeAxis(np.arange(len(points), dtype=np.float64) * FRAME_MS)
        rows.append(form_row(points, trim_by_landmarks(LandmarkTrack(entry.entry_id, axis, points), 1.0).kept))
    return np.stack(rows)


def of_every_form(world: World) -> tuple[Entry, ...]:
    """Each form of a world by eight of its signers."""
    rng = chance(world.seed, "metric")
    entries: list[Entry] = []
    for form in sorted(world.lexicon.forms):
        people = rng.choice(world.preset.n_dictionary_signers, N_CLIPS, replace=False).tolist()
        for number, person in enumerate(people):
            signer_id = f"dictionary-{person:03}"
            signer = Signer(signer_id, world.signer(signer_id).left_handed)
            entries.append(Entry(entry_id=f"{form}_{number}", word=Word(form), signer=signer, type_id=form))
    return tuple(entries)


def learned() -> FormJudge:
    """The judge of the forms of some worlds."""
    rows, alike, n_forms = [], [], 0
    for seed in LEARNED_FROM:
        world = World.of(preset_named("small"), seed)
        forms = {form: n_forms + number for number, form in enumerate(sorted(world.lexicon.forms))}
        entries = of_every_form(world)
        made = kept(f"forms8-{seed}", lambda world=world, entries=entries: rows_of(world, entries))  # type: ignore[misc]
        rows.append(as_right_handers(Gallery(entries, made)).reshape(len(forms), N_CLIPS, -1))
        alike += [(forms[one], forms[other]) for one, other in world.lexicon.minimal_pairs]
        n_forms += len(forms)
    return fit_judge(np.concatenate(rows), np.array(alike), np.random.default_rng(0))


if __name__ == "__main__":
    write_judge(learned(), Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED, overwrite=True)
