"""What a cue says, without how it is shown: no tags, codes, speaker names, sounds or invisible characters.

Sung words are kept, the notes around them are not. A description in brackets is dropped if it is written in capitals
or begins or ends with a known sound; a short abbreviation after other words, as in "World Service (BBC)", is kept.
HamNoSys (private use area) and SignWriting pass through untouched. Every pattern is bounded or linear.
"""

from __future__ import annotations

import html
import re

_TAG = re.compile(r"</?[A-Za-z][^<>]*>|<[\d:.]{1,20}>|\{\\[^{}]*\}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_NOTES = re.compile(r"[♩♪♫♬🎵🎶]|(?:^|(?<=\s))#+(?=\s|$)")
_BRACKETS = re.compile(r"\[[^\[\]]{0,150}\]|\([^()]{0,150}\)")
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
    # Joiners make letters of Arabic and Indian scripts; elsewhere they are noise.
    "|(?<![\u0600-\u0dff])[\u200c\u200d]|[\u200c\u200d](?![\u0600-\u0dff])"
)
_CONTROL = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f]")
_TURN = re.compile(r"\s*(?:>{2,}|[-–—](?=\s|[^\W\d])|[-–—]$)\s*")
_LABEL = re.compile(r"([^\W\d_][\w .,'’&/#-]{0,40}?)\s?:(?=\s|$)")
_NOT_A_SPEAKER = frozenset({"note", "warning", "ps", "p.s.", "nb", "n.b.", "ok", "okay", "attention", "danger"})
_ROLES = frozenset(
    {
        "all", "announcer", "anchor", "both", "boy", "caller", "child", "children", "commentator", "crowd", "girl",
        "host", "interpreter", "interviewer", "man", "narrator", "newsreader", "presenter", "reporter", "signer",
        "speaker", "teacher", "tv", "voice", "voiceover", "voice-over", "woman",
    }
)  # fmt: skip
_SOUNDS = frozenset(
    {
        "applause", "applauds", "applaudissements", "applaus", "barking", "beep", "beeping", "bell", "birdsong",
        "buzzing", "cheering", "cheers", "chuckles", "clapping", "coughs", "cries", "crying", "foreign", "gasps",
        "gelächter", "groans", "inaudible", "indistinct", "knocking", "laughing", "laughs", "laughter", "lachen",
        "music", "musik", "musique", "noise", "no audio", "playing", "rires", "ringing", "screaming", "screams",
        "sigh", "sighs", "silence", "singing", "siren", "sobbing", "speaks", "static", "thunder", "unintelligible",
        "whispering", "whispers", "whistle", "whistling",
    }
)  # fmt: skip
_ABBREVIATION = 5  # letters


def clean_lines(text: str) -> tuple[str, ...]:
    """The lines of a cue as plain text, empty ones left out.

    >>> clean_lines("<i>JOHN: It&#39;s me.</i>\\n(DOOR SLAMS)\\n- ♪ La la ♪")
    ("It's me.", 'La la')
    """
    plain = _ENTITY.sub(lambda entity: html.unescape(entity[0]), _TAG.sub("", text))
    plain = _INVISIBLE.sub("", _CONTROL.sub(" ", plain.replace("\r\n", "\n").replace("\r", "\n")))
    plain = _BRACKETS.sub(_kept_brackets, _NOTES.sub(" ", plain))
    lines = (" ".join(_without_speaker(line).split()) for line in plain.split("\n") if line)
    return tuple(line for line in lines if line)


def _kept_brackets(brackets: re.Match[str]) -> str:
    inside = brackets[0][1:-1].strip()
    words = inside.lower().strip(".!… ").split()
    is_sound = not words or words[0] in _SOUNDS or words[-1] in _SOUNDS
    is_capitals = inside.isupper()
    if is_sound or (is_capitals and not _is_abbreviation(brackets, inside)):
        return " " + "\n" * brackets[0].count("\n")
    return brackets[0]


def _is_abbreviation(brackets: re.Match[str], inside: str) -> bool:
    """Whether capitals in round brackets explain the word before them: Natural History Museum (NHM)."""
    before = brackets.string[max(0, brackets.start() - 2) : brackets.start()].strip()
    is_short = len(inside) <= _ABBREVIATION and inside.isalpha()
    return is_short and before.isalnum() and brackets[0].startswith("(")


def _without_speaker(line: str) -> str:
    """Drop a change-of-speaker sign and a speaker's name at the start of a line."""
    turn = _TURN.match(line)
    rest = line[turn.end() :] if turn else line.lstrip()
    if not (label := _LABEL.match(rest)):
        return rest
    name = label[1]
    is_marked = turn is not None and ">" in turn[0]
    is_role = name.lower().rstrip(" #0123456789") in _ROLES
    is_name = name.isupper() and len(name) > 1 and name.lower() not in _NOT_A_SPEAKER
    return rest[label.end() :] if is_marked or is_role or is_name else rest
