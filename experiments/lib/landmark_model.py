"""Training of the landmark model, trunk and head at once, from clips of single signs by many signers.

A batch shows some words twice, by two signers where there are two, as windows like those of running signing (see
`stitching`). The vectors of a word are drawn to the word's own direction, as in classification by cosine, and to each
other, away from those of other words (supervised contrast). Words made up from others, and signs of the synthetic
world, take part in the second only.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from experiments.lib.data_sets import LandmarkClip, read_asl30, read_wlasl300, read_wlasl2000
from torch import Tensor, nn

from signspot.domain.recordings import Entry, Signer, Vocabulary, Word
from signspot.domain.time import FRAME_MS, FRAME_RATE, FrameSpan, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, LANDMARK_DIM, X_PLACES, FloatArray, Floats, LandmarkTrack, WindowGrid
from signspot.embedding.landmarks import Rates, points_at, sign_span, signing_span, window_at, windows_around
from signspot.media.trim import trim_by_landmarks
from signspot.models.checkpoints import ModelCard, describe, load_checkpoint, save_checkpoint, state_of
from signspot.models.head import Head, HeadConfig
from signspot.models.landmarks import Body, LandmarkEncoder, LandmarkEncoderConfig, Part, mirrored
from signspot.world.settings import preset_named
from signspot.world.simulation import World

# What signs are compared by: the trunk's vector, evened out, instead of the vector of the head it was trained with.
#
# A head learns to tell the trained words apart and forgets what these do not need; the trunk before it still knows it.
# On words that no training had, the trunk's vector is clearly better (experiments/landmark_model/README.md). What
# varies most between two windows of one word says little about the word, so it is weakened: every direction is divided
# by a root of its variance within words, and of what comes out the principal components of training windows are kept.
# That is linear, and fits into the head as it is.


_SLOPE = 0.2  # of the head's activation
_SHRINKAGE = 0.3  # how far the variance within words is taken to be the same in all directions
_OF_ROWS = ("logits.", "prototypes")  # what a head holds of single words
LEXICON_LANGUAGE = "ase"
_FLOOR = 0.3  # of the mean variance within words: keeps the steadiest directions from being blown up


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionConfig:
    """How the trunk's vectors are evened out."""

    batches: int = 400  # of training windows to fit it by
    evenness: float = 0.25  # the power of its variance within words that a direction is divided by: 0.5 whitens
    seed: int = 77


def compared_by_trunk(
    networks: LandmarkNetworks,
    lesson: LandmarkLesson,
    training: LandmarkTrainingConfig,
    config: ProjectionConfig = ProjectionConfig(),
) -> LandmarkNetworks:
    """The same trunk under a head that evens its vectors out; the words' directions are told apart anew."""
    shown = replace(training, made_up=0.0, synthetic=0.0, seed=config.seed)
    batches = LandmarkBatches(LandmarkLesson(lesson.signs), shown)
    vectors, words = _seen(networks.trunk, batches, config.batches)
    mean, directions = evened_out(vectors, words, networks.head.config.embedding_dim, config.evenness)
    head = linear_head(mean, directions, len(batches.vocabulary)).eval()
    if head.logits is not None:
        with torch.no_grad():
            head.logits.weight.copy_(word_directions(head(vectors).embedding, words, len(batches.vocabulary)))
            head.logits.bias.zero_()
    return LandmarkNetworks(networks.trunk, head, batches.vocabulary)


def evened_out(vectors: Tensor, words: Tensor, n_kept: int, evenness: float) -> tuple[Tensor, Tensor]:
    """The mean (d,) of vectors (n, d) of the words (n,), and up to `n_kept` scaled directions (k, d) to project on."""
    rows = vectors.double()
    mean = rows.mean(dim=0)
    variance, axes = torch.linalg.eigh(_within(rows, words))
    scaled = axes * (variance.clamp_min(0) + _FLOOR * variance.mean()) ** -evenness
    kept = torch.linalg.svd((rows - mean) @ scaled, full_matrices=False).Vh[:n_kept]
    return mean, kept @ scaled.T


def word_directions(rows: Tensor, words: Tensor, n_words: int) -> Tensor:
    """Unit rows (n_words, d) that tell words apart, from rows (n, d) of the words (n,): linear discriminants.

    What varies within words counts less; a word without a row is refused.
    """
    rows = rows.double()
    if not torch.bincount(words, minlength=n_words).all():
        raise ValueError("a word that no window shows: draw more batches")
    within = _within(rows, words)
    limited = within + _SHRINKAGE * within.diagonal().mean() * torch.eye(len(within))
    return F.normalize(torch.linalg.solve(limited, (_means(rows, words) - rows.mean(dim=0)).T).T, dim=1).float()


def _means(rows: Tensor, words: Tensor) -> Tensor:
    """(n_words, d) the mean of the rows (n, d) of each of the words (n,)."""
    n_rows = torch.bincount(words)
    return rows.new_zeros(len(n_rows), rows.shape[1]).index_add_(0, words, rows) / n_rows.clamp_min(1)[:, None]


def _within(rows: Tensor, words: Tensor) -> Tensor:
    """(d, d) how rows (n, d) vary around the mean of their word."""
    return torch.cov((rows - _means(rows, words)[words]).T)


def linear_head(mean: Tensor, directions: Tensor, n_words: int) -> Head:
    """A head that computes `directions @ (vector - mean)` and brings it to length 1."""
    n_kept, n_numbers = directions.shape
    head = Head(HeadConfig(input_dim=n_numbers, hidden_dim=2 * n_kept, embedding_dim=n_kept, classes=n_words))
    # leaky(x) - leaky(-x) = (1 + slope) x: two halves of opposite sign undo the activation between the layers.
    both, one = torch.cat([directions, -directions]), torch.eye(n_kept) / (1 + _SLOPE)
    state = {
        "res.0.weight": torch.zeros(n_numbers, n_numbers),
        "res.0.bias": torch.zeros(n_numbers),
        "adaptor.0.weight": both,
        "adaptor.0.bias": -(both @ mean),
        "adaptor.2.weight": torch.cat([one, -one], dim=1),
        "adaptor.2.bias": torch.zeros(n_kept),
    }
    head.load_state_dict({name: tensor.float() for name, tensor in state.items()}, strict=False)
    return head


@torch.no_grad()
def _seen(trunk: LandmarkEncoder, batches: LandmarkBatches, n_batches: int) -> tuple[Tensor, Tensor]:
    """The trunk's vectors of training windows (n, 1024), and their words (n,)."""
    shown = [batches.batch(number) for number in range(n_batches)]
    vectors = torch.cat([trunk(batch.windows).embedding for batch in shown])
    return vectors, torch.cat([batch.words for batch in shown])


