"""Friends and false friends as one HTML page that needs nothing from anywhere: its pictures are inside it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from signspot.atomic import atomic_output

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif; }
body { max-width: 76rem; margin: 1.5rem auto; padding: 0 1rem; }
.note { border-left: .25rem solid #D55E00; padding: .1rem 0 .1rem .8rem; }
article { border-top: 1px solid #8884; padding: .6rem 0; }
article { display: grid; grid-template-columns: 1fr 1fr; gap: .2rem 1rem; }
article header { grid-column: 1 / 3; color: GrayText; } img { max-width: 100%; background: white; }
h3 { margin: 0; font-size: 1rem; }
"""
NOTE = (
    "Signs were compared by a model, not by people. What is listed here is worth a look by somebody who knows both "
    "languages; what is not listed may still exist."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FriendsCard:
    """One pair on the page."""

    title: str
    left: str  # word, language, entry
    right: str
    left_jpeg: bytes = b""  # empty where the clip may not be shown
    right_jpeg: bytes = b""


@dataclass(frozen=True, slots=True)
class FriendsGroup:
    """The pairs of one relation."""

    title: str
    cards: Sequence[FriendsCard]
    n_more: int = 0  # that are in the table only


def write_friends_page(title: str, groups: Sequence[FriendsGroup], path: Path, *, overwrite: bool = False) -> None:
    """Write the page; every text in it is shown as it is and never run."""
    content = "".join(_lines(title, groups)).encode(errors="backslashreplace")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _lines(title: str, groups: Sequence[FriendsGroup]) -> Iterator[str]:
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style></head><body>\n'
    yield f'<h1>{escape(title)}</h1>\n<p class="note">{escape(NOTE)}</p>\n'
    for group in groups:
        yield f"<h2>{escape(group.title)} ({len(group.cards) + group.n_more:,})</h2>\n"
        for card in group.cards:
            yield f"<article><header>{escape(card.title)}</header>\n"
            yield from (_side(card.left, card.left_jpeg), _side(card.right, card.right_jpeg))
            yield "</article>\n"
        if group.n_more:
            yield f"<p>{group.n_more:,} more are in the table.</p>\n"
    yield "</body></html>\n"


def _side(text: str, jpeg: bytes) -> str:
    image = f'<img alt="{escape(text)}" src="data:image/jpeg;base64,{b64encode(jpeg).decode()}">' if jpeg else ""
    return f"<div><h3>{escape(text)}</h3>{image}</div>\n"
