"""From forms to landmarks: the two ways of signing, slow and full for the dictionary, quick and blended in a stream.

A plan is a row of strokes with the frames in which each is performed; what lies between two strokes is a transition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from signspot.domain.time import FrameSpan
from signspot.domain.tracks import FloatArray, Floats, Ints
from signspot.domain.words import Word
from signspot.world.lexicon import DIRECTIONS, LOCATIONS, ORIENTATIONS, PATHS, SHAPES, SIZES, Form, Hands
from signspot.world.people import POSTURE, Carriage, Signer, landmarks

_RELAXED = 0.55 * SHAPES["c"] + 0.45 * SHAPES["flat"]
_FOLDED = np.concatenate([(-0.12, 1.02, -0.42), ORIENTATIONS["side-in"], _RELAXED])
_HANGING = np.concatenate([(-0.60, 1.40, -0.12), np.radians((4, 166, 60)), _RELAXED])
_UNDER = np.array((-0.06, 0.55, -0.80))  # where a base hand waits, in the mirror image of its own side
_BASE_ORIENTATION = ORIENTATIONS["side-up"]
_MIDDLE = np.array((-0.20, 0.35, -0.70))  # to where reduced signs sink
_APART = -0.20  # two hands that do the same keep to their sides

_VOWELS = re.compile("[aeiouy]+")
_HANDS = tuple(Hands)


@dataclass(frozen=True, slots=True, eq=False)
class Performance:
    """What a camera would see of a signer."""

    points: FloatArray  # (n_frames, 258) MediaPipe layout, picture widths, without any error of a detector
    mouth: FloatArray  # (n_frames,) opening in 0..1
    signer: Signer
    moving: FrameSpan  # the frames in which the hands are not at rest

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Strokes in time, one row each; the first and the last are rests."""

    start: Ints  # (S,) first frame
    stop: Ints  # (S,) behind the last frame
    first: Floats  # (S, 2, 26) posture at its begin: dominant hand, other hand
    last: Floats  # (S, 2, 26) posture at its end
    axes: Floats  # (S, 2, 3) path and bow, shoulder widths
    path: Ints  # (S,) of PATHS
    repetitions: Ints  # (S,)
    moves: Floats  # (S, 2) path of each hand: 1 as told, -1 the other way round, 0 still

    def __len__(self) -> int:
        return len(self.start)


def strokes_of(forms: tuple[Form | None, ...], signer: Signer) -> Plan:
    """The strokes of forms after each other, not yet in time; None is a rest."""
    rows = [(stroke, form) for form in forms if form is not None for stroke in form.strokes]
    is_rest = np.array([form is None for form in forms for _ in (form.strokes if form else (None,))])
    plan = _resting(len(is_rest), signer)
    told = np.flatnonzero(~is_rest)
    hands = np.array([_HANDS.index(form.hands) for _, form in rows], dtype=np.int64)
    is_twin = np.array([form.hands in (Hands.SYMMETRIC, Hands.ALTERNATING) for _, form in rows], dtype=bool)
    place = np.array([LOCATIONS[stroke.location] + stroke.place for stroke, _ in rows]).reshape(-1, 3)
    place[:, 0] = np.where(is_twin, np.minimum(place[:, 0], _APART), place[:, 0])
    ends = (plan.first, "shape", "orientation"), (plan.last, "final_shape", "final_orientation")
    for posture, shape, orientation in ends:
        for number, (stroke, form), at in zip(told, rows, place, strict=True):
            angles = ORIENTATIONS[getattr(stroke, orientation)], SHAPES[getattr(stroke, shape)]
            posture[number, 0] = np.concatenate([at, *angles])
            if form.hands is Hands.BASE:
                posture[number, 1] = np.concatenate([_UNDER, _BASE_ORIENTATION, SHAPES[form.base_shape]])
        posture[told[is_twin], 1] = posture[told[is_twin], 0]
    sizes = np.array([SIZES[stroke.size] for stroke, _ in rows]) * signer.size
    axes = np.array([DIRECTIONS[stroke.direction] for stroke, _ in rows]).reshape(-1, 2, 3)
    plan.axes[told] = axes * sizes[:, None, None]
    plan.path[told] = [PATHS.index(stroke.path) for stroke, _ in rows]
    plan.repetitions[told] = [stroke.repetitions for stroke, _ in rows]
    plan.moves[told] = np.array([(1, 0), (1, 1), (1, -1), (1, 0)])[hands]
    return plan


