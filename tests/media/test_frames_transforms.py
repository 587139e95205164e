from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from signspot.domain.recordings import SignerBox
from signspot.domain.tracks import FrameShape, Pixels
from signspot.media.frames import Augmentation, Normalisation, _ClipAugmentation, cut_square, normalised, shape_frame
from tests.domain.test_recordings_boxes import boxes

sizes = st.integers(1, 40)
UNCHANGED = _ClipAugmentation(flip=False, colour=(1.0, 1.0, 1.0), scale=1.0, down=0.5, right=0.5, crop=20)


def noise(*shape: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def squashed_by_hand(pixels: Pixels, side: int) -> np.ndarray:
    """The formula of bilinear interpolation with half-pixel centres, one pixel at a time, in float64."""
    height, width = pixels.shape[:2]
    result = np.empty((side, side, 3))
    for y in range(side):
        for x in range(side):
            down = min(max((y + 0.5) * height / side - 0.5, 0), height - 1)
            right = min(max((x + 0.5) * width / side - 0.5, 0), width - 1)
            top, left = int(down), int(right)
            bottom, beside = min(top + 1, height - 1), min(left + 1, width - 1)
            down, right = down - top, right - left
            upper = pixels[top, left] * (1 - right) + pixels[top, beside] * right
            lower = pixels[bottom, left] * (1 - right) + pixels[bottom, beside] * right
            result[y, x] = upper * (1 - down) + lower * down
    return result


@settings(deadline=None)
@given(sizes, sizes, st.integers(1, 24), st.integers(0, 5))
def test_squashing_equals_the_formula(height: int, width: int, side: int, cut: int) -> None:
    pixels = noise(height, width, 3)
    crop = max(1, side - cut)
    offset = (side - crop) // 2
    expected = squashed_by_hand(pixels, side)[offset : offset + crop, offset : offset + crop]
    shaped = shape_frame(pixels, FrameShape(side, crop))
    assert shaped.dtype == np.uint8
    assert np.abs(shaped - expected).max() <= 0.501


def test_the_released_shape_cuts_sixteen_pixels_off_each_side() -> None:
    pixels = noise(256, 256, 3)
    assert (shape_frame(pixels, FrameShape(256, 224)) == pixels[16:240, 16:240]).all()


@pytest.mark.parametrize("keep_aspect", [False, True])
def test_a_frame_of_the_right_size_is_returned_as_it_is(keep_aspect: bool) -> None:
    pixels = noise(64, 64, 3)
    assert shape_frame(pixels, FrameShape(64, 64, keep_aspect)) is pixels


def test_squashing_does_not_smooth() -> None:
    stripes = np.zeros((90, 90, 3), dtype=np.uint8)
    stripes[:, 1::3] = 255  # the centre of every third column: what a reduction by three meets
    assert (shape_frame(stripes, FrameShape(30, 30)) == 255).all()
    assert np.abs(shape_frame(stripes, FrameShape(30, 30, keep_aspect=True)).astype(int) - 85).max() < 40


def test_keeping_the_aspect_crops_the_longer_side_at_its_centre() -> None:
    wide = np.zeros((100, 300, 3), dtype=np.uint8)
    wide[:, 100:200] = 200  # the middle third is the square that remains
    for pixels in (wide, wide.transpose(1, 0, 2)):
        shaped = shape_frame(pixels, FrameShape(50, 40, keep_aspect=True))
        assert shaped.shape == (40, 40, 3)
        assert (shaped == 200).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(20, 90), st.integers(20, 90), st.integers(8, 40), st.integers(0, 7))
def test_keeping_the_aspect_equals_scaling_everything_and_cropping(
    height: int, width: int, side: int, cut: int
) -> None:
    smooth = np.linspace(0, 255, height)[:, None] * 0.5 + np.linspace(0, 255, width) * 0.5
    pixels = np.repeat(smooth[..., None], 3, axis=2).astype(np.uint8)
    short, crop = min(height, width), side - cut
    wide, tall = (max(side, round(length * side / short)) for length in (width, height))
    whole = np.asarray(Image.fromarray(pixels).resize((wide, tall), Image.Resampling.BILINEAR))
    top, left = (tall - crop) // 2, (wide - crop) // 2
    expected = whole[top : top + crop, left : left + crop].astype(int)
    shaped = shape_frame(pixels, FrameShape(side, crop, keep_aspect=True))
    assert np.abs(shaped - expected).max() <= 2 + 255 // short


def test_keeping_the_aspect_without_scaling_only_crops() -> None:
    pixels = noise(64, 100, 3)
    assert (shape_frame(pixels, FrameShape(64, 60, keep_aspect=True)) == pixels[2:62, 20:80]).all()


@pytest.mark.parametrize("keep_aspect", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (2, 3)])
def test_extreme_sizes_are_shaped_too(size: tuple[int, int], keep_aspect: bool) -> None:
    grey = np.full((*size, 3), 77, dtype=np.uint8)
    assert (shape_frame(grey, FrameShape(256, 224, keep_aspect)) == 77).all()


