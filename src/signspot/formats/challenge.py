"""Files of the 2022 sign-spotting challenge as JSON: {video: [[class, start_ms, stop_ms], ...], ...}.

Annotations and answers have the same form; a video without a sign has an empty list. Times that are no whole numbers
are rounded to milliseconds. The challenge also gave these files out as pickles, which can run code when opened: those
are refused.
"""

from __future__ import annotations

from pathlib import Path

from signspot.domain.time import MillisSpan
from signspot.errors import FormatError
from signspot.evaluation.localisation import SignSpan, SpansByVideo
from signspot.files.intake import read_whole
from signspot.files.json import Node, parse_json, write_json

PICKLE_SUFFIXES = {".pkl", ".pickle", ".pck", ".pcl"}
_PICKLE_OPENINGS = (b"\x80", b"(dp", b"(d.", b"}q", b"}.")  # a dict in any protocol; JSON never opens so
_MAX_MS = 1 << 53


def read_challenge(path: Path) -> dict[str, tuple[SignSpan, ...]]:
    content = read_whole(path)
    if path.suffix.lower() in PICKLE_SUFFIXES or content.startswith(_PICKLE_OPENINGS):
        what = "is a pickle, which can run code when it is opened"
        raise FormatError(path, what, "use the JSON form: {video: [[class, start_ms, stop_ms], ...]}")
    return challenge_spans(Node(path, parse_json(content, path)))


def write_challenge(spans: SpansByVideo, path: Path, *, overwrite: bool = False) -> None:
    """Write the spans of every video, in the order given; what is written reads back the same."""
    content = {
        video: [[one.sign, one.span_ms.start, one.span_ms.stop] for one in signs] for video, signs in spans.items()
    }
    challenge_spans(Node(path, content))
    write_json(content, path, overwrite=overwrite)


def challenge_spans(root: Node) -> dict[str, tuple[SignSpan, ...]]:
    return {
        Node(root.file, video, "a video name").name(): tuple(_span(row) for row in node.rows())
        for video, node in root.members().items()
    }


def _span(row: Node) -> SignSpan:
    sign, *times = row.rows(3)
    start, stop = (time.number() for time in times)
    if not 0 <= start <= stop <= _MAX_MS:
        raise row.is_not("class with a start and a stop in milliseconds")
    return SignSpan(sign.integer(), MillisSpan.of(start, stop))
