"""`signspot dictionary build`: from a heap of clips to a dictionary."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from signspot.atomic import refuse_existing
from signspot.cli.check import PROBLEMS_FOUND
from signspot.cli.progress import progress_bars
from signspot.cli.show import print_json
from signspot.errors import one_line
from signspot.formats.safe_json import write_json
from signspot.media.trim import TrimOptions
from signspot.workflows.dictionary_build import Build, BuildOptions, build_dictionary

_SHOWN = 10  # lines of a kind on the screen; the tables in the folder have them all


def build(
    source: Path = typer.Argument(metavar="SRC", help="A folder of clips, a CSV, a dictionary, or a WLASL JSON file."),
    folder: Path = typer.Argument(metavar="DIR", help="The dictionary to build, or to go on building."),
    clips: Path | None = typer.Option(None, "--clips", metavar="DIR", help="Where the clips of a WLASL list are."),
    no_trim: bool = typer.Option(False, "--no-trim", help="Keep the still beginning and end of clips."),
    margin: int = typer.Option(0, "--margin", min=0, metavar="FRAMES", help="Keep so many frames around the motion."),
    link: bool = typer.Option(False, "--link", help="Share disk space with the source instead of copying its clips."),
    signers_by_face: bool = typer.Option(
        False, "--signers-by-face", help="Group clips by face, for review (sensitive; needs the extra 'faces')."
    ),
    trust: bool = typer.Option(False, "--trust", help="Decode in this process: faster, for videos you made yourself."),
    json_target: Path | None = typer.Option(
        None, "--json", metavar="[F.json]", help="Give the result as JSON, on the screen or in F."
    ),
    anew: bool = typer.Option(False, "--anew", help="Build also over another source's or a hand-corrected dictionary."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace F.json if it exists."),
) -> None:
    """Gather clips into a dictionary: trimmed, with thumbnails, a page to look through, and every trouble named.

    The source is never changed. The same command again goes on where it was stopped.
    """
    options = BuildOptions(
        trim=None if no_trim else TrimOptions(margin=margin),
        clips=clips,
        link=link,
        signers_by_face=signers_by_face,
        isolated=not trust,
        anew=anew,
    )
    if json_target is not None and str(json_target) != "-":
        refuse_existing(json_target, overwrite=overwrite)  # before hours of work
    with progress_bars() as progress:
        built = build_dictionary(source, folder, options, progress)
    if json_target is None:
        _show(built)
    else:
        record = _record(built)
        print_json(record) if str(json_target) == "-" else write_json(record, json_target, overwrite=overwrite)
    if built.problems:
        raise typer.Exit(PROBLEMS_FOUND)


def _show(build: Build) -> None:
    counts = " · ".join(f"{count:,} {what}" for what, count in build.counts)
    typer.echo(one_line(f"{build.folder}: {counts}"))
    if build.read_before:
        typer.echo(f"{build.read_before:,} clips were finished before")
    clips = dict(build.counts)["clips"]
    typer.echo(f"trimmed from {build.frames / clips:.0f} to {build.kept_frames / clips:.0f} frames a clip on average")
    lines = (
        ("left out", "problems.csv", build.problems),
        ("to know", "problems.csv", build.remarks),
        ("duplicate", "duplicates.csv", build.duplicates),
    )
    for title, file, rows in lines:
        for row in rows[:_SHOWN]:
            typer.echo(one_line(f"{title}: {row}"))
        if len(rows) > _SHOWN:
            typer.echo(one_line(f"{title}: {len(rows) - _SHOWN:,} more in {build.folder / file}"))
    if build.face_groups is not None:
        typer.echo(f"{build.face_groups:,} face groups are on the page: guesses for review, not in the dictionary")
    typer.echo(one_line(f"look through it: {build.folder / 'index.html'}; use it with --dictionary {build.folder}"))


def _record(build: Build) -> dict[str, object]:
    duplicates = [
        {
            "entry_id": one.entry.entry_id,
            "word": one.entry.word,
            "same_as": one.other.entry_id,
            "same_as_word": one.other.word,
            "kind": one.kind,
            "cosine": round(one.cosine, 3),
            "left_out": one.left_out,
        }
        for one in build.duplicates
    ]
    return {
        "folder": str(build.folder),
        "counts": dict(build.counts),
        "read_before": build.read_before,
        "frames": build.frames,
        "kept_frames": build.kept_frames,
        "face_groups": build.face_groups,
        "duplicates": duplicates,
        "problems": [dataclasses.asdict(problem) for problem in build.problems],
        "remarks": [dataclasses.asdict(problem) for problem in build.remarks],
    }
