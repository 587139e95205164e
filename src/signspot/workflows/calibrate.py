"""Fit how probable a finding is, on videos in which the truth is known.

Every word of the dictionary that is annotated anywhere is searched for in every video. A peak of its curve is right if
it claims an annotation of the word (Paper 4.2: from 20 frames before it to 5 after), and wrong otherwise, but where a
subtitle mentions the word and nobody says that all signs are annotated, an unclaimed peak may be right: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from signspot.domain.recordings import Annotation, Episode, Subtitle
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import Bools, EmbeddingTrack, EntryVectors, FloatArray, Floats, Ints, SimilarityTrack
from signspot.embedding.model import Model
from signspot.embedding.zoo import ModelChoice, kept_at, shipped_calibration
from signspot.errors import InputError, Notice
from signspot.evaluation.calibration import EVIDENCE, Calibration, PresenceFit, Reliability, fit_presence, reliability
from signspot.evaluation.localisation import claimed, is_near
from signspot.figures.evaluation import AlarmFigure, ReliabilityFigure, plot_calibration
from signspot.files.atomic import make_folder, refuse_existing
from signspot.spotting.peaks import limited_to
from signspot.spotting.presence import LOWEST, Cohort, Rivals, candidates_of, evidence_of, standing
from signspot.spotting.search import Mentions, Query, around, compare, windows_inside
from signspot.stores.calibration import write_calibration
from signspot.stores.corpus import CorpusSource, read_corpus
from signspot.stores.dictionary import read_dictionary
from signspot.text.subtitles import read_subtitles
from signspot.workflows.spot import SpotOptions, mentions_of, prepare

Method = Literal["auto", "logistic", "isotonic"]

SHOWN = 0.05  # probability of a finding that anybody looks at: below lie thousands of peaks that nobody sees
RATES = (0.1, 0.3, 1.0, 3.0, 10.0)  # false alarms in an hour for each word that people ask for; rising
_LARGEST_COHORT = 512  # clips
_BELOW = 0.05  # of a cosine: as much less alike may a sign be than any that was found
_ENOUGH_TO_POOL = 1000  # right candidates: with fewer, pools are small and isotonic fits follow chance
_MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateRequest:
    """What a model is calibrated on."""

    model: ModelChoice = ModelChoice()
    corpus: Path
    dictionary: Path
    split: str = ""  # "": all videos
    complete: bool = False  # every sign of the annotated words is annotated
    method: Method = "auto"  # isotonic where at least 1,000 candidates are right, else logistic
    options: SpotOptions = SpotOptions()
    out: Path | None = None  # None: where `spot` finds it
    plot: Path | None = None  # a picture of how far promises hold
    overwrite: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Candidates of known truth, one row each, and how long was searched for them."""

    evidence: Floats  # (n, 6): see evaluation.calibration.EVIDENCE
    right: Bools  # (n,)
    group: Ints  # (n,) the signer, or the video where signers are not known
    word_hours: Floats  # (n_groups,)

    @classmethod
    def joined(cls, parts: Sequence[Examples]) -> Examples:
        if not parts:
            raise InputError("calibration", "nothing was searched", "check that the words are in the subtitles")
        names = ("evidence", "right", "group")
        evidence, right, group = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        return cls(evidence, right, group, np.sum([part.word_hours for part in parts], axis=0))

    def of_groups(self, chosen: Bools) -> Examples:
        rows = chosen[self.group]
        return Examples(self.evidence[rows], self.right[rows], self.group[rows], np.where(chosen, self.word_hours, 0))

    def lowest(self) -> float:
        """Below the cosine of every sign that was found: what lies there need not be judged."""
        return max(LOWEST, float(self.evidence[self.right, 0].min(initial=1.0)) - _BELOW)

    def fit(self, method: Method) -> PresenceFit:
        hours = float(self.word_hours.sum())
        is_isotonic = method == "isotonic" or (method == "auto" and self.right.sum() >= _ENOUGH_TO_POOL)
        return fit_presence(self.evidence, self.right, hours, isotonic=is_isotonic)


