"""What there is to learn from, as columns: tracks of trunk vectors, labelled passages, dictionary entries."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Annotation, Rights, Subtitle, Synonyms, Vocabulary, Word, normalise
from signspot.domain.time import FrameSpan, TimeAxis
from signspot.domain.tracks import FloatArray, Ints, Vectors
from signspot.errors import FormatError, InputError
from signspot.evaluation.protocol import draw_unseen_words
from signspot.files.atomic import atomic_output, new_folder, refuse_folder
from signspot.files.intake import require_file, unreadable
from signspot.files.json import write_json
from signspot.files.tables import read_manifest
from signspot.text.words import find_words

SynonymKind = Literal["english", "sign"]
_NONE: Mapping[SynonymKind, Synonyms] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """Stretches of video with one labelled sign and the words of their subtitle: M and S of Paper 3, joined."""

    names: tuple[str, ...]  # to name them in messages
    track: Ints  # (P,) which track
    start: Ints  # (P,) first frame of the passage in its video
    stop: Ints  # (P,) behind its last frame
    label: Ints  # (P,) the annotated word, as its place in the vocabulary
    label_frame: Ints  # (P,) in the video
    confidence: FloatArray  # (P,) of the annotation
    word_offsets: Ints  # (P + 1,) the words of passage p are words[word_offsets[p] : word_offsets[p + 1]]
    words: Ints  # the words of the subtitle in the order of their mentions, repeats included, the label's among them

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, by_track: Sequence[Iterable[LabelledPassage]], vocabulary: Vocabulary) -> Self:
        numbered = [(track, passage) for track, passages in enumerate(by_track) for passage in passages]
        rows = [
            (track, one.span.start, one.span.stop, vocabulary.id_of(one.annotation.word), one.annotation.frame)
            for track, one in numbered
        ]
        track, start, stop, label, label_frame = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 5).T)
        return cls(
            names=tuple(passage.name for _, passage in numbered),
            track=track,
            start=start,
            stop=stop,
            label=label,
            label_frame=label_frame,
            confidence=np.array([passage.annotation.confidence for _, passage in numbered], np.float32),
            word_offsets=np.cumsum([0, *(len(passage.words) for _, passage in numbered)], dtype=np.int64),
            words=np.array([vocabulary.id_of(word) for _, passage in numbered for word in passage.words], np.int64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """A training or test set of trunk vectors. Row i of a track is the window of 16 frames that starts at frame i."""

    vocabulary: Vocabulary  # what word numbers mean
    tracks: Sequence[Vectors]
    passages: Passages
    entry_ids: tuple[str, ...]
    entry_vectors: FloatArray  # (E, d): of every dictionary entry, the mean of its clips' trunk vectors
    entry_word: Ints  # (E,)
    fingerprint: str  # of the trunk that made all vectors

    def check(self, where: str) -> None:
        """Raise InputError unless all columns fit together; the rows of tracks are not read."""
        if not len(self.vocabulary):
            raise InputError(where, "has an empty vocabulary", "use a dictionary with at least one word")
        if not self.fingerprint:
            raise InputError(where, "does not say which trunk made its vectors", _MAKE_AGAIN)
        vectors, words = self.entry_vectors, self.entry_word
        if vectors.ndim != 2 or not vectors.shape[1] or not len(vectors) == len(words) == len(self.entry_ids):
            counts = f"{len(self.entry_ids)} dictionary entries, {len(words)} words, vectors of shape {vectors.shape}"
            raise InputError(where, counts, _MAKE_AGAIN)
        if not len(vectors):
            raise InputError(where, "has no dictionary entries", "use a dictionary with at least one clip")
        _refuse_outside(words, len(self.vocabulary), f"{where}: words of entries")
        refuse_not_finite(vectors, self.entry_ids, where)
        dim = vectors.shape[1]
        for number, track in enumerate(self.tracks):
            if track.ndim != 2 or track.shape[1] != dim or track.dtype not in (np.float16, np.float32):
                what = f"track {number} has {track.dtype} rows of shape {track.shape[1:]}, the entries vectors of {dim}"
                raise InputError(where, what, f"vectors of one trunk belong together: {_MAKE_AGAIN}")
        _check_passages(self.passages, len(self.tracks), len(self.vocabulary), where)

    def label_counts(self, min_confidence: float = 0.5) -> dict[Word, int]:
        """How many passages each word labels with at least this confidence; words that label none are not there."""
        passages = self.passages
        labels = passages.label[passages.confidence >= np.float32(min_confidence)]
        numbers, counts = np.unique(labels, return_counts=True)
        words = self.vocabulary.words
        return {words[number]: int(count) for number, count in zip(numbers, counts, strict=True)}

    def numbers_of(self, words: tuple[Word, ...] | None) -> Ints:
        """The numbers of the test words: those of `words` that the vocabulary knows, or every word that is a label."""
        if words is None:
            return np.unique(self.passages.label)
        return np.array([self.vocabulary.id_of(word) for word in words if word in self.vocabulary], dtype=np.int64)

    def refuse_other_trunk(self, other: Material, where: str) -> None:
        """Raise InputError unless both hold vectors of the same trunk over the same words."""
        if self.fingerprint != other.fingerprint:
            what = f"its vectors come from the trunk {other.fingerprint[:12]}, not {self.fingerprint[:12]}"
            raise InputError(where, what, "vectors of different trunks cannot be compared: make both with one model")
        if self.vocabulary.words != other.vocabulary.words:
            raise InputError(where, "its vocabulary is another one", "make both with one dictionary")

    def write(self, folder: Path, *, synonyms: Mapping[SynonymKind, Synonyms] = _NONE, overwrite: bool = False) -> None:
        """Write material as a folder, whole or not at all; rows that hold what is no number are refused."""
        self.check(str(folder))
        lengths = np.array([len(track) for track in self.tracks], np.int64)
        arrays: dict[str, npt.NDArray[Any]] = {
            _LENGTHS: lengths,
            "entry_vectors.npy": self.entry_vectors.astype(np.float32, copy=False),
            "entry_word.npy": self.entry_word,
            **{f"passage_{name}.npy": getattr(self.passages, name) for name in _PASSAGE_COLUMNS},
        }
        with new_folder(folder, _OWN_FILES, overwrite=overwrite) as temporary:
            _write_rows(temporary / _ROWS, self.tracks, (int(lengths.sum()), self.entry_vectors.shape[1]))
            for name, array in arrays.items():
                with atomic_output(temporary / name) as file, file.open("xb") as stream:
                    np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
            content = {
                "format": _FORMAT,
                "version": 1,
                "fingerprint": self.fingerprint,
                "files": {name: file_sha256(temporary / name) for name in _ARRAYS},
                "vocabulary": list(self.vocabulary),
                "entries": list(self.entry_ids),
                "passages": list(self.passages.names),
            }
            write_json(content, temporary / _MANIFEST)
            for kind, pairs in synonyms.items():
                _write_synonyms(pairs, temporary, kind)

    @classmethod
    def read(cls, folder: Path, *, verify: bool = True) -> Self:
        """Open the material of a folder; `verify` reads it once to compare the checksums of all files."""
        refuse_missing(folder)
        content = read_manifest(folder / _MANIFEST, _FORMAT)
        checksums = content.get("files")
        if not isinstance(checksums, dict) or set(checksums) != set(_ARRAYS):
            raise FormatError(folder / _MANIFEST, 'does not name its files under "files"', _MAKE_AGAIN)
        for name in _ARRAYS:
            require_file(folder / name)
            if verify and file_sha256(folder / name) != checksums[name]:
                raise FormatError(folder / name, "does not have the checksum it was written with", _MAKE_AGAIN)
        arrays = {name: _array(folder / name) for name in _ARRAYS}
        try:
            vocabulary = Vocabulary(tuple(map(Word, _texts(folder, content, "vocabulary"))))
        except ValueError as error:
            raise FormatError(folder / _MANIFEST, str(error), _MAKE_AGAIN) from error
        rows, lengths = arrays[_ROWS], arrays[_LENGTHS]
        if (lengths < 0).any() or int(lengths.sum()) != len(rows):
            what = f"names {len(lengths)} tracks of {int(lengths.sum())} rows, but there are {len(rows)}"
            raise FormatError(folder / _LENGTHS, what, _MAKE_AGAIN)
        passages = Passages(
            names=_texts(folder, content, "passages"),
            **{name: arrays[f"passage_{name}.npy"] for name in _PASSAGE_COLUMNS},
        )
        material = cls(
            vocabulary=vocabulary,
            tracks=tuple(rows[stop - length : stop] for stop, length in zip(np.cumsum(lengths), lengths, strict=True)),
            passages=passages,
            entry_ids=_texts(folder, content, "entries"),
            entry_vectors=arrays["entry_vectors.npy"],
            entry_word=arrays["entry_word.npy"],
            fingerprint=str(content.get("fingerprint") or ""),
        )
        material.check(str(folder))
        return material


# Refuse material that nothing could be learned from: columns that do not fit, NaN, other trunks.

_MAKE_AGAIN = "make the material again"
_FRAMES = 1 << 40  # beyond it lies damage


def refuse_not_finite(vectors: FloatArray, names: tuple[str, ...], where: str) -> None:
    """Raise InputError naming the first row (n, d) that is not finite."""
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        name = names[int(is_finite.argmin())]
        raise InputError(where, f"{name}: its vector holds what is no number", "extract its features again")


def _check_passages(passages: Passages, n_tracks: int, n_words: int, where: str) -> None:
    offsets = passages.word_offsets
    columns = (getattr(passages, name) for name in _PASSAGE_COLUMNS[:6])  # one number per passage
    lengths = {len(passages), len(offsets) - 1, *map(len, columns)}
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


# Training material as a folder: everything that is learned from, without any video.
#
#     material.json            vocabulary, names, the trunk's fingerprint, the sha256 of every other file
#     rows.npy                 the rows of all tracks, one track after the other; (n_rows, d) float16 or float32
#     track_lengths.npy        how many rows each track has
#     entry_vectors.npy, entry_word.npy, passage_*.npy
#     synonyms-*.json          optional: pairs of words that may name the same sign
#
# Rows are mapped into memory, not read: a folder may be larger than memory.

_MANIFEST = "material.json"
_FORMAT, _SYNONYMS_FORMAT = "signspot-material", "signspot-synonyms"
_ROWS, _LENGTHS = "rows.npy", "track_lengths.npy"
_MAPPED = (_ROWS, "entry_vectors.npy")
_PASSAGE_COLUMNS = ("track", "start", "stop", "label", "label_frame", "confidence", "word_offsets", "words")
_ARRAYS = (_ROWS, _LENGTHS, "entry_vectors.npy", "entry_word.npy", *(f"passage_{n}.npy" for n in _PASSAGE_COLUMNS))
_SYNONYM_FILES: Mapping[SynonymKind, str] = {"english": "synonyms-english.json", "sign": "synonyms-sign.json"}
_OWN_FILES = frozenset((_MANIFEST, *_ARRAYS, *_SYNONYM_FILES.values()))
_ROWS_AT_ONCE = 4096


def refuse_material_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Raise if material cannot be written there, before hours are spent on making it."""
    refuse_folder(folder, _OWN_FILES, overwrite=overwrite)


