from __future__ import annotations

import json
import os
import time
import unicodedata
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import (
    Annotation,
    Dictionary,
    Entry,
    Episode,
    Rights,
    Signer,
    SignerBox,
    Word,
    normalise,
)
from signspot.domain.time import TimeAxis
from signspot.errors import DictionaryError, FormatError, Notice, OutputExists, SignspotError
from signspot.stores.corpus import CorpusSource, TimedAnnotation, read_corpus
from signspot.stores.dictionary import read_dictionary, write_dictionary_manifest
from tests.domain.test_recordings_boxes import boxes
from tests.formats.spottings import mutants, write_mutant

with_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def listed(path: Path) -> list[tuple[str, str, str]]:
    return [(entry.entry_id, entry.word, entry.variant) for entry in read_dictionary(path).dictionary]


def whats(problems: Iterable[Notice]) -> str:
    return "\n".join(map(str, problems))


# Landmarks that stand for a video


def test_a_pose_file_stands_for_a_clip_or_a_video_unless_that_lies_beside_it(tmp_path: Path) -> None:
    touch(tmp_path, "apple.pose", "tree.mp4", "tree.pose", "house/1.pose", "house/2.mp4", "house/2.pose", "notes.txt")
    names = ["apple.pose", "house/1.pose", "house/2.mp4", "tree.mp4"]
    words = ["apple", "house", "house", "tree"]
    assert listed(tmp_path) == [(name, word, "") for name, word in zip(names, words, strict=True)]
    corpus = read_corpus(tmp_path)
    assert [episode.video_id for episode in corpus.episodes] == ["apple", "tree", "house/1", "house/2"]
    for problems in (read_dictionary(tmp_path).problems, corpus.problems):
        assert [str(problem).partition(": ")[2] for problem in problems] == [
            "files that are not videos: 1 with .txt: they are left out"
        ]


def test_every_container_that_is_read_is_found_in_a_folder(tmp_path: Path) -> None:
    suffixes = "3g2 3gp asf avi flv gif m2ts m4v mkv mov mp4 mpeg mpg mts mxf ogv ts vob webm wmv"
    names = [f"{suffix}-sign.{suffix.upper()}" for suffix in suffixes.split()]
    touch(tmp_path, *names)
    assert sorted(episode.video.name for episode in read_corpus(tmp_path).episodes) == names
    assert sorted(entry_id for entry_id, *_ in listed(tmp_path)) == names


