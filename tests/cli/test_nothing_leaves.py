"""No command talks to another computer or writes outside its outputs, its store and the temporary folder.

Every command runs under strace, which sees what any library does, too, in this process and in those it starts. The
variable CI is not set, because libraries that report their use often keep quiet where it is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import typer.main

from signspot.cli.main import app
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, I3DConfig
from tests.cli.test_demo import untrained_trunk
from tests.workflows.test_train_trunk import TINY as TRUNK

ROOT = Path(__file__).parents[2]
EXTRAS = ("openvino", "mediapipe", "dlib", "face_recognition_models", "sklearn", "nltk", "tensorboard", "ray")

# The commands of a journey one after the other, so that libraries are loaded once. It tells the tracer where each of
# them begins by opening a file that is not there.
PROGRAM = """
import contextlib, json, sys
from dataclasses import replace

from signspot.cli.main import run
from signspot.world.settings import PRESETS
from tests.cli.test_demo import TINY

PRESETS["tiny"] = TINY  # worlds of seconds, which no user has
PRESETS["long"] = replace(TINY, name="long", subtitles_per_episode=8)
if __name__ == "__main__":
    for number, words in enumerate(json.loads(sys.argv[1])):
        with contextlib.suppress(FileNotFoundError):
            open(f"/begins/{number}")
        if "FIRST" in words:
            words[words.index("FIRST")] = json.loads(open("found.jsonl").readline())["spotting_id"]
        if code := run(words):
            sys.exit(f"{words} ended with {code}")
"""

# In each journey, later commands use what earlier ones wrote. The words are those of the tiny world.
JOURNEYS = {
    "searching": """
world make world --preset tiny --side 96 --other-language
landmarks world/dictionary/clips/afraid_1.mp4 --out poses
dictionary check world/dictionary
dictionary import wlasl.json world/dictionary/clips
dictionary build world/dictionary built --signers-by-face
embed world/corpus/episodes/test-0000.mp4 --model untrained.safetensors --backend openvino
spot world/dictionary/clips/afraid_1.mp4 afraid view --dictionary world/dictionary --model world-v1 --no-store
spot world/corpus/episodes/test-0000.mp4 afraid view --dictionary world/dictionary --threshold -1 --csv found.csv \
--jsonl found.jsonl --parquet found.parquet --vtt found.vtt --eaf found.eaf --via via.json --plot f.png --video f.mp4
spot poses/afraid_1.pose --query world/dictionary/clips/view_1.mp4
annotate world/corpus/episodes/test-0000.mp4 --dictionary world/dictionary --synonyms --csv placed.csv
lookup world/dictionary/clips/view_1.mp4 --sheet guesses.png
variants world/corpus afraid --dictionary world/dictionary --out variants
mine find world/corpus afraid --dictionary world/dictionary --threshold -1 --rights-cleared --out mined
mine accept mined/mined.csv --dictionary world/dictionary
friends world/dictionary world/dictionary-qab --out friends
export found.csv --json exported.json
why found.csv FIRST
store list
store verify
store remove world/corpus/episodes/test-0000.mp4
""",
    "learning": """
world make world --preset long --side 96
world preview preview --preset tiny
world measure --preset tiny
demo demo --preset tiny --model untrained.safetensors --epochs 2 --backend torch
models list
models show landmark-v1 --words
models import weights.pth --name imported
corpus check world/corpus --full
corpus import dict_spottings.json world/corpus/episodes
train split --corpus world/corpus --test-words 2 --out split.json
calibrate untrained.safetensors --corpus world/corpus --dictionary world/dictionary --out made.calibration --complete
train trunk trunk.toml --dictionary world/dictionary --out trunk
train material --corpus world/corpus --dictionary world/dictionary --trunk untrained.safetensors --out material
train embedding embedding.toml --data material --out run
train compare run run
evaluate untrained.safetensors --corpus world/corpus --dictionary world/dictionary --corpus-split test --out evaluated
""",
}
WLASL = """[{"gloss": "view", "instances": [{"video_id": "view_1", "frame_start": 1, "frame_end": -1, "signer_id": 1,
"bbox": [0, 0, 96, 96], "fps": 25, "split": "train", "source": "", "url": "", "variation_id": 0, "instance_id": 0}]}]"""
FETCHES = {"models fetch"}  # the one command that says it uses the network


@dataclass(frozen=True)
class Computer:
    """A user's folders, and nothing of the machine the tests run on."""

    home: Path
    work: Path
    temporary: Path

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LD_LIBRARY_PATH")}
        return kept | {
            "HOME": str(self.home), "TMPDIR": str(self.temporary), "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1",
        }  # fmt: skip

    def may_write(self, path: str) -> bool:
        whole = Path(os.path.normpath(self.work / path))
        ours = (self.home / ".cache" / "signspot", self.home / ".local" / "share" / "signspot")
        allowed = (self.work, self.temporary, *ours, Path("/dev"), Path("/proc"))
        return any(whole.is_relative_to(folder) for folder in allowed) or any(whole in one.parents for one in ours)


