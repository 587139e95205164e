"""Print the shape of the package: how many rooms it has, how they hang together, and how many a command walks through.

A report, not a gate: `make shape`. Imports are counted once for each pair of modules. A command touches a module if it
calls one of its functions; the commands run on a small synthetic world that is made for it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "signspot"


def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name."""
    files = sorted(PACKAGE.rglob("*.py"))
    return {_dotted(path): ast.parse(path.read_text()) for path in files}


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.Module, known: set[str]) -> set[str]:
    """The modules of ours that a module imports anywhere, also inside functions, but not for types alone."""
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in typing_only:
            for name in node.names:
                found |= {module for module in (f"{node.module}.{name.name}", node.module) if module in known}
    return {module for module in found if not any(other.startswith(f"{module}.") for other in found)}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of imports, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def public_names(tree: ast.Module) -> int:
    """How many classes and functions of a module do not begin with an underscore."""
    defined = (node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return sum(not name.startswith("_") for name in defined)


@contextlib.contextmanager
def touched(into: set[str]) -> Iterator[None]:
    """Collect the files of ours whose functions are called."""
    home = str(PACKAGE)

    def see(frame: FrameType, event: str, _: Any) -> None:
        if (
            event == "call"
            and (name := frame.f_code.co_filename).startswith(home)
            and frame.f_code.co_name != "<module>"
        ):
            into.add(name)

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def walks(folder: Path) -> Iterator[tuple[str, int]]:
    """How many modules some commands touch."""
    from tests.cli.test_demo import TINY

    from signspot.cli.main import run
    from signspot.world.settings import PRESETS

    PRESETS["tiny"] = TINY
    world, config = folder / "world", folder / "run.toml"
    config.write_text('loss = "watch-read-lookup"\nepochs = 2\nbatch_size = 4\n')
    video, dictionary = world / "corpus" / "episodes" / "test-0000.mp4", ("--dictionary", world / "dictionary")
    made = ("--corpus", world / "corpus", *dictionary, "--trunk", "world-v1", "--out", folder / "material")
    learned = ("--data", folder / "material", "--out", folder / "run")

    def command(*words: object) -> Callable[[], int]:
        return lambda: run([str(word) for word in words])

    for name, is_shown, walk in (
        ("world make", False, command("world", "make", world, "--preset", "tiny", "--side", 96)),
        (
            "spot",
            True,
            command("spot", video, "afraid", "view", *dictionary, "--no-store", "--csv", folder / "found.csv"),
        ),
        ("annotate", True, command("annotate", video, *dictionary, "--no-store", "--csv", folder / "placed.csv")),
        ("train material", False, command("train", "material", *made, "--backend", "torch", "--no-store")),
        ("train embedding", True, command("train", "embedding", config, *learned)),
    ):
        files: set[str] = set()
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as said,
            touched(files),
        ):
            code = walk()
        if code:
            raise SystemExit(f"{name} ended with {code}: {said.getvalue()}")
        if is_shown:
            yield name, len(files)


def main() -> None:
    """Print all figures."""
    trees = modules()
    files = {name: path for path in sorted(PACKAGE.rglob("*.py")) for name in (_dotted(path),)}
    lines = {name: path.read_text().count("\n") for name, path in files.items()}
    graph = {name: imported(tree, set(trees)) - {name} for name, tree in trees.items()}
    thousands = sum(lines.values()) / 1000
    rows: list[tuple[str, object]] = [
        ("files", len(trees)),
        ("lines", sum(lines.values())),
        ("median lines of a file", statistics.median(lines.values())),
        ("longest file", max(lines.values())),
        ("internal imports per 1,000 lines", f"{sum(map(len, graph.values())) / thousands:.1f}"),
        ("public names per 1,000 lines", f"{sum(map(public_names, trees.values())) / thousands:.1f}"),
        ("import cycle", " -> ".join(cycle(graph)) or "none"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows += [(f"modules touched by `{name}`", n) for name, n in walks(Path(folder))]
    for what, value in rows:
        print(f"{what:38} {value}")


if __name__ == "__main__":
    main()