def test_videos_that_differ_in_their_suffix_alone_keep_it_in_their_ids(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4", "a.mov", "a.vtt", "a.mov.en.srt", "a.mov.ttml", "a.mov.pose", "a.mp4.mp4", "b/a.mp4")
    (tmp_path / "annotations.csv").write_text("video,word,frame\na.mov,tree,1\na,tree,2\n")
    source = read_corpus(tmp_path)
    named = {episode.video_id: episode.subtitles for episode in source.episodes}
    assert named == {
        "a.mov": tmp_path / "a.mov.ttml", "a.mp4": tmp_path / "a.vtt", "a.mp4.mp4": None, "b/a": None,
    }  # fmt: skip
    assert [mark.video_id for mark in source.annotations] == ["a.mov"]
    assert "several videos are called 'a': say which of a.mov, a.mp4" in whats(source.problems)
    assert "comes twice" not in whats(source.problems)
    source.write_manifest(tmp_path / "corpus.json")
    assert [episode.video_id for episode in read_corpus(tmp_path).episodes] == list(named)


def test_ids_of_a_table_that_gives_none_do_not_meet(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4", "a.mov", "b.mp4", "c.mp4")
    (tmp_path / "corpus.csv").write_text("video,video_id\na.mp4,\n./a.mov,\nb.mp4,c\nc.mp4,\n")
    assert [episode.video_id for episode in read_corpus(tmp_path).episodes] == ["a.mp4", "a.mov", "c", "c.mp4"]


def test_tables_may_name_pose_files(tmp_path: Path) -> None:
    touch(tmp_path, "a.pose")
    (tmp_path / "dictionary.csv").write_text("word,file\na,a.pose\n")
    (tmp_path / "corpus.csv").write_text("video\na.pose\n")
    assert [entry.video for entry in read_dictionary(tmp_path).dictionary] == [tmp_path / "a.pose"]
    assert [episode.video for episode in read_corpus(tmp_path).episodes] == [tmp_path / "a.pose"]


# Where the signer is

BOX_COLUMNS = "box_left,box_top,box_right,box_bottom"


def test_tables_say_where_the_signer_is(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4", "b.mp4")
    (tmp_path / "dictionary.csv").write_text(f"word,file,{BOX_COLUMNS}\na,a.mp4,0.5,0,1,0.75\nb,b.mp4,,,,\n")
    (tmp_path / "corpus.csv").write_text(f"video,{BOX_COLUMNS}\na.mp4,0.5,0,1,0.75\nb.mp4,,,,\n")
    dictionary, corpus = read_dictionary(tmp_path), read_corpus(tmp_path)
    assert [entry.box for entry in dictionary.dictionary] == [SignerBox(0.5, 0, 1, 0.75), None]
    assert [episode.box for episode in corpus.episodes] == [SignerBox(0.5, 0, 1, 0.75), None]
    assert dictionary.problems == corpus.problems == ()


def test_the_table_of_a_dictionary_has_boxes_only_if_it_needs_them(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4")
    for box in (None, SignerBox(1 / 3, 0, 0.9, 1)):
        made = Dictionary.of(tmp_path.name, [Entry(entry_id="a", word=Word("a"), video=tmp_path / "a.mp4", box=box)])
        write_dictionary_manifest(made, tmp_path / "dictionary.csv", overwrite=True)
        assert ("box_left" in (tmp_path / "dictionary.csv").read_text()) == (box is not None)
        assert read_dictionary(tmp_path).dictionary == made


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("0.5,0,1.4,1", "the box 0.5,0.0,1.4,1.0 does not lie in its picture"),
        ("385,37,885,720", "its edges are fractions from 0 to 1"),
        ("0.5,0,0.5,1", "is empty"),
        ("0.5,,1,1", "a box needs all of box_left, box_top, box_right, box_bottom"),
        ("left,0,1,1", "box_left is 'left', which is not a number"),
    ],
)
def test_a_box_outside_its_picture_is_a_problem_of_its_row(tmp_path: Path, cells: str, words: str) -> None:
    touch(tmp_path, "a.mp4", "b.mp4")
    (tmp_path / "dictionary.csv").write_text(f"word,file,{BOX_COLUMNS}\na,a.mp4,{cells}\nb,b.mp4,0,0,1,1\n")
    (tmp_path / "corpus.csv").write_text(f"video,{BOX_COLUMNS}\na.mp4,{cells}\nb.mp4,0,0,1,1\n")
    dictionary, corpus = read_dictionary(tmp_path), read_corpus(tmp_path)
    assert [entry.word for entry in dictionary.dictionary] == ["b"]
    assert [episode.video_id for episode in corpus.episodes] == ["b"]
    for (problem,) in (dictionary.problems, corpus.problems):
        assert words in str(problem) and "line 2" in str(problem)


# A dictionary in a plain folder


def test_clips_are_named_after_their_words(tmp_path: Path) -> None:
    names = ("apple.mp4", "apple_10.MOV", "apple_2.mp4", "apple (3).mkv", "Ice_Cream.webm", "ice-cream_2.mp4", "_4.mp4")
    touch(tmp_path, *names, "House/any thing.mp4", "House/b_7.mp4", "bank_2/x.mp4", ".hidden.mp4", ".git/a.mp4")
    assert listed(tmp_path) == [
        ("_4.mp4", "4", ""),
        ("apple (3).mkv", "apple", "3"),
        ("apple.mp4", "apple", ""),
        ("apple_2.mp4", "apple", "2"),
        ("apple_10.MOV", "apple", "10"),
        ("bank_2/x.mp4", "bank", "2"),
        ("House/any thing.mp4", "house", ""),
        ("House/b_7.mp4", "house", "7"),
        ("Ice_Cream.webm", "ice-cream", ""),
        ("ice-cream_2.mp4", "ice-cream", "2"),
    ]
    source = read_dictionary(tmp_path)
    assert source.problems == () and source.dictionary.name == tmp_path.name
    assert {entry.video for entry in source.dictionary} == {tmp_path / entry.entry_id for entry in source.dictionary}
    assert {entry.rights for entry in source.dictionary} == {Rights()}


def test_what_is_left_out_of_a_folder_is_told(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "apple.mp4",
        "read me.txt",
        "notes",
        "a/b/c.mp4",
        "a/x.mp4",
        "empty/y.txt",
        "!!!.mp4",
        "x\ny.mp4",
        "a\\b.mp4",
    )
    touch(tmp_path, "w" * 220 + ".mp4")
    source = read_dictionary(tmp_path)
    assert [entry.entry_id for entry in source.dictionary] == ["a/x.mp4", "apple.mp4"]
    said = whats(source.problems)
    for words in (
        "files that are not videos: 2 with .txt, 1 with no suffix",
        "a/b: is too deep",
        "empty: holds no videos",
        "!!!.mp4: no word in",
        "x\\ny.mp4: the name cannot be used",
        "holds a backslash",
        "a word of 220 characters",
    ):
        assert words in said
    assert len(source.problems) == 7


def test_a_name_is_the_same_in_both_unicode_forms(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        touch(tmp_path / form, unicodedata.normalize(form, "café/größe.mp4"))
        (entry,) = read_dictionary(tmp_path / form).dictionary
        assert (entry.entry_id, entry.word) == ("café/größe.mp4", "café")
        assert entry.video is not None and entry.video.is_file()
        (tmp_path / form / "dictionary.csv").write_text("word,file\ncafé,café/größe.mp4\n", encoding="utf-8")
        (listed_entry,) = read_dictionary(tmp_path / form).dictionary
        assert listed_entry.entry_id == entry.entry_id
        assert listed_entry.video is not None and listed_entry.video.is_file()
    touch(tmp_path / "both", "é.mp4", "e\u0301.mp4")
    assert "comes twice" in whats(read_dictionary(tmp_path / "both").problems)


def test_names_that_are_no_text_are_told(tmp_path: Path) -> None:
    touch(tmp_path, "apple.mp4")
    try:
        (tmp_path / os.fsdecode(b"\xff.mp4")).touch()
    except OSError:
        pytest.skip("this file system takes only text")
    assert "the name cannot be used on every machine" in whats(read_dictionary(tmp_path).problems)


def test_a_folder_without_clips_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DictionaryError, match="no usable clip"):
        read_dictionary(tmp_path)
    touch(tmp_path, "a.txt")
    with pytest.raises(DictionaryError, match=r"the first of 1 problems: .*1 with \.txt"):
        read_dictionary(tmp_path)
    for name in ("none", "a.txt", "x" * 5000, "a\0b"):
        with pytest.raises(
            DictionaryError, match="is not a dictionary" if name == "a.txt" else "no such file or folder"
        ):
            read_dictionary(tmp_path / name)
    with pytest.raises(DictionaryError, match="no such file"):
        read_dictionary(tmp_path / "none.csv")


def test_links_inside_the_folder_work_and_links_out_of_it_do_not(tmp_path: Path) -> None:
    secret = touch(tmp_path / "secret", "s.mp4", "f/s.mp4")
    root = touch(tmp_path / "root", "apple.mp4", "house/a.mp4")
    (root / "pear.mp4").symlink_to(root / "apple.mp4")
    (root / "out.mp4").symlink_to(secret / "s.mp4")
    (root / "house/out.mp4").symlink_to("../../secret/s.mp4")
    (root / "folder").symlink_to(secret / "f")
    (root / "again").symlink_to(root / "house")
    (root / "circle.mp4").symlink_to(root / "circle.mp4")
    (root / "nowhere.mp4").symlink_to(root / "missing.mp4")
    os.mkfifo(root / "pipe.mp4")
    source = read_dictionary(root)
    assert [entry.entry_id for entry in source.dictionary] == ["apple.mp4", "house/a.mp4", "pear.mp4"]
    said = whats(source.problems)
    assert said.count("leads out of the folder") == 2 and said.count("is a link to a folder") == 2
    assert said.count("cannot be opened as a file") == 3
    (tmp_path / "door").symlink_to(root)
    assert len(read_dictionary(tmp_path / "door").dictionary) == 3, "the folder itself may be a link"


# A dictionary in CSV


def test_every_column_of_a_csv_dictionary_is_read(tmp_path: Path) -> None:
    touch(tmp_path, "clips/a.mp4", "clips/b.mp4")
    (tmp_path / "dictionary.csv").write_text(
        "Word, FILE ,variant,signer,left_handed,language,region,type_id,"
        "holder,license,may_train,may_display,expires,Colour\r\n"
        "Ice Cream,clips/a.mp4,v1,S7,yes,bfi,North,BSL-12,BDA,CC-BY,YES,0,2031-12-31,red\r\n"
        "\r\n"
        "pear,clips\\b.mp4\r\n",
    )
    source = read_dictionary(tmp_path)
    assert tuple(source.dictionary) == (
        Entry(
            entry_id="clips/a.mp4",
            word=Word("ice-cream"),
            variant="v1",
            video=tmp_path / "clips/a.mp4",
            signer=Signer("S7", True),
            language="bfi",
            region="North",
            type_id="BSL-12",
            rights=Rights(holder="BDA", licence="CC-BY", may_train=True, may_display=False, expires=date(2031, 12, 31)),
        ),
        Entry(entry_id="clips/b.mp4", word=Word("pear"), video=tmp_path / "clips/b.mp4"),
    )
    assert [str(problem).split(": ")[1:2] for problem in source.problems] == [["columns that are not read"]]
    assert "colour" in source.problems[0].what
    assert read_dictionary(tmp_path / "dictionary.csv").dictionary.by_word == source.dictionary.by_word


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_excel_of_any_country_is_read(separator: str, tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4")
    rows = [["file", "word", "region"], ["a.mp4", '"a, b; c"', "x"]]
    (tmp_path / "d.csv").write_text("\r\n".join(map(separator.join, rows)), encoding="utf-8-sig")
    (entry,) = read_dictionary(tmp_path / "d.csv").dictionary
    assert (entry.word, entry.region) == ("a-b-c", "x")


def test_words_follow_the_language_they_are_written_in(tmp_path: Path) -> None:
    touch(tmp_path, *(f"{n}.mp4" for n in range(4)))
    (tmp_path / "d.csv").write_text(
        "word,file,language,word_language\nISI,0.mp4,tsm,\nISI,1.mp4,bfi,\nISI,2.mp4,bfi,tr\nISI,3.mp4,,\n"
    )
    assert {entry.entry_id[0]: entry.word for entry in read_dictionary(tmp_path / "d.csv").dictionary} == {
        "0": "ısı",
        "1": "isi",
        "2": "ısı",
        "3": "isi",
    }


def test_bad_rows_are_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4", "b.mp4", "c.txt", "d.mp4", "e.mp4", "f/x.mp4")
    (tmp_path / "dictionary.csv").write_text(
        "word,file,entry_id,may_train,expires\n"
        "apple,a.mp4,,,\n"
        "...,b.mp4,,,\n"
        "pear,missing.mp4,,,\n"
        "pear,c.txt,,,\n"
        "pear,a.mp4,other,,\n"
        "pear,b.mp4,a.mp4,,\n"
        "plum,d.mp4,,maybe,\n"
        "fig,e.mp4,,yes,soon\n"
        "kiwi,f,,,\n"
        "kiwi,f/x.mp4,,,,z\n"
        "grape,f/x.mp4,,,,,\n"
    )
    source = read_dictionary(tmp_path)
    assert [entry.entry_id for entry in source.dictionary] == ["a.mp4", "e.mp4", "f/x.mp4", "other", "d.mp4"]
    assert [entry.rights for entry in source.dictionary] == [Rights()] * 5, "what is not understood is not allowed"
    for number, words in (
        (3, "no word in"),
        (4, "'missing.mp4': no such file"),
        (5, ".txt is no suffix of a video"),
        (8, "may_train is 'maybe'"),
        (9, "expires is 'soon', which is not a date"),
        (10, "is not a file"),
        (11, "6 cells under 5 columns"),
    ):
        assert any(f"line {number}" in p.where and words in p.what for p in source.problems), words
    assert whats(source.problems).count("comes twice") == 1
    assert len(source.problems) == 8


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"", FormatError, "no column word and no column file"),
        (b"word,video\n", FormatError, "no column file"),
        (b"word,file,WORD\n", FormatError, "a column comes twice"),
        (b"word,file\n\xff,a\n", FormatError, "not UTF-8"),
        (b'word,file\n"a', FormatError, "line 2: unexpected end of data"),
        (b"word,file\n" + b"x" * 2_000_000, FormatError, "over a million characters"),
        (b"word,file\n", DictionaryError, "no usable clip"),
        (b"word,file\na,b.mp4\n", DictionaryError, "the first of 1 problems: .*b.mp4.: no such file"),
    ],
)
def test_an_unusable_csv_dictionary_is_an_error(
    content: bytes, kind: type[SignspotError], words: str, tmp_path: Path
) -> None:
    (tmp_path / "dictionary.csv").write_bytes(content)
    with pytest.raises(kind, match=words):
        read_dictionary(tmp_path)


