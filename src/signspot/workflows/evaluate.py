"""Score a model on a test set: the paper's benchmark, closed-vocabulary spotting, and the challenge's F1.

The folder of an evaluation: the figures for scripts, every decision, the curves, and a page for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Protocol

import numpy as np

from signspot.domain.recordings import Dictionary, Synonyms, Word
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import CLIP_LENGTH, FloatArray, Ints, WindowGrid
from signspot.embedding.model import Reading, trunk_of
from signspot.embedding.zoo import model_of, model_path, trunk_fingerprints
from signspot.errors import InputError
from signspot.evaluation.confusion import ConfusionReport, MinimalPair, look_alike_pairs, minimal_pair_report
from signspot.evaluation.localisation import Curve, Footage, OverlapScores, is_near, overlap_scores, spotting_benchmark
from signspot.evaluation.measures import BootstrapOptions, ClassMeans, Interval, chance_average_precision, mean_interval
from signspot.evaluation.protocol import (
    TEST_CONFIDENCE,
    Case,
    CaseKind,
    Gallery,
    ProtocolIntervals,
    ProtocolOptions,
    ProtocolScores,
    TestPassage,
    choose_cases,
    score_passages,
)
from signspot.figures.evaluation import CaseFigure, ranking_png, search_png
from signspot.files.atomic import atomic_output, new_folder, refuse_folder
from signspot.files.json import read_json, write_json
from signspot.files.pages import PageFigure, PageSection, PageTable, ReportPage, percent
from signspot.formats.challenge import read_challenge
from signspot.interrupts import gone_afterwards
from signspot.learning.config import EmbeddingConfig, read_config
from signspot.learning.head import embedded
from signspot.learning.material import Material, WordSplit, file_sha256
from signspot.learning.runs import RunFolder
from signspot.models.checkpoints import HEAD, Checkpoint, build_head, load_checkpoint
from signspot.models.embedders import CONTINUOUS, DICTIONARY
from signspot.models.head import Head
from signspot.stores.corpus import DecisionNames, read_corpus, write_decisions
from signspot.stores.dictionary import read_dictionary
from signspot.workflows.train import MaterialOptions, MaterialSources, dictionary_synonyms, make_training_material

# The numbers of the paper that stand beside ours, about BSL-1K and BSLDict: only the order of methods can be compared.

_LOCALISATION = 0.8308  # Paper 4.4: the word is known; watch-read-lookup
_SPOTTING = 0.170  # Paper 4.3: mAP of the trunk's classifier over all windows


@dataclass(frozen=True, slots=True)
class _PaperRow:
    """One line of the paper's tables, as shares of 1."""

    name: str
    mean_ap: float
    recall_at_5: float


_SEEN = {  # Table 2: mAP and R@5
    "classification": (0.3675, 0.4015), "infonce": (0.4252, 0.5354), "watch-lookup": (0.4365, 0.5303),
    "watch-read-lookup": (0.4811, 0.5871),
}  # fmt: skip
_UNSEEN = {
    "classification": (0.1028, 0.1419), "infonce": (0.1088, 0.1423), "watch-lookup": (0.1105, 0.1462),
    "watch-read-lookup": (0.1369, 0.1779),
}  # fmt: skip
_FULL = _PaperRow("Table 3, watch-read-lookup with the full dictionary, unseen words", 0.1539, 0.2087)


def _paper_row(protocol: str, config: EmbeddingConfig | None) -> _PaperRow | None:
    """The line that belongs to a protocol and to how a run was trained; watch-read-lookup where that is not known."""
    if protocol == "all":
        return None
    loss = config.loss if config is not None else "watch-read-lookup"
    if protocol == "unseen" and config is not None and config.dictionary == "full" and loss == "watch-read-lookup":
        return _FULL
    name = f"Table 2, {'InfoNCE' if loss == 'infonce' else loss}, {protocol} words"
    return _PaperRow(name, *(_SEEN if protocol == "seen" else _UNSEEN)[loss])


# The closed-vocabulary benchmark: every window of the test videos scored for every test word (Paper 4.3).

