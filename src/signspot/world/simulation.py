"""The world itself: a dictionary and a broadcast archive that exist only as a preset and a seed.

Nothing is stored: every entry and every episode is performed when asked for, and always the same.

Episodes: sentences are shown as subtitles, interpreted in signs, and annotated here and there.

Signs follow their sentence in another order, some words are never signed, some signs never subtitled. An annotation
marks the end of a sign, as mouthing does, more or less; the less confident, the more often it is wrong.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from signspot.domain.recordings import Annotation, Entry, Passage, Subtitle, Vocabulary, Word
from signspot.domain.recordings import Signer as SignerName
from signspot.domain.time import FRAME_MS, FrameSpan, MillisSpan
from signspot.domain.tracks import FloatArray
from signspot.errors import InputError
from signspot.world.lexicon import (
    LANGUAGE,
    Form,
    Hands,
    Lemma,
    Lexicon,
    Pool,
    Sense,
    Sentence,
    build_lexicon,
    english_lemmas,
)
from signspot.world.people import HAND_NUMBERS, POSE_NUMBERS, Performance, Plan, Signer, draw_signer, strokes_of
from signspot.world.settings import Difficulty, Preset, chance


def _spread_counts(n: int, mean: float, most: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """(n,) int64 counts from 1 to `most`, many small and few large, whose mean is `mean` whatever n is.

    The quantiles of a geometric distribution in random order: a draw would miss the mean of a small world.
    """
    quantiles = (np.arange(n) + 0.5) / n
    low, high = 1e-9, 50.0
    for _ in range(60):  # the ceiling of `most` pulls the mean down, so the parameter is searched for
        middle = (low + high) / 2
        beyond = np.floor(np.log1p(-quantiles) / np.log(middle / (1 + middle)))
        counts = np.minimum(1 + beyond, most).astype(np.int64)
        low, high = (middle, high) if counts.mean() < mean else (low, middle)
    return rng.permutation(counts)


_SIGNED = 0.74  # share of subtitle words that are signed
_EXTRA = 0.9  # signs per subtitle that no subtitle mentions
_REORDERING = 1.4  # standard deviation of the shift of a sign, in places
_PAUSE = 0.22  # share of sentences after which the hands rest
_SHORTEST, _LONGEST = 7, 13  # Paper App. B.5: frames of a sign
_PADDING_MS = 2000  # Paper 4.1: around a subtitle
_LEAST_SUBTITLE_MS = 2000  # Paper 4.1
# Paper App. B.6: the share of annotations at least as confident as 0.9, 0.8, ...
_CONFIDENCES = ((0.0, 0.135, 0.268, 0.422, 0.630, 1.0), (1.0, 0.9, 0.8, 0.7, 0.6, 0.5))
_TEST_CONFIDENCE = 0.9  # Paper 4.1: test labels are at least as confident
_ANNOTATIONS = (0.05, 0.89, 0.06)  # chance of none, one, two in a subtitle


@dataclass(frozen=True, slots=True)
class SignedToken:
    """The truth about one sign of an episode."""

    span: FrameSpan
    word: Word
    variant: str
    form_id: str
    signer_id: str
    subtitle: int | None  # which subtitle mentions it, if one does


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EpisodePerformance:
    """One episode, performed, with everything that is known about it."""

    episode_id: str
    split: str
    performance: Performance
    subtitles: tuple[Subtitle, ...]
    subtitle_words: tuple[tuple[Word, ...], ...]  # of the vocabulary, in order
    annotations: tuple[Annotation, ...]
    truth: tuple[SignedToken, ...]

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The subtitles longer than 2 s with an annotation within 2 s of them (Paper 4.1).

        An annotation belongs to the nearest of the subtitles that mention its word.
        """
        found: dict[int, list[Annotation]] = {}
        for annotation in self.annotations:
            time_ms = annotation.frame * FRAME_MS
            distance_ms, number = min(
                (max(subtitle.span_ms.start - time_ms, time_ms - subtitle.span_ms.stop, 0), number)
                for number, (subtitle, words) in enumerate(zip(self.subtitles, self.subtitle_words, strict=True))
                if annotation.word in words
            )
            if distance_ms < _PADDING_MS:
                found.setdefault(number, []).append(annotation)
        return tuple(
            self._passage(self.subtitles[number], tuple(annotations))
            for number, annotations in sorted(found.items())
            if self.subtitles[number].span_ms.duration > _LEAST_SUBTITLE_MS
        )

    def _passage(self, subtitle: Subtitle, annotations: tuple[Annotation, ...]) -> Passage:
        padded = subtitle.span_ms.padded(_PADDING_MS, _PADDING_MS)
        span = FrameSpan(padded.start // FRAME_MS, min(-(-padded.stop // FRAME_MS), len(self.performance)))
        return Passage(self.episode_id, span, subtitle, annotations)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Newsroom:
    """What all episodes share."""

    lexicon: Lexicon
    words: Pool
    annotated: frozenset[Word]
    targets: Pool  # the test words
    difficulty: Difficulty


@dataclass(frozen=True, slots=True)
class _Sign:
    """A sign to be performed; None stands for a pause."""

    sense: Sense | None
    sentence: int


def _perform_episode(
    episode_id: str, newsroom: _Newsroom, signer: Signer, n_subtitles: int, rng: np.random.Generator
) -> EpisodePerformance:
    """Write, sign, subtitle and annotate an episode; the test split is known by its id."""
    is_test = episode_id.startswith("test")
    targets = newsroom.targets if is_test else None
    sentences = [newsroom.words.draw_sentence(rng, targets) for _ in range(n_subtitles)]
    signs = [sign for i, sentence in enumerate(sentences) for sign in _interpreted(i, sentence, newsroom, signer, rng)]
    signs = [_Sign(None, -1), *signs, *([] if signs[-1].sense is None else [_Sign(None, -1)])]
    forms = tuple(_reduced_form(newsroom, sign.sense, rng) for sign in signs)
    plan, spans = _in_time(forms, signer, newsroom.difficulty, rng)
    words = [sign.sense.word if sign.sense else None for sign in signs]
    performance = plan.performed(signer, newsroom.difficulty.blend_frames, rng).mouthed(words, spans)
    mentioned = [{lemma.word for lemma in sentence.lemmas} for sentence in sentences]
    truth = tuple(
        SignedToken(FrameSpan(*span), sign.sense.word, sign.sense.variant, sign.sense.form_id, signer.signer_id,
                    sign.sentence if sign.sense.word in mentioned[sign.sentence] else None)
        for sign, span in zip(signs, spans, strict=True) if sign.sense is not None
    )  # fmt: skip
    places = [[FrameSpan(*span) for sign, span in zip(signs, spans, strict=True) if sign.sentence == i and sign.sense]
              for i in range(n_subtitles)]  # fmt: skip
    return EpisodePerformance(
        episode_id=episode_id,
        split="test" if is_test else "train",
        performance=performance,
        subtitles=_subtitled(sentences, places, rng),
        subtitle_words=tuple(tuple(lemma.word for lemma in sentence.lemmas) for sentence in sentences),
        annotations=_annotated(episode_id, sentences, truth, newsroom.annotated, rng),
        truth=truth,
    )


def _interpreted(
    number: int, sentence: Sentence, newsroom: _Newsroom, signer: Signer, rng: np.random.Generator
) -> list[_Sign]:
    """The signs of a sentence in the order of signing, and perhaps a pause."""
    n = len(sentence.lemmas)
    is_signed = rng.random(n) < _SIGNED
    if sentence.target is not None:
        is_signed[sentence.target] = True
    if not is_signed.any():
        is_signed[int(rng.integers(n))] = True
    extra = [newsroom.words.draw("noun", rng) for _ in range(rng.poisson(_EXTRA))]
    told = [lemma for lemma, signed in zip(sentence.lemmas, is_signed, strict=True) if signed] + extra
    place = np.concatenate([np.flatnonzero(is_signed), rng.uniform(0, n, len(extra))])
    order = np.argsort(place + rng.normal(0, _REORDERING, len(told)), kind="stable")
    own = [newsroom.lexicon.senses[told[i].word] for i in order]
    signs = []
    for senses in own:  # everybody has a favourite among the variants of a word, and uses another now and then
        favourite = zlib.crc32(f"{signer.signer_id}/{senses[0].word}".encode()) % len(senses)
        sense = senses[favourite if rng.random() < 0.8 else int(rng.integers(len(senses)))]
        signs.append(_Sign(sense, number))
    return signs + [_Sign(None, -1)] * bool(rng.random() < _PAUSE)


def _reduced_form(newsroom: _Newsroom, sense: Sense | None, rng: np.random.Generator) -> Form | None:
    """Quick signing leaves out repetitions, and sometimes the other hand."""
    if sense is None:
        return None
    form = newsroom.lexicon.forms[sense.form_id]
    if form.hands is Hands.SYMMETRIC and rng.random() < newsroom.difficulty.weak_drop:
        form = replace(form, hands=Hands.ONE)
    kept = 1 + int(rng.random() < 0.4)
    return replace(form, strokes=tuple(replace(s, repetitions=min(s.repetitions, kept)) for s in form.strokes))


def _in_time(
    forms: tuple[Form | None, ...], signer: Signer, difficulty: Difficulty, rng: np.random.Generator
) -> tuple[Plan, list[tuple[int, int]]]:
    """A plan with its frames, and the frames of each form."""
    plan = strokes_of(forms, signer)
    scales = (difficulty.token_location, difficulty.token_orientation, difficulty.token_fingers)
    amounts = np.clip(rng.normal(difficulty.reduction, 0.12, len(plan)), 0, 0.8)
    plan = plan.varied(scales, rng).reduced(amounts, difficulty.assimilation)
    counts = np.array([len(form.strokes) if form else 1 for form in forms])
    owner = np.repeat(np.arange(len(forms)), counts)
    total = np.clip(np.rint(rng.normal(10, 1.7, len(forms)) * signer.tempo), _SHORTEST, _LONGEST).astype(np.int64)
    is_pause = np.array([form is None for form in forms])
    total = np.where(is_pause, rng.integers(8, 26, len(forms)), total)
    within = np.where(counts > 1, 3, 0)  # frames of the transition inside a compound
    durations = ((total - within) // counts)[owner]
    gaps = np.clip(np.rint(1.6 + 2.6 * plan.gap_lengths()), 2, 9).astype(np.int64)
    gaps[owner[1:] == owner[:-1]] = 3
    plan = plan.timed(durations, gaps)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    starts, stops = plan.start[first], plan.stop[first + counts - 1]
    return plan, list(zip(starts.tolist(), stops.tolist(), strict=True))


def _subtitled(
    sentences: list[Sentence], places: list[list[FrameSpan]], rng: np.random.Generator
) -> tuple[Subtitle, ...]:
    """Subtitles run ahead of the interpreter, stay a little longer, and follow each other without overlap."""
    lag = rng.normal(300, 450, len(sentences))
    shown: list[Subtitle] = []
    before = 0.0
    for sentence, spans, late in zip(sentences, places, lag, strict=True):
        start = max(before, spans[0].start * FRAME_MS - late - 150)
        stop = max(start + 600, spans[-1].stop * FRAME_MS - late + 150)
        shown.append(Subtitle(MillisSpan.of(start, stop), sentence.text))
        before = stop
    return tuple(shown)


def _annotated(
    episode_id: str, sentences: list[Sentence], truth: tuple[SignedToken, ...], known: frozenset[Word],
    rng: np.random.Generator,
) -> tuple[Annotation, ...]:  # fmt: skip
    """Sparse annotations: about one per subtitle, of words known to the annotator."""
    tokens: dict[int, list[SignedToken]] = {}
    for token in truth:
        if token.subtitle is not None:
            tokens.setdefault(token.subtitle, []).append(token)
    found: list[Annotation] = []
    for number, sentence in enumerate(sentences):
        signed = tokens.get(number, [])
        candidates = [token for token in signed if token.word in known]
        wanted = int(rng.choice(len(_ANNOTATIONS), p=_ANNOTATIONS))
        if sentence.target is not None:
            target = sentence.lemmas[sentence.target].word
            candidates, wanted = [token for token in candidates if token.word == target], 1
        for i in rng.permutation(len(candidates))[:wanted]:
            confidence = float(np.interp(rng.random(), *_CONFIDENCES))
            if sentence.target is not None:
                confidence = float(rng.uniform(_TEST_CONFIDENCE, 1))
            word = candidates[i].word
            others = [token for token in signed if token.word != word]
            is_wrong = rng.random() < 0.01 + 0.6 * (1 - confidence) and others
            token = others[int(rng.integers(len(others)))] if is_wrong else candidates[i]
            frame = max(0, token.span.stop - 1 + round(rng.normal(0, 2)))
            found.append(Annotation(episode_id, word, frame, round(confidence, 4), "mouthing"))
    return tuple(sorted(found, key=lambda annotation: annotation.frame))


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
        counts = _spread_counts(preset.n_annotated, preset.entries_per_annotated_word, _MOST_ENTRIES, rng)
        if others := preset.n_words - preset.n_annotated:
            rest = _spread_counts(others, preset.entries_per_other_word, _MOST_ENTRIES, rng)
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
        plan = plan.varied((knobs.token_location, knobs.token_orientation, knobs.token_fingers), rng)
        n = len(form.strokes)
        durations = np.rint(rng.normal(37, 4, n) * signer.tempo * (1.0 if n == 1 else 0.5))
        durations += 2 * (plan.repetitions[1:-1] - 1)
        ends = np.clip(np.rint(rng.normal(11, 4, 2)), 3, 22)
        gaps = np.rint(4 + 3.2 * plan.gap_lengths()).astype(np.int64)
        plan = plan.timed(np.concatenate([ends[:1], np.maximum(durations, 12), ends[1:]]).astype(np.int64), gaps)
        span = int(plan.start[1]), int(plan.stop[-2])
        return plan.performed(signer, _DICTIONARY_BLEND, rng).mouthed([entry.word], [span])

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
        newsroom = _Newsroom(
            lexicon=self.lexicon,
            words=Pool.of(self.lemmas, weights),
            annotated=frozenset(self.annotated_words),
            targets=Pool.of([self.lemmas[i] for i in tested], np.sqrt(weights[tested])),
            difficulty=self.preset.difficulty,
        )
        return _perform_episode(episode_id, newsroom, signer, self.preset.subtitles_per_episode, rng)

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