# A dictionary in JSON

names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8)
rights = st.builds(
    Rights,
    holder=names,
    licence=names,
    **{
        f"may_{action}": st.none() | st.booleans()
        for action in ("train", "display", "export_clips", "share_embeddings")
    },
    expires=st.none() | st.dates(),
)


def _word(text: str) -> Word:
    try:
        return normalise(normalise(normalise(text)))
    except ValueError:
        return Word("apple")


words = names.map(_word)


@with_folder
@given(data=st.data())
def test_a_dictionary_manifest_reads_back(data: st.DataObject, tmp_path: Path) -> None:
    files = ("a.mp4", "b/c d.mkv", "b/größe.webm")
    touch(tmp_path, *files)
    entries = [
        data.draw(
            st.builds(
                Entry,
                entry_id=st.sampled_from((file, f"id of {file}")),
                word=words,
                variant=names,
                video=st.just(tmp_path / file),
                signer=st.none() | st.builds(Signer, names.filter(bool), st.none() | st.booleans()),
                language=st.sampled_from(("", "bfi", "ase")),
                region=names,
                type_id=names,
                rights=rights,
                box=st.none() | boxes(),
            )
        )
        for file in files
    ]
    dictionary = Dictionary.of("mine", entries)
    write_dictionary_manifest(dictionary, tmp_path / "dictionary.json", overwrite=True)
    for path in (tmp_path, tmp_path / "dictionary.json"):
        source = read_dictionary(path)
        assert (source.dictionary, source.problems) == (dictionary, ())