@pytest.mark.parametrize("keep_aspect", [False, True])
def test_shaping_leaves_its_input_alone_and_gives_a_writable_frame(keep_aspect: bool) -> None:
    pixels = noise(50, 70, 3)[:, ::-1]
    before = pixels.copy()
    pixels.setflags(write=False)
    shaped = shape_frame(pixels, FrameShape(32, 30, keep_aspect))
    assert (pixels == before).all()
    assert shaped.flags.writeable
    mirrored = shape_frame(np.ascontiguousarray(pixels), FrameShape(32, 30, keep_aspect))
    assert (shaped == mirrored).all()


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 1), (4, 4, 4), (0, 4, 3)])
def test_what_is_no_colour_picture_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a frame is"):
        shape_frame(np.zeros(shape, dtype=np.uint8), FrameShape(4, 4))


def test_squashing_full_hd_is_fast() -> None:
    pixels = noise(1080, 1920, 3)
    took = []
    for _ in range(15):
        start = time.perf_counter()
        shape_frame(pixels, FrameShape(256, 224))
        took.append(time.perf_counter() - start)
    assert min(took) < 0.006  # the best measured was 2 ms; the rest is for busy machines


def test_normalised_is_what_the_released_models_take() -> None:
    levels = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    numbers = normalised(levels)
    assert numbers.dtype == np.float32
    assert numbers == pytest.approx(levels / 255 - 0.5, abs=1e-7)
    assert (numbers.min(), numbers.max()) == (-0.5, 0.5)


def test_normalised_takes_a_mean_and_a_spread_per_channel() -> None:
    own = Normalisation(mean=(0.1, 0.2, 0.3), std=(1.0, 0.5, 0.25))
    numbers = normalised(np.full((2, 4, 4, 3), 255, dtype=np.uint8), own)
    assert numbers[1, 2, 3] == pytest.approx([0.9, 1.6, 2.8])


@pytest.mark.parametrize("std", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, float("nan"))])
def test_a_spread_that_divides_by_nothing_is_refused(std: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="cannot normalise"):
        Normalisation(std=std)


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_a_clip_of_equal_frames_stays_a_clip_of_equal_frames(seed: int) -> None:
    clip = np.broadcast_to(noise(40, 48, 3), (16, 40, 48, 3))
    changed = Augmentation(crop=32).draw(np.random.default_rng(seed)).apply(clip)
    assert changed.shape == (16, 32, 32, 3)
    assert changed.dtype == np.uint8
    assert (changed == changed[0]).all()


def test_two_clips_are_changed_differently_and_the_same_seed_the_same() -> None:
    clip = noise(16, 40, 40, 3)
    first, second = (Augmentation(crop=32).draw(rng) for rng in [np.random.default_rng(3)] * 2)
    assert (first.apply(clip) != second.apply(clip)).any()
    assert first == Augmentation(crop=32).draw(np.random.default_rng(3))


def test_draws_follow_the_settings() -> None:
    rng = np.random.default_rng(0)
    draws = [Augmentation().draw(rng) for _ in range(4000)]
    assert sum(draw.flip for draw in draws) / 4000 == pytest.approx(0.5, abs=0.03)
    for values, low, high in (
        ([draw.scale for draw in draws], 0.9, 1.1),
        ([draw.colour[0] for draw in draws], 0.8, 1.2),
        ([draw.colour[2] for draw in draws], 0.8, 1.2),
        ([draw.down for draw in draws], 0, 1),
    ):
        assert low <= min(values) < low + 0.01 and high - 0.01 < max(values) <= high
        assert np.mean(values) == pytest.approx((low + high) / 2, abs=0.02)
    assert abs(np.corrcoef([draw.colour for draw in draws], rowvar=False) - np.eye(3)).max() < 0.06


def test_a_draw_without_change_is_the_centre_crop() -> None:
    clip = noise(3, 30, 40, 3)
    assert (UNCHANGED.apply(clip) == clip[:, 5:25, 10:30]).all()


def test_flipping_mirrors_left_and_right() -> None:
    clip = noise(2, 20, 20, 3)
    flipped = _ClipAugmentation(flip=True, colour=(1, 1, 1), scale=1, down=0, right=0, crop=20)
    assert (flipped.apply(clip) == clip[:, :, ::-1]).all()


def test_colour_is_multiplied_and_clamped_per_channel() -> None:
    clip = np.full((1, 20, 20, 3), 220, dtype=np.uint8)
    brighter = _ClipAugmentation(flip=False, colour=(1.2, 1.0, 0.8), scale=1, down=0, right=0, crop=20)
    assert brighter.apply(clip)[0, 0, 0].tolist() == [255, 220, 176]


def test_the_crop_reaches_every_corner() -> None:
    clip = noise(1, 30, 40, 3)
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        corner = _ClipAugmentation(flip=False, colour=(1, 1, 1), scale=1, down=down, right=right, crop=20)
        assert (corner.apply(clip) == clip[:, 10 * down : 10 * down + 20, 20 * right : 20 * right + 20]).all()


