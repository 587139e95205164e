"""Linked files are found on this computer or not at all."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from signspot.formats.elan import ElanDocument, ElanMedia


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "eaf").mkdir()
    (tmp_path / "video").mkdir()
    for name in ("video/a b.mp4", "video/é.mp4", "eaf/beside.mp4", "eaf/100%.mp4", "eaf/[x].mp4"):
        (tmp_path / name).touch()
    (tmp_path / "eaf" / unicodedata.normalize("NFD", "ünï.mp4")).touch()
    return tmp_path


def found(folder: Path, url: str, relative: str = "") -> Path | None:
    document = ElanDocument(where="x", format_version="3.0", media=(ElanMedia(url, relative),), xml=b"")
    (one,) = document.resolve_media(folder / "eaf" / "x.eaf")
    return one.path


@pytest.mark.parametrize(
    "relative",
    [
        "../video/a b.mp4", "../video/a%20b.mp4", "..\\video\\a b.mp4", "file:/../video/a b.mp4",
        "file:///../video/a%20b.mp4", "./../video/a b.mp4",
    ],
)  # fmt: skip
def test_the_relative_url_comes_first(folder: Path, relative: str) -> None:
    (folder / "eaf" / "a b.mp4").touch()
    path = found(folder, f"file://{folder}/eaf/beside.mp4", relative)
    assert path is not None
    assert path.resolve() == folder / "video" / "a b.mp4"


@pytest.mark.parametrize(
    ("url", "relative"),
    [
        ("", "../video/a b.mp4"),
        ("file:///gone/c.mp4", "../video/a b.mp4"),
        ("", " ../video/a b.mp4\n"),
        ("", "file://{}/video/a b.mp4"),
        ("", "{}/video/a b.mp4"),
        ("file:///gone/c.mp4", "file://{}/video/a b.mp4"),
        ("../video/a b.mp4", ""),
        ("file:///../video/a%20b.mp4", "./gone.mp4"),
    ],
)
def test_either_url_serves_where_the_other_is_empty_or_leads_nowhere(folder: Path, url: str, relative: str) -> None:
    path = found(folder, url.format(folder), relative.format(folder))
    assert path is not None and path.resolve() == folder / "video" / "a b.mp4"


@pytest.mark.parametrize(
    ("url", "relative", "name"),
    [
        ("file:///C:/x/a.mp4", "./b.mp4", "a.mp4"),
        ("C:\\x\\a.mp4", "", "a.mp4"),
        (" ", "../b.mp4", "b.mp4"),
        ("", "", ""),
    ],
)
def test_a_medium_is_named_by_the_url_that_says_something(url: str, relative: str, name: str) -> None:
    assert ElanMedia(url, relative).name == name


@pytest.mark.parametrize("url", ["file://{}/video/a b.mp4", "file://{}/video/a%20b.mp4", "file:{}/video/a b.mp4",
                                 "FILE://{}/video/a b.mp4", "{}/video/a b.mp4"])  # fmt: skip
def test_then_the_absolute_url(folder: Path, url: str) -> None:
    assert found(folder, url.format(folder), "./gone.mp4") == folder / "video" / "a b.mp4"


@pytest.mark.parametrize(
    "url",
    [
        "file:///C:/corpus/beside.mp4", "C:\\corpus\\beside.mp4", "file://server/share/beside.mp4",
        "\\\\server\\share\\beside.mp4", "file:///home/other/beside.mp4", "https://x.org/beside.mp4", "beside.mp4",
        "rtsp://x.org/beside.mp4", "file:///D:/100%.mp4", "file:///D:/[x].mp4", "file:///D:/%5Bx%5D.mp4",
        "file:///D:/ünï.mp4",
    ],
)  # fmt: skip
def test_then_the_same_name_beside_the_eaf(folder: Path, url: str) -> None:
    path = found(folder, url)
    assert path is not None
    assert path.parent == folder / "eaf"
    assert path.is_file()


@pytest.mark.parametrize(
    "url",
    [
        "", ".", "..", "/", "file:", "file:///", "file:///nowhere.mp4", "https://x.org/a.mp4", "%00", "a\0b",
        "x" * 5000, "file:///" + "y/" * 3000, "file:///C:/", "\\\\?\\pipe\\x", "//server/share/x.mp4", "file:////etc",
        "..%2fvideo", "%2e%2e", "../video", "\ud800.mp4", "..%5cvideo%5ca b.mp4",
    ],
)  # fmt: skip
def test_what_is_not_here_is_not_found_and_nothing_breaks(folder: Path, url: str) -> None:
    assert found(folder, url, url) is None


def test_network_paths_are_never_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda self: asked.append(str(self)) or real(self))
    for url in ("file://server/share/v.mp4", "\\\\server\\share\\v.mp4", "//server/v.mp4", "file://///server/v.mp4",
                "%2f%2fserver/v.mp4", "file:%2f%2fserver/v.mp4", "https://server/v.mp4"):  # fmt: skip
        found(folder, url, url)
    assert asked
    assert all(path.startswith(str(folder)) or path == "/server/v.mp4" for path in asked)
    assert not any(path.startswith("//") or "\\" in path for path in asked)


def test_a_pipe_or_folder_is_no_medium(folder: Path) -> None:
    (folder / "eaf" / "folder.mp4").mkdir()
    assert found(folder, "file:///x/folder.mp4", "./folder.mp4") is None


def test_every_medium_is_answered(folder: Path) -> None:
    media = (ElanMedia("file:///x/beside.mp4"), ElanMedia("file:///x/none.mp4"))
    document = ElanDocument(where="x", format_version="3.0", media=media, xml=b"")
    first, second = document.resolve_media(folder / "eaf" / "x.eaf")
    assert (first.path, second.path) == (folder / "eaf" / "beside.mp4", None)
