"""A dictionary as one HTML page: a card for every clip, a filter box, and the clip itself while a card is pointed at.

The page needs nothing from anywhere: pictures and clips lie beside it, and its policy forbids any connection. Pictures
are loaded when they come into view, so a dictionary of ten thousand clips opens at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from signspot.atomic import atomic_output
from signspot.domain.dictionary import Entry
from signspot.domain.spans import MillisSpan

_POLICY = (
    "default-src 'none'; img-src 'self' file:; media-src 'self' file:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)
_SHOWN_PER_GROUP = 12  # clips of a face group at the top of the page
_HINT = "word, variant, signer, id ..."
_FACES_NOTE = (
    "Groups of clips whose faces look alike, found because this was asked for. They are guesses to be checked by a "
    "person: nothing about them is written into the dictionary."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One clip on the page."""

    entry: Entry
    picture: str = ""  # its strip of thumbnails, a path from the page; "" where it may not be shown
    clip: str = ""  # the clip, a path from the page; "" where it may not be shown
    n_tiles: int = 1  # of the strip
    aspect: float = 1.0  # width of a tile over its height
    span_ms: MillisSpan  # what is played
    notes: tuple[str, ...] = ()
    face_group: int | None = None


@dataclass(frozen=True, slots=True)
class DictionaryPage:
    """All there is to show; the cards of a word follow each other."""

    title: str
    cards: Sequence[Card]
    problems: Sequence[str] = ()
    duplicates: Sequence[str] = ()


def write_page(page: DictionaryPage, path: Path, *, overwrite: bool = False) -> None:
    """Write the page; every text in it is shown as it is and never run."""
    content = "".join(_lines(page)).encode(errors="backslashreplace")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _lines(page: DictionaryPage) -> Iterator[str]:
    words = [(word, list(cards)) for word, cards in itertools.groupby(page.cards, key=lambda card: card.entry.word)]
    title, files = escape(page.title), resources.files("signspot.formats")
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield '<meta name="viewport" content="width=device-width">\n'
    yield f"<style>\n{files.joinpath('dictionary_page.css').read_text(encoding='utf-8')}</style></head><body>\n"
    yield f'<header><h1>{title}</h1><input id="find" type="search" autofocus placeholder="{_HINT}" aria-label="Filter">'
    yield f'<span id="count" role="status">{len(page.cards):,} clips of {len(words):,} words</span></header>\n'
    yield from _list("left out or to know", page.problems)
    yield from _list("duplicates", page.duplicates)
    yield from _face_groups(page.cards)
    for word, cards in words:
        yield f"<section><h2>{escape(word)} <small>{len(cards)}</small></h2><div class=cards>\n"
        yield from map(_card, cards)
        yield "</div></section>\n"
    yield f"<script>\n{files.joinpath('dictionary_page.js').read_text(encoding='utf-8')}</script></body></html>\n"


def _list(title: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield f"<details><summary>{len(texts):,} {title}</summary><ul>\n"
        yield from (f"<li>{escape(text)}</li>\n" for text in texts)
        yield "</ul></details>\n"


def _face_groups(cards: Iterable[Card]) -> Iterator[str]:
    groups: dict[int, list[Card]] = {}
    for card in cards:
        if card.face_group is not None:
            groups.setdefault(card.face_group, []).append(card)
    if groups:
        yield f"<details open><summary>{len(groups):,} face groups</summary><p>{_FACES_NOTE}</p>\n"
        for number in sorted(groups):
            yield f"<h3>face group {number} <small>{len(groups[number])} clips</small></h3><div class=cards>\n"
            yield from map(_card, groups[number][:_SHOWN_PER_GROUP])
            yield "</div>\n"
        yield "</details>\n"


def _card(card: Card) -> str:
    entry = card.entry
    signer = entry.signer.signer_id if entry.signer is not None else ""
    group = f"face group {card.face_group}" if card.face_group is not None else ""
    facts = [entry.variant and f"variant {entry.variant}", signer and f"signer {signer}", entry.region, group]
    find = " ".join((entry.word, entry.entry_id, *filter(None, facts), *card.notes)).lower()
    lines = (*filter(None, facts), *card.notes)
    return (
        f'<article class=card tabindex=0 data-find="{escape(find)}"{_clip(card)}>{_film(card)}'
        f"<b>{escape(entry.word)}</b><code>{escape(entry.entry_id)}</code>"
        f"{''.join(f'<p>{escape(line)}</p>' for line in lines)}</article>\n"
    )


def _clip(card: Card) -> str:
    if not card.clip:
        return ""
    start, stop = card.span_ms.start / 1000, card.span_ms.stop / 1000
    return f' data-clip="{escape(quote(card.clip))}" data-start="{start:.3f}" data-stop="{stop:.3f}"'


def _film(card: Card) -> str:
    if not card.picture:
        return "<div class=film>not shown: its holder does not allow it</div>"
    style = f"--tiles:{card.n_tiles};--tile:{card.n_tiles // 2};aspect-ratio:{card.aspect:.4f}"
    picture = escape(quote(card.picture))
    return f'<div class=film style="{style}"><img src="{picture}" loading="lazy" alt=""></div>'
