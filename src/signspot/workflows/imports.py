"""Turn released data sets into dictionaries that every command reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from signspot.atomic import refuse_existing
from signspot.domain.dictionary import Dictionary
from signspot.errors import InputError
from signspot.formats.bsldict import import_bsldict
from signspot.formats.places import NO_SUCH_FILE, Problem
from signspot.formats.wlasl import import_msasl, import_wlasl
from signspot.workflows.check import Check
from signspot.workflows.dictionary_folder import PROBLEMS
from signspot.workflows.dictionary_sheets import write_problems
from signspot.workflows.tracks import Progress


def import_dictionary(
    source: Path, folder: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> Check:
    """Import BSLDict's metadata, or the lists of WLASL or MS-ASL with the clips in `folder`; say what was found.

    Of WLASL and MS-ASL thousands of clips are gone from the web: they are listed in problems.csv beside the dictionary.
    """
    if source.suffix.lower() in (".pkl", ".pickle"):
        made = import_bsldict(source, folder, overwrite=overwrite, progress=progress)
        return _check(made.dictionary, made.problems, made.missing)
    if source.suffix.lower() != ".json":
        raise InputError(source, "is no data set that can be imported", "give bsldict_v1.pkl, WLASL or MS-ASL JSON")
    listed = folder / PROBLEMS
    refuse_existing(listed, overwrite=overwrite)
    if "msasl" in source.name.lower().replace("-", "").replace("_", ""):
        clips = import_msasl([source], folder, overwrite=overwrite)
    else:
        clips = import_wlasl(source, folder, overwrite=overwrite)
    if clips.problems or listed.exists():  # the list of an earlier import is true no more
        write_problems(clips.problems, listed, overwrite=overwrite)
    missing = sum(problem.what.endswith(NO_SUCH_FILE) for problem in clips.problems)
    found = _check(clips.dictionary, clips.problems, {})
    return replace(found, counts=(*found.counts, ("missing clips", missing)), listed=listed if clips.problems else None)


def _check(dictionary: Dictionary, problems: tuple[Problem, ...], missing: Mapping[str, int]) -> Check:
    counts = [
        ("words", len(dictionary.by_word)),
        ("entries", len(dictionary)),
        ("with clips", sum(entry.video is not None for entry in dictionary)),
    ]
    counts += [(f"without {kind} vectors", count) for kind, count in missing.items()]
    return Check.of(dictionary.name, tuple(counts), problems)
