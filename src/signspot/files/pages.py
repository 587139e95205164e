"""A dictionary as one HTML page: a card for every clip, a filter box, and the clip itself while a card is pointed at.

The page needs nothing from anywhere: pictures and clips lie beside it, and its policy forbids any connection. Pictures
are loaded when they come into view, so a dictionary of ten thousand clips opens at once.
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
    title, files = escape(page.title), resources.files("signspot.files")
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


# The report of an evaluation as one HTML page that needs nothing from anywhere: its pictures are inside it.
#
# Readable without seeing the pictures: every one has a text of its own that says what it shows. Tables have captions
# and headings of rows and columns. All texts are shown as they are and never run.


_EVALUATION_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; }
caption { text-align: left; padding-bottom: .4rem; color: GrayText; }
td, th { padding: .25rem 1rem .25rem 0; text-align: left; vertical-align: top; font-weight: normal; }
thead th { font-weight: 600; } td { font-variant-numeric: tabular-nums; }
tbody tr { border-top: 1px solid #8884; }
img { max-width: 100%; background: white; border-radius: .3rem; } figure { margin: .6rem 0 1.8rem; }
figcaption { color: GrayText; }
"""


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
    """A part of the page."""

    title: str
    paragraphs: Sequence[str] = ()
    table: PageTable | None = None
    figures: Sequence[PageFigure] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPage:
    """All there is to show, from top to bottom."""

    title: str
    paragraphs: Sequence[str]
    sections: Sequence[PageSection]
    files: Sequence[tuple[str, str]]  # a path from the page, and what it is


def write_evaluation_page(page: EvaluationPage, path: Path, *, overwrite: bool = False) -> None:
    """Write the page."""
    content = "".join(_evaluation_lines(page)).encode(errors="backslashreplace")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _evaluation_lines(page: EvaluationPage) -> Iterator[str]:
    title = escape(page.title)
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_EVALUATION_POLICY}">\n'
    yield f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style></head><body><main>\n'
    yield f"<h1>{title}</h1>\n"
    yield from (f"<p>{escape(text)}</p>\n" for text in page.paragraphs)
    for section in page.sections:
        yield from _section(section)
    yield "<h2>Files</h2>\n<ul>\n"
    for path, what in page.files:
        yield f'<li><a href="{escape(quote(path, errors="replace"))}">{escape(path)}</a>: {escape(what)}</li>\n'
    yield "</ul>\n</main></body></html>\n"


def _section(section: PageSection) -> Iterator[str]:
    yield f"<section><h2>{escape(section.title)}</h2>\n"
    yield from (f"<p>{escape(text)}</p>\n" for text in section.paragraphs)
    if section.table is not None:
        yield from _table(section.table)
    for figure in section.figures:
        source = f"data:image/png;base64,{b64encode(figure.png).decode()}"
        yield f"<h3>{escape(figure.title)}</h3>\n"
        yield f'<figure><img src="{source}" alt="{escape(figure.alternative)}">\n'
        yield f"<figcaption>{escape(figure.caption)}</figcaption></figure>\n"
    yield "</section>\n"


def _table(table: PageTable) -> Iterator[str]:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.head)
    yield f'<div class="scroll"><table><caption>{escape(table.caption)}</caption>\n'
    yield f"<thead><tr>{head}</tr></thead><tbody>\n"
    for first, *rest in table.rows:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        yield f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>\n'
    yield "</tbody></table></div>\n"


# Friends and false friends as one HTML page that needs nothing from anywhere: its pictures are inside it.