def refuse_missing(folder: Path) -> None:
    """Raise if there is no such folder: nobody types the name of the manifest in it."""
    if not folder.is_dir():
        raise InputError(folder, "no such folder", "name a folder that `signspot train material` made")


def _write_synonyms(synonyms: Synonyms, folder: Path, kind: SynonymKind) -> None:
    pairs = sorted(pair for pair in synonyms.pairs if pair[0] < pair[1])
    content = {"format": _SYNONYMS_FORMAT, "version": 1, "pairs": [list(pair) for pair in pairs]}
    write_json(content, folder / _SYNONYM_FILES[kind])


def read_synonyms(folder: Path, kind: SynonymKind) -> Synonyms:
    path = folder / _SYNONYM_FILES[kind]
    if not path.is_file():
        fix = "make it again with WordNet's files at hand" if kind == "english" else _MAKE_AGAIN
        raise FormatError(folder, f"was made without {kind} synonyms", fix)
    pairs = read_manifest(path, _SYNONYMS_FORMAT).get("pairs")
    if not isinstance(pairs, list):
        raise FormatError(path, '"pairs" is not a list', "write the synonyms again")
    read: list[tuple[Word, Word]] = []
    for pair in pairs:
        try:
            first, second = pair if isinstance(pair, list) else [pair]
            read.append((normalise(first), normalise(second)))
        except (ValueError, TypeError, AttributeError) as error:
            raise FormatError(path, f"{str(pair)[:60]} is not a pair of words", "write the synonyms again") from error
    return Synonyms.of(read)


