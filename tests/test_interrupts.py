from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.toy_world import ToyWorld

PATIENCE = 10.0  # a quiet machine takes less than two seconds; this one may be busy
SLOW = ("-m", "world-v1", "--backend", "torch", "--no-store")
TINY_TRUNK = """
sources = "dictionary"
width = 0.03125
side = 40
crop = 32
batch_size = 2
stage2_epochs = 5000
decay_epochs = []
threads = 1
"""


@dataclass(frozen=True)
class Ended:
    """How a program that was sent a signal ended."""

    code: int
    error: str
    seconds: float
    left: tuple[int, ...]  # its processes that were still there


def hears_signals() -> None:
    """In the new process: a test that runs in the background ignores Ctrl-C, and so would what it starts."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def processes_marked(mark: str) -> tuple[int, ...]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return tuple(found)


def ended(
    words: list[str],
    folder: Path,
    is_at_work: Callable[[int], bool],
    number: int = signal.SIGINT,
    *,
    group: bool = False,
    again_after: float | None = None,
) -> Ended:
    """Start Python with these words, wait until it is at work, send it (or its whole group) the signal."""
    mark = secrets.token_hex(8)
    (folder / "tmp").mkdir(exist_ok=True)
    own = {"SIGNSPOT_TEST": mark, "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("XDG_")} | own,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_signals,
    ) as process:
        try:
            begun = time.monotonic()
            while not is_at_work(process.pid):
                assert process.poll() is None, process.stderr and process.stderr.read()
                assert time.monotonic() - begun < 120
                time.sleep(0.02)
            (os.killpg if group else os.kill)(process.pid, number)
            sent = time.monotonic()
            if again_after is not None:
                time.sleep(again_after)
                process.send_signal(number)
            _, error = process.communicate(timeout=60)
            seconds = time.monotonic() - sent
            while (left := processes_marked(mark)) and time.monotonic() - sent < PATIENCE:
                time.sleep(0.02)
        finally:
            for pid in processes_marked(mark):
                os.kill(pid, signal.SIGKILL)
    return Ended(process.returncode, error, seconds, left)


def decodes(pid: int) -> bool:
    """Whether the process has started another."""
    try:
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:
        return False


def assert_ended_in_order(done: Ended, number: int, folder: Path) -> None:
    assert done.code == 128 + number, done.error
    assert done.error.startswith("signspot: interrupted") and done.error.count("\n") == 1, done.error
    assert done.seconds < PATIENCE and not done.left
    remains = [path for path in folder.rglob("*") if ".tmp" in path.name]
    remains += [path for path in (folder / "tmp").iterdir() if "torch" not in path.name]  # torch leaves a cache
    assert not remains


def there(pattern: str) -> Callable[[Path], Callable[[int], bool]]:
    return lambda folder: lambda pid: any(folder.glob(pattern))


COMMANDS: dict[str, tuple[list[str], Callable[[Path], Callable[[int], bool]], str]] = {
    "spot": (["spot", "{video}", "apple", "-d", "{signs}", *SLOW], lambda _: decodes, ""),
    "spot a folder": (
        ["spot", "{videos}", "apple", "-d", "{signs}", *SLOW, "--csv", "all.csv"],
        lambda _: decodes,
        "",
    ),
    "annotate": (["annotate", "{video}", "-d", "{signs}", *SLOW, "--eaf", "new.eaf"], lambda _: decodes, ""),
    "embed": (["embed", "{video}", *SLOW[:4], "--store", "store"], lambda _: decodes, ""),
    "variants": (["variants", "{video}", "apple", "-d", "{signs}", *SLOW], lambda _: decodes, ""),
    "corpus check": (["corpus", "check", "{many}", "--full"], lambda _: decodes, ""),
    "world make": (["world", "make", "new"], there("new/corpus/episodes/.*"), "what is drawn stays in new"),
    "demo": (["demo", "new"], there("new/world/corpus/episodes/.*"), "what is drawn stays in new/world"),
    "train trunk, decoding": (
        ["train", "trunk", "tiny.toml", "--dictionary", "{signs}", "--out", "run"],
        there("run-frames/.*"),
        "nothing is learned yet",
    ),
    "train trunk, learning": (
        ["train", "trunk", "tiny.toml", "--dictionary", "{signs}", "--out", "run"],
        there("run/curves.jsonl"),
        "the state is saved in run: run the same command with --resume to continue",
    ),
}


@pytest.mark.parametrize(
    ("name", "number", "group"),
    [
        (name, number, group)
        for place, name in enumerate(COMMANDS)
        for number, group in (
            [(signal.SIGINT, True), (signal.SIGTERM, False)]
            if name in ("world make", "train trunk, decoding")
            else [(signal.SIGINT, place % 2 == 0) if place % 3 else (signal.SIGTERM, place % 2 == 0)]
        )
    ],
)
def test_a_command_obeys_a_signal(name: str, number: int, group: bool, toy_world: ToyWorld, tmp_path: Path) -> None:
    words, at_work, said = COMMANDS[name]
    for folder, copies in (("videos", 2), ("many", 40)):
        (tmp_path / folder).mkdir()
        for copy in range(copies):
            os.link(toy_world.broadcast, tmp_path / folder / f"{copy}.mp4")
    (tmp_path / "tiny.toml").write_text(TINY_TRUNK)
    places = {"video": toy_world.broadcast, "signs": toy_world.dictionary}
    places |= {"videos": tmp_path / "videos", "many": tmp_path / "many"}
    words = [word.format(**places) for word in words]
    done = ended(["-m", "signspot", *words], tmp_path, at_work(tmp_path), number, group=group)
    assert_ended_in_order(done, number, tmp_path)
    assert said in done.error
    is_saved = (tmp_path / "run" / "state.safetensors").exists()
    assert ("the state is saved" in done.error) == is_saved


def run_script(folder: Path, body: str, **more: float) -> Ended:
    script = f"import time\nfrom pathlib import Path\nfrom signspot import interrupts\n{body}"
    return ended(["-c", script], folder, lambda pid: (folder / "ready").exists(), **more)  # type: ignore[arg-type]


def test_a_program_inside_a_library_says_its_last_words_and_ends(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
import hashlib
interrupts.listen()
Path("half.tmp").touch()
with interrupts.at_interruption(lambda: "saved"), interrupts.gone_afterwards(Path("half.tmp")):
    Path("ready").touch()
    hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 10**9)
""",
    )
    assert_ended_in_order(done, signal.SIGINT, tmp_path)
    assert done.error == "signspot: interrupted; saved\n"


