"""`signspot landmarks`: body and hands of videos as .pose files."""

from __future__ import annotations

from pathlib import Path

import typer

from signspot.cli.console import progress_bars, warn
from signspot.cli.options import BOX, FAILURES, FAILURES_FOUND, JOBS, TRUST, give_json, refuse_json, signer_box
from signspot.domain.recordings import Episode
from signspot.embedding.model import Reading
from signspot.errors import one_line
from signspot.workflows.batch import Finished
from signspot.workflows.embed import Landmarked, LandmarkRequest, landmark_files


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
