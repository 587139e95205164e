"""Bytes of a subtitle file -> text, whatever program wrote them. Never fails, and says when it had to guess.

In this order: the encoding the user names, a byte order mark, UTF-16 recognised by its zero bytes, UTF-8 (also with a
few damaged bytes), a guess. The guess is windows-1252 where that reads as Latin text, since the statistics of
charset-normalizer confuse it with its neighbours on short files; for other scripts charset-normalizer decides.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

from charset_normalizer import from_bytes

_MARKS = (  # UTF-32 first: its mark starts with the one of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 65_536  # bytes or characters looked at where a part tells enough
_GUESSED_FROM = 16_384
_SYMBOL_IN_WORD = re.compile(r"[^\W\d_][¡-©«-´¶-¹»-¿×÷][^\W\d_]")
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\ufffd]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text of a file, the encoding it was read in, and a remark for the user where that is uncertain."""

    text: str
    encoding: str
    remark: str = ""


def decode(data: bytes, encoding: str = "") -> Decoded:
    """Turn bytes into text; `encoding` overrides every guess and must be one Python knows."""
    if encoding:
        return _decoded(data, encoding)
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _decoded(data, name)
    if name := _utf_16_without_mark(data):
        return _decoded(data, name)
    utf_8 = _decoded(data, "utf-8")
    replaced = utf_8.text.count("\ufffd")
    if not replaced or _count_not_ascii(utf_8.text) > 4 * replaced:
        return utf_8
    name = _guess(data)
    remark = f"its encoding is not stated; read as {name}: if letters look wrong, save it as UTF-8 or give --encoding"
    return Decoded(data.decode(name, "replace"), name, remark)


def is_binary(text: str) -> bool:
    """Whether decoded text is so full of control characters that nobody wrote it."""
    head = text[:_HEAD]
    return len(_CONTROL.findall(head)) * 20 > len(head)


def _decoded(data: bytes, name: str) -> Decoded:
    text = data.decode(name, "replace")
    damaged = text.count("\ufffd")
    return Decoded(text, name, f"{damaged} characters are damaged and cannot be read as {name}" if damaged else "")


def _utf_16_without_mark(data: bytes) -> str:
    """Digits, spaces and line ends have a zero byte in UTF-16, always on the same side."""
    head = data[:_HEAD]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) * 10 < len(head) or min(even, odd) * 10 > max(even, odd):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _count_not_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _guess(data: bytes) -> str:
    head = data[: data.rfind(b"\n", 0, _GUESSED_FROM) + 1 or _GUESSED_FROM]
    best = from_bytes(head).best()
    name = best.encoding if best else "cp1252"
    letters = {c for c in head.decode(name, "replace") if c > "\x7f" and c.isalpha()}
    if all(unicodedata.name(c, "").startswith("LATIN") for c in letters):
        western = head.decode("cp1252", "replace")
        if not _SYMBOL_IN_WORD.search(western) and "\ufffd" not in western:
            return "windows-1252"
    return name
