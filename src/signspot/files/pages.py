"""HTML pages that need nothing from anywhere: reports, pairs of signs, dictionaries.

Text enters a page only through `_tag`, which escapes it. The policy of a page forbids any connection. Pictures are
inside the page or, of a dictionary, beside it and loaded when they come into view: ten thousand clips open at once.
"""

from __future__ import annotations

import itertools
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from signspot.domain.recordings import Entry
from signspot.domain.time import MillisSpan
from signspot.files.atomic import atomic_output

_PICTURES_INSIDE = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_FILES_BESIDE = (
    "default-src 'none'; img-src 'self' file:; media-src 'self' file:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'"
)
_ALONE = frozenset({"meta", "img", "input"})  # elements without an end


class _Html(str):
    """Markup made here; any other text is escaped where it becomes part of it."""

    __slots__ = ()


def _tag(name: str, /, *content: str, **attributes: str | None) -> _Html:
    """An element; attributes that are None are left out.

    >>> _tag("p", "1 < 2 ", _tag("b", "&"), class_="note", data_id='"')
    '<p class="note" data-id="&quot;">1 &lt; 2 <b>&amp;</b></p>'
    """
    values = {key.strip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    given = "".join(f' {key}="{escape(value)}"' for key, value in values.items())
    inside = "".join(part if isinstance(part, _Html) else escape(part) for part in content)
    return _Html(f"<{name}{given}>{inside}" + ("" if name in _ALONE else f"</{name}>"))


def _each(name: str, texts: Iterable[str]) -> Iterator[_Html]:
    return (_tag(name, text) for text in texts)


def _picture(picture: bytes, kind: str, alternative: str) -> _Html:
    return _tag("img", src=f"data:image/{kind};base64,{b64encode(picture).decode()}", alt=alternative)


def _note(text: str) -> _Html:
    return _tag("p", text, class_="note")


def _own_file(name: str) -> _Html:
    return _Html("\n" + resources.files("signspot.files").joinpath(name).read_text(encoding="utf-8"))


def _write(
    path: Path, title: str, body: Iterable[_Html], *, overwrite: bool, is_wide: bool = False, script: str | None = None
) -> None:
    """Write a page; with a script of ours, its pictures and clips are files beside it."""
    head = _tag(
        "head",
        _tag("meta", charset="utf-8"),
        _tag("title", title),
        _tag("meta", http_equiv="Content-Security-Policy", content=_FILES_BESIDE if script else _PICTURES_INSIDE),
        _tag("meta", name="viewport", content="width=device-width"),
        _tag("style", _own_file("pages.css")),
    )
    lines = itertools.chain.from_iterable((part, "\n") for part in body)
    main = _tag("main", "\n", *lines, class_="wide" if is_wide else None)
    page = _tag("html", head, _tag("body", main, *((_tag("script", _own_file(script)),) if script else ())), lang="en")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(f"<!doctype html>\n{page}\n".encode(errors="backslashreplace"))


# Reports: what was measured, as texts, tables and pictures. Readable without seeing the pictures: every one has a text
# of its own that says what it shows. Tables have captions and headings of rows and columns.


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows of texts under headings; the first cell of a row is its heading."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A picture, what it shows for those who cannot see it, and what to make of it."""

    title: str
    png: bytes
    alternative: str
    caption: str


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading, then paragraphs, a table and figures."""

    title: str
    paragraphs: Sequence[str] = ()
    table: PageTable | None = None
    figures: Sequence[PageFigure] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """All there is to show, from top to bottom."""

    title: str
    note: str = ""  # what must not be overlooked
    paragraphs: Sequence[str]
    sections: Sequence[PageSection]
    files: Sequence[tuple[str, str]]  # a path from the page, and what it is
    commands: Sequence[str] = ()  # to try next

    def write(self, path: Path, *, overwrite: bool = False) -> None:
        _write(path, self.title, _report(self), overwrite=overwrite)


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _report(page: ReportPage) -> Iterator[_Html]:
    yield _tag("h1", page.title)
    if page.note:
        yield _note(page.note)
    yield from _each("p", page.paragraphs)
    for section in page.sections:
        table = () if section.table is None else (_table(section.table),)
        figures: list[_Html] = []
        for one in section.figures:
            picture = _picture(one.png, "png", one.alternative)
            figures += [_tag("h3", one.title), _tag("figure", picture, _tag("figcaption", one.caption))]
        yield _tag("section", _tag("h2", section.title), *_each("p", section.paragraphs), *table, *figures)
    yield _tag("h2", "Files")
    files = ((_tag("a", file, href=quote(file, errors="replace")), f": {what}") for file, what in page.files)
    yield _tag("ul", *(_tag("li", *file) for file in files))
    if page.commands:
        yield _tag("h2", "Next")
        yield _tag("pre", "\n".join(page.commands))


def _table(table: PageTable) -> _Html:
    head = _tag("tr", *(_tag("th", name, scope="col") for name in table.head))
    rows = (_tag("tr", _tag("th", first, scope="row"), *_each("td", rest)) for first, *rest in table.rows)
    caption = _tag("caption", table.caption)
    return _tag("div", _tag("table", caption, _tag("thead", head), _tag("tbody", *rows)), class_="scroll")


# Friends and false friends: pairs of signs side by side.

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


def write_friends_page(title: str, groups: Sequence[FriendsGroup], path: Path) -> None:
    _write(path, title, _friends(title, groups), overwrite=False, is_wide=True)


def _friends(title: str, groups: Sequence[FriendsGroup]) -> Iterator[_Html]:
    yield _tag("h1", title)
    yield _note(NOTE)
    for group in groups:
        yield _tag("h2", f"{group.title} ({len(group.cards) + group.n_more:,})")
        for card in group.cards:
            sides = (_side(card.left, card.left_jpeg), _side(card.right, card.right_jpeg))
            yield _tag("article", _tag("header", card.title), *sides, class_="pair")
        if group.n_more:
            yield _tag("p", f"{group.n_more:,} more are in the table.")


def _side(text: str, jpeg: bytes) -> _Html:
    return _tag("div", _tag("h3", text), *((_picture(jpeg, "jpeg", text),) if jpeg else ()))


# A dictionary: a card for every clip, a filter box, and the clip itself while a card is pointed at.

_SHOWN_PER_GROUP = 12  # clips of a face group at the top of the page
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

    def write(self, path: Path, *, overwrite: bool = False) -> None:
        _write(path, self.title, _dictionary(self), overwrite=overwrite, is_wide=True, script="dictionary_page.js")


def _dictionary(page: DictionaryPage) -> Iterator[_Html]:
    words = [(word, list(cards)) for word, cards in itertools.groupby(page.cards, key=lambda card: card.entry.word)]
    hint = "word, variant, signer, id ..."
    box = _tag("input", id="find", type="search", autofocus="", placeholder=hint, aria_label="Filter")
    count = _tag("span", f"{len(page.cards):,} clips of {len(words):,} words", id="count", role="status")
    yield _tag("header", _tag("h1", page.title), box, count, class_="bar")
    for title, texts in (("left out or to know", page.problems), ("duplicates", page.duplicates)):
        if texts:
            yield _tag("details", _tag("summary", f"{len(texts):,} {title}"), _tag("ul", *_each("li", texts)))
    yield from _face_groups(page.cards)
    for word, cards in words:
        yield _tag("section", _tag("h2", f"{word} ", _tag("small", str(len(cards)))), _cards(cards))


def _face_groups(cards: Iterable[Card]) -> Iterator[_Html]:
    groups: dict[int, list[Card]] = {}
    for card in cards:
        if card.face_group is not None:
            groups.setdefault(card.face_group, []).append(card)
    if groups:
        shown = []
        for number, own in sorted(groups.items()):
            shown.append(_tag("h3", f"face group {number} ", _tag("small", f"{len(own)} clips")))
            shown.append(_cards(own[:_SHOWN_PER_GROUP]))
        summary = _tag("summary", f"{len(groups):,} face groups")
        yield _tag("details", summary, _tag("p", _FACES_NOTE), *shown, open="")


def _cards(cards: Iterable[Card]) -> _Html:
    return _tag("div", *map(_card, cards), class_="cards")


def _card(card: Card) -> _Html:
    entry = card.entry
    signer = entry.signer.signer_id if entry.signer is not None else ""
    group = f"face group {card.face_group}" if card.face_group is not None else ""
    facts = (entry.variant and f"variant {entry.variant}", signer and f"signer {signer}", entry.region, group)
    lines = (*filter(None, facts), *card.notes)
    return _tag(
        "article",
        _film(card),
        _tag("b", entry.word),
        _tag("code", entry.entry_id),
        *_each("p", lines),
        class_="card",
        tabindex="0",
        data_find=" ".join((entry.word, entry.entry_id, *lines)).lower(),
        data_clip=quote(card.clip) if card.clip else None,
        data_start=f"{card.span_ms.start / 1000:.3f}" if card.clip else None,
        data_stop=f"{card.span_ms.stop / 1000:.3f}" if card.clip else None,
    )


def _film(card: Card) -> _Html:
    if not card.picture:
        return _tag("div", "not shown: its holder does not allow it", class_="film")
    style = f"--tiles:{card.n_tiles};--tile:{card.n_tiles // 2};aspect-ratio:{card.aspect:.4f}"
    return _tag("div", _tag("img", src=quote(card.picture), loading="lazy", alt=""), class_="film", style=style)
