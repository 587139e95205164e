"""A judge of forms as a file: a table of numbers, read without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, Word
from signspot.domain.time import FrameSpan, silent
from signspot.domain.tracks import LANDMARK_DIM, Bools, FloatArray, Floats, Ints, in_picture_heights
from signspot.embedding.landmarks import landmark_file_of, landmarks_of
from signspot.embedding.model import Reading
from signspot.embedding.zoo import LEFT_OUT
from signspot.errors import DictionaryError, FormatError, VideoError
from signspot.evaluation.calibration import Logistic, fit_logistic
from signspot.files.arrays import Arrays, ArraysKind, load_arrays, save_arrays
from signspot.media.trim import trim_by_landmarks
from signspot.spotting.friends import Gallery, Relation, worth_showing
from signspot.stores.features import FeatureStore

# A judge of forms, fitted to clips of signs whose form is known, several by different people of each form.


_AXES = {"place": 8, "palm": 12, "shape": 20}  # of MEANS: what tells forms apart lies in so many directions
_RIDGE = 0.02  # share of the mean variance: rare numbers of a hand would count too much
_USUAL, _USUAL_PARTS = 90, 95  # percent
_CLIPS = (0.3, 0.3, 0.25, 0.15)  # how often a variant has one to four clips
_FORMS_AT_ONCE = 100  # about as many as a small dictionary has
_NEAREST = 4  # other forms that look most alike


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """Pairs of variants, and whether each pair is one form."""

    found: Differences  # in units of nothing: shares (p, 21), spread (p,), sizes (p, 2)
    same: Bools  # (p,)


def fit_judge(rows: FloatArray, alike: Ints, rng: np.random.Generator) -> FormJudge:
    """Fit to rows (n_forms, c, 782), c >= 2; `alike` (p, 2) are forms that differ in one part, the hardest to tell."""
    if rows.ndim != 3 or rows.shape[1] < 2 or rows.shape[2] != ROW or len(rows) < 2 or not len(alike):
        raise ValueError(f"a judge cannot learn from rows of shape {rows.shape} and {len(alike)} pairs")
    axes = {name: _axes(rows[..., numbers], _AXES[name]) for name, numbers in MEANS.items()}
    unit = np.stack([np.ones((2, 6)), np.zeros((2, 6))], axis=-1)
    blank = FormJudge(axes, unit, np.ones(N_SHARES), np.ones(len(PARTS)), Logistic((), (), (), 0.0))
    pairs = [_compared(blank, rows, alike, group, rng) for group in _groups(len(rows), alike)]
    found = Differences(
        *(np.concatenate([getattr(one.found, name) for one in pairs]) for name in Differences.__slots__)
    )
    same = np.concatenate([one.same for one in pairs])
    expected = _expected(found, same)
    shares = found.shares.astype(np.float64)
    for side in (0, 1):
        paths = slice(side * N_SIDE + len(MEANS), side * N_SIDE + N_SIDE - 1)
        shares[:, paths] /= expected[side, :, 0] + expected[side, :, 1] * found.sizes[:, side : side + 1]
    usual = np.maximum(np.percentile(shares[same], _USUAL, axis=0), 1e-3)
    told = Differences((shares / usual).astype(np.float32), found.spread, found.sizes)
    parts = np.maximum(np.percentile(told.largest[same], _USUAL_PARTS, axis=0), 1e-3)
    return FormJudge(axes, expected, usual, parts, fit_logistic(evidence(told), same))


def _axes(numbers: FloatArray, n_axes: int) -> FloatArray:
    """Linear discriminants of (n_forms, c, d), scaled so that clips of one form vary by 1: (d, k)."""
    n_forms, n_clips, n_numbers = numbers.shape
    centres = numbers.mean(axis=1)
    within = (numbers - centres[:, None]).reshape(-1, n_numbers).astype(np.float64)
    varying = within.T @ within / (n_forms * (n_clips - 1))
    between = np.cov(centres.T.astype(np.float64)) - varying / n_clips
    ridge = max(_RIDGE * np.trace(varying) / n_numbers, 1e-9)
    spread, axes = np.linalg.eigh(varying + ridge * np.eye(n_numbers))
    white = axes / np.sqrt(spread)
    _, best = np.linalg.eigh(white.T @ between @ white)
    kept: FloatArray = (white @ best[:, ::-1][:, :n_axes]).astype(np.float32)
    return kept


def _groups(n_forms: int, alike: Ints) -> Iterator[Ints]:
    """Forms in groups like small dictionaries, those that are alike in one of them."""
    family = np.arange(n_forms)
    for one, other in alike.tolist():
        family[family == family[other]] = family[one]
    order = np.argsort(family, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(family[order]) > 0])
    first = 0
    for start in [*starts[1:].tolist(), n_forms]:
        if start - first >= _FORMS_AT_ONCE or start == n_forms:
            yield order[first:start]
            first = start


def _compared(blank: FormJudge, rows: FloatArray, alike: Ints, group: Ints, rng: np.random.Generator) -> _Compared:
    """Two dictionaries of the same forms by other people: each form with itself, its like, and what looks like it."""
    number = {form: place for place, form in enumerate(group.tolist())}
    first, second = _drawn(rows[group], rng)
    found = blank.differences(first, second)
    n = len(group)
    wanted = np.zeros((n, n), dtype=bool)
    for one, other in alike.tolist():
        if one in number:
            wanted[number[one], number[other]] = wanted[number[other], number[one]] = True
    apart = found.shares[..., : len(MEANS)].max(axis=-1)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1)[:, : min(_NEAREST, n - 1)]
    np.put_along_axis(wanted, nearest, values=True, axis=1)
    np.fill_diagonal(wanted, val=True)
    chosen = Differences(found.shares[wanted], found.spread[wanted], found.sizes[wanted])
    return _Compared(chosen, np.eye(n, dtype=bool)[wanted])


def _drawn(rows: FloatArray, rng: np.random.Generator) -> tuple[Variants, Variants]:
    """Some clips of every form for one dictionary, some others for another; rows (n, c, 782)."""
    n_forms, n_clips, _ = rows.shape
    most = min(n_clips // 2, len(_CLIPS))
    odds = np.array(_CLIPS[:most]) / sum(_CLIPS[:most])
    sides: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    for form in range(n_forms):
        halves = np.array_split(rng.permutation(n_clips), 2)
        for side, half in zip(sides, halves, strict=True):
            side.append(rows[form, half[: int(rng.choice(most, p=odds)) + 1]])
    return variants_of(sides[0]), variants_of(sides[1])


def _expected(found: Differences, same: Bools) -> Floats:
    """(2, 6, 2) what paths of one form differ by: a constant and a share of their size, by weighted least squares."""
    expected = np.empty((2, 6, 2))
    for side in (0, 1):
        size = found.sizes[same, side].astype(np.float64)
        weight = 1 / (0.002 + 0.05 * size)
        for pace in range(6):
            residue = found.shares[same, side * N_SIDE + len(MEANS) + pace]
            expected[side, pace] = _line(weight, weight * size, weight * residue)
    return np.maximum(expected, 1e-7)


def _line(constant: Floats, slope: Floats, wanted: Floats) -> Floats:
    """(2,) the factors, none below 0, with which two columns come nearest to what is wanted."""
    both, *_ = np.linalg.lstsq(np.stack([constant, slope], axis=1), wanted, rcond=None)
    if both.min() >= 0:
        return np.asarray(both)
    alone = [max(float(column @ wanted) / max(float(column @ column), 1e-12), 0.0) for column in (constant, slope)]
    return np.array([alone[0], 0.0] if both[1] < 0 else [0.0, alone[1]])


# Two dictionaries side by side, their signs compared part by part: what differs in no part is the same form.
#
# All clips of a variant speak for it together: what one signer does in an own way, others do not.


LEAST_LOG_ODDS = 1.5  # of one form; see experiments/friends
_VARIANTS_AT_ONCE = 64
_SURELY_LEFT = -0.3  # most people sign with the right hand: a little more motion of the left one says nothing


@dataclass(frozen=True, slots=True)
class FormFriends:
    """Two words of two languages, by the two clips that differ least."""

    relation: Relation
    entry: Entry  # of the first dictionary
    other: Entry  # of the second
    closeness: float  # log odds that the form is one; called as in `Friends`, so that both are measured alike
    agree: tuple[str, ...]  # the parts in which the two agree
    differ: tuple[str, ...]

    @property
    def likeness(self) -> str:
        """How alike the two are, for people."""
        return f"{_agreement(self.agree, self.differ)}; log odds {self.closeness:.1f}"


def _agreement(agree: tuple[str, ...], differ: tuple[str, ...]) -> str:
    """Which parts agree, for people.

    >>> _agreement(("place", "movement", "palm"), ("hand shape",))
    'same place, movement and palm; hand shape differs'
    """
    if not differ:
        return "all parts agree"
    names, verb = _listed(differ), "differs" if len(differ) == 1 else "differ"
    return f"same {_listed(agree)}; {names} {verb}" if agree else f"{names} differ"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def form_friends(
    first: Gallery, second: Gallery, judge: FormJudge, least_log_odds: float = LEAST_LOG_ODDS
) -> tuple[FormFriends, ...]:
    """All pairs worth showing, as `friends` gives them; the vectors of the shelves are those of `form_row`."""
    if not first.entries or not second.entries:
        return ()
    one, other = _Forms.of(first), _Forms.of(second)
    shape = len(one.words), len(other.words)
    odds = np.full(shape, -np.inf, np.float32)
    best = np.zeros((*shape, 2), np.int64)  # the variants that are most likely one form
    parts = np.zeros((*shape, len(PARTS)), np.float32)
    for start in range(0, len(one.word), _VARIANTS_AT_ONCE):
        chosen = range(start, min(start + _VARIANTS_AT_ONCE, len(one.word)))
        found = judge.differences(variants_of([one.rows[number] for number in chosen]), variants_of(other.rows))
        likely, apart = judge.log_odds(found), judge.parts(found)
        for i, number in enumerate(chosen):
            for j in range(len(other.word)):
                at = one.word[number], other.word[j]
                if likely[i, j] > odds[at]:
                    odds[at], best[at] = likely[i, j], (number, j)
                    parts[at] = apart[i, j]
    same_form = odds >= least_log_odds
    pairs: list[FormFriends] = []
    for i, j in worth_showing(one.words, other.words, same_form):
        relation = Relation.of(same_word=one.words[i] == other.words[j], same_form=bool(same_form[i, j]))
        entry_at, other_at = _closest(judge, one, other, best[i, j])
        shown = first.entries[entry_at], second.entries[other_at]
        pairs.append(FormFriends(relation, *shown, float(odds[i, j]), *agreement(parts[i, j])))
    order = list(Relation)
    return tuple(
        sorted(pairs, key=lambda one: (order.index(one.relation), -one.closeness, one.entry.word, one.other.word))
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Forms:
    """A dictionary by its variants."""

    words: list[Word]
    word: list[int]  # of each variant
    places: list[Ints]  # of its entries
    rows: list[FloatArray]  # (n, 782) of its clips, told as by right-handers

    @classmethod
    def of(cls, gallery: Gallery) -> _Forms:
        words, rows = gallery.words(), as_right_handers(gallery)
        number = {word: place for place, word in enumerate(words)}
        places: dict[tuple[int, str], list[int]] = {}
        for place, entry in enumerate(gallery.entries):
            places.setdefault((number[entry.word], entry.variant), []).append(place)
        own = [np.array(found) for found in places.values()]
        return cls(words, [word for word, _ in places], own, [rows[found] for found in own])


def as_right_handers(gallery: Gallery) -> FloatArray:
    """(n, 782): every clip, or its mirror image, by which hand its signer leads with.

    Where the dictionary does not say it, the hand that moves more leads, in all clips of a signer together.
    """
    if gallery.vectors.shape[1:] != (SEEN,):
        raise ValueError(f"vectors of shape {gallery.vectors.shape} are no parts of signs")
    leads: dict[str, float] = {}
    for place, entry in enumerate(gallery.entries):
        lead = float(np.clip(gallery.vectors[place, -1], -1, 1))
        leads[_person(entry)] = leads.get(_person(entry), 0.0) + lead
    left = np.array([_is_left_handed(entry, leads) for entry in gallery.entries])
    rows: FloatArray = np.where(left[:, None], gallery.vectors[:, ROW : 2 * ROW], gallery.vectors[:, :ROW])
    return rows


def _person(entry: Entry) -> str:
    """Who signs; where that is not known, everybody is somebody else."""
    return entry.signer.signer_id if entry.signer and entry.signer.signer_id else f"\0{entry.entry_id}"


def _is_left_handed(entry: Entry, leads: dict[str, float]) -> bool:
    if entry.signer is not None and entry.signer.left_handed is not None:
        return entry.signer.left_handed
    return leads[_person(entry)] < _SURELY_LEFT


def _closest(judge: FormJudge, one: _Forms, other: _Forms, variants: Sequence[int]) -> tuple[int, int]:
    """The two clips of two variants that differ least, to be shown."""
    own, theirs = one.places[variants[0]], other.places[variants[1]]
    sides = (one.rows[variants[0]], other.rows[variants[1]])
    apart = judge.differences(*(Variants(rows, tuple(np.arange(len(rows))[:, None])) for rows in sides)).largest
    row, column = np.unravel_index(int(apart.max(axis=2).argmin()), apart.shape[:2])
    return int(own[row]), int(theirs[column])


# A sign as its parts: where the hand is, how it moves, how the palm is turned, its shape; the same of the other hand.
#
# Signs that differ in one part only (minimal pairs) look alike to a single vector: everything else agrees. So a sign
# is kept as a row of its parts, which are compared one by one (see `form_judge`). Rows are told as if by right-
# handers, in shoulder widths from between the shoulders; depth counts from the shoulders. Time is 32 frames from where
# the hands begin to move to where they rest again; the sign itself, without the way up and down, lies in the middle of
# it.


N_FRAMES = 32  # of a whole sign with its way up and down
_PLACED = slice(6, 26)  # of them: the sign itself
CORE = slice(8, 25)  # of them: surely the sign, whoever signs it
_QUARTERS = (slice(5, 11), slice(11, 16), slice(16, 21), slice(21, 27))  # a shape and a palm may change

_SHOULDERS = (11, 12)  # of the pose
_ARMS = ((14, 16, 18, 20, 22), (13, 15, 17, 19, 21))  # elbow, wrist, little finger, index, thumb: right, left
_HANDS = (slice(195, 258), slice(132, 195))  # right, left
_PALM, _KNUCKLES = [0, 5, 9, 13, 17], [5, 9, 13, 17]
_INDEX, _LITTLE = 5, 17
_SMALLEST_HAND, _SMALLEST_BODY = 0.05, 1e-4
_AT_REST, _RAISED = 0.1, 0.35  # shoulder widths from where a hand was at first
_JITTER, _SWAY = 1.0, 4.0  # frames over which detected points, and the body, are smoothed

PLACE = slice(0, 18)  # palm, and the five points of the arm
PATH = slice(18, 114)  # of the palm, from its middle: (32, 3)
TURN = slice(114, 150)  # of the palm: across, along and out of it, by quarters (4, 3, 3)
SHAPE = slice(150, 390)  # joints as the palm sees them, by quarters (4, 20, 3)
RAISED = 390  # 0..1: a hand at rest is no part of a sign
SIDE = 391  # numbers of one hand
ROW = 2 * SIDE  # the hand that leads, then the other
SEEN = 2 * ROW + 1  # as a right-hander, as a left-hander, and which of the two is likelier


@dataclass(frozen=True, slots=True, eq=False)
class _Hand:
    """One hand over the frames of a sign; zeros where it is never found."""

    joints: Floats  # (32, 21, 3), depth from the wrist
    arm: Floats  # (32, 5, 3)


def form_row(points: FloatArray, moving: FrameSpan) -> FloatArray:
    """The parts of a sign (1565,), seen both ways, from landmarks (n, 258); ValueError where no body or hand is found.

    x and y are in one unit, as everywhere where bodies are measured. `moving` is the part between the rests.
    """
    if points.ndim != 2 or points.shape[1] != LANDMARK_DIM or not 0 <= moving.start < moving.stop <= len(points):
        raise ValueError(f"no sign in the frames {moving.start} to {moving.stop} of landmarks of shape {points.shape}")
    hands = _hands(points.astype(np.float64), moving)
    lead = np.log((_motion(hands[0]) + 0.02) / (_motion(hands[1]) + 0.02))
    mirror = np.array([-1.0, 1.0, 1.0])
    mirrored = [_Hand(hand.joints * mirror, hand.arm * mirror) for hand in hands[::-1]]
    row: FloatArray = np.concatenate([*map(_side, hands), *map(_side, mirrored), [lead]]).astype(np.float32)
    return row


def _hands(points: Floats, moving: FrameSpan) -> list[_Hand]:
    """The right hand and the left in body coordinates, brought to 32 frames."""
    pose = points[:, :132].reshape(-1, 33, 4)[..., :3]
    found = _found(pose)
    if not found[moving.start : moving.stop].any():
        raise ValueError("no body is found in it")
    pose = _bridged(pose, found)
    shoulders = pose[:, _SHOULDERS]
    width = max(float(np.linalg.norm((shoulders[:, 0] - shoulders[:, 1])[:, :2], axis=-1).mean()), _SMALLEST_BODY)
    centre = _smoothed(shoulders.mean(axis=1), _SWAY)
    hands, n_found = [], 0
    for arm, numbers in zip(_ARMS, _HANDS, strict=True):
        joints = points[:, numbers].reshape(-1, 21, 3)
        found = _found(joints)
        n_found += int(found[moving.start : moving.stop].sum())
        if found.any():
            # A lost hand is still at its wrist, which the pose rarely loses.
            at_wrist = np.concatenate([pose[:, arm[1:2], :2], joints[:, :1, 2:]], axis=-1)
            joints = _bridged(joints - at_wrist, found)
            joints[..., :2] += pose[:, arm[1:2], :2] - centre[:, None, :2]
        else:
            joints = np.zeros_like(joints)
        ways = (_smoothed(one / width, _JITTER) for one in (joints, pose[:, arm] - centre[:, None]))
        hands.append(_Hand(*(_brought(way, moving) for way in ways)))
    if not n_found:
        raise ValueError("no hand is found in it")
    return hands


def _side(hand: _Hand) -> Floats:
    """(391,) the parts of one hand."""
    palm = _palm(hand)
    place = np.concatenate([palm[_PLACED].mean(axis=0), hand.arm[_PLACED].mean(axis=0).ravel()])
    joints = hand.joints - hand.joints[:, :1]
    size = np.linalg.norm(joints[4:28, _KNUCKLES].mean(axis=1), axis=-1).max()
    quarters = np.stack([joints[part].mean(axis=0) for part in _QUARTERS]) / max(float(size), _SMALLEST_HAND)
    turn = _turn(quarters)
    shape = np.einsum("qij,qkj->qki", turn, quarters)[:, 1:]
    away = float(np.linalg.norm((place[:3] - palm[:2].mean(axis=0))[:2]))
    raised = np.clip((away - _AT_REST) / (_RAISED - _AT_REST), 0, 1)
    path = palm - palm[CORE].mean(axis=0)
    return np.concatenate([place, path.ravel(), turn.ravel(), shape.ravel(), [raised]])


def _palm(hand: _Hand) -> Floats:
    """(32, 3) where the palm is: as the hand says, where it is found; in depth as the pose says."""
    palm: Floats = hand.arm[:, 1:].mean(axis=1)
    if hand.joints.any():
        palm[:, :2] = hand.joints[:, _PALM, :2].mean(axis=1)
    return palm


def _turn(hand: Floats) -> Floats:
    """(n, 21, 3) -> (n, 3, 3): unit vectors across the palm, along it, and out of it."""
    along = _unit(hand[:, _KNUCKLES].mean(axis=1) - hand[:, 0])
    across = hand[:, _INDEX] - hand[:, _LITTLE]
    across = _unit(across - (across * along).sum(axis=-1, keepdims=True) * along)
    return np.stack([across, along, np.cross(across, along)], axis=-2)


def _motion(hand: _Hand) -> float:
    """How far a hand travels, in shoulder widths: the hand that leads travels more."""
    return float(np.linalg.norm(np.diff(_palm(hand)[:, :2], axis=0), axis=-1).sum())


def _found(points: Floats) -> Bools:
    """(n,) the frames in which some points (n, k, 3) are known."""
    return np.asarray(points.any(axis=(1, 2)) & np.isfinite(points).all(axis=(1, 2)))


def _bridged(points: Floats, found: Bools) -> Floats:
    """Points (n, k, 3) with straight lines where they are not found, and held still before and after."""
    known, frames = np.flatnonzero(found), np.arange(len(points))
    after = np.clip(np.searchsorted(known, frames), 0, len(known) - 1)
    before = np.maximum(after - (known[after] > frames), 0)
    gap = np.maximum(known[after] - known[before], 1)
    share = np.clip((frames - known[before]) / gap, 0, 1)[:, None, None]
    return np.asarray(points[known[before]] * (1 - share) + points[known[after]] * share)


def _smoothed(points: Floats, frames: float) -> Floats:
    """A Gaussian over time; the ends are held still."""
    reach = int(np.ceil(3 * frames))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / frames) ** 2)
    padded = np.concatenate([points[:1].repeat(reach, axis=0), points, points[-1:].repeat(reach, axis=0)])
    shifted = (weight * padded[by : by + len(points)] for by, weight in enumerate(weights / weights.sum()))
    return np.asarray(sum(shifted))


def _brought(points: Floats, moving: FrameSpan) -> Floats:
    """The frames of `moving`, brought to 32."""
    at = moving.start + (np.arange(N_FRAMES) + 0.5) * (len(moving) / N_FRAMES) - 0.5
    at = np.clip(at, 0, len(points) - 1)
    before = np.floor(at).astype(np.int64)
    after = np.minimum(before + 1, len(points) - 1)
    share = (at - before)[:, None, None]
    return np.asarray(points[before] * (1 - share) + points[after] * share)


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-6))


# Are two signs one form: part by part, by what is usual between clips of one form by different people.
#
# All clips of a variant speak for it together. Where a hand is, how the palm is turned and its shape are means over
# the clips, and the more clips, the smaller a difference counts; movements are compared clip by clip. A part differs
# where the difference is larger than what 19 of 20 pairs of one form stay below; how much evidence each is, a
# `FormJudge` has learned from forms that are known.


MEANS = {"place": PLACE, "palm": TURN, "shape": SHAPE}  # the parts that are compared by means
N_SIDE = len(MEANS) + 7  # of one hand: those, six residues of the paths and the ratio of their sizes
N_SHARES = 2 * N_SIDE + 1  # and whether one sign has a second hand and the other has not
PARTS = ("place", "movement", "palm", "hand shape", "other hand")
_OF_PART = ((0,), tuple(range(len(MEANS), N_SIDE)), (1,), (2,), tuple(range(N_SIDE, N_SHARES)))  # of the shares
_LARGEST = 3  # so many parts that differ most are looked at once more
_FARTHEST = 5.0  # usual differences: beyond it, more makes no difference
_FLOOR = 0.02
N_EVIDENCE = 2 * (N_SHARES + _LARGEST) + 2


@dataclass(frozen=True, slots=True, eq=False)
class Variants:
    """Signs as a judge compares them: the clips of all variants, and which belong together."""

    rows: FloatArray  # (n_clips, 782)
    clips: tuple[Ints, ...]  # of each variant

    def means(self, numbers: FloatArray) -> FloatArray:
        """(n_clips, d) -> (n_variants, d)."""
        return np.stack([numbers[own].mean(axis=0) for own in self.clips])

    @property
    def spread(self) -> FloatArray:
        """(n_variants,) how uncertain a mean is: one over the number of clips."""
        return np.array([1 / len(own) for own in self.clips], np.float32)


def variants_of(rows: Sequence[FloatArray]) -> Variants:
    """From the rows (n, 782) of each variant."""
    ends = np.cumsum([len(own) for own in rows])
    clips = tuple(np.arange(end - len(own), end) for own, end in zip(rows, ends.tolist(), strict=True))
    return Variants(np.concatenate(rows), clips)


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """What a judge looks at, for all pairs of variants."""

    shares: FloatArray  # (n, m, 21) in usual differences
    spread: FloatArray  # (n, m) of the means that were compared
    sizes: FloatArray  # (n, m, 2) of the movements of both hands, in squared shoulder widths

    @property
    def largest(self) -> FloatArray:
        """(n, m, 5) the largest share of each of PARTS."""
        return np.stack([self.shares[..., list(own)].max(axis=-1) for own in _OF_PART], axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class FormJudge:
    """How likely two variants are one form, by how they differ."""

    axes: dict[str, FloatArray]  # of MEANS: (d, k), numbers -> numbers in which clips of one form vary by 1
    expected: Floats  # (2, 6, 2) residues of the paths of either hand: constant, and for each unit of their size
    usual: Floats  # (21,) what nine of ten pairs of one form stay below
    usual_parts: Floats  # (5,) what 19 of 20 pairs of one form stay below, of the largest shares
    logistic: Logistic  # of `evidence`

    def differences(self, first: Variants, second: Variants) -> Differences:
        """Compare all variants of one dictionary with all of another."""
        spread = first.spread[:, None] + second.spread
        shares = np.zeros((len(first.clips), len(second.clips), N_SHARES), np.float32)
        raised, other_raised = (one.means(one.rows[:, [SIDE + RAISED]])[:, 0] for one in (first, second))
        sizes = np.empty((*spread.shape, 2), np.float32)
        for side in (0, 1):
            own = shares[..., side * N_SIDE : (side + 1) * N_SIDE]
            for number, (name, numbers) in enumerate(MEANS.items()):
                means = (one.means(_part(one, side, numbers) @ self.axes[name]) for one in (first, second))
                own[..., number] = _squared(*means) / (self.axes[name].shape[1] * spread)
            measures = _pooled(first, second, path_measures(_part(first, side, PATH), _part(second, side, PATH)))
            sizes[..., side] = measures[..., SIZE]
            constant, slope = self.expected[side].T.astype(np.float32)
            own[..., len(MEANS) : N_SIDE - 1] = measures[..., :RATIO] / (constant + slope * measures[..., SIZE:])
            own[..., N_SIDE - 1] = np.abs(measures[..., RATIO])
        shares[..., N_SIDE:] *= np.minimum(raised[:, None], other_raised)[..., None]
        shares[..., -1] = np.abs(raised[:, None] - other_raised)
        shares /= self.usual.astype(np.float32)
        return Differences(shares, spread, sizes)

    def parts(self, found: Differences) -> FloatArray:
        """(n, m, 5) in the order of PARTS: above 1 where a part differs."""
        parts: FloatArray = (found.largest / self.usual_parts).astype(np.float32)
        return parts

    def log_odds(self, found: Differences) -> Floats:
        """(n, m): above 0 where one form is likelier than two."""
        columns = evidence(found)
        odds: Floats = self.logistic.log_odds(columns.reshape(-1, columns.shape[-1])).reshape(columns.shape[:-1])
        return odds


def evidence(found: Differences) -> Floats:
    """(..., 50): each share on two scales, so also the largest ones, and how sure they are.

    Two forms may differ in one part only, so what differs most says most.
    """
    shares = found.shares.astype(np.float64)
    largest = -np.sort(-shares, axis=-1)[..., :_LARGEST]
    every = np.concatenate([shares, largest], axis=-1)
    sure = np.stack([found.spread, found.sizes[..., 0]], axis=-1).astype(np.float64)
    return np.concatenate([np.log(every + _FLOOR), np.minimum(every, _FARTHEST), np.log(sure + _FLOOR)], axis=-1)


def agreement(parts: FloatArray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of PARTS agree and which differ, by their shares (5,)."""
    differ = [name for name, share in zip(PARTS, parts.tolist(), strict=True) if share > 1]
    return tuple(name for name in PARTS if name not in differ), tuple(differ)


