"""Which model is used when none is named: the shipped one of real signing, wherever landmarks can be had."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from signspot.errors import EnvironmentProblem
from signspot.features.store import default_store_folder
from signspot.formats.pose_files import SUFFIX
from signspot.models.zoo import COLOUR_MODEL, LANDMARK_MODEL
from signspot.workflows.landmarks import has_detector, landmark_file_of

_CHOSEN = f"model {LANDMARK_MODEL}: sees body and hands; it learned American Sign Language only (--model for others)"
_FALLEN_BACK = (
    f"model {COLOUR_MODEL}: compares mean colours and knows nothing about signing; {LANDMARK_MODEL} would need "
    "landmarks of all recordings: pip install 'signspot[pose]', or put a .pose file beside"
)
_NAMED = 3  # recordings without landmarks


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model by its name, and what should be said about the choice, if there was one."""

    name: str
    remarks: tuple[str, ...] = ()


def chosen_model(asked: str, recordings: Iterable[Path | None]) -> ChosenModel:
    """The model that was asked for, or else ("") the one that can see all recordings; None stands for a missing clip.

    Where any recording is a .pose file, only a model of landmarks will do.
    """
    if asked:
        return ChosenModel(asked)
    paths = list(recordings)
    finds = has_detector()
    blind = [path for path in paths if path is None or not (finds or landmark_file_of(path))]
    if not blind or any(path is not None and path.suffix.lower() == SUFFIX for path in paths):
        return ChosenModel(LANDMARK_MODEL, (_CHOSEN,))
    named = ", ".join(path.name for path in blind[:_NAMED] if path is not None)
    more = f" and {len(blind) - _NAMED} more of {len(paths)}" if len(blind) > _NAMED else ""
    return ChosenModel(COLOUR_MODEL, (f"{_FALLEN_BACK} {named or 'each'}{more} (--model for others)",))


def kept_for(chosen: ChosenModel, folder: Path | None) -> Path | None:
    """Where vectors are kept: mean colours that nobody asked for are not worth a place in the usual folder."""
    if not chosen.remarks or chosen.name != COLOUR_MODEL or folder is None:
        return folder
    with suppress(EnvironmentProblem):  # not everybody has a home
        return None if folder == default_store_folder(os.environ) else folder
    return folder