@dataclass(frozen=True, slots=True, eq=False)
class LexiconNetworks:
    """Networks whose head names and finds the signs it learned: what the file of a shipped model holds."""

    trunk: LandmarkEncoder
    head: Head  # `logits`: a direction for each row; `prototypes`: where the clips of each row lie
    words: tuple[Word, ...]  # of the rows, sorted; a word of several variants has as many rows, one after the other

    def save(self, path: Path, card: ModelCard) -> ModelCard:
        """Write them; the card's settings and vocabulary become those of the rows."""
        config = {**card.config, **describe(self.trunk, self.head), "language": LEXICON_LANGUAGE}
        card = replace(card, config=config, vocabulary=tuple(self.words))
        return save_checkpoint(path, state_of(self.trunk, self.head), card)


def with_lexicon(
    networks: LandmarkNetworks, vectors: Tensor, words: Sequence[Word], variants: Sequence[str]
) -> LexiconNetworks:
    """The same networks with a lexicon, from unit rows (n, d) of training clips that they embedded.

    A row of the lexicon is a variant of a word. Its prototype is the mean of its clips (each the whole sign in one
    window), on the scale of clips, to search videos by; its direction tells it from the other rows, to name a recording
    by (experiments/queries says what each is good for). Where clips say nothing of variants, give "" for each.
    """
    rows = sorted(set(zip(words, variants, strict=True)))
    number = {row: place for place, row in enumerate(rows)}
    classes = torch.tensor([number[row] for row in zip(words, variants, strict=True)])
    head = Head(replace(networks.head.config, classes=len(rows), prototypes=len(rows)))
    shared = {name: tensor for name, tensor in networks.head.state_dict().items() if not name.startswith(_OF_ROWS)}
    with torch.no_grad():
        own = {
            "logits.weight": word_directions(vectors, classes, len(rows)),
            "logits.bias": torch.zeros(len(rows)),
            "prototypes": F.normalize(_means(vectors.double(), classes), dim=1).float(),
        }
        head.load_state_dict({**shared, **own})
    return LexiconNetworks(networks.trunk, head.eval(), tuple(word for word, _ in rows))


# Real signing for the landmark model: wlasl300 and asl30 on bodies of standard size, and who is held out.
#
# The same recording is never both trained on and tested: repeats within a set are dropped, and so are the clips of
# asl30 that wlasl300 has too. (Hardly another clip of asl30 resembles one of it:
# experiments/landmark_model/leakage.py.)


@dataclass(frozen=True, slots=True, eq=False)
class RealSign:
    """A recorded sign and what its set says about it."""

    sign: RecordedSign
    clip_id: str
    split: str  # train, val or test; "" in asl30
    is_repeat: bool


