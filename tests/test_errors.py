from __future__ import annotations

import copy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.errors import InputError, MissingExtra, Notice, UnknownWord, one_line, readable_size


def test_a_message_is_one_line_and_harmless_to_a_terminal() -> None:
    message = str(InputError("a\x1b[31m\nb.mp4", "is\u202e bad", "do this"))
    assert message == r"a\x1b[31m\nb.mp4: is\u202e bad: do this"
    assert str(Notice("a\x1b[31m\nb.mp4", "is\u202e bad", "do this")) == message
    assert str(Notice("", "nothing moves", severity="note")) == "nothing moves"
    assert one_line("Ärger, שלום, 手話") == "Ärger, שלום, 手話"


@pytest.mark.parametrize(
    ("n_bytes", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (40_123, "40.1 kB"),
        (999_949, "999.9 kB"),
        (999_999, "1 MB"),
        (64_000_000, "64 MB"),
        (2_147_483_648, "2.1 GB"),
        (5 * 10**12, "5000 GB"),
    ],
)
def test_a_size_has_the_unit_that_fits(n_bytes: int, said: str) -> None:
    assert readable_size(n_bytes) == said


@given(st.integers(1, 10**15))
def test_no_size_is_said_to_be_nothing(n_bytes: int) -> None:
    number, unit = readable_size(n_bytes).split()
    assert re.fullmatch(r"[1-9]\d*(\.\d)?", number)
    factor = {"byte": 1, "bytes": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}[unit]
    assert abs(float(number) * factor - n_bytes) <= 0.0501 * factor


def test_errors_say_what_to_do() -> None:
    assert str(UnknownWord.named({"aple": ("apple",)})).endswith("did you mean apple?")
    several = UnknownWord.named({"aple": ("apple",), "zebra": ()})
    assert str(several) == "aple, zebra: the dictionary has no entry for these words: did you mean apple?"
    assert "pip install 'signspot[pose]'" in str(MissingExtra.named("landmarks", "pose"))


def test_an_error_can_be_copied_with_all_its_parts() -> None:
    error = copy.copy(UnknownWord.named({"aple": ("apple",)}))
    assert (error.where, error.fix, error.exit_code) == ("aple", "did you mean apple?", 2)
    assert error.notice() == Notice(error.where, error.what, error.fix) and str(error.notice()) == str(error)
