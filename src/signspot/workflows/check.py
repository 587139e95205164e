"""Look a dictionary or a corpus through before relying on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from signspot.domain.corpus import Episode
from signspot.domain.dictionary import Entry
from signspot.domain.tracks import CLIP_LENGTH, FrameShape
from signspot.errors import SignspotError
from signspot.formats.manifests import Problem, read_corpus, read_dictionary
from signspot.media.reader import VideoReader
from signspot.text.subtitles import read_subtitles
from signspot.workflows.spot import Progress

_SMALL = FrameShape(side=16, crop=16)  # the pictures are only counted


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How thoroughly to look."""

    full: bool = True  # decode every video to its end; otherwise only its beginning
    isolated: bool = True


@dataclass(frozen=True, slots=True)
class Check:
    """What was found: how much is usable, and what is wrong with the rest."""

    name: str
    counts: tuple[tuple[str, int], ...]  # (what, how many), in the order to show
    problems: tuple[Problem, ...]  # what cannot be used
    remarks: tuple[Problem, ...] = ()  # what can be used, but should be known


def check_dictionary(path: Path, options: CheckOptions = CheckOptions(), progress: Progress | None = None) -> Check:
    """Open every clip of a dictionary; report words, variants, signers, and every clip that cannot be used."""
    source = read_dictionary(path)
    problems, remarks = list(source.problems), []
    usable: list[Entry] = []
    for done, entry in enumerate(source.dictionary, start=1):
        found = _video_problems(entry.video, options) if entry.video is not None else ([], [])
        problems += found[0]
        remarks += found[1]
        if not found[0]:
            usable.append(entry)
        if progress is not None:
            progress("checking clips", done, len(source.dictionary))
    counts = (
        ("words", len({entry.word for entry in usable})),
        ("variants", len({(entry.word, entry.variant) for entry in usable})),
        ("clips", len(usable)),
        ("signers", len({entry.signer.signer_id for entry in usable if entry.signer is not None})),
    )
    return Check(source.dictionary.name, counts, tuple(problems), tuple(remarks))


def check_corpus(path: Path, options: CheckOptions = CheckOptions(), progress: Progress | None = None) -> Check:
    """Open every video and subtitle file of a corpus; report what can be used and what cannot."""
    source = read_corpus(path)
    problems, remarks = list(source.problems), []
    usable, cues = [], 0
    for done, episode in enumerate(source.episodes, start=1):
        broken, noted = _video_problems(episode.video, options)
        broken_cues, noted_cues, n_cues = _subtitle_problems(episode)
        problems += broken + broken_cues
        remarks += noted + noted_cues
        cues += n_cues
        if not broken:
            usable.append(episode)
        if progress is not None:
            progress("checking videos", done, len(source.episodes))
    counts = (
        ("videos", len(usable)),
        ("with subtitles", sum(1 for episode in usable if episode.subtitles is not None)),
        ("subtitle cues", cues),
        ("annotations", len(source.annotations)),
        ("signers", len({episode.signer for episode in usable if episode.signer})),
    )
    return Check(path.name, counts, tuple(problems), tuple(remarks))


def _video_problems(video: Path, options: CheckOptions) -> tuple[list[Problem], list[Problem]]:
    """What makes a video unusable, and what should be known about it."""
    try:
        with VideoReader(video, shape=_SMALL, isolated=options.isolated) as reader:
            for n_frames, _ in enumerate(reader, start=1):
                if n_frames > CLIP_LENGTH and not options.full:
                    return [], []
            report = reader.report
    except SignspotError as error:
        return [Problem(error.where, error.what, error.fix)], []
    notes = [Problem(str(video), warning, "") for warning in report.warnings]
    if report.partial:
        notes.append(Problem(str(video), report.partial, "the rest cannot be read: get a complete copy"))
    return [], notes


def _subtitle_problems(episode: Episode) -> tuple[list[Problem], list[Problem], int]:
    """What makes a subtitle file unusable, what should be known about it, and how many cues it has."""
    if episode.subtitles is None:
        return [], [], 0
    try:
        subtitles = read_subtitles(episode.subtitles)
    except SignspotError as error:
        return [Problem(error.where, error.what, error.fix)], [], 0
    return [], [Problem(str(episode.subtitles), w, "") for w in subtitles.warnings], len(subtitles.subtitles)
