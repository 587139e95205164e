"""The decoding process may die in any way: the reader says so, at once, and leaves nothing behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import SignerBox
from signspot.domain.tracks import FrameShape
from signspot.errors import EnvironmentProblem, SignspotError, VideoError
from signspot.media import video as messages
from signspot.media.reader import VideoReader
from signspot.media.video import Limits, ReadRequest
from tests.media.videos import Recipe, make_video


def children() -> set[int]:
    """The living and dead children of this process."""
    own = str(os.getpid())
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[1] == own:
            found.add(int(stat.parent.name))
    return found


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def video(tmp_path: Path) -> Path:
    """Larger than what fits into the pipe, so that its decoder is still at work when it is hit."""
    return make_video(tmp_path / "video.mp4", Recipe(width=640, height=480, count=60))


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    before, files = children(), open_files()
    yield
    gc.collect()
    assert children() == before
    assert open_files() == files


def only_child(before: set[int]) -> int:
    (child,) = children() - before
    return child


def hit(video: Path, blow: signal.Signals, limits: Limits) -> tuple[VideoError, float]:
    """Strike the decoder in mid-video; the error that follows and how long it took."""
    before = children()
    with VideoReader(video, limits=limits) as reader:
        frames = iter(reader)
        next(frames)
        os.kill(only_child(before), blow)
        began = time.monotonic()
        with pytest.raises(VideoError) as raised:
            list(frames)
        return raised.value, time.monotonic() - began


@pytest.mark.parametrize(
    ("blow", "words"),
    [
        (signal.SIGKILL, "decoding was stopped by the system after 0:0"),
        (signal.SIGSEGV, r"the decoder crashed after 0:0"),
        (signal.SIGABRT, r"the decoder crashed after 0:0"),
    ],
)
def test_a_decoder_that_dies_is_an_error_that_names_the_file(video: Path, blow: signal.Signals, words: str) -> None:
    error, seconds = hit(video, blow, Limits())
    assert words in str(error) and error.where == str(video) and seconds < 5


def test_a_decoder_that_hangs_is_ended(video: Path) -> None:
    error, seconds = hit(video, signal.SIGSTOP, Limits(stall_seconds=3.0))
    assert "made no progress for 3 seconds" in str(error) and seconds < 8


def test_a_slow_consumer_is_no_stall(video: Path) -> None:
    with VideoReader(video, limits=Limits(stall_seconds=2.5)) as reader:
        frames = iter(reader)
        next(frames)
        time.sleep(3)
        assert len(list(frames)) == 59


@pytest.mark.parametrize("megabytes", [1, 60, 250])
def test_too_little_memory_is_an_error_not_a_crash(video: Path, megabytes: int) -> None:
    began = time.monotonic()
    with (
        pytest.raises(SignspotError) as raised,
        VideoReader(video, limits=Limits(memory_bytes=megabytes << 20)) as reader,
    ):
        list(reader)
    assert isinstance(raised.value, EnvironmentProblem | VideoError)
    assert time.monotonic() - began < 20 and str(video) in str(raised.value)


def test_leaving_the_loop_ends_the_decoder(video: Path) -> None:
    before = children()
    for _ in VideoReader(video):
        assert len(children() - before) == 1
        break
    assert children() == before


def test_an_error_in_the_loop_ends_the_decoder(video: Path) -> None:
    before = children()
    with pytest.raises(ZeroDivisionError), VideoReader(video) as reader:
        for _ in reader:
            raise ZeroDivisionError
    assert children() == before


def test_a_reader_that_is_forgotten_ends_its_decoder(video: Path) -> None:
    before = children()
    reader = VideoReader(video)
    assert len(children() - before) == 1
    del reader
    assert children() == before


def test_reading_to_the_end_leaves_no_process(video: Path) -> None:
    before = children()
    reader = VideoReader(video)
    assert len(list(reader)) == 60
    assert children() == before and reader.report.partial == ""


WAITING_READER = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background starts programs that ignore it
from signspot.media.reader import VideoReader
with VideoReader(Path(sys.argv[1])) as reader:
    for frame in reader:
        sys.stdout.write("reading\\n")
        sys.stdout.flush()
        time.sleep(60)
"""


