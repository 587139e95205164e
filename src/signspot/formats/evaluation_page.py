"""The report of an evaluation as one HTML page that needs nothing from anywhere: its pictures are inside it.

Readable without seeing the pictures: every one has a text of its own that says what it shows. Tables have captions and
headings of rows and columns. All texts are shown as they are and never run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from signspot.atomic import atomic_output

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
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
    content = "".join(_lines(page)).encode(errors="backslashreplace")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _lines(page: EvaluationPage) -> Iterator[str]:
    title = escape(page.title)
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
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
