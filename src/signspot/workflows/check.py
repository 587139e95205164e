"""Look a dictionary or a corpus through before relying on it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from signspot.domain.recordings import Dictionary, Entry, Episode
from signspot.domain.time import Progress
from signspot.domain.tracks import CLIP_LENGTH, FrameShape
from signspot.domain.words import Word
from signspot.embedding.landmarks import landmark_file_of, strange_length
from signspot.embedding.model import Reading
from signspot.errors import InputError, Notice, SignspotError
from signspot.files.atomic import refuse_existing
from signspot.files.intake import NO_SUCH_FILE
from signspot.formats.bobsl import ReleasedCorpus
from signspot.formats.bobsl import import_corpus as import_released
from signspot.formats.bsldict import import_bsldict
from signspot.formats.pose import POSE_SUFFIX, read_pose
from signspot.formats.wlasl import import_msasl, import_wlasl
from signspot.media.reader import VideoReader, claimed_ms
from signspot.stores.corpus import read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.text.subtitles import read_subtitles
from signspot.workflows.dictionary import PROBLEMS, write_problems
from signspot.workflows.spot import late_subtitles

_SMALL = FrameShape(side=16, crop=16)  # the pictures are only counted


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How thoroughly to look."""

    full: bool = True  # decode every video to its end; otherwise only its beginning
    reading: Reading = Reading()


@dataclass(frozen=True, slots=True)
class Check:
    """What was found: how much is usable, and what is wrong with the rest."""

    name: str
    counts: tuple[tuple[str, int], ...]  # (what, how many), in the order to show
    problems: tuple[Notice, ...]  # what cannot be used
    remarks: tuple[Notice, ...] = ()  # what can be used, but should be known
    words: tuple[tuple[Word, int], ...] = ()  # the usable words of a dictionary and how many entries each has
    listed: Path | None = None  # the file that lists all problems, if one was written

    @classmethod
    def of(cls, name: str, counts: tuple[tuple[str, int], ...], found: Iterable[Notice]) -> Check:
        all_found = tuple(found)
        problems = tuple(problem for problem in all_found if problem.severity == "warning")
        return cls(name, counts, problems, tuple(problem for problem in all_found if problem.severity == "note"))


def check_dictionary(path: Path | str, options: CheckOptions = CheckOptions()) -> Check:
    """Open every clip of a dictionary; report words, variants, signers, and every clip that cannot be used."""
    source = read_dictionary(Path(path))
    problems = list(source.problems)
    usable: list[Entry] = []
    for done, entry in enumerate(source.dictionary, start=1):
        found = _video_problems(entry.video, options) if entry.video is not None else []
        problems += found
        if all(problem.severity == "note" for problem in found):
            usable.append(entry)
        options.reading.progress("checking clips", done, len(source.dictionary))
    counts = (
        ("words", len({entry.word for entry in usable})),
        ("variants", len({(entry.word, entry.variant) for entry in usable})),
        ("clips", len(usable)),
        ("with a .pose file", _with_landmarks(entry.video for entry in usable)),
        ("signers", len({entry.signer.signer_id for entry in usable if entry.signer is not None})),
    )
    words = tuple(sorted(Counter(entry.word for entry in usable).items()))
    return dataclasses.replace(Check.of(source.dictionary.name, counts, problems), words=words)


def check_corpus(path: Path | str, options: CheckOptions = CheckOptions()) -> Check:
    """Open every video and subtitle file of a corpus; report what can be used and what cannot."""
    folder = Path(path)
    source = read_corpus(folder)
    problems = list(source.problems)
    usable, cues, subtitled = [], 0, 0
    for done, episode in enumerate(source.episodes, start=1):
        found = _video_problems(episode.video, options)
        of_subtitles, n_cues = _subtitle_problems(episode, options)
        problems += found + of_subtitles
        cues += n_cues
        subtitled += n_cues > 0
        if all(problem.severity == "note" for problem in found):
            usable.append(episode)
        options.reading.progress("checking videos", done, len(source.episodes))
    counts = (
        ("videos", len(usable)), ("with a .pose file", _with_landmarks(episode.video for episode in usable)),
        ("with subtitles", subtitled), ("subtitle cues", cues), ("annotations", len(source.annotations)),
        ("signers", len({episode.signer for episode in usable if episode.signer})),
    )  # fmt: skip
    return Check.of(folder.resolve().name, counts, problems)


def _with_landmarks(videos: Iterable[Path | None]) -> int:
    """How many need no detector: they are landmarks, or have them beside."""
    return sum(video is not None and landmark_file_of(video) is not None for video in videos)


def _video_problems(video: Path, options: CheckOptions) -> list[Notice]:
    """What makes a video, or the landmarks beside it, unusable, and what should be known about them."""
    return _picture_problems(video, options) + _landmark_problems(video, options)