def decoders_of(parent: int) -> list[int]:
    listing = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(pid) for pid in listing.split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_reader_that_is_ended_takes_its_decoder_with_it(video: Path, blow: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING_READER, str(video)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as reader:
        assert reader.stdout is not None and reader.stdout.readline() == b"reading\n"
        (decoder,) = decoders_of(reader.pid)
        reader.send_signal(blow)
        reader.wait(10)
    deadline = time.monotonic() + 5
    while is_running(decoder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(decoder)


def test_the_decoder_loads_nothing_heavy() -> None:
    script = "import sys, signspot.media.child, signspot.media.decoder; sys.stdout.write(repr(sorted(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "'av'" in loaded
    assert not {"torch", "matplotlib", "pandas", "scipy", "pyarrow", "typer"} & set(eval_names(loaded))


def eval_names(listing: str) -> list[str]:
    names: list[str] = json.loads(listing.replace("'", '"'))
    return names


def test_a_module_in_the_working_folder_is_not_imported(
    video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    (tmp_path / "av.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert len(list(VideoReader(video))) == 60


def run_child(request: ReadRequest) -> bytes:
    done = subprocess.run([sys.executable, "-m", "signspot.media.child"], input=request.pack(), capture_output=True)
    return done.stdout


def test_a_decoder_whose_reader_is_gone_stops(video: Path) -> None:
    # The standard input is closed with the request: the reader has gone before the first picture.
    output = run_child(ReadRequest(path=video, shape=None, limits=Limits()))
    assert len(output) < 60 * 640 * 480 * 3


def test_requests_and_answers_survive_the_journey(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff new\nline \xe2\x82\xac.mp4")
    box = SignerBox(0.1, 1 / 3, 0.7, 1)
    for shape, part in ((None, None), (FrameShape(256, 224, True), None), (FrameShape(256, 224, True, True), box)):
        request = ReadRequest(path=odd, shape=shape, limits=Limits(stall_seconds=1.5), box=part)
        assert ReadRequest.unpack(request.pack()) == request
    for kind in (VideoError, EnvironmentProblem):
        error = kind(odd, "a\nb", "fix")
        again = messages.unpack_error(messages.pack_error(error), odd)
        assert type(again) is kind and str(again) == str(error)


LIARS = {
    "a frame larger than allowed": messages.HEADER.pack(b"I", 2) + b"{}",
    "an unknown kind": messages.HEADER.pack(b"?", 3) + b"abc",
    "an endless text": messages.HEADER.pack(b"I", 2**32 - 1),
    "a broken text": messages.HEADER.pack(b"I", 4) + b"\xff{[(",
    "an unknown error": messages.HEADER.pack(b"E", 47) + b'{"kind": "SystemExit", "what": "x", "fix": "y"}',
    "nothing": b"",
}


@pytest.mark.parametrize("lie", LIARS)
def test_a_decoder_that_talks_nonsense_is_not_believed(
    lie: str, video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = tmp_path / "liar"
    liar.write_text(f"#!{sys.executable}\nimport os\nos.write(1, {LIARS[lie]!r})\n")
    liar.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(liar))
    with pytest.raises(VideoError, match=r"the decoder (gave a wrong answer|stopped without a reason)"):
        VideoReader(video)


def test_a_python_that_cannot_start_is_a_problem_of_the_machine(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(EnvironmentProblem, match="the decoding process could not start"):
        VideoReader(video)


def test_readers_in_a_row_leak_nothing(tmp_path: Path) -> None:
    path = make_video(tmp_path / "short.mp4", Recipe(count=20))
    before = open_files()
    for _ in range(8):
        with VideoReader(path, shape=FrameShape(64, 64)) as reader:
            assert np.stack([frame.pixels for frame in reader]).shape == (20, 64, 64, 3)
    assert open_files() == before
