"""The test set of an evaluation: passages and entries, which of them a protocol asks for, and who signs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from signspot.domain.dictionary import Dictionary
from signspot.domain.words import Synonyms, Word
from signspot.errors import InputError
from signspot.evaluation.splits import TEST_CONFIDENCE
from signspot.features.store import FeatureStore
from signspot.formats.manifests import read_corpus, read_dictionary
from signspot.formats.safe_json import read_json
from signspot.learning.head_scores import tested_words
from signspot.learning.material import Ints, Material
from signspot.learning.material_files import file_sha256, read_material
from signspot.learning.splits import WordSplit, read_split
from signspot.models.networks import HEAD
from signspot.workflows.evaluate_subjects import Model
from signspot.workflows.tracks import Progress
from signspot.workflows.training_material import (
    MaterialOptions,
    MaterialSources,
    dictionary_synonyms,
    load_trunk,
    make_training_material,
)

Protocol = Literal["seen", "unseen", "all"]
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
    store: Path | None = None
    isolated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolChoice:
    """What is tested, and against what."""

    name: Protocol = "all"
    split: Path | None = None  # a split file; None: that of the run
    dictionary_words: DictionaryWords = "limited"  # entries of the test words, or of all words
    min_confidence: float = TEST_CONFIDENCE  # of the annotations (Paper 4.1)
    stride: int = 1

    def __post_init__(self) -> None:
        if self.name not in ("seen", "unseen", "all"):
            raise InputError(f"--protocol {self.name}", "is no protocol", "choose seen, unseen or all")
        if self.dictionary_words not in ("limited", "full"):
            raise InputError(f"--dictionary-words {self.dictionary_words}", "is none", "choose limited or full")
        if not 0 <= self.min_confidence <= 1 or self.stride < 1:
            what = f"a confidence of {self.min_confidence}, a stride of {self.stride}"
            raise InputError("protocol", what, "a confidence lies from 0 to 1, a stride is at least 1")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TestSet:
    """What is scored."""

    __test__ = False

    material: Material
    places: Ints  # of the passages that are tested
    entry_rows: Ints  # of the material: the gallery, in order
    units: tuple[str, ...]  # of every passage of the material: who signs it, or else its video
    unit: Literal["signer", "video"]
    same_sign: Synonyms = field(default_factory=Synonyms)  # words under which the dictionary files one sign
    notes: tuple[str, ...] = ()

    @property
    def gallery_words(self) -> Ints:
        """(E,) of the gallery."""
        return self.material.entry_word[self.entry_rows]


def open_test_set(
    files: TestFiles, choice: ProtocolChoice, model: Model, store: FeatureStore | None, progress: Progress
) -> TestSet:
    """Read or make the test set, and choose what the protocol asks for; it may be used while the store is open."""
    dictionary = read_dictionary(files.dictionary).dictionary if files.dictionary is not None else None
    if files.material is not None:
        material, notes = read_material(files.material), _notes_on(files.material, model)
    else:
        material, notes = _made(files, dictionary, model, store, progress)
    wanted = tested_words(material, _test_words(choice, model))
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
    return TestSet(
        material=material,
        places=np.flatnonzero(is_asked & is_sure),
        entry_rows=rows,
        units=units,
        unit=unit,
        same_sign=dictionary_synonyms(dictionary) if dictionary is not None else Synonyms(),
        notes=notes,
    )


def _test_words(choice: ProtocolChoice, model: Model) -> tuple[Word, ...] | None:
    """The test words of the split; None for all."""
    if choice.name == "all":
        return None
    config = model.config
    trained = {"all": "seen", "train": "unseen"}[config.training_words] if config is not None else choice.name
    if trained != choice.name:
        what = f"was trained with training_words = {config.training_words if config else ''}: its test words are "
        raise InputError(model.name, f"{what}{trained}", f"use --protocol {trained}, or train another run")
    return _split(choice, model).test


def _split(choice: ProtocolChoice, model: Model) -> WordSplit:
    path = choice.split or (model.config.split if model.config is not None else None)
    if path is None:
        fix = "name its file with --split, or use --protocol all"
        raise InputError(f"--protocol {choice.name}", "needs the split into training and test words", fix)
    return read_split(path)


def _notes_on(folder: Path, model: Model) -> tuple[str, ...]:
    """Whether a run was tested, or even trained, on this material."""
    if model.run is None or not model.run.data.is_file():
        return ()
    known, own = read_json(model.run.data), file_sha256(folder / "material.json")
    if not isinstance(known, dict):
        raise InputError(model.run.data, "holds no checksums", "train the run again")
    if known.get("train") == own:
        return ("this is the material the run was trained on: the figures say nothing about new signing",)
    return ("this is not the test material of the run",) if known.get("test", own) != own else ()


def _made(
    files: TestFiles, dictionary: Dictionary | None, model: Model, store: FeatureStore | None, progress: Progress
) -> tuple[Material, tuple[str, ...]]:
    """Make test material; vectors are taken from the store where they are there."""
    if files.corpus is None or dictionary is None:
        fix = "name --test MATERIAL, or --corpus and --dictionary"
        raise InputError("test set", "there is nothing to test on", fix)
    if model.path is None or model.checkpoint is None or model.checkpoint.card.architecture == HEAD:
        raise InputError(model.name, "sees no video", "name test material that was made before: --test MATERIAL")
    trunk = load_trunk(str(model.path))
    sources = MaterialSources(corpus=read_corpus(files.corpus), dictionary=dictionary, model=trunk, store=store)
    options = MaterialOptions(split=files.corpus_split, isolated=files.isolated)
    made = make_training_material(sources, options, progress)
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
