from __future__ import annotations

import copy

from signspot.errors import InputError, MissingExtra, UnknownWord, one_line


def test_a_message_is_one_line_and_harmless_to_a_terminal() -> None:
    message = str(InputError("a\x1b[31m\nb.mp4", "is\u202e bad", "do this"))
    assert message == r"a\x1b[31m\nb.mp4: is\u202e bad: do this"
    assert one_line("Ärger, שלום, 手話") == "Ärger, שלום, 手話"


def test_errors_say_what_to_do() -> None:
    assert str(UnknownWord.named({"aple": ("apple",)})).endswith("did you mean apple?")
    several = UnknownWord.named({"aple": ("apple",), "zebra": ()})
    assert str(several) == "aple, zebra: the dictionary has no entry for these words: did you mean apple?"
    assert "pip install 'signspot[pose]'" in str(MissingExtra.named("landmarks", "pose"))


def test_an_error_can_be_copied_with_all_its_parts() -> None:
    error = copy.copy(UnknownWord.named({"aple": ("apple",)}))
    assert (error.where, error.fix, error.exit_code) == ("aple", "did you mean apple?", 2)
