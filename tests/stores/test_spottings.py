from __future__ import annotations

import csv
import dataclasses
import gc
import json
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.domain.results import Spotting
from signspot.domain.time import Millis, MillisSpan, clock
from signspot.errors import FormatError, OutputExists
from signspot.stores import spottings as parquet
from signspot.stores.spottings import (
    COLUMNS,
    MAX_TEXT,
    STORED,
    _Kind,
    read_spottings,
    spotting_record,
    write_spottings,
)
from tests.formats.spottings import mutants, plain, spottings, write_mutant

SUFFIXES = (".csv", ".jsonl", ".json", ".parquet")
every_suffix = pytest.mark.parametrize("suffix", SUFFIXES)
# One folder serves all examples: each overwrites the file of the one before.
with_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


@every_suffix
@with_folder
@given(found=st.lists(spottings(), max_size=4))
def test_what_is_written_reads_back(found: list[Spotting], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table{suffix}"
    write_spottings(found, path, overwrite=True)
    assert list(read_spottings(path)) == found


@pytest.mark.soak
@every_suffix
@settings(with_folder, max_examples=5000)
@given(found=st.lists(spottings(), max_size=4))
def test_five_thousand_tables_read_back(found: list[Spotting], suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"table{suffix}"
    write_spottings(found, path, overwrite=True)
    assert list(read_spottings(path)) == found


@every_suffix
def test_the_same_spottings_give_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    one, two = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    for path in (one, two):
        write_spottings((plain(n) for n in range(20)), path)
    assert one.read_bytes() == two.read_bytes()


def naive_record(s: Spotting) -> dict[str, object]:
    """The columns read aloud from the documentation."""
    p, sub = s.provenance, s.provenance.subtitle
    return {
        "spotting_id": s.spotting_id,
        "video_id": s.video_id,
        "word": s.word,
        "start_ms": s.span_ms.start,
        "stop_ms": s.span_ms.stop,
        "frame": s.frame,
        "entry_id": s.entry_id,
        "variant": s.variant,
        "type_id": s.type_id,
        "cosine": s.cosine,
        "presence": s.presence.probability if s.presence else None,
        "calibration": s.presence.calibration if s.presence else "",
        "model": p.model,
        "fingerprint": p.fingerprint,
        "dictionary": p.dictionary,
        "media_sha256": p.media_sha256,
        "source": p.source,
        "subtitle": sub.text if sub else "",
        "subtitle_start_ms": sub.span_ms.start if sub else None,
        "subtitle_stop_ms": sub.span_ms.stop if sub else None,
    }


@given(spottings())
def test_a_record_holds_every_column_in_order(spotting: Spotting) -> None:
    record = spotting_record(spotting)
    assert record == naive_record(spotting)
    assert list(record) == [column.name for column in STORED]
    json.dumps(record, allow_nan=False)


def test_other_programs_read_the_same_values(tmp_path: Path) -> None:
    found = [plain(n) for n in range(5)]
    for suffix in SUFFIXES:
        write_spottings(found, tmp_path / f"t{suffix}")
    expected = [naive_record(spotting) for spotting in found]
    assert json.loads((tmp_path / "t.json").read_text()) == expected
    assert [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()] == expected
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == expected
    with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [column.name for column in COLUMNS]
    for row, values in zip(rows, expected, strict=True):
        assert (row.pop("start"), row.pop("stop")) == (clock(int(row["start_ms"]), 3), clock(int(row["stop_ms"]), 3))
        assert row == {name: "" if value is None else str(value) for name, value in values.items()}


def test_csv_is_for_excel_and_follows_rfc_4180(tmp_path: Path) -> None:
    write_spottings([plain()], tmp_path / "t.csv")
    content = (tmp_path / "t.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbfspotting_id,video_id,word,start_ms,stop_ms,start,stop,")
    assert content.count(b"\r\n") == 2 and content.endswith(b"\r\n")
    assert b",40,680,0:00:00.040,0:00:00.680,9," in content


@with_folder
@given(spotting=spottings())
def test_no_text_of_a_csv_file_starts_like_a_formula(spotting: Spotting, tmp_path: Path) -> None:
    write_spottings([spotting], tmp_path / "t.csv", overwrite=True)
    with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as file:
        row = next(iter(csv.DictReader(file)))
    texts = [row[column.name] for column in COLUMNS if column.kind is _Kind.TEXT]
    assert not [text for text in texts if text[:1] in tuple("=+-@\t\r\n")]


def test_an_apostrophe_that_was_there_stays(tmp_path: Path) -> None:
    words = ["'=1", "''+1", "'tis", "=1", "'"]
    found = [plain(n, word=word) for n, word in enumerate(words)]
    write_spottings(found, tmp_path / "t.csv")
    assert [spotting.word for spotting in read_spottings(tmp_path / "t.csv")] == words
    assert b",''=1," in (tmp_path / "t.csv").read_bytes()


@every_suffix
def test_no_spottings_are_a_table_too(suffix: str, tmp_path: Path) -> None:
    write_spottings([], tmp_path / f"t{suffix}")
    assert list(read_spottings(tmp_path / f"t{suffix}")) == []


def test_an_unknown_suffix_is_refused_at_once(tmp_path: Path) -> None:
    for name in ("t.xls", "t", "t.csv.gz"):
        with pytest.raises(FormatError, match=r"use one of \.csv, \.jsonl, \.json, \.parquet"):
            write_spottings([], tmp_path / name)
        with pytest.raises(FormatError, match=r"use one of \.csv"):
            read_spottings(tmp_path / name)


@every_suffix
def test_an_existing_table_is_kept(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{suffix}"
    write_spottings([plain()], path)
    with pytest.raises(OutputExists, match="exists already"):
        write_spottings([], path)
    assert list(read_spottings(path)) == [plain()]


def changed(**values: object) -> Spotting:
    return dataclasses.replace(plain(1), **values)  # type: ignore[arg-type]


@every_suffix
@pytest.mark.parametrize(
    ("spotting", "words"),
    [
        (changed(cosine=float("nan")), "cosine nan"),
        (changed(cosine=float("-inf")), "cosine -inf"),
        (changed(cosine=1.01), "cosine 1.01 is not between -1 and 1"),
        (changed(word=Word("a\ud800")), "half a character"),
        (changed(variant="x" * (MAX_TEXT + 1)), "text of 32768 characters"),
        (changed(span_ms=MillisSpan(Millis(-1), Millis(5))), "negative time"),
        (changed(frame=-1), "negative time"),
        (changed(frame=2**60), "beyond any video"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(
    spotting: Spotting, words: str, suffix: str, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=f"spotting 2: .*{words}"):
        write_spottings([plain(), spotting], tmp_path / f"t{suffix}")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FormatError, match=words):
        spotting_record(spotting)


@every_suffix
def test_a_cosine_that_rounding_lifts_above_one_is_kept(suffix: str, tmp_path: Path) -> None:
    found = changed(cosine=1.0000002)
    write_spottings([found], tmp_path / f"t{suffix}")
    assert list(read_spottings(tmp_path / f"t{suffix}")) == [found]


def test_a_json_table_that_grows_too_large_is_given_up(tmp_path: Path) -> None:
    long = changed(entry_id="x" * 30_000)
    with pytest.raises(FormatError, match=r"write \.jsonl or \.parquet instead"):
        write_spottings((long for _ in range(2_300)), tmp_path / "t.json")
    with pytest.raises(FormatError, match="over a million characters"):
        write_spottings(
            [
                dataclasses.replace(
                    long,
                    **dict.fromkeys(("video_id", "entry_id", "variant", "type_id", "word"), "\x00" * MAX_TEXT),
                    provenance=dataclasses.replace(long.provenance, model="\0" * MAX_TEXT),
                )
            ],
            tmp_path / "t.jsonl",
        )
    assert not list(tmp_path.iterdir())


def row(**values: object) -> dict[str, object]:
    return spotting_record(plain(1)) | values


BAD_ROWS = [
    (row(start_ms=9000), "ends before it starts"),
    (row(start_ms=-5), "negative time"),
    (row(frame="x"), "frame is 'x', which is no integer"),
    (row(frame=1.5), "frame is '1.5', which is no integer"),
    (row(frame=None), "frame is empty"),
    (row(cosine="nan"), "cosine is 'nan', which is no number"),
    (row(cosine=7), "cosine 7.0 is not between"),
    (row(cosine=1.01), "cosine 1.01 is not between"),
    (row(cosine=-1.01), "cosine -1.01 is not between"),
    (row(presence=1.5), "out of range"),
    (row(presence=None), "presence is empty"),
    (row(subtitle_stop_ms=None), "only one of its times"),
    (row(subtitle_start_ms=None, subtitle_stop_ms=None), "without its times"),
    (row(stop_ms=10**17), "stop_ms is|beyond any video"),
    (row(word="x" * (MAX_TEXT + 1)), "text of 32768 characters"),
]


def as_csv(records: list[dict[str, object]], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


@pytest.mark.parametrize(("record", "words"), BAD_ROWS)
def test_a_bad_row_is_named_with_its_file_and_number(record: dict[str, object], words: str, tmp_path: Path) -> None:
    good = row()
    as_csv([good, record], tmp_path / "t.csv")
    (tmp_path / "t.json").write_text(json.dumps([good, record]))
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(good)}\n\n{json.dumps(record)}\n")
    for name, number in (("t.csv", 3), ("t.json", 2), ("t.jsonl", 3)):
        reading = read_spottings(tmp_path / name)
        assert next(reading) == plain(1)
        with pytest.raises(FormatError, match=rf"{name}: row {number}: .*({words})"):
            next(reading)


@pytest.mark.parametrize(
    ("record", "words"), [(row(word=["a"]), "no text"), (row(frame=True), "no integer"), (7, "not an")]
)
def test_a_wrong_kind_of_json_value_is_refused(record: object, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps([record]))
    with pytest.raises(FormatError, match=words):
        list(read_spottings(tmp_path / "t.json"))


def test_tables_edited_in_pandas_or_excel_are_read(tmp_path: Path) -> None:
    """Floats where whole numbers were, columns moved, own columns added, ids gone."""
    record = row(subtitle_start_ms="0.0", subtitle_stop_ms="3000.0", my_notes="hello")
    del record["spotting_id"]
    as_csv([dict(reversed(record.items()))], tmp_path / "t.csv")
    assert list(read_spottings(tmp_path / "t.csv")) == [plain(1)]
    record = row(subtitle_start_ms=0.0, subtitle_stop_ms=3000.0, variant=None, notes=[1])
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "t.parquet")
    assert list(read_spottings(tmp_path / "t.parquet")) == [plain(1)]


CSV_HEAD = ",".join(column.name for column in COLUMNS)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no column video_id, word"),
        ("word,frame\r\n", "no column video_id"),
        (CSV_HEAD + ",word\r\n", "'word' comes twice"),
        (CSV_HEAD + "\r\na,b\r\n", "row 2: 2 cells under 22 columns"),
        (CSV_HEAD + '\r\n"a', "row 2: unexpected end of data"),
        (CSV_HEAD + '\r\n"' + "x" * 140_000 + '"', "field larger than field limit"),
        (CSV_HEAD + "\r\n" + "x" * 1_100_000, "line 2 has over a million characters"),
    ],
)
def test_a_csv_file_that_is_no_table_is_refused(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(content, newline="")
    with pytest.raises(FormatError, match=f"t.csv: .*{words}"):
        list(read_spottings(tmp_path / "t.csv"))


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    for name in ("t.csv", "t.jsonl", "t.json"):
        (tmp_path / name).write_bytes(b"\xff\xfeword\xe4")
        with pytest.raises(FormatError, match="not UTF-8"):
            list(read_spottings(tmp_path / name))


def test_json_that_is_no_table_is_refused(tmp_path: Path) -> None:
    for content, words in (
        ("{}", "row 1: no video_id"),
        ("[[]]", "row 1 is not an object"),
        ("[{}]", "row 1: no video_id"),
    ):
        (tmp_path / "t.json").write_text(content)
        with pytest.raises(FormatError, match=words):
            list(read_spottings(tmp_path / "t.json"))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        with pytest.raises(FormatError, match="no such file"):
            read_spottings(tmp_path / f"none{suffix}")


def test_parquet_that_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.Table.from_pylist([row()])
    cases: list[tuple[pa.Table, str]] = [
        (pa.table({"a": [1]}), "no column video_id"),
        (table.drop_columns(["word"]), "no column word"),
        (table.append_column("word", pa.array(["x"])), "'word' comes twice"),
        (table.set_column(2, "word", pa.array([["a"]])), "'word' holds lists"),
        (table.set_column(2, "word", pa.array([3])), "word is '3', which is no text"),
        (table.set_column(2, "word", pa.array([b"\xff"])), "no text"),
        (table.set_column(3, "start_ms", pa.array([float("nan")])), "no integer"),
        (table.set_column(3, "start_ms", pa.array([None], pa.int64())), "start_ms is empty"),
    ]
    for content, words in cases:
        pq.write_table(content, path)
        with pytest.raises(FormatError, match=words):
            list(read_spottings(path))
    path.write_bytes(b"PAR1")
    with pytest.raises(FormatError, match="damaged or no Parquet file"):
        list(read_spottings(path))


def test_a_long_text_repeated_in_parquet_is_held_once(tmp_path: Path) -> None:
    """Spelt out, the column would take 400 GB."""
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["x" * 20_000_000]))
    columns = {name: pa.array([value] * 20_000) for name, value in row().items()} | {"variant": long}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", compression="zstd")
    assert (tmp_path / "t.parquet").stat().st_size < 1_000_000
    with pytest.raises(FormatError, match="text of 20000000 characters"):
        list(read_spottings(tmp_path / "t.parquet"))


def test_a_small_parquet_file_that_claims_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.Table.from_pylist([row(zeros=b"\0" * 5_000_000)])
    pq.write_table(table, tmp_path / "t.parquet", compression="zstd", use_dictionary=False)
    assert list(read_spottings(tmp_path / "t.parquet")) == [plain(1)]
    monkeypatch.setattr(parquet, "_MAX_GROUP_BYTES", 1_000_000)
    with pytest.raises(FormatError, match="a row group claims to hold 5 MB: write row groups of at most 1 MB"):
        list(read_spottings(tmp_path / "t.parquet"))
    monkeypatch.setattr(parquet, "_MAX_ROWS", 0)
    with pytest.raises(FormatError, match="claims to hold 1 rows"):
        list(read_spottings(tmp_path / "t.parquet"))


def read_mutants(suffix: str, count: int, folder: Path) -> None:
    write_spottings([plain(n) for n in range(8)], folder / f"t{suffix}")
    refused = 0
    for content in mutants((folder / f"t{suffix}").read_bytes(), count, seed=7):
        try:
            for spotting in read_spottings(write_mutant(folder / f"m{suffix}", content)):
                spotting_record(spotting)
        except FormatError:
            refused += 1
    assert refused > count // 3


def test_parquet_that_points_at_texts_that_are_not_there_is_refused(tmp_path: Path) -> None:
    """Every byte of the column `word`, broken one at a time: a word comes out as it was, or not at all."""
    path, words = tmp_path / "t.parquet", {"apple", "pear", "fig"}
    rows = [spotting_record(plain(n, word=word)) for n, word in enumerate(sorted(words) * 9)]
    pq.write_table(pa.Table.from_pylist(rows), path, compression="none", write_statistics=False)
    chunk = pq.read_metadata(path).row_group(0).column(2)
    original, start = path.read_bytes(), chunk.data_page_offset
    refused = 0
    for at in range(start, chunk.dictionary_page_offset + chunk.total_compressed_size):
        path.write_bytes(original[:at] + b"\xff" + original[at + 1 :])
        try:
            assert {spotting.word for spotting in read_spottings(path)} <= words
        except FormatError:
            refused += 1
    assert refused > 10


@every_suffix
def test_damaged_tables_raise_nothing_but_format_errors(suffix: str, tmp_path: Path) -> None:
    read_mutants(suffix, 500, tmp_path)


@pytest.mark.soak
@every_suffix
def test_twenty_thousand_damaged_tables(suffix: str, tmp_path: Path) -> None:
    read_mutants(suffix, 20_000, tmp_path)


@every_suffix
def test_writing_and_reading_hold_few_spottings_at_a_time(suffix: str, tmp_path: Path) -> None:
    count, alive, most = 3_000, 0, 0

    class Counted(Spotting):
        pass

    def gone() -> None:
        nonlocal alive
        alive -= 1

    def found() -> Iterator[Spotting]:
        nonlocal alive, most
        for number in range(count):
            values = {f.name: getattr(plain(number), f.name) for f in dataclasses.fields(Spotting)}
            spotting = Counted(**values)
            alive += 1
            weakref.finalize(spotting, gone)
            most = max(most, alive)
            yield spotting

    write_spottings(found(), tmp_path / f"t{suffix}")
    gc.collect()
    assert alive == 0 and most < 10


def rate(work: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


@pytest.mark.soak
def test_parquet_takes_fifty_thousand_rows_a_second(tmp_path: Path) -> None:
    found = [plain(n) for n in range(200_000)]
    assert rate(lambda: write_spottings(found, tmp_path / "t.parquet"), len(found)) > 50_000