@dataclass(frozen=True, slots=True, eq=False)
class RealSigning:
    """Both sets, in the order of their tables."""

    wlasl300: tuple[RealSign, ...]
    asl30: tuple[RealSign, ...]
    wlasl2000: tuple[RealSign, ...] = ()  # hands on bodies of wlasl300, or on the usual body

    @classmethod
    def read(cls, data: Path) -> RealSigning:
        """From the folder that holds wlasl300_landmarks, asl30_landmarks and wlasl2000_hands."""
        wlasl300 = read_wlasl300(data / "wlasl300_landmarks")
        wlasl2000 = read_wlasl2000(data / "wlasl2000_hands", wlasl300)
        tested = {clip.clip_id for clip in wlasl2000 if clip.split == "test"}
        asl30 = (clip for clip in read_asl30(data / "asl30_landmarks") if clip.clip_id not in tested)
        return cls(*(tuple(_real_sign(clip) for clip in clips) for clips in (wlasl300, asl30, wlasl2000)))

    def official(self, *splits: str) -> tuple[RecordedSign, ...]:
        """The clips of some official splits of WLASL, and those of asl30 whose recording is in no test split."""
        kept = (real for real in (*self.wlasl300, *self.wlasl2000) if real.split in splits)
        return _without_repeats([*kept, *self.asl30])

    def test(self, split: str) -> tuple[RecordedSign, ...]:
        """The clips of one official split."""
        return _without_repeats(real for real in self.wlasl300 if real.split == split)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Words and signers that a model never saw."""

    training: tuple[RecordedSign, ...]  # other words, other signers
    support: tuple[RecordedSign, ...]  # held-out words by signers who are trained on with other words
    query: tuple[RecordedSign, ...]  # held-out words by held-out signers
    seen_support: tuple[RecordedSign, ...]  # trained words by trained signers, of wlasl300
    seen_query: tuple[RecordedSign, ...]  # trained words by held-out signers


def draw_fold(real: RealSigning, seed: int, n_words: int = 100, signer_share: float = 0.3) -> Fold:
    """Hold out words, and signers of about a share of the clips of wlasl300."""
    rng = np.random.default_rng(seed)
    words = sorted({item.sign.word for item in real.wlasl300})
    unseen = {Word(str(word)) for word in rng.permutation(words)[:n_words]}
    clips_of: dict[str, int] = {}
    for item in real.wlasl300:
        clips_of[item.sign.signer] = clips_of.get(item.sign.signer, 0) + 1
    strangers: set[str] = set()
    n_clips = 0
    for signer in rng.permutation(sorted(clips_of)).tolist():
        if n_clips + clips_of[signer] <= signer_share * len(real.wlasl300):
            strangers.add(signer)
            n_clips += clips_of[signer]

    strange = {item.clip_id for item in real.wlasl300 if item.sign.signer in strangers}

    def chosen(items: Iterable[RealSign], is_unseen: bool, is_stranger: bool) -> tuple[RecordedSign, ...]:
        return _without_repeats(
            item
            for item in items
            if (item.sign.word in unseen) == is_unseen and (item.sign.signer in strangers) == is_stranger
        )

    return Fold(
        training=chosen(
            (item for item in (*real.wlasl300, *real.asl30, *real.wlasl2000) if item.clip_id not in strange),
            False,
            False,
        ),
        support=chosen(real.wlasl300, True, False),
        query=chosen(real.wlasl300, True, True),
        seen_support=chosen(real.wlasl300, False, False),
        seen_query=chosen(real.wlasl300, False, True),
    )


def _without_repeats(items: Iterable[RealSign]) -> tuple[RecordedSign, ...]:
    return tuple(item.sign for item in items if not item.is_repeat)


def _real_sign(clip: LandmarkClip) -> RealSign:
    signer = clip.signer or f"unknown signer of {clip.clip_id}"
    sign = replace(recorded_sign(clip.word, signer, at_house_rate(clip.points, clip.seconds)), variation=clip.variation)
    return RealSign(sign, clip.clip_id, clip.split, clip.is_repeat)


# Running signing made of recorded single signs: trimmed, sped up, moved onto one body, joined by short transitions.
#
# A window of running signing differs from a clip of one sign: it begins and ends in a neighbour, the hands do not
# rest, and everything is faster. Windows for training and passages for tests are made here, at 25 frames a second.


PARTS = (slice(0, 132), slice(132, 195), slice(195, LANDMARK_DIM))  # pose, left hand, right hand
_SHOULDERS = (11, 12)
_FEWEST_FRAMES = 5  # that are left of a sign


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSign:
    """One clip of one sign on a body of standard size."""

    word: Word
    signer: str
    points: FloatArray  # (n_frames, 258) in shoulder widths from between the shoulders, zeros where not found
    span: FrameSpan  # the frames with a raised hand
    variation: str = ""  # which of the word's signs, where known


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """How far a training window may differ from the whole sign."""

    most_cut: float = 0.25  # of the sign, at either end
    most_rest: float = 0.12  # of the sign, before and after it
    neighbours: float = 0.5  # how many windows are set among other signs
    longest_neighbour: int = 8  # frames
    longest_bridge: int = 6  # frames
    most_warp: float = 0.25  # how unevenly time may pass


@dataclass(frozen=True, slots=True, kw_only=True)
class StitchOptions:
    """How signs become running signing; each range is drawn from evenly for each sign."""

    speed: tuple[float, float] = (1.2, 1.8)
    cut: tuple[float, float] = (0.05, 0.2)  # of the sign, at each end
    bridge: tuple[int, int] = (3, 7)  # frames, both included


@dataclass(frozen=True, slots=True)
class StitchedSign:
    """Where a sign ended up."""

    word: Word
    signer: str
    span: FrameSpan


@dataclass(frozen=True, slots=True, eq=False)
class StitchedPassage:
    """Running signing with known truth."""

    points: FloatArray  # (n_frames, 258)
    signs: tuple[StitchedSign, ...]


def recorded_sign(word: Word, signer: str, points: FloatArray) -> RecordedSign:
    """A clip of landmarks (n, 258), in picture heights at 25 frames a second, on a body of standard size."""
    return RecordedSign(word, signer, in_shoulder_widths(points), signing_span(points))


def in_shoulder_widths(points: FloatArray) -> FloatArray:
    """(n, 258) with the median place and width of the shoulders as origin and unit; as it is where none are found."""
    found = points[:, PARTS[0]].any(axis=1)
    if not found.any():
        return np.array(points, dtype=np.float32)
    shoulders = points[found][:, PARTS[0]].reshape(-1, 33, 4)[:, _SHOULDERS, :2].astype(np.float64)
    centre = np.median(shoulders.mean(axis=1), axis=0)
    width = max(float(np.median(np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1))), 1e-3)
    moved = np.array(points, dtype=np.float64)
    moved[:, X_PLACES] = (moved[:, X_PLACES] - centre[0]) / width
    moved[:, X_PLACES + 1] = (moved[:, X_PLACES + 1] - centre[1]) / width
    moved[:, X_PLACES + 2] /= width
    for part in PARTS:
        moved[~points[:, part].any(axis=1), part] = 0
    return moved.astype(np.float32)


def training_window(
    sign: RecordedSign,
    another: Callable[[], RecordedSign],
    rng: np.random.Generator,
    options: WindowOptions = WindowOptions(),
) -> FloatArray:
    """A random window (16, 258) on a sign: cut short or with some rest around it, perhaps between two other signs."""
    span, n = sign.span, len(sign.span)
    begin, end = (float(share) * n for share in rng.uniform(-options.most_rest, options.most_cut, size=2))
    points, start, stop = sign.points, span.start + begin, span.stop - end
    if rng.random() < options.neighbours:
        first = round(span.start + max(0.0, begin))
        last = min(len(points), max(first + _FEWEST_FRAMES, round(span.stop - max(0.0, end))))
        inside = points[first:last]
        before, after = (_neighbour(another(), side, rng, options) for side in (-1, 1))
        lead = [before, bridge(before[-1], inside[0], _bridge_length(rng, options))] if rng.random() < 0.75 else []
        tail = [bridge(inside[-1], after[0], _bridge_length(rng, options)), after] if rng.random() < 0.75 else []
        points = np.concatenate([*lead, inside, *tail])
        margins = rng.uniform(-0.1, 0.3, size=2) * len(inside)
        origin = sum(len(piece) for piece in lead)
        start, stop = origin - margins[0], origin + len(inside) + margins[1]
    time = (np.arange(CLIP_LENGTH) + 0.5) / CLIP_LENGTH
    time = time + rng.uniform(-options.most_warp, options.most_warp) * time * (1 - time)
    return points_at(points, start + time * (stop - start) - 0.5)


def stitched(
    signs: Sequence[RecordedSign], rng: np.random.Generator, options: StitchOptions = StitchOptions()
) -> StitchedPassage:
    """Join signs into one passage."""
    pieces: list[FloatArray] = []
    places: list[StitchedSign] = []
    n_frames = 0
    for sign in signs:
        piece = _sped_up(sign, rng, options)
        if pieces:
            gap = bridge(pieces[-1][-1], piece[0], int(rng.integers(*options.bridge, endpoint=True)))
            pieces.append(gap)
            n_frames += len(gap)
        pieces.append(piece)
        places.append(StitchedSign(sign.word, sign.signer, FrameSpan(n_frames, n_frames + len(piece))))
        n_frames += len(piece)
    if not pieces:
        raise ValueError("a passage without signs")
    return StitchedPassage(np.concatenate(pieces), tuple(places))


def bridge(before: FloatArray, after: FloatArray, n_frames: int) -> FloatArray:
    """The way from one frame (258,) to another in `n_frames` frames; a part that either lacks is missing on it."""
    share = ((np.arange(n_frames) + 1) / (n_frames + 1))[:, None].astype(np.float32)
    way: FloatArray = before * (1 - share) + after * share
    for part in PARTS:
        if not (before[part].any() and after[part].any()):
            way[:, part] = 0
    return way


def _sped_up(sign: RecordedSign, rng: np.random.Generator, options: StitchOptions) -> FloatArray:
    n = len(sign.span)
    start, stop = sign.span.start + rng.uniform(*options.cut) * n, sign.span.stop - rng.uniform(*options.cut) * n
    speed = rng.uniform(*options.speed)
    n_frames = max(_FEWEST_FRAMES, round((stop - start) / speed))
    return points_at(sign.points, start + (np.arange(n_frames) + 0.5) * ((stop - start) / n_frames) - 0.5)


def _neighbour(sign: RecordedSign, side: int, rng: np.random.Generator, options: WindowOptions) -> FloatArray:
    """Some frames from the end (side -1) or the start (side 1) of another sign, without the way to and from rest."""
    n_frames = int(rng.integers(1, options.longest_neighbour, endpoint=True))
    skipped = int(rng.uniform(0, 0.3) * len(sign.span))
    if side > 0:
        first = sign.span.start + skipped
        return sign.points[first : first + n_frames]
    last = sign.span.stop - skipped
    return sign.points[max(sign.span.start, last - n_frames) : last]


def _bridge_length(rng: np.random.Generator, options: WindowOptions) -> int:
    return int(rng.integers(1, options.longest_bridge, endpoint=True))


# New words made of recorded ones: played backwards, signed elsewhere, with the hand shape of another, or compounds.
#
# Few words are known, and a network that only tells them apart forgets what they do not need. Sign languages build
# words from hand shape, place and movement; exchanging one of these makes a word nobody signs but anybody could. Both
# windows of a pair are changed in the same way, so that they still show one word, by two signers.


Pair = tuple[FloatArray, FloatArray]  # windows (16, 258) of one word by two signers

_ARMS = ((13, (15, 17, 19, 21)), (14, (16, 18, 20, 22)))  # the elbow and the hand's points of the pose: left, right
_FEWEST_SHAPES = 4  # frames in which a hand must be seen to lend its shape


def made_up_word(pair: Pair, other: Pair, rng: np.random.Generator) -> Pair:
    """A new word of one or two known ones, shown by the same two signers."""
    kind = int(rng.integers(4))
    if kind == 0:
        return np.ascontiguousarray(pair[0][::-1]), np.ascontiguousarray(pair[1][::-1])
    if kind == 1:
        angle, distance = rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 1.1)  # shoulder widths
        offset = (distance * np.cos(angle), distance * np.sin(angle))
        return elsewhere(pair[0], offset), elsewhere(pair[1], offset)
    if kind == 2:
        return with_shape_of(pair[0], other[0]), with_shape_of(pair[1], other[1])
    first = int(rng.integers(6, 11))  # frames of the compound that show the first word
    return compound(pair[0], other[0], first), compound(pair[1], other[1], first)


def elsewhere(window: FloatArray, offset: Sequence[float]) -> FloatArray:
    """The same hands and wrists, moved by (x, y); elbows follow half the way."""
    moved = window.copy()
    step = np.asarray(offset, dtype=np.float32)
    pose = moved[:, PARTS[0]].reshape(len(window), 33, 4)
    seen = (window[:, PARTS[0]] != 0).any(axis=1, keepdims=True)
    for part, (elbow, points) in zip(PARTS[1:], _ARMS, strict=True):
        hand = moved[:, part].reshape(len(window), 21, 3)
        hand[..., :2] += np.where((hand != 0).any(axis=(1, 2), keepdims=True), step, 0)
        moved[:, part] = hand.reshape(len(window), -1)
        pose[:, points, :2] += np.where(seen[..., None], step, 0)
        pose[:, elbow, :2] += np.where(seen, step / 2, 0)
    moved[:, PARTS[0]] = pose.reshape(len(window), -1)
    return moved


def with_shape_of(window: FloatArray, other: FloatArray) -> FloatArray:
    """The hands of `window` where they are, each with the shape that the same hand has in `other`."""
    changed = window.copy()
    frames = np.arange(len(window))
    for part in PARTS[1:]:
        own, lent = (clip[:, part].reshape(len(clip), 21, 3) for clip in (window, other))
        shown = np.flatnonzero(lent.any(axis=(1, 2)))
        if len(shown) < _FEWEST_SHAPES:
            continue
        shape = lent[shown[np.abs(frames[:, None] - shown).argmin(axis=1)]]
        hand = shape - shape[:, :1] + own[:, :1]
        changed[:, part] = np.where(own.any(axis=(1, 2), keepdims=True), hand, 0).reshape(len(window), -1)
    return changed


def compound(first: FloatArray, second: FloatArray, n_first: int) -> FloatArray:
    """The first word in `n_first` frames, the second in what is left of the 16."""
    lengths = (n_first, CLIP_LENGTH - n_first)
    shortened = (
        points_at(window, np.linspace(0, len(window) - 1, length))
        for window, length in zip((first, second), lengths, strict=True)
    )
    return np.concatenate(list(shortened))


# Signs of the synthetic world as recorded signs: forms that no real clip has, by bodies that nobody has.


SEED = 7


def synthetic_signs(n_forms: int = 1500, signers_per_form: int = 4) -> tuple[RecordedSign, ...]:
    """Forms of a world of the paper's size, each as a dictionary clip of several signers; its name is the word."""
    preset = preset_named("paper")
    world = World.of(preset, SEED)
    entries: dict[str, Entry] = {}
    for entry in world.dictionary_entries():
        entries.setdefault(entry.type_id, entry)
    rng = np.random.default_rng(SEED)
    signs = []
    for form in rng.permutation(sorted(entries))[:n_forms].tolist():
        for signer in rng.choice(preset.n_dictionary_signers, signers_per_form, replace=False).tolist():
            signs.append(_signed(world, entries[form], f"dictionary-{signer:03}"))
    return tuple(signs)


