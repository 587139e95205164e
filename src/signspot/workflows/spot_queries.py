"""What is looked for: words of a dictionary, and clips that somebody has of a sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.words import MAX_WORD_LENGTH, Word, normalise
from signspot.errors import InputError
from signspot.formats.intake import bounded_lines, open_text
from signspot.formats.manifests import read_dictionary
from signspot.media.trim import trim_clip
from signspot.workflows.entry_vectors import LEFT_OUT

_MOST_WORDS = 100_000


@dataclass(frozen=True, slots=True)
class Shelf:
    """The entries to compare with, the words to look for, and what had to be left out."""

    dictionary: Dictionary
    words: tuple[str, ...]
    problems: tuple[str, ...] = ()
    clip_ids: tuple[str, ...] = ()  # of the entries that are no part of the dictionary


def query_shelf(dictionary: Path | None, clips: Sequence[Path], words: Sequence[str]) -> Shelf:
    """The dictionary, with the clips added as one more sign that is named after the first of them."""
    if dictionary is None and not clips:
        raise InputError("dictionary", "none given", "name one with --dictionary, or clips of a sign with --query")
    if dictionary is None and words:
        raise InputError(words[0], "a word is looked up in a dictionary", "name one with --dictionary")
    source = None if dictionary is None else read_dictionary(dictionary)
    known = () if source is None else tuple(source.dictionary)
    problems = [] if source is None else [one for one in source.problems if not one.is_remark]
    said = tuple(f"{LEFT_OUT}{problem}" for problem in problems)
    if not clips:
        return Shelf(Dictionary.of("", ()) if source is None else source.dictionary, tuple(words), said)
    word = _clip_word(clips[0], {entry.word for entry in known})
    taken = {entry.entry_id for entry in known}
    shown = [Entry(entry_id=_unused(clip.stem, taken), word=word, video=clip) for clip in clips]
    asked = f"query {', '.join(clip.name for clip in clips)}"  # which a result is explained by later
    name = asked if source is None else f"{source.dictionary.name} and {asked}"
    folder = None if source is None else source.dictionary.folder
    ids = tuple(entry.entry_id for entry in shown)
    return Shelf(Dictionary.of(name, (*known, *shown), folder), (*words, word), said, ids)


def without_still_ends(shelf: Shelf, *, isolated: bool = True) -> Shelf:
    """The same with the clips cut to what moves: their still ends are in no video."""
    said: list[str] = []
    entries: list[Entry] = []
    for entry in shelf.dictionary:
        if entry.entry_id in shelf.clip_ids and entry.video is not None:
            trim = trim_clip(entry.video, isolated=isolated)
            said += [f"{entry.video}: {trim.remark}"] if trim.remark else []
            entry = replace(entry, kept=trim.kept if len(trim.kept) else None)
        entries.append(entry)
    dictionary = Dictionary.of(shelf.dictionary.name, entries, shelf.dictionary.folder)
    return replace(shelf, dictionary=dictionary, problems=(*shelf.problems, *said))


def read_words(path: Path) -> tuple[str, ...]:
    """The words of a text file, one a line; empty lines and those that begin with # are passed over."""
    words: list[str] = []
    with open_text(path) as file:
        for line in bounded_lines(file, path):
            if (text := line.strip()) and not text.startswith("#"):
                words.append(text)
            if len(words) > _MOST_WORDS or len(text) > MAX_WORD_LENGTH:
                raise InputError(path, "is no list of words", "write one word on each line")
    if not words:
        raise InputError(path, "holds no word", "write one word on each line")
    return tuple(words)


def _clip_word(clip: Path, words: set[Word]) -> Word:
    """The name of the clip, if no word of the dictionary has it already."""
    try:
        word = normalise(clip.stem)
    except ValueError:
        word = normalise("query")
    return word if word not in words else normalise(f"query {word}")


def _unused(name: str, taken: set[str]) -> str:
    number = 1
    unused = name or "query"
    while unused in taken:
        number += 1
        unused = f"{name}-{number}"
    taken.add(unused)
    return unused
