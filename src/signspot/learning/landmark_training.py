"""Training of the landmark model, trunk and head at once, from clips of single signs by many signers.

A batch shows some words twice, by two signers where there are two, as windows like those of running signing (see
`stitching`). The vectors of a word are drawn to the word's own direction, as in classification by cosine, and to each
other, away from those of other words (supervised contrast). Words made up from others, and signs of the synthetic
world, take part in the second only.

A network may have teachers: trained ones, whose cosines between the windows of a batch it learns, besides. It then
finds words that no training had better than any of them (experiments/landmark_model/README.md).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.domain.tracks import FloatArray
from signspot.domain.words import Vocabulary
from signspot.learning.body_changes import BodyChanges
from signspot.learning.made_up_words import Pair, made_up_word
from signspot.learning.stitching import RecordedSign, WindowOptions, training_window
from signspot.models.head import Head, HeadConfig
from signspot.models.landmark_encoder import LandmarkEncoder, LandmarkEncoderConfig

TRUNK_DIM = LandmarkEncoderConfig().embedding_dim
_MADE_UP = 1_000_000  # numbers of made-up words start here
_FREQUENT = 20  # a word with more clips than this is not shown more often
_LONGEST_GRADIENT = 2.0
_OWN_SHARE = (0.5, 0.3)  # of classification and contrast, where there are teachers
_TAUGHT_SHARE = (2.0, 20.0)  # of the order, and of the cosines themselves
_AVERAGED_FROM, _AVERAGED_EVERY = 50, 5  # steps: before the first, the mean is the newest weights


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkTrainingConfig:
    """Everything a training depends on beside its clips."""

    steps: int = 4000
    words_per_batch: int = 36
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
    width: int = 128
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
    taught: float  # loss; 0 without teachers
    accuracy: float  # on the batch


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkLesson:
    """What a training learns from."""

    signs: Sequence[RecordedSign]
    synthetic: Sequence[RecordedSign] = ()
    teachers: Sequence[LandmarkNetworks] = ()


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
        others = [sign for sign in signs if sign.signer != first.signer] or signs
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

    def __init__(self, lesson: LandmarkLesson, config: LandmarkTrainingConfig) -> None:
        self.config, self.n_steps = config, 0
        self._batches, self._teachers = LandmarkBatches(lesson, config), lesson.teachers
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            # The trunk has no classifier worth the name: words are told apart after the head.
            self._trunk = LandmarkEncoder(LandmarkEncoderConfig(classes=1, width=config.width, dropout=0.0)).train()
            self._head = Head(HeadConfig(classes=len(self._batches.vocabulary))).train()
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
        taught, loss = embedding.new_zeros(()), classification + contrast
        if self._teachers:
            taught = taught_cosines(embedding, self._teachers, batch.windows, self.config.temperature)
            loss = _OWN_SHARE[0] * classification + _OWN_SHARE[1] * contrast + taught
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._both.parameters(), _LONGEST_GRADIENT)
        self._optimiser.step()
        self.n_steps += 1
        if self.n_steps % _AVERAGED_EVERY == 0:
            kept = self.config.averaging**_AVERAGED_EVERY if self.n_steps > _AVERAGED_FROM else 0.0
            _follow(self._average, self._both, kept)
        return Step(self.n_steps, classification.item(), contrast.item(), taught.item(), accuracy)

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


def train_landmark_model(
    lesson: LandmarkLesson, config: LandmarkTrainingConfig, told: Callable[[Step], None] = lambda step: None
) -> LandmarkNetworks:
    """Train on clips of single signs to the end."""
    training = LandmarkTraining(lesson, config)
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


def taught_cosines(
    embedding: Tensor, teachers: Sequence[LandmarkNetworks], windows: Tensor, temperature: float
) -> Tensor:
    """How far the cosines between unit rows (B, d) are from those the teachers give, in the mean, to the same windows.

    Their order counts (divergence of the softmax of each row), and so does their height (squared difference).
    """
    with torch.no_grad():
        rows = [teacher.head(teacher.trunk(windows).embedding).embedding for teacher in teachers]
        wanted = torch.stack([row @ row.T for row in rows]).mean(dim=0)
    own, itself = embedding @ embedding.T, torch.eye(len(embedding), dtype=torch.bool)
    logs, shares = ((cosine / temperature).masked_fill(itself, -1e9).log_softmax(dim=1) for cosine in (own, wanted))
    order = F.kl_div(logs, shares, log_target=True, reduction="batchmean")
    return _TAUGHT_SHARE[0] * order + _TAUGHT_SHARE[1] * (own - wanted)[~itself].square().mean()


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