def strace() -> str:
    """The tracer, installed where the tests may install things."""
    if sys.platform != "linux":
        pytest.skip("system calls are traced on Linux only")
    if shutil.which("strace") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "--yes", "strace"], capture_output=True, check=False)
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed: apt-get install strace")
    return found


@pytest.fixture
def computer(tmp_path: Path) -> Computer:
    folder = tmp_path / "computer"
    made = Computer(folder / "home", folder / "work", folder / "tmp")
    for one in (made.home, made.work, made.temporary):
        one.mkdir(parents=True)
    untrained_trunk(made.work / "untrained.safetensors")
    return made


def traced(computer: Computer, command: list[str]) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """What the command printed, and every system call with which it named a file to write or another computer."""
    log = computer.work.parent / "calls.log"
    calls = (
        "connect,sendto,sendmsg,sendmmsg,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink"
    )
    tracer = [strace(), "-f", "--seccomp-bpf", "-qq", "-s", "400", "-e", f"trace={calls}", "-o", str(log)]
    done = subprocess.run(
        [*tracer, *command], cwd=computer.work, env=computer.environment(), capture_output=True, text=True, check=False
    )
    return done, log.read_text(errors="replace").splitlines()


def is_fault(computer: Computer, call: str) -> bool:
    """Whether a user who works alone with his files would not expect the call."""
    return _asks_another(call) or not computer.may_write(_written(call))


def _asks_another(call: str) -> bool:
    """Whether a call names another computer, or looks up a name (at port 53 of a server, often a local one)."""
    if "/etc/resolv.conf" in call or "htons(53)" in call:
        return True
    near = r'inet_addr\("127\.|inet_addr\("0\.0\.0\.0"\)|"::1"|"::"'
    return re.search(r"sa_family=AF_INET6?,", call) is not None and re.search(near, call) is None


def _written(call: str) -> str:
    """The file or folder that a call made or opened for writing, or nothing."""
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', call)
    name = re.sub(r"^\d+\s+", "", call).split("(", 1)[0]
    if not quoted or " = -1 " in call or name in ("connect", "sendto", "sendmsg", "sendmmsg"):
        return ""
    only_read = name in ("open", "openat") and not re.search(r"O_WRONLY|O_RDWR|O_CREAT", call)
    return "" if only_read else quoted[-1]


def commands(journey: str) -> list[list[str]]:
    return [shlex.split(line) for line in JOURNEYS[journey].strip().splitlines()]


def test_the_journeys_visit_every_command() -> None:
    tree = typer.main.get_command(app)
    names = {
        f"{name} {below}".strip()
        for name, command in tree.commands.items()  # type: ignore[attr-defined]
        for below in getattr(command, "commands", {"": None})
    }
    visited = {
        name
        for name in names
        for journey in JOURNEYS
        for words in commands(journey)
        if words[: len(name.split())] == name.split()
    }
    assert names - visited == FETCHES


@pytest.mark.timeout(900)
@pytest.mark.parametrize("journey", JOURNEYS)
def test_no_command_calls_home_or_writes_elsewhere(computer: Computer, journey: str) -> None:
    program = computer.work / "program.py"
    program.write_text(PROGRAM)
    _write_inputs(computer.work)
    done, calls = traced(computer, [sys.executable, str(program), json.dumps(commands(journey))])
    assert done.returncode == 0, done.stderr[-3000:]
    problems: dict[str, list[str]] = {}
    command = "loading"
    for call in calls:
        if begins := re.search(r'"/begins/(\d+)"', call):
            command = shlex.join(commands(journey)[int(begins[1])])
        if is_fault(computer, call):
            problems.setdefault(command, []).append(call)
    assert problems == {}


def _write_inputs(folder: Path) -> None:
    head = Head(HeadConfig(activation_after_last="released", classes=7)).state_dict()
    trunk = I3D(I3DConfig(classes=7)).state_dict()
    state = {f"{part}.{name}": t for part, net in (("i3d", trunk), ("mlp", head)) for name, t in net.items()}
    torch.save(state, folder / "weights.pth")
    (folder / "wlasl.json").write_text(WLASL)
    spotted = {"names": ["test-0000"], "global_times": [1.0], "probs": [0.9]}
    (folder / "dict_spottings.json").write_text(json.dumps({"train": {"afraid": spotted}, "test": {}}))
    (folder / "trunk.toml").write_text(TRUNK)
    (folder / "embedding.toml").write_text("epochs = 1\nbatch_size = 4\n")


def test_every_extra_is_there_to_be_watched() -> None:
    assert [name for name in EXTRAS if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 9))", "192.0.2.1"),
        ("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.53', 53))", "htons(53)"),
        ("open('/etc/resolv.conf')", "resolv.conf"),
        ("from pathlib import Path; Path.home().joinpath('kept').write_text('x')", "kept"),
        ("from pathlib import Path; Path.home().joinpath('intel').mkdir()", "intel"),
    ],
)
def test_a_planted_fault_is_seen(computer: Computer, program: str, fault: str) -> None:
    _, calls = traced(computer, [sys.executable, "-c", program])
    assert any(fault in call for call in calls if is_fault(computer, call))