def _write_rows(path: Path, tracks: Sequence[Vectors], shape: tuple[int, int]) -> None:
    """All tracks in one file, block by block: together they may be larger than memory."""
    kind = np.result_type(*(track.dtype for track in tracks)) if tracks else np.dtype(np.float16)
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    with atomic_output(path) as file, file.open("xb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        for number, track in enumerate(tracks):
            for first in range(0, len(track), _ROWS_AT_ONCE):
                block = np.ascontiguousarray(track[first : first + _ROWS_AT_ONCE], kind)
                is_finite = np.isfinite(block).all(axis=1)
                if not is_finite.all():
                    what = f"row {first + int(is_finite.argmin())} of track {number} holds what is no number"
                    raise InputError(path.parent, what, "extract the features of its video again; nothing was written")
                stream.write(block.data)


def _array(path: Path) -> npt.NDArray[Any]:
    try:
        # Mapped, a header that promises more than the file holds is found out before any memory is taken.
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, EOFError) as error:
        raise FormatError(path, f"is not an array ({' '.join(str(error).split())[:100]})", _MAKE_AGAIN) from error
    n_dimensions = 2 if path.name in _MAPPED else 1
    floats = (np.float16, np.float32) if path.name == _ROWS else (np.float32,)
    kinds = floats if path.name in (*_MAPPED, "passage_confidence.npy") else (np.int64,)
    if array.ndim != n_dimensions or array.dtype not in kinds:
        raise FormatError(path, f"holds {array.dtype} numbers of shape {array.shape}", _MAKE_AGAIN)
    return array if path.name in _MAPPED else np.array(array)


