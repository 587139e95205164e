"""What the demo compares: the trunk alone, and heads learned from its supervisors, on words that nobody annotated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from signspot.atomic import output_folder
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, StagedEmbedder
from signspot.domain.words import Word
from signspot.evaluation.intervals import class_interval
from signspot.evaluation.protocol import ProtocolScores
from signspot.formats.report_page import MethodRow
from signspot.learning.config import EmbeddingConfig
from signspot.learning.head_scores import score_head, tested_words
from signspot.learning.lesson import TrainingData, make_lesson
from signspot.learning.material import Material
from signspot.learning.model_file import ModelFile
from signspot.learning.run_folder import RunFolder
from signspot.learning.splits import WordSplit
from signspot.learning.train import Controls, Moment, train_head
from signspot.models.checkpoints import Checkpoint, load_checkpoint
from signspot.models.embedder import VideoEmbedder, embedder_from_checkpoint
from signspot.models.head import Head
from signspot.models.networks import HEAD, build_head
from signspot.workflows.tracks import Progress

FALSE_ALARMS = 0.2  # share of passages in which a word that is not there may pass the threshold


@dataclass(frozen=True, slots=True)
class Method:
    """One line of the table."""

    name: str
    what: str
    loss: Literal["classification", "watch-lookup", "watch-read-lookup"] | None = None  # None: nothing is learned
    dictionary: Literal["limited", "full"] = "limited"  # whose clips are looked up: of the training words, or of all


METHODS = (
    Method("trunk alone", "nothing is learned here: the vectors of the shipped trunk are compared as they are"),
    Method(
        "classification",
        "learns to name the annotated signs and the dictionary clips of the training words",
        "classification",
    ),
    Method(
        "watch-lookup",
        "watch: learns that an annotated sign looks like the dictionary clips of its word, unlike those of others",
        "watch-lookup",
    ),
    Method(
        "watch-read-lookup",
        "also reads: somewhere in a passage are signs of the other words of its subtitle, nobody says where",
        "watch-read-lookup",
    ),
    Method(
        "full-dictionary",
        "the same, and it may look up every word it reads: the clips of test words too, their annotations never",
        "watch-read-lookup",
        "full",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classroom:
    """What all methods learn from and are tested on."""

    train: Material
    test: Material
    split: WordSplit  # the test words are in no label that is learned from
    trunk: Checkpoint
    seed: int
    epochs: int
    backend: str = "auto"  # that computed the vectors


@dataclass(frozen=True, slots=True, eq=False)
class Pupil:
    """What became of a method."""

    method: Method
    model: VideoEmbedder
    path: Path | None  # the trunk and the learned head as one file
    scores: ProtocolScores  # of the test words in the test passages


def compare_methods(classroom: Classroom, folder: Path, progress: Progress) -> tuple[Pupil, ...]:
    """Learn every method, each in a run folder of its own, and test it once, at the end."""
    output_folder(folder)
    return tuple(_taught(method, classroom, folder, progress) for method in METHODS)


def table_of(pupils: tuple[Pupil, ...]) -> tuple[MethodRow, ...]:
    """Chance, then every method."""
    last = pupils[-1].scores
    chance = MethodRow(
        name="chance",
        what="vectors that know nothing",
        mean_ap=last.chance_mean_ap,
        recall_at_5=last.chance_recall_at_k,
        localisation=last.chance_localisation,
        is_chance=True,
    )
    return (
        chance,
        *(
            MethodRow(
                name=pupil.method.name,
                what=pupil.method.what,
                mean_ap=pupil.scores.mean_ap,
                recall_at_5=pupil.scores.recall_at_5,
                localisation=pupil.scores.localisation,
                mean_ap_range=_range(pupil.scores),
            )
            for pupil in pupils
        ),
    )


def _range(scores: ProtocolScores) -> tuple[float, float] | None:
    drawn = class_interval(scores.passages.ap, scores.passages.words)
    return None if drawn.low is None or drawn.high is None else (drawn.low, drawn.high)


def _taught(method: Method, classroom: Classroom, folder: Path, progress: Progress) -> Pupil:
    trunk, words, backend = classroom.trunk, classroom.split.test, classroom.backend
    if method.loss is None:
        model = embedder_from_checkpoint(trunk, backend=backend)
        return Pupil(method, model, None, score_head(None, classroom.test, words))
    head = _learned(method, classroom, RunFolder(folder / method.name), progress)
    path = folder / f"{method.name}.safetensors"
    labels = tuple(classroom.train.vocabulary) if head.config.classes else ()
    made_by = f"signspot demo; trunk {trunk.card.name}"
    ModelFile(name=method.name, trunk=trunk, created_from=made_by, words=labels).save(path, head)
    model = embedder_from_checkpoint(path, backend=backend)
    return Pupil(method, model, path, score_head(head, classroom.test, words))


def _learned(method: Method, classroom: Classroom, run: RunFolder, progress: Progress) -> Head:
    """Train a head on the training words alone; the run is begun anew each time: it takes seconds."""
    epochs = classroom.epochs
    config = EmbeddingConfig(
        loss=method.loss or "watch-read-lookup",
        training_words="train",
        dictionary=method.dictionary,
        hidden_dim=256,  # the trunk's vectors are a quarter as long as the paper's
        embedding_dim=128,
        batch_size=32,  # a hundred passages: at the paper's 128 an epoch would be a single step
        epochs=epochs,
        decay_epochs=tuple(sorted({max(1, epochs * 8 // 10), max(2, epochs * 9 // 10)})),
        evaluate_every=epochs,
        threads=1,  # so small a head is done before a second thread is awake
        seed=classroom.seed,
    )
    lesson = make_lesson(config, TrainingData(train=classroom.train, split=classroom.split))
    controls = Controls(progress=lambda moment: progress(f"learning {method.name}", _share(moment), 1.0))
    with run.opened(config, {"trunk": classroom.train.fingerprint}, "overwrite"):
        train_head(config, lesson, run, controls)
    learned = load_checkpoint(run.last)
    head = build_head(learned.card.config)
    head.load_state_dict(learned.part(HEAD))
    return head.eval()


def _share(moment: Moment) -> float:
    return (moment.epoch + moment.step / max(1, moment.steps)) / moment.epochs


def threshold_of(model: StagedEmbedder, classroom: Classroom) -> float:
    """The cosine that a word which is not there rarely reaches, measured on the training passages.

    The words are the test words, so that no curve of theirs was learned, in passages whose subtitle lacks them.
    """
    train = classroom.train
    absent = _absent_peaks(model, train, classroom.split.test)
    # Rounding makes the cosine of equal vectors a little more than 1.
    return min(1.0, float(np.quantile(absent, 1 - FALSE_ALARMS))) if len(absent) else model.threshold


def _absent_peaks(model: StagedEmbedder, train: Material, words: tuple[Word, ...]) -> FloatArray:
    """The highest cosine of every word in every passage whose subtitle does not mention it."""
    tested, passages, peaks = tested_words(train, words), train.passages, [np.empty(0, np.float32)]
    rows = np.flatnonzero(np.isin(train.entry_word, tested))
    entries, entry_word = model.head_vectors(train.entry_vectors[rows]), train.entry_word[rows]
    for place in range(len(passages)):
        mentioned = passages.words[passages.word_offsets[place] : passages.word_offsets[place + 1]]
        absent = [entries[entry_word == word] for word in tested if word not in mentioned]
        track = train.tracks[int(passages.track[place])]
        windows = np.asarray(track[passages.start[place] : passages.stop[place] - CLIP_LENGTH + 1], np.float32)
        if len(windows) and absent:
            embedded = model.head_vectors(windows)
            peaks.append(np.array([(embedded @ own.T).max() for own in absent if len(own)], np.float32))
    return np.concatenate(peaks)