def _part(signs: Variants, side: int, numbers: slice) -> FloatArray:
    """A part of one hand of all clips."""
    return signs.rows[:, side * SIDE + numbers.start : side * SIDE + numbers.stop]


def _pooled(first: Variants, second: Variants, measures: FloatArray) -> FloatArray:
    """Means over all pairs of clips of two variants: (n_clips, m_clips, k) -> (n, m, k)."""
    halves = np.stack([measures[own].mean(axis=0) for own in first.clips])
    return np.stack([halves[:, own].mean(axis=1) for own in second.clips], axis=1)


def _squared(one: FloatArray, other: FloatArray) -> FloatArray:
    """(n, d) and (m, d) -> (n, m) squared distances."""
    apart: FloatArray = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.maximum(apart, 0)


SHIPPED = Path(__file__).parent / "shipped" / "forms-v1.safetensors"  # made by experiments/friends/learn.py
_FILE = ArraysKind("judge of forms", "make it again with experiments/friends/learn.py", max_bytes=10_000_000)
_FILE_AXES = "axes."
_TABLES = {"expected": (2, 6, 2), "usual": (N_SHARES,), "usual_parts": (len(PARTS),)}
_LOGISTIC = ("centre", "scale", "weights")


def write_judge(judge: FormJudge, path: Path, *, overwrite: bool = False) -> None:
    """Write a judge."""
    numbers: Arrays = {_FILE_AXES + name: axes for name, axes in judge.axes.items()}
    numbers |= {name: getattr(judge, name) for name in _TABLES} | {"bias": np.array([judge.logistic.bias])}
    numbers |= {name: np.array(getattr(judge.logistic, name)) for name in _LOGISTIC}
    save_arrays(numbers, {}, path, overwrite=overwrite)