def test_a_manifest_is_preferred_and_the_other_is_mentioned(tmp_path: Path) -> None:
    touch(tmp_path, "apple.mp4", "pear.mp4")
    (tmp_path / "dictionary.csv").write_text("word,file\nfig,apple.mp4\n")
    assert listed(tmp_path) == [("apple.mp4", "fig", "")]
    content = {"format": "signspot-dictionary", "version": 1, "entries": [{"word": "kiwi", "file": "pear.mp4"}]}
    (tmp_path / "dictionary.json").write_text(json.dumps(content))
    assert listed(tmp_path) == [("pear.mp4", "kiwi", "")]
    assert "dictionary.csv: is not read" in whats(read_dictionary(tmp_path).problems)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "other"}, "is not a manifest"),
        ({"version": 2}, "of version 2"),
        ({"version": True}, "of version True"),
        ({"entries": {}}, "'entries' is not a list"),
        ({"name": 3}, "is not text"),
    ],
)
def test_a_manifest_of_another_kind_is_refused(change: dict[str, object], words: str, tmp_path: Path) -> None:
    content = {"format": "signspot-dictionary", "version": 1, "name": "x", "entries": []} | change
    (tmp_path / "dictionary.json").write_text(json.dumps(content))
    with pytest.raises(FormatError, match=words):
        read_dictionary(tmp_path)


