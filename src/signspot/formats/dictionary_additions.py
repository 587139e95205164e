"""New entries for a dictionary that exists, at the end of the file that describes it; whatever is in that file stays.

A folder of clips without such a file gets one, which lists the old clips and the new.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from signspot.atomic import atomic_output
from signspot.domain.dictionary import Dictionary, Entry
from signspot.errors import FormatError
from signspot.formats.dictionary_source import dictionary_table, write_dictionary_manifest
from signspot.formats.intake import is_folder, read_whole
from signspot.formats.records import manifest_in, read_manifest
from signspot.formats.safe_json import write_json
from signspot.formats.spreadsheet import unguarded

_FORMAT = "signspot-dictionary"


def manifest_of(path: Path) -> Path:
    """The file that describes a dictionary, given by its folder or by that file; it may not exist yet."""
    if not is_folder(path):
        return path
    return manifest_in(path, "dictionary")[0] or path / "dictionary.json"


def add_entries(path: Path, old: Dictionary, entries: Sequence[Entry]) -> Path:
    """Add entries, whose clips lie under its folder, to the dictionary `old` at `path`; gives the file written."""
    manifest = manifest_of(path)
    if not manifest.exists():
        write_dictionary_manifest(Dictionary.of(old.name, [*old, *entries], path), manifest)
    elif manifest.suffix.lower() == ".json":
        content = read_manifest(manifest, _FORMAT)
        listed = content.get("entries")
        if not isinstance(listed, list):
            raise FormatError(manifest, "its entries are no list", "write the manifest again")
        new = [{name: unguarded(cell) for name, cell in row.items()} for row in _rows(entries, manifest)]
        content["entries"] = [*listed, *new]
        write_json(content, manifest, overwrite=True)
    else:
        _extend_table(manifest, _rows(entries, manifest))
    return manifest


def _rows(entries: Sequence[Entry], manifest: Path) -> list[dict[str, str]]:
    """What a table says about entries, by column; empty cells left out."""
    table = dictionary_table(Dictionary.of("new", entries), manifest).decode("utf-8-sig")
    rows = csv.DictReader(io.StringIO(table, newline=""))
    return [{name: cell for name, cell in row.items() if cell} for row in rows]


def _extend_table(manifest: Path, rows: Sequence[dict[str, str]]) -> None:
    """Write a table again with rows at its end, and new columns at the right where the rows need them."""
    try:
        text = read_whole(manifest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(manifest, "is not UTF-8 text", "save the file as UTF-8") from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        header, *lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    except (csv.Error, ValueError) as error:
        raise FormatError(manifest, f"is no table ({error})", "correct it first") from error
    known = [name.strip().lower() for name in header]
    missing = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in known]
    written = io.StringIO(newline="")
    writer = csv.writer(written, delimiter=delimiter)
    writer.writerow([*header, *missing])
    for line in lines:
        writer.writerow([*line, *[""] * (len(header) + len(missing) - len(line))] if line else line)
    writer.writerows([row.get(name, "") for name in (*known, *missing)] for row in rows)
    with atomic_output(manifest, overwrite=True) as temporary:
        temporary.write_bytes(written.getvalue().encode("utf-8-sig"))
