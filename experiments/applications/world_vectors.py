"""Vectors of a made-up world, shared by the experiments on lookup, variants and friends.

A landmark encoder learns to name the variants of the dictionary's first language from the dictionary's clips and from
the annotated clips of the training signers, of which only the word is known; and, so that it also tells signs apart
that it has never seen, the forms in the dictionaries of another world. Everything else is then performed, seen as
a detector of landmarks would see it, and embedded once. Recordings of single signs by the test signers, whom nobody
trained on, are the questions of a learner. Whatever is finished lies in a folder and is not done again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from signspot.domain.recordings import Entry, Signer, Word
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, EmbeddingTrack, FloatArray, WindowGrid
from signspot.embedding.landmarks import window_at
from signspot.files.atomic import atomic_output, make_folder
from signspot.learning.clips import ClipWindow
from signspot.media.frames import random_clips
from signspot.models.embedders import LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig, mirrored
from signspot.world.lexicon import LANGUAGE, OTHER_LANGUAGE
from signspot.world.settings import chance, preset_named
from signspot.world.simulation import EpisodePerformance, World

FOLDER = "SIGNSPOT_EXPERIMENTS"  # where finished runs are kept
STEPS, BATCH, SCALE = 1000, 64, 16.0
OTHER_WORLD = ("small", 1)  # preset and seed: none of its words, forms or signers is tested
_WINDOW = ClipWindow(before=20, after=5)  # frames around an annotation in which its sign lies
Sign = tuple[Word, str]  # a word and one of its variants


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One sign, recorded alone by somebody whom the model has never seen."""

    word: Word
    form_id: str
    signer_id: str
    vectors: FloatArray  # (2, d) unit rows: as recorded, and mirrored


@dataclass(frozen=True, slots=True, eq=False)
class WorldVectors:
    """What there is to measure on, embedded; all rows have length 1."""

    world: World
    entries: tuple[Entry, ...]  # of the first language
    entry_vectors: FloatArray  # (n, d): the mean over clips of random speed and shift, for spotting (Paper 3.2)
    whole_vectors: FloatArray  # (n, d): the whole sign brought to 16 frames, for comparing single signs
    other_entries: tuple[Entry, ...]  # of the second language
    other_vectors: FloatArray  # (m, d): whole signs
    questions: tuple[Question, ...]
    folder: Path

    def episodes(self) -> Iterator[tuple[EpisodePerformance, EmbeddingTrack]]:
        """The test episodes, each with its windows."""
        for episode_id in self.world.episodes("test"):
            episode = self.world.perform_episode(episode_id)
            rows = np.load(self.folder / f"{episode_id}.npy", allow_pickle=False)
            axis = TimeAxis(np.arange(len(episode.performance), dtype=np.float64) * FRAME_MS)
            yield episode, EmbeddingTrack(episode_id, WindowGrid(len(axis)), axis, rows, "world")


def world_vectors(preset: str = "demo", seed: int = 0) -> WorldVectors:
    """The vectors of a world: those in the folder, and the rest made now."""
    torch.set_num_threads(1)
    folder = Path(os.environ.get(FOLDER) or "build/experiments") / f"applications-{preset}-{seed}"
    make_folder(folder)
    world = World.of(preset_named(preset), seed)
    entries, others, asked = world.dictionary_entries(), world.dictionary_entries(OTHER_LANGUAGE), _questions(world)
    maker = _Maker(world, folder)
    vectors = maker.kept("entries", lambda: np.stack([maker.entry(entry) for entry in entries]))
    whole = maker.kept("whole", lambda: np.stack([maker.whole(entry)[0] for entry in entries]))
    other = maker.kept("others", lambda: np.stack([maker.whole(entry)[0] for entry in others]))
    questions = maker.kept("questions", lambda: np.stack([maker.whole(entry) for entry in asked]))
    for episode_id in world.episodes("test"):
        maker.kept(episode_id, partial(maker.episode, episode_id))
    recorded = tuple(
        Question(entry.word, entry.type_id, entry.signer.signer_id if entry.signer else "", rows)
        for entry, rows in zip(asked, questions, strict=True)
    )
    return WorldVectors(world, entries, vectors, whole, others, other, recorded, folder)


@dataclass(frozen=True, slots=True, eq=False)
class TwoDictionaries:
    """Both languages of a world, whole signs."""

    world: World
    entries: tuple[Entry, ...]
    vectors: FloatArray  # (n, d)
    other_entries: tuple[Entry, ...]
    other_vectors: FloatArray  # (m, d)


def both_dictionaries(made: WorldVectors, seed: int) -> TwoDictionaries:
    """The dictionaries of a world of the same preset, of which the encoder has seen nothing unless it is its own."""
    world = World.of(made.world.preset, seed)
    maker = _Maker(made.world, made.folder)
    found: list[tuple[tuple[Entry, ...], FloatArray]] = []
    for language in (LANGUAGE, OTHER_LANGUAGE):
        entries = world.dictionary_entries(language)
        make = partial(maker.whole_signs, world, entries)
        found.append((entries, maker.kept(f"dictionary-{seed}-{language}", make)))
    (entries, vectors), (other_entries, other_vectors) = found
    return TwoDictionaries(world, entries, vectors, other_entries, other_vectors)