def _resting(n: int, signer: Signer) -> Plan:
    rest = np.broadcast_to(_HANGING if signer.hanging else _FOLDED, (n, 2, POSTURE))
    whole = np.zeros(n, dtype=np.int64)
    return Plan(
        start=whole,
        stop=whole.copy(),
        first=rest.copy(),
        last=rest.copy(),
        axes=np.zeros((n, 2, 3)),
        path=np.full(n, PATHS.index("hold")),
        repetitions=np.ones(n, dtype=np.int64),
        moves=np.zeros((n, 2)),
    )


def varied(plan: Plan, scales: tuple[float, float, float], rng: np.random.Generator) -> Plan:
    """The same strokes as another performance makes them: palm, orientation and fingers each off by a bit."""
    per_number = np.repeat(scales, (3, 3, POSTURE - 6))
    noise = rng.normal(0, 1, (len(plan), 2, POSTURE)) * per_number
    return replace(plan, first=plan.first + noise, last=plan.last + noise)


def reduced(plan: Plan, amounts: Floats, assimilation: float) -> Plan:
    """Quick signing: smaller paths, nearer to the middle of the signing space and to the neighbours.

    `amounts` (S,) is the share each stroke loses; an `assimilation` of 1 would put it between its neighbours.
    """
    by = amounts[:, None, None]
    first, last = plan.first.copy(), plan.last.copy()
    for posture, neighbour in ((first, np.roll(plan.last, 1, axis=0)), (last, np.roll(plan.first, -1, axis=0))):
        posture[..., :3] += 0.5 * by * (_MIDDLE - posture[..., :3]) * (np.abs(plan.moves).sum(1) > 0)[:, None, None]
        posture[1:-1] += assimilation * (neighbour - posture)[1:-1]
        posture[..., 6:] += 0.5 * by * (_RELAXED - posture[..., 6:])
    return replace(plan, first=first, last=last, axes=plan.axes * (1 - by))


def timed(plan: Plan, durations: Ints, gaps: Ints) -> Plan:
    """Give every stroke its frames: `durations` (S,) each, `gaps` (S - 1,) transitions between them."""
    start = np.concatenate([[0], np.cumsum(durations[:-1] + gaps)])
    return replace(plan, start=start, stop=start + durations)


def gap_lengths(plan: Plan) -> Floats:
    """(S - 1,) how far the hands travel between strokes, in shoulder widths."""
    distance = np.linalg.norm(plan.first[1:, :, :3] - plan.last[:-1, :, :3], axis=-1).max(axis=1)
    return np.asarray(distance, dtype=np.float64)


def performed(plan: Plan, signer: Signer, blend_frames: float, rng: np.random.Generator) -> Performance:
    """Sign a timed plan: all frames of it."""
    n = int(plan.stop[-1])
    frames = np.arange(n)
    stroke = np.searchsorted(plan.start, frames, side="right") - 1
    inside = frames < plan.stop[stroke]
    following = np.minimum(stroke + 1, len(plan) - 1)
    length = np.where(inside, plan.stop[stroke] - plan.start[stroke], plan.start[following] - plan.stop[stroke])
    passed = np.where(inside, frames - plan.start[stroke], frames - plan.stop[stroke])
    phase = (passed + 0.5) / np.maximum(length, 1)
    postures = np.empty((n, 2, POSTURE))
    postures[inside] = _stroke_postures(plan, stroke[inside], phase[inside], signer)
    postures[~inside] = _transition_postures(plan, stroke[~inside], phase[~inside], signer)
    postures = _styled(_blurred(postures, blend_frames), signer)
    shown = postures[:, ::-1] if signer.left_handed else postures
    points = landmarks(shown, _carriage(n, signer, rng), signer.body, signer.camera)
    return Performance(points, np.zeros(n, np.float32), signer, FrameSpan(int(plan.stop[0]), int(plan.start[-1])))


def mouthed(performance: Performance, words: Sequence[Word | None], spans: Sequence[tuple[int, int]]) -> Performance:
    """The same signing with a mouth that opens once for each group of vowels of the word that is signed."""
    mouth = np.zeros(len(performance), dtype=np.float32)
    for word, (start, stop) in zip(words, spans, strict=True):
        if word:
            beats = max(1, len(_VOWELS.findall(word)))
            phase = (np.arange(stop - start) + 0.5) / (stop - start)
            mouth[start:stop] = 0.85 * np.sin(np.pi * beats * phase) ** 2
    return replace(performance, mouth=mouth)


