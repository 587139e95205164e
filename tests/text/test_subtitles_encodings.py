from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.text.subtitles import _decode, _is_binary

LINES = ["Où est la bibliothèque, s’il vous plaît ?", "C’est très près de l’école.", "Ça va être l’été, déjà."]
SRT = "".join(f"{i}\n00:00:0{i},000 --> 00:00:0{i},900\n{line}\n\n" for i, line in enumerate(LINES, 1))
RUSSIAN = SRT.replace(LINES[0], "Где находится библиотека?").replace(LINES[1], "Спасибо большое").replace(LINES[2], "")
CHINESE = (
    SRT.replace(LINES[0], "今天天气很好，我们去公园散步。")
    .replace(LINES[1], "手语是聋人的语言。")
    .replace(LINES[2], "")
)
POLISH = SRT.replace(LINES[0], "Gdzie jest łóżko? Żółć.").replace(LINES[1], "Dziękuję, proszę").replace(LINES[2], "")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"])
def test_every_common_encoding_is_recognised(encoding: str) -> None:
    decoded = _decode(SRT.encode(encoding))
    assert decoded.text.removeprefix("\ufeff") == SRT
    assert bool(decoded.remark) == (encoding == "cp1252")


@pytest.mark.parametrize("mark", [b"\xfe\xff", b"\x00\x00\xfe\xff"])
def test_big_endian_marks_are_honoured(mark: bytes) -> None:
    assert _decode(mark + SRT.encode("utf-16-be" if len(mark) == 2 else "utf-32-be")).text == SRT


@pytest.mark.parametrize(
    ("text", "encoding"),
    # Some pairs of bytes of the last are letters in UTF-8, too.
    [(RUSSIAN, "cp1251"), (POLISH, "cp1250"), (SRT, "cp1252"), (CHINESE, "gb18030")],
)
def test_a_guess_is_right_for_a_few_lines_and_named_in_a_remark(text: str, encoding: str) -> None:
    decoded = _decode(text.encode(encoding, "replace"))
    assert decoded.text == text.encode(encoding, "replace").decode(encoding)
    assert f"read as {decoded.encoding}" in decoded.remark


def test_a_named_encoding_overrides_the_guess() -> None:
    assert _decode("İstanbul ığdır".encode("cp1254"), "cp1254").text == "İstanbul ığdır"


def test_a_few_damaged_bytes_do_not_turn_utf_8_into_something_else() -> None:
    damaged = SRT.encode() + b"\xff\xfe broken"
    decoded = _decode(damaged)
    assert decoded.encoding == "utf-8"
    assert decoded.text.startswith(SRT)
    assert "2 characters are damaged" in decoded.remark


@given(st.binary(max_size=300))
def test_any_bytes_become_text_and_always_the_same(data: bytes) -> None:
    assert _decode(data) == _decode(data)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_utf_8_is_never_mistaken(text: str) -> None:
    assert _decode(text.encode()).text.removeprefix("\ufeff") == text.removeprefix("\ufeff")


def test_large_files_of_noise_are_judged_fast() -> None:
    noise = bytes(range(128, 256)) * 100_000
    started = time.process_time()
    _decode(noise)
    assert time.process_time() - started < 3


def test_video_is_binary_and_subtitles_are_not() -> None:
    assert _is_binary(_decode(b"\0\0\0\x18ftypmp42" + bytes(range(256)) * 30).text)
    assert not _is_binary(SRT)
