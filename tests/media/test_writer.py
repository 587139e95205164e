from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.tracks import Pixels
from signspot.errors import EnvironmentProblem, InputError, OutputExists, VideoError
from signspot.figures.overlay import write_overlay
from signspot.media import writer as writer_module
from signspot.media.writer import VideoWriter
from tests.media.answers import video_answer

COLOURS = ((255, 255, 255), (0, 0, 0), (200, 30, 30), (20, 160, 60), (30, 60, 220), (0, 158, 115))


def plain(colour: tuple[int, int, int], width: int = 64, height: int = 48) -> Pixels:
    return np.full((height, width, 3), colour, dtype=np.uint8)


def write(path: Path, times_ms: list[float], *, overwrite: bool = False) -> None:
    with VideoWriter(path, width=64, height=48, overwrite=overwrite) as writer:
        for number, time_ms in enumerate(times_ms):
            writer.write(plain(COLOURS[number % len(COLOURS)]), time_ms)


def read(path: Path) -> list[tuple[float, Pixels]]:
    with av.open(str(path)) as container:
        return [(float(f.time) * 1000, f.to_ndarray(format="rgb24")) for f in container.decode(video=0)]


@pytest.mark.parametrize(
    "times",
    [
        [number * 40.0 for number in range(30)],
        [number * 1001 / 30 for number in range(30)],
        [number * 1000 / 60 for number in range(30)],
        [500 + number * 40.0 for number in range(10)],
        [0.0, 40.0, 55.5, 700.0, 701.0, 10_000.0],
        [3_600_000.0, 3_600_040.0],
        [1234.5],
    ],
    ids=["25", "29.97", "60", "late", "variable", "hour", "one"],
)
def test_every_picture_comes_back_at_its_time(tmp_path: Path, times: list[float]) -> None:
    write(tmp_path / "out.mp4", times)
    pictures = read(tmp_path / "out.mp4")
    assert [time for time, _ in pictures] == pytest.approx(times, abs=0.02)
    for number, (_, pixels) in enumerate(pictures):
        assert np.abs(pixels.astype(int) - COLOURS[number % len(COLOURS)]).max() <= 6


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_times_in_order_are_kept(tmp_path: Path, times: list[float]) -> None:
    write(tmp_path / "out.mp4", sorted(times), overwrite=True)
    distinct = sorted({round(time * 90) for time in times})
    assert [round(time * 90) for time, _ in read(tmp_path / "out.mp4")] == distinct


def test_the_file_is_what_browsers_play(tmp_path: Path) -> None:
    write(tmp_path / "out.mp4", [0, 40, 80])
    with av.open(str(tmp_path / "out.mp4")) as container:
        stream = container.streams.video[0]
        codec = stream.codec_context
        assert (codec.name, codec.pix_fmt) == ("h264", "yuv420p")
        assert (codec.colorspace, codec.color_range, codec.color_primaries, codec.color_trc) == (1, 1, 1, 1)
    content = (tmp_path / "out.mp4").read_bytes()
    assert content.index(b"moov") < content.index(b"mdat")  # plays before all of it has arrived


@pytest.mark.parametrize("threads", [1, 2])
def test_equal_input_gives_equal_bytes_on_any_number_of_processors(tmp_path: Path, threads: int) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 144, 64, 3), dtype=np.uint8)  # tall enough for threads
    processors = os.sched_getaffinity(0)
    try:
        for name, allowed in (("a.mp4", processors), ("b.mp4", processors), ("c.mp4", {min(processors)})):
            os.sched_setaffinity(0, allowed)
            with VideoWriter(tmp_path / name, width=64, height=144, threads=threads) as writer:
                for number, pixels in enumerate(noise):
                    writer.write(pixels, number * 40)
    finally:
        os.sched_setaffinity(0, processors)
    assert len({(tmp_path / name).read_bytes() for name in ("a.mp4", "b.mp4", "c.mp4")}) == 1


def test_equal_input_gives_equal_bytes_on_any_kind_of_processor(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    squares = np.kron(noise, np.ones((8, 8, 1), np.uint8))
    moving = [np.roll(squares, (number, 3 * number), axis=(0, 1)) for number in range(30)]
    for name, processor in (("this.mp4", ""), ("plain.mp4", ":asm=0"), ("sse.mp4", ":asm=SSE2")):
        options = dict(writer_module._ENCODER_OPTIONS)
        options["x264-params"] += processor  # what the encoder believes to run on
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(writer_module, "_ENCODER_OPTIONS", options)
            with VideoWriter(tmp_path / name, width=64, height=64) as writer:
                for number, pixels in enumerate(moving):
                    writer.write(pixels, number * 40)
    assert len({(tmp_path / name).read_bytes() for name in ("this.mp4", "plain.mp4", "sse.mp4")}) == 1


@pytest.mark.parametrize("size", [(63, 48), (64, 47), (17, 33), (1, 1)])
def test_odd_sides_grow_by_one_pixel(tmp_path: Path, size: tuple[int, int]) -> None:
    width, height = size
    with VideoWriter(tmp_path / "out.mp4", width=width, height=height) as writer:
        writer.write(plain((200, 30, 30), width, height), 0)
    ((_, pixels),) = read(tmp_path / "out.mp4")
    assert pixels.shape == (height + height % 2, width + width % 2, 3)
    assert np.abs(pixels.astype(int) - (200, 30, 30)).max() <= 6  # the new row and column repeat their neighbours


def test_pictures_in_any_memory_layout_are_written(tmp_path: Path) -> None:
    halves = plain((0, 0, 0))
    halves[:, :32] = 255
    halves.setflags(write=False)
    with VideoWriter(tmp_path / "out.mp4", width=64, height=48) as writer:
        writer.write(halves[:, ::-1], 0)
    ((_, pixels),) = read(tmp_path / "out.mp4")
    assert pixels[:, :24].max() < 20
    assert pixels[:, 40:].min() > 235


def test_of_equal_times_the_first_picture_stays(tmp_path: Path) -> None:
    write(tmp_path / "out.mp4", [0, 40, 40, 40, 80])
    times, pictures = zip(*read(tmp_path / "out.mp4"), strict=True)
    assert times == pytest.approx([0, 40, 80])
    assert pictures[1].max() < 20  # the second colour is black


@pytest.mark.parametrize("times", [[40, 0], [-1], [float("nan")], [0, float("inf")]])
def test_times_that_run_backwards_or_nowhere_are_refused(tmp_path: Path, times: list[float]) -> None:
    with pytest.raises(VideoError, match="a picture at"):
        write(tmp_path / "out.mp4", times)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [plain((0, 0, 0), 65), plain((0, 0, 0)).astype(np.float32), plain((0, 0, 0))[..., 0]])