def test_an_interruption_that_falls_into_a_destructor_is_not_lost(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
import sys
class Slow:
    def __del__(self):
        Path("ready").touch()
        time.sleep(5)
interrupts.listen()
try:
    Slow()
    time.sleep(60)
except KeyboardInterrupt:
    sys.stderr.write(f"signspot: {interrupts.message()}\\n")
interrupts.leave(interrupts.exit_code())
""",
    )
    assert_ended_in_order(done, signal.SIGINT, tmp_path)


ENDLESS_FAREWELL = """
interrupts.listen()
Path("half.tmp").touch()
with interrupts.gone_afterwards(Path("half.tmp")), interrupts.at_interruption(lambda: time.sleep({})):
    Path("ready").touch()
    time.sleep(60)
"""


def test_a_later_signal_ends_the_program_at_once(tmp_path: Path) -> None:
    done = run_script(tmp_path, ENDLESS_FAREWELL.format(60), again_after=1.5)
    assert done.code == 130 and done.error == "" and done.seconds < PATIENCE
    assert not (tmp_path / "half.tmp").exists()


def test_one_key_press_that_arrives_twice_is_one(tmp_path: Path) -> None:
    done = run_script(tmp_path, ENDLESS_FAREWELL.format(1.5), again_after=0.1)
    assert done.seconds > 1.4 and "Stopped" in done.error  # nobody caught it in this script


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as nohup does with another one
interrupts.listen()
Path("ready").touch()
time.sleep(1)
""",
    )
    assert done.code == 0 and done.error == ""


def test_a_block_is_not_cut_in_two(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
interrupts.listen()
try:
    with interrupts.undisturbed():
        Path("ready").touch()
        time.sleep(1)
        Path("whole").touch()
    Path("beyond").touch()
except KeyboardInterrupt:
    interrupts.leave(interrupts.exit_code())
""",
    )
    assert done.code == 130 and (tmp_path / "whole").exists() and not (tmp_path / "beyond").exists()
