"""`signspot spot`, `annotate`, `export` and `why`: find words in videos, write what was found, say what it rests on.

`spot` looks for words, `annotate` for the signs of the words in the subtitles, consistently; `export` writes results in
another format later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from signspot.cli import options as shared
from signspot.cli.console import Bars, print_json, print_table, progress_bars, warn
from signspot.cli.options import (
    JSON,
    OVERWRITE,
    SearchOptions,
    WindowOptions,
    counted,
    give_json,
    grouped,
    refuse_json,
    say,
    warn_all,
)
from signspot.domain.results import Spotting, VideoAnswer, WordAnswer, told_bands
from signspot.domain.time import clock
from signspot.embedding.model import Views
from signspot.errors import InputError, one_line
from signspot.text.subtitles import SubtitleOptions
from signspot.workflows.outputs import ExportRequest, Output, Outputs, Why, WhyRequest
from signspot.workflows.outputs import export as export_results
from signspot.workflows.outputs import why as explain
from signspot.workflows.spot import SpotOptions, read_words
from signspot.workflows.spot_files import Outcome, SpotRequest, spot_files

if TYPE_CHECKING:
    from signspot.workflows.annotate import Annotated, LikelyPlace


_DETAILED = 5  # words of which each is said how close it came


def _warn_of(answer: VideoAnswer) -> None:
    messages = [message for message in (answer.partial, *answer.warnings) if message]
    if messages:
        warn(f"{answer.video_id}: {'; '.join(messages)}")


def _print_answer(answer: VideoAnswer) -> None:
    """The findings in order of time, then, in one line, the words that were not found."""
    console = Console(highlight=False)
    found = list(answer)
    if found:
        rows = []
        for one in found:
            start, stop = clock(one.span_ms.start, 3), clock(one.span_ms.stop, 3)
            sure = "?" if one.presence is None else f"{one.presence.band.value} {one.presence.probability:.0%}"
            rows.append((start, stop, one.word, one.variant, f"{one.cosine:.3f}", sure, one.entry_id))
        print_table(("from", "to", "word", "variant", "cosine", "presence", "dictionary entry"), rows)
    if missing := [word for word in answer.words if not word.spottings]:
        said = f"{missing[0].word}: {_absence(missing[0], answer)}" if len(missing) == 1 else _absences(missing, answer)
        console.print(Text(one_line(said)), soft_wrap=True)  # one line, however many words
    if said := _closing_line(answer):
        console.print(Text(said, style="dim"), soft_wrap=True)


def _closing_line(answer: VideoAnswer) -> str:
    """What counted as found, and how many false alarms that gave where the truth was known."""
    if answer.least_presence is not None:
        alarms = (
            "" if answer.false_alarms is None else f" ({_rate(answer.false_alarms)} per word and hour, as calibrated)"
        )
        return f"found: presence {answer.least_presence:.0%} or more{alarms}"
    if any(one.presence is not None for one in answer):
        return f"found: cosine {answer.threshold:.3f} or more"
    if any(word.spottings for word in answer.words):
        return f"found: cosine {answer.threshold:.3f} or more; presence: unknown without `signspot calibrate`"
    return ""


def _rate(alarms: float) -> str:
    return f"about {alarms:.2g} false alarms"


def _absences(missing: Sequence[WordAnswer], answer: VideoAnswer) -> str:
    """What several words have in common that were not found; of a few, also how close each came."""
    unsearched = [word.word for word in missing if word.searched_ms == ()]
    compared = [word for word in missing if word.searched_ms != () and word.best_cosine is not None]
    others = [word.word for word in missing if word.searched_ms != () and word.best_cosine is None]
    named = [f"{word.word}{_closeness(word) if len(missing) <= _DETAILED else ''}" for word in compared]
    groups = (
        ("not found", named),
        ("not found, since no window could be compared", others),
        ("not searched, since no subtitle mentions them", unsearched),
    )
    said = [f"{what}: {', '.join(words)}" for what, words in groups if words]
    if any(word.presence is None for word in compared):
        said.insert(1, f"needed {answer.threshold:.3f}, uncalibrated")
    return "; ".join(said)


def _closeness(word: WordAnswer) -> str:
    if word.presence is None:
        return f" (closest {word.best_cosine:.3f})"
    return f" (absent: {1 - word.presence.probability:.0%}, closest {word.best_cosine:.3f})"


def _absence(word: WordAnswer, answer: VideoAnswer) -> str:
    if word.searched_ms == ():
        return "not searched: no subtitle mentions it"
    if word.best_cosine is None:
        return "not found: no window could be compared"
    if word.presence is not None:
        return f"absent with a probability of {1 - word.presence.probability:.0%} (closest {word.best_cosine:.3f})"
    return f"not found (closest {word.best_cosine:.3f}, needed {answer.threshold:.3f}; uncalibrated)"


# The options of the commands that search videos for words and write what they find: `spot` and `annotate`.


@dataclass(frozen=True, slots=True)
class _SubtitleTimes:
    """Where in a video its subtitles belong."""

    shift: float = typer.Option(0.0, "--shift", metavar="SECONDS", help="Move the subtitles later (or earlier: -2.5).")
    drift: float = typer.Option(1.0, "--drift", metavar="FACTOR", help="Stretch subtitle times, such as 1.001.")
    padding: float = typer.Option(2.0, "--padding", metavar="SECONDS", help="Search this far around a subtitle, too.")
    encoding: str = typer.Option("", "--encoding", help="Of the subtitles, such as windows-1252, if not recognised.")

    @property
    def reading(self) -> SubtitleOptions:
        return SubtitleOptions(shift_ms=round(self.shift * 1000), scale=self.drift, encoding=self.encoding)

    def on(self, options: SpotOptions) -> SpotOptions:
        return replace(options, padding_ms=round(self.padding * 1000))


@dataclass(frozen=True, slots=True)
class _MatchOptions:
    """How thoroughly `spot` looks, and what counts as the same sign."""

    mirror: bool = typer.Option(False, "--mirror", help="Also signs of the other hand: dictionary clips mirrored.")
    rates: str = typer.Option("", "--rates", metavar="R,R", help="Also clips at other speeds, e.g. 0.7,1.4.")
    whole_windows: bool = typer.Option(False, "--whole-windows", help="Findings last 16 frames, not as the sign does.")
    quick: bool = typer.Option(
        False,
        "--quick",
        help="An answer sooner, on long videos: compare every fourth window, then all around the best 12 places of "
        "each dictionary clip. What is found is exact; some may be missed. Keeps nothing; uses what --store holds.",
    )

    def on(self, options: SpotOptions) -> SpotOptions:
        views = Views(mirror=self.mirror, rates=_numbers(self.rates))
        return replace(options, views=views, refine=not self.whole_windows, quick=self.quick)


def _file(kind: Output, text: str = "") -> Any:
    """The option that names the file of an output, with the help of the table of formats unless there is another."""
    metavar = f"F.{kind.value.ending.rpartition('.')[2]}"
    return typer.Option(None, f"--{kind.name.lower()}", metavar=metavar, help=text or kind.value.help)


class _OutputFiles:
    """Where results go: every field is a kind of output."""

    __slots__ = ()

    def asked_for(self, json_file: Path | None = None) -> dict[Output, Path]:
        named = {Output[option.name.upper()]: getattr(self, option.name) for option in fields(self)}  # type: ignore[arg-type]
        given = {} if json_file is None else {Output.JSON: json_file}
        return {kind: path for kind, path in (given | named).items() if path is not None}


@dataclass(frozen=True, slots=True)
class _SpotFiles(_OutputFiles):
    """What `spot` can write."""

    csv: Path | None = _file(Output.CSV)
    jsonl: Path | None = _file(Output.JSONL)
    parquet: Path | None = _file(Output.PARQUET)
    vtt: Path | None = _file(Output.VTT)
    srt: Path | None = _file(Output.SRT)
    eaf: Path | None = _file(Output.EAF)
    via: Path | None = _file(Output.VIA)
    plot: Path | None = _file(Output.PLOT)
    video: Path | None = _file(Output.VIDEO)


@dataclass(frozen=True, slots=True)
class _AnnotateFiles(_SpotFiles):
    """What `annotate` can write: the same, and what others publish of whole corpora."""

    challenge: Path | None = _file(Output.CHALLENGE)
    bobsl: Path | None = _file(Output.BOBSL)
    lag: Path | None = _file(Output.LAG)


@dataclass(frozen=True, slots=True)
class _ExportFiles(_OutputFiles):
    """What `export` can write."""

    csv: Path | None = _file(Output.CSV)
    json: Path | None = _file(Output.JSON)
    jsonl: Path | None = _file(Output.JSONL)
    parquet: Path | None = _file(Output.PARQUET)
    eaf: Path | None = _file(Output.EAF, "ELAN file.")
    vtt: Path | None = _file(Output.VTT)
    srt: Path | None = _file(Output.SRT)
    via: Path | None = _file(Output.VIA)
    challenge: Path | None = _file(Output.CHALLENGE, "JSON of the spotting challenge.")


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError("--rates", f"{text!r} is not a list of numbers", "write speeds such as 0.7,1.4") from error


@grouped
def spot(
    source: Path = typer.Argument(metavar="VIDEO", help="A video, a folder or list of videos, or an ELAN file."),
    words: list[str] | None = typer.Argument(None, metavar="WORD", help="The words to look for."),
    words_file: Path | None = typer.Option(None, "--words", metavar="F.txt", help="More words, one a line."),
    query: list[Path] | None = typer.Option(
        None, "--query", "-q", metavar="CLIP", help="A clip of a sign to look for; give it again for more of that sign."
    ),
    dictionary: Path | None = shared.DICTIONARY_OR_LEARNED,
    no_lexicon: bool = shared.NO_LEXICON,
    subtitles: Path | None = typer.Option(
        None, "--subtitles", "-s", help="Search a word only where these mention it (without words: all they mention)."
    ),
    vocabulary: str | None = shared.VOCABULARY,
    json_target: Path | None = shared.JSON,
    overwrite: bool = shared.OVERWRITE,
    failures: Path = shared.FAILURES,
    jobs: int = shared.JOBS,
    *,
    times: _SubtitleTimes,
    search: SearchOptions,
    windows: WindowOptions,
    match: _MatchOptions,
    files: _SpotFiles,
) -> None:
    """Say whether and where each WORD is signed, and which dictionary entry it matches best.

    With a folder of videos, a table holds all of them, and every other output is a folder that gets one file per video.
    """
    to_screen = json_target == shared.STANDARD_OUTPUT
    with progress_bars() as progress:
        request = SpotRequest(
            source=source, words=(*(words or ()), *(read_words(words_file) if words_file is not None else ())),
            queries=tuple(query or ()), calibration=search.calibration, dictionary=dictionary, model=search.choice,
            subtitles=subtitles, subtitle_options=times.reading, vocabulary=vocabulary,
            options=match.on(times.on(search.options(progress, windows, lexicon=not no_lexicon))),
            outputs=Outputs(files.asked_for(None if to_screen else json_target), overwrite), failures=failures,
            jobs=jobs,
        )  # fmt: skip
        _show_all(request, progress, to_screen)


def _show_all(request: SpotRequest, progress: Bars, to_screen: bool) -> None:
    records, failed, total = [], 0, 0
    for outcome in spot_files(request):
        progress.clear()
        total += 1
        if outcome.failure is not None:
            failed += 1
            warn(str(outcome.failure))
        elif outcome.answer is not None and to_screen:
            records.append(outcome.record)
            _warn_of(outcome.answer)
        else:
            _show(outcome, request)
    progress.clear()
    if to_screen:
        print_json(records if request.is_batch else records[0])
    elif request.is_batch:
        for path in request.outputs.shared.values():
            typer.echo(one_line(f"wrote {path}"))
    if failed:
        warn(f"{failed} of {total} videos failed: see {request.failures}")
        raise typer.Exit(shared.FAILURES_FOUND)


def _show(outcome: Outcome, request: SpotRequest) -> None:
    answer = outcome.answer
    if answer is None:
        return
    _warn_of(answer)
    if request.is_batch:
        typer.echo(one_line(f"{answer.video_id}:"))
    _print_answer(answer)
    for path in outcome.written:
        typer.echo(one_line(f"wrote {path}"))


_NAMED = 12  # words


@grouped
def annotate(
    source: Path = typer.Argument(metavar="VIDEO", help="A video, an ELAN file, or a corpus: folder, .csv or .json."),
    dictionary: Path | None = shared.DICTIONARY_OR_LEARNED,
    no_lexicon: bool = shared.NO_LEXICON,
    subtitles: Path | None = typer.Option(
        None, "--subtitles", "-s", help="What is said; of a corpus, a folder. Without it: beside the videos."
    ),
    synonyms: bool = typer.Option(False, "--synonyms", help="Also signs that the dictionary files under both words."),
    vocabulary: str | None = shared.VOCABULARY,
    json_target: Path | None = shared.JSON,
    overwrite: bool = shared.OVERWRITE,
    failures: Path = shared.FAILURES,
    jobs: int = shared.JOBS,
    *,
    times: _SubtitleTimes,
    search: SearchOptions,
    windows: WindowOptions,
    files: _AnnotateFiles,
) -> None:
    """Find where the words of the subtitles are signed: no two signs at once, each mention at most once.

    Of a corpus, tables and JSON files hold all videos, and every other output is a folder with one file per video.
    """
    to_screen = json_target == shared.STANDARD_OUTPUT
    with progress_bars() as progress:
        request = SpotRequest(
            source=source, words=(), dictionary=dictionary, model=search.choice, subtitles=subtitles,
            subtitle_options=times.reading, vocabulary=vocabulary, explain=True, synonyms=synonyms,
            calibration=search.calibration, options=times.on(search.options(progress, windows, lexicon=not no_lexicon)),
            outputs=Outputs(files.asked_for(None if to_screen else json_target), overwrite), failures=failures,
            jobs=jobs,
        )  # fmt: skip
        _show_annotated(request, progress, to_screen)


def _show_annotated(request: SpotRequest, progress: Bars, to_screen: bool) -> None:
    from signspot.workflows.annotate import KnownWords

    records, failed, known, coverage = [], 0, KnownWords(0, 0, 0, 0), _Coverage()
    for outcome in spot_files(request):
        progress.clear()
        if outcome.failure is not None:
            failed += 1
            warn(str(outcome.failure))
            continue
        known = known + outcome.known_words if outcome.known_words is not None else known
        records.append(_annotated_record(outcome, to_screen, names_words=not request.is_batch))
        coverage.add(outcome.annotated)
    progress.clear()
    if to_screen:
        print_json(records if request.is_batch else records[0])
    else:
        if coverage.unlisted:
            typer.echo(str(coverage))
        for path in request.outputs.shared.values() if request.is_batch else ():
            typer.echo(one_line(f"wrote {path}"))
        if not request.outputs.paths:
            typer.echo("results were not saved; add --eaf, --vtt, --csv or --json")
        if known.accuracy is not None:
            typer.echo(
                f"{known.n} annotated signs near a subtitle that mentions them: {known.accuracy:.1%} localised, the "
                f"word known; {known.n_explained} explained, {known.n_right} of those at the right place"
            )
    if failed:
        warn(f"{failed} video{'s' * (failed != 1)} failed: see {request.failures}")
        raise typer.Exit(shared.FAILURES_FOUND)


def _annotated_record(outcome: Outcome, to_screen: bool, *, names_words: bool) -> dict[str, object]:
    answer, annotated = outcome.answer, outcome.annotated
    if answer is None or annotated is None:
        return {}
    _warn_of(answer)
    if not to_screen:
        typer.echo(one_line(f"{answer.video_id}: {_summary(annotated)}"))
        if names_words and annotated.unexplained:
            typer.echo(one_line(f"no sign found for: {_unexplained_words(annotated)}"))
        for path in outcome.written:
            typer.echo(one_line(f"wrote {path}"))
    return outcome.record


def _unexplained_words(annotated: Annotated) -> str:
    counts = Counter(mention.word for mention in annotated.unexplained).most_common()
    likely = {mention.word: mention.likely for mention in annotated.unexplained}
    needed = None if annotated.answer.least_presence is not None else annotated.answer.threshold
    named = [
        f"{word} ({n} times)" if n > 1 else f"{word}{_likeliest(likely[word], needed)}" for word, n in counts[:_NAMED]
    ]
    rest = len(counts) - len(named)
    return ", ".join(named) + (f" and {rest} more words (--json lists all)" if rest else "")


def _likeliest(place: LikelyPlace | None, needed: float | None) -> str:
    if place is None:
        return ""
    if needed is not None and place.cosine >= needed:
        return f" (its likeliest place, {clock(place.time_ms, 3)}, was given to another mention)"
    least = "" if needed is None else f", needed {needed:.3f}"
    return f" (likeliest at {clock(place.time_ms, 3)}: cosine {place.cosine:.3f}{least})"


@dataclass(slots=True)
class _Coverage:
    """How much of the subtitles the dictionary covers."""

    listed: set[str] = field(default_factory=set)
    unlisted: set[str] = field(default_factory=set)

    def add(self, annotated: Annotated | None) -> None:
        if annotated is not None:
            self.listed |= {mention.word for mention in annotated.mentions}
            self.unlisted |= set(annotated.unlisted)

    def __str__(self) -> str:
        n_listed, n_all = len(self.listed), len(self.listed | self.unlisted)
        return f"{n_listed} of {n_all} different words in the subtitles are in the dictionary (--json lists the others)"


def _summary(annotated: Annotated) -> str:
    said = f"found signs for {annotated.n_explained} of {len(annotated.mentions)} subtitle words{told_bands(annotated)}"
    lag = annotated.lag
    if lag.lag_ms is None or lag.drift is None:
        return f"{said}; too few to measure the lag of the subtitles"
    side = "follows" if lag.lag_ms >= 0 else "leads"
    where = f"signing {side} the subtitles by {abs(lag.lag_ms) / 1000:.1f} s"
    return f"{said}; {where}, drift {lag.drift * 60:+.3f} s a minute"


@grouped
def export(
    *,
    results: Path = typer.Argument(
        metavar="RESULTS", help="A .csv, .json, .jsonl or .parquet of spottings, or a VIA project."
    ),
    files: _ExportFiles,
    videos: Path | None = typer.Option(None, "--videos", help="The videos, for ELAN and VIA: a file, folder or list."),
    classes: Path | None = typer.Option(
        None, "--classes", help="Words, one a line, that the challenge numbers from 0."
    ),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write results in other formats. Of several videos, ELAN files and subtitles go into a folder, one each."""
    request = ExportRequest(
        results=results, targets=files.asked_for(), videos=videos, classes=classes, overwrite=overwrite
    )
    with progress_bars() as progress:
        done = export_results(request, progress)
    warn_all(done.warnings)
    say(f"{counted(done.n_spottings, 'result')} of {counted(done.n_videos, 'video')}")
    if files.challenge is not None and classes is None:
        say("classes: " + ", ".join(f"{number} {word}" for word, number in done.classes.items()))
    for path in done.written:
        say(f"wrote {path}")