def _signed(world: World, entry: Entry, signer_id: str) -> RecordedSign:
    entry = replace(entry, entry_id=f"{entry.type_id} by {signer_id}", signer=Signer(signer_id))
    points = world.detected(world.perform_entry(entry), entry.entry_id)
    track = LandmarkTrack(entry.entry_id, TimeAxis(np.arange(len(points), dtype=np.float64) * FRAME_MS), points)
    return RecordedSign(Word(entry.type_id), signer_id, in_shoulder_widths(points), trim_by_landmarks(track, 1.0).kept)


# Random bodies, cameras and detectors for batches of landmark windows (B, T, 258) in shoulder widths.
#
# `landmark_changes` changes one clip as a picture would; these also make hands, fingers and signing space of other
# people, and work on a whole batch at once. What was not found stays so.


_HAND_TURN = (0.25, 0.3, 0.2)  # radians around x, y and z
_MIDDLE = (0.0, 0.6)  # of the signing space: in front of the chest
_CHANGED_ARMS = slice(13, 23)  # elbows, wrists and the hand's points of the pose
_HEAD = slice(0, 11)
_LONGEST_LOSS = 10.0  # frames


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyChanges:
    """How far the changes go."""

    strength: float = 1.0  # of all changes of place and shape
    mirror: float = 0.5  # how many windows are mirrored
    lost_stretch: float = 0.2  # how often a hand is lost for a while
    flicker: float = 0.25  # how often a hand comes and goes, frame by frame
    lost_left: float = 0.04  # how often the left hand is never found
    other_detector: float = 0.5  # how often arms and their visibility are as another detector would give them

    def __post_init__(self) -> None:
        shares = (self.mirror, self.lost_stretch, self.flicker, self.lost_left, self.other_detector)
        if self.strength < 0 or not all(0 <= share <= 1 for share in shares):
            raise ValueError(f"no change of bodies can be drawn from {self}")

    def apply(self, windows: Tensor, generator: torch.Generator) -> Tensor:
        """Windows (B, T, 258), each changed in its own way."""
        body = Body.of(windows)
        drawn = _Drawn(self.strength, len(windows), generator)
        hands = [_another_hand(part, drawn) for part in (body.left, body.right)]
        seen = _another_camera(_another_space(Body(body.pose, *hands), drawn), drawn)
        seen = self._by_another_detector(seen, generator)
        left, right = self._lost(seen.left, generator, self.lost_left), self._lost(seen.right, generator, 0.0)
        changed = torch.cat([part.points.flatten(-2) for part in (seen.pose, left, right)], dim=-1)
        is_mirrored = torch.rand(len(windows), 1, 1, generator=generator) < self.mirror
        return torch.where(is_mirrored, mirrored(changed), changed)

    def _by_another_detector(self, body: Body, generator: torch.Generator) -> Body:
        """Wrists of the body where the hands are, or a bit off; visible or not by chance.

        Most words are known from hands alone, on bodies that were put there. How such bodies differ from those that a
        detector finds must not tell which words are shown.
        """
        n_windows, n_frames, n_points = body.pose.points.shape[:3]
        pose = body.pose.points.clone()
        is_moved, is_hidden = torch.rand(2, n_windows, 1, 1, generator=generator) < self.other_detector
        for hand, (elbow, points) in zip((body.left, body.right), _ARMS, strict=True):
            place = hand.points[:, :, :1, :2] + 0.04 * torch.randn(n_windows, 1, 1, 2, generator=generator)
            taken = is_moved[..., None] & hand.found[..., None, None]
            pose[:, :, points, :2] = torch.where(taken, place, pose[:, :, points, :2])
            shift = 0.12 * torch.randn(n_windows, 1, 2, generator=generator)
            pose[:, :, elbow, :2] += torch.where(is_moved, shift, 0.0)
        visible = torch.rand(n_windows, 1, n_points, generator=generator)
        wobble = 0.1 * torch.randn(n_windows, n_frames, n_points, generator=generator)
        visible = (visible + wobble).clamp(0.05, 1)
        pose[..., 3] = torch.where(is_hidden, visible, pose[..., 3])
        return Body(_kept(pose, body.pose.found), body.left, body.right)

    def _lost(self, hand: Part, generator: torch.Generator, never: float) -> Part:
        n_windows, n_frames = hand.found.shape
        chance, start, length, blinks, gone = torch.rand(5, n_windows, 1, generator=generator)
        frame, start = torch.arange(n_frames), start * n_frames
        lost = (chance < self.lost_stretch) & (frame >= start) & (frame < start + length * _LONGEST_LOSS)
        lost |= (blinks < self.flicker) & (torch.rand(n_windows, n_frames, generator=generator) < 0.3)
        return _kept(hand.points, hand.found & ~(lost | (gone < never)))


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Random numbers for a batch, scaled by the strength of the changes."""

    strength: float
    n_windows: int
    generator: torch.Generator

    def even(self, *shape: int) -> Tensor:
        """(B, *shape) between -strength and strength."""
        return self.strength * (2 * torch.rand(self.n_windows, *shape, generator=self.generator) - 1)

    def normal(self, *shape: int) -> Tensor:
        """(B, *shape) around zero with the strength as deviation."""
        return self.strength * torch.randn(self.n_windows, *shape, generator=self.generator)


def _another_hand(hand: Part, drawn: _Drawn) -> Part:
    """Turned in space, larger or smaller, with other fingers, a little off its place, and shaking."""
    wrist = hand.points[:, :, :1]
    turned = torch.einsum("btkc,bdc->btkd", hand.points - wrist, _rotations(drawn.even(3) * torch.tensor(_HAND_TURN)))
    shape = turned * (1 + 0.15 * drawn.even(1, 1, 1)) * (1 + 0.08 * drawn.even(1, 21, 1))
    shift = torch.nn.functional.pad(0.07 * drawn.normal(1, 1, 2), (0, 1))
    noise = 0.012 * drawn.normal(*hand.points.shape[1:])
    return _kept(wrist + shape + shift + noise, hand.found)


def _another_space(body: Body, drawn: _Drawn) -> Body:
    """Wider, narrower, higher or lower signing, another head and other proportions."""
    middle, extent, shift = torch.tensor(_MIDDLE), 1 + 0.15 * drawn.even(1, 1, 2), 0.08 * drawn.normal(1, 1, 2)

    def moved(place: Tensor) -> Tensor:
        return (place - middle) * extent + middle + shift

    hands = []
    for hand in (body.left, body.right):
        wrist = hand.points[:, :, :1, :2]
        step = torch.nn.functional.pad(moved(wrist) - wrist, (0, 1))
        hands.append(_kept(hand.points + step, hand.found))
    pose = body.pose.points.clone()
    pose[:, :, _CHANGED_ARMS, :2] = moved(pose[:, :, _CHANGED_ARMS, :2])
    pose[:, :, _HEAD, :2] += 0.06 * drawn.normal(1, 1, 2)
    n_frames, n_points = pose.shape[1:3]
    pose[..., :2] += 0.01 * drawn.normal(n_frames, n_points, 2) + 0.03 * drawn.normal(1, n_points, 2)
    return Body(_kept(pose, body.pose.found), *hands)


def _another_camera(body: Body, drawn: _Drawn) -> Body:
    """Tilted, stretched and sheared, and the hands seen from another side."""
    tilt, stretch, shear, side = 0.2 * drawn.even(), 1 + 0.15 * drawn.even(), 0.1 * drawn.even(), 0.25 * drawn.even()
    rows = [torch.cos(tilt) * stretch, -torch.sin(tilt) + shear, torch.sin(tilt), torch.cos(tilt)]
    matrix = torch.stack(rows, dim=-1).view(-1, 2, 2)
    cosine, sine = (number[:, None, None] for number in (torch.cos(side), torch.sin(side)))

    def placed(part: Part) -> Tensor:
        return torch.einsum("btkc,bdc->btkd", part.points[..., :2], matrix)

    def hand(part: Part) -> Part:
        place, depth = placed(part), part.points[..., 2]
        across = place[..., 0] - place[..., :1, 0]
        x = place[..., :1, 0] + across * cosine + depth * sine
        return _kept(torch.stack([x, place[..., 1], depth * cosine - across * sine], dim=-1), part.found)

    pose = torch.cat([placed(body.pose), body.pose.points[..., 2:]], dim=-1)
    return Body(_kept(pose, body.pose.found), hand(body.left), hand(body.right))


def _rotations(angles: Tensor) -> Tensor:
    """Rotations (B, 3, 3) around x, then y, then z by angles (B, 3)."""
    (cx, cy, cz), (sx, sy, sz) = torch.cos(angles).unbind(-1), torch.sin(angles).unbind(-1)
    none, one = torch.zeros_like(cx), torch.ones_like(cx)

    def matrix(*numbers: Tensor) -> Tensor:
        return torch.stack(numbers, dim=-1).view(-1, 3, 3)

    around_x = matrix(one, none, none, none, cx, -sx, none, sx, cx)
    around_y = matrix(cy, none, sy, none, one, none, -sy, none, cy)
    return matrix(cz, -sz, none, sz, cz, none, none, none, one) @ around_y @ around_x


def _kept(points: Tensor, found: Tensor) -> Part:
    return Part(torch.where(found[..., None, None], points, 0.0), found)


TRUNK_DIM = LandmarkEncoderConfig().embedding_dim
_MADE_UP = 1_000_000  # numbers of made-up words start here
_FREQUENT = 20  # a word with more clips than this is not shown more often
_LONGEST_GRADIENT = 2.0
_AVERAGED_FROM, _AVERAGED_EVERY = 50, 5  # steps: before the first, the mean is the newest weights


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkTrainingConfig:
    """Everything a training depends on beside its clips."""

    steps: int = 4000
    words_per_batch: int = 48
    learning_rate: float = 1.5e-3
    warm_up: int = 60  # steps
    fall: float = 0.6  # of the steps: at the end, with a falling rate
    weight_decay: float = 0.05
    made_up: float = 0.2  # the share of made-up words among the real ones
    synthetic: float = 0.0  # the share of signs of the synthetic world
    scale: float = 18.0  # of the cosines that are classified
    margin: float = 0.1  # by which the cosine with the right word must lead
    smoothing: float = 0.05  # of the labels
    temperature: float = 0.1  # of the contrast
    dropout: float = 0.2  # of the trunk's vector
    averaging: float = 0.995  # the model is a running mean of its weights
    seed: int = 0
    width: int = 192
    contacts: bool = True
    changes: BodyChanges = BodyChanges(strength=0.8)
    windows: WindowOptions = WindowOptions()

    def __post_init__(self) -> None:
        if (
            min(self.steps, self.words_per_batch, self.warm_up) < 1
            or not 0 <= min(self.made_up, self.synthetic) <= max(self.made_up, self.synthetic) <= 1
            or not 0 < self.fall <= 1
        ):
            raise ValueError(f"no training by {self}")


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkBatch:
    """Windows in pairs: the rows 2 i and 2 i + 1 show one word."""

    windows: Tensor  # (B, 16, 258)
    words: Tensor  # (B,) int64 numbers of the vocabulary; made-up words have numbers of their own far above
    dropout: Tensor  # (B, 1024) what the trunk's vectors are multiplied by

    @property
    def is_real(self) -> Tensor:
        """(B,) bool: whether the word is one of the vocabulary."""
        return self.words < _MADE_UP


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkNetworks:
    """What is trained; the head's classifier holds the direction of each word."""

    trunk: LandmarkEncoder
    head: Head
    vocabulary: Vocabulary


