"""`signspot dictionary` and `signspot corpus`: what is there and what is wrong with it, and what others released."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from signspot.cli.console import progress_bars
from signspot.cli.options import JOBS, TRUST, give_json, refuse_json
from signspot.embedding.model import Reading
from signspot.errors import InputError, Notice, one_line
from signspot.formats.bobsl import OffsetRule, ReleasedCorpus
from signspot.media.trim import TrimOptions
from signspot.workflows.dictionary import (
    Build,
    BuildOptions,
    Check,
    CheckOptions,
    build_dictionary,
    check_corpus,
    check_dictionary,
    import_corpus,
    import_dictionary,
)

PROBLEMS_FOUND = 1
_SHOWN = 3  # problems, where a file lists them all

dictionary_app = typer.Typer(help="Work with a dictionary of signs.", no_args_is_help=True, rich_markup_mode=None)
corpus_app = typer.Typer(help="Work with a corpus of videos.", no_args_is_help=True, rich_markup_mode=None)

_SOURCE = typer.Argument(help="A folder, a CSV or a JSON manifest.", metavar="DIR")
_OVERWRITE = typer.Option(False, "--overwrite", help="Replace an output that exists.")
_JSON = typer.Option(None, "--json", metavar="[F.json]", help="Give the result as JSON, on the screen or in F.")


@dictionary_app.command("check")
def _check_dictionary_command(
    source: Path = _SOURCE,
    json_target: Path | None = _JSON,
    quick: bool = typer.Option(False, "--quick", help="Open every clip, but do not decode it to its end."),
    words: bool = typer.Option(False, "--words", help="List the words and how many clips each has."),
    overwrite: bool = _OVERWRITE,
) -> None:
    """Open every clip; count words, variants and signers; name every clip that cannot be used."""
    with progress_bars() as progress:
        result = check_dictionary(source, CheckOptions(full=not quick, reading=Reading(progress=progress)))
    _show(result, json_target, overwrite=overwrite)
    if words and json_target is None:
        for word, count in result.words:
            typer.echo(one_line(f"{count:6} {word}"))
    _leave(result)


@dictionary_app.command("import")
def _import_dictionary_command(
    source: Path = typer.Argument(metavar="FILE", help="bsldict_v1.pkl, WLASL_v0.3.json or MSASL_*.json."),
    folder: Path = typer.Argument(metavar="DIR", help="The dictionary to make; for JSON, the folder of its clips."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a dictionary made by an earlier import."),
) -> None:
    """Turn a released data set into a dictionary (a pickle is read safely: nothing in it is run).

    Clips of WLASL or MS-ASL that are missing are listed in DIR/problems.csv.
    """
    with progress_bars() as progress:
        result = import_dictionary(source, folder, overwrite=overwrite, progress=progress)
    _show(result, None)
    typer.echo(one_line(f"wrote {folder}; use it with --dictionary {folder}"))


@corpus_app.command("check")
def _check_corpus_command(
    source: Path = _SOURCE,
    json_target: Path | None = _JSON,
    full: bool = typer.Option(False, "--full", help="Decode every video to its end (finds truncated files)."),
    overwrite: bool = _OVERWRITE,
) -> None:
    """Open every video and subtitle file; list what can be used and what cannot."""
    with progress_bars() as progress:
        result = check_corpus(source, CheckOptions(full=full, reading=Reading(progress=progress)))
    _show(result, json_target, overwrite=overwrite)
    _leave(result)


@corpus_app.command("import")
def _import_corpus_command(
    source: Path = typer.Argument(
        metavar="FILE",
        help="Annotations: *_spottings.json or .pkl, mouthings or info of BSL-1K, or a challenge's truth.",
    ),
    folder: Path = typer.Argument(metavar="DIR", help="The corpus to make: a folder at or above the videos."),
    videos: Path | None = typer.Option(None, "--videos", metavar="DIR", help="Where the videos are (default: in DIR)."),
    subtitles: Path | None = typer.Option(
        None, "--subtitles", metavar="PATH", help="A folder of subtitle files in DIR, or the pickle of BSL-1K."
    ),
    splits: Path | None = typer.Option(
        None, "--splits", metavar="FILE", help="Which videos are for training and test: subset2episode.json or .pkl."
    ),
    vocabulary: Path | None = typer.Option(
        None, "--vocabulary", metavar="FILE", help="Keep only its words: vocab.pkl, or a text with a word a line."
    ),
    confidence: float = typer.Option(0.0, "--confidence", min=0, max=1, help="Keep annotations from this one on."),
    found_by: str = typer.Option(
        "", "--source", metavar="NAME", help="mouthing, dictionary or attention (default: as FILE is called)."
    ),
    window: tuple[int, int] | None = typer.Option(
        None, "--window", metavar="START STOP", help="Frames of a sign around its time, for any other --source."
    ),
    json_target: Path | None = _JSON,
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a corpus made by an earlier import."),
) -> None:
    """Turn released annotations and your copy of their videos into a corpus (of a pickle nothing is run).

    Writes DIR/corpus.json; videos that are missing are listed in DIR/problems.csv.
    """
    files = ReleasedCorpus(
        annotations=source, videos=videos, subtitles=subtitles, vocabulary=vocabulary, splits=splits, source=found_by,
        rule=_rule(window), min_confidence=confidence,
    )  # fmt: skip
    result = import_corpus(files, folder, overwrite=overwrite)
    _show(result, json_target, overwrite=overwrite)
    if json_target is None:
        typer.echo(one_line(f"wrote {folder}; use it with --corpus {folder}"))


def _rule(window: tuple[int, int] | None) -> OffsetRule | None:
    if window is None:
        return None
    try:
        return OffsetRule(*window)
    except ValueError as error:
        raise InputError(f"--window {window[0]} {window[1]}", str(error), "give frames, as -3 22") from error


def _leave(result: Check) -> None:
    if result.problems:
        raise typer.Exit(PROBLEMS_FOUND)


def _counted(what: str, count: int) -> str:
    """One of many videos is a video; "with subtitles" stays as it is."""
    if count != 1 or what.startswith("with"):
        return what
    return f"{what.removesuffix('ies')}y" if what.endswith("ies") else what.removesuffix("s")


def _show(result: Check, json_target: Path | None, *, overwrite: bool = False) -> None:
    if json_target is None:
        counts = " · ".join(f"{count:,} {_counted(what, count)}" for what, count in result.counts)
        typer.echo(one_line(f"{result.name}: {counts}"))
        shown = result.problems if result.listed is None else result.problems[:_SHOWN]
        if len(shown) < len(result.problems):
            what = "videos" if "videos" in dict(result.counts) else "clips"
            count = f"{len(result.problems):,} {what} of the list"
            typer.echo(one_line(f"cannot be used: {count}: {result.listed} names them all, the first are:"))
        for title, rows in (("cannot be used", shown), ("to know", result.remarks)):
            for row in rows:
                typer.echo(f"{title}: {row}")
        if not result.problems:
            typer.echo(f"no problems, {len(result.remarks)} notes" if result.remarks else "no problems")
    else:
        record = dataclasses.asdict(result) | {"counts": dict(result.counts), "words": dict(result.words)}
        record["problems"] = list(map(_problem_record, result.problems))
        record["remarks"] = list(map(_problem_record, result.remarks))
        del record["listed"]
        give_json(record, json_target, overwrite=overwrite)


def _problem_record(one: Notice) -> dict[str, object]:
    return {"where": one.where, "what": one.what, "fix": one.fix, "is_remark": one.severity == "note"}


# `signspot dictionary build`: from a heap of clips to a dictionary.
_SHOWN_OF_A_KIND = 10  # lines of a kind on the screen; the tables in the folder have them all


@dictionary_app.command("build")
def _build(
    source: Path = typer.Argument(metavar="SRC", help="A folder of clips, a CSV, a dictionary, or a WLASL JSON file."),
    folder: Path = typer.Argument(metavar="DIR", help="The dictionary to build, or to go on building."),
    clips: Path | None = typer.Option(None, "--clips", metavar="DIR", help="Where the clips of a WLASL list are."),
    no_trim: bool = typer.Option(False, "--no-trim", help="Keep the still beginning and end of clips."),
    margin: int = typer.Option(0, "--margin", min=0, metavar="FRAMES", help="Keep so many frames around the motion."),
    link: bool = typer.Option(False, "--link", help="Share disk space with the source instead of copying its clips."),
    signers_by_face: bool = typer.Option(
        False, "--signers-by-face", help="Group clips by face, for review (sensitive; needs the extra 'faces')."
    ),
    trust: bool = TRUST,
    jobs: int = JOBS,
    json_target: Path | None = _JSON,
    anew: bool = typer.Option(False, "--anew", help="Build also over another source's or a hand-corrected dictionary."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace F.json if it exists."),
) -> None:
    """Gather clips into a dictionary: trimmed, with thumbnails, a page to look through, and every trouble named.

    The source is never changed. The same command again goes on where it was stopped.
    """
    refuse_json(json_target, overwrite=overwrite)  # before hours of work
    with progress_bars() as progress:
        options = BuildOptions(
            trim=None if no_trim else TrimOptions(margin=margin), clips=clips, link=link,
            signers_by_face=signers_by_face, reading=Reading(isolated=not trust, progress=progress), anew=anew,
            jobs=jobs,
        )  # fmt: skip
        built = build_dictionary(source, folder, options)
    if json_target is None:
        _show_built(built)
    else:
        give_json(_record(built), json_target, overwrite=overwrite)
    if built.problems:
        raise typer.Exit(PROBLEMS_FOUND)


def _show_built(build: Build) -> None:
    counts = " · ".join(f"{count:,} {what}" for what, count in build.counts)
    typer.echo(one_line(f"{build.folder}: {counts}"))
    if build.read_before:
        typer.echo(f"{build.read_before:,} clips were finished before")
    clips = dict(build.counts)["clips"]
    typer.echo(f"trimmed from {build.frames / clips:.0f} to {build.kept_frames / clips:.0f} frames a clip on average")
    lines = (
        ("left out", "problems.csv", build.problems),
        ("note", "problems.csv", build.remarks),
        ("duplicate", "duplicates.csv", build.duplicates),
    )
    for title, file, rows in lines:
        for row in rows[:_SHOWN_OF_A_KIND]:
            typer.echo(one_line(f"{title}: {row}"))
        if len(rows) > _SHOWN_OF_A_KIND:
            typer.echo(one_line(f"{title}: {len(rows) - _SHOWN_OF_A_KIND:,} more in {build.folder / file}"))
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
        "folder": str(build.folder), "counts": dict(build.counts), "read_before": build.read_before,
        "frames": build.frames, "kept_frames": build.kept_frames, "face_groups": build.face_groups,
        "duplicates": duplicates, "problems": list(map(_problem_record, build.problems)),
        "remarks": list(map(_problem_record, build.remarks)),
    }  # fmt: skip
