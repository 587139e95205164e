"""Heads learned from training sentences by the ordinary code of signspot.

Watch: a seeded third of the words of each sentence, labelled at the word's last frame. Read: the words of the sentence,
in no order. Look up: tokens of other signers. A passage must not meet its own signer's tokens, so words are filed by
who reads them (`woman-1:john` has the tokens of the two others); those of one spelling are synonyms, which the losses
leave out of the negatives. A classifier has one class for each spelling.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from experiments.lib.data_sets import SignedSentence, SignedWord
from trajectories import Postures, Projection, changed, frames_of, token, windows

from signspot.domain.recordings import Synonyms, Vocabulary, Word
from signspot.domain.tracks import CLIP_LENGTH, Bools, FloatArray
from signspot.learning.config import EmbeddingConfig
from signspot.learning.head import TrainingData, make_setup, train_head
from signspot.learning.material import Material, Passages
from signspot.learning.runs import RunFolder
from signspot.models.checkpoints import HEAD, build_head, load_checkpoint
from signspot.models.head import Head

Loss = Literal["classification", "watch-lookup", "watch-read-lookup"]
LOSSES: tuple[Loss, ...] = ("classification", "watch-lookup", "watch-read-lookup")
WATCHED = 1 / 3
_COPIES = 4  # of every sentence, the first as it is and the others changed
_MOST_ENTRIES = 4  # of one word by one signer
_HALF = CLIP_LENGTH // 2  # row i of a track is the window around frame i: in material its centre is frame i + 8


@dataclass(frozen=True, slots=True, eq=False)
class Schoolbook:
    """Training sentences and how they become vectors."""

    sentences: Sequence[SignedSentence]
    postures: Postures
    trunk: Projection
    seed: int


@dataclass(frozen=True, slots=True)
class _Label:
    """One watched word: the columns of `Passages`."""

    name: str
    track: int
    n_frames: int
    word: int
    frame: int
    read: tuple[int, ...]


def learn(book: Schoolbook, loss: Loss) -> Head:
    """Train a head with one of the paper's losses."""
    material, synonyms = _material(book, is_shared=loss == "classification")
    config = EmbeddingConfig(
        loss=loss,
        synonyms="keep" if loss == "classification" else "sign",
        hidden_dim=128,
        embedding_dim=64,
        batch_size=32,
        balanced=False,  # john labels a sixth of all passages: an epoch would consist of him
        foreground="centre",
        foreground_before=8,  # a word lasts 9 frames on average and is labelled at its last
        foreground_after=0,
        background_clips=4,
        learning_rate=0.02,
        weight_decay=1e-3,
        epochs=20,
        decay_epochs=(14, 18),
        evaluate_every=20,
        seed=book.seed,
        threads=1,
    )
    lesson = make_setup(config, TrainingData(train=material, synonyms=synonyms))
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(Path(folder) / "run")
        with run.opened(config, {"trunk": material.fingerprint}, "new"):
            train_head(config, lesson, run)
        learned = load_checkpoint(run.last)
    head = build_head(learned.card.config)
    head.load_state_dict(learned.part(HEAD))
    return head.eval()


def embedded(head: Head, vectors: FloatArray) -> FloatArray:
    """(n, d) vectors of the trunk -> (n, 64) of length 1."""
    with torch.inference_mode():
        rows: FloatArray = head(torch.from_numpy(vectors)).embedding.numpy()
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class _Filing:
    """Under which number a signer reads a word."""

    signers: tuple[str, ...]
    words: dict[tuple[str, Word], Word]  # by signer and spelling
    vocabulary: Vocabulary

    @classmethod
    def of(cls, sentences: Sequence[SignedSentence], *, is_shared: bool) -> _Filing:
        signers = tuple(sorted({sentence.signer for sentence in sentences}))
        spellings = {one.word for sentence in sentences for one in sentence.words}
        words = {(who, word): Word(word if is_shared else f"{who}:{word}") for who in signers for word in spellings}
        return cls(signers, words, Vocabulary.of(words.values()))

    def number(self, signer: str, word: Word) -> int:
        return self.vocabulary.id_of(self.words[signer, word])

    def readers(self, signer: str, word: Word) -> tuple[int, ...]:
        """The words under which the token of a signer is looked up by others."""
        return tuple(sorted({self.number(who, word) for who in self.signers if who != signer}))

    def synonyms(self) -> Synonyms:
        same = [(a, b) for (who, word), a in self.words.items() for b in (self.words[o, word] for o in self.signers)]
        return Synonyms.of(same)