@dataclass(frozen=True, slots=True)
class Step:
    """How a training goes."""

    number: int  # steps done
    classification: float  # loss
    contrast: float  # loss
    accuracy: float  # on the batch


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkLesson:
    """What a training learns from."""

    signs: Sequence[RecordedSign]
    synthetic: Sequence[RecordedSign] = ()


@dataclass(slots=True, eq=False)
class SignsByWord:
    """Clips, and where those of each word are."""

    signs: Sequence[RecordedSign]
    vocabulary: Vocabulary = field(init=False)
    by_word: list[list[RecordedSign]] = field(init=False)

    def __post_init__(self) -> None:
        self.vocabulary = Vocabulary.of(sign.word for sign in self.signs)
        self.by_word = [[] for _ in self.vocabulary]
        for sign in self.signs:
            self.by_word[self.vocabulary.id_of(sign.word)].append(sign)

    def pair(self, word: int, rng: np.random.Generator, options: WindowOptions) -> Pair:
        """Two windows on a word, by two signers where there are two."""
        signs = self.by_word[word]
        first = signs[int(rng.integers(len(signs)))]
        same = [sign for sign in signs if not (first.variation and sign.variation) or sign.variation == first.variation]
        others = [sign for sign in same if sign.signer != first.signer] or same
        second = others[int(rng.integers(len(others)))]

        def another() -> RecordedSign:
            return self.signs[int(rng.integers(len(self.signs)))]

        return training_window(first, another, rng, options), training_window(second, another, rng, options)