def _questions(world: World) -> tuple[Entry, ...]:
    """Every word once by each test signer, in one of its variants."""
    asked: list[Entry] = []
    for number in range(world.preset.n_test_signers):
        signer_id = f"test-{number:03}"
        rng = chance(world.seed, "questions", signer_id)
        signer = Signer(signer_id, world.signer(signer_id).left_handed)
        for word, senses in world.lexicon.of_language(LANGUAGE).items():
            sense = senses[int(rng.integers(len(senses)))]
            name = f"question_{signer_id}_{word}"
            asked.append(Entry(entry_id=name, word=word, variant=sense.variant, signer=signer, type_id=sense.form_id))
    return tuple(asked)


class _Maker:
    """Trains the encoder when it is first needed, and keeps what it makes."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world, self._folder, self._begun = world, folder, time.monotonic()
        self._embedder: LandmarkEmbedder | None = None

    def kept(self, name: str, make: Callable[[], FloatArray]) -> FloatArray:
        """The array of that name."""
        path = self._folder / f"{name}.npy"
        if not path.exists():
            made = make()
            with atomic_output(path) as temporary:
                np.save(temporary, made.astype(np.float32), allow_pickle=False)
            self.tell(f"embedded {name}")
        rows: FloatArray = np.load(path, allow_pickle=False)
        return rows

    def tell(self, what: str) -> None:
        """A line in the log."""
        sys.stderr.write(f"{time.monotonic() - self._begun:.0f} s: {what}\n")

    def entry(self, entry: Entry) -> FloatArray:
        """(d,) the mean over clips of random speed and shift."""
        points = _moving(self._world, entry)
        clips = points[random_clips(len(points), chance(self._world.seed, "clips", entry.entry_id))]
        mean = self.embedder.trunk_vectors(clips).mean(axis=0, keepdims=True)
        vector: FloatArray = self.embedder.head_vectors(mean)[0]
        return vector

    def whole_signs(self, world: World, entries: tuple[Entry, ...]) -> FloatArray:
        """(n, d) entries of any world."""
        return np.stack([self.whole(entry, world)[0] for entry in entries])

    def whole(self, entry: Entry, world: World | None = None) -> FloatArray:
        """(2, d) the whole sign in 16 frames, as it is and mirrored."""
        points = _moving(world or self._world, entry)
        clip = window_at(points, 0, len(points))
        return self.embedder.embed(np.stack([clip, mirrored(torch.from_numpy(clip)).numpy()]))

    def episode(self, episode_id: str) -> FloatArray:
        """(n_windows, d)."""
        points = self._world.detected(self._world.perform_episode(episode_id).performance, episode_id)
        view = np.lib.stride_tricks.sliding_window_view(points, CLIP_LENGTH, axis=0)
        return self.embedder.embed(view.transpose(0, 2, 1))

    @property
    def embedder(self) -> LandmarkEmbedder:
        """The encoder, trained if it is not there."""
        if self._embedder is None:
            path = self._folder / "encoder.safetensors"
            lesson = _Lesson(self._world)
            torch.manual_seed(0)  # of the first weights and everything drawn in training
            encoder = LandmarkEncoder(lesson.config)
            if path.exists():
                encoder.load_state_dict(load_file(path))
            else:
                lesson.teach(encoder, self.tell)
                with atomic_output(path) as temporary:
                    save_file(encoder.state_dict(), temporary)
            self._embedder = LandmarkEmbedder(encoder, None, name="world")
        return self._embedder


def _moving(world: World, entry: Entry) -> FloatArray:
    """(n_frames, 258) of an entry without its still ends."""
    performance = world.perform_entry(entry)
    moving = performance.moving
    return world.detected(performance, entry.entry_id)[moving.start : moving.stop]


class _Lesson:
    """Clips with what is known of them: a variant, or only a word."""

    def __init__(self, world: World) -> None:
        self._world = world
        entries = world.dictionary_entries()
        signs = sorted({(entry.word, entry.variant) for entry in entries})
        self._number = {sign: number for number, sign in enumerate(signs)}
        self._elsewhere = World.of(preset_named(OTHER_WORLD[0]), OTHER_WORLD[1])
        forms = sorted(self._elsewhere.lexicon.forms)
        self._form = {form: len(signs) + number for number, form in enumerate(forms)}
        self.config = LandmarkEncoderConfig(classes=len(signs) + len(forms), width=64, embedding_dim=256)
        self._of_word = np.zeros((len(world.vocabulary), self.config.classes), np.float32)
        for word, variant in signs:
            self._of_word[world.vocabulary.id_of(word), self._number[word, variant]] = 1

    def teach(self, encoder: LandmarkEncoder, tell: Callable[[str], None]) -> None:
        """Cosine classification; of an annotated clip any variant of its word will do."""
        rng = np.random.default_rng(0)
        shown, shown_allowed = self._dictionary()
        signed, signed_allowed = self._annotated()
        strange, strange_allowed = self._from_elsewhere()
        tell(f"{len(shown)} dictionary clips, {len(signed)} annotated ones, {len(strange)} of another world")
        names = torch.nn.Parameter(0.05 * torch.randn(self.config.classes, self.config.embedding_dim))
        optimiser = torch.optim.AdamW([*encoder.parameters(), names], lr=1e-3, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=STEPS, pct_start=0.1)
        encoder.train()
        for step in range(STEPS):
            sizes = (BATCH // 4, BATCH // 4, BATCH // 2)
            one, two, three = (
                rng.integers(len(clips), size=n) for clips, n in zip((shown, signed, strange), sizes, strict=True)
            )
            clips = [_drawn(shown[i], rng) for i in one] + [_excerpt(signed[i], rng) for i in two]
            clips += [_drawn(strange[i], rng) for i in three]
            known = (shown_allowed[one], signed_allowed[two], strange_allowed[three])
            allowed = torch.from_numpy(np.concatenate(known))
            vectors = encoder(_changed(torch.from_numpy(np.stack(clips)), rng)).embedding
            logits = SCALE * F.normalize(vectors) @ F.normalize(names).T
            loss = (logits.logsumexp(1) - logits.masked_fill(allowed == 0, -1e9).logsumexp(1)).mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(encoder.parameters(), 5.0)
            optimiser.step()
            schedule.step()
            if step % 50 == 0:
                tell(f"step {step}, loss {float(loss.detach()):.2f}")
        encoder.eval()

    def _dictionary(self) -> tuple[list[FloatArray], FloatArray]:
        entries = self._world.dictionary_entries()
        allowed = np.zeros((len(entries), self.config.classes), np.float32)
        for row, entry in enumerate(entries):
            allowed[row, self._number[entry.word, entry.variant]] = 1
        return [_moving(self._world, entry) for entry in entries], allowed

    def _from_elsewhere(self) -> tuple[list[FloatArray], FloatArray]:
        """Both dictionaries of another world, by form."""
        entries = [e for language in (LANGUAGE, OTHER_LANGUAGE) for e in self._elsewhere.dictionary_entries(language)]
        allowed = np.zeros((len(entries), self.config.classes), np.float32)
        for row, entry in enumerate(entries):
            allowed[row, self._form[entry.type_id]] = 1
        return [_moving(self._elsewhere, entry) for entry in entries], allowed

    def _annotated(self) -> tuple[list[FloatArray], FloatArray]:
        clips: list[FloatArray] = []
        allowed: list[FloatArray] = []
        for episode in self._world.perform_episodes("train"):
            points = self._world.detected(episode.performance, episode.episode_id)
            for annotation in episode.annotations:
                span = _WINDOW.around(annotation.frame)
                if annotation.confidence >= 0.7 and span.stop <= len(points):
                    clips.append(points[span.start : span.stop].copy())
                    allowed.append(self._of_word[self._world.vocabulary.id_of(annotation.word)])
        return clips, np.stack(allowed)


def _drawn(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A dictionary sign, whole or nearly, in 16 frames."""
    start, stop = rng.uniform(0, 0.12), rng.uniform(0.88, 1)
    return window_at(points, start * len(points), (stop - start) * len(points))


