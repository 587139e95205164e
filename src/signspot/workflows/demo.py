"""The first walk through the software: make a toy world, find signs in it, write what people would open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from signspot.domain.results import VideoAnswer
from signspot.errors import InputError
from signspot.workflows.outputs import Output, Outputs
from signspot.workflows.spot_files import SpotRequest, spot_files
from signspot.workflows.tracks import Progress
from signspot.world.colours import Signed, ToyWorld, make_toy_world

_MARK = ".signspot-demo"  # a folder that carries it was made by the demo and may be written again


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What the demo made and found."""

    world: ToyWorld
    answer: VideoAnswer
    outputs: Outputs

    def found(self, signed: Signed) -> bool:
        """Whether a sign of the broadcast was found in its place and in its variant."""
        return any(
            spotting.word == signed.sign.word
            and spotting.variant == signed.sign.variant
            and spotting.span_ms.overlaps(signed.span_ms)
            for spotting in self.answer
        )


def demonstrate(folder: Path, seed: int = 0, progress: Progress | None = None) -> Demonstration:
    """Make dictionary clips and a broadcast in `folder`, find signs, write what people would open."""
    _claim(folder)
    world = make_toy_world(folder, seed)
    paths = {
        Output.CSV: folder / "spottings.csv",
        Output.PLOT: folder / "similarity.png",
        Output.VIDEO: folder / "overlay.mp4",
        Output.EAF: folder / "broadcast.eaf",
    }
    request = SpotRequest(
        source=world.broadcast,
        words=("apple", "tree", "house"),
        dictionary=world.dictionary,
        model="colour",
        outputs=Outputs(paths, overwrite=True),
    )
    (outcome,) = spot_files(request, progress)
    if outcome.answer is None:
        raise InputError(world.broadcast, "gave no answer", "report this as a bug")
    return Demonstration(world, outcome.answer, request.outputs)


def _claim(folder: Path) -> None:
    """Make the folder ours, or refuse one that holds somebody's files."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / _MARK).exists())):
        raise InputError(folder, "is there already and was not made by the demo", "name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
