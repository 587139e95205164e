"""`signspot mine`: new examples of a word out of footage, and those accepted into a dictionary."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import typer

from signspot.cli import options as shared
from signspot.cli.console import progress_bars
from signspot.cli.options import SearchOptions, counted, give_json, grouped, refuse_json, say, warn_all
from signspot.files.atomic import refuse_folder
from signspot.spotting.variants import Diversity
from signspot.workflows.mine import OWN_FILES, Mined, MineOptions, accept_mined, accepted_record, mined_record
from signspot.workflows.mine import mine as mine_word

_HELP = "New examples of a word out of footage."
app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command("find")
@grouped
def find(
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
    refuse_folder(out, OWN_FILES, overwrite=overwrite)
    options = MineOptions(
        out=out, diversity=Diversity(count=count, per_video=per_video), today=date.today(),
        rights_cleared=rights_cleared, mentioned_only=mentioned, overwrite=overwrite,
    )  # fmt: skip
    with progress_bars() as progress:
        mined = mine_word(search.footage(source, word, dictionary, subtitles, progress), options)
    warn_all(str(failed.failure) for failed in mined.failures)
    if not give_json(mined_record(mined) | {"warnings": progress.warnings}, json_target, overwrite=overwrite):
        _show(mined)
    if mined.failures:
        raise typer.Exit(shared.FAILURES_FOUND)


def _show(mined: Mined) -> None:
    n_clips = sum(bool(example.file) for example in mined.examples)
    where = f"found {counted(mined.n_found, 'time')} in {counted(mined.n_videos, 'video')}{mined.bands}"
    say(f"{mined.word}: {where}; {len(mined.examples)} chosen, {counted(n_clips, 'clip')}")
    for path in mined.written:
        say(f"wrote {path}")
    if n_clips < len(mined.examples):
        say("no clip where the rights do not allow one: see the column remark, and --rights-cleared")


@app.command("accept")
def accept(
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
    if not give_json(accepted_record(accepted), json_target, overwrite=overwrite):
        added = counted(len(accepted.added), "clip")
        say(f"{added} added, {len(accepted.known)} known already, {accepted.n_undecided} undecided")
        if accepted.added:
            say(f"wrote {accepted.manifest}")
