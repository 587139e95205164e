from __future__ import annotations

import json
from pathlib import Path

import pytest

from signspot.domain.recordings import Entry, Rights, Signer, normalise
from signspot.errors import FormatError
from signspot.stores.dictionary import add_entries, manifest_of, read_dictionary


def clip(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


def new_entry(folder: Path, name: str = "mined/apple-1.mp4") -> Entry:
    return Entry(
        entry_id=name, word=normalise("apple"), variant="2", video=clip(folder, name), signer=Signer("S1"),
        language="bfi", rights=Rights(holder="=BBC", may_train=True, may_export_clips=False),
    )  # fmt: skip


def added(folder: Path) -> tuple[Path, list[Entry]]:
    old = read_dictionary(folder).dictionary
    path = add_entries(folder, old, [new_entry(folder)])
    return path, list(read_dictionary(folder).dictionary)


def test_a_plain_folder_gets_a_manifest_that_lists_old_and_new(tmp_path: Path) -> None:
    clip(tmp_path, "apple/apple_1.mp4")
    clip(tmp_path, "tree.mp4")
    before = list(read_dictionary(tmp_path).dictionary)
    path, after = added(tmp_path)
    assert path == tmp_path / "dictionary.json"
    assert [entry for entry in after if entry.entry_id != "mined/apple-1.mp4"] == before
    assert new_entry(tmp_path) in after


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_keeps_its_cells_its_columns_and_its_separator(tmp_path: Path, delimiter: str) -> None:
    clip(tmp_path, "a.mp4")
    rows = [["Word", "file", "my notes"], ["apple", "a.mp4", '"said; she, ""yes"""'], ["pear", "missing.mp4", "later"]]
    (tmp_path / "dictionary.csv").write_text("\n".join(delimiter.join(row) for row in rows))
    _, after = added(tmp_path)
    assert {entry.entry_id for entry in after} == {"a.mp4", "mined/apple-1.mp4"}
    assert new_entry(tmp_path) in after
    text = (tmp_path / "dictionary.csv").read_text(encoding="utf-8-sig")
    assert "later" in text and "missing.mp4" in text, "a row that cannot be read now stays"
    assert text.splitlines()[0].startswith(delimiter.join(rows[0]))


def test_a_json_manifest_keeps_what_nobody_here_understands(tmp_path: Path) -> None:
    clip(tmp_path, "a.mp4")
    content = {
        "format": "signspot-dictionary", "version": 1, "name": "mine", "owner": {"since": 2019},
        "entries": [{"word": "apple", "file": "a.mp4", "mood": "good"}],
    }  # fmt: skip
    (tmp_path / "dictionary.json").write_text(json.dumps(content))
    _, after = added(tmp_path)
    assert new_entry(tmp_path) in after
    written = json.loads((tmp_path / "dictionary.json").read_text())
    assert written["owner"] == {"since": 2019} and written["entries"][0] == content["entries"][0]  # type: ignore[index]


def test_a_clip_outside_the_folder_and_a_broken_table_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    folder = tmp_path / "dictionary"
    clip(folder, "a.mp4")
    table = folder / "dictionary.csv"
    table.write_text("word,file\napple,a.mp4\n")
    old = read_dictionary(folder).dictionary
    with pytest.raises(FormatError, match="is not under the folder of the manifest"):
        add_entries(folder, old, [new_entry(tmp_path)])
    assert table.read_text() == "word,file\napple,a.mp4\n"
    table.write_text('word,file\n"apple,a.mp4\n')
    with pytest.raises(FormatError, match="is not a table"):
        add_entries(folder, old, [new_entry(folder)])
    assert manifest_of(table) == table
