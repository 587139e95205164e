from __future__ import annotations

import base64
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from signspot.errors import OutputExists
from signspot.files.pages import (
    FriendsCard,
    FriendsGroup,
    PageFigure,
    PageSection,
    PageTable,
    ReportPage,
    write_friends_page,
)

HOSTILE = '"><script>alert("x")</script> & "quotes" \ud800\udcff'
PNG = b"\x89PNG bytes"
_ALONE = {"meta", "img", "br"}


def page(text: str) -> ReportPage:
    table = PageTable(text, ("", text), ((text, "1%"),))
    figure = PageFigure(text, PNG, f"{text} as a curve", text)
    return ReportPage(
        title=text,
        note=text,
        paragraphs=(text,),
        sections=(PageSection(text, (text,), table, (figure,)),),
        files=((text, text),),
        commands=(text, "second"),
    )


class Read(HTMLParser):
    """Tags that are open, in order, and what was read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in _ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.seen]


def friends(text: str, path: Path) -> None:
    card = FriendsCard(title=text, left=text, right=text, left_jpeg=b"jpeg")
    write_friends_page(text, [FriendsGroup(text, [card], n_more=1234)], path)


def report(text: str, path: Path) -> None:
    page(text).write(path)


@pytest.mark.parametrize("write", [report, friends])
def test_texts_are_shown_and_never_run(tmp_path: Path, write: Callable[[str, Path], None]) -> None:
    write("plain", tmp_path / "plain.html")
    write(HOSTILE, tmp_path / "hostile.html")
    hostile = Read(tmp_path / "hostile.html")
    assert hostile.tags == Read(tmp_path / "plain.html").tags
    assert "script" not in hostile.tags and '<script>alert("x")</script>' in hostile.text
    assert all(not name.startswith("on") for _, attributes in hostile.seen for name in attributes)
    sources = [value or "" for _, attributes in hostile.seen for name, value in attributes.items() if name == "src"]
    assert sources and all(re.match(r"data:image/(png|jpeg);base64,", value) for value in sources)


@pytest.mark.parametrize("write", [report, friends])
def test_the_page_needs_nothing_from_anywhere(tmp_path: Path, write: Callable[[str, Path], None]) -> None:
    write("x", tmp_path / "page.html")
    assert "http" not in (tmp_path / "page.html").read_text().replace("http-equiv", "")
    policy = next(a["content"] for _, a in Read(tmp_path / "page.html").seen if a.get("http-equiv"))
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def test_pictures_are_inside_the_page(tmp_path: Path) -> None:
    report("x", tmp_path / "page.html")
    (picture,) = re.findall(r'src="data:image/png;base64,([^"]+)"', (tmp_path / "page.html").read_text())
    assert base64.b64decode(picture) == PNG


def test_tables_have_captions_and_headings_and_pictures_have_texts(tmp_path: Path) -> None:
    report("apple", tmp_path / "page.html")
    found = Read(tmp_path / "page.html")
    assert [found.tags.count(tag) for tag in ("caption", "figcaption", "main", "h1")] == [1, 1, 1, 1]
    assert [facts["scope"] for tag, facts in found.seen if tag == "th"] == ["col", "col", "row"]
    assert [facts["alt"] for tag, facts in found.seen if tag == "img"] == ["apple as a curve"]
    assert ("html", {"lang": "en"}) in found.seen


def test_pairs_without_a_picture_and_those_left_out_are_told(tmp_path: Path) -> None:
    friends("apple", tmp_path / "page.html")
    found = Read(tmp_path / "page.html")
    assert found.tags.count("article") == found.tags.count("img") == 1
    assert "apple (1,235)" in found.text and "1,234 more are in the table." in found.text


def test_a_page_replaces_another_only_when_told(tmp_path: Path) -> None:
    page("first").write(tmp_path / "page.html")
    with pytest.raises(OutputExists, match="exists already"):
        page("second").write(tmp_path / "page.html")
    page("second").write(tmp_path / "page.html", overwrite=True)
    assert "<h1>second</h1>" in (tmp_path / "page.html").read_text()