def _excerpt(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    """About 16 frames of an annotated stretch."""
    length = rng.uniform(13, 20)
    return window_at(points, rng.uniform(0, max(0.0, len(points) - length)), length)


def _changed(clips: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Half of the clips mirrored, all a little turned and stretched: (B, 16, 258)."""
    flip = torch.from_numpy(rng.random(len(clips)) < 0.5)
    clips = torch.where(flip[:, None, None], mirrored(clips), clips)
    angle = torch.from_numpy(rng.normal(0, np.radians(7), len(clips)).astype(np.float32))[:, None, None]
    stretch = torch.from_numpy(rng.uniform(0.88, 1.12, len(clips)).astype(np.float32))[:, None, None]
    pose, hands = clips[..., :132].reshape(*clips.shape[:2], 33, 4), clips[..., 132:].reshape(*clips.shape[:2], 42, 3)
    turned = [_turned(part, angle, stretch).flatten(-2) for part in (pose, hands)]
    return torch.where(clips != 0, torch.cat(turned, dim=-1), 0.0)


def _turned(part: torch.Tensor, angle: torch.Tensor, stretch: torch.Tensor) -> torch.Tensor:
    x, y = part[..., 0] - 0.5, part[..., 1] - 0.5
    cosine, sine = angle.cos(), angle.sin()
    place = torch.stack([stretch * (cosine * x - sine * y), sine * x + cosine * y], dim=-1) + 0.5
    return torch.cat([place, part[..., 2:]], dim=-1)


if __name__ == "__main__":
    given = sys.argv[1:] or ["demo", "0"]
    world_vectors(given[0], int(given[1]))
