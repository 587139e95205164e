"""`signspot spot`: find words in a video, a folder of videos, or the video of an ELAN file."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli import options as shared
from signspot.cli.console import Bars, print_answer, print_json, progress_bars, warn, warn_of
from signspot.cli.options import MatchOptions, SearchOptions, SpotFiles, SubtitleTimes, grouped
from signspot.errors import one_line
from signspot.workflows.outputs import Outputs
from signspot.workflows.spot import read_words
from signspot.workflows.spot_files import Outcome, SpotRequest, spot_files


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
    times: SubtitleTimes,
    search: SearchOptions,
    match: MatchOptions,
    files: SpotFiles,
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
            options=match.on(times.on(search.options(progress, match.stride, lexicon=not no_lexicon))),
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
            warn_of(outcome.answer)
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
    warn_of(answer)
    if request.is_batch:
        typer.echo(one_line(f"{answer.video_id}:"))
    print_answer(answer)
    for path in outcome.written:
        typer.echo(one_line(f"wrote {path}"))