@dataclass(slots=True, eq=False)
class LandmarkBatches:
    """The batches of a training: number `step` depends on the seed and the step alone."""

    lesson: LandmarkLesson
    config: LandmarkTrainingConfig
    _real: SignsByWord = field(init=False)
    _synthetic: SignsByWord = field(init=False)
    _share: npt.NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self._real, self._synthetic = SignsByWord(self.lesson.signs), SignsByWord(self.lesson.synthetic)
        often = np.sqrt([min(len(signs), _FREQUENT) for signs in self._real.by_word])
        self._share = often / often.sum()
        if len(self.vocabulary) < max(2, self.config.words_per_batch):
            raise ValueError(f"{self.config.words_per_batch} words a batch of {len(self.vocabulary)}")
        if self.config.synthetic and not self.lesson.synthetic:
            raise ValueError(f"no synthetic signs for a share of {self.config.synthetic}")

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that are told apart: those of real clips."""
        return self._real.vocabulary

    def batch(self, step: int) -> LandmarkBatch:
        """The batch of a step, counted from 0."""
        rng = np.random.default_rng([self.config.seed, step])
        chosen = rng.choice(len(self.vocabulary), self.config.words_per_batch, replace=False, p=self._share)
        windows: list[FloatArray] = []
        words: list[int] = []
        for place, word in enumerate(chosen.tolist()):
            pair, is_real = self._pair(word, rng)
            windows += pair
            words += [word if is_real else _MADE_UP + place] * 2
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        shown = self.config.changes.apply(torch.from_numpy(np.stack(windows)), generator)
        kept = torch.rand(len(shown), TRUNK_DIM, generator=generator) >= self.config.dropout
        return LandmarkBatch(shown, torch.tensor(words), kept / (1 - self.config.dropout))

    def pair_of(self, word: int, rng: np.random.Generator) -> FloatArray:
        """Two windows (2, 16, 258) on a word of the vocabulary."""
        return np.stack(self._real.pair(word, rng, self.config.windows))

    def _pair(self, word: int, rng: np.random.Generator) -> tuple[Pair, bool]:
        """Windows on a word, and whether it is that word; else it is made up, or one of the world in its place."""
        if self.config.synthetic and rng.random() < self.config.synthetic:
            form = int(rng.integers(len(self._synthetic.vocabulary)))
            return self._synthetic.pair(form, rng, self.config.windows), False
        pair = self._real.pair(word, rng, self.config.windows)
        if rng.random() >= self.config.made_up:
            return pair, True
        other = self._real.pair(int(rng.integers(len(self.vocabulary))), rng, WindowOptions(neighbours=0.0))
        return made_up_word(pair, other, rng), False


class LandmarkTraining:
    """A training that goes on step by step; the same clips and config give the same networks on the same machine."""

    def __init__(
        self, lesson: LandmarkLesson, config: LandmarkTrainingConfig, start: LandmarkNetworks | None = None
    ) -> None:
        """From scratch, or from what networks know already, whose words may be others."""
        self.config, self.n_steps = config, 0
        self._batches = LandmarkBatches(lesson, config)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            # The trunk has no classifier worth the name: words are told apart after the head.
            self._trunk = LandmarkEncoder(
                LandmarkEncoderConfig(classes=1, width=config.width, dropout=0.0, contacts=config.contacts)
            ).train()
            self._head = Head(HeadConfig(classes=len(self._batches.vocabulary))).train()
        if start is not None:
            _begin_as(start, self._trunk, self._head, self._batches)
        self._both = nn.ModuleList([self._trunk, self._head])
        self._average = copy.deepcopy(self._both)
        self._optimiser = _optimiser(self._both, config)

    def step(self) -> Step:
        """Learn from one more batch."""
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate(self.n_steps, self.config)
        batch = self._batches.batch(self.n_steps)
        embedding = self._head(batch.dropout * self._trunk(batch.windows).embedding).embedding
        classification, accuracy = _classification(embedding, self._head, batch, self.config)
        contrast = supervised_contrast(embedding, batch.words, self.config.temperature)
        loss = classification + contrast
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._both.parameters(), _LONGEST_GRADIENT)
        self._optimiser.step()
        self.n_steps += 1
        if self.n_steps % _AVERAGED_EVERY == 0:
            kept = self.config.averaging**_AVERAGED_EVERY if self.n_steps > _AVERAGED_FROM else 0.0
            _follow(self._average, self._both, kept)
        return Step(self.n_steps, classification.item(), contrast.item(), accuracy)

    def networks(self) -> LandmarkNetworks:
        """What has been learnt so far: the running mean of the weights."""
        trunk = LandmarkEncoder(self._trunk.config)
        head = Head(self._head.config)
        nn.ModuleList([trunk, head]).load_state_dict(self._average.state_dict())
        if head.logits is not None:
            with torch.no_grad():  # only the direction of a word is trained
                head.logits.weight.copy_(F.normalize(head.logits.weight, dim=1))
                head.logits.bias.zero_()
        return LandmarkNetworks(trunk.eval(), head.eval(), self._batches.vocabulary)


@torch.no_grad()
def _begin_as(start: LandmarkNetworks, trunk: LandmarkEncoder, head: Head, batches: LandmarkBatches) -> None:
    """The weights of trained networks; a word that is new to them starts in the middle of what they make of it."""
    trunk.load_state_dict(start.trunk.state_dict())
    old = {name: tensor for name, tensor in start.head.state_dict().items() if not name.startswith("logits.")}
    head.load_state_dict(old, strict=False)
    if head.logits is None or start.head.logits is None:
        raise ValueError("a head without a classifier")
    drawn = np.random.default_rng(batches.config.seed)
    for number, word in enumerate(batches.vocabulary):
        if word in start.vocabulary:
            head.logits.weight[number] = start.head.logits.weight[start.vocabulary.id_of(word)]
        else:
            shown = np.concatenate([batches.pair_of(number, drawn) for _ in range(4)])
            vectors = start.head(start.trunk(torch.from_numpy(shown)).embedding).embedding
            head.logits.weight[number] = F.normalize(vectors.mean(dim=0), dim=0)


def train_landmark_model(
    lesson: LandmarkLesson,
    config: LandmarkTrainingConfig,
    told: Callable[[Step], None] = lambda step: None,
    start: LandmarkNetworks | None = None,
) -> LandmarkNetworks:
    """Train on clips of single signs to the end."""
    training = LandmarkTraining(lesson, config, start)
    for _ in range(config.steps):
        told(training.step())
    return training.networks()


def learning_rate(step: int, config: LandmarkTrainingConfig) -> float:
    """Up in a straight line, then level, in the last part of the steps down along half a cosine to a fiftieth."""
    falling = max(0.0, step / config.steps - (1 - config.fall)) / config.fall
    share = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * falling))
    return config.learning_rate * min(1.0, (step + 1) / config.warm_up) * share


def supervised_contrast(embedding: Tensor, words: Tensor, temperature: float) -> Tensor:
    """The mean of -log softmax of the cosines of unit rows (B, d) at the other rows of the same word; each has one."""
    itself = torch.eye(len(embedding), dtype=torch.bool)
    same = (words[:, None] == words) & ~itself
    logs = (embedding @ embedding.T / temperature).masked_fill(itself, -1e9).log_softmax(dim=1)
    return -(torch.where(same, logs, 0.0).sum(1) / same.sum(1)).mean()


def word_cosines(embedding: Tensor, head: Head) -> Tensor:
    """The cosines (B, n_words) of unit rows with the direction of each word."""
    if head.logits is None:
        raise ValueError("a head without a classifier")
    return embedding @ F.normalize(head.logits.weight, dim=1).T


def _classification(
    embedding: Tensor, head: Head, batch: LandmarkBatch, config: LandmarkTrainingConfig
) -> tuple[Tensor, float]:
    words = batch.words[batch.is_real]
    if not len(words):
        return embedding.new_zeros(()), 0.0
    cosine = word_cosines(embedding[batch.is_real], head)
    handicap = config.margin * F.one_hot(words, cosine.shape[1])
    loss = F.cross_entropy(config.scale * (cosine - handicap), words, label_smoothing=config.smoothing)
    return loss, float((cosine.argmax(1) == words).float().mean())


def _optimiser(networks: nn.Module, config: LandmarkTrainingConfig) -> torch.optim.Optimizer:
    weights = [parameter for parameter in networks.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in networks.parameters() if parameter.ndim <= 1]
    groups = [{"params": weights, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


@torch.no_grad()
def _follow(average: nn.Module, newest: nn.Module, kept: float) -> None:
    for mean, value in zip(average.parameters(), newest.parameters(), strict=True):
        mean.lerp_(value, 1 - kept)


# How the shipped landmark model is trained: in three stages, of which the first two never see the words and signers of
# a fold. Their model judges what new words and new signers cost, and its mistakes there calibrate the answers; the last
# stage goes on from it with everything. A head is only used in training: signs are compared by the trunk.


ARCHITECTURE = "landmark+mlp"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The trainings, one after the other."""

    fold: tuple[LandmarkTrainingConfig, ...] = (
        LandmarkTrainingConfig(steps=6000, made_up=0.25, synthetic=0.15),
        LandmarkTrainingConfig(steps=9000, made_up=0.3, synthetic=0.12, learning_rate=1.2e-3, fall=0.7, seed=3),
    )
    everything: LandmarkTrainingConfig = LandmarkTrainingConfig(
        steps=5000, made_up=0.2, synthetic=0.1, learning_rate=1e-3, fall=0.9, seed=4
    )
    projection: ProjectionConfig = ProjectionConfig()

    @property
    def n_steps(self) -> int:
        """Steps in all."""
        return sum(config.steps for config in (*self.fold, self.everything))

    def __str__(self) -> str:
        counts = " and ".join(f"{config.steps} (seed {config.seed})" for config in self.fold)
        last = f"{self.everything.steps} (seed {self.everything.seed}) with everything"
        return f"{counts} steps without the words and signers of a fold, then {last}, compared by the trunk"


