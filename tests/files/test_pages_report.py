from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from signspot.errors import OutputExists
from signspot.files.pages import Figure, MethodRow, ReportPage, write_report

HOSTILE = '<script>alert("x")</script> & "quotes" \ud800'
ROW = MethodRow(name="watch", what="annotations", mean_ap=0.5, recall_at_5=0.25, localisation=0.125)


def page(text: str) -> ReportPage:
    return ReportPage(
        title=text,
        note=text,
        paragraphs=(text,),
        rows=(ROW, MethodRow(name=text, what=text, mean_ap=0, recall_at_5=0, localisation=1, is_chance=True)),
        table_note=text,
        figures=(Figure(text, text, b"\x89PNG bytes"),),
        files=((text, text),),
        commands=(text, "second"),
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def tags_of(path: Path) -> list[tuple[str, dict[str, str | None]]]:
    reader = Tags()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.seen


def test_texts_are_shown_and_never_run(tmp_path: Path) -> None:
    write_report(page("plain"), tmp_path / "plain.html")
    write_report(page(HOSTILE), tmp_path / "hostile.html")
    tags = tags_of(tmp_path / "hostile.html")
    assert [tag for tag, _ in tags] == [tag for tag, _ in tags_of(tmp_path / "plain.html")]
    assert all(not name.startswith("on") for _, attributes in tags for name in attributes)


def test_the_page_needs_nothing_from_anywhere(tmp_path: Path) -> None:
    write_report(page("x"), tmp_path / "page.html")
    written = (tmp_path / "page.html").read_text()
    assert "http" not in written.replace("http-equiv", "")
    policy = next(a["content"] for t, a in tags_of(tmp_path / "page.html") if a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'; img-src data:;")
    (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', written)
    assert base64.b64decode(picture) == b"\x89PNG bytes"


def test_scores_are_percents(tmp_path: Path) -> None:
    write_report(page("x"), tmp_path / "page.html")
    cells = re.findall(r'<td class="n">([^<]+)</td>', (tmp_path / "page.html").read_text())
    assert cells == ["50.0%", "25.0%", "12.5%", "0.0%", "0.0%", "100.0%"]


def test_a_page_replaces_another_only_when_told(tmp_path: Path) -> None:
    write_report(page("first"), tmp_path / "page.html")
    with pytest.raises(OutputExists, match="exists already"):
        write_report(page("second"), tmp_path / "page.html")
    write_report(page("second"), tmp_path / "page.html", overwrite=True)
    assert "<h1>second</h1>" in (tmp_path / "page.html").read_text()
