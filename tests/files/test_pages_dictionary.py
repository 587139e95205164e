"""The page is read back by a parser: cards, their words, and nothing that runs or connects."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from signspot.domain.recordings import Entry, Signer, Word
from signspot.domain.time import MillisSpan
from signspot.errors import OutputExists
from signspot.files.pages import Card, DictionaryPage

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;"


class Reader(HTMLParser):
    """Collects tags with their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def card(number: int, word: str = "apple", **more: object) -> Card:
    entry = Entry(entry_id=f"id {number}", word=Word(word), variant=str(number), signer=Signer("S1"))
    fields: dict[str, object] = {"picture": "thumbnails/a b#.jpg", "clip": "clips/a'?.mp4", "n_tiles": 6}
    return Card(entry=entry, span_ms=MillisSpan.of(400, 1480), **(fields | more))  # type: ignore[arg-type]


def page_of(tmp_path: Path, page: DictionaryPage) -> tuple[str, Reader]:
    page.write(tmp_path / "index.html")
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    return text, Reader(text)


def test_every_clip_is_a_card_under_its_word(tmp_path: Path) -> None:
    cards = [card(number, word) for word in ("apple", "tree") for number in range(40)]
    _, read = page_of(tmp_path, DictionaryPage("signs", cards))
    shown = read.all("article")
    assert len(shown) == 80 and len(read.all("section")) == 2
    assert "80 clips of 2 words" in read.text
    assert shown[3]["data-find"] == "apple id 3 variant 3 signer s1"
    assert (shown[3]["data-start"], shown[3]["data-stop"]) == ("0.400", "1.480")
    assert shown[3]["data-clip"] == "clips/a%27%3F.mp4"
    assert all(image["loading"] == "lazy" for image in read.all("img"))
    assert read.all("img")[0]["src"] == "thumbnails/a%20b%23.jpg"


def test_no_text_of_a_dictionary_is_run_and_nothing_is_fetched(tmp_path: Path) -> None:
    hostile = card(1, HOSTILE, notes=(HOSTILE,), picture=HOSTILE, clip=HOSTILE)
    page = DictionaryPage(HOSTILE, [hostile], problems=[HOSTILE], duplicates=[HOSTILE])
    text, read = page_of(tmp_path, page)
    assert len(read.all("script")) == 1 and len(read.all("img")) == 1
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert "http:" not in text and "https:" not in text and "//" not in text.replace("// While", "")
    policy = next(meta["content"] for meta in read.all("meta") if "http-equiv" in meta)
    assert policy is not None and policy.startswith("default-src 'none'")


def test_what_may_not_be_shown_has_no_picture_and_no_clip(tmp_path: Path) -> None:
    _, read = page_of(tmp_path, DictionaryPage("signs", [card(1, picture="", clip="")]))
    assert read.all("img") == [] and "data-clip" not in read.all("article")[0]
    assert "its holder does not allow it" in read.text


def test_face_groups_are_shown_as_guesses_without_names(tmp_path: Path) -> None:
    cards = [card(number, face_group=1 + number % 2) for number in range(30)] + [card(99)]
    _, read = page_of(tmp_path, DictionaryPage("signs", cards))
    assert "2 face groups" in read.text and "15 clips" in read.text
    assert "nothing about them is written into the dictionary" in read.text
    assert len(read.all("article")) == 31 + 2 * 12


def test_a_page_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(OutputExists, match="exists already"):
        DictionaryPage("signs", [card(1)]).write(tmp_path / "index.html")
    assert (tmp_path / "index.html").read_text() == "mine"
