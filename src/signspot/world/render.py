"""Joints as video: landmarks in the MediaPipe layout become frames of a person who signs.

Frames are painted with Pillow at three times their size and then reduced, which smooths every edge. The same landmarks,
appearance and scene give the same bytes. Nothing but the shapes of some frames and one picture is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, ImageDraw

from signspot.domain.recordings import Entry
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import LANDMARK_DIM, FloatArray, Pixels
from signspot.figures.sheets import SheetRow, contact_sheet
from signspot.files.atomic import atomic_output
from signspot.world.motion import Performance
from signspot.world.people import Appearance, Colour, blended, shaded
from signspot.world.render_figure import Canvas, Figures, Proportions, paint_person, split
from signspot.world.simulation import World

SIDE = 256
_ENLARGED = 3
_MEASURED_FRAMES = 1000  # of a long video, to know the size of head and hands
_TOGETHER = 32  # frames whose shapes are computed at once: more gain nothing
_BLINK_EVERY, _BLINK_FROM, _BLINK_FRAMES = 97, 61, 3


def render_frames(
    points: FloatArray, mouth: FloatArray, appearance: Appearance, scene: Scene | None = None, *, side: int = SIDE
) -> Iterator[Pixels]:
    """Frames (side, side, 3) uint8 RGB, one a row of `points` (n_frames, 258), made as they are taken.

    `mouth` (n_frames,) is its opening, 0..1. Without a scene the signer stands before the wall of the appearance.
    A hand of zeros (not found) is drawn as a mitten.
    """
    if points.ndim != 2 or points.shape[1] != LANDMARK_DIM or mouth.shape != points.shape[:1]:
        raise ValueError(f"landmarks of shape {points.shape} and mouths of {mouth.shape}, not (n, 258) and (n,)")
    if not np.isfinite(points).all() or not ((mouth >= 0) & (mouth <= 1)).all():
        raise ValueError("landmarks must be finite numbers and mouths lie in 0..1")
    if side < 16:
        raise ValueError(f"a picture of {side} pixels is too small to draw a person")
    return _frames(points, mouth, appearance, scene or Studio(appearance.background), side)


def _frames(points: FloatArray, mouth: FloatArray, appearance: Appearance, scene: Scene, side: int) -> Iterator[Pixels]:
    enlarged = side * _ENLARGED
    backdrops = scene.backdrops(enlarged)
    for figures in _figures(points, mouth, scene.placement, enlarged):
        canvas = Canvas([[] for _ in figures.pose])
        paint_person(canvas, figures, appearance)
        for frame, image in zip(range(len(figures.pose)), backdrops, strict=False):
            canvas.paint(frame, image)
            yield np.array(image.reduce(_ENLARGED))


def _figures(points: FloatArray, mouth: FloatArray, placement: _Placement, side: int) -> Iterator[Figures]:
    measured = points[:: len(points) // _MEASURED_FRAMES + 1]
    proportions = Proportions.of(placement.apply(measured), side)
    for first in range(0, len(points), _TOGETHER):
        pose, left, right = split(placement.apply(points[first : first + _TOGETHER]))
        openings = mouth[first : first + _TOGETHER].astype(np.float64)
        in_blink = (np.arange(first, first + len(pose)) % _BLINK_EVERY - _BLINK_FROM) % _BLINK_EVERY
        closed = in_blink < _BLINK_FRAMES
        yield Figures(pose[..., :3] * side, (left * side, right * side), openings, closed, proportions)


# What is behind the signer: a plain studio wall, or a moving broadcast beside whom the signer stands. A scene gives one
# enlarged backdrop a frame and says where in the picture the signer's own square lies.

_SHORTEST_SHOT, _LONGEST_SHOT = 40, 140  # frames
_PANORAMA = 1.7  # picture widths a camera can pan over
_BLUR = 18  # pixels of the enlarged picture
_DIM = 0.78  # a programme behind a signer is kept darker and paler
_GREY: Colour = (128, 128, 128)


@dataclass(frozen=True, slots=True)
class _Placement:
    """Where the signer's square lies in the picture: its upper left corner and its side, in picture sides."""

    left: float = 0.0
    top: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 4 or not np.isfinite((self.left, self.top)).all():
            raise ValueError(f"a signer cannot be placed at {self}")

    def apply(self, points: FloatArray) -> FloatArray:
        """Landmarks (n, 258) of the signer's square -> landmarks of the picture; what was not found stays zero."""
        pose, *hands = split(points)
        moved = [pose[:, :, :3], *hands]
        for part in moved:
            found = part.any(axis=(1, 2))
            part[found] = part[found] * self.scale + (self.left, self.top, 0.0)
        flat = (part.reshape(len(points), part.shape[1] * part.shape[2]) for part in (pose, *hands))
        return np.concatenate(list(flat), axis=1).astype(np.float32)