@dataclass(slots=True, eq=False)
class _Pile:
    """What is taken from sentences, one after another."""

    tracks: list[FloatArray] = field(default_factory=list)
    labels: list[_Label] = field(default_factory=list)
    tokens: list[tuple[str, Word, FloatArray]] = field(default_factory=list)  # signer, word, clip


def _material(book: Schoolbook, *, is_shared: bool) -> tuple[Material, Synonyms]:
    """`is_shared`: one word for all signers."""
    rng = np.random.default_rng([book.seed, 5])
    filing = _Filing.of(book.sentences, is_shared=is_shared)
    watched = {sentence.video_id: rng.random(len(sentence.words)) < WATCHED for sentence in book.sentences}
    pile = _Pile()
    for copy in range(_COPIES):
        for sentence in book.sentences:
            motion, words = book.postures.motion(sentence), sentence.words
            if copy:
                motion, words = changed(motion, words, rng)
            frames = frames_of(motion)
            pile.labels += _labels(sentence, words, filing, (len(pile.tracks), len(frames)), watched[sentence.video_id])
            pile.tracks.append(book.trunk(windows(frames)))
            pile.tokens += [(sentence.signer, one.word, token(frames, one.span)) for one in words]
    chosen = _few_of_each(pile.tokens, rng)
    entries = [(clip, number) for signer, word, clip in chosen for number in filing.readers(signer, word)]
    material = Material(
        vocabulary=filing.vocabulary,
        tracks=pile.tracks,
        passages=_passages(pile.labels),
        entry_ids=tuple(str(place) for place in range(len(entries))),
        entry_vectors=book.trunk(np.stack([clip for clip, _ in entries])),
        entry_word=np.array([number for _, number in entries], np.int64),
        fingerprint="boston104 trajectories",
    )
    return material, filing.synonyms()


def _labels(
    sentence: SignedSentence,
    words: Sequence[SignedWord],
    filing: _Filing,
    track: tuple[int, int],
    is_watched: Bools,
) -> list[_Label]:
    """The watched words of a sentence whose track has this number and length."""
    number, n_frames = track
    read = tuple(sorted({filing.number(sentence.signer, one.word) for one in words}))
    labels = []
    for place in np.flatnonzero(is_watched).tolist():
        frame = min(words[place].span.stop, n_frames) - 1 + _HALF
        word = filing.number(sentence.signer, words[place].word)
        labels.append(_Label(f"{sentence.video_id}, word {place}", number, n_frames, word, frame, read))
    return labels


def _few_of_each(
    tokens: Sequence[tuple[str, Word, FloatArray]], rng: np.random.Generator
) -> list[tuple[str, Word, FloatArray]]:
    """At most four tokens of a word by each signer, drawn: the 113 of john would make up every batch."""
    taken: Counter[tuple[str, str]] = Counter()
    chosen = []
    for place in rng.permutation(len(tokens)).tolist():
        signer, word, _ = tokens[place]
        if taken[signer, word] < _MOST_ENTRIES:
            taken[signer, word] += 1
            chosen.append(tokens[place])
    return chosen


def _passages(labels: Sequence[_Label]) -> Passages:
    n_read = [len(label.read) for label in labels]
    return Passages(
        names=tuple(label.name for label in labels),
        track=np.array([label.track for label in labels], np.int64),
        start=np.zeros(len(labels), np.int64),
        stop=np.array([label.n_frames + CLIP_LENGTH - 1 for label in labels], np.int64),
        label=np.array([label.word for label in labels], np.int64),
        label_frame=np.array([label.frame for label in labels], np.int64),
        confidence=np.ones(len(labels), np.float32),
        word_offsets=np.concatenate([[0], np.cumsum(n_read)]).astype(np.int64),
        words=np.array([number for label in labels for number in label.read], np.int64),
    )