def read_judge(path: Path = SHIPPED) -> FormJudge:
    """Read a judge; the shipped one learned from made-up signing (experiments/friends)."""
    _, numbers = load_arrays(path, _FILE)
    try:
        axes = {name: numbers[_FILE_AXES + name].astype(np.float32) for name in MEANS}
        centre, scale, weights = (tuple(numbers[name].tolist()) for name in _LOGISTIC)
        logistic = Logistic(centre, scale, weights, float(numbers["bias"][0]))
        tables = {name: numbers[name].reshape(shape) for name, shape in _TABLES.items()}
        judge = FormJudge(axes=axes, logistic=logistic, **tables)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise _FILE.damaged(path, error) from error
    if not all(_fits(judge, name) for name in MEANS) or len(logistic.weights) != N_EVIDENCE:
        raise FormatError(path, "is a judge of other parts", _FILE.fix)
    if not all(np.isfinite(table).all() and table.min() > 0 for table in tables.values()):
        raise FormatError(path, "is a judge of impossible differences", _FILE.fix)
    return judge


def _fits(judge: FormJudge, name: str) -> bool:
    axes, numbers = judge.axes[name], MEANS[name]
    return axes.ndim == 2 and len(axes) == numbers.stop - numbers.start and bool(np.isfinite(axes).all())