_FRIENDS_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_FRIENDS_STYLE = """
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
    content = "".join(_friends_lines(title, groups)).encode(errors="backslashreplace")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _friends_lines(title: str, groups: Sequence[FriendsGroup]) -> Iterator[str]:
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_FRIENDS_POLICY}">\n'
    yield f'<meta name="viewport" content="width=device-width">\n<style>{_FRIENDS_STYLE}</style></head><body>\n'
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


# The report of a comparison as one HTML page that needs nothing from anywhere: its pictures are inside it.


_REPORT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_REPORT_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 58rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.note { border-left: .25rem solid #D55E00; padding: .1rem 0 .1rem .8rem; }
table { border-collapse: collapse; } td, th { padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td:first-child { white-space: nowrap; }
tbody tr { border-top: 1px solid #8884; } tr.chance { color: GrayText; }
img { max-width: 100%; background: white; border-radius: .3rem; } figure { margin: 1rem 0 2rem; }
pre { padding: .6rem .8rem; background: #8882; overflow-x: auto; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRow:
    """One line of the table; scores from 0 to 1."""

    name: str
    what: str
    mean_ap: float
    recall_at_5: float
    localisation: float
    mean_ap_range: tuple[float, float] | None = None  # 95 %, with other words; None: unknown
    is_chance: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its text."""

    title: str
    text: str
    png: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """All there is to show, from top to bottom."""

    title: str
    note: str  # what must not be overlooked
    paragraphs: Sequence[str]
    rows: Sequence[MethodRow]
    table_note: str
    figures: Sequence[Figure]
    files: Sequence[tuple[str, str]]  # a path from the page, and what it is
    commands: Sequence[str]


def percent(share: float) -> str:
    """A share from 0 to 1 for people.

    >>> percent(0.0725)
    '7.2%'
    """
    return f"{100 * share:.1f}%"


def percents(shares: tuple[float, float] | None) -> str:
    """A range for people; nothing where it is unknown.

    >>> percents((0.024, 0.196))
    '2.4-19.6'
    """
    return "" if shares is None else "-".join(f"{100 * share:.1f}" for share in shares)


def write_report(page: ReportPage, path: Path, *, overwrite: bool = False) -> None:
    """Write the page; every text in it is shown as it is and never run."""
    content = "".join(_report_lines(page)).encode(errors="backslashreplace")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _report_lines(page: ReportPage) -> Iterator[str]:
    title = escape(page.title)
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_REPORT_POLICY}">\n'
    yield f'<meta name="viewport" content="width=device-width">\n<style>{_REPORT_STYLE}</style></head><body>\n'
    yield f'<h1>{title}</h1>\n<p class="note">{escape(page.note)}</p>\n'
    yield from (f"<p>{escape(text)}</p>\n" for text in page.paragraphs)
    yield from _report_table(page.rows)
    yield f"<p>{escape(page.table_note)}</p>\n"
    for figure in page.figures:
        source = f"data:image/png;base64,{b64encode(figure.png).decode()}"
        yield f"<h2>{escape(figure.title)}</h2>\n<p>{escape(figure.text)}</p>\n"
        yield f'<figure><img src="{source}" alt="{escape(figure.title)}"></figure>\n'
    yield "<h2>Files</h2>\n<ul>\n"
    for path, what in page.files:
        yield f'<li><a href="{escape(quote(path, errors="replace"))}">{escape(path)}</a>: {escape(what)}</li>\n'
    yield f"</ul>\n<h2>Next</h2>\n<pre>{escape(chr(10).join(page.commands))}</pre>\n</body></html>\n"


def _report_table(rows: Sequence[MethodRow]) -> Iterator[str]:
    heads = "".join(f'<th class="n">{name}</th>' for name in ("mAP", "95% range", "R@5", "localisation"))
    yield f"<table><thead><tr><th>method</th>{heads}<th>what it learns from</th></tr></thead><tbody>\n"
    for row in rows:
        mean_ap, *others = map(percent, (row.mean_ap, row.recall_at_5, row.localisation))
        cells = "".join(f'<td class="n">{cell}</td>' for cell in (mean_ap, percents(row.mean_ap_range), *others))
        kind = ' class="chance"' if row.is_chance else ""
        yield f"<tr{kind}><td>{escape(row.name)}</td>{cells}<td>{escape(row.what)}</td></tr>\n"
    yield "</tbody></table>\n"
