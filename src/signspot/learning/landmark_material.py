"""Real signing for the landmark model: wlasl300 and asl30 on bodies of standard size, and who is held out.

The same recording is never both trained on and tested: repeats within a set are dropped, and so are the clips of asl30
that wlasl300 has too. (Hardly another clip of asl30 resembles one of it: experiments/landmark_model/leakage.py.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from signspot.domain.words import Word
from signspot.formats.landmark_sets import LandmarkClip, read_asl30, read_wlasl300
from signspot.learning.stitching import RecordedSign, recorded_sign
from signspot.spotting.multi_rate import at_house_rate


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

    @classmethod
    def read(cls, data: Path) -> RealSigning:
        """From the folder that holds wlasl300_landmarks and asl30_landmarks."""
        return cls(
            tuple(_real_sign(clip) for clip in read_wlasl300(data / "wlasl300_landmarks")),
            tuple(_real_sign(clip) for clip in read_asl30(data / "asl30_landmarks")),
        )

    def official(self, *splits: str) -> tuple[RecordedSign, ...]:
        """The clips of some official splits of wlasl300, and those of asl30 whose recording is in none."""
        kept = (real for real in self.wlasl300 if real.split in splits)
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

    def chosen(items: Iterable[RealSign], is_unseen: bool, is_stranger: bool) -> tuple[RecordedSign, ...]:
        return _without_repeats(
            item
            for item in items
            if (item.sign.word in unseen) == is_unseen and (item.sign.signer in strangers) == is_stranger
        )

    return Fold(
        training=chosen((*real.wlasl300, *real.asl30), False, False),
        support=chosen(real.wlasl300, True, False),
        query=chosen(real.wlasl300, True, True),
        seen_support=chosen(real.wlasl300, False, False),
        seen_query=chosen(real.wlasl300, False, True),
    )


def _without_repeats(items: Iterable[RealSign]) -> tuple[RecordedSign, ...]:
    return tuple(item.sign for item in items if not item.is_repeat)


def _real_sign(clip: LandmarkClip) -> RealSign:
    signer = clip.signer or f"unknown signer of {clip.clip_id}"
    sign = recorded_sign(clip.word, signer, at_house_rate(clip.points, clip.seconds))
    return RealSign(sign, clip.clip_id, clip.split, clip.is_repeat)
