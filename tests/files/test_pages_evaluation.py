from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from signspot.files.pages import EvaluationPage, PageFigure, PageSection, PageTable, write_evaluation_page

_ALONE = {"meta", "img", "br"}


class _Read(HTMLParser):
    """Tags that are open, in order, and what was read."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(path: Path, hostile: str = "apple") -> _Read:
    table = PageTable(hostile, ("", hostile), ((hostile, "1%"),))
    figure = PageFigure(hostile, b"png", f"{hostile} as a curve", hostile)
    section = PageSection(hostile, (hostile,), table, (figure,))
    page = EvaluationPage(title=hostile, paragraphs=(hostile,), sections=(section,), files=((hostile, hostile),))
    write_evaluation_page(page, path)
    reader = _Read()
    reader.feed(path.read_text())
    assert not reader.open
    return reader


def test_tables_have_captions_and_headings_and_pictures_have_texts(tmp_path: Path) -> None:
    found = read(tmp_path / "page.html")
    tags = [tag for tag, _ in found.tags]
    assert (tags.count("caption"), tags.count("figcaption"), tags.count("main"), tags.count("h1")) == (1, 1, 1, 1)
    assert [facts["scope"] for tag, facts in found.tags if tag == "th"] == ["col", "col", "row"]
    assert [facts["alt"] for tag, facts in found.tags if tag == "img"] == ["apple as a curve"]
    assert ("html", {"lang": "en"}) in found.tags


def test_names_are_shown_as_they_are_and_never_run(tmp_path: Path) -> None:
    found = read(tmp_path / "page.html", '"><script>alert(1)</script>\udcff')
    assert "script" not in [tag for tag, _ in found.tags]
    assert "<script>alert(1)</script>" in found.text
    sources = [value for _, facts in found.tags for name, value in facts.items() if name == "src"]
    assert sources and all((value or "").startswith("data:image/png;base64,") for value in sources)