def why(
    results: Path = typer.Argument(metavar="RESULTS", help="A .csv, .json, .jsonl or .parquet of spottings."),
    spotting_id: str = typer.Argument(
        metavar="ID", help="The spotting_id of a result, or its beginning, with or without 'spot:'."
    ),
    video: Path | None = typer.Option(None, "--video", help="Check that this is the video that was searched."),
    dictionary: Path | None = typer.Option(None, "--dictionary", "-d", help="Show what it says about the entry."),
    json_target: Path | None = JSON,
    overwrite: bool = OVERWRITE,
) -> None:
    """Print what a result rests on: video, model, dictionary entry, subtitle, cosine, probability, who else says so."""
    refuse_json(json_target, overwrite=overwrite)
    found = explain(WhyRequest(results=results, spotting_id=spotting_id, video=video, dictionary=dictionary))
    if not give_json(found.as_json(), json_target, overwrite=overwrite):
        for name, text in _facts(found):
            say(f"{name:<12} {text}")


def _facts(found: Why) -> Iterator[tuple[str, str]]:
    one = found.spotting
    origin = one.provenance
    yield "id", one.spotting_id
    yield "sign", f"{one.word}, variant {one.variant or '(not said)'}" + (f", {one.type_id}" if one.type_id else "")
    yield "where", f"{one.video_id}, {clock(one.span_ms.start, 3)} to {clock(one.span_ms.stop, 3)}, frame {one.frame}"
    said = {None: "", True: ": the video given is the same", False: ": the video given is ANOTHER one"}
    yield "video", f"sha256 {origin.media_sha256 or '(not known)'}{said[found.is_same_video]}"
    yield "found by", f"{origin.source}, model {origin.model or '(none)'}, {origin.fingerprint or 'no fingerprint'}"
    yield "entry", f"{one.entry_id or '(none)'}, from {origin.dictionary or '(no dictionary)'}"
    if found.entry is not None:
        entry = found.entry
        signer = entry.signer.signer_id if entry.signer else "(not said)"
        yield "", f"{entry.video or '(no clip)'}, signer {signer}, region {entry.region or '(not said)'}"
    cue = origin.subtitle
    yield (
        "subtitle",
        "(none)" if cue is None else f"{clock(cue.span_ms.start, 3)} to {clock(cue.span_ms.stop, 3)}: {cue.text}",
    )
    yield "cosine", f"{one.cosine:.4f}, from -1 to 1; no probability"
    certain = one.presence
    yield "presence", "uncalibrated" if certain is None else f"{certain.probability:.3f}, by {certain.calibration}"
    yield "decisions", "; ".join(map(_said, found.agreeing)) or "(nobody else says the same in this file)"
    if found.competing:
        yield "instead", "; ".join(map(_said, found.competing))


def _said(one: Spotting) -> str:
    return f"{one.word} by {one.provenance.source}, {one.cosine:.3f} ({one.spotting_id})"
