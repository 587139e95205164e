"""What is kept of recordings and dictionary clips: look at it, check it, forget some of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from signspot.domain.time import Progress
from signspot.errors import InputError, Notice, one_line
from signspot.files.intake import is_there
from signspot.formats.pose import landmarks_beside
from signspot.media.video import media_sha256
from signspot.stores.features import DamagedCatalogue, FeatureStore, Kept, StoredTrack, is_store, open_store

SHORT = 12  # digits of a sha256 on the screen
_DIGITS = re.compile("[0-9a-f]{8,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRequest:
    """What the user asks about: everything, unless something is named."""

    folder: Path
    videos: tuple[Path, ...] = ()  # or names of recordings whose files are gone
    sha256s: tuple[str, ...] = ()  # whole, or their first digits
    model: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """What is kept of one thing that the user asked about."""

    asked: str  # "" where nothing was named
    kept: Kept
    remark: str = ""


@dataclass(frozen=True, slots=True)
class _Verified:
    """What a store holds, and what of it is damaged."""

    kept: Kept
    problems: tuple[Notice, ...]


def list_store(request: StoreRequest) -> tuple[Holding, ...]:
    with _opened(request.folder) as store:
        everything = Kept() if store is None else store.kept()
    return tuple(
        Holding(one.name, _joined([everything.of(sha256, one.model) for sha256 in one.media]), one.remark)
        for one in _asked(request, everything)
    )


def remove_from_store(request: StoreRequest) -> tuple[Holding, ...]:
    """Forget everything that the user asked about; returns what was removed."""
    with _opened(request.folder, open_store) as store:
        if store is None:
            return list_store(request)
        return tuple(
            Holding(one.name, _joined([store.remove(sha256, one.model) for sha256 in one.media]), one.remark)
            for one in _asked(request, store.kept())
        )


def verify_store(folder: Path, progress: Progress | None = None) -> _Verified:
    try:
        with _opened(folder) as store:
            if store is None:
                return _Verified(Kept(), ())
            lost = tuple(Notice(str(folder), warning) for warning in store.warnings)  # of a catalogue made anew
            return _Verified(store.kept(), (*lost, *store.verify(progress)))
    except DamagedCatalogue as damage:
        return _Verified(Kept(), (damage.notice(),))


def kept_record(folder: Path, holdings: Sequence[Holding]) -> dict[str, object]:
    kept = _joined([holding.kept for holding in holdings])
    clips: list[dict[str, object]] = [
        {
            "name": entry.key.name,
            "sha256": entry.key.media_sha256,
            "model": kept.model(entry.fingerprint),
            "fingerprint": entry.fingerprint,
            "part": entry.key.part,
            "bytes": entry.n_bytes,
        }
        for entry in kept.entries
    ]
    return {
        "store": str(folder), "recordings": [_track_record(track, kept) for track in kept.recordings()],
        "clips": [*clips, *(_track_record(track, kept) for track in kept.tracks if track.is_of_clip)],
        "unfinished": [{"sha256": one.media_sha256, "bytes": one.n_bytes} for one in kept.unfinished],
        "models": [asdict(total) for total in kept.totals()], "bytes": kept.n_bytes,
        "remarks": [holding.remark for holding in holdings if holding.remark],
    }  # fmt: skip


def _track_record(track: StoredTrack, kept: Kept) -> dict[str, object]:
    return {
        "name": track.video_id, "sha256": track.key.media_sha256, "model": kept.model(track.key.fingerprint),
        "fingerprint": track.key.fingerprint, "stride": track.key.stride,
        "kind": "landmarks" if track.is_landmarks else "windows", "rows": track.n_windows, "bytes": track.n_bytes,
        "partial": track.remarks.partial, "warnings": list(track.remarks.warnings),
    }  # fmt: skip


def _opened(folder: Path, opening: Callable[[Path], FeatureStore] = FeatureStore) -> FeatureStore | nullcontext[None]:
    """The store in a folder; none where nothing was ever kept, and nothing is made there."""
    return opening(folder) if is_store(folder) else nullcontext()


def _joined(parts: Sequence[Kept]) -> Kept:
    return Kept(
        tuple(dict.fromkeys(one for part in parts for one in part.tracks)),
        tuple(dict.fromkeys(one for part in parts for one in part.entries)),
        tuple(dict.fromkeys(one for part in parts for one in part.unfinished)),
        {fingerprint: name for part in parts for fingerprint, name in part.names.items()},
    )


# What the user named, by what the store knows it.


@dataclass(frozen=True, slots=True)
class _Asked:
    name: str = ""
    media: tuple[str | None, ...] = (None,)  # None: all
    model: str | None = None
    remark: str = ""


def _asked(request: StoreRequest, kept: Kept) -> tuple[_Asked, ...]:
    if not (request.videos or request.sha256s):
        return (_Asked(model=_known_model(request.model, kept) if request.model else None),)
    return (*(_video(video, kept) for video in request.videos), *(_digits(text, kept) for text in request.sha256s))


def _known_model(model: str, kept: Kept) -> str:
    found = kept.of(model=model)
    if not (found.tracks or found.entries):
        names = ", ".join(total.model for total in kept.totals()) or "of no model"
        raise InputError(f"--model {model}", "nothing of this model is kept", f"vectors are kept of: {names}")
    return model


def _video(video: Path, kept: Kept) -> _Asked:
    """A file is known by its content, and one that is gone by its name."""
    alike = _named(video, kept)
    if is_there(video):
        beside = landmarks_beside(video)
        media = tuple(media_sha256(path) for path in (video, beside) if path is not None)
        others = _short(alike - set(media))
        remark = f"{video}: another recording of this name is kept, too: --sha256 {others}" if others else ""
        return _Asked(str(video), media, remark=remark)
    if not alike:
        what = "there is no such file, and nothing of this name is kept"
        raise InputError(video, what, "`signspot store list` names what is")
    if len(alike) > 1:
        raise InputError(video, "several recordings of this name are kept", f"choose with --sha256: {_short(alike)}")
    return _Asked(str(video), tuple(alike))


def _named(video: Path, kept: Kept) -> set[str]:
    names = {one_line(name) for name in (str(video), video.name, video.stem)}
    tracks = (track.key.media_sha256 for track in kept.tracks if track.video_id in names)
    entries = (entry.key.media_sha256 for entry in kept.entries if entry.key.name in names)
    return {*tracks, *entries}


def _short(sha256s: set[str]) -> str:
    return ", ".join(sha256[:SHORT] for sha256 in sorted(sha256s))


def _digits(text: str, kept: Kept) -> _Asked:
    if not _DIGITS.fullmatch(text.lower()):
        raise InputError(f"--sha256 {text}", "is not the beginning of a sha256", "give 8 to 64 digits from 0-9 and a-f")
    known = {*kept.media, *(entry.key.landmarks_sha256 for entry in kept.entries)}
    found = tuple(sha256 for sha256 in sorted(known) if sha256.startswith(text.lower()))
    if len(found) > 1:
        raise InputError(f"--sha256 {text}", f"{len(found)} recordings begin so", "give more digits")
    return _Asked(text, found or ((text.lower(),) if len(text) == 64 else ()))  # files that no row speaks of go, too
