"""The world itself: a dictionary and a broadcast archive that exist only as a preset and a seed.

Nothing is stored: every entry and every episode is performed when asked for, and always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Entry
from signspot.domain.recordings import Signer as SignerName
from signspot.domain.tracks import FloatArray
from signspot.domain.words import Vocabulary
from signspot.errors import InputError
from signspot.world.broadcast import EpisodePerformance, Newsroom, perform_episode
from signspot.world.lexicon import LANGUAGE, Lemma, Lexicon, Pool, build_lexicon, english_lemmas
from signspot.world.motion import Performance, gap_lengths, mouthed, performed, strokes_of, timed, varied
from signspot.world.people import HAND_NUMBERS, POSE_NUMBERS, Signer, draw_signer
from signspot.world.settings import Difficulty, Preset, chance, spread_counts

_MOST_ENTRIES = 10  # Paper 4.1
_REGIONS = ("north", "south", "east", "west")
_ZIPF = 0.85  # frequency of a word by its rank
_TOPICS = 0.8  # how much episodes differ in their words
_DICTIONARY_BLEND = 0.9  # frames


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Everything that can be asked of a world."""

    preset: Preset
    seed: int
    lemmas: tuple[Lemma, ...]  # the most frequent first
    lexicon: Lexicon
    test_words: Vocabulary
    entries_per_word: tuple[int, ...]

    @classmethod
    def of(cls, preset: Preset, seed: int = 0) -> World:
        if seed < 0:
            raise InputError("seed", f"{seed} is negative", "choose 0 or more")
        lemmas = english_lemmas(preset.n_words, chance(seed, "words"))
        rng = chance(seed, "entries")
        counts = spread_counts(preset.n_annotated, preset.entries_per_annotated_word, _MOST_ENTRIES, rng)
        if others := preset.n_words - preset.n_annotated:
            rest = spread_counts(others, preset.entries_per_other_word, _MOST_ENTRIES, rng)
            counts = np.concatenate([counts, rest])
        # Deviation (Paper 4.2 does not say how its test words were chosen): one of each stratum of frequency.
        strata = np.array_split(np.arange(preset.n_annotated), preset.n_test_words)
        test_words = Vocabulary.of(lemmas[int(rng.choice(stratum))].word for stratum in strata)
        lexicon = build_lexicon(lemmas, counts, seed, preset.difficulty)
        return cls(preset, seed, lemmas, lexicon, test_words, tuple(counts.tolist()))

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(lemma.word for lemma in self.lemmas)

    @property
    def annotated_words(self) -> Vocabulary:
        """The words annotators know: those of the seen protocol; without the test words those of the unseen one."""
        return Vocabulary.of(lemma.word for lemma in self.lemmas[: self.preset.n_annotated])

    def dictionary_entries(self, language: str = LANGUAGE) -> tuple[Entry, ...]:
        """The entries of the dictionary of one of the two languages; `type_id` is the form."""
        senses = self.lexicon.of_language(language)
        rng = chance(self.seed, "dictionary", language)
        entries: list[Entry] = []
        for lemma, count in zip(self.lemmas, self.entries_per_word, strict=True):
            own = senses[lemma.word]
            shown = [*own, *(own[int(rng.integers(len(own)))] for _ in range(count - len(own)))]
            signers = rng.integers(self.preset.n_dictionary_signers, size=len(shown))
            for number, (sense, signer) in enumerate(zip(shown, signers.tolist(), strict=True), start=1):
                name = f"{lemma.word}_{number}" if language == LANGUAGE else f"{language}_{lemma.word}_{number}"
                signer_id = f"dictionary-{signer:03}"
                person = SignerName(signer_id, self.signer(signer_id).left_handed)
                region, form_id = _REGIONS[int(sense.variant) - 1], sense.form_id
                entry = Entry(entry_id=name, word=lemma.word, variant=sense.variant, signer=person)
                entries.append(replace(entry, language=language, region=region, type_id=form_id))
        return tuple(entries)

    def signer(self, signer_id: str) -> Signer:
        kind, _, number = signer_id.partition("-")
        last = {"dictionary": self.preset.n_dictionary_signers, "train": self.preset.n_train_signers,
                "test": self.preset.n_test_signers}.get(kind, 0)  # fmt: skip
        if not number.isdecimal() or int(number) >= last:
            raise InputError(signer_id, "is not in this world", f"there are {kind}-000 to {kind}-{last - 1:03}")
        return draw_signer(signer_id, self.seed, self.preset.difficulty, filmed_aside=kind != "dictionary")

    def perform_entry(self, entry: Entry) -> Performance:
        """Sign a dictionary entry: slow and full, with still ends (Paper 4.1: 78 frames, 56 of them moving)."""
        if entry.type_id not in self.lexicon.forms or entry.signer is None:
            raise InputError(entry.entry_id, "is not in this world", "take one of dictionary_entries()")
        rng = chance(self.seed, "entry", entry.entry_id)
        signer = self.signer(entry.signer.signer_id)
        form = self.lexicon.forms[entry.type_id]
        knobs = self.preset.difficulty
        plan = strokes_of((None, form, None), signer)
        plan = varied(plan, (knobs.token_location, knobs.token_orientation, knobs.token_fingers), rng)
        n = len(form.strokes)
        durations = np.rint(rng.normal(37, 4, n) * signer.tempo * (1.0 if n == 1 else 0.5))
        durations += 2 * (plan.repetitions[1:-1] - 1)
        ends = np.clip(np.rint(rng.normal(11, 4, 2)), 3, 22)
        gaps = np.rint(4 + 3.2 * gap_lengths(plan)).astype(np.int64)
        plan = timed(plan, np.concatenate([ends[:1], np.maximum(durations, 12), ends[1:]]).astype(np.int64), gaps)
        span = int(plan.start[1]), int(plan.stop[-2])
        return mouthed(performed(plan, signer, _DICTIONARY_BLEND, rng), [entry.word], [span])

    def episodes(self, split: str) -> tuple[str, ...]:
        counts = {"train": self.preset.train_episodes, "test": self.preset.test_episodes}
        if split not in counts:
            raise InputError(split, "is not a split of the world", "choose train or test")
        return tuple(f"{split}-{number:04}" for number in range(counts[split]))

    def perform_episode(self, episode_id: str) -> EpisodePerformance:
        split, _, number = episode_id.partition("-")
        if episode_id not in self.episodes(split):
            raise InputError(episode_id, "is not in this world", "take one of episodes()")
        rng = chance(self.seed, "episode", episode_id)
        n_signers = self.preset.n_test_signers if split == "test" else self.preset.n_train_signers
        signer = self.signer(f"{split}-{int(number) % n_signers:03}")
        weights = 1 / (np.arange(len(self.lemmas)) + 20.0) ** _ZIPF
        weights *= np.exp(rng.normal(0, _TOPICS, len(weights)))
        tested = [i for i, lemma in enumerate(self.lemmas) if lemma.word in self.test_words]
        newsroom = Newsroom(
            lexicon=self.lexicon,
            words=Pool.of(self.lemmas, weights),
            annotated=frozenset(self.annotated_words),
            targets=Pool.of([self.lemmas[i] for i in tested], np.sqrt(weights[tested])),
            difficulty=self.preset.difficulty,
        )
        return perform_episode(episode_id, newsroom, signer, self.preset.subtitles_per_episode, rng)

    def perform_episodes(self, split: str) -> Iterator[EpisodePerformance]:
        return (self.perform_episode(episode_id) for episode_id in self.episodes(split))

    def detected(self, performance: Performance, name: str) -> FloatArray:
        """The landmarks (n_frames, 258) of an entry or episode, by its id, as a detector gives them."""
        return _as_detected(performance.points, self.preset.difficulty, chance(self.seed, "detector", name))


