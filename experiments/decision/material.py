"""Real signing that a model never saw, as passages with known truth and dictionaries to search them with."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from experiments.lib.landmark_model import (
    Fold,
    RealSigning,
    RecordedSign,
    StitchOptions,
    at_house_rate,
    multi_rate_windows,
    recorded_sign,
    sign_window,
    stitched,
)

from signspot.domain.recordings import Entry, Word, normalise
from signspot.domain.time import FRAME_MS, FRAME_RATE, FrameSpan, TimeAxis
from signspot.domain.tracks import (
    CLIP_LENGTH,
    LANDMARK_DIM,
    EntryVectors,
    FloatArray,
    RateTrack,
    WindowGrid,
    in_picture_heights,
)
from signspot.embedding.landmarks import LENGTHS, Rates
from signspot.formats.pose import read_pose
from signspot.models.embedders import LandmarkEmbedder

# How fast and how fully signs are signed: as in running signing, as in careful sentences, and in between.
STYLES = (
    StitchOptions(speed=(1.2, 1.8), cut=(0.05, 0.2), bridge=(3, 7)),
    StitchOptions(speed=(0.9, 1.3), cut=(-0.05, 0.1), bridge=(3, 10)),
    StitchOptions(speed=(0.8, 1.5), cut=(0.0, 0.15), bridge=(2, 8)),
)
SIGNS = (4, 12, 40, 120)  # in a passage: from a sentence to some minutes
_SHORT = 12  # signs: as much as is searched around a subtitle
PER_EMBEDDING = 512
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # words that are searched for at once
THERE = 0.2  # of the words of a search: whoever searches a video does not know what is in it
_REPEATED = 16  # words in all the repeated searches of a passage
_MOST_ENTRIES = 5
_USUAL = sorted(range(len(LENGTHS)), key=lambda place: LENGTHS[place] != CLIP_LENGTH)  # the usual length first


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """A passage as a model sees it, and when which word is signed in it."""

    track: RateTrack
    words: tuple[Word, ...]  # (n,) signed, in order
    spans: tuple[FrameSpan, ...]  # (n,)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Passages, and clips of words to search them with."""

    name: str
    passages: tuple[Passage, ...]
    clips: Mapping[Word, FloatArray]  # (n_clips, d) unit rows of each word
    fingerprint: str

    def entries(self, word: Word, n: int, rng: np.random.Generator) -> EntryVectors:
        """Up to `n` clips of a word, drawn."""
        own = self.clips[word]
        rows = own if len(own) <= n else own[rng.permutation(len(own))[:n]]
        named = tuple(Entry(entry_id=f"{word} {number}", word=word) for number in range(len(rows)))
        return EntryVectors(word, named, rows, self.fingerprint)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One search: some words in one passage."""

    passage: Passage
    words: tuple[EntryVectors, ...]


def track_of(points: FloatArray, model: LandmarkEmbedder, name: str = "") -> RateTrack:
    """Landmarks (n, 258) as `spot` sees them, rounded as in the store."""
    rates = [model.embed(windows).astype(np.float16) for windows in multi_rate_windows(points, Rates())]
    usual, *others = (rates[place] for place in _USUAL)
    axis = TimeAxis(FRAME_MS * np.arange(len(points), dtype=np.float64))
    lengths = tuple(LENGTHS[place] for place in _USUAL)
    return RateTrack(
        name, WindowGrid(len(points)), axis, usual, model.fingerprint, other_rates=tuple(others), lengths=lengths
    )


def vectors_of(signs: Sequence[RecordedSign], model: LandmarkEmbedder) -> FloatArray:
    """One unit row for each clip."""
    parts = [signs[first : first + PER_EMBEDDING] for first in range(0, len(signs), PER_EMBEDDING)]
    return np.concatenate([model.embed(np.stack([sign_window(one.points) for one in part])) for part in parts])


def material_of(
    name: str,
    signs: Sequence[RecordedSign],
    dictionary: Sequence[RecordedSign],
    model: LandmarkEmbedder,
    seed: int,
    *,
    n_signs: int = 528,
) -> Material:
    """Stitch `n_signs` clips, those of one signer together where signers are known, and embed everything.

    Where there are fewer clips, they come again, in another order and at another speed.
    """
    rng = np.random.default_rng(seed)
    passages: list[Passage] = []
    drawn = np.concatenate([rng.permutation(len(signs)) for _ in range(-(-n_signs // len(signs)))])
    chosen = [signs[place] for place in drawn[:n_signs].tolist()]
    by_signer: dict[str, list[RecordedSign]] = {}
    for sign in chosen:
        by_signer.setdefault(sign.signer, []).append(sign)
    order = [sign for own in by_signer.values() for sign in own]
    first = 0
    while first < len(order) - 1:
        some = order[first : first + SIGNS[len(passages) % len(SIGNS)]]
        made = stitched(some, rng, STYLES[len(passages) % len(STYLES)])
        passages.append(
            Passage(
                track_of(made.points, model, f"{name} {len(passages)}"),
                tuple(one.word for one in made.signs),
                tuple(one.span for one in made.signs),
            )
        )
        first += len(some)
    rows, clips = vectors_of(dictionary, model), dict[Word, list[FloatArray]]()
    for sign, row in zip(dictionary, rows, strict=True):
        clips.setdefault(sign.word, []).append(row)
    return Material(name, tuple(passages), {word: np.stack(own) for word, own in clips.items()}, model.fingerprint)


def trials(material: Material, seed: int, n: int, *, is_read: bool = False) -> Iterator[Trial]:
    """Searches of passages: 1 to 256 words, 1 to 5 clips of each, words that are there and words that are not.

    Searches for few words are repeated with others, so that all sizes have enough of them, and long passages are
    searched as often as short ones. With subtitles (`is_read`), passages are short and the words are those that a
    subtitle might mention: hardly more than are signed.
    """
    rng, known = np.random.default_rng(seed), sorted(material.clips)
    by_length = [
        [one for one in material.passages if len(one.words) == n_signs]
        for n_signs in SIGNS
        if n_signs <= _SHORT or not is_read
    ]
    by_length = [some for some in by_length if some]
    for number in range(n):
        some = by_length[number // len(SIZES) % len(by_length)]
        passage = some[int(rng.integers(len(some)))]
        signed = [word for word in dict.fromkeys(passage.words) if word in material.clips]
        absent = sorted(set(known) - set(passage.words))
        size = SIZES[number % len(SIZES)]
        for _ in range(1 if is_read else max(1, _REPEATED // size)):
            n_there = int(rng.binomial(size, THERE))
            if is_read:
                size = max(1, round(len(signed) * rng.uniform(0.8, 2.0)))
                n_there = round(rng.uniform(0.3, 1.0) * len(signed))
            there = [signed[place] for place in rng.permutation(len(signed))[:n_there].tolist()]
            others = [absent[place] for place in rng.permutation(len(absent))[: max(0, size - len(there))].tolist()]
            n_clips = int(rng.integers(1, _MOST_ENTRIES, endpoint=True))
            words = tuple(material.entries(word, n_clips, rng) for word in (*there, *others))
            if words:
                yield Trial(passage, words)


# The sets. What may be fitted on: WLASL and PopSign. Auslan-Daily and aslearn are for checking only.


def fold_signs(fold: Fold) -> tuple[list[RecordedSign], list[RecordedSign]]:
    """Held-out words of wlasl300 by held-out signers, and clips of all held-out words to search for them with."""
    return list(fold.query), list(fold.support)


def same_signer_signs(real: RealSigning, unknown: set[Word]) -> tuple[list[RecordedSign], list[RecordedSign]]:
    """Of words nobody learned: clips of signers who signed the word twice, and everybody's other clips."""
    own: dict[tuple[Word, str], list[RecordedSign]] = {}
    for item in real.wlasl300:
        if not item.is_repeat and item.sign.word in unknown:
            own.setdefault((item.sign.word, item.sign.signer), []).append(item.sign)
    twice = [signs for signs in own.values() if len(signs) > 1]
    return [signs[0] for signs in twice], [one for signs in own.values() for one in (signs[1:] or signs)]


