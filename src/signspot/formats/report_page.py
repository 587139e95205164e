"""The report of a comparison as one HTML page that needs nothing from anywhere: its pictures are inside it."""

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
    content = "".join(_lines(page)).encode(errors="backslashreplace")
    with atomic_output(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content)


def _lines(page: ReportPage) -> Iterator[str]:
    title = escape(page.title)
    yield f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style></head><body>\n'
    yield f'<h1>{title}</h1>\n<p class="note">{escape(page.note)}</p>\n'
    yield from (f"<p>{escape(text)}</p>\n" for text in page.paragraphs)
    yield from _table(page.rows)
    yield f"<p>{escape(page.table_note)}</p>\n"
    for figure in page.figures:
        source = f"data:image/png;base64,{b64encode(figure.png).decode()}"
        yield f"<h2>{escape(figure.title)}</h2>\n<p>{escape(figure.text)}</p>\n"
        yield f'<figure><img src="{source}" alt="{escape(figure.title)}"></figure>\n'
    yield "<h2>Files</h2>\n<ul>\n"
    for path, what in page.files:
        yield f'<li><a href="{escape(quote(path, errors="replace"))}">{escape(path)}</a>: {escape(what)}</li>\n'
    yield f"</ul>\n<h2>Next</h2>\n<pre>{escape(chr(10).join(page.commands))}</pre>\n</body></html>\n"


def _table(rows: Sequence[MethodRow]) -> Iterator[str]:
    heads = "".join(f'<th class="n">{name}</th>' for name in ("mAP", "95% range", "R@5", "localisation"))
    yield f"<table><thead><tr><th>method</th>{heads}<th>what it learns from</th></tr></thead><tbody>\n"
    for row in rows:
        mean_ap, *others = map(percent, (row.mean_ap, row.recall_at_5, row.localisation))
        cells = "".join(f'<td class="n">{cell}</td>' for cell in (mean_ap, percents(row.mean_ap_range), *others))
        kind = ' class="chance"' if row.is_chance else ""
        yield f"<tr{kind}><td>{escape(row.name)}</td>{cells}<td>{escape(row.what)}</td></tr>\n"
    yield "</tbody></table>\n"