# Landmarks as a detector would give them: shaking, with hands lost where they are fast.

_DEPTH = 4.0  # depth is guessed this much worse than the place in the picture
_SLOWNESS = 0.7  # share of the error that stays from frame to frame
_MEAN_LOSS = 5.0  # frames


def _as_detected(points: FloatArray, difficulty: Difficulty, rng: np.random.Generator) -> FloatArray:
    """(n_frames, 258) clean landmarks -> the same with jitter; a lost hand is all zeros."""
    found = points.copy()
    n = len(points)
    pose = found[:, :POSE_NUMBERS].reshape(n, 33, 4)
    pose[..., :3] += _error((n, 33, 3), difficulty.jitter, rng)
    found[:, :POSE_NUMBERS] = pose.reshape(n, -1)
    for first in (POSE_NUMBERS, POSE_NUMBERS + HAND_NUMBERS):
        hand = found[:, first : first + HAND_NUMBERS]
        wrist = points[:, first : first + 2]
        hand += _error((n, 21, 3), difficulty.jitter, rng).reshape(n, -1)
        hand[_lost(wrist, difficulty.dropped_hands, rng)] = 0
    return found


def _error(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> FloatArray:
    """Slowly wandering errors of the same size at every frame."""
    fresh = rng.standard_normal(shape, dtype=np.float32)
    keep, add = np.float32(_SLOWNESS), np.float32(np.sqrt(1 - _SLOWNESS**2))
    for frame in range(1, shape[0]):
        fresh[frame] = keep * fresh[frame - 1] + add * fresh[frame]
    return fresh * np.array((scale, scale, scale * _DEPTH), dtype=np.float32)


def _lost(wrist: FloatArray, share: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """(n,) where a hand is lost: in runs that begin where it moves fast."""
    n = len(wrist)
    speed = np.linalg.norm(np.diff(wrist, axis=0, prepend=wrist[:1]), axis=1)
    odds = 0.3 + speed / max(float(speed.mean()), 1e-6)
    begins = rng.random(n) < odds * share / (_MEAN_LOSS * odds.mean())
    until = np.where(begins, np.arange(n) + rng.geometric(1 / _MEAN_LOSS, n), 0)
    return np.asarray(np.maximum.accumulate(until) > np.arange(n))