@dataclass(frozen=True, slots=True, eq=False)
class _HeldOut:
    """What fits promise of signers or videos that they have not seen, and what came true."""

    probability: Floats  # (n,) of each example by a fit on all other groups
    right: Bools  # (n,)
    asked: Floats  # (k,) false alarms in an hour for each word
    counted: Floats  # (k,) where so many were asked for

    @classmethod
    def by(cls, fit: PresenceFit, examples: Examples) -> _HeldOut:
        """What a fit promises that saw none of the examples."""
        probability, rates = fit.probability(examples.evidence), np.array(RATES)
        rates = rates[rates >= fit.lowest_rate]
        wrong, hours = probability[~examples.right], examples.word_hours.sum()
        counted = [float((wrong >= fit.least_presence(rate)).sum() / hours) for rate in rates.tolist()]
        return cls(probability, examples.right, rates, np.array(counted))

    @property
    def log_loss(self) -> float:
        """The mean surprise about what was right and what was not, in nats: lower is better."""
        sure = np.clip(np.where(self.right, self.probability, 1 - self.probability), 1e-9, 1)
        return float(-np.log(sure).mean())

    @property
    def seen(self) -> Reliability | None:
        """Promise and truth of the findings that people get to see; None: there is none."""
        shown = self.probability >= SHOWN
        return reliability(self.probability[shown], self.right[shown]) if shown.any() else None

    @property
    def expected_error(self) -> float | None:
        return None if self.seen is None else self.seen.expected_error

    def as_json(self) -> list[dict[str, float]]:
        pairs = zip(self.asked.tolist(), self.counted.tolist(), strict=True)
        return [{"asked": asked, "counted": counted} for asked, counted in pairs]


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationReport:
    """A calibration, and how far its promises are off for signers or videos that it was not fitted on."""

    calibration: Calibration
    n_right: int
    n_wrong: int
    n_groups: int
    held_out: _HeldOut | None  # findings without subtitles; None: there is nothing that could be held out
    held_out_read: _HeldOut | None  # findings near a subtitle; None: that is not calibrated, or cannot be held out
    shipped: _HeldOut | None = None  # what the calibration that comes with the model promises; None: it has none
    path: Path | None = None  # where it was written

    @property
    def expected_error(self) -> float | None:
        return None if self.held_out is None else self.held_out.expected_error

    @property
    def expected_error_read(self) -> float | None:
        return None if self.held_out_read is None else self.held_out_read.expected_error

    def as_json(self) -> dict[str, object]:
        calibration = self.calibration
        return {
            "calibration": calibration.name,
            "model": calibration.model,
            "fingerprint": calibration.fingerprint,
            "path": None if self.path is None else str(self.path),
            "right": self.n_right,
            "wrong": self.n_wrong,
            "groups": self.n_groups,
            "expected_error": self.expected_error,
            "expected_error_read": self.expected_error_read,
            "false_alarms_held_out": None if self.held_out is None else self.held_out.as_json(),
            "log_loss": None if self.held_out is None else self.held_out.log_loss,
            "shipped": None
            if self.shipped is None
            else {
                "expected_error": self.shipped.expected_error,
                "log_loss": self.shipped.log_loss,
                "false_alarms": self.shipped.as_json(),
            },
            "weights": dict(zip(EVIDENCE, calibration.plain.logistic.weights, strict=True)),
        }


@dataclass(frozen=True, slots=True, eq=False)
class LabelledVideo:
    """A video whose vectors, subtitles and annotations are known."""

    track: EmbeddingTrack
    annotations: tuple[Annotation, ...]
    subtitles: tuple[Subtitle, ...] | None
    group: int


def calibrate_file(request: CalibrateRequest, environment: Mapping[str, str]) -> CalibrationReport:
    """Calibrate a model and keep the result where `spot` and `annotate` find it, or in the file that was named."""
    recordings = [
        *(episode.video for episode in read_corpus(request.corpus).episodes),
        *(entry.video for entry in read_dictionary(request.dictionary).dictionary),
    ]
    opened = request.model.open(recordings, request.options.reading)
    request = replace(request, options=replace(request.options, reading=opened.reading))
    path = request.out
    if path is None:
        path = kept_at(opened.model, environment)
        make_folder(path.parent)
    for written in filter(None, (path, request.plot)):
        refuse_existing(written, overwrite=request.overwrite)
    report = replace(_calibrate(request, opened.model), path=path)
    write_calibration(report.calibration, path, overwrite=request.overwrite)
    if request.plot is not None:
        _plot_held_out(report, request.plot, overwrite=request.overwrite)
    return report


