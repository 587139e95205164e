"""The house keeps its shape: data flows down the rows, and each library lives where it belongs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from signspot import _HOMES as PUBLIC

PACKAGE = Path(__file__).parents[1] / "src" / "signspot"

ROWS = (
    {"errors"},
    {"interrupts"},
    {"domain"},
    {"files"},
    {"media", "text", "evaluation"},
    {"stores", "figures", "models", "spotting"},
    {"formats"},
    {"embedding", "world"},
    {"learning", "search", "review"},
    {"workflows"},
    {"cli", "web"},
    {"__main__"},
)
ROW_OF = {name: row for row, names in enumerate(ROWS) for name in names}

# Which folders (or single modules) may import a library. A library that is not named here is free to use.
HOMES = {
    "torch": ("models", "embedding", "learning", "files/pickles"),
    "av": ("media",),
    "sqlite3": ("stores", "review"),
    "faiss": ("search",),
    "ray": ("workflows/batch.py",),
    "typer": ("cli",),
    "click": ("cli",),
    "rich": ("cli",),
    "fastapi": ("web",),
    "subprocess": ("media", "embedding/detector.py", "files/pickles"),
    "multiprocessing": ("media", "workflows/batch.py"),
    "matplotlib": ("figures",),
    "PIL": ("media", "figures", "world"),
    "lxml": ("files", "text", "formats"),
    "pysubs2": (),  # only tests compare with it
    "pympi": (),
    "ttconv": ("text",),
    "pyarrow": ("stores",),
    "scipy": ("evaluation", "spotting"),
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
        if root in FORBIDDEN_MODULES and not relative.as_posix().startswith("files/pickles/"):
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


# Imports of ours inside functions, and why: loading what they name takes long, and most commands do without it.
LATE = {
    "__main__.py": "signals are answered while the program loads",
    "media/child.py": "PyAV is loaded once the process has limited itself",
    "embedding/landmarks.py": "torch",
    "embedding/pictures.py": "torch",
    "embedding/zoo.py": "torch",
}


def hidden_imports(path: Path, package: Path = PACKAGE) -> list[str]:
    """Imports of ours inside functions, where start-up time is no reason for them."""
    relative = path.relative_to(package).as_posix()
    if relative in LATE or relative.startswith("cli/"):
        return []
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [node for function in functions for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
    return [
        f"{relative}:{node.lineno}: imports {node.module} inside a function"
        for node in inside
        if (node.module or "").startswith("signspot")
    ]


def used_names() -> dict[str, set[str]]:
    """Every module of the package that is imported by another one, with the names that are taken from it."""
    used: dict[str, set[str]] = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("signspot"):
                for name in node.names:
                    used.setdefault(node.module or "", set()).add(name.name)
                    used.setdefault(f"{node.module}.{name.name}", set())
    return used


def test_nothing_in_the_package_serves_only_what_is_outside_of_it() -> None:
    used = used_names() | {f"signspot.{home}": set(names) for home, names in PUBLIC.items()}
    started = {"signspot", "signspot.__main__", "signspot.media.child", "signspot.embedding.detector_child",
               "signspot.files.pickles.child"}  # fmt: skip
    names = {path: ".".join(("signspot", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in modules()}
    lonely = [name for name in names.values() if name.removesuffix(".__init__") not in used.keys() | started
              and not name.endswith("__init__")]  # fmt: skip
    assert lonely == []


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_module_keeps_to_its_place(path: Path) -> None:
    assert import_faults(path) + call_faults(path) + hidden_imports(path) == []


@pytest.mark.parametrize(
    ("module", "line", "fault"),
    [
        ("domain/time.py", "from signspot.media.reader import VideoReader", "domain imports media"),
        ("media/reader.py", "import signspot.text.subtitles", "media imports text"),
        ("spotting/peaks.py", "from signspot import workflows", "spotting imports workflows"),
        ("formats/via.py", "import torch", "torch is used outside"),
        ("workflows/spot.py", "import subprocess", "subprocess is used outside"),
        ("domain/recordings.py", "import lxml", "domain imports lxml"),
        ("models/head.py", "import pickle", "imports pickle"),
        ("embedding/pictures.py", "from .model import x", "relative import"),
        ("embedding/detector.py", "import mediapipe", "the optional mediapipe"),
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
