"""Clips and pictures of findings, cut out of the footage where its rights allow that.

What nobody allowed is not exported: of a video whose rights do not say so, a clip is written only if the user vouches
for it, and of one that forbids it, or whose rights have expired, never. The same holds for showing pictures.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from signspot.domain.corpus import Rights
from signspot.domain.results import Spotting
from signspot.domain.spans import MillisSpan
from signspot.domain.tracks import Pixels
from signspot.formats.pose_files import SUFFIX, read_pose
from signspot.media.contact_sheet import SheetRow, contact_sheet
from signspot.media.cuttings import LONGEST_MS, Cutting, cut_out
from signspot.media.landmark_layout import SignerLandmarks
from signspot.media.skeleton import skeletons
from signspot.media.thumbnails import write_picture
from signspot.spotting.occurrences import Occurrence
from signspot.workflows.tracks import Progress

MOST_ROWS = 50  # of a contact sheet
_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 60  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceOptions:
    """Where clips go, and who answers for them."""

    folder: Path  # exists
    today: date
    rights_cleared: bool = False  # the user may cut clips out of videos that say nothing about their rights
    context_ms: int = 200  # shown before and after the sign
    least_ms: int = 0  # of a clip: a shorter sign is shown with more around it
    isolated: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A finding with what can be shown of it."""

    occurrence: Occurrence
    clip: Path | None  # None: its rights do not allow one, or there are no pictures
    pictures: tuple[Pixels, ...]  # (96, W, 3) uint8; none where it may not be shown
    withheld: str = ""  # why there is no clip

    @property
    def spotting(self) -> Spotting:
        """What was found."""
        return self.occurrence.spotting


def may(rights: Rights, action: str, today: date, *, rights_cleared: bool) -> bool:
    """Whether `action` (display, export_clips) is allowed: said so, or not said and the user vouches for it."""
    is_silent = getattr(rights, f"may_{action}") is None and (rights.expires is None or today < rights.expires)
    return rights.allows(action, today) or (is_silent and rights_cleared)


def gather_evidence(
    occurrences: Sequence[Occurrence], options: EvidenceOptions, progress: Progress | None = None
) -> tuple[Evidence, ...]:
    """Cut out every finding, each video read once; the order stays."""
    gathered: dict[int, Evidence] = {}
    by_video: dict[Path, list[int]] = {}
    for number, one in enumerate(occurrences):
        by_video.setdefault(one.episode.video, []).append(number)
    for video, numbers in by_video.items():
        if video.suffix.lower() == SUFFIX:
            landmarks = read_pose(video)
            gathered |= {number: _drawn(occurrences[number], number, landmarks, options) for number in numbers}
            continue
        cuttings = [_cutting(occurrences[number], number, options) for number in numbers]
        report = _reported(f"cutting clips out of {video.name}", progress)
        pictures = cut_out(video, cuttings, isolated=options.isolated, progress=report)
        for number, cutting, shown in zip(numbers, cuttings, pictures, strict=True):
            gathered[number] = _evidence(occurrences[number], cutting, shown, options)
    return tuple(gathered[number] for number in range(len(occurrences)))


def write_evidence_sheet(evidence: Sequence[Evidence], path: Path, titles: Sequence[str], *, overwrite: bool) -> bool:
    """A picture with a row for each of the first findings that may be shown; False if there is none."""
    rows = [SheetRow(title, one.pictures) for one, title in zip(evidence, titles, strict=True) if one.pictures][
        :MOST_ROWS
    ]
    if rows:
        write_picture(contact_sheet(rows), path, overwrite=overwrite)
    return bool(rows)


def clip_name(spotting: Spotting, number: int) -> str:
    """A file name that sorts by rank, says what it is, and is the same for the same finding."""
    readable = safe_name(f"{spotting.word}_{Path(spotting.video_id).name}")
    digest = hashlib.sha256(spotting.spotting_id.encode()).hexdigest()[:6]
    return f"{number + 1:03}_{readable}_{spotting.span_ms.start}ms_{digest}.mp4"


def safe_name(text: str) -> str:
    """Letters, digits, dots and dashes of a text, for the name of a file.

    >>> safe_name("and/or: really?")
    'and_or_really'
    """
    return _UNSAFE.sub("_", text)[:_LONGEST_NAME].strip("_.") or "clip"


def _cutting(one: Occurrence, number: int, options: EvidenceOptions) -> Cutting:
    span = one.spotting.span_ms
    span = MillisSpan.of(span.start, min(max(span.stop, span.start + 1), span.start + LONGEST_MS // 2))
    context = max(options.context_ms, -(-(options.least_ms - span.duration) // 2))
    span = span.padded(context, context)
    allowed = may(one.episode.rights, "export_clips", options.today, rights_cleared=options.rights_cleared)
    return Cutting(span_ms=span, path=options.folder / clip_name(one.spotting, number) if allowed else None)


def _evidence(one: Occurrence, cutting: Cutting, pictures: tuple[Pixels, ...], options: EvidenceOptions) -> Evidence:
    rights = one.episode.rights
    # Somebody's own footage may be looked at on their own screen unless its rights forbid it.
    shown = pictures if may(rights, "display", options.today, rights_cleared=True) else ()
    withheld = ""
    if cutting.path is None:
        silent = rights.may_export_clips is None
        withheld = "its rights do not say that clips may be cut out" if silent else "its rights allow no clips"
    return Evidence(one, cutting.path, shown, withheld)


def _drawn(one: Occurrence, number: int, landmarks: SignerLandmarks, options: EvidenceOptions) -> Evidence:
    """What can be shown of landmarks that stand for a video."""
    span = landmarks.track.axis.frames_in(_cutting(one, number, options).span_ms)
    is_allowed = may(one.episode.rights, "display", options.today, rights_cleared=True)
    shown = tuple(skeletons(landmarks, span)) if is_allowed else ()
    return Evidence(one, None, shown, "its landmarks hold no pictures to cut out")


def _reported(step: str, progress: Progress | None) -> Callable[[float, float | None], None]:
    def report(done_ms: float, expected_ms: float | None) -> None:
        if progress is not None:
            progress(step, done_ms, expected_ms)

    return report
