"""What is no video, or no whole one: a message of its own for each, and everything readable delivered."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from signspot.errors import SignspotError, VideoError
from signspot.media.decoder import _measure
from signspot.media.reader import VideoReader
from signspot.media.video import Limits, media_sha256
from tests.media.test_reader import read
from tests.media.videos import Recipe, cut, make_video, number_of

FASTSTART = {"movflags": "faststart"}
FRAGMENTS = {"movflags": "frag_keyframe+empty_moov"}


def sound_only(path: Path) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48_000)
        for index in range(40):
            block = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), format="fltp", layout="stereo")
            block.sample_rate, block.pts, block.time_base = 48_000, index * 1024, Fraction(1, 48_000)
            container.mux(stream.encode(block))
        container.mux(stream.encode())
    return path


def image(path: Path, **options: object) -> Path:
    Image.new("RGB", (64, 48), "red").save(path, **options)  # type: ignore[arg-type]
    return path


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def patched(path: Path, old: bytes, new: bytes) -> Path:
    data = path.read_bytes()
    assert old in data
    return written(path, data.replace(old, new))


def fails(path: Path, message: str, *, isolated: bool = False) -> None:
    """Reading fails at once, with one line that names the file, the fault and the remedy."""
    with pytest.raises(VideoError, match=message) as raised:
        VideoReader(path, isolated=isolated)
    assert "\n" not in str(raised.value) and raised.value.where == str(path) and raised.value.fix


@pytest.mark.parametrize("isolated", [True, False])
def test_what_is_no_file_is_refused_at_once(isolated: bool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    fails(tmp_path, "is a folder: name one video file", isolated=isolated)
    fails(tmp_path / "none.mp4", "no such file", isolated=isolated)
    fails(tmp_path / "none.mp4" / "x.mp4", "no such file", isolated=isolated)
    fails(tmp_path / "pipe.mp4", "is a pipe or a device", isolated=isolated)
    fails(Path("/dev/zero"), "is a pipe or a device", isolated=isolated)
    fails(Path("https://example.org/x.mp4"), "is an address, not a file", isolated=isolated)
    fails(tmp_path / "a\0b.mp4", "no such file", isolated=isolated)
    fails(written(tmp_path / "empty.mp4", b""), r"is an empty file \(0 bytes\)", isolated=isolated)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "secret.mp4", b"x").chmod(0)
    fails(tmp_path / "secret.mp4", "permission denied")


def test_what_is_no_video_is_named(tmp_path: Path) -> None:
    fails(image(tmp_path / "a.png"), "is a still image, not a video")
    fails(image(tmp_path / "a.jpg"), "is a still image, not a video")
    fails(image(tmp_path / "a.webp"), "is a still image, not a video")
    fails(image(tmp_path / "a.gif"), "is a still image, not a video")
    fails(image(tmp_path / "jpeg.mp4", format="JPEG"), "is a still image, not a video")
    fails(sound_only(tmp_path / "a.mp4"), r"has sound but no pictures \(audio-only\)")
    fails(sound_only(tmp_path / "a.mkv"), r"has sound but no pictures \(audio-only\)")
    fails(written(tmp_path / "a.mp3", b"ID3\x04" + bytes(500)), "audio-only")
    fails(written(tmp_path / "page.mp4", b"\n <!DOCTYPE html><html>404"), "is a web page, not a video")
    fails(written(tmp_path / "lfs.mp4", b"version https://git-lfs.github.com/spec/v1\n"), "Git LFS pointer")
    fails(written(tmp_path / "zip.mp4", b"PK\x03\x04" + bytes(99)), "is an archive")
    fails(written(tmp_path / "text.mp4", b"To be, or not to be"), "is not a video that can be read")
    fails(written(tmp_path / "noise.mp4", random.Random(1).randbytes(50_000)), "is not a video that can be read")


PLAYLISTS = (
    b"ffconcat version 1.0\nfile 'neighbour.mp4'\n",
    b"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nneighbour.mp4\n#EXT-X-ENDLIST\n",
    b"\xef\xbb\xbf#EXTM3U\nneighbour.mp4\n",
    b'<?xml version="1.0"?><MPD></MPD>',
)


@pytest.mark.parametrize("text", PLAYLISTS)
@pytest.mark.parametrize("name", ["list.mp4", "list.m3u8", "list.ffconcat"])
def test_a_playlist_never_opens_other_files(text: bytes, name: str, tmp_path: Path) -> None:
    make_video(tmp_path / "neighbour.mp4", Recipe(count=20))
    fails(written(tmp_path / name, text), "is a playlist, not a video")


def test_a_list_in_disguise_never_opens_other_files(tmp_path: Path) -> None:
    make_video(tmp_path / "neighbour.mp4", Recipe(count=20))
    comment = b"# not at the start\nffconcat version 1.0\nfile neighbour.mp4\n"
    fails(written(tmp_path / "list.mp4", comment), "is not a video that can be read")


def test_an_unfinished_recording_is_named(tmp_path: Path) -> None:
    whole = make_video(tmp_path / "whole.mp4", Recipe())
    size = whole.stat().st_size
    for share in (0.1, 0.5, 0.9):
        fails(cut(whole, tmp_path / "half.mp4", int(size * share)), r"incomplete recording: its index \(moov\)")


def test_an_encrypted_or_unknown_codec_is_named(tmp_path: Path) -> None:
    encrypted = patched(make_video(tmp_path / "drm.mp4", Recipe()), b"avc1", b"encv")
    fails(encrypted, "is encrypted|no readable picture")
    prores = Recipe(suffix=".mov", codec="prores_ks", pixel_format="yuv422p10le", options={"profile": "2"})
    fails(patched(make_video(tmp_path / "odd.mov", prores), b"apcn", b"zzzz"), "its video codec is unknown")


def test_pictures_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    path = make_video(tmp_path / "large.mp4", Recipe(count=2))
    with pytest.raises(VideoError, match="no readable picture"):
        VideoReader(path, isolated=False, limits=Limits(max_side=150))


def seconds_said(partial: str) -> float:
    """The decoded length a report names."""
    said = re.fullmatch(r"partial, (\d+):(\d\d(?:\.\d)?) of (?:\d+:\d\d(?:\.\d)?|an unknown length)", partial)
    assert said, partial
    return int(said[1]) * 60 + float(said[2])


CUTTABLE = {
    "ts": Recipe(suffix=".ts", options={"g": "25"}),
    "mpeg2 ts": Recipe(suffix=".ts", codec="mpeg2video"),
    "mkv": Recipe(suffix=".mkv", options={"g": "25"}),
    "webm": Recipe(suffix=".webm", codec="libvpx-vp9"),
    "fragmented mp4": Recipe(options={"g": "25", "bf": "0"}, container_options=FRAGMENTS),
    "faststart mp4": Recipe(container_options=FASTSTART),
    "avi": Recipe(suffix=".avi", codec="mpeg4"),
    "flv": Recipe(suffix=".flv", codec="flv"),
}


@pytest.mark.parametrize("name", CUTTABLE)
def test_a_cut_file_is_read_as_far_as_it_goes_and_reported(name: str, tmp_path: Path) -> None:
    recipe = Recipe(**{**CUTTABLE[name].__dict__, "count": 150})
    whole = make_video(tmp_path / f"whole{recipe.suffix}", recipe)
    all_frames, report = read(whole)
    assert report.partial == "" and len(all_frames) == 150
    size = whole.stat().st_size
    for percent in (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99):
        length = size * percent // 100
        length += length % 188 == 0  # a stream cut between two packets looks like a shorter stream
        part = cut(whole, tmp_path / f"part{recipe.suffix}", length)
        try:
            frames, report = read(part)
        except VideoError as error:
            assert percent <= 20 and re.search("cut off before its first|incomplete recording", str(error))
            continue
        missing = len(all_frames) - len(frames)
        if name == "flv" and missing <= 12:
            continue  # it claims a duration only: half a second may be missing without a sign
        assert missing == 0 or report.partial, (percent, missing)
        if report.partial:
            assert abs(seconds_said(report.partial) - (frames[-1].time_ms + 40) / 1000) <= 1.05, (percent, report)
            assert "of an unknown length" in report.partial or "of 0:06" in report.partial
        for whole_frame, frame in zip(all_frames, frames[:-4], strict=False):
            assert frame.time_ms == whole_frame.time_ms


def test_a_whole_file_is_not_taken_for_a_cut_one(tmp_path: Path) -> None:
    for recipe in CUTTABLE.values():
        path = make_video(tmp_path / f"whole{recipe.suffix}", recipe)
        with path.open("rb") as file:
            extent = _measure(file)
        assert not extent.is_cut and extent.usable_bytes == path.stat().st_size


def test_damage_in_the_middle_costs_only_what_is_damaged(tmp_path: Path) -> None:
    path = make_video(tmp_path / "hurt.mp4", Recipe(count=200, options={"g": "10", "bf": "0"}))
    data = bytearray(path.read_bytes())
    middle = data.index(b"mdat") + (data.index(b"moov") - data.index(b"mdat")) // 2
    data[middle : middle + 400] = random.Random(3).randbytes(400)
    path.write_bytes(data)
    frames, report = read(path)
    assert len(frames) >= 195
    assert [number_of(f.pixels) for f in frames[:60]] == list(range(60))
    assert [number_of(f.pixels) for f in frames[-60:]] == list(range(140, 200))
    assert any("damaged" in warning for warning in report.warnings)


def test_a_spliced_transport_stream_counts_on(tmp_path: Path) -> None:
    recipe = Recipe(suffix=".ts", count=50, options={"bf": "0"})
    late = make_video(tmp_path / "late.ts", Recipe(**{**recipe.__dict__, "start": Fraction(5000)}))
    early = make_video(tmp_path / "early.ts", Recipe(**{**recipe.__dict__, "start": Fraction(10)}))
    joined = written(tmp_path / "joined.ts", late.read_bytes() + early.read_bytes())
    frames, report = read(joined)
    times = [frame.time_ms for frame in frames]
    assert [number_of(frame.pixels) for frame in frames] == [*range(50), *range(50)]
    assert np.diff(times) == pytest.approx(40, abs=1)
    assert any("jumps 1 times" in warning for warning in report.warnings)


# One file of each family, small enough to mutate by the thousand.
SEEDS = (
    Recipe(width=64, height=48, count=30, options={"g": "8"}),
    Recipe(width=64, height=48, count=30, options={"g": "8", "bf": "0"}, container_options=FRAGMENTS),
    Recipe(width=64, height=48, count=30, suffix=".mkv"),
    Recipe(width=64, height=48, count=30, suffix=".ts", codec="mpeg2video", options={"flags": "+ildct+ilme"}),
    Recipe(width=64, height=48, count=30, suffix=".ts", sound_seconds=1.0),
    Recipe(width=64, height=48, count=30, suffix=".avi", codec="mpeg4"),
    Recipe(width=64, height=48, count=30, suffix=".webm", codec="libvpx-vp9"),
    Recipe(width=64, height=48, count=30, suffix=".gif", codec="gif", pixel_format="rgb8"),
)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert, delete, repeat or overwrite something."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        place = rng.randrange(len(changed)) if rng.random() < 0.6 else rng.randrange(min(len(changed), 600))
        length = rng.choice((1, 4, 16, 200))
        match rng.randrange(6):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                changed[place : place + length] = rng.randbytes(length)
            case 2:
                changed[place:place] = rng.randbytes(length)
            case 3:
                del changed[place : place + length]
            case 4:
                changed[place : place + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4)))
            case _ if rng.random() < 0.3:
                del changed[place:]
        if len(changed) < 16:
            return bytes(changed)
    return bytes(changed)


def survive(folder: Path, count: int, seed: int) -> tuple[int, int]:
    """Read mutated videos; how many gave frames and how many a typed error. Anything else fails the test."""
    rng = random.Random(seed)
    seeds = [make_video(folder / f"seed{i}{recipe.suffix}", recipe).read_bytes() for i, recipe in enumerate(SEEDS)]
    read_well = refused = 0
    for index in range(count):
        victim = written(folder / "victim.mp4", mutated(seeds[index % len(seeds)], rng))
        try:
            frames, report = read(victim, limits=Limits(max_frames=2000))
        except SignspotError as error:
            assert str(victim) in str(error)
            refused += 1
            continue
        assert frames and len(report.axis) == len(frames)
        assert len({frame.pixels.shape for frame in frames}) == 1
        read_well += 1
    return read_well, refused


def survive_apart(folder: Path, count: int, seed: int, seconds: float) -> tuple[int, int]:
    """`survive` in a process of its own, in which a decoder may crash or hang without ending the tests."""
    script = (
        "import sys; from pathlib import Path; from tests.media.test_reader_faults import survive; "
        "sys.stdout.write('%d %d' % survive(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))"
    )
    command = [sys.executable, "-c", script, str(folder), str(count), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr[-3000:]
    read_well, refused = map(int, done.stdout.split())
    return read_well, refused


def test_two_thousand_mutated_videos_are_read_or_refused(tmp_path: Path) -> None:
    read_well, refused = survive_apart(tmp_path, 2000, seed=11, seconds=240)
    assert read_well + refused == 2000 and read_well > 800 and refused > 100


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(4))
def test_thousands_more_mutated_videos_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    assert sum(survive_apart(tmp_path, 2500, seed=1000 + seed, seconds=1000)) == 2500


REAL = Path("/work/shared/data")


@pytest.mark.parametrize("folder", ["real_video", "aslearn/sentences"])
def test_real_recordings_are_read_whole(folder: str) -> None:
    paths = sorted((REAL / folder).glob("*.mp4"))[:6] if (REAL / folder).is_dir() else []
    if not paths:
        pytest.skip(f"no recordings in {REAL / folder}")
    for path in paths:
        unchanged = media_sha256(path)
        with VideoReader(path, isolated=False) as reader:
            frames = list(reader)
            assert reader.report.partial == ""
            assert reader.info.duration_ms is not None
            assert len(frames) == pytest.approx(reader.info.duration_ms / 40, abs=2)
            assert frames[0].pixels.shape == (reader.info.height, reader.info.width, 3)
        assert media_sha256(path) == unchanged