ALARM_RATES = (1.0, 10.0, 100.0)  # false alarms an hour, all words together
_ROWS_AT_ONCE = 4096
_MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True, eq=False)
class _SpottingScores:
    """What a search for all test words in all test videos would find."""

    by_word: ClassMeans  # average precision over all windows, of each word that has a right window
    mean_ap: Interval
    curve: Curve  # of the peaks of all words together
    hours: float
    n_words: int  # searched for
    n_windows: int

    def recall_at(self, alarms_per_hour: float) -> float:
        return self.curve.recall_at_false_alarms(alarms_per_hour, self.hours)

    @property
    def chance(self) -> float:
        return float(np.mean([chance_average_precision(self.n_windows, int(n)) for n in self.by_word.counts]))

    def as_json(self) -> dict[str, object]:
        """For scripts: the figures, and the curve thinned to 200 points."""
        shown = np.unique(np.linspace(0, len(self.curve.thresholds) - 1, 200).astype(int))
        columns = {
            "threshold": self.curve.thresholds,
            "precision": self.curve.precision,
            "recall": self.curve.recall,
            "false_alarms_per_hour": self.curve.false_alarms_per_hour(self.hours),
        }
        return {
            "hours": self.hours,
            "words": self.n_words,
            "signs": self.curve.n_positives,
            "recall_at_false_alarms_per_hour": {f"{rate:g}": self.recall_at(rate) for rate in ALARM_RATES},
            "recall_at_precision": {f"{p:g}": self.curve.recall_at_precision(p) for p in (0.5, 0.9)},
            "best_f1": float(self.curve.f1.max(initial=0)),
            "curve": {name: [float(value) for value in column[shown]] for name, column in columns.items()},
        }


