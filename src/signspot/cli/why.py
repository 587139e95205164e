"""`signspot why`: everything a result rests on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from signspot.cli.options import JSON, OVERWRITE, give_json, refuse_json, say
from signspot.domain.results import Spotting
from signspot.domain.time import clock
from signspot.workflows.outputs import Why, WhyRequest
from signspot.workflows.outputs import why as explain


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