def _landmark_problems(video: Path, options: CheckOptions) -> list[Notice]:
    """Of the landmarks beside a video: a model that sees landmarks takes them for it."""
    file = landmark_file_of(video)
    if file is None or file == video:
        return []
    try:
        strange = strange_length(video, read_pose(file), isolated=options.reading.isolated)
    except SignspotError as error:
        return [error.notice()]
    return [Notice(str(video), remark, severity="note") for remark in strange]


def _picture_problems(video: Path, options: CheckOptions) -> list[Notice]:
    try:
        if video.suffix.lower() == POSE_SUFFIX:
            read_pose(video)
            return []
        with VideoReader(video, shape=_SMALL, isolated=options.reading.isolated) as reader:
            for n_frames, _ in enumerate(reader, start=1):
                if n_frames > CLIP_LENGTH and not options.full:
                    return []
            report = reader.report
    except SignspotError as error:
        return [error.notice()]
    if report.partial:
        fix = "the rest cannot be read: get a complete copy"
        return [Notice(str(video), "; ".join((report.partial, *report.warnings)), fix, severity="note")]
    return [Notice(str(video), warning, severity="note") for warning in report.warnings]


def _subtitle_problems(episode: Episode, options: CheckOptions) -> tuple[list[Notice], int]:
    """What makes a subtitle file unusable or should be known about it, and how many cues it has."""
    if episode.subtitles is None:
        return [Notice(str(episode.video), "has no subtitles", severity="note")], 0
    try:
        read = read_subtitles(episode.subtitles)
    except SignspotError as error:
        return [error.notice()], 0
    length_ms = claimed_ms(episode.video, isolated=options.reading.isolated)
    late = () if length_ms is None else late_subtitles(read.subtitles, length_ms)
    remarks = [Notice(str(episode.subtitles), warning, severity="note") for warning in (*read.warnings, *late)]
    return remarks, len(read.subtitles)


# Turn released data sets into dictionaries and corpora that every command reads.


def import_dictionary(
    source: Path, folder: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> Check:
    """Import BSLDict's metadata, or the lists of WLASL or MS-ASL with the clips in `folder`; say what was found.

    Of WLASL and MS-ASL thousands of clips are gone from the web: they are listed in problems.csv beside the dictionary.
    """
    if source.suffix.lower() in (".pkl", ".pickle"):
        made = import_bsldict(source, folder, overwrite=overwrite, progress=progress)
        return _check(made.dictionary, made.problems, made.missing)
    if source.suffix.lower() != ".json":
        raise InputError(source, "is no data set that can be imported", "give bsldict_v1.pkl, WLASL or MS-ASL JSON")
    listed = folder / PROBLEMS
    refuse_existing(listed, overwrite=overwrite)
    if "msasl" in source.name.lower().replace("-", "").replace("_", ""):
        clips = import_msasl([source], folder, overwrite=overwrite)
    else:
        clips = import_wlasl(source, folder, overwrite=overwrite)
    if clips.problems or listed.exists():  # the list of an earlier import is true no more
        write_problems(clips.problems, listed, overwrite=overwrite)
    missing = sum(problem.what.endswith(NO_SUCH_FILE) for problem in clips.problems)
    found = _check(clips.dictionary, clips.problems, {})
    return replace(found, counts=(*found.counts, ("missing clips", missing)), listed=listed if clips.problems else None)


def import_corpus(files: ReleasedCorpus, folder: Path, *, overwrite: bool = False) -> Check:
    """Import annotations of BSL-1K, BOBSL or the 2022 challenge; videos that are missing are listed in problems.csv."""
    listed = folder / PROBLEMS
    refuse_existing(listed, overwrite=overwrite)
    made = import_released(files, folder, overwrite=overwrite)
    corpus = made.corpus
    if corpus.problems or listed.exists():  # the list of an earlier import is true no more
        write_problems(corpus.problems, listed, overwrite=overwrite)
    counts = (
        ("videos", len(corpus.episodes)),
        ("with subtitles", sum(episode.subtitles is not None for episode in corpus.episodes)),
        ("missing videos", made.missing_videos), ("annotations", len(corpus.annotations)),
        ("without a video", made.left_out), ("words", len({annotation.word for annotation in corpus.annotations})),
    )  # fmt: skip
    found = Check.of(folder.resolve().name, counts, corpus.problems)
    return replace(found, listed=listed if corpus.problems else None)


def _check(dictionary: Dictionary, problems: tuple[Notice, ...], missing: Mapping[str, int]) -> Check:
    counts = [
        ("words", len(dictionary.by_word)),
        ("entries", len(dictionary)),
        ("with clips", sum(entry.video is not None for entry in dictionary)),
    ]
    counts += [(f"without {kind} vectors", count) for kind, count in missing.items()]
    return Check.of(dictionary.name, tuple(counts), problems)