def hands_signs(data: Path, unknown_to: set[Word]) -> tuple[list[RecordedSign], list[RecordedSign]]:
    """WLASL2000, hands on a body of the usual place and size: words outside a vocabulary; test and val, train."""
    folder = data / "wlasl2000_hands"
    found = importlib.util.spec_from_file_location("wlasl2000_hands_load", folder / "load.py")
    if found is None or found.loader is None:
        raise FileNotFoundError(folder / "load.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    hands, offsets = module.load(folder)
    body = usual_body(data)
    passages: list[RecordedSign] = []
    dictionary: list[RecordedSign] = []
    with (folder / "clips.csv").open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            word, clip = normalise(row["word"]), hands[offsets[number] : offsets[number + 1]]
            if word in unknown_to or len(clip) < CLIP_LENGTH // 2:
                continue
            sign = recorded_sign(word, "", in_picture_heights(_on_body(clip, body), _ASPECT))
            (dictionary if row["split"] == "train" else passages).append(sign)
    return passages, dictionary


_ASPECT = 4 / 3  # of most pictures of WLASL
_SHOULDERS, _WIDTH = (0.529, 0.513), 0.252  # of the picture: their middle, and how far they are apart
_MIDDLE = 0.56  # a single hand to the right of it in the picture is the signer's left
_FAR = 0.25  # of the picture: a hand that was not seen yet may be as near


def usual_body(data: Path) -> FloatArray:
    """(132,) the median pose of wlasl300, where the shoulders of WLASL usually are."""
    points = np.load(data / "wlasl300_landmarks" / "landmarks.npz")["X"].reshape(-1, LANDMARK_DIM)[::20, :132]
    seen = points.astype(np.float32)
    seen = seen[np.isfinite(seen).all(axis=1) & seen.any(axis=1)].reshape(-1, 33, 4)
    middle = seen[:, (11, 12), :2].mean(axis=1)
    width = np.linalg.norm(seen[:, 11, :2] - seen[:, 12, :2], axis=1)
    seen[..., :2] = (seen[..., :2] - middle[:, None]) / width[:, None, None]
    seen[..., 2] /= width[:, None]
    body = np.median(seen, axis=0)
    body[:, :2] = body[:, :2] * _WIDTH + np.array(_SHOULDERS)
    body[:, 2] *= _WIDTH
    return np.asarray(body.reshape(132), np.float32)


def _on_body(hands: FloatArray, body: FloatArray) -> FloatArray:
    """Hands (n, 2, 21, 3) in the order of detection -> (n, 258), each hand followed from frame to frame."""
    points = np.zeros((len(hands), LANDMARK_DIM), np.float32)
    pose = np.tile(body, (len(hands), 1)).reshape(len(hands), 33, 4)
    pose[:, (15, 16), 3] = 0.1  # wrists that are not seen
    last: list[npt.NDArray[np.float32] | None] = [None, None]
    for frame, pair in enumerate(hands):
        seen = [hand for hand in pair if hand.any()]
        for side, hand in _sides(seen, last):
            points[frame, 132 + 63 * side : 195 + 63 * side] = hand.ravel()
            pose[frame, 15 + side, :2], pose[frame, 15 + side, 3] = hand[0, :2], 1
            last[side] = hand[0, :2]
    points[:, :132] = pose.reshape(len(hands), 132)
    return points


def _sides(seen: Sequence[FloatArray], last: Sequence[npt.NDArray[np.float32] | None]) -> list[tuple[int, FloatArray]]:
    """Which of the hands seen is the left (0) and which the right (1)."""

    def way(hand: FloatArray, side: int) -> float:
        place = last[side]
        return _FAR if place is None else float(np.linalg.norm(hand[0, :2] - place))

    if not seen:
        return []
    if len(seen) == 1:
        if last[0] is None and last[1] is None:
            return [(0 if seen[0][0, 0] > _MIDDLE else 1, seen[0])]
        return [(0 if way(seen[0], 0) < way(seen[0], 1) else 1, seen[0])]
    first, second = seen[:2]
    if last[0] is None or last[1] is None:
        is_left = bool(first[0, 0] > second[0, 0])
    else:
        is_left = way(first, 0) + way(second, 1) <= way(first, 1) + way(second, 0)
    return [(0, first), (1, second)] if is_left else [(1, first), (0, second)]


def popsign_signs(folder: Path) -> list[RecordedSign]:
    """Clips of PopSign as `signspot landmarks` wrote them; of several words for a clip the first counts."""
    signs: list[RecordedSign] = []
    for path in sorted(folder.glob("*.pose")):
        read = read_pose(path)
        named = path.stem.partition("__")[2].split(",")[0].split("-")[0].strip()
        points = in_picture_heights(read.track.points, read.aspect)
        if named and len(points) >= CLIP_LENGTH // 2:
            signs.append(recorded_sign(normalise(named), "popsign", points))
    return signs


def auslan_signs(data: Path) -> tuple[list[RecordedSign], list[RecordedSign]]:
    """Auslan-Daily: test clips, and training clips as the dictionary."""
    folder = data / "auslan_daily"
    arrays = np.load(folder / "landmarks.npz")
    points, offsets, aspects = arrays["X"], arrays["offsets"], arrays["aspect"]
    parts: dict[str, list[RecordedSign]] = {"train": [], "dev": [], "test": []}
    with (folder / "clips.csv").open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            clip = points[offsets[number] : offsets[number + 1]].astype(np.float32)
            if len(clip) >= 5:
                seconds = np.arange(len(clip)) / FRAME_RATE
                own = at_house_rate(in_picture_heights(clip, float(aspects[number])), seconds)
                parts[row["split"]].append(recorded_sign(normalise(row["word"]), "", own))
    return parts["test"], parts["train"]