# In what two movements differ, whoever makes them: a little earlier, longer, or in more haste is the same movement.
#
# A movement is the path of the palm over the 32 frames of a whole sign. People take differently long for the way up
# and down, so both paths are stretched in time, in opposite ways, and the way that fits best counts; only the sign
# itself is compared. Warping without limits would hide what tells movements apart: an arc from a line, two taps from
# three. What is left between two paths of the same size is told by how slowly it comes and goes, in the picture and in
# depth: one form by two people differs slowly, and a zigzag differs quickly from a straight line.


MEASURES = 8  # residues of three paces in the picture, of three in depth, the log ratio of the sizes, the mean size
RATIO, SIZE = 6, 7
_SHIFTS = (-2.0, -1.0, 0.0, 1.0, 2.0)  # frames
_STRETCHES = (0.87, 1.0, 1 / 0.87)
_HASTES = (-1.8, 0.0, 1.8)  # frames by which the middle comes early or late
_DEPTH = np.array([1, 1, 0.5], np.float32)  # a detector guesses depth about four times worse than what it sees
_STILL = np.float32(0.002)  # squared shoulder widths: what a hand that holds still seems to move
_PACES = ((1, 3), (3, 5), (5, 9))  # half waves over the sign
_LENGTH = CORE.stop - CORE.start
_BLOCK = 128  # clips


