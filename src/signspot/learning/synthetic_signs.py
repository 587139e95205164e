"""Signs of the synthetic world as recorded signs: forms that no real clip has, by bodies that nobody has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from signspot.domain.dictionary import Entry, Signer
from signspot.domain.spans import FRAME_MS, TimeAxis
from signspot.domain.tracks import LandmarkTrack
from signspot.domain.words import Word
from signspot.learning.stitching import RecordedSign, in_shoulder_widths
from signspot.media.trim import trim_by_landmarks
from signspot.world.presets import preset_named
from signspot.world.simulation import World

SEED = 7


def synthetic_signs(n_forms: int = 1500, signers_per_form: int = 4) -> tuple[RecordedSign, ...]:
    """Forms of a world of the paper's size, each as a dictionary clip of several signers; its name is the word."""
    preset = preset_named("paper")
    world = World.of(preset, SEED)
    entries: dict[str, Entry] = {}
    for entry in world.dictionary_entries():
        entries.setdefault(entry.type_id, entry)
    rng = np.random.default_rng(SEED)
    signs = []
    for form in rng.permutation(sorted(entries))[:n_forms].tolist():
        for signer in rng.choice(preset.n_dictionary_signers, signers_per_form, replace=False).tolist():
            signs.append(_signed(world, entries[form], f"dictionary-{signer:03}"))
    return tuple(signs)


def _signed(world: World, entry: Entry, signer_id: str) -> RecordedSign:
    entry = replace(entry, entry_id=f"{entry.type_id} by {signer_id}", signer=Signer(signer_id))
    points = world.detected(world.perform_entry(entry), entry.entry_id)
    track = LandmarkTrack(entry.entry_id, TimeAxis(np.arange(len(points), dtype=np.float64) * FRAME_MS), points)
    return RecordedSign(Word(entry.type_id), signer_id, in_shoulder_widths(points), trim_by_landmarks(track, 1.0).kept)
