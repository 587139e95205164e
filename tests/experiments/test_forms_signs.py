"""Clips of a dictionary as the parts of their signs, from .pose files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.lib.forms import ROW, SEEN, form_gallery

from signspot.errors import DictionaryError
from signspot.stores.dictionary import read_dictionary
from signspot.world.settings import preset_named
from signspot.world.simulation import World
from tests.workflows.signed import resting, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sign, the same with longer rests before and after it, and somebody whose hands are never seen."""
    folder = tmp_path_factory.mktemp("clips")
    world = World.of(preset_named("demo"), 50)
    entry = world.dictionary_entries()[0]
    points = world.detected(world.perform_entry(entry), entry.entry_id)
    write(points, folder / "brief.pose")
    rests = points[:1].repeat(40, axis=0), points[-1:].repeat(25, axis=0)
    write(np.concatenate([rests[0], points, rests[1]]), folder / "patient.pose")
    write(resting(30), folder / "handless.pose")
    return folder


def test_rests_before_and_after_a_sign_are_no_part_of_it(folder: Path) -> None:
    dictionary = read_dictionary(folder).dictionary
    gallery, remarks = form_gallery(dictionary)
    brief, patient = gallery.vectors
    assert [entry.word for entry in gallery.entries] == ["brief", "patient"] and brief.shape == (SEEN,)
    assert np.abs(brief - patient)[:ROW].mean() < 0.02
    assert len(remarks) == 1 and "handless.pose: no hand is found in it" in remarks[0]


def test_a_dictionary_without_any_sign_is_refused(tmp_path: Path) -> None:
    write(resting(30), tmp_path / "handless.pose")
    with pytest.raises(DictionaryError, match="none of its clips can be read"):
        form_gallery(read_dictionary(tmp_path).dictionary)
