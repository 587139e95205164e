from __future__ import annotations

import builtins
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from signspot.domain.recordings import Dictionary, Entry, Synonyms, Vocabulary, Word, normalise
from signspot.errors import InputError, MissingExtra
from signspot.text.synonyms import english_synonyms, shared_sign_synonyms
from tests.text.wordnet_folder import write_wordnet

SYNSETS = [
    ("n", ("car", "auto", "motorcar")),
    ("n", ("car", "railcar")),
    ("n", ("ice_cream", "icecream")),
    ("n", ("saw",)),
    ("v", ("see", "understand")),
    ("a", ("happy", "content")),
    ("r", ("well", "good")),
    ("a", ("well",)),
]


def vocabulary(*texts: str) -> Vocabulary:
    return Vocabulary.of(normalise(text) for text in texts)


def pairs(synonyms: Synonyms) -> list[tuple[Word, Word]]:
    return sorted(pair for pair in synonyms.pairs if pair[0] < pair[1])


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    pytest.importorskip("nltk", reason="the extra wordnet is not installed")
    return write_wordnet(tmp_path / "wordnet", SYNSETS)


def test_words_of_one_meaning_are_synonyms(wordnet: Path) -> None:
    found = english_synonyms(vocabulary("car", "auto", "railcar", "happy", "content", "apple"), wordnet)
    assert pairs(found) == [("auto", "car"), ("car", "railcar"), ("content", "happy")]
    assert all((b, a) in found.pairs for a, b in found.pairs)


def test_phrases_are_found_under_their_underscores(wordnet: Path) -> None:
    assert pairs(english_synonyms(vocabulary("ice cream", "icecream"), wordnet)) == [("ice-cream", "icecream")]


def test_an_inflected_form_is_not_taken_for_its_base(tmp_path: Path, wordnet: Path) -> None:
    (wordnet / "verb.exc").write_text("saw see\n")
    assert pairs(english_synonyms(vocabulary("saw", "understand", "see", "cars", "auto"), wordnet)) == [
        ("see", "understand")
    ]


def test_words_of_no_kind_have_no_synonyms(wordnet: Path) -> None:
    assert english_synonyms(vocabulary("c++", "don't", "\U0001d800", "1", "zzz"), wordnet) == Synonyms()
    assert english_synonyms(Vocabulary(()), wordnet) == Synonyms()


def test_a_folder_without_wordnet_is_refused(wordnet: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not hold WordNet: there is no file data\.noun: name the folder"):
        english_synonyms(vocabulary("car"), tmp_path)
    (wordnet / "index.adv").unlink()
    with pytest.raises(InputError, match=r"there is no file index\.adv"):
        english_synonyms(vocabulary("car"), wordnet)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("index.noun", "car n 2", "car n two"),
        ("index.noun", "auto n 1 0 1 0 ", "auto n 1 0 1 0 9"),
        ("index.noun", "auto n 1", "auto n"),
        ("data.noun", " 03 n 03 ", " 03 n zz "),
        ("data.noun", " 03 n 03 ", " 99 n 03 "),
        ("data.noun", "| a meaning", " "),
        ("data.noun", "00", "99"),
    ],
)
def test_damaged_files_are_typed_errors(wordnet: Path, name: str, old: str, new: str) -> None:
    path = wordnet / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match="WordNet's files are damaged") as caught:
        english_synonyms(vocabulary("car", "auto", "saw"), wordnet)
    assert "\n" not in str(caught.value)


def test_files_that_others_may_change_are_not_trusted(wordnet: Path) -> None:
    (wordnet / "data.noun").chmod(0o666)
    with pytest.raises(InputError, match=r"cannot be read from there .*: let the files and their folder belong to you"):
        english_synonyms(vocabulary("car"), wordnet)


def test_bytes_that_are_no_text_are_a_typed_error(wordnet: Path) -> None:
    (wordnet / "index.noun").write_bytes(b"\xff\xfe\x00car n")
    with pytest.raises(InputError, match="WordNet's files are damaged"):
        english_synonyms(vocabulary("car"), wordnet)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_wordnet(tmp_path / "wordnet", SYNSETS)
    original = builtins.__import__

    def without_nltk(name: str, *rest: Any) -> ModuleType:
        if name.split(".")[0] == "nltk":
            raise ImportError(name)
        return original(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == "nltk"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without_nltk)
    with pytest.raises(MissingExtra, match=r"English synonyms: needs the optional extra 'wordnet'"):
        english_synonyms(vocabulary("car"), folder)


def entry(entry_id: str, word: str, **fields: Any) -> Entry:
    return Entry(entry_id=entry_id, word=normalise(word), **fields)


def test_words_filed_under_one_sign_are_synonyms() -> None:
    dictionary = Dictionary.of(
        "test",
        [
            entry("1", "happy", type_id="S7", language="bfi"),
            entry("2", "glad", type_id="S7", language="bfi"),
            entry("3", "sad", type_id="S7", language="ase"),
            entry("4", "car", video=Path("a.mp4")),
            entry("5", "drive", video=Path("a.mp4")),
            entry("6", "apple", video=Path("b.mp4")),
            entry("7", "apple", video=Path("a.mp4")),
            entry("8", "pear"),
            entry("9", "plum"),
        ],
    )
    expected = [("apple", "car"), ("apple", "drive"), ("car", "drive"), ("glad", "happy")]
    assert pairs(shared_sign_synonyms(dictionary)) == expected