def train_fold(
    lesson: LandmarkLesson, folder: Path, told: Callable[[Step], None] = lambda step: None, recipe: Recipe = Recipe()
) -> LandmarkNetworks:
    """The networks of the stages before the last; they stay in `folder`, and are not trained again."""
    networks = None
    for number, config in enumerate(recipe.fold, start=1):
        networks = _trained(folder / f"stage-{number}.safetensors", lesson, config, told, networks)
    if networks is None:
        raise ValueError("a recipe without stages")
    return networks


def train_everything(
    lesson: LandmarkLesson,
    start: LandmarkNetworks,
    folder: Path,
    told: Callable[[Step], None] = lambda step: None,
    recipe: Recipe = Recipe(),
) -> LandmarkNetworks:
    """The last stage, from the networks of the fold on."""
    return _trained(folder / "last-stage.safetensors", lesson, recipe.everything, told, start)


def model_card(networks: LandmarkNetworks, *, name: str, created_from: str) -> ModelCard:
    """What is known of a landmark model by itself."""
    return ModelCard(
        name=name,
        architecture=ARCHITECTURE,
        config=describe(networks.trunk, networks.head),
        preprocessing={"frame_rate": 25, "clip_length": 16, "unit": "picture heights"},
        vocabulary=tuple(networks.vocabulary),
        created_from=created_from,
    )