def path_measures(first: FloatArray, second: FloatArray) -> FloatArray:
    """Paths (n, 96) and (m, 96) -> (n, m, 8): how they differ; the same both ways but for the sign of the log ratio.

    Residues and sizes are mean squares in squared shoulder widths.
    """
    found = np.empty((len(first), len(second), MEASURES), np.float32)
    for row in range(0, len(first), _BLOCK):
        ways = _told(first[row : row + _BLOCK], _THERE)
        for column in range(0, len(second), _BLOCK):
            others = _told(second[column : column + _BLOCK], _BACK)
            found[row : row + _BLOCK, column : column + _BLOCK] = _block(ways, others)
    return found


def _block(ways: FloatArray, others: FloatArray) -> FloatArray:
    """(w, n, 51) and (w, m, 51), the same sign in w ways -> (n, m, 8)."""
    sizes, other_sizes = ((told**2).sum(axis=2) / _LENGTH for told in (ways, others))  # (w, n), (w, m)
    alike = (told / np.sqrt(size + _STILL)[..., None] for told, size in ((ways, sizes), (others, other_sizes)))
    best = np.matmul(next(alike), next(alike).transpose(0, 2, 1)).argmax(axis=0)
    rows, columns = np.arange(ways.shape[1])[:, None], np.arange(others.shape[1])
    size, other_size = sizes[best, rows], other_sizes[best, columns]
    scale = ((other_size + _STILL) / (size + _STILL)) ** 0.25
    left = ways[best, rows] * scale[..., None] - others[best, columns] / scale[..., None]
    waves = (_WAVES @ left.reshape(*best.shape, _LENGTH, 3)) ** 2 / _LENGTH
    paces = [waves[:, :, slow - 1 : quick - 1].sum(axis=2) for slow, quick in _PACES]
    measures = [pace[..., :2].sum(axis=-1) for pace in paces] + [pace[..., 2] for pace in paces]
    measures += [np.log((size + _STILL) / (other_size + _STILL)), (size + other_size) / 2]
    told: FloatArray = np.stack(measures, axis=-1).astype(np.float32)
    return told


