"""Refusing material that nothing could be learned from: columns that do not fit, what is no number, other trunks."""

from __future__ import annotations

import numpy as np

from signspot.domain.tracks import FloatArray
from signspot.errors import InputError
from signspot.learning.material import Ints, Material, Passages

_MAKE_AGAIN = "make the material again"
_FRAMES = 1 << 40  # beyond it lies damage


def check_material(material: Material, where: str) -> None:
    """Raise InputError unless all columns fit together; the rows of tracks are not read."""
    if not len(material.vocabulary):
        raise InputError(where, "has an empty vocabulary", "use a dictionary with at least one word")
    if not material.fingerprint:
        raise InputError(where, "does not say which trunk made its vectors", _MAKE_AGAIN)
    _check_entries(material, where)
    dim = material.entry_vectors.shape[1]
    for number, track in enumerate(material.tracks):
        if track.ndim != 2 or track.shape[1] != dim or track.dtype not in (np.float16, np.float32):
            what = f"track {number} has {track.dtype} rows of shape {track.shape[1:]}, the entries vectors of {dim}"
            raise InputError(where, what, f"vectors of one trunk belong together: {_MAKE_AGAIN}")
    _check_passages(material.passages, len(material.tracks), len(material.vocabulary), where)


def refuse_other_trunk(material: Material, other: Material, where: str) -> None:
    """Raise InputError unless both hold vectors of the same trunk over the same words."""
    if material.fingerprint != other.fingerprint:
        what = f"its vectors come from the trunk {other.fingerprint[:12]}, not {material.fingerprint[:12]}"
        raise InputError(where, what, "vectors of different trunks cannot be compared: make both with one model")
    if material.vocabulary.words != other.vocabulary.words:
        raise InputError(where, "its vocabulary is another one", "make both with one dictionary")


def _check_entries(material: Material, where: str) -> None:
    vectors, words = material.entry_vectors, material.entry_word
    if vectors.ndim != 2 or not vectors.shape[1] or not len(vectors) == len(words) == len(material.entry_ids):
        counts = f"{len(material.entry_ids)} dictionary entries, {len(words)} words, vectors of shape {vectors.shape}"
        raise InputError(where, counts, _MAKE_AGAIN)
    if not len(vectors):
        raise InputError(where, "has no dictionary entries", "use a dictionary with at least one clip")
    _refuse_outside(words, len(material.vocabulary), f"{where}: words of entries")
    refuse_not_finite(vectors, material.entry_ids, where)


def refuse_not_finite(vectors: FloatArray, names: tuple[str, ...], where: str) -> None:
    """Raise InputError naming the first row (n, d) that holds what is no number."""
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        name = names[int(is_finite.argmin())]
        raise InputError(where, f"{name}: its vector holds what is no number", "extract its features again")


def _check_passages(passages: Passages, n_tracks: int, n_words: int, where: str) -> None:
    columns = (
        *(passages.track, passages.start, passages.stop),
        *(passages.label, passages.label_frame, passages.confidence),
    )
    offsets = passages.word_offsets
    lengths = {len(passages), len(offsets) - 1, *(len(column) for column in columns)}
    if len(lengths) != 1:
        raise InputError(where, f"columns of passages of different lengths: {sorted(lengths)}", _MAKE_AGAIN)
    if offsets[0] != 0 or offsets[-1] != len(passages.words) or (np.diff(offsets) < 0).any():
        raise InputError(where, "the words of passages do not follow one another", _MAKE_AGAIN)
    _refuse_outside(passages.track, n_tracks, f"{where}: tracks of passages")
    _refuse_outside(passages.label, n_words, f"{where}: labels of passages")
    _refuse_outside(passages.words, n_words, f"{where}: words of passages")
    for name in ("start", "stop", "label_frame"):
        _refuse_outside(getattr(passages, name), _FRAMES, f"{where}: {name} of passages")
    if not ((passages.confidence >= 0) & (passages.confidence <= 1)).all():
        raise InputError(where, "holds a confidence that is not between 0 and 1", _MAKE_AGAIN)


def _refuse_outside(numbers: Ints, limit: int, where: str) -> None:
    if numbers.dtype != np.int64 or ((numbers < 0) | (numbers >= limit)).any():
        raise InputError(where, f"are not whole numbers from 0 to {limit - 1}", _MAKE_AGAIN)