def _calibrate(request: CalibrateRequest, model: Model) -> CalibrationReport:
    source = read_corpus(request.corpus)
    dictionary = read_dictionary(request.dictionary).dictionary
    episodes = tuple(one for one in source.episodes if not request.split or one.split == request.split)
    if not episodes:
        raise InputError(request.corpus, f"has no video of the split {request.split!r}", "choose another --split")
    ids = {episode.video_id for episode in episodes}
    annotated = {one.word for one in source.annotations if one.video_id in ids}
    words = sorted(annotated & set(dictionary.vocabulary))
    if not words:
        raise InputError(request.corpus, "no word of the dictionary is annotated in it", "add annotations.csv")
    query = prepare(words, dictionary, model, request.options)
    signers = [one.signer or one.video_id for one in episodes]
    groups = [list(dict.fromkeys(signers)).index(signer) for signer in signers]
    videos = [_labelled(one, source, model, request, group) for one, group in zip(episodes, groups, strict=True)]
    return _fitted(videos, query, model, request)


def _fitted(
    videos: Sequence[LabelledVideo], query: Query, model: Model, request: CalibrateRequest
) -> CalibrationReport:
    """Fit on videos whose vectors are known."""
    cohort = Cohort(model.word_vectors, model.words) if model.words else cohort_of(query.words)
    plain = searched_examples(videos, query, cohort, request, is_read=False)
    has_subtitles = request.complete and all(video.subtitles is not None for video in videos)
    read = searched_examples(videos, query, cohort, request, is_read=True) if has_subtitles else None
    calibration = Calibration(
        model=model.name,
        fingerprint=model.fingerprint,
        plain=plain.fit(request.method),
        read=None if read is None else read.fit(request.method),
        cohort=cohort.vectors,
        cohort_words=cohort.words,
        fitted_on=f"{len(videos)} videos, {len(query.words)} words, {int(plain.right.sum())} signs found",
        lowest=plain.lowest(),
    )
    shipped = shipped_calibration(model)
    return CalibrationReport(
        calibration=calibration,
        shipped=None if shipped is None else _HeldOut.by(shipped.plain, plain),
        n_right=int(plain.right.sum()),
        n_wrong=int((~plain.right).sum()),
        n_groups=len(plain.word_hours),
        held_out=_held_out(plain, request.method),
        held_out_read=None if read is None else _held_out(read, request.method),
    )


def searched_examples(
    videos: Sequence[LabelledVideo], query: Query, cohort: Cohort, request: CalibrateRequest, *, is_read: bool
) -> Examples:
    """Search the videos for every word, everywhere or only around the subtitles that mention it."""
    search = _ExampleSearch(query, cohort, request, 1 + max(video.group for video in videos))
    parts = (search.mentioned(video) if is_read else search.whole(video) for video in videos)
    return Examples.joined([examples for part in parts for examples in part])


def _held_out(examples: Examples, method: Method) -> _HeldOut | None:
    """Judge each group by a fit on all others; None where that cannot be done."""
    groups = np.unique(examples.group)
    probability, alarms, countable = np.empty(len(examples.right)), np.zeros(len(RATES)), np.array(RATES)
    for group in groups:
        others = np.arange(len(examples.word_hours)) != group
        try:
            fit = examples.of_groups(others).fit(method)
        except (InputError, ValueError):  # too little is left without it
            return None
        rows = examples.group == group
        probability[rows] = fit.probability(examples.evidence[rows])
        wrong = probability[rows & ~examples.right]
        alarms += [int((wrong >= fit.least_presence(rate)).sum()) for rate in RATES]
        countable = countable[countable >= fit.lowest_rate]
    if len(groups) < 2:
        return None
    counted = (alarms / examples.word_hours.sum())[len(RATES) - len(countable) :]
    return _HeldOut(probability, examples.right, countable, counted)


def _plot_held_out(report: CalibrationReport, path: Path, *, overwrite: bool = False) -> None:
    """Draw promised and observed probabilities, and false alarms asked for and counted, of what was held out."""
    parts = {"whole videos": report.held_out, "near subtitles": report.held_out_read}
    judged = {name: (one, one.seen) for name, one in parts.items() if one is not None}
    if not judged:
        fix = "annotate the videos of more signers, or leave --plot away"
        raise InputError(path, "nothing can be held out, so there is nothing to draw", fix)
    lines = {
        name: ReliabilityFigure(seen.promised[full], seen.observed[full], seen.counts[full], seen.expected_error)
        for name, (_, seen) in judged.items()
        if seen is not None and (full := seen.counts > 0).any()
    }
    alarms = {name: AlarmFigure(one.asked, one.counted) for name, (one, _) in judged.items() if len(one.asked)}
    plot_calibration(lines, alarms, path, overwrite=overwrite)


