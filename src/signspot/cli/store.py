"""`signspot store`: what is kept of recordings, whether it is sound, and how to forget it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import typer

from signspot.cli.console import print_table, progress_bars
from signspot.cli.options import FAILURES_FOUND, JSON, OVERWRITE, counted, give_json, refuse_json, say, warn_all
from signspot.errors import InputError, one_line, readable_size
from signspot.files.intake import is_folder
from signspot.stores.features import Kept, default_store_folder
from signspot.workflows.store import (
    SHORT,
    Holding,
    StoreRequest,
    in_words,
    kept_record,
    list_store,
    n_clips,
    recordings,
    remove_from_store,
    totals,
    verify_store,
)

_HELP = "What is kept of recordings, so that it is computed only once."
app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)

_STORE = typer.Option(None, "--store", metavar="DIR", help="The folder (default: the cache).")
_VIDEOS = typer.Argument(None, metavar="VIDEO", help="Files, or names of recordings whose files are gone.")


@app.command("list")
def list_command(
    videos: list[Path] | None = _VIDEOS,
    store: Path | None = _STORE,
    json_target: Path | None = JSON,
    overwrite: bool = OVERWRITE,
) -> None:
    """List what is kept of recordings and dictionary clips, by which model, and how much room it takes.

    A VIDEO is found by its content, whatever it is called now.
    """
    refuse_json(json_target, overwrite=overwrite)
    folder = _folder(store)
    holdings = list_store(StoreRequest(folder=folder, videos=tuple(videos or ())))
    warn_all(holding.remark for holding in holdings if holding.remark)
    if give_json(kept_record(folder, holdings), json_target, overwrite=overwrite):
        return
    if not videos:
        _show(holdings[0].kept, folder)
        return
    for holding in holdings:
        say(f"{holding.asked}: {_described(holding.kept)}")
        _show_table(holding.kept)


@app.command("remove")
def remove_command(
    videos: list[Path] | None = _VIDEOS,
    sha256: list[str] | None = typer.Option(None, "--sha256", metavar="X", help="By its content, as `list` shows it."),
    model: str = typer.Option("", "--model", metavar="NAME", help="Everything of one model, as `list` names it."),
    everything: bool = typer.Option(False, "--all", help="Everything."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask before removing everything."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would be removed."),
    store: Path | None = _STORE,
) -> None:
    """Forget recordings: vectors, landmarks, unfinished work, and vectors of dictionary clips, under every model.

    The videos themselves are not touched. A VIDEO is found by its content, and by its name where the file is gone.
    """
    if [bool(videos or sha256), bool(model), everything].count(True) != 1:
        raise InputError("store remove", "say what to forget", "name videos or --sha256, or else --model or --all")
    folder = _folder(store)
    request = StoreRequest(folder=folder, videos=tuple(videos or ()), sha256s=tuple(sha256 or ()), model=model)
    if everything and not (yes or dry_run):
        _confirm(list_store(request)[0].kept, folder)
    holdings = list_store(request) if dry_run else remove_from_store(request)
    warn_all(holding.remark for holding in holdings if holding.remark)
    _say_removed(holdings, folder, "would be removed" if dry_run else "removed")


@app.command("verify")
def verify_command(store: Path | None = _STORE, json_target: Path | None = JSON, overwrite: bool = OVERWRITE) -> None:
    """Read everything that is kept, compare it with its checksums, and name what is damaged."""
    refuse_json(json_target, overwrite=overwrite)
    folder = _folder(store)
    with progress_bars() as progress:
        found = verify_store(folder, progress)
    problems = [{"file": one.where, "what": one.what, "fix": one.fix} for one in found.problems]
    if not give_json({"store": str(folder), "problems": problems}, json_target, overwrite=overwrite):
        for one in problems:
            say(f"damaged: {': '.join(filter(None, one.values()))}")
        state = f"{len(problems)} damaged" if problems else "nothing is damaged"
        say(f"{folder}: {_described(found.kept)}: {state}")
    if problems:
        raise typer.Exit(FAILURES_FOUND)


def _folder(named: Path | None) -> Path:
    if named is not None and not is_folder(named):
        raise InputError(named, "there is no such folder", "name the folder that --store of other commands named")
    return named or default_store_folder(os.environ)


def _confirm(kept: Kept, folder: Path) -> None:
    typer.echo(one_line(f"{folder}: {_described(kept)}. Remove all of it? [y/N] "), nl=False)
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("--all", "was not confirmed, so nothing was removed", "answer y, or give --yes")


def _say_removed(holdings: Iterable[Holding], folder: Path, done: str) -> None:
    for holding in holdings:
        kept = holding.kept
        tracks = [f"{in_words(track)} of {kept.model(track.key.fingerprint)}" for track in recordings(kept)]
        details = f": {'; '.join(tracks)}" if holding.asked and tracks else ""
        say(f"{holding.asked or folder}: {_described(kept)}" + (f" {done}{details}" if kept.media else ""))


def _described(kept: Kept) -> str:
    n_recordings = len({track.key.media_sha256 for track in recordings(kept)})
    n_unfinished = len({one.media_sha256 for one in kept.unfinished})
    parts = [
        *([counted(n_recordings, "recording")] if n_recordings else []),
        *([counted(n_clips(kept), "dictionary clip")] if n_clips(kept) else []),
        *([f"unfinished work on {counted(n_unfinished, 'recording')}"] if n_unfinished else []),
    ]
    return f"{', '.join(parts)} ({readable_size(kept.n_bytes)})" if parts else "nothing is kept"


def _show(kept: Kept, folder: Path) -> None:
    _show_table(kept)
    for total in totals(kept):
        counts = ((total.recordings, "recording"), (total.clips, "dictionary clip"))
        said = ", ".join(counted(number, noun) for number, noun in counts if number)
        say(f"{total.model}: {said} ({readable_size(total.bytes)})")
    say(f"{folder}: {_described(kept)}")


def _show_table(kept: Kept) -> None:
    tracks = recordings(kept)
    if not tracks:
        return
    rows = []
    for track in tracks:
        remarks = "; ".join(filter(None, (track.remarks.partial, *track.remarks.warnings)))
        model, sha256 = kept.model(track.key.fingerprint), track.key.media_sha256[:SHORT]
        rows.append((track.video_id, sha256, model, in_words(track), readable_size(track.n_bytes), remarks))
    print_table(("recording", "sha256", "model", "kept", "size", "notes"), rows)
