"""Words that may name the same sign: English synonyms from WordNet, sign synonyms from the dictionary itself.

Paper App. B.4: two words may be signed alike because they mean the same (happy, content), or because the dictionary
says that their signs belong together. WordNet's files (data.noun, index.noun, ...) come from a folder that the user
names, such as /usr/share/wordnet of Debian's wordnet-base; nothing is fetched.
"""

from __future__ import annotations

import io
import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import IO, Any

from signspot.domain.recordings import Dictionary, Synonyms, Vocabulary, Word
from signspot.errors import InputError, MissingExtra

_NEEDED = tuple(f"{kind}.{part}" for kind in ("data", "index") for part in ("noun", "verb", "adj", "adv"))
_N_LEXNAMES = 45  # lexicographer files, which number their synsets from 0 to 44
_GET = "name the folder of WordNet's files, such as /usr/share/wordnet of Debian's wordnet-base"

_OWN = "let the files and their folder belong to you, or to root, and be writable by nobody else"


def english_synonyms(vocabulary: Vocabulary, folder: Path) -> Synonyms:
    """Pairs of vocabulary words that share a meaning (a synset) in the WordNet of `folder`; needs `wordnet`."""
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise InputError(folder, f"does not hold WordNet: there is no file {name}", _GET)
    return _pairs(_meanings_of(vocabulary, folder))


def shared_sign_synonyms(dictionary: Dictionary) -> Synonyms:
    """Pairs of words under which the dictionary files one and the same sign: the same sign id, or the same clip."""
    signs: dict[Hashable, list[Word]] = defaultdict(list)
    for entry in dictionary:
        if entry.type_id:
            signs["id", entry.language, entry.type_id].append(entry.word)
        if entry.video is not None:
            signs["clip", entry.video].append(entry.word)
    return _pairs(signs)


def _pairs(groups: Mapping[Hashable, Iterable[Word]]) -> Synonyms:
    return Synonyms.of(pair for words in groups.values() for pair in combinations(sorted(set(words)), 2))


# What the reader lets through when its files are damaged; its own WordNetError derives from Exception alone.
_FAULTS = (ValueError, LookupError, AssertionError, StopIteration, RuntimeError, TypeError, OSError, Warning)


def _meanings_of(vocabulary: Vocabulary, folder: Path) -> dict[Hashable, list[Word]]:
    """The words of every synset that lists them; a base form of a word is another word."""
    try:
        from nltk import data  # type: ignore[import-untyped, import-not-found, unused-ignore]
        from nltk.corpus.reader import wordnet as module  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingExtra.named("English synonyms", "wordnet") from error
    meanings: dict[Hashable, list[Word]] = defaultdict(list)
    with ExitStack() as opened, warnings.catch_warnings():
        data.path.append(str(folder))  # NLTK reads only from folders on its path: for the moment, this one is
        opened.callback(data.path.remove, str(folder))
        try:
            warnings.simplefilter("ignore")  # that there is English only
            reader = _reader_class(module, folder, opened)(str(folder), None)
            warnings.simplefilter("error")  # the reader only warns of an index that leads nowhere
            for word in vocabulary:
                for lemma in (lemma for form in {word, word.replace("-", "_")} for lemma in reader.lemmas(form)):
                    meanings[lemma.synset().pos(), lemma.synset().offset()].append(word)
        except PermissionError as error:  # also for files that somebody else may change: NLTK does not trust them
            raise InputError(folder, f"WordNet cannot be read from there ({_brief(error)})", _OWN) from error
        except (*_FAULTS, module.WordNetError) as error:
            raise InputError(folder, f"WordNet's files are damaged ({_brief(error)})", _GET) from error
    return meanings


def _brief(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _reader_class(module: Any, folder: Path, opened: ExitStack) -> Any:
    """A reader that does without the files that packages of WordNet leave out, and whose files `opened` closes."""

    class Reader(module.WordNetCorpusReader):  # type: ignore[misc]
        def open(self, file: str) -> IO[str]:
            if not (folder / file).is_file() and file.endswith(".exc"):
                return io.StringIO()  # irregular forms: words are looked up as they stand
            if not (folder / file).is_file() and file == "lexnames":
                return io.StringIO("".join(f"{number:02} {number} 0\n" for number in range(_N_LEXNAMES)))
            stream: IO[str] = super().open(file)
            opened.callback(stream.close)
            return stream

        def map_wn(self, version: str = "") -> None:
            """No table to older versions: it would ask for a download."""

    return Reader