def cohort_of(words: Sequence[EntryVectors]) -> Cohort:
    """Clips of all words, at most 512, evenly drawn."""
    vectors = np.concatenate([entries.vectors for entries in words])
    names = [entries.word for entries in words for _ in entries.entries]
    kept = np.unique(np.linspace(0, len(names) - 1, min(len(names), _LARGEST_COHORT)).astype(np.int64))
    lengths = np.linalg.norm(vectors[kept], axis=1, keepdims=True)
    unit: FloatArray = (vectors[kept] / np.maximum(lengths, 1e-9)).astype(np.float32)
    return Cohort(unit, tuple(names[place] for place in kept.tolist()))


@dataclass(frozen=True, slots=True, eq=False)
class _ExampleSearch:
    """Search of labelled videos for examples, as `spot` searches: a moment is given to one word."""

    query: Query
    cohort: Cohort
    request: CalibrateRequest
    n_groups: int

    def whole(self, video: LabelledVideo) -> Iterator[Examples]:
        mentions = self._mentions(video)
        compared = list(compare(video.track, self.query))
        known = [~self._near(one, mentions) | self.request.complete for one in compared]
        yield from self._examples(compared, self.query.words, video, known, n_words=len(compared))

    def mentioned(self, video: LabelledVideo) -> Iterator[Examples]:
        mentions = self._mentions(video)
        mentioned = tuple(entries for entries in self.query.words if entries.word in mentions)
        compared = list(compare(video.track, replace(self.query, words=mentioned)))
        limited = [limited_to(one, self._near(one, mentions)) for one in compared]
        known = [np.ones(len(one.grid), dtype=bool) for one in limited]
        yield from self._examples(limited, mentioned, video, known, n_words=1)

    def _near(self, compared: SimilarityTrack, mentions: Mentions) -> Bools:
        return windows_inside(compared, around(mentions.get(compared.word, ()), self.request.options.padding_ms))

    def _examples(
        self,
        compared: Sequence[SimilarityTrack],
        words: Sequence[EntryVectors],
        video: LabelledVideo,
        known: Sequence[Bools],
        *,
        n_words: int,
    ) -> Iterator[Examples]:
        """The candidates of each word that keep their moment, in windows where it is known what is signed."""
        rivals = Rivals.of(video.track, words, self.cohort)
        found = standing([candidates_of(one) for one in compared], words)
        for candidates, entries, is_known in zip(found, words, known, strict=True):
            labels = np.array([one.frame for one in video.annotations if one.word == entries.word], np.int64)
            grid = candidates.similarity.grid
            centres = np.minimum(grid.starts()[candidates.windows] + grid.length // 2, grid.n_frames - 1)
            right = np.zeros(len(centres), dtype=bool)
            near = is_near(centres[:, None], labels).any(axis=1)  # the rest can claim nothing, and is most
            right[near] = claimed(centres[near], candidates.cosine[near].astype(np.float32), labels)
            kept = right | is_known[candidates.windows]
            n_windows = int((np.isfinite(candidates.similarity.best) & is_known).sum())
            hours = np.zeros(self.n_groups)
            hours[video.group] = n_windows * grid.stride * FRAME_MS / _MS_PER_HOUR
            evidence = evidence_of(candidates, entries, rivals, n_words)
            group = np.full(int(kept.sum()), video.group, np.int64)
            yield Examples(evidence[kept], right[kept], group, hours)

    def _mentions(self, video: LabelledVideo) -> Mentions:
        return mentions_of(video.subtitles or (), self.query.dictionary.vocabulary, self.request.options)


def _labelled(
    episode: Episode, source: CorpusSource, model: Model, request: CalibrateRequest, group: int
) -> LabelledVideo:
    """The vectors of a video, and its annotations on its frames."""
    track = model.track(episode, request.options.reading).track
    timed = (one for one in source.annotations if one.video_id == episode.video_id)
    annotations = tuple(one.placed(track.axis) for one in timed)
    if episode.subtitles is None:
        return LabelledVideo(track, annotations, None, group)
    read = read_subtitles(episode.subtitles)
    for line in read.in_short:
        request.options.reading.notify(Notice("", line))
    return LabelledVideo(track, annotations, read.subtitles, group)
