"""What a released data set says about its clips, beyond what our entries hold: clips.json beside the manifest."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from signspot.domain.spans import MillisSpan
from signspot.formats.clip_boxes import Box
from signspot.formats.plain_data import Node
from signspot.formats.records import read_manifest
from signspot.formats.safe_json import write_json

CLIPS_FILE = "clips.json"
_FORMAT = "signspot-clips"
_TEXTS = ("entry_id", "text", "signer", "split", "source", "url")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipRecord:
    """One clip as released: the frames [start, stop) of the video it was cut from, at `fps`, and where to find it."""

    entry_id: str
    text: str  # the gloss as released
    start: int
    stop: int | None  # None: to the end of the video
    fps: float
    box: Box | None = None
    signer: str = ""
    split: str = ""
    source: str = ""
    url: str = ""
    label: int | None = None

    def __post_init__(self) -> None:
        if self.start < 0 or (self.stop is not None and self.stop < self.start) or not self.fps > 0:
            raise ValueError(f"no frames from {self.start} to {self.stop} at {self.fps} a second")

    def span_ms(self, duration_ms: int) -> MillisSpan:
        """The time of the clip in the video it was cut from, of this duration; constant frame rate as released."""
        start = min(self.start * 1000 / self.fps, duration_ms)
        stop = duration_ms if self.stop is None else min(self.stop * 1000 / self.fps, duration_ms)
        return MillisSpan.of(start, stop)


def write_clip_records(records: tuple[ClipRecord, ...], folder: Path, *, overwrite: bool = False) -> None:
    """Write clips.json into the folder of a dictionary."""
    content = {"format": _FORMAT, "version": 1, "clips": [asdict(record) for record in records]}
    write_json(content, folder / CLIPS_FILE, overwrite=overwrite)


def read_clip_records(folder: Path) -> tuple[ClipRecord, ...]:
    """Read clips.json of a dictionary."""
    path = folder / CLIPS_FILE
    return tuple(_record(node) for node in Node(path, read_manifest(path, _FORMAT)).member("clips").rows())


def _record(node: Node) -> ClipRecord:
    texts = {name: node.member(name).text() for name in _TEXTS}
    stop, label, box = (node.member(name) for name in ("stop", "label", "box"))
    try:
        return ClipRecord(
            **texts,
            start=node.member("start").integer(),
            stop=None if stop.value is None else stop.integer(),
            fps=node.member("fps").number(),
            box=None if box.value is None else _box(box),
            label=None if label.value is None else label.integer(),
        )
    except ValueError as error:
        raise node.wrong(str(error)) from error


def _box(node: Node) -> Box:
    edges = [node.member(name).number() for name in ("top", "left", "bottom", "right")]
    return Box(edges[0], edges[1], edges[2], edges[3], in_pixels=node.member("in_pixels").value is True)
