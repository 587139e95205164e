"""Everything signspot raises on purpose, as one tree.

    SignspotError                   carries the exit code of the command line
      + InputError           (2)    something the user gave: a file, a word, an option
      |   + VideoError              a video that cannot be read, or only in part
      |   + SubtitleError           a subtitle file that cannot be read
      |   + FormatError             an annotation, table or manifest file that cannot be read or written as asked
      |   + DictionaryError         a dictionary folder without usable entries
      |   + UnknownWord             a word the dictionary does not hold
      |   + OutputExists            an output that would overwrite something
      + EnvironmentProblem   (3)    something the machine lacks: a package, a codec, disk space
          + MissingExtra            an optional package is not installed

Any other exception that reaches the user is a bug (exit code 4).
What does not stop the work is a Notice. Every message is one line: which file, what is wrong, what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


def one_line(text: str) -> str:
    """Make `text` safe to print: control characters (terminal escapes, line breaks, bidi overrides) become visible."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def readable_size(n_bytes: int) -> str:
    """A number of bytes as people say it.

    >>> [readable_size(n) for n in (1, 712, 40_123, 20_000_000, 2_147_483_648)]
    ['1 byte', '712 bytes', '40.1 kB', '20 MB', '2.1 GB']
    """
    if n_bytes < 1000:
        return f"{n_bytes} byte{'' if n_bytes == 1 else 's'}"
    units = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
    # 999,999 bytes are 1 MB, not 1000 kB
    unit, size = next((item for item in units.items() if round(n_bytes / item[1], 1) < 1000), ("GB", 1e9))
    return f"{n_bytes / size:.1f}".removesuffix(".0") + f" {unit}"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should know, and can do about it."""

    where: str
    what: str
    fix: str = ""
    severity: Literal["note", "warning"] = "warning"  # note: nothing is missing from the result

    def __str__(self) -> str:
        return one_line(": ".join(part for part in (self.where, self.what, self.fix) if part))


Notify = Callable[[Notice], None]


def unheard(notice: Notice) -> None:
    """Where nobody wants to know."""


def notify_left_out(problems: Iterable[Notice], notify: Notify, of: str = "left out") -> None:
    """Say what is missing from the result; notes are for the commands that check."""
    for problem in problems:
        if problem.severity == "warning":
            notify(Notice(of, str(problem)))


class SignspotError(Exception):
    """The root of everything signspot raises on purpose."""

    exit_code = 4

    def __init__(self, where: str | Path, what: str, fix: str = "") -> None:
        self.where, self.what, self.fix = str(where), what, fix
        super().__init__(str(self.notice()))

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross the border of the decoding process, so they must survive it whole.
        return (type(self), (self.where, self.what, self.fix))

    def notice(self) -> Notice:
        """The same as a notice, where the work goes on without what failed."""
        return Notice(self.where, self.what, self.fix)


class InputError(SignspotError):
    """Something the user gave cannot be used."""

    exit_code = 2


class VideoError(InputError):
    """A video cannot be read."""


class SubtitleError(InputError):
    """A subtitle file cannot be read."""


class FormatError(InputError):
    """An annotation, table or manifest file cannot be read or written as asked."""


class DictionaryError(InputError):
    """A dictionary has no usable entries."""


class UnknownWord(InputError):
    """The dictionary holds no entry for a word."""

    @classmethod
    def named(
        cls, words: Mapping[str, tuple[str, ...]], lexicon: str = "", *, has_dictionary: bool = True
    ) -> UnknownWord:
        """Say which words are missing; for each, which others that the dictionary or the lexicon has look like it."""
        near = dict.fromkeys(alike for some in words.values() for alike in some)
        missing = "this word" if len(words) == 1 else "these words"
        what, lists = f"the dictionary has no entry for {missing}", "dictionary check DIR --words"
        if lexicon:
            what = f"neither the dictionary nor {lexicon} has {missing}"
            what = what if has_dictionary else f"{lexicon} has not learned {missing}, and there is no dictionary"
            lists = f"models show {lexicon} --words"
        return cls(
            ", ".join(words), what, f"did you mean {', '.join(near)}?" if near else f"`signspot {lists}` lists them"
        )


class OutputExists(InputError):
    """An output would overwrite a file."""


class EnvironmentProblem(SignspotError):
    """The machine lacks something: a package, a codec, disk space."""

    exit_code = 3


def trouble_of(video: Path, error: SignspotError | ValueError) -> SignspotError:
    """What one video of many failed with, so that the others go on; raised where it is everybody's, as a full disk is.

    A ValueError is what our own types say of times and numbers that make no sense.
    """
    if isinstance(error, InputError):
        return error
    if isinstance(error, ValueError):
        return VideoError(video, f"what was found in it makes no sense ({error})", "leave it out, and report this")
    raise error


class MissingExtra(EnvironmentProblem):
    """An optional package is not installed."""

    @classmethod
    def named(cls, feature: str, extra: str) -> MissingExtra:
        """Say which extra brings `feature`."""
        return cls(feature, f"needs the optional extra {extra!r}", f"pip install 'signspot[{extra}]'")
