"""`signspot embed`: compute the vectors of videos once, so that later questions are answered at once.

`signspot landmarks`: body and hands of videos as .pose files.

`signspot store`: what is kept of recordings, whether it is sound, and how to forget it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import typer

from signspot.cli.console import print_table, progress_bars, warn
from signspot.cli.options import (
    BOX,
    FAILURES,
    FAILURES_FOUND,
    JOBS,
    JSON,
    OVERWRITE,
    TRUST,
    ReadingOptions,
    WindowOptions,
    counted,
    give_json,
    grouped,
    refuse_json,
    say,
    signer_box,
    warn_all,
)
from signspot.domain.recordings import Episode
from signspot.embedding.model import Reading
from signspot.errors import InputError, one_line, readable_size
from signspot.files.intake import is_folder
from signspot.stores.features import Kept, default_store_folder, usable_store_folder
from signspot.workflows.batch import Finished
from signspot.workflows.embed import EmbedRequest, Landmarked, LandmarkRequest, embed_files, landmark_files
from signspot.workflows.store import (
    SHORT,
    Holding,
    StoreRequest,
    kept_record,
    list_store,
    remove_from_store,
    verify_store,
)


@grouped
def embed(
    videos: list[Path] = typer.Argument(metavar="VIDEO", help="Videos and folders of videos."),
    box: str | None = BOX,
    jobs: int = JOBS,
    failures: Path = FAILURES,
    *,
    windows: WindowOptions,
    how: ReadingOptions,
) -> None:
    """Compute and keep the vectors of every window. Run again after an interruption: what is done stays done."""
    if how.no_store:
        raise InputError("--no-store", "embed is there to fill a store", "leave it out, or name a folder with --store")
    failed = total = 0
    with progress_bars() as progress:
        reading = windows.on(replace(how, no_store=True).reading(progress, box=box))
        reading = replace(reading, store=how.store or usable_store_folder(os.environ))
        request = EmbedRequest(sources=tuple(videos), model=how.choice, reading=reading, jobs=jobs, failures=failures)
        started = embed_files(request)
        progress.clear()
        typer.echo(one_line(f"model {started.model.name}, {started.model.backend}"))
        for outcome in started.outcomes:
            progress.clear()
            total += 1
            video, made = outcome.item.video, outcome.result
            if made is None:
                failed += 1
                warn(str(outcome.failure))
                continue
            warn_all(f"{video}: {remark}" for remark in made.warnings)
            state = "was there" if made.was_stored else "computed"
            typer.echo(one_line(f"{video}: {made.n_windows} windows, {state}"))
    typer.echo(one_line(f"kept in {reading.store}"))
    if failed:
        warn(f"{failed} of {total} videos failed: see {failures}")
        raise typer.Exit(FAILURES_FOUND)


def landmarks(
    videos: list[Path] = typer.Argument(metavar="VIDEO", help="Videos and folders of videos."),
    out: Path | None = typer.Option(None, "--out", "-o", metavar="DIR", help="Where to put them (default: beside)."),
    box: str | None = BOX,
    trust: bool = TRUST,
    json_target: Path | None = typer.Option(
        None, "--json", metavar="[F.json]", help="Give the result as JSON, on the screen or in F."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Find again what is there, and replace F.json."),
    jobs: int = JOBS,
    failures: Path = FAILURES,
) -> None:
    """Find body and hands in every frame and write them as .pose files (needs the extra 'pose').

    Run again after an interruption: what is done stays done. Landmarks do not make people anonymous.
    """
    refuse_json(json_target, overwrite=overwrite)  # before hours of work
    done: list[Finished[Episode, Landmarked]] = []
    with progress_bars() as progress:
        request = LandmarkRequest(
            sources=tuple(videos), out=out,
            reading=Reading(isolated=not trust, box=signer_box(box), progress=progress, notify=progress.notify),
            overwrite=overwrite, jobs=jobs, failures=failures,
        )  # fmt: skip
        for one in landmark_files(request):
            progress.clear()
            done.append(one)
            _show(one, quietly=json_target is not None)
    give_json([_record(one) for one in done], json_target, overwrite=overwrite)
    failed = sum(one.failure is not None for one in done)
    if failed:
        warn(f"{failed} of {len(done)} videos failed: see {failures}")
        raise typer.Exit(FAILURES_FOUND)


def _show(one: Finished[Episode, Landmarked], *, quietly: bool) -> None:
    if one.result is None:
        warn(str(one.failure))
        return
    if (made := one.result.made) is not None:
        nobody = "" if made.pose_share else "nobody was found in it: commands that use the file will find nothing"
        for message in (*made.remarks.warnings, made.remarks.partial, nobody):
            if message:
                warn(f"{one.item.video}: {message}")
    if not quietly:
        typer.echo(one_line(f"{one.result.file}: {_summary(one.result)}"))


def _summary(one: Landmarked) -> str:
    if one.made is None:
        return "was there"
    frames, pose, hands = len(one.made.signer.track.axis), one.made.pose_share, one.made.hand_share
    return f"{frames} frames, body in {pose:.0%}, hands in {hands:.0%}"


def _record(one: Finished[Episode, Landmarked]) -> dict[str, object]:
    made = None if one.result is None else one.result.made
    return {
        "video": str(one.item.video), "file": None if one.result is None else str(one.result.file),
        "was_there": one.result is not None and made is None,
        "frames": None if made is None else len(made.signer.track.axis),
        "pose_share": None if made is None else round(made.pose_share, 4),
        "hand_share": None if made is None else round(made.hand_share, 4),
        "partial": "" if made is None else made.remarks.partial,
        "warnings": [] if made is None else list(made.remarks.warnings),
        "failure": None if one.failure is None else str(one.failure),
    }  # fmt: skip


_HELP = "What is kept of recordings, so that it is computed only once."
store_app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)

_STORE = typer.Option(None, "--store", metavar="DIR", help="The folder (default: the cache).")
_VIDEOS = typer.Argument(None, metavar="VIDEO", help="Files, or names of recordings whose files are gone.")


@store_app.command("list")
def _list(
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
        _show_kept(holdings[0].kept, folder)
        return
    for holding in holdings:
        say(f"{holding.asked}: {_described(holding.kept)}")
        _show_table(holding.kept)


@store_app.command("remove")
def _remove(
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


@store_app.command("verify")
def _verify(store: Path | None = _STORE, json_target: Path | None = JSON, overwrite: bool = OVERWRITE) -> None:
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
        tracks = [f"{track.in_words()} of {kept.model(track.key.fingerprint)}" for track in kept.recordings()]
        details = f": {'; '.join(tracks)}" if holding.asked and tracks else ""
        say(f"{holding.asked or folder}: {_described(kept)}" + (f" {done}{details}" if kept.media else ""))


def _described(kept: Kept) -> str:
    n_recordings = len({track.key.media_sha256 for track in kept.recordings()})
    n_unfinished = len({one.media_sha256 for one in kept.unfinished})
    parts = [
        *([counted(n_recordings, "recording")] if n_recordings else []),
        *([counted(kept.n_clips(), "dictionary clip")] if kept.n_clips() else []),
        *([f"unfinished work on {counted(n_unfinished, 'recording')}"] if n_unfinished else []),
    ]
    return f"{', '.join(parts)} ({readable_size(kept.n_bytes)})" if parts else "nothing is kept"


def _show_kept(kept: Kept, folder: Path) -> None:
    _show_table(kept)
    for total in kept.totals():
        counts = ((total.recordings, "recording"), (total.clips, "dictionary clip"))
        said = ", ".join(counted(number, noun) for number, noun in counts if number)
        say(f"{total.model}: {said} ({readable_size(total.bytes)})")
    say(f"{folder}: {_described(kept)}")


def _show_table(kept: Kept) -> None:
    tracks = kept.recordings()
    if not tracks:
        return
    rows = []
    for track in tracks:
        remarks = "; ".join(filter(None, (track.remarks.partial, *track.remarks.warnings)))
        model, sha256 = kept.model(track.key.fingerprint), track.key.media_sha256[:SHORT]
        rows.append((track.video_id, sha256, model, track.in_words(), readable_size(track.n_bytes), remarks))
    print_table(("recording", "sha256", "model", "kept", "size", "notes"), rows)