def _texts(folder: Path, content: Mapping[str, object], key: str) -> tuple[str, ...]:
    texts = content.get(key)
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FormatError(folder / _MANIFEST, f"{key!r} is not a list of texts", _MAKE_AGAIN)
    return tuple(texts)


def file_sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


# From subtitles and annotations to labelled passages (Paper 4.1).
#
# A passage is a subtitle longer than 2 s with 2 s on both sides. An annotation labels the passages that hold it and
# whose subtitle mentions its word. Where none mentions it, it labels the passage whose subtitle is on screen at that
# moment, and its word stands before those of the subtitle: a sign that the subtitles leave out is still a sign.


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageOptions:
    """What counts as a passage; the defaults are the paper's (4.1)."""

    padding_ms: int = 2000  # on both sides of a subtitle
    min_subtitle_ms: int = 2000  # a subtitle is longer than this
    language: str = "en"  # of the subtitles


@dataclass(frozen=True, slots=True, eq=False)
class Footage:
    """One video with what is written and known about it."""

    video_id: str
    axis: TimeAxis
    subtitles: Sequence[Subtitle]
    annotations: Sequence[Annotation]

    def labelled_passages(
        self, vocabulary: Vocabulary, options: PassageOptions
    ) -> tuple[tuple[LabelledPassage, ...], Counter[str]]:
        """Every (subtitle, annotation) pair of a video that can be learned from, in the order of the annotations.

        Also how many annotations label no passage, by reason.
        """
        longer = [cue for cue in self.subtitles if cue.span_ms.duration > options.min_subtitle_ms]
        starts, stops = (np.array([getattr(cue.span_ms, end) for cue in longer]) for end in ("start", "stop"))
        mentions: dict[int, tuple[Word, ...]] = {}
        left_out: Counter[str] = Counter()
        found: list[LabelledPassage] = []
        for annotation in self.annotations:
            time_ms = self.axis.time_of(annotation.frame)
            is_near = (starts - options.padding_ms <= time_ms) & (time_ms < stops + options.padding_ms)
            near = [int(number) for number in np.flatnonzero(is_near)]
            for number in near:
                if number not in mentions:
                    words = find_words(longer[number].text, vocabulary, options.language)
                    mentions[number] = tuple(mention.word for mention in words)
            chosen = [number for number in near if annotation.word in mentions[number]]
            chosen = chosen or [number for number in near if starts[number] <= time_ms < stops[number]]
            if annotation.word not in vocabulary:
                left_out["the dictionary has no entry for the word"] += 1
            elif not near:
                left_out[f"no subtitle of over {options.min_subtitle_ms / 1000:g} s is near"] += 1
            elif not chosen:
                left_out["it lies between subtitles that do not mention its word"] += 1
            else:
                found += (_passage(self, longer[number], annotation, mentions[number], options) for number in chosen)
        return tuple(found), left_out