def test_a_picture_of_another_kind_is_refused(tmp_path: Path, wrong: Pixels) -> None:
    with (
        pytest.raises(VideoError, match="a picture of"),
        VideoWriter(tmp_path / "out.mp4", width=64, height=48) as writer,
    ):
        writer.write(wrong, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_video_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VideoError, match="there is no picture to write"):
        write(tmp_path / "out.mp4", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("after", [0, 1, 30])
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_an_error_midway_leaves_the_folder_as_it_was(tmp_path: Path, after: int, error: type[BaseException]) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"the old video")
    with pytest.raises(error), VideoWriter(path, width=64, height=48, overwrite=True) as writer:
        for number in range(after):
            writer.write(plain((0, 0, 0)), number * 40)
        raise error
    assert path.read_bytes() == b"the old video"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_bytes(b"the old video")
    with pytest.raises(OutputExists, match="exists already"):
        VideoWriter(path, width=64, height=48)
    write(path, [0, 40], overwrite=True)
    assert len(read(path)) == 2


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("out.avi", (64, 48), "ends in .mp4"),
        ("out", (64, 48), "ends in .mp4"),
        ("missing/out.mp4", (64, 48), "folder to write to does not exist"),
        ("out.mp4", (0, 48), "cannot be written"),
        ("out.mp4", (64, 100_000), "cannot be written"),
    ],
)
def test_outputs_that_cannot_be_are_refused_at_once(
    tmp_path: Path, name: str, size: tuple[int, int], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        VideoWriter(tmp_path / name, width=size[0], height=size[1])


@pytest.mark.parametrize("name", ["a b.mp4", "-i.mp4", "http:x.mp4", "ü'\"%03d;.MP4", "zwei\nzeilen.mp4", "手話.mp4"])
def test_any_file_name_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path(name), [0, 40])
    assert len(read(tmp_path / name)) == 2
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.fixture
def size_limit() -> Iterator[object]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_wherever_the_disk_fills_up_nothing_half_remains(tmp_path: Path, size_limit: object) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (12, 48, 64, 3), dtype=np.uint8)

    def write_noise(path: Path) -> None:
        with VideoWriter(path, width=64, height=48) as writer:
            for number, pixels in enumerate(noise):
                writer.write(pixels, number * 40)

    write_noise(tmp_path / "whole.mp4")
    whole = (tmp_path / "whole.mp4").read_bytes()
    for limit in [*np.linspace(0, len(whole) - 1, 23).astype(int).tolist(), len(whole) - 100]:
        size_limit(limit)  # type: ignore[operator]
        with pytest.raises(EnvironmentProblem, match="the disk is full"):
            write_noise(tmp_path / "out.mp4")
        assert [path.name for path in tmp_path.iterdir()] == ["whole.mp4"]
    size_limit(len(whole) + 4096)  # type: ignore[operator]
    write_noise(tmp_path / "out.mp4")
    assert (tmp_path / "out.mp4").read_bytes() == whole


def test_the_overlay_video_keeps_the_times_of_its_frames(tmp_path: Path) -> None:
    times = [500.0, 533.4, 566.7, 700.0, 2000.0]
    frames = ((plain(COLOURS[number]), time) for number, time in enumerate(times))
    write_overlay(frames, video_answer({"apple": [100]}), tmp_path / "out.mp4")
    pictures = read(tmp_path / "out.mp4")
    assert [time for time, _ in pictures] == pytest.approx(times, abs=0.02)
    for (_, picture), colour in zip(pictures, COLOURS, strict=False):
        assert np.abs(picture[170:190, 310:330].astype(int) - colour).max() <= 8


def test_an_overlay_that_breaks_midway_leaves_no_file(tmp_path: Path) -> None:
    def breaking() -> Iterator[tuple[Pixels, float]]:
        yield plain((0, 0, 0)), 0.0
        raise VideoError("news.mp4", "cannot be read any further")

    with pytest.raises(VideoError, match="any further"):
        write_overlay(breaking(), video_answer({"apple": [100]}), tmp_path / "out.mp4")
    assert list(tmp_path.iterdir()) == []


def test_an_overlay_takes_its_frames_one_at_a_time(tmp_path: Path) -> None:
    written: list[int] = []

    def watched() -> Iterator[tuple[Pixels, float]]:
        for number in range(20):
            written.append(number)
            yield plain((number, 0, 0)), number * 40.0

    with pytest.raises(OutputExists, match="exists already"):
        (tmp_path / "out.mp4").touch()
        write_overlay(watched(), video_answer({"apple": [100]}), tmp_path / "out.mp4")
    assert written == []  # refused before the first frame is read
