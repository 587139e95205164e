"""The files of a demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from signspot.atomic import names_in, output_folder
from signspot.errors import InputError
from signspot.workflows.outputs import Output, Outputs
from signspot.workflows.world import WorldFolder

_MARK = ".signspot-demo"  # a folder that carries it was made by the demo and may be written again


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """The names of what a demo leaves."""

    folder: Path

    @property
    def world(self) -> WorldFolder:
        """The signing world, as ordinary files."""
        return WorldFolder(self.folder / "world")

    @property
    def vectors(self) -> Path:
        """The store of the trunk's vectors."""
        return self.folder / "vectors"

    @property
    def heads(self) -> Path:
        """What was learned."""
        return self.folder / "heads"

    @property
    def scores(self) -> Path:
        """The table, for scripts."""
        return self.folder / "scores.json"

    @property
    def report(self) -> Path:
        """The report, for people."""
        return self.folder / "report.html"

    @property
    def outputs(self) -> Outputs:
        """What `signspot spot` would write."""
        paths = {
            Output.CSV: self.folder / "spottings.csv",
            Output.EAF: self.folder / "spottings.eaf",
            Output.VIDEO: self.folder / "overlay.mp4",
        }
        return Outputs(paths, overwrite=True)

    def claim(self) -> None:
        """Make the folder ours, or refuse one that holds somebody's files."""
        folder, mark = self.folder, self.folder / _MARK
        if folder.exists() and (not folder.is_dir() or (names_in(folder) and not mark.exists())):
            raise InputError(folder, "is there already and was not made by the demo", "name another folder")
        output_folder(folder)
        mark.touch()