def _trained(
    path: Path,
    lesson: LandmarkLesson,
    config: LandmarkTrainingConfig,
    told: Callable[[Step], None],
    start: LandmarkNetworks | None,
) -> LandmarkNetworks:
    """The networks of a file, which a training leaves there where it does not exist."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        networks = train_landmark_model(lesson, config, told, start)
        card = model_card(networks, name=path.stem, created_from=f"{config.steps} steps with seed {config.seed}")
        save_checkpoint(path, state_of(networks.trunk, networks.head), card)
    checkpoint = load_checkpoint(path)
    trunk, head = checkpoint.networks()
    if not isinstance(trunk, LandmarkEncoder) or head is None:
        raise ValueError(f"{path} holds no landmark model")
    vocabulary = Vocabulary.of(Word(word) for word in checkpoint.card.vocabulary)
    return LandmarkNetworks(trunk.eval(), head.eval(), vocabulary)


# Landmarks as a model takes them: at 25 frames a second, cut into windows, and windows compared at their best length.


def at_house_rate(points: FloatArray, seconds: Floats) -> FloatArray:
    """Landmarks (n, 258) at the times (n,), ascending -> the same motion at 25 frames a second."""
    n_frames = round((seconds[-1] - seconds[0]) * FRAME_RATE) + 1
    times = seconds[0] + np.arange(n_frames) / FRAME_RATE
    return points_at(points, np.interp(times, seconds, np.arange(len(seconds), dtype=np.float64)))


def multi_rate_windows(points: FloatArray, rates: Rates = Rates()) -> Iterator[FloatArray]:
    """For each length the windows (n_windows, 16, 258) around the same frames: those of the usual 16-frame grid."""
    starts = WindowGrid(len(points), stride=rates.stride).starts()
    for length in rates.lengths:
        yield windows_around(points, starts, length)


def best_over_rates(windows: Sequence[FloatArray], entries: FloatArray) -> FloatArray:
    """The highest cosine of each place with each entry over the lengths.

    `windows` has unit rows (n_windows, d) for each length, `entries` unit rows (n_entries, d): (n_windows, n_entries).
    """
    if not windows:
        raise ValueError("no windows of any length")
    best: FloatArray = np.max([vectors @ entries.T for vectors in windows], axis=0)
    return best


def sign_window(points: FloatArray) -> FloatArray:
    """The sign in a clip of landmarks (n, 258), in any unit, brought to the 16 frames that a model takes: (16, 258)."""
    span = sign_span(points)
    return window_at(points, span.start, len(span))
