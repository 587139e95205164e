"""Who says so: everything a result rests on, and what else the same file says about that moment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from signspot.domain.dictionary import Entry
from signspot.domain.results import Spotting
from signspot.errors import InputError
from signspot.formats.manifests import read_dictionary
from signspot.formats.tables import spotting_record
from signspot.media.reader import media_sha256
from signspot.workflows.export import read_results

PREFIX = "spot:"
_SHORTEST = 4  # characters of an id
_MOST_OTHERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyRequest:
    """Which result, and what to check it against."""

    results: Path
    spotting_id: str  # or its beginning
    video: Path | None = None  # is this the video that was searched?
    dictionary: Path | None = None  # what does it say about the entry?


@dataclass(frozen=True, slots=True)
class Why:
    """What a result rests on."""

    spotting: Spotting
    agreeing: tuple[Spotting, ...]  # other rows of the same word at the same time, such as a person's
    competing: tuple[Spotting, ...]  # rows of other words at the same time
    is_same_video: bool | None  # None: no video was given, or the result does not know its own
    entry: Entry | None  # None: no dictionary was given

    def as_json(self) -> dict[str, object]:
        """For scripts."""
        entry = self.entry
        return {
            "spotting": spotting_record(self.spotting),
            "agreeing": [spotting_record(one) for one in self.agreeing],
            "competing": [spotting_record(one) for one in self.competing],
            "is_same_video": self.is_same_video,
            "entry": None
            if entry is None
            else {
                "entry_id": entry.entry_id,
                "word": entry.word,
                "variant": entry.variant,
                "video": str(entry.video or ""),
                "signer": entry.signer.signer_id if entry.signer else "",
                "language": entry.language,
                "region": entry.region,
                "holder": entry.rights.holder,
                "licence": entry.rights.licence,
            },
        }


def why(request: WhyRequest) -> Why:
    """Find a result by its id and gather what is known about it."""
    rows = list(read_results(request.results))
    found = _found(rows, request)
    at_once = [
        one
        for one in rows
        if one is not found and one.video_id == found.video_id and one.span_ms.overlaps(found.span_ms)
    ]
    return Why(
        found,
        tuple(one for one in at_once if one.word == found.word)[:_MOST_OTHERS],
        tuple(one for one in at_once if one.word != found.word)[:_MOST_OTHERS],
        _is_same_video(found, request.video),
        _entry(found, request.dictionary),
    )


def _found(rows: list[Spotting], request: WhyRequest) -> Spotting:
    wanted = request.spotting_id.strip().lower().removeprefix(PREFIX)
    if len(wanted) < _SHORTEST:
        raise InputError(
            request.spotting_id, f"an id has at least {_SHORTEST} characters after 'spot:'", "copy it from the results"
        )
    matches = {
        row.spotting_id: row for row in reversed(rows) if row.spotting_id.removeprefix(PREFIX).startswith(wanted)
    }
    if not matches:
        what = f"none of its {len(rows)} results has the id {request.spotting_id!r}"
        raise InputError(request.results, what, "copy the id from the column spotting_id")
    if len(matches) > 1:
        raise InputError(request.spotting_id, f"{len(matches)} results begin so", "give more characters of the id")
    return next(iter(matches.values()))


def _is_same_video(found: Spotting, video: Path | None) -> bool | None:
    if video is None or not found.provenance.media_sha256:
        return None
    return media_sha256(video) == found.provenance.media_sha256


def _entry(found: Spotting, dictionary: Path | None) -> Entry | None:
    if dictionary is None:
        return None
    for entry in read_dictionary(dictionary).dictionary.entries(found.word):
        if entry.entry_id == found.entry_id:
            return entry
    what = f"has no entry {found.entry_id!r} of {found.word!r}"
    raise InputError(dictionary, what, "name the dictionary that the result was found with")
