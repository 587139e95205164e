"""`signspot annotate`: find the signs of the words in the subtitles, consistently."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from signspot.cli import options as shared
from signspot.cli.console import Bars, print_json, progress_bars, warn, warn_of
from signspot.cli.options import AnnotateFiles, SearchOptions, SubtitleTimes, grouped
from signspot.domain.results import told_bands
from signspot.domain.time import clock
from signspot.errors import one_line
from signspot.workflows.outputs import Outputs
from signspot.workflows.spot_files import Outcome, SpotRequest, spot_files

if TYPE_CHECKING:
    from signspot.workflows.annotate import Annotated, LikelyPlace


_NAMED = 12  # words


@grouped
def annotate(
    source: Path = typer.Argument(metavar="VIDEO", help="A video, an ELAN file, or a corpus: folder, .csv or .json."),
    dictionary: Path = shared.DICTIONARY,
    subtitles: Path | None = typer.Option(
        None, "--subtitles", "-s", help="What is said; of a corpus, a folder. Without it: beside the videos."
    ),
    synonyms: bool = typer.Option(False, "--synonyms", help="Also signs that the dictionary files under both words."),
    stride: int = shared.STRIDE,
    vocabulary: str | None = shared.VOCABULARY,
    json_target: Path | None = shared.JSON,
    overwrite: bool = shared.OVERWRITE,
    failures: Path = shared.FAILURES,
    jobs: int = shared.JOBS,
    *,
    times: SubtitleTimes,
    search: SearchOptions,
    files: AnnotateFiles,
) -> None:
    """Find where the words of the subtitles are signed: no two signs at once, each mention at most once.

    Of a corpus, tables and JSON files hold all videos, and every other output is a folder with one file per video.
    """
    to_screen = json_target == shared.STANDARD_OUTPUT
    with progress_bars() as progress:
        request = SpotRequest(
            source=source, words=(), dictionary=dictionary, model=search.choice, subtitles=subtitles,
            subtitle_options=times.reading, vocabulary=vocabulary, explain=True, synonyms=synonyms,
            calibration=search.calibration, options=times.on(search.options(progress, stride)),
            outputs=Outputs(files.asked_for(None if to_screen else json_target), overwrite), failures=failures,
            jobs=jobs,
        )  # fmt: skip
        _show_all(request, progress, to_screen)


def _show_all(request: SpotRequest, progress: Bars, to_screen: bool) -> None:
    from signspot.workflows.annotate import KnownWords

    records, failed, known, coverage = [], 0, KnownWords(0, 0, 0, 0), _Coverage()
    for outcome in spot_files(request):
        progress.clear()
        if outcome.failure is not None:
            failed += 1
            warn(str(outcome.failure))
            continue
        known = known + outcome.known_words if outcome.known_words is not None else known
        records.append(_shown(outcome, to_screen, names_words=not request.is_batch))
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


def _shown(outcome: Outcome, to_screen: bool, *, names_words: bool) -> dict[str, object]:
    answer, annotated = outcome.answer, outcome.annotated
    if answer is None or annotated is None:
        return {}
    warn_of(answer)
    if not to_screen:
        typer.echo(one_line(f"{answer.video_id}: {_summary(annotated)}"))
        if names_words and annotated.unexplained:
            typer.echo(one_line(f"no sign found for: {_words(annotated)}"))
        for path in outcome.written:
            typer.echo(one_line(f"wrote {path}"))
    return outcome.record


def _words(annotated: Annotated) -> str:
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