def _stroke_postures(plan: Plan, stroke: Ints, phase: Floats, signer: Signer) -> Floats:
    """(n, 2, 26) postures within strokes at a phase in 0..1."""
    phase = phase**signer.haste
    share = _minimum_jerk(phase)[:, None, None]
    posture = plan.first[stroke] * (1 - share) + plan.last[stroke] * share
    offset = _path_offsets(plan.path[stroke], plan.repetitions[stroke], phase, signer.bow)  # (n, 2)
    step = np.einsum("na,nax->nx", offset, plan.axes[stroke])
    posture[..., :3] += step[:, None] * plan.moves[stroke][..., None]
    return np.asarray(posture, dtype=np.float64)


def _transition_postures(plan: Plan, stroke: Ints, phase: Floats, signer: Signer) -> Floats:
    """(n, 2, 26) postures between a stroke and the next, on a path that bows toward the camera."""
    whole = np.arange(len(plan))
    ends = _stroke_postures(plan, whole, np.ones(len(plan)), signer)
    begins = _stroke_postures(plan, whole, np.zeros(len(plan)), signer)
    share = _minimum_jerk(phase)[:, None, None]
    posture = ends[stroke] * (1 - share) + begins[stroke + 1] * share
    way = np.linalg.norm(begins[stroke + 1, :, :3] - ends[stroke, :, :3], axis=-1)  # (n, 2)
    posture[..., 2] -= (0.18 + 0.3 * signer.bow) * way * np.sin(np.pi * phase)[:, None]
    return np.asarray(posture, dtype=np.float64)


def _minimum_jerk(phase: Floats) -> Floats:
    """How far a hand has come at a phase in 0..1 of a reach: smooth at both ends."""
    return phase**3 * (10 - 15 * phase + 6 * phase**2)


def _path_offsets(path: Ints, repetitions: Ints, phase: Floats, bow: float = 0.0) -> Floats:
    """(n, 2) how far along and aside a path is at a phase in 0..1, in sizes of the path."""
    eased = _minimum_jerk(phase)
    there = np.where(repetitions > 1, 0.5 - 0.5 * np.cos(2 * np.pi * repetitions * phase), eased) - 0.5
    hump = 1 - 4 * there**2  # 0 at both ends of the way, 1 in the middle
    turn = 2 * np.pi * repetitions * eased
    knock = 0.5 - 0.5 * np.cos(2 * np.pi * (repetitions + 1) * phase)
    still = np.zeros_like(phase)
    along = [there, there, 0.5 * np.cos(turn), there, 0.45 * knock, still]
    weave = 0.3 * np.sin(2 * np.pi * (repetitions + 1) * eased)
    aside = [bow * hump, (0.5 + bow) * hump, 0.5 * np.sin(turn), weave, bow * 0.2 * knock, still]
    return np.stack([np.choose(path, along), np.choose(path, aside)], axis=-1)


def _blurred(postures: Floats, frames: float) -> Floats:
    """A Gaussian over time, `frames` wide: neighbours run into each other."""
    reach = int(np.ceil(2.5 * frames))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / frames) ** 2)
    padded = np.pad(postures, ((reach, reach), (0, 0), (0, 0)), mode="edge")
    blurred = np.zeros_like(postures)
    for shift, weight in enumerate(weights / weights.sum()):
        blurred += weight * padded[shift : shift + len(postures)]
    return blurred


def _styled(postures: Floats, signer: Signer) -> Floats:
    """What this signer makes of postures: personal offsets, relaxed fingers that move together."""
    places = postures[..., :6] + signer.manner.offsets(postures[..., :6])
    fingers = postures[..., 6:].reshape(*postures.shape[:2], 5, 4)
    fingers = fingers + signer.laxness[:, None] * (_RELAXED.reshape(5, 4) - fingers)
    neighbours = fingers.copy()
    neighbours[..., 2:4, :] = (fingers[..., 1:3, :] + fingers[..., 3:5, :]) / 2  # middle and ring finger
    neighbours[..., 4, :] = fingers[..., 3, :]
    joined = fingers + signer.coupling * (neighbours - fingers)
    return np.concatenate([places, joined.reshape(*postures.shape[:2], -1)], axis=-1)


def _carriage(n: int, signer: Signer, rng: np.random.Generator) -> Carriage:
    """Slow waves of trunk and head, with periods of 1.5 to 6 seconds."""
    periods, phases = rng.uniform(38, 150, (2, 7)), rng.uniform(0, 2 * np.pi, (2, 7))
    waves = np.sin(2 * np.pi * np.arange(n)[:, None, None] / periods + phases).mean(axis=1)
    moved = waves * (signer.sway * np.array((1, 0.25, 0.7, 1.6, 2.0, 2.4, 1.6)))
    return Carriage(moved[:, :3], moved[:, 3], moved[:, 4:])
