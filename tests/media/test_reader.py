"""Every kind of recording: the right picture at the right time, and the file left as it was."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import ExifTags, Image

from signspot.domain.recordings import SignerBox
from signspot.domain.tracks import FrameShape, Pixels
from signspot.errors import VideoError
from signspot.media.frames import cut_square, shape_frame
from signspot.media.reader import VideoReader
from signspot.media.video import Frame, Limits, ReadReport, media_sha256
from tests.media.videos import Recipe, make_video, number_of, numbered

NTSC = Fraction(30000, 1001)
FILM = Fraction(24000, 1001)
PHONE = tuple(Fraction(ms, 1000) for ms in (0, 30, 71, 101, 160, 400, 433, 470, 1300, 1333, 1366, 1400, 1500, 1520))
FRAGMENTS = {"movflags": "frag_keyframe+empty_moov"}


def torn(pixels: Pixels, number: int) -> Pixels:
    """The two half-pictures of interlaced video show two moments: a strip that turns black and white in between."""
    strip = pixels.copy()
    for line in range(len(pixels) // 12):
        strip[line] = 255 * ((number + line) % 2)
    return strip


def turned(quarters: int, *, mirror: bool = False) -> dict[str, object]:
    """A recipe stored so that the display matrix makes it upright again."""

    def paint(pixels: Pixels, number: int) -> Pixels:
        stored = np.rot90(pixels, -quarters)
        return stored[:, ::-1] if mirror else stored

    return {"counter_clockwise": 90 * quarters, "mirrored": mirror, "paint": paint, "width": 120, "height": 120}


ENCODINGS: dict[str, Recipe] = {
    "25 fps h264 mp4 with b-frames": Recipe(options={"bf": "3"}),
    "23.976 fps mp4": Recipe(rate=FILM),
    "24 fps mkv": Recipe(suffix=".mkv", rate=Fraction(24)),
    "29.97 fps mov": Recipe(suffix=".mov", rate=NTSC),
    "29.97 fps mkv": Recipe(suffix=".mkv", rate=NTSC),
    "30 fps mp4": Recipe(rate=Fraction(30)),
    "50 fps mp4": Recipe(rate=Fraction(50), count=80),
    "60 fps mp4": Recipe(rate=Fraction(60), count=90),
    "10 fps mp4": Recipe(rate=Fraction(10), count=20),
    "variable rate mp4": Recipe(times=PHONE, time_base=Fraction(1, 90000)),
    "variable rate mkv": Recipe(suffix=".mkv", times=PHONE, time_base=Fraction(1, 1000)),
    "delayed mp4": Recipe(start=Fraction(1, 2), time_base=Fraction(1, 1000)),
    "delayed mkv": Recipe(suffix=".mkv", start=Fraction(1, 2), time_base=Fraction(1, 1000)),
    "ts": Recipe(suffix=".ts"),
    "ts from mid-stream": Recipe(suffix=".ts", start=Fraction(36000)),
    "interlaced ts": Recipe(suffix=".ts", codec="mpeg2video", options={"flags": "+ildct+ilme"}, paint=torn),
    "interlaced mp4": Recipe(options={"x264-params": "tff=1"}, paint=torn),
    "interlaced avi": Recipe(suffix=".avi", codec="mpeg4", options={"flags": "+ildct+ilme", "bf": "2"}, paint=torn),
    "mpeg program stream": Recipe(suffix=".mpg", codec="mpeg2video", width=320, height=240, options={"qmax": "2"}),
    "avi mpeg4": Recipe(suffix=".avi", codec="mpeg4"),
    "avi mpeg4 with b-frames": Recipe(suffix=".avi", codec="mpeg4", options={"bf": "2"}),
    "avi h264 with b-frames": Recipe(suffix=".avi", options={"bf": "3"}),
    "avi mjpeg": Recipe(suffix=".avi", codec="mjpeg", pixel_format="yuvj420p"),
    "webm vp9": Recipe(suffix=".webm", codec="libvpx-vp9"),
    "webm vp8": Recipe(suffix=".webm", codec="libvpx"),
    "hevc mp4": Recipe(codec="libx265"),
    "av1 mp4": Recipe(codec="libsvtav1"),
    "10-bit hevc": Recipe(suffix=".mkv", codec="libx265", pixel_format="yuv420p10le"),
    "fragmented mp4": Recipe(options={"g": "10", "bf": "0"}, container_options=FRAGMENTS),
    "fragmented mp4 with b-frames": Recipe(
        options={"g": "10"}, container_options={"movflags": "frag_keyframe+delay_moov"}
    ),
    "odd size": Recipe(width=161, height=121, pixel_format="yuv444p"),
    "prores mov": Recipe(suffix=".mov", codec="prores_ks", pixel_format="yuv422p10le"),
    "flv": Recipe(suffix=".flv", codec="flv"),
    "wmv": Recipe(suffix=".wmv", codec="wmv2"),
    "turned 90": Recipe(**turned(1)),  # type: ignore[arg-type]
    "turned 180": Recipe(**turned(2)),  # type: ignore[arg-type]
    "turned 270": Recipe(**turned(3)),  # type: ignore[arg-type]
    "mirrored": Recipe(**turned(0, mirror=True)),  # type: ignore[arg-type]
}


def read(path: Path, *, isolated: bool = False, **options: object) -> tuple[list[Frame], ReadReport]:
    with VideoReader(path, isolated=isolated, **options) as reader:  # type: ignore[arg-type]
        frames = list(reader)
        return frames, reader.report


def right_numbers(times_ms: list[float], tick_ms: float) -> set[int]:
    """The pictures the rule allows at a tick, if the container rounds times to milliseconds."""
    allowed = set()
    for tick in (tick_ms - 1, tick_ms, tick_ms + 1):
        candidates = [n for n, time in enumerate(times_ms) if time <= tick + 20] or [0]
        allowed.add(min(candidates, key=lambda n: (abs(times_ms[n] - tick), n)))
    return allowed


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_frame_is_the_right_picture_with_its_true_time(name: str, tmp_path: Path) -> None:
    recipe = ENCODINGS[name]
    path = make_video(tmp_path / f"video{recipe.suffix}", recipe)
    unchanged = media_sha256(path)
    frames, report = read(path)
    assert report.partial == "" and report.warnings == ()
    origin_ms = report.axis.origin_ms
    running_clock = recipe.suffix in (".ts", ".mpg")
    first_ms = float(recipe.seconds[0] * 1000) if not running_clock else 0.0
    times_ms = [float((time - recipe.seconds[0]) * 1000) + first_ms for time in recipe.seconds]
    for tick, frame in enumerate(frames):
        number = number_of(frame.pixels)
        assert abs(frame.time_ms - times_ms[number]) <= 1.0
        assert number in right_numbers(times_ms, first_ms + 40 * tick)
    length_ms = times_ms[-1] - times_ms[0]
    assert abs(len(frames) - 1 - length_ms / 40) <= 1 + 0.5 * 25 / float(recipe.rate)
    assert report.axis.times_ms.tolist() == [frame.time_ms for frame in frames]
    assert (origin_ms > 0) == running_clock
    assert media_sha256(path) == unchanged


@pytest.mark.parametrize("name", ["interlaced ts", "interlaced mp4", "interlaced avi"])
def test_interlaced_pictures_are_joined(name: str, tmp_path: Path) -> None:
    recipe = ENCODINGS[name]
    path = make_video(tmp_path / f"video{recipe.suffix}", recipe)
    with VideoReader(path, isolated=False) as reader:
        assert reader.info.interlaced
        for frame in reader:
            strip = frame.pixels[2 : recipe.height // 12 - 2].astype(float)
            assert np.abs(np.diff(strip, axis=0)).mean() < 40  # 255 where lines of two moments alternate


def test_a_transport_stream_shows_0_00_where_its_sound_begins(tmp_path: Path) -> None:
    recipe = Recipe(
        suffix=".ts", codec="mpeg2video", start=Fraction(1, 2), time_base=Fraction(1, 50), rate=Fraction(50)
    )
    path = make_video(tmp_path / "late.ts", replace(recipe, sound_seconds=1.2))
    frames, _ = read(path)
    assert frames[0].time_ms == pytest.approx(500, abs=25)


def test_an_edit_list_decides_what_is_shown(tmp_path: Path) -> None:
    path = make_video(tmp_path / "trimmed.mp4", Recipe(options={"bf": "0"}))
    data = bytearray(path.read_bytes())
    entry = data.index(b"elst") + 12  # version and flags, count, then duration, start in the media, speed
    assert int.from_bytes(data[entry : entry + 4], "big") == 1600
    data[entry : entry + 4] = (600).to_bytes(4, "big")
    data[entry + 4 : entry + 8] = (13 * 512).to_bytes(4, "big")
    path.write_bytes(data)
    frames, report = read(path)
    assert [number_of(frame.pixels) for frame in frames] == list(range(13, 28))
    assert [frame.time_ms for frame in frames] == [40.0 * k for k in range(15)]
    assert report.partial == ""


BEFORE_ZERO = Fraction(-1, 6)


def test_what_a_fragmented_mp4_hides_before_its_beginning_is_not_shown(tmp_path: Path) -> None:
    options = {"movflags": "frag_keyframe+delay_moov"}
    recipe = Recipe(start=BEFORE_ZERO, time_base=Fraction(1, 600), container_options=options)
    frames, report = read(make_video(tmp_path / "hidden.mp4", recipe))
    assert [number_of(frame.pixels) for frame in frames] == list(range(4, 40))
    expected = [max(0.0, 40 * number - 500 / 3) for number in range(4, 40)]
    assert [frame.time_ms for frame in frames] == pytest.approx(expected)
    assert (report.axis.origin_ms, report.partial, report.warnings) == (0, "", ())


@pytest.mark.parametrize(("suffix", "codec"), [(".webm", "libvpx-vp9"), (".wmv", "wmv2")])
def test_elsewhere_media_time_begins_with_the_first_picture(suffix: str, codec: str, tmp_path: Path) -> None:
    options = {"avoid_negative_ts": "disabled"}
    recipe = Recipe(suffix=suffix, codec=codec, start=BEFORE_ZERO, time_base=Fraction(1, 25), container_options=options)
    frames, report = read(make_video(tmp_path / f"early{suffix}", recipe))
    assert [number_of(frame.pixels) for frame in frames] == list(range(40))
    assert [frame.time_ms for frame in frames] == [40.0 * k for k in range(40)]
    assert report.axis.origin_ms == -160
    assert (report.partial, report.warnings) == ("", ())


def test_a_video_that_hides_all_its_pictures_says_so(tmp_path: Path) -> None:
    options = {"movflags": "frag_keyframe+delay_moov"}
    recipe = Recipe(start=Fraction(-10), time_base=Fraction(1, 600), container_options=options)
    path = make_video(tmp_path / "hidden.mp4", recipe)
    with pytest.raises(VideoError, match="all its pictures lie before its beginning"):
        read(path)


@pytest.mark.parametrize(("orientation", "quarters"), [(1, 0), (8, 1), (3, 2), (6, 3)])
def test_side_data_of_an_unknown_kind_is_ignored_and_the_rotation_kept(
    orientation: int, quarters: int, tmp_path: Path
) -> None:
    """Cameras put Exif into their pictures, for which PyAV has no name; the views of MV-HEVC are another such kind."""
    path = tmp_path / "camera.avi"
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 120, 120, "yuvj420p"
        for number in range(20):
            stored = io.BytesIO()
            Image.fromarray(np.rot90(numbered(number, 120, 120), -quarters)).save(stored, "JPEG", exif=exif)
            packet = av.Packet(stored.getvalue())
            packet.pts = packet.dts = number
            packet.time_base, packet.stream, packet.is_keyframe = Fraction(1, 25), stream, True
            container.mux(packet)
    frames, report = read(path)
    assert [number_of(frame.pixels) for frame in frames] == list(range(20))
    assert report.warnings == ()


@pytest.mark.parametrize(("aspect", "size"), [(Fraction(16, 11), (120, 233)), (Fraction(1, 2), (240, 160))])
def test_pixels_that_are_not_square_are_stretched(aspect: Fraction, size: tuple[int, int], tmp_path: Path) -> None:
    path = make_video(tmp_path / "wide.mkv", Recipe(suffix=".mkv", pixel_aspect=aspect))
    frames, _ = read(path)
    assert frames[5].pixels.shape == (*size, 3) and number_of(frames[5].pixels) == 5


def test_the_description_tells_what_is_displayed(tmp_path: Path) -> None:
    path = make_video(tmp_path / "phone.mp4", Recipe(counter_clockwise=270, rate=NTSC))
    with VideoReader(path) as reader:
        info = reader.info
    assert (info.width, info.height, info.rotation, info.mirrored) == (120, 160, 90, False)
    assert (info.container, info.codec, info.interlaced, info.path) == ("mp4", "h264", False, path)
    assert info.frame_rate == pytest.approx(29.97, abs=0.01)
    assert info.duration_ms == pytest.approx(40 * 1001 / 30, abs=1)


def test_both_ways_of_decoding_give_the_same(tmp_path: Path) -> None:
    path = make_video(tmp_path / "same.mp4", ENCODINGS["variable rate mp4"])
    (near, near_report), (far, far_report) = read(path), read(path, isolated=True)
    assert [f.time_ms for f in near] == [f.time_ms for f in far]
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(near, far, strict=True))
    assert near_report.warnings == far_report.warnings and near_report.partial == far_report.partial
    assert np.array_equal(near_report.axis.times_ms, far_report.axis.times_ms)


@pytest.mark.parametrize("isolated", [True, False])
def test_frames_arrive_in_the_shape_that_was_asked_for(isolated: bool, tmp_path: Path) -> None:
    path = make_video(tmp_path / "shape.mp4", Recipe())
    shape = FrameShape(64, 56)
    plain, _ = read(path)
    shaped, _ = read(path, shape=shape, isolated=isolated)
    assert all(np.array_equal(b.pixels, shape_frame(a.pixels, shape)) for a, b in zip(plain, shaped, strict=True))


@pytest.mark.parametrize("isolated", [True, False])
def test_a_box_is_cut_out_before_the_frame_is_shaped(isolated: bool, tmp_path: Path) -> None:
    path = make_video(tmp_path / "boxed.mp4", Recipe())  # 160 x 120
    box, shape = SignerBox(0.25, 0.5, 0.5, 0.75), FrameShape(32, 28, keep_aspect=True, signer_box=True)
    whole, _ = read(path)
    cut, _ = read(path, box=box, isolated=isolated)
    shaped, _ = read(path, box=box, shape=shape, isolated=isolated)
    for frame, square, small in zip(whole, cut, shaped, strict=True):
        by_hand = frame.pixels[55:95, 40:80].copy()  # 40 x 30 pixels at (40, 60), made square
        assert np.array_equal(square.pixels, by_hand)
        assert np.array_equal(small.pixels, shape_frame(by_hand, shape))
        assert square.time_ms == small.time_ms == frame.time_ms


@pytest.mark.parametrize(("quarters", "mirror"), [(0, False), (1, False), (2, False), (3, False), (0, True)])
def test_a_box_is_where_the_viewer_sees_it(quarters: int, mirror: bool, tmp_path: Path) -> None:
    path = make_video(tmp_path / "turned.mp4", Recipe(count=20, **turned(quarters, mirror=mirror)))  # type: ignore[arg-type]
    box = SignerBox(0.5, 0, 1, 0.5)
    displayed, _ = read(path)
    cut, _ = read(path, box=box)
    assert number_of(displayed[7].pixels) == 7  # upright
    assert all(np.array_equal(b.pixels, cut_square(a.pixels, box)) for a, b in zip(displayed, cut, strict=True))
    assert np.array_equal(cut[7].pixels, displayed[7].pixels[:60, 60:])


@pytest.mark.parametrize("isolated", [True, False])
def test_a_wide_box_gives_squares_with_edges_repeated(isolated: bool, tmp_path: Path) -> None:
    path = make_video(tmp_path / "wide.mp4", Recipe(count=20))
    frames, _ = read(path, box=SignerBox(0, 0.2, 1, 0.9), isolated=isolated)
    assert {frame.pixels.shape for frame in frames} == {(160, 160, 3)}
    assert np.array_equal(frames[3].pixels[0], frames[3].pixels[10])


def test_frames_cannot_be_changed_since_a_held_picture_is_shared(tmp_path: Path) -> None:
    path = make_video(tmp_path / "held.mp4", Recipe(rate=Fraction(5), count=3))
    for isolated in (True, False):
        frames, _ = read(path, isolated=isolated)
        assert frames[0].pixels is frames[1].pixels and not frames[0].pixels.flags.writeable


NAMES = [
    "with space.mp4",
    "-dash.mp4",
    "q'uo\"te.mp4",
    "日本語 ñ.mp4",
    "new\nline.mp4",
    "a:b.mp4",
    "%d.mp4",
    "file:x.mp4",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (make_video(tmp_path / "plain.mp4", Recipe(count=20))).rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for isolated in (True, False):
        frames, _ = read(Path(name), isolated=isolated)
        assert len(frames) == 20


def test_a_file_name_that_is_not_unicode_works(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.mp4"))
    make_video(tmp_path / "plain.mp4", Recipe(count=20)).rename(odd)
    assert len(read(odd, isolated=True)[0]) == 20


def test_metadata_that_is_not_unicode_does_no_harm(tmp_path: Path) -> None:
    path = make_video(tmp_path / "tagged.mp4", Recipe(count=20))
    data = path.read_bytes()
    assert b"VideoHandler" in data
    path.write_bytes(data.replace(b"VideoHandler", b"\xff\xfe\xfd\xfc\x80\x81\x82\x83\x84\x85\x86\x87"))
    assert len(read(path)[0]) == 20


def test_a_five_picture_video_is_read_with_a_warning(tmp_path: Path) -> None:
    frames, report = read(make_video(tmp_path / "short.mp4", Recipe(count=5)))
    assert len(frames) == 5
    assert report.warnings == ("shorter than one window (16 frames): the last picture is repeated",)


def test_pictures_that_change_size_are_scaled_to_the_first(tmp_path: Path) -> None:
    small = make_video(tmp_path / "small.ts", Recipe(suffix=".ts", count=20, options={"bf": "0"}))
    large_recipe = Recipe(suffix=".ts", count=20, width=320, height=240, start=Fraction(4, 5), options={"bf": "0"})
    large = make_video(tmp_path / "large.ts", large_recipe)
    joined = tmp_path / "joined.ts"
    joined.write_bytes(small.read_bytes() + large.read_bytes())
    frames, report = read(joined)
    assert {frame.pixels.shape for frame in frames} == {(120, 160, 3)}
    assert [number_of(frame.pixels) for frame in frames] == [*range(20), *range(20)]
    assert any(w.startswith("the pictures change size at 0:00: all are scaled to 160 x 120") for w in report.warnings)


def test_an_incredible_frame_rate_is_reported_and_the_true_times_are_used(tmp_path: Path) -> None:
    times = tuple(Fraction(i, 1000) for i in range(60))
    frames, report = read(make_video(tmp_path / "fast.mp4", Recipe(times=times, rate=Fraction(1000))))
    assert [number_of(frame.pixels) for frame in frames] == [0, 40]
    assert any("claims 1000 pictures a second" in warning for warning in report.warnings)


def test_an_animated_gif_is_read_with_a_note(tmp_path: Path) -> None:
    frames, report = read(make_video(tmp_path / "sign.gif", Recipe(codec="gif", pixel_format="rgb8")))
    assert [number_of(frame.pixels) for frame in frames] == list(range(40))
    assert any("animated GIF" in warning for warning in report.warnings)


def test_sound_that_outlasts_the_pictures_is_no_damage(tmp_path: Path) -> None:
    for suffix in (".mp4", ".mkv"):
        _, report = read(make_video(tmp_path / f"long{suffix}", Recipe(suffix=suffix, sound_seconds=4.0)))
        assert report.partial == ""


def test_reading_stops_at_the_most_frames_allowed(tmp_path: Path) -> None:
    path = make_video(tmp_path / "long.mp4", Recipe(count=100))
    frames, report = read(path, limits=Limits(max_frames=50))
    assert len(frames) == 50 and report.partial == "partial, 0:02 of 0:04"


def test_the_report_is_known_only_after_the_last_frame(tmp_path: Path) -> None:
    path = make_video(tmp_path / "a.mp4", Recipe())
    with VideoReader(path, isolated=False) as reader:
        frames = iter(reader)
        next(frames)
        with pytest.raises(RuntimeError, match="after the last frame"):
            _ = reader.report
        with pytest.raises(RuntimeError, match="once"):
            iter(reader)


def test_a_picture_carries_its_number() -> None:
    assert [number_of(numbered(n, 160, 120)) for n in range(1024)] == list(range(1024))


def test_the_hash_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert media_sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
