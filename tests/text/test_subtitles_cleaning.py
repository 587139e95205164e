from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.text.subtitles import _clean_lines


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<i>Hello</i> <font color='red'>you</font>", "Hello you"),
        ("<v Mary>Hello</v> <c.loud>you<00:00:01.500></c>", "Hello you"),
        ("{\\an8}Hello {\\i1}you", "Hello you"),
        ("3 < 4 and 5 > 2", "3 < 4 and 5 > 2"),
        ("{curly} words", "{curly} words"),
        ("fish &amp; chips&nbsp;&#39;n&#x27; peas &lt;3 AT&T; R&B", "fish & chips 'n' peas <3 AT&T; R&B"),
        ("JOHN: Hello", "Hello"),
        ("- MARY SMITH: Hello", "Hello"),
        (">> NEWSREADER: Hello", "Hello"),
        (">> Newsreader: Hello", "Hello"),
        (">>> Hello", "Hello"),
        ("DR. O'NEILL-JONES 2: Hello", "Hello"),
        ("ÉMILE: Bonjour", "Bonjour"),
        ("Narrator: Hello", "Hello"),
        ("Man 2: Hello", "Hello"),
        ("JOHN (V.O.): Hello", "Hello"),
        ("Note: this", "Note: this"),
        ("NOTE: this", "NOTE: this"),
        ("He said: no", "He said: no"),
        ("10:30 in London", "10:30 in London"),
        ("AT 10:30 TODAY", "AT 10:30 TODAY"),
        ("-5 degrees", "-5 degrees"),
        ("- Hello\n- Bye", "Hello Bye"),
        ("-Hello", "Hello"),
        ("[MUSIC] Hello", "Hello"),
        ("(LAUGHTER)", ""),
        ("[DOOR SLAMS SHUT]\nHello", "Hello"),
        ("[Soft music playing]", ""),
        ("(laughs) Hello", "Hello"),
        ("[MUSIC\nPLAYING] Hello", "Hello"),
        ("the World Service (BBC) said", "the World Service (BBC) said"),
        ("the film academy (BAFTA) said", "the film academy (BAFTA) said"),
        ("Is it A: a dog or a cat?", "Is it A: a dog or a cat?"),
        ("A: a dog", "A: a dog"),
        ("she (the teacher) came", "she (the teacher) came"),
        ("♪ We all live in ♪", "We all live in"),
        ("# We all live in #", "We all live in"),
        ("#hashtag number #1", "#hashtag number #1"),
        ("a\u200bb\ufeffc\u202ed\u00ade\u2066f", "abcdef"),
        ("bell\x07tab\there", "bell tab here"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("Hello   \n\n  you", "Hello you"),
        ("", ""),
        ("\ue000\ue0e9\ue020 (\ue001)", "\ue000\ue0e9\ue020 (\ue001)"),
        ("\U0001d800\U0001da9b\U0001d9ff", "\U0001d800\U0001da9b\U0001d9ff"),
    ],
)
def test_only_what_is_said_is_left(text: str, clean: str) -> None:
    assert " ".join(_clean_lines(text)) == clean


@given(st.text(st.sampled_from("\ue000\ue0e9\uf8ff\U0001d800\U0001daaf\U0001da9b"), min_size=1))
def test_sign_notations_survive_untouched(notation: str) -> None:
    assert _clean_lines(f"<b>{notation}</b>") == (notation,)


@given(st.text())
def test_any_text_becomes_visible_lines(text: str) -> None:
    for line in _clean_lines(text):
        assert line
        assert line == " ".join(line.split())
        assert not any(unicodedata.category(c) == "Cc" for c in line)


@given(st.lists(st.sampled_from(["the", "house", "Apple", "it's", "naïve", "3", "çok"]), min_size=1))
def test_plain_words_are_conserved(words: list[str]) -> None:
    assert " ".join(_clean_lines(f"<i>{' '.join(words[:2])}</i>\n{' '.join(words[2:])}")).split() == words


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a",
        "<a ",
        "&",
        "&#",
        "&#9",
        "[",
        "(A",
        "{\\",
        "♪",
        "#",
        " # ",
        "-",
        ">> ",
        "A:",
        "A ",
        "\n",
        "\u200d",
        " ",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    _clean_lines(piece * (1_000_000 // len(piece)))
    _clean_lines("&#" + "9" * 100_000 + ";")
    assert time.process_time() - started < 2