def test_bad_entries_of_a_manifest_are_told(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4")
    bad = [
        5,
        {},
        {"word": "x"},
        {"word": ["x"], "file": "a.mp4"},
        {"word": "x", "file": {"a": 1}},
        {"word": "x", "file": "a.mp4", "holder": []},
    ]
    content = {"format": "signspot-dictionary", "version": 1, "entries": bad}
    (tmp_path / "dictionary.json").write_text(json.dumps(content))
    source = read_dictionary(tmp_path)
    assert listed(tmp_path) == [("a.mp4", "x", "")]
    assert len(source.problems) == 6


def test_a_manifest_is_written_only_above_its_clips(tmp_path: Path) -> None:
    touch(tmp_path, "a/x.mp4", "b/y.mp4")
    source = read_dictionary(tmp_path).dictionary
    with pytest.raises(FormatError, match="not under the folder of the manifest"):
        write_dictionary_manifest(source, tmp_path / "a" / "dictionary.json")
    with pytest.raises(FormatError, match="without a video"):
        write_dictionary_manifest(Dictionary.of("d", [Entry(entry_id="1", word=Word("a"))]), tmp_path / "d.json")
    write_dictionary_manifest(source, tmp_path / "d.json")
    with pytest.raises(OutputExists, match="exists already"):
        write_dictionary_manifest(source, tmp_path / "d.json")


# Nothing outside the folder is ever reached

ESCAPES = (
    "in/../in/good.mp4",
    "../secret/s.mp4", "..\\secret\\s.mp4", "./../secret/s.mp4", "in/../../secret/s.mp4", "in/..\\../secret/s.mp4",
    "../root/../secret/s.mp4", "..", "../", "../..", "in/../../root/../secret/s.mp4", "/{secret}/s.mp4",
    "//{secret}/s.mp4", "///{secret}/s.mp4", "\\{secret}\\s.mp4", "\\\\server\\share\\s.mp4", "//server/share/s.mp4",
    "C:\\secret\\s.mp4", "C:/secret/s.mp4", "c:s.mp4", "C:", "\\\\?\\C:\\s.mp4", "\\\\.\\pipe\\s.mp4",
    "file:///{secret}/s.mp4", "file://localhost/{secret}/s.mp4", "http://127.0.0.1/s.mp4",
    "https://example.org/s.mp4", "concat:a.mp4|../secret/s.mp4", "~/secret/s.mp4", "~root/s.mp4", "$HOME/s.mp4",
    "${{HOME}}/s.mp4", "%HOME%/s.mp4", "`pwd`/s.mp4", "$(pwd)/s.mp4", "%2e%2e/secret/s.mp4",
    "%2e%2e%2fsecret%2fs.mp4", "..%2fsecret/s.mp4", "..%5csecret/s.mp4", "%252e%252e/secret/s.mp4",
    "..%c0%af../secret/s.mp4", "....//secret/s.mp4", "..../secret/s.mp4", ".. /secret/s.mp4", "../secret/s.mp4\0.mp4",
    "s.mp4\0", "\0", "in/\0/../s.mp4", "\n../secret/s.mp4", "../secret/s.mp4 ", "\u2025/secret/s.mp4",
    "\uff0e\uff0e/secret/s.mp4", "\u2024\u2024/secret/s.mp4", "..\u2215secret\u2215s.mp4", "..\uff0fsecret/s.mp4",
    "link/s.mp4", "file.mp4", "in/deep.mp4", "link/../s.mp4", "door/secret/s.mp4", "/proc/self/root/{secret}/s.mp4",
    "/dev/stdin", "/dev/fd/0", "", " ", ".", "./", "in", "-", "-i.mp4", "|ls", "a" * 5000, "in/" * 2000 + "s.mp4",
)  # fmt: skip


@pytest.fixture
def guarded(tmp_path: Path) -> Path:
    """A folder with links that lead out of it, beside a secret."""
    secret = touch(tmp_path / "secret", "s.mp4")
    root = touch(tmp_path / "root", "good.mp4", "in/good.mp4")
    (root / "link").symlink_to(secret)
    (root / "door").symlink_to(tmp_path)
    (root / "file.mp4").symlink_to(secret / "s.mp4")
    (root / "in/deep.mp4").symlink_to("../../secret/s.mp4")
    return root


def paths(root: Path) -> list[str]:
    return [escape.format(secret=str(root.parent / "secret").lstrip("/")) for escape in ESCAPES]


def test_no_path_of_a_manifest_leads_out_of_its_folder(guarded: Path) -> None:
    rows = [{"word": "apple", "file": path} for path in [*paths(guarded), "good.mp4"]]
    content: dict[str, object] = {"format": "signspot-dictionary", "version": 1, "entries": rows}
    (guarded / "dictionary.json").write_text(json.dumps(content))
    source = read_dictionary(guarded)
    assert [entry.video for entry in source.dictionary] == [guarded / "good.mp4"]
    assert len(source.problems) == len(ESCAPES)
    episodes = [{"video": row["file"]} for row in rows] + [
        {"video": "in/good.mp4", "subtitles": p} for p in paths(guarded)
    ]
    (guarded / "corpus.json").write_text(json.dumps({"format": "signspot-corpus", "version": 1, "episodes": episodes}))
    corpus = read_corpus(guarded)
    assert [episode.video for episode in corpus.episodes] == [guarded / "good.mp4", guarded / "in/good.mp4"]
    assert [episode.subtitles for episode in corpus.episodes] == [None, None]


def test_no_path_of_a_csv_file_leads_out_of_its_folder(guarded: Path) -> None:
    rows = [path for path in [*paths(guarded), "good.mp4"] if not set(path) & set("\n\0")]
    (guarded / "dictionary.csv").write_text(
        "word,file\n" + "".join(f'apple,"{path}"\n' for path in rows), encoding="utf-8"
    )
    assert [entry.video for entry in read_dictionary(guarded).dictionary] == [guarded / "good.mp4"]


def test_listing_a_folder_does_not_leave_it(guarded: Path) -> None:
    assert {e.video for e in read_dictionary(guarded).dictionary} == {guarded / "good.mp4", guarded / "in/good.mp4"}
    assert {e.video for e in read_corpus(guarded).episodes} == {guarded / "good.mp4", guarded / "in/good.mp4"}


@with_folder
@given(
    parts=st.lists(
        st.sampled_from(["..", ".", "in", "link", "door", "secret", "s.mp4", "/", "\\", "good.mp4", "root"]), max_size=8
    )
)
def test_any_mixture_of_parts_stays_inside(parts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp() / "mixture"
    if not base.exists():
        base.mkdir()
        touch(base, "secret/s.mp4", "root/good.mp4", "root/in/good.mp4")
        (base / "root/link").symlink_to(base / "secret")
        (base / "root/door").symlink_to(base)
    rows = [{"word": "a", "file": "/".join(parts)}, {"word": "b", "file": "".join(parts)}]
    (base / "root/dictionary.json").write_text(
        json.dumps({"format": "signspot-dictionary", "version": 1, "entries": rows})
    )
    try:
        entries = list(read_dictionary(base / "root").dictionary)
    except DictionaryError:
        return
    assert all(entry.video and entry.video.resolve().is_relative_to(base / "root") for entry in entries)


# A corpus


def test_videos_find_their_subtitles(tmp_path: Path) -> None:
    touch(
        tmp_path,
        *(
            "a.mp4",
            "a.vtt",
            "b.mkv",
            "b.en-GB.srt",
            "c.mp4",
            "subtitles/c.ttml",
            "d.mp4",
            "2019/e.ts",
            "2019/Subtitles/e.stl",
        ),
        *(
            "f.mp4",
            "f.en.mp4",
            "f.en.vtt",
            "g.mp4",
            "g.srt",
            "g.vtt",
            "subtitles/g.vtt",
            "h.srt",
            "other.xml",
            "x.eaf",
            ".h.mp4",
        ),
    )
    source = read_corpus(tmp_path)
    found = {e.video_id: e.subtitles and e.subtitles.relative_to(tmp_path).as_posix() for e in source.episodes}
    assert found == {
        "a": "a.vtt",
        "b": "b.en-GB.srt",
        "c": "subtitles/c.ttml",
        "d": None,
        "f": None,
        "f.en": "f.en.vtt",
        "g": "g.vtt",
        "2019/e": "2019/Subtitles/e.stl",
    }
    said = whats(source.problems)
    assert "3 subtitle files; g.vtt is used" in said and "h.srt: subtitles without a video" in said
    assert "files that are not videos: 1 with .eaf, 1 with .xml" in said and len(source.problems) == 3


def test_annotations_keep_the_time_they_were_given_in(tmp_path: Path) -> None:
    touch(tmp_path, "news/a.mp4", "b.mp4")
    (tmp_path / "annotations.csv").write_text(
        "video,word,time_ms,frame,start_ms,stop_ms,confidence,source\n"
        "news/a,Apple,1200.4,,,,0.5,mouthing\n"
        "news/a.mp4,pear,,30,,,,\n"
        "b,ice cream,,,100,300,,\n"
        "c,apple,5,,,,,\n"
        "b,apple,,,,,,\n"
        "b,apple,5,6,,,,\n"
        "b,apple,,,5,,,\n"
        "b,apple,,,9,5,,\n"
        "b,apple,-5,,,,,\n"
        "b,apple,nan,,,,,\n"
        "b,apple,,1.5,,,,\n"
        "b,apple,5,,,,2,\n"
        "b,apple,1e300,,,,,\n"
    )
    source = read_corpus(tmp_path)
    assert source.annotations == (
        TimedAnnotation(video_id="news/a", word=Word("apple"), time_ms=1200, confidence=0.5, source="mouthing"),
        TimedAnnotation(video_id="news/a", word=Word("pear"), frame=30),
        TimedAnnotation(video_id="b", word=Word("ice-cream"), time_ms=200),
    )
    assert [p.where.rpartition(" ")[2] for p in source.problems] == [str(n) for n in range(5, 15)]


def test_an_annotation_is_put_on_the_frame_that_is_shown(tmp_path: Path) -> None:
    axis = TimeAxis(np.array([0.0, 40, 40, 500, 540]))
    for time_ms, frame in ((0, 0), (39, 1), (260, 1), (280, 3), (541, 4), (580, 4)):
        timed = TimedAnnotation(video_id="v", word=Word("a"), time_ms=time_ms, confidence=0.5, source="mouthing")
        assert timed.placed(axis) == Annotation("v", Word("a"), frame, 0.5, "mouthing")
    assert TimedAnnotation(video_id="v", word=Word("a"), frame=4).placed(axis).frame == 4
    for late in (
        TimedAnnotation(video_id="v", word=Word("a"), frame=5),
        TimedAnnotation(video_id="v", word=Word("a"), time_ms=581),
    ):
        with pytest.raises(FormatError, match="v: the annotation of 'a' lies after the end"):
            late.placed(axis)
    with pytest.raises(FormatError, match="after the end"):
        TimedAnnotation(video_id="v", word=Word("a"), time_ms=0).placed(TimeAxis(np.zeros(0)))


def test_a_csv_corpus_is_read(tmp_path: Path) -> None:
    touch(tmp_path, "v/a.mp4", "s/a.vtt", "b.mp4", "c.mp4")
    (tmp_path / "corpus.csv").write_text(
        "video;subtitles;signer;language;split;may_train\nv/a.mp4;s/a.vtt;S1;bfi;train;yes\nb.mp4;lost.vtt\nb.mp4;\nx.mp4;\n"
    )
    (tmp_path / "annotations.csv").write_text("video,word,frame\nv/a,apple,3\n")
    for path in (tmp_path, tmp_path / "corpus.csv"):
        source = read_corpus(path)
        assert source.episodes == (
            Episode(
                video_id="v/a",
                video=tmp_path / "v/a.mp4",
                subtitles=tmp_path / "s/a.vtt",
                signer="S1",
                language="bfi",
                split="train",
                rights=Rights(may_train=True),
            ),
            Episode(video_id="b", video=tmp_path / "b.mp4"),
        )
        assert len(source.annotations) == 1
        assert [p.what for p in source.problems] == [
            "subtitles 'lost.vtt': no such file",
            "the video 'b' comes twice",
            "'x.mp4': no such file",
        ]


@with_folder
@given(data=st.data())
def test_a_corpus_manifest_reads_back(data: st.DataObject, tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4", "b/c.mkv", "b/c.vtt")
    episodes = [
        Episode(
            video_id=data.draw(st.sampled_from((Path(file).with_suffix("").as_posix(), f"id {file}"))),
            video=tmp_path / file,
            subtitles=data.draw(st.sampled_from((None, tmp_path / "b/c.vtt"))),
            signer=data.draw(names),
            language=data.draw(st.sampled_from(("", "bfi"))),
            split=data.draw(names),
            rights=data.draw(rights),
            box=data.draw(st.none() | boxes()),
        )
        for file in ("a.mp4", "b/c.mkv")
    ]
    times = st.integers(0, 2**50).map(lambda n: {"time_ms": n}) | st.integers(0, 2**50).map(lambda n: {"frame": n})
    annotations = [
        TimedAnnotation(
            video_id=data.draw(st.sampled_from(episodes)).video_id,
            word=data.draw(words),
            confidence=data.draw(st.floats(0, 1)),
            source=data.draw(names.filter(bool)),
            **time,
        )
        for time in data.draw(st.lists(times, max_size=4))
    ]
    corpus = CorpusSource(tuple(episodes), tuple(annotations))
    corpus.write_manifest(tmp_path / "corpus.json", overwrite=True)
    assert read_corpus(tmp_path) == corpus


def test_an_unusable_corpus_is_an_error(tmp_path: Path) -> None:
    for name in ("none", "a\0b", "x" * 5000):
        with pytest.raises(FormatError, match="no such file or folder"):
            read_corpus(tmp_path / name)
    with pytest.raises(FormatError, match="no usable video"):
        read_corpus(tmp_path)
    (tmp_path / "corpus.csv").write_text("word\n")
    with pytest.raises(FormatError, match="no column video"):
        read_corpus(tmp_path)


def test_folders_that_are_too_deep_are_told(tmp_path: Path) -> None:
    touch(tmp_path, "a.mp4", "/".join("d" * 40) + "/b.mp4")
    source = read_corpus(tmp_path)
    assert len(source.episodes) == 1 and "more than 32 folders deep" in whats(source.problems)


# Damaged manifests


def read_mutants(count: int, folder: Path) -> None:
    touch(folder, "a.mp4", "b/c.mp4", "b/c.vtt")
    (folder / "dictionary.csv").write_text(
        "word,file,signer,may_train,expires\napple,a.mp4,S,yes,2030-01-01\nfig,b/c.mp4,,,\n"
    )
    write_dictionary_manifest(read_dictionary(folder).dictionary, folder / "d.json")
    touch(folder, "annotations.csv").joinpath("annotations.csv").write_text(
        "video,word,time_ms\na,apple,12\nb/c,fig,40\n"
    )
    read_corpus(folder).write_manifest(folder / "c.json")
    (folder / "c.csv").write_text("video,subtitles,signer\na.mp4,,S\nb/c.mp4,b/c.vtt,\n")
    originals = {
        name: (folder / name).read_bytes()
        for name in ("dictionary.csv", "d.json", "c.json", "c.csv", "annotations.csv")
    }
    refused = 0
    for name, original in originals.items():
        for content in mutants(original, count, seed=5):
            path = write_mutant(folder / name, content)
            try:
                if name.startswith("d"):
                    read_dictionary(path)
                else:
                    read_corpus(path if name != "annotations.csv" else folder / "c.csv")
            except (FormatError, DictionaryError):
                refused += 1
        (folder / name).write_bytes(original)
    assert count < refused < 4 * count


def test_damaged_manifests_raise_nothing_but_our_errors(tmp_path: Path) -> None:
    read_mutants(400, tmp_path)


@pytest.mark.soak
def test_fifty_thousand_damaged_manifests(tmp_path: Path) -> None:
    read_mutants(10_000, tmp_path)


def seconds_to_list(count: int, folder: Path) -> tuple[float, float]:
    for number in range(count // 100):
        (folder / f"word{number}").mkdir()
        for clip in range(100):
            (folder / f"word{number}" / f"{clip}.mp4").touch()
    start = time.perf_counter()
    source = read_dictionary(folder)
    listed = time.perf_counter() - start
    assert len(source.dictionary) == count
    write_dictionary_manifest(source.dictionary, folder / "dictionary.json")
    start = time.perf_counter()
    assert read_dictionary(folder).dictionary.by_word == source.dictionary.by_word
    return listed, time.perf_counter() - start


def test_five_thousand_clips_are_listed_in_a_second(tmp_path: Path) -> None:
    listed, read = seconds_to_list(5_000, tmp_path)
    assert listed < 2 and read < 4


@pytest.mark.soak
def test_a_hundred_thousand_clips_are_listed_in_seconds(tmp_path: Path) -> None:
    listed, read = seconds_to_list(100_000, tmp_path)
    assert listed < 15 and read < 30