class Scene(Protocol):
    """A place to sign in."""

    @property
    def placement(self) -> _Placement: ...

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        """Without end, one RGB picture of side x side pixels a frame, to paint on: the next frame takes its place."""


@dataclass(frozen=True, slots=True)
class Studio:
    """A plain wall, a little brighter in the middle."""

    colour: Colour
    placement: _Placement = _Placement()

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        axis = np.linspace(-1, 1, side)
        light = 1.06 - 0.16 * (axis[:, None] ** 2 + axis[None, :] ** 2) / 2
        wall = np.clip(light[:, :, None] * np.array(self.colour), 0, 255).astype(np.uint8)
        clean = Image.fromarray(wall)
        picture = clean.copy()
        while True:
            picture.paste(clean)  # a new picture for each frame costs more than the painting of a head
            yield picture


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A programme of changing, panning shots with things that move; the signer stands on the right."""

    seed: int
    placement: _Placement = _Placement(0.24, 0.12, 0.9)

    def backdrops(self, side: int) -> Iterator[Image.Image]:
        rng, picture = np.random.default_rng(self.seed), Image.new("RGB", (side, side))
        while True:
            yield from _shot(rng, picture)


@dataclass(frozen=True, slots=True)
class _Mover:
    """A thing that crosses a shot: place, size and speed a frame in picture sides."""

    x: float
    y: float
    width: float
    height: float
    speed: float
    colour: Colour

    def paint(self, draw: ImageDraw.ImageDraw, frame: int, side: int) -> None:
        x = (self.x + self.speed * frame) % 1.6 - 0.3
        edges = (x - self.width, self.y - self.height, x + self.width, self.y + self.height)
        draw.ellipse([edge * side for edge in edges], fill=self.colour)


def _shot(rng: np.random.Generator, picture: Image.Image) -> Iterator[Image.Image]:
    side = picture.width
    length = int(rng.integers(_SHORTEST_SHOT, _LONGEST_SHOT))
    panorama = _panorama(rng, side)
    room = panorama.width - side
    start, end = (room * rng.random(2)).tolist()
    movers = []
    for _ in range(int(rng.integers(2, 5))):
        x, y, width, height, speed = (rng.random(5) * (1.6, 0.6, 0.08, 0.12, 0.03)).tolist()
        movers.append(_Mover(x, 0.3 + y, 0.03 + width, 0.04 + height, speed - 0.015, _some_colour(rng)))
    for frame in range(length):
        left = round(start + (end - start) * frame / length)
        picture.paste(panorama, (-left, 0))
        draw = ImageDraw.Draw(picture)
        for mover in movers:
            mover.paint(draw, frame, side)
        yield picture


def _panorama(rng: np.random.Generator, side: int) -> Image.Image:
    width = round(side * _PANORAMA)
    small = Image.new("RGB", (width // _BLUR, side // _BLUR))
    draw = ImageDraw.Draw(small)
    horizon = small.height * float(rng.uniform(0.4, 0.75))
    draw.rectangle((0, 0, small.width, horizon), fill=_some_colour(rng))
    draw.rectangle((0, horizon, small.width, small.height), fill=_some_colour(rng))
    for _ in range(int(rng.integers(8, 20))):
        left, wide, tall = (rng.random(3) * (small.width, 0.2 * small.width, 0.5 * small.height)).tolist()
        draw.rectangle((left, horizon - tall, left + wide, horizon + 0.3 * tall), fill=_some_colour(rng))
    grain = rng.normal(1.0, 0.06, (small.height, small.width, 1))
    small = Image.fromarray(np.clip(np.asarray(small) * grain, 0, 255).astype(np.uint8))
    return small.resize((width, side), Image.Resampling.BICUBIC)


def _some_colour(rng: np.random.Generator) -> Colour:
    red, green, blue = rng.integers(20, 236, 3).tolist()
    return shaded(blended((red, green, blue), _GREY, 0.45), _DIM)


# Pictures of a world for people: a contact sheet, minimal pairs, and two clips that move.

_SIDE = 192
_EVERY = 2  # frames a moving picture leaves out
_EPISODE_FRAMES = 75
_ENTRIES, _PAIRS = 8, 3  # on the sheets
_CLOSE = _Placement(-0.31, -0.15, 1.6)  # the hands fill the picture


def write_preview(world: World, folder: Path) -> tuple[Path, ...]:
    """Write entries.png, minimal-pairs.png, dictionary.gif and continuous.gif into `folder`."""
    entries = world.dictionary_entries()
    some = entries[:: max(1, len(entries) // _ENTRIES)][:_ENTRIES]
    first = {entry.type_id: entry for entry in reversed(entries)}
    pairs = [(first[a], first[b]) for a, b in world.lexicon.minimal_pairs if a in first and b in first]
    sheets = {
        "entries.png": [_row(world, entry, entry.entry_id) for entry in some],
        # Both by one signer, so that nothing else differs.
        "minimal-pairs.png": [
            _row(world, replace(entry, signer=pair[0].signer), f"{mark} {entry.entry_id}")
            for pair in pairs[:_PAIRS]
            for entry, mark in zip(pair, ("/", "\\"), strict=True)
        ],
    }
    written = []
    for name, rows in sheets.items():
        if rows:
            written.append(folder / name)
            sheet = Image.fromarray(contact_sheet(rows, columns=7, tile_height=112))
            with atomic_output(folder / name, overwrite=True) as temporary:
                sheet.save(temporary, format="PNG", optimize=True)
    clip = world.perform_entry(some[0])
    episode = world.perform_episode(world.episodes("test")[0]).performance
    written.append(_moving(_preview_frames(clip, None), folder / "dictionary.gif"))
    written.append(_moving(_preview_frames(episode, Broadcast(world.seed), _EPISODE_FRAMES), folder / "continuous.gif"))
    return tuple(written)


def _row(world: World, entry: Entry, title: str) -> SheetRow:
    clip = world.perform_entry(entry)
    frames = list(_preview_frames(clip, Studio(clip.signer.appearance.background, _CLOSE)))
    return SheetRow(title, frames[clip.moving.start : clip.moving.stop])


def _preview_frames(performance: Performance, scene: Scene | None, n_frames: int | None = None) -> Iterator[Pixels]:
    points, mouth = performance.points[:n_frames], performance.mouth[:n_frames]
    return render_frames(points, mouth, performance.signer.appearance, scene, side=_SIDE)


def _moving(frames: Iterator[Pixels], path: Path) -> Path:
    pictures = map(Image.fromarray, islice(frames, 0, None, _EVERY))
    first, *rest = (picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=64) for picture in pictures)
    with atomic_output(path, overwrite=True) as temporary:
        first.save(temporary, save_all=True, append_images=rest, duration=FRAME_MS * _EVERY, loop=0, optimize=True)
    return path