def _told(paths: FloatArray, ways: FloatArray) -> FloatArray:
    """(n, 96) -> (w, n, 51): the sign itself, from its middle, in w ways."""
    whole = (paths.reshape(-1, N_FRAMES, 3) * _DEPTH).transpose(1, 0, 2).reshape(N_FRAMES, -1)
    told = (ways @ whole).reshape(len(ways), _LENGTH, len(paths), 3)
    told -= told.mean(axis=1, keepdims=True)
    turned: FloatArray = told.transpose(0, 2, 1, 3).reshape(len(ways), len(paths), -1)
    return np.ascontiguousarray(turned)


def _stretched(way: int) -> FloatArray:
    """(w, 17, 32): each reads the sign itself from a whole sign, at half of its pace (1) or against it (-1)."""
    frames = np.arange(CORE.start, CORE.stop, dtype=np.float64)
    from_middle = frames - frames.mean()
    bow = (from_middle / from_middle[-1]) ** 2 - 1
    every = list(product(_SHIFTS, _STRETCHES, _HASTES))
    ways = np.zeros((len(every), _LENGTH, N_FRAMES), np.float32)
    for reads, (shift, stretch, haste) in zip(ways, every, strict=True):
        at = frames.mean() + from_middle * stretch ** (way / 2) + way / 2 * (shift + haste * bow)
        at = np.clip(at, 0, N_FRAMES - 1)
        before = np.floor(at).astype(np.int64)
        after, share = np.minimum(before + 1, N_FRAMES - 1), at - before
        reads[np.arange(_LENGTH), before] += 1 - share
        reads[np.arange(_LENGTH), after] += share
    return ways


