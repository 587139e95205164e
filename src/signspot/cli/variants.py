"""`signspot variants`: which variant of a word is used, by whom and where, and what might be a new one.

`signspot mine`: new examples of a word out of footage, and those accepted into a dictionary.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from signspot.cli import options as shared
from signspot.cli.console import progress_bars
from signspot.cli.options import SearchOptions, counted, give_json, grouped, refuse_json, say, warn_all
from signspot.domain.results import told_bands
from signspot.errors import one_line
from signspot.files.atomic import refuse_folder
from signspot.spotting.variants import Diversity
from signspot.workflows.variants import (
    GROUPS,
    MINED_FILES,
    Mined,
    MineOptions,
    VariantFiles,
    VariantOptions,
    VariantReport,
    accept_mined,
    find_variants,
    refuse_variant_folder,
)
from signspot.workflows.variants import mine as mine_word

_ONLY_CANDIDATES = "check each one: on synthetic data two of three candidates are wrong"


@grouped
def variants(
    source: Path = typer.Argument(metavar="VIDEO", help="A video, or a folder or list of videos."),
    word: str = typer.Argument(metavar="WORD", help="The word whose variants are told apart."),
    dictionary: Path = shared.DICTIONARY,
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="Tables, curves, clips, in a new folder."),
    subtitles: Path | None = typer.Option(
        None, "--subtitles", "-s", help="Of a single video: where it mentions the word, new variants are looked for."
    ),
    alike: float | None = typer.Option(
        None, "--alike", min=-1, max=1, help="Least mean cosine within a candidate for a new variant."
    ),
    fewest: int = typer.Option(2, "--fewest", min=2, help="Least occurrences of a candidate."),
    rights_cleared: bool = shared.RIGHTS_CLEARED,
    json_target: Path | None = shared.JSON,
    overwrite: bool = shared.OVERWRITE,
    *,
    search: SearchOptions,
) -> None:
    """Say which variant of WORD is used, by video, signer, region and minute.

    Where subtitles mention the word but none of the dictionary's variants is found, what recurs there is shown as a
    candidate for a new variant. The region is that of the dictionary entry: nothing is known about the signer's own.
    """
    refuse_json(json_target, overwrite=overwrite)
    if out is not None:
        refuse_variant_folder(out, overwrite=overwrite)
    with progress_bars() as progress:
        request = search.footage(source, word, dictionary, subtitles, progress)
        report = find_variants(request, VariantOptions(alike=alike, fewest=fewest))
        written: tuple[Path, ...] = ()
        if out is not None:
            reading = request.options.reading
            files = VariantFiles(out, date.today(), rights_cleared, reading, overwrite)
            written = report.write(files)
    warn_all(str(failed.failure) for failed in report.failures)
    if not give_json(report.record() | {"warnings": progress.warnings}, json_target, overwrite=overwrite):
        _show(report)
        for path in written:
            say(f"wrote {path}")
    if report.failures:
        raise typer.Exit(shared.FAILURES_FOUND)


def _show(report: VariantReport) -> None:
    say(f"{report.word}: found {counted(len(report.uses), 'time')}{told_bands(one.spotting for one in report.uses)}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    for name in report.names:
        table.add_column(Text(one_line(f"variant {name}")), justify="right")
    for title, group in GROUPS.items():
        for tally in report.tally(group) if report.uses else ():
            table.add_row(Text(one_line(f"{title} {tally.group}")), *map(str, tally.counts))
    if report.uses:
        Console(highlight=False).print(table)
    for number, candidate in enumerate(report.candidates, start=1):
        size, cosine = len(candidate.occurrences), candidate.cosine
        say(f"candidate {number} for a new variant: {size} times, mean cosine {cosine:.2f}")
    if report.candidates:
        say(_ONLY_CANDIDATES)
    if report.n_unexplained is None:
        say("no subtitles: new variants were not looked for")
    elif not report.candidates:
        passages = counted(report.n_unexplained, "passage")
        say(f"no candidate for a new variant: {passages} with the word in the subtitle but none of its variants")


_MINE_HELP = "New examples of a word out of footage."
mine_app = typer.Typer(help=_MINE_HELP, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@mine_app.command("find")
@grouped
def _find(
    source: Path = typer.Argument(metavar="VIDEO", help="A video, or a folder or list of videos."),
    word: str = typer.Argument(metavar="WORD", help="The word to look for."),
    dictionary: Path = shared.DICTIONARY,
    out: Path = typer.Option(..., "--out", metavar="DIR", help="A new folder for clips, table and picture."),
    count: int = typer.Option(50, "--count", min=1, help="How many examples at most."),
    per_video: int = typer.Option(5, "--per-video", min=1, help="How many of them from one video."),
    subtitles: Path | None = typer.Option(None, "--subtitles", "-s", help="Of a single video."),
    mentioned: bool = typer.Option(False, "--mentioned", help="Only where a subtitle mentions the word."),
    rights_cleared: bool = shared.RIGHTS_CLEARED,
    json_target: Path | None = shared.JSON,
    overwrite: bool = shared.OVERWRITE,
    *,
    search: SearchOptions,
) -> None:
    """Find a word in footage and write the best examples as clips, a table and a picture.

    Examples of other signers, other videos and other looks come before repetitions. Fill in the column `accepted` of
    mined.csv (yes or no), then run `signspot mine accept`.
    """
    refuse_json(json_target, overwrite=overwrite)
    refuse_folder(out, MINED_FILES, overwrite=overwrite)
    options = MineOptions(
        out=out, diversity=Diversity(count=count, per_video=per_video), today=date.today(),
        rights_cleared=rights_cleared, mentioned_only=mentioned, overwrite=overwrite,
    )  # fmt: skip
    with progress_bars() as progress:
        mined = mine_word(search.footage(source, word, dictionary, subtitles, progress), options)
    warn_all(str(failed.failure) for failed in mined.failures)
    if not give_json(mined.record() | {"warnings": progress.warnings}, json_target, overwrite=overwrite):
        _show_mined(mined)
    if mined.failures:
        raise typer.Exit(shared.FAILURES_FOUND)


def _show_mined(mined: Mined) -> None:
    n_clips = sum(bool(example.file) for example in mined.examples)
    where = f"found {counted(mined.n_found, 'time')} in {counted(mined.n_videos, 'video')}{mined.bands}"
    say(f"{mined.word}: {where}; {len(mined.examples)} chosen, {counted(n_clips, 'clip')}")
    for path in mined.written:
        say(f"wrote {path}")
    if n_clips < len(mined.examples):
        say("no clip where the rights do not allow one: see the column remark, and --rights-cleared")


@mine_app.command("accept")
def _accept(
    table: Path = typer.Argument(metavar="CSV", help="The mined.csv with `accepted` filled in."),
    dictionary: Path = shared.DICTIONARY,
    json_target: Path | None = shared.JSON,
    overwrite: bool = shared.OVERWRITE,
) -> None:
    """Add the accepted clips to a dictionary: from now on they are compared like all others. No training is needed.

    The clips are copied into the folder `mined` of the dictionary, and listed in its manifest. What is there stays.
    """
    refuse_json(json_target, overwrite=overwrite)
    accepted = accept_mined(table, dictionary)
    warn_all(accepted.warnings)
    if not give_json(accepted.record(), json_target, overwrite=overwrite):
        added = counted(len(accepted.added), "clip")
        say(f"{added} added, {len(accepted.known)} known already, {accepted.n_undecided} undecided")
        if accepted.added:
            say(f"wrote {accepted.manifest}")