def _score_spotting(
    test: _TestSet, scorer: _Scorer, stride: int, options: BootstrapOptions, reading: Reading = Reading()
) -> _SpottingScores:
    """Search every video that has test passages, from its first to its last window."""
    material, passages = test.material, test.material.passages
    rows = test.entry_rows[np.isin(test.gallery_words, passages.label[test.places])]
    entry_word = material.entry_word[rows]
    words = np.unique(entry_word)
    if not len(words):
        raise InputError("test set", "the dictionary has no entry for any test word", "check the split file")
    # The entries of a word stand together, so that one reduction gives the best of each.
    order = np.argsort(entry_word, kind="stable")
    entries, starts = scorer.entries(material, rows)[order], np.searchsorted(entry_word[order], words)

    def best(windows: FloatArray) -> FloatArray:
        """(n, d) -> (n, n_words): the highest cosine with any entry of a word; -inf for a window without direction."""
        cosine = np.maximum.reduceat(windows @ entries.T, starts, axis=1)
        usable = np.isfinite(cosine) & windows.any(axis=1, keepdims=True)
        return np.where(usable, cosine, -np.inf).astype(np.float32)

    tracks = np.unique(passages.track[test.places])
    # A corpus of hours has more cosines than fit in memory.
    with TemporaryDirectory(prefix="signspot-") as scratch, gone_afterwards(Path(scratch)):
        footage = []
        for number, track in enumerate(tracks.tolist()):
            reading.progress("searching videos", number, len(tracks))
            own = test.places[passages.track[test.places] == track]
            # Two subtitles around one sign make two passages of it; it is one sign to be found.
            signs = np.unique(np.stack([passages.label[own], passages.label_frame[own]], axis=1), axis=0)
            label, frame = signs[np.isin(signs[:, 0], words)].T
            first = np.arange(0, len(material.tracks[track]), stride, dtype=np.int64)
            cosine = np.lib.format.open_memmap(
                Path(scratch) / f"{track}.npy", "w+", np.float32, (len(first), len(words))
            )
            for begin in range(0, len(first), _ROWS_AT_ONCE):
                some = slice(begin, begin + _ROWS_AT_ONCE)
                cosine[some] = best(scorer.windows(material, _Windows(track, first[some], label, frame)))
            column = np.searchsorted(words, label).astype(np.int64)
            footage.append(Footage(first + CLIP_LENGTH // 2, cosine, column, frame))
        by_word = spotting_benchmark(footage)
        if not len(by_word.values):
            raise InputError("test set", "no window of any video is near an annotation", "check the annotations")
        n_frames = sum(len(material.tracks[track]) + CLIP_LENGTH - 1 for track in tracks.tolist())
        hours = n_frames * FRAME_MS / _MS_PER_HOUR
        spread = mean_interval(by_word.values, None, options)
        n_windows = sum(len(one.centres) for one in footage)
        return _SpottingScores(by_word, spread, Curve.of(footage), hours, len(words), n_windows)


# What can be evaluated: a trained run, a model file or a model of the zoo, and two for checks, truth and chance.
#
# A scorer gives unit vectors for dictionary entries and for windows. `truth` knows the annotations: it scores 100%
# unless a label lies so near the edge of its passage that no window is close enough. `random` scores chance.

TRUTH, RANDOM = "truth", "random"
WhichModel = Literal["last", "best"]
_RANDOM_DIM = 256  # Paper 3.2: as long as a real embedding
_N_RANDOM = 1 << 13
_LARGE_PRIME = 1_000_003


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """Windows of one track, and the signs known to be among them."""

    track: int
    starts: Ints  # (n,) first frames
    label: Ints  # (m,) words
    label_frame: Ints  # (m,)

    @property
    def centres(self) -> Ints:
        """(n,) the frames that stand for the windows (deviation D7)."""
        return self.starts + CLIP_LENGTH // 2


class _Scorer(Protocol):
    """Turns the vectors of a test set into vectors that are compared."""

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        """Of some dictionary entries: (n, d) unit rows."""

    def windows(self, test: Material, asked: _Windows) -> FloatArray:
        """Of some windows: (n, d) unit rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TestedModel:
    """The model under test: its file, and the options it was trained with where they are known."""

    name: str
    path: Path | None = None  # None: truth or random
    checkpoint: Checkpoint | None = None
    config: EmbeddingConfig | None = None  # of a run
    run: RunFolder | None = None
    notes: tuple[str, ...] = ()


def _open_tested(name: str, which: WhichModel = "last") -> _TestedModel:
    """Find a run folder, a model file or a name of the zoo, or one of the two made for checks."""
    if which not in ("last", "best"):
        raise InputError(f"--checkpoint {which}", "is unknown", "choose last or best")
    if name in (TRUTH, RANDOM):
        return _TestedModel(name=name)
    if not Path(name).is_dir():
        path = model_path(name)
        return _TestedModel(name=name, path=path, checkpoint=load_checkpoint(path))
    run = RunFolder(Path(name))
    if not run.config.is_file():
        raise InputError(
            name, "is not a run folder: it has no config.toml", "name a folder of `signspot train embedding`"
        )
    path = run.best if which == "best" else run.last
    if not path.is_file():
        fix = "train until the first epoch is finished, or choose another --checkpoint"
        raise InputError(path, "does not exist", fix)
    notes = ("the best epoch was chosen on the test set: its figures are too good",) if which == "best" else ()
    config = read_config(run.config, EmbeddingConfig, ())
    return _TestedModel(name=name, path=path, checkpoint=load_checkpoint(path), config=config, run=run, notes=notes)


def _scorer_of(model: _TestedModel, test: Material, seed: int = 0) -> _Scorer:
    """The model made ready for a test set; one whose vectors come from another trunk is refused."""
    if model.checkpoint is None:
        return _TruthScorer() if model.name == TRUTH else _RandomScorer(seed)
    checkpoint = model.checkpoint
    parts = checkpoint.card.architecture.split("+")
    head, dim = None, test.entry_vectors.shape[1]
    if HEAD in parts:
        head = build_head(checkpoint.card.config)
        head.load_state_dict(checkpoint.part(HEAD))
        head.eval().requires_grad_(False)
        if head.config.input_dim != dim:
            sizes = f"takes vectors of {head.config.input_dim} numbers, those of the test set have {dim}"
            raise InputError(model.name, sizes, "name test material that was made with its trunk")
    if checkpoint.card.architecture == HEAD:  # a head alone need not say which trunk it belongs to
        _, is_said, trunk = checkpoint.card.created_from.rpartition("; trunk ")
        is_made_by_it = not is_said or test.fingerprint.startswith(trunk)
    else:
        is_made_by_it = test.fingerprint in trunk_fingerprints(checkpoint)
    if not is_made_by_it:
        what = "is not the model whose trunk made the vectors of the test set"
        raise InputError(model.name, what, "make the test material with it: `signspot train material --trunk`")
    return _HeadScorer(head)


@dataclass(frozen=True, slots=True, eq=False)
class _HeadScorer:
    """A head on the vectors of a trunk; without one the trunk's vectors are compared as they are."""

    head: Head | None

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        return embedded(self.head, np.asarray(test.entry_vectors[rows], np.float32), DICTIONARY)

    def windows(self, test: Material, asked: _Windows) -> FloatArray:
        return embedded(self.head, np.asarray(test.tracks[asked.track][asked.starts], np.float32), CONTINUOUS)


class _TruthScorer:
    """An oracle: a window near a known sign looks exactly like that sign, any other like nothing."""

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        """One direction per word, and one for no word."""
        return np.eye(len(test.vocabulary) + 1, dtype=np.float32)[test.entry_word[rows]]

    def windows(self, test: Material, asked: _Windows) -> FloatArray:
        vectors = np.zeros((len(asked.starts), len(test.vocabulary) + 1), np.float32)
        for word, frame in zip(asked.label, asked.label_frame, strict=True):
            vectors[is_near(asked.centres, frame), word] = 1
        vectors[~vectors.any(axis=1), -1] = 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors


class _RandomScorer:
    """Chance: windows and entries have random directions, the same each time for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._entry_seed, self._window_seed = np.random.SeedSequence(seed).spawn(2)
        self._drawn = _random_rows(self._window_seed, _N_RANDOM)

    def entries(self, test: Material, rows: Ints) -> FloatArray:
        return _random_rows(self._entry_seed, len(test.entry_word))[rows]

    def windows(self, test: Material, asked: _Windows) -> FloatArray:
        """Random directions; a window has the same one in every passage."""
        # Drawn once and used again: a passage is far shorter than the table, so its windows all differ.
        return self._drawn[(asked.track * _LARGE_PRIME + asked.starts) % _N_RANDOM]


def _random_rows(seed: np.random.SeedSequence, n: int) -> FloatArray:
    rows = np.random.default_rng(seed).standard_normal((n, _RANDOM_DIM), dtype=np.float32)
    unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


# The test set of an evaluation: passages and entries, which of them a protocol asks for, and who signs.

TestProtocol = Literal["seen", "unseen", "all"]
DictionaryWords = Literal["limited", "full"]
_VIDEO_OF = re.compile(r"(.*) at \d+\.\d{3} s, .* at frame \d+", re.DOTALL)  # a passage's name, see learning.passages


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFiles:
    """Where the test set is: material made before, or a corpus and a dictionary to make it from."""

    __test__ = False  # a name that pytest would collect

    material: Path | None = None
    corpus: Path | None = None  # beside material, it says who signs
    dictionary: Path | None = None  # beside material, it says which words share a sign
    corpus_split: str = "test"  # of the corpus: only these videos; "": all
    reading: Reading = Reading()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChoice:
    """What is tested, and against what."""

    name: TestProtocol = "all"
    split: Path | None = None  # a split file; None: that of the run
    dictionary_words: DictionaryWords = "limited"  # entries of the test words, or of all words
    min_confidence: float = TEST_CONFIDENCE  # of the annotations (Paper 4.1)
    stride: int = 1

    def __post_init__(self) -> None:
        if self.name not in ("seen", "unseen", "all"):
            raise InputError(f"--protocol {self.name}", "is not a protocol", "choose seen, unseen or all")
        if self.dictionary_words not in ("limited", "full"):
            raise InputError(f"--dictionary-words {self.dictionary_words}", "is unknown", "choose limited or full")
        if not 0 <= self.min_confidence <= 1 or self.stride < 1:
            what = f"a confidence of {self.min_confidence}, a stride of {self.stride}"
            raise InputError("protocol", what, "a confidence lies from 0 to 1, a stride is at least 1")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TestSet:
    """What is scored."""

    material: Material
    places: Ints  # of the passages that are tested
    entry_rows: Ints  # of the material: the gallery, in order
    units: tuple[str, ...]  # of every passage of the material: who signs it, or else its video
    unit: Literal["signer", "video"]
    same_sign: Synonyms = field(default_factory=Synonyms)  # words under which the dictionary files one sign
    notes: tuple[str, ...] = ()

    @property
    def gallery_words(self) -> Ints:
        return self.material.entry_word[self.entry_rows]


def _open_test_set(files: TestFiles, choice: ProtocolChoice, model: _TestedModel) -> _TestSet:
    """Read or make the test set, and choose what the protocol asks for."""
    dictionary = read_dictionary(files.dictionary).dictionary if files.dictionary is not None else None
    if files.material is not None:
        material, notes = Material.read(files.material), _notes_on(files.material, model)
    else:
        material, notes = _made(files, dictionary, model)
    wanted = material.numbers_of(_test_words(choice, model))
    passages = material.passages
    is_asked, is_sure = np.isin(passages.label, wanted), passages.confidence >= np.float32(choice.min_confidence)
    if not (is_asked & is_sure).any():
        what = f"{len(passages)} passages, {int(is_asked.sum())} of the test words, none of them with a confidence of "
        raise InputError("test set", f"{what}at least {choice.min_confidence:g}", "check --split and --confidence")
    rows = np.arange(len(material.entry_word))
    if choice.dictionary_words == "limited":
        rows = rows[np.isin(material.entry_word, wanted)]
    if n_unsure := int((is_asked & ~is_sure).sum()):
        notes += (f"{n_unsure} passages left out: confidence below {choice.min_confidence:g}",)
    units, unit = _units(material, files.corpus)
    return _TestSet(
        material=material,
        places=np.flatnonzero(is_asked & is_sure),
        entry_rows=rows,
        units=units,
        unit=unit,
        same_sign=dictionary_synonyms(dictionary) if dictionary is not None else Synonyms(),
        notes=notes,
    )


def _test_words(choice: ProtocolChoice, model: _TestedModel) -> tuple[Word, ...] | None:
    """The test words of the split; None for all."""
    if choice.name == "all":
        return None
    config = model.config
    trained = {"all": "seen", "train": "unseen"}[config.training_words] if config is not None else choice.name
    if trained != choice.name:
        what = f"was trained with training_words = {config.training_words if config else ''}: its test words are "
        raise InputError(model.name, f"{what}{trained}", f"use --protocol {trained}, or train another run")
    path = choice.split or (config.split if config is not None else None)
    if path is None:
        fix = "name its file with --split, or use --protocol all"
        raise InputError(f"--protocol {choice.name}", "needs the split into training and test words", fix)
    return WordSplit.read(path).test


def _notes_on(folder: Path, model: _TestedModel) -> tuple[str, ...]:
    """Whether a run was tested, or even trained, on this material."""
    if model.run is None or not model.run.data.is_file():
        return ()
    known, own = read_json(model.run.data), file_sha256(folder / "material.json")
    if not isinstance(known, dict):
        raise InputError(model.run.data, "holds no checksums", "train the run again")
    if known.get("train") == own:
        return ("this is the material the run was trained on: the figures say nothing about new signing",)
    return ("this is not the test material of the run",) if known.get("test", own) != own else ()


def _made(files: TestFiles, dictionary: Dictionary | None, model: _TestedModel) -> tuple[Material, tuple[str, ...]]:
    """Make test material; vectors are taken from the store where they are there."""
    if files.corpus is None or dictionary is None:
        fix = "name --test MATERIAL, or --corpus and --dictionary"
        raise InputError("test set", "there is nothing to test on", fix)
    if model.path is None or model.checkpoint is None or model.checkpoint.card.architecture == HEAD:
        raise InputError(model.name, "sees no video", "name test material that was made before: --test MATERIAL")
    trunk = trunk_of(model_of(model.checkpoint, where=str(model.path)))
    sources = MaterialSources(corpus=read_corpus(files.corpus), dictionary=dictionary, trunk=trunk)
    made = make_training_material(sources, MaterialOptions(split=files.corpus_split, reading=files.reading))
    return made.material, made.lines()[1:]


def _units(material: Material, corpus: Path | None) -> tuple[tuple[str, ...], Literal["signer", "video"]]:
    """Who signs each passage, if the corpus says so for all; else the videos."""
    names = material.passages.names
    if corpus is not None:
        signer_of = {episode.video_id: episode.signer for episode in read_corpus(corpus).episodes}
        found = [_VIDEO_OF.fullmatch(name) for name in names]
        signers = tuple(signer_of.get(match[1], "") if match else "" for match in found)
        if all(signers):
            return signers, "signer"
    return tuple(f"video {track}" for track in material.passages.track), "video"


N_LISTED = 10  # decisions about each passage, beside those about the entries of its word
_SAME_SIGN = "nothing: one sign"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """What the user asked for."""

    model: str  # a run folder, a model file, a name of the zoo, "truth" or "random"
    which: WhichModel = "last"  # of a run
    files: TestFiles = TestFiles()
    protocol: ProtocolChoice = ProtocolChoice()
    spotting: bool = False  # also the closed-vocabulary benchmark
    bootstrap: BootstrapOptions = BootstrapOptions()
    seed: int = 0  # of the random model


@dataclass(frozen=True, slots=True)
class _Measure:
    """One line of the table; shares of 1."""

    name: str
    value: float
    by_class: Interval  # with other words
    by_unit: Interval | None = None  # with other signers, or videos
    chance: float | None = None
    paper: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _CaseCurves:
    """A passage worth a look: similarity over its windows."""

    case: Case
    centres: Ints  # (n_windows,) frames
    own_rows: Ints  # (m,) the entries of its word, as rows of the gallery
    own: FloatArray  # (n_windows, m) cosine
    other: FloatArray | None  # (n_windows,) cosine with the best entry of another word


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """Everything that came out."""

    request: EvaluationRequest
    test: _TestSet
    scores: ProtocolScores
    measures: tuple[_Measure, ...]
    cases: tuple[_CaseCurves, ...]
    confusion: ConfusionReport
    spotting: _SpottingScores | None
    paper: _PaperRow | None
    notes: tuple[str, ...] = ()

    @property
    def n_words(self) -> int:
        return len(np.unique(self.scores.passages.words))

    def word(self, number: int) -> str:
        return self.test.material.vocabulary.words[number]

    def as_json(self) -> dict[str, object]:
        choice = self.request.protocol
        chosen = asdict(choice) | {"split": None if choice.split is None else str(choice.split)}
        means = self.scores.passages.class_ap
        return {
            "model": self.request.model,
            "checkpoint": self.request.which,
            "protocol": chosen,
            "passages": len(self.scores.passage_ids),
            "words": self.n_words,
            "entries": self.scores.n_entries,
            "unit": self.test.unit,
            "bootstrap": asdict(self.request.bootstrap),
            "measures": [asdict(measure) for measure in self.measures],
            "paper": None if self.paper is None else asdict(self.paper),
            "spotting": None if self.spotting is None else self.spotting.as_json(),
            "average_precision_by_word": {
                self.word(n): float(value) for n, value in zip(means.classes, means.values, strict=True)
            },
            "confusion": [asdict(kind) for kind in self.confusion.kinds],
            "notes": list(self.notes),
        }

    def summary_lines(self) -> tuple[str, ...]:
        """What was tested, how the table is to be read, and what should be known about it."""
        scores, choice = self.scores, self.request.protocol
        kind = "" if choice.name == "all" else f"{choice.name} "
        level = round(100 * self.request.bootstrap.level)
        tested = (
            f"{len(scores.passage_ids)} passages of {self.n_words} {kind}words, each looked up in "
            f"{scores.n_entries} dictionary clips ({choice.dictionary_words} dictionary, stride {choice.stride})"
        )
        units = len(set(scores.signers))
        spread = f"intervals hold {level}% of the draws of other words, and of other {self.test.unit}s ({units} here)"
        lines = [tested, spread]
        if any(measure.paper is not None for measure in self.measures):
            row = "the spotting benchmark" if self.paper is None else self.paper.name
            lines.append(f"paper: {row}, on BSL-1K: another data set, so only the order of methods compares")
        return (*lines, *_search_lines(self), *self.notes)

    def table_head(self) -> tuple[str, ...]:
        return tuple(name.format(unit=self.test.unit) for name in _HEAD)

    def table_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (
                one.name,
                percent(one.value),
                _between(one.by_class),
                _between(one.by_unit),
                "" if one.chance is None else percent(one.chance),
                "" if one.paper is None else percent(one.paper),
            )
            for one in self.measures
        )

    def write(self, folder: Path, *, overwrite: bool = False) -> None:
        with new_folder(folder, _OWN_FILES, overwrite=overwrite) as temporary:
            write_json(self.as_json(), temporary / SCORES)
            _write_decisions(self, temporary / DECISIONS)
            ranking, search = _ranking_figure(self), _search_figure(self)
            for name, figure in ((CURVES, ranking), (SEARCH, search)):
                if figure is not None:
                    with atomic_output(temporary / name) as path:
                        path.write_bytes(figure.png)
            _page(self, ranking, search).write(temporary / PAGE)


def evaluate(request: EvaluationRequest) -> Evaluation:
    """Score a model as asked; vectors of videos that are in the store are not computed again."""
    model, reading = _open_tested(request.model, request.which), request.files.reading
    test = _open_test_set(request.files, request.protocol, model)
    scorer = _scorer_of(model, test.material, request.seed)
    gallery = Gallery(test.gallery_words, scorer.entries(test.material, test.entry_rows))
    options = ProtocolOptions(keep_cosine=True, n_listed=N_LISTED)
    stride, draws = request.protocol.stride, request.bootstrap
    scores = score_passages(_passages(test, scorer, stride, reading), gallery, options)
    spotting = _score_spotting(test, scorer, stride, draws, reading) if request.spotting else None
    reading.progress("drawing intervals", 0, None)
    paper = _paper_row(request.protocol.name, model.config)
    cosine, n_lost = np.asarray(scores.cosine, np.float32), len(scores.left_out)
    lost = (f"{n_lost} passages left out: the dictionary has no entry for their word",) if n_lost else ()
    return Evaluation(
        request=request,
        test=test,
        scores=scores,
        measures=_measures(scores, scores.intervals(draws), paper, spotting),
        cases=tuple(_case_curves(test, scorer, gallery, scores, stride)),
        confusion=minimal_pair_report(cosine, gallery.words, scores.passages.words, _pairs(test), draws),
        spotting=spotting,
        paper=paper,
        notes=(*model.notes, *test.notes, *lost),
    )


def evaluate_challenge(truth: Path, answers: Path) -> OverlapScores:
    """The F1 of the 2022 sign-spotting challenge for two of its JSON files."""
    return overlap_scores(read_challenge(truth), read_challenge(answers))


def _passage_windows(material: Material, place: int, stride: int) -> _Windows:
    """The windows inside a passage, the last pulled back to its end, and its label."""
    passages = material.passages
    start, stop, track = (int(column[place]) for column in (passages.start, passages.stop, passages.track))
    starts = start + WindowGrid(max(1, stop - start), stride=stride).starts()
    starts = np.unique(np.minimum(starts, len(material.tracks[track]) - 1))
    label = passages.label[place : place + 1], passages.label_frame[place : place + 1]
    return _Windows(track, starts, *label)


def _passages(test: _TestSet, scorer: _Scorer, stride: int, reading: Reading) -> Iterator[TestPassage]:
    for number, place in enumerate(test.places.tolist()):
        reading.progress("looking passages up", number, len(test.places))
        asked = _passage_windows(test.material, place, stride)
        yield TestPassage(
            passage_id=test.material.passages.names[place],
            word=int(asked.label[0]),
            label_frame=int(asked.label_frame[0]),
            centres=asked.centres,
            vectors=scorer.windows(test.material, asked),
            signer=test.units[place],
        )


def _case_curves(
    test: _TestSet, scorer: _Scorer, gallery: Gallery, scores: ProtocolScores, stride: int
) -> Iterator[_CaseCurves]:
    words, place_of = scores.passages.words, {test.material.passages.names[place]: place for place in test.places}
    cosine = np.asarray(scores.cosine, np.float32)
    for case in choose_cases(cosine, words, gallery.words, scores.is_localised):
        asked = _passage_windows(test.material, place_of[scores.passage_ids[case.passage]], stride)
        windows = scorer.windows(test.material, asked)
        own_rows = np.flatnonzero(gallery.words == words[case.passage])
        other = None if case.other_row is None else windows @ gallery.vectors[case.other_row]
        yield _CaseCurves(case, asked.centres, own_rows, windows @ gallery.vectors[own_rows].T, other)


def _measures(
    scores: ProtocolScores, spread: ProtocolIntervals, paper: _PaperRow | None, spotting: _SpottingScores | None
) -> tuple[_Measure, ...]:
    mean_ap, recall, found = spread.mean_ap, spread.recall_at_k, spread.localisation
    both = (paper.mean_ap, paper.recall_at_5, _LOCALISATION) if paper is not None else (None, None, None)
    chance = (scores.chance_mean_ap, scores.chance_recall_at_k, scores.chance_localisation)
    entries_ap, entries_recall = spread.entries_mean_ap, spread.entries_recall_at_k
    measures = (
        _Measure("mAP", scores.mean_ap, mean_ap.by_class, mean_ap.by_signer, chance[0], both[0]),
        _Measure("R@5", scores.recall_at_k, recall.by_class, recall.by_signer, chance[1], both[1]),
        _Measure("localisation", scores.localisation, found.by_class, found.by_signer, chance[2], both[2]),
        _Measure("mAP, from entries", entries_ap.estimate, entries_ap),
        _Measure("R@5, from entries", entries_recall.estimate, entries_recall),
    )
    if spotting is None:
        return measures
    means = spotting.mean_ap
    return (*measures, _Measure("spotting mAP", means.estimate, means, chance=spotting.chance, paper=_SPOTTING))


def _pairs(test: _TestSet) -> tuple[MinimalPair, ...]:
    """Words of one sign as the dictionary says, then words whose clips look most alike to the trunk."""
    material, words = test.material, test.material.vocabulary
    tested = np.unique(material.passages.label[test.places])
    known = ((a, b) for a, b in test.same_sign.pairs if a < b and a in words and b in words)
    same = {(words.id_of(a), words.id_of(b)) for a, b in known}
    rows = np.flatnonzero(np.isin(material.entry_word, tested))
    alike = look_alike_pairs(_HeadScorer(None).entries(material, rows), material.entry_word[rows])
    one_sign = tuple(MinimalPair(*pair, _SAME_SIGN) for pair in sorted(same))
    return (*one_sign, *(pair for pair in alike if (pair.first, pair.second) not in same))


SCORES, DECISIONS, CURVES, SEARCH, PAGE = "scores.json", "decisions.parquet", "curves.png", "search.png", "index.html"
_OWN_FILES = frozenset((SCORES, DECISIONS, CURVES, SEARCH, PAGE))
_HEAD = ("", "score", "other words", "other {unit}s", "chance", "paper")
_MOST_PAIRS = 12
_STORIES: dict[CaseKind, tuple[str, str]] = {
    "clear": ("Right", "The annotated word scores highest of all words, at the annotated time."),
    "just beaten": ("Just beaten", "Found at the right time, but another word scores a little higher."),
    "wrong time": ("Right word, wrong time", "The annotated word scores highest of all, but at another moment."),
    "missed": ("Missed", "Another word scores higher, and the annotated word is found at another moment."),
}


def refuse_evaluation_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Raise if an evaluation cannot be written there, before minutes are spent on it."""
    refuse_folder(folder, _OWN_FILES, overwrite=overwrite)


def _search_lines(evaluation: Evaluation) -> Iterator[str]:
    found = evaluation.spotting
    if found is None:
        return
    rates = ", ".join(f"{percent(found.recall_at(rate))} at {rate:g}" for rate in ALARM_RATES)
    yield (
        f"searching {found.hours:.2f} hours for {found.n_words} words: of {found.curve.n_positives} annotated signs, "
        f"{rates} false alarms an hour are found; signs that nobody annotated count as false alarms"
    )


def _write_decisions(evaluation: Evaluation, path: Path) -> None:
    scores, test = evaluation.scores, evaluation.test
    if scores.decisions is None:
        raise ValueError("scores without decisions")
    names = DecisionNames(
        passages=scores.passage_ids,
        words=[evaluation.word(number) for number in scores.passages.words],
        signers=scores.signers,
        label_frames=scores.label_frame,
        entries=[test.material.entry_ids[row] for row in test.entry_rows],
        entry_words=[evaluation.word(number) for number in test.gallery_words],
    )
    write_decisions(scores.decisions, names, path)


def _page(evaluation: Evaluation, ranking: PageFigure, search: PageFigure | None) -> ReportPage:
    table = PageTable("Scores; intervals in brackets", evaluation.table_head(), evaluation.table_rows())
    figures = tuple(figure for figure in (ranking, search) if figure is not None)
    cases = tuple(_case_figure(evaluation, one) for one in evaluation.cases)
    files = (
        (SCORES, "all figures, for scripts"),
        (DECISIONS, f"every entry of the annotated word and the first {N_LISTED} of all, for each passage"),
        (CURVES, "the ranking, and where words are found"),
        *(((SEARCH, "precision, recall and false alarms"),) if search is not None else ()),
    )
    explanation = (
        "Each figure is one passage of continuous signing. Coloured lines: similarity with each dictionary clip of the "
        "annotated word. Dashed: the clip of another word that comes closest. Green: where the sign is annotated. "
        "Circle: where the word would be found."
    )
    return ReportPage(
        title=f"Evaluation of {evaluation.request.model}",
        paragraphs=evaluation.summary_lines(),
        sections=(
            PageSection("Scores", table=table, figures=figures),
            PageSection("Cases", (explanation,), figures=cases),
            _confusion_section(evaluation),
        ),
        files=files,
    )


def _ranking_figure(evaluation: Evaluation) -> PageFigure:
    scores = evaluation.scores
    best = np.empty(0, np.int64)  # the rank of the annotated word's first entry, passage by passage
    if (decisions := scores.decisions) is not None:
        own = decisions.is_relevant
        stops = np.searchsorted(decisions.passage[own], np.arange(1, len(scores.passage_ids)))
        best = np.array([ranks.min() for ranks in np.split(decisions.rank[own], stops)], np.int64)
    found = scores.found_frame >= 0
    offset = scores.found_frame[found] - scores.label_frame[found]
    first, five = (percent(float((best <= k).mean())) for k in (1, 5))
    median = f"{np.median(np.abs(offset)):.0f} frames" if len(offset) else "unknown"
    said = (
        f"The annotated word is first in {first} of the passages and among the first five in {five}, at any time. "
        f"With the word known, the median distance from the annotation is {median}."
    )
    png = ranking_png(best, offset, scores.n_entries, scores.options.tolerance)
    return PageFigure("Ranking and time", png, said, said)


def _search_figure(evaluation: Evaluation) -> PageFigure | None:
    found = evaluation.spotting
    if found is None:
        return None
    alarms = found.curve.false_alarms_per_hour(found.hours)
    said = "".join(_search_lines(evaluation))
    said = f"{said[:1].upper()}{said[1:]}. Best F1 at any threshold: {percent(float(found.curve.f1.max(initial=0)))}."
    png = search_png(found.curve.precision, found.curve.recall, alarms)
    return PageFigure("Searching whole videos", png, said, said)


def _case_figure(evaluation: Evaluation, shown: _CaseCurves) -> PageFigure:
    case, scores, test = shown.case, evaluation.scores, evaluation.test
    ids = [test.material.entry_ids[row] for row in test.entry_rows]
    title, story = _STORIES[case.kind]
    word = evaluation.word(int(scores.passages.words[case.passage]))
    rival = "no other word" if case.other_row is None else evaluation.word(int(test.gallery_words[case.other_row]))
    label, found = int(scores.label_frame[case.passage]), int(scores.found_frame[case.passage])
    figure = CaseFigure(
        centres=shown.centres, own=shown.own, other=shown.other, label_frame=label, tolerance=scores.options.tolerance
    )
    clips = ", ".join(f"v{number} {ids[row]}" for number, row in enumerate(shown.own_rows, 1))
    told = f"{story} Margin {case.margin:+.3f}. {clips}; other word: {rival}. {scores.passage_ids[case.passage]}."
    where = f"{word!r} is annotated at frame {label} and found at frame {found}"
    alternative = f"{where}; it scores {case.margin:+.3f} in cosine against {rival!r}, the closest other word."
    return PageFigure(f"{title}: {word}", figure.png(), alternative, told)


def _confusion_section(evaluation: Evaluation) -> PageSection:
    report = evaluation.confusion
    kinds = "; ".join(f"{one.differs_in}: {percent(one.rate.estimate)} {_between(one.rate)}" for one in report.kinds)
    other = report.other_words
    usual = "" if other is None else f" Any other word gets ahead in {percent(other.estimate)}."
    how = (
        "A passage is confused when the best clip of the pair's other word scores at least as high as its own. Pairs "
        "are words that the dictionary files under one sign, and words whose clips look most alike to the trunk."
    )
    rows = tuple(
        (
            f"{evaluation.word(one.pair.first)} / {evaluation.word(one.pair.second)}",
            one.pair.differs_in,
            f"{one.n_confused} of {one.n_passages}",
            f"{one.mean_margin:+.3f}",
        )
        for one in report.pairs[:_MOST_PAIRS]
    )
    head = ("pair", "differs in", "confused", "mean margin")
    table = PageTable(f"The pairs most often confused, at most {_MOST_PAIRS}", head, rows) if rows else None
    return PageSection("Signs taken for each other", (how, f"{kinds or 'No pair has a passage.'}.{usual}"), table)


def _between(interval: Interval | None) -> str:
    if interval is None:
        return ""
    if interval.low is None or interval.high is None:
        return "[unknown]"
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