def _waves() -> FloatArray:
    """(8, 17): from half a wave over the sign to four waves (the cosine transform)."""
    at = (np.arange(_LENGTH) + 0.5) / _LENGTH
    numbers = np.arange(1, _PACES[-1][1])[:, None]
    waves: FloatArray = (np.cos(np.pi * numbers * at) * np.sqrt(2 / _LENGTH)).astype(np.float32)
    return waves


_THERE, _BACK, _WAVES = _stretched(1), _stretched(-1), _waves()


# All clips of a dictionary as the parts of their signs: where body and hands are, from landmarks that are at hand.


def form_gallery(dictionary: Dictionary, reading: Reading = Reading()) -> tuple[Gallery, tuple[str, ...]]:
    """The parts of all signs of a dictionary, and what had to be left out.

    The store keeps the landmarks that had to be found in videos.
    """
    usable: list[tuple[Entry, FloatArray]] = []
    left_out: list[str] = []
    must_look = any(entry.video is not None and landmark_file_of(entry.video) is None for entry in dictionary)
    with replace(reading, store=reading.store if must_look else None).opened_store() as store:
        for number, entry in enumerate(dictionary, start=1):
            try:
                usable.append((entry, _parts(entry, reading, store)))
            except (VideoError, FormatError) as error:
                left_out.append(f"{LEFT_OUT}: {error}")
            reading.progress(f"reading {dictionary.name}", number, len(dictionary))
    if not usable:
        raise DictionaryError(dictionary.name, "none of its clips can be read", left_out[0] if left_out else "")
    return Gallery(tuple(entry for entry, _ in usable), np.stack([row for _, row in usable])), tuple(left_out)


def _parts(entry: Entry, reading: Reading, store: FeatureStore | None) -> FloatArray:
    """The parts (1565,) of one clip."""
    if entry.video is None:
        raise VideoError(entry.entry_id, "has no clip, and its parts are seen in one", "add it or remove it")
    signer = landmarks_of(entry.video, replace(reading, progress=silent), entry.box, store).signer
    moving = entry.kept or trim_by_landmarks(signer.track, signer.aspect).kept
    try:
        return form_row(in_picture_heights(signer.track.points, signer.aspect), moving)
    except ValueError as error:
        fix = "show the upper body and the hands, in good light"
        raise VideoError(entry.video, str(error), fix) from error