def test_scaling_up_enlarges_what_is_seen() -> None:
    clip = np.zeros((1, 40, 40, 3), dtype=np.uint8)
    clip[:, 10:30, 10:30] = 255
    bright = [
        int(
            (
                _ClipAugmentation(flip=False, colour=(1, 1, 1), scale=scale, down=0.5, right=0.5, crop=36).apply(clip)
            ).sum()
        )
        for scale in (0.9, 1.0, 1.1)
    ]
    assert np.array(bright) / bright[1] == pytest.approx([0.81, 1, 1.21], abs=0.02)


def test_a_small_picture_is_enlarged_to_hold_the_crop() -> None:
    clip = noise(2, 18, 50, 3)
    shrunk = _ClipAugmentation(flip=False, colour=(1, 1, 1), scale=0.9, down=1, right=1, crop=20)
    assert shrunk.apply(clip).shape == (2, 20, 20, 3)


def test_augmenting_leaves_its_input_alone() -> None:
    clip = noise(16, 30, 30, 3)
    before = clip.copy()
    Augmentation(crop=20).draw(np.random.default_rng(0)).apply(clip)
    assert (clip == before).all()


@pytest.mark.parametrize(
    "wrong", [{"crop": 0}, {"flip_probability": 1.5}, {"colour_jitter": -0.1}, {"scale_jitter": 1.0}]
)
def test_settings_that_cannot_be_drawn_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="no augmentation"):
        Augmentation(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(20, 20, 3), (0, 20, 20, 3)])
def test_what_is_no_clip_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a clip is"):
        UNCHANGED.apply(np.zeros(shape, dtype=np.uint8))


# The square around a signer


@pytest.mark.parametrize(
    ("box", "rows", "columns"),
    [
        (SignerBox(0.5, 0.25, 0.75, 0.75), (25, 75), (100, 150)),  # square in pixels
        (SignerBox(0.5, 0.4, 0.75, 0.6), (25, 75), (100, 150)),  # wide: grows up and down alike
        (SignerBox(0.6, 0.25, 0.65, 0.75), (25, 75), (100, 150)),  # tall: grows to both sides
        (SignerBox(0.8, 0.9, 1, 1), (60, 100), (160, 200)),  # in a corner: moved inside
        (SignerBox(0, 0, 0.05, 0.5), (0, 50), (0, 50)),
    ],
)
def test_the_square_around_a_box_is_cut_out_by_hand(
    box: SignerBox, rows: tuple[int, int], columns: tuple[int, int]
) -> None:
    pixels = noise(100, 200, 3)
    square = cut_square(pixels, box)
    assert np.array_equal(square, pixels[slice(*rows), slice(*columns)]) and square.flags.c_contiguous


def test_a_square_that_is_larger_than_the_picture_repeats_the_outermost_pixels() -> None:
    pixels = noise(60, 200, 3)
    square = cut_square(pixels, SignerBox(0.5, 0, 1, 1))  # 100 pixels wide, 60 high
    by_hand = np.concatenate([pixels[:1, 100:]] * 20 + [pixels[:, 100:]] + [pixels[-1:, 100:]] * 20)
    assert np.array_equal(square, by_hand)
    assert np.array_equal(cut_square(pixels.swapaxes(0, 1), SignerBox(0, 0.5, 1, 1)), by_hand.swapaxes(0, 1))


@settings(deadline=None)
@given(sizes, sizes, boxes())
def test_every_square_holds_its_box_and_as_much_of_the_picture_as_it_can(
    height: int, width: int, box: SignerBox
) -> None:
    # Every pixel carries its own place, so the square tells where it was cut.
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[..., 0], pixels[..., 1] = np.arange(height)[:, None], np.arange(width)
    square = cut_square(pixels, box)
    side = max(1, round(max((box.right - box.left) * width, (box.bottom - box.top) * height)))
    assert square.shape == (side, side, 3)
    ends = ((box.top, box.bottom, height, square[:, 0, 0]), (box.left, box.right, width, square[0, :, 1]))
    for low, high, length, places in ends:
        assert len(set(places.tolist())) == min(side, length)  # nothing is repeated unless it must be
        assert (np.diff(places.astype(int)) >= 0).all()
        assert places[0] <= low * length + 1 and places[-1] >= high * length - 2  # up to rounding


def test_a_full_frame_box_of_a_square_picture_changes_nothing() -> None:
    pixels = noise(50, 50, 3)
    assert np.array_equal(cut_square(pixels, SignerBox(0, 0, 1, 1)), pixels)


def test_boxes_need_frames_that_keep_their_aspect() -> None:
    assert FrameShape(64, 56, keep_aspect=True, signer_box=True).signer_box
    with pytest.raises(ValueError, match="signer_box needs keep_aspect"):
        FrameShape(64, 56, signer_box=True)
