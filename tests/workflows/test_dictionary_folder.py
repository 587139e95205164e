"""The folder of a build survives being left at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from signspot.domain.recordings import Entry, Word
from signspot.errors import FormatError, OutputExists
from signspot.workflows import dictionary as dictionary_folder
from signspot.workflows.dictionary import _BuildFolder


class Killed(BaseException):
    """As if the process ended here."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def entries(folder: _BuildFolder, *words: str) -> list[Entry]:
    made = []
    for word in words:
        entry = Entry(entry_id=word, word=Word(word), video=Path(f"{word}.MP4"))
        video = folder.slot(entry, f"{len(word):064}", "key", is_shown=True).clip
        made.append(Entry(entry_id=word, word=entry.word, video=video))
    return made


@pytest.mark.parametrize("moment", ["before the manifest", "after the manifest"])
def test_a_manifest_that_was_being_written_is_not_taken_for_one_changed_by_hand(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    folder = _BuildFolder.open(tmp_path / "built", source)
    folder.save(entries(folder, "apple"), finished=True)
    true_mark, calls = _BuildFolder._mark, []

    def mark(self: _BuildFolder, manifests: list[str], *, finished: bool) -> None:
        calls.append(finished)
        if len(calls) == 2:
            raise Killed
        true_mark(self, manifests, finished=finished)
        if moment == "before the manifest":
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(_BuildFolder, "_mark", mark)
        with pytest.raises(Killed):
            folder.save(entries(folder, "apple", "tree"), finished=True)
    expected = 1 if moment == "before the manifest" else 2
    assert (tmp_path / "built" / "dictionary.csv").read_text().count(".mp4") == expected
    again = _BuildFolder.open(tmp_path / "built", source)
    assert not again.was_finished
    again.save(entries(again, "pear"), finished=True)
    assert _BuildFolder.open(tmp_path / "built", source).was_finished


def test_a_folder_left_before_anything_was_marked_can_be_used(source: Path, tmp_path: Path) -> None:
    (tmp_path / "built" / ".build").mkdir(parents=True)
    (tmp_path / "built" / ".build" / ".signspot-1.tmp.json").write_text("{")
    folder = _BuildFolder.open(tmp_path / "built", source)
    folder.save(entries(folder, "apple"), finished=True)
    assert not list((tmp_path / "built").rglob(".signspot-*"))


def test_a_damaged_mark_is_named_and_other_peoples_marks_are_not_ours(source: Path, tmp_path: Path) -> None:
    folder = _BuildFolder.open(tmp_path / "built", source)
    folder.save(entries(folder, "apple"), finished=True)
    mark = tmp_path / "built" / ".build" / "build.json"
    mark.write_text("{")
    with pytest.raises(FormatError, match=r"build\.json"):
        _BuildFolder.open(tmp_path / "built", source)
    mark.unlink()
    with pytest.raises(OutputExists, match="holds something else"):
        _BuildFolder.open(tmp_path / "built", source, anew=True)


def test_a_source_that_changes_while_it_is_copied_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"now")
    with pytest.raises(dictionary_folder.VideoError, match="changed while it was copied"):
        dictionary_folder._copy(tmp_path / "a.mp4", tmp_path / "b.mp4", sha256="0" * 64)
    assert not (tmp_path / "b.mp4").exists()