@dataclass(frozen=True, slots=True)
class LabelledPassage:
    """One passage with one label."""

    name: str
    span: FrameSpan
    annotation: Annotation
    words: tuple[Word, ...]  # in the order of their mentions, repeats included, the label's among them


def _passage(
    footage: Footage, cue: Subtitle, annotation: Annotation, words: tuple[Word, ...], options: PassageOptions
) -> LabelledPassage:
    span = footage.axis.frames_in(cue.span_ms.padded(options.padding_ms, options.padding_ms))
    all_words = words if annotation.word in words else (annotation.word, *words)
    name = f"{footage.video_id} at {cue.span_ms.start / 1000:.3f} s, {annotation.word} at frame {annotation.frame}"
    return LabelledPassage(name, span, annotation, all_words)


def unknown_rights_warning(used: Iterable[Rights]) -> tuple[str, ...]:
    """One line if rights of recordings that are learned from say nothing about training, none otherwise."""
    all_used = tuple(used)
    n_unknown = sum(rights.may_train is None for rights in all_used)
    what = f"{n_unknown} of {len(all_used)} recordings do not say whether they may be used for training"
    return (f"{what}: make sure that they may, and note it as may_train",) if n_unknown else ()


# Which words are trained and which are tested: a file, so that every run and every reader has the same.
#
# Whether the test words are seen in training is not the split's business: the paper trains on both parts (264 of 1,064
# words seen) or on the training words only (Paper 4.2).

_SPLIT_FORMAT = "signspot-split"
_CORRECT = "correct the file, or draw the split again"


@dataclass(frozen=True, slots=True)
class WordSplit:
    """Training and test words, both sorted, and where the choice comes from."""

    train: tuple[Word, ...]
    test: tuple[Word, ...]
    seed: int
    drawn: str  # how, in words

    def __post_init__(self) -> None:
        for name, words in (("training", self.train), ("test", self.test)):
            if not words:
                raise ValueError(f"no {name} words")
            if list(words) != sorted(set(words)):
                raise ValueError(f"the {name} words are not sorted, or one comes twice")
        if both := sorted(set(self.train) & set(self.test)):
            raise ValueError(f"{len(both)} words are for training and for the test, such as {both[0]!r}")

    @property
    def words(self) -> frozenset[Word]:
        """All of them: what is trained when the test words may be seen."""
        return frozenset((*self.train, *self.test))

    def write(self, path: Path, *, overwrite: bool = False) -> None:
        content = {"format": _SPLIT_FORMAT, "version": 1, "seed": self.seed, "drawn": self.drawn}
        write_json(content | {"train": list(self.train), "test": list(self.test)}, path, overwrite=overwrite)

    @classmethod
    def read(cls, path: Path) -> Self:
        content = read_manifest(path, _SPLIT_FORMAT)
        seed, drawn = content.get("seed", 0), content.get("drawn", "")
        if type(seed) is not int or seed < 0 or not isinstance(drawn, str):
            raise FormatError(path, '"seed" is not a whole number from 0, or "drawn" is not text', _CORRECT)
        try:
            return cls(_words(path, content, "train"), _words(path, content, "test"), seed, drawn)
        except ValueError as error:
            raise FormatError(path, str(error), _CORRECT) from error


def draw_split(counts: Mapping[Word, int], n_test: int, seed: int) -> WordSplit:
    """Draw test words of all frequencies from words and how often they are labelled, each at least once."""
    if seed < 0:
        raise InputError(f"seed {seed}", "is negative", "give a whole number from 0")
    if n_test >= len(counts):
        what = f"cannot be drawn from {len(counts)} labelled words"
        raise InputError(f"{n_test} test words", what, "leave at least one word to train on")
    words = sorted(counts)
    drawn = draw_unseen_words(np.array([counts[word] for word in words], np.int64), n_test, seed=seed)
    test = tuple(words[number] for number in drawn)
    how = f"one word from each of {n_test} strata of {len(counts)} words ordered by their number of labels"
    return WordSplit(tuple(sorted(set(words) - set(test))), test, seed, how)


def _words(path: Path, content: Mapping[str, object], key: str) -> tuple[Word, ...]:
    listed = content.get(key)
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise FormatError(path, f"{key!r} is not a list of words", _CORRECT)
    for word in listed:
        if not isinstance(word, str) or normalise(word) != word:
            raise FormatError(path, f"{str(word)[:40]!r} under {key!r} is not a word as signspot writes it", _CORRECT)
    return tuple(sorted(listed))
