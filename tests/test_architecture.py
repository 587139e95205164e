"""The house keeps its shape: data flows down the rows, and each library lives where it belongs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "signspot"

ROWS = (
    {"errors"},
    {"interrupts"},
    {"atomic"},
    {"domain"},
    {"quarantine"},
    {"media", "text", "evaluation"},
    {"formats", "models", "spotting"},
    {"features", "world"},
    {"learning", "search", "review"},
    {"workflows"},
    {"cli", "web"},
)
ROW_OF = {name: row for row, names in enumerate(ROWS) for name in names}

# Which folders (or single modules) may import a library. A library that is not named here is free to use.
HOMES = {
    "torch": ("models", "features", "learning", "quarantine"),
    "av": ("media",),
    "sqlite3": ("features", "review"),
    "faiss": ("search",),
    "ray": ("features/engines/ray.py",),
    "typer": ("cli",),
    "click": ("cli",),
    "rich": ("cli",),
    "fastapi": ("web",),
    "subprocess": ("media", "quarantine"),
    "multiprocessing": ("media",),
    "matplotlib": ("media",),
    "PIL": ("media", "world"),
    "lxml": ("text", "formats"),
    "pysubs2": (),  # only tests compare with it
    "pympi": (),
    "ttconv": ("text",),
    "pyarrow": ("formats", "features"),
    "signspot": (),  # handled by the rows
}
OPTIONAL = {
    "mediapipe",
    "pose_format",
    "ray",
    "openvino",
    "dlib",
    "face_recognition_models",
    "sklearn",
    "nltk",
    "tensorboard",
}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "os.system", "os.popen", "yaml.load", "breakpoint", "print"}
DOMAIN_MAY_IMPORT = {"numpy"}
STANDARD = set(__import__("sys").stdlib_module_names)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports(tree: ast.Module) -> Iterator[tuple[str, int, bool]]:
    """Every imported module, its line, and whether it is imported at the top of the file."""
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, node.lineno, id(node) in top
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                yield "." * node.level + base, node.lineno, id(node) in top
            elif base == "signspot":
                for name in node.names:
                    yield f"signspot.{name.name}", node.lineno, id(node) in top
            else:
                yield base, node.lineno, id(node) in top


def import_faults(path: Path, package: Path = PACKAGE) -> list[str]:
    """What is wrong with the imports of one module."""
    relative = path.relative_to(package)
    here = relative.parts[0].removesuffix(".py")
    faults = []
    for name, line, at_top in imports(ast.parse(path.read_text())):
        where = f"{relative}:{line}"
        root = name.split(".")[0]
        if name.startswith("."):
            faults.append(f"{where}: relative import {name}")
        elif root == "signspot" and here in ROW_OF:
            parts = name.split(".")
            target = parts[1] if len(parts) > 1 else ""
            if target not in ROW_OF:
                faults.append(f"{where}: imports {name}, which is in no row")
            elif target != here and ROW_OF[target] >= ROW_OF[here]:
                faults.append(f"{where}: {here} imports {target}, which does not stand above it")
        elif here == "domain" and root not in STANDARD | DOMAIN_MAY_IMPORT:
            faults.append(f"{where}: domain imports {root}")
        if root in FORBIDDEN_MODULES and here != "quarantine":
            faults.append(f"{where}: imports {root}")
        if root != "signspot" and root in HOMES and not relative.as_posix().startswith(HOMES[root]):
            faults.append(f"{where}: {root} is used outside {HOMES[root]}")
        if root in OPTIONAL and at_top:
            faults.append(f"{where}: the optional {root} is imported at the top of the file")
    return faults


def call_faults(path: Path, package: Path = PACKAGE) -> list[str]:
    """Calls and statements that have no place in the package."""
    faults = []
    for node in ast.walk(ast.parse(path.read_text())):
        where = f"{path.relative_to(package)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Assert):
            faults.append(f"{where}: assert in the package")
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            faults.append(f"{where}: bare except")
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            words = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg}
            if called in FORBIDDEN_CALLS:
                faults.append(f"{where}: calls {called}")
            if words.get("shell") == "True" or words.get("allow_pickle") == "True":
                faults.append(f"{where}: {called} with shell or allow_pickle")
            if called == "torch.load" and words.get("weights_only") != "True":
                faults.append(f"{where}: torch.load without weights_only=True")
    return faults


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_module_keeps_to_its_place(path: Path) -> None:
    assert import_faults(path) + call_faults(path) == []


@pytest.mark.parametrize(
    ("module", "line", "fault"),
    [
        ("domain/spans.py", "from signspot.media.reader import VideoReader", "domain imports media"),
        ("media/reader.py", "import signspot.text.subtitles", "media imports text"),
        ("spotting/peaks.py", "from signspot import workflows", "spotting imports workflows"),
        ("formats/eaf.py", "import torch", "torch is used outside"),
        ("workflows/spot.py", "import subprocess", "subprocess is used outside"),
        ("domain/words.py", "import lxml", "domain imports lxml"),
        ("models/head.py", "import pickle", "imports pickle"),
        ("features/extract.py", "from .store import x", "relative import"),
        ("media/landmarks.py", "import mediapipe", "the optional mediapipe"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, module: str, line: str, fault: str) -> None:
    planted = tmp_path / module
    planted.parent.mkdir()
    planted.write_text(f'"""A module."""\n\n{line}\n')
    assert any(fault in found for found in import_faults(planted, tmp_path))


@pytest.mark.parametrize(
    "line",
    ["print('x')", "eval('1')", "assert True", "run(x, shell=True)", "np.load(f, allow_pickle=True)", "torch.load(f)"],
)
def test_a_planted_call_is_found(tmp_path: Path, line: str) -> None:
    planted = tmp_path / "module.py"
    planted.write_text(line)
    assert call_faults(planted, tmp_path)
