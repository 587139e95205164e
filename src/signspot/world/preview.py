"""Pictures of a world for people: a contact sheet, minimal pairs, and two clips that move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from PIL import Image

from signspot.atomic import atomic_output
from signspot.domain.dictionary import Entry
from signspot.domain.spans import FRAME_MS, FrameSpan
from signspot.domain.tracks import Pixels
from signspot.media.contact_sheet import SheetRow, contact_sheet
from signspot.world.motion import Performance
from signspot.world.render import render_frames
from signspot.world.render_scene import Broadcast, Placement, Scene, Studio
from signspot.world.simulation import World

_SIDE = 192
_EVERY = 2  # frames a moving picture leaves out
_EPISODE_FRAMES = 75
_CLOSE = Placement(-0.31, -0.15, 1.6)  # the hands fill the picture


def write_preview(world: World, folder: Path, *, n_entries: int = 8, n_pairs: int = 3) -> tuple[Path, ...]:
    """Write entries.png, minimal-pairs.png, dictionary.gif and continuous.gif into `folder`."""
    entries = world.dictionary_entries()
    some = entries[:: max(1, len(entries) // n_entries)][:n_entries]
    sheets = {
        "entries.png": [_row(world, entry, entry.entry_id) for entry in some],
        "minimal-pairs.png": [row for pair in _minimal_pairs(world, entries)[:n_pairs] for row in _pair(world, pair)],
    }
    written = [_sheet(rows, folder / name) for name, rows in sheets.items() if rows]
    clip = world.perform_entry(some[0])
    episode = world.perform_episode(world.episodes("test")[0]).performance
    written.append(_moving(_frames(clip, None), folder / "dictionary.gif"))
    written.append(_moving(_frames(episode, Broadcast(world.seed), _EPISODE_FRAMES), folder / "continuous.gif"))
    return tuple(written)


def _minimal_pairs(world: World, entries: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    first = {entry.type_id: entry for entry in reversed(entries)}
    return [(first[one], first[other]) for one, other in world.lexicon.minimal_pairs if one in first and other in first]


def _pair(world: World, pair: tuple[Entry, Entry]) -> Iterator[SheetRow]:
    """Both by one signer, so that nothing else differs."""
    for entry, mark in zip(pair, ("/", "\\"), strict=True):
        yield _row(world, replace(entry, signer=pair[0].signer), f"{mark} {entry.entry_id}")


def _row(world: World, entry: Entry, title: str) -> SheetRow:
    clip = world.perform_entry(entry)
    frames = list(_frames(clip, Studio(clip.signer.appearance.background, _CLOSE)))
    moving: FrameSpan = clip.moving
    return SheetRow(title, frames[moving.start : moving.stop])


def _frames(performance: Performance, scene: Scene | None, n_frames: int | None = None) -> Iterator[Pixels]:
    points, mouth = performance.points[:n_frames], performance.mouth[:n_frames]
    return render_frames(points, mouth, performance.signer.appearance, scene, side=_SIDE)


def _sheet(rows: list[SheetRow], path: Path) -> Path:
    with atomic_output(path, overwrite=True) as temporary:
        Image.fromarray(contact_sheet(rows, columns=7, tile_height=112)).save(temporary, format="PNG", optimize=True)
    return path


def _moving(frames: Iterator[Pixels], path: Path) -> Path:
    pictures = [
        Image.fromarray(pixels).convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
        for number, pixels in enumerate(frames)
        if number % _EVERY == 0
    ]
    with atomic_output(path, overwrite=True) as temporary:
        pictures[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=pictures[1:],
            duration=FRAME_MS * _EVERY,
            loop=0,
            optimize=True,
        )
    return path
