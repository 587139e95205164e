"""The first walk through the software: make a signing world, learn from its supervisors, spot signs never annotated."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from signspot.domain.dictionary import Dictionary
from signspot.domain.tracks import CLIP_LENGTH
from signspot.features.shared import is_shareable, shared_vectors
from signspot.features.store import FeatureStore, open_store
from signspot.formats.eaf import add_glosses, new_eaf
from signspot.formats.manifests import CorpusSource, read_corpus, read_dictionary
from signspot.formats.report_page import MethodRow
from signspot.formats.safe_json import write_json
from signspot.formats.truth import read_truth
from signspot.interrupts import is_asked
from signspot.learning.material import Material
from signspot.learning.splits import read_split
from signspot.models.checkpoints import Checkpoint, load_checkpoint
from signspot.models.embedder import VideoEmbedder, embedder_from_checkpoint
from signspot.models.zoo import model_path
from signspot.workflows.demo_folder import DemoFolder
from signspot.workflows.demo_methods import Classroom, compare_methods, table_of
from signspot.workflows.demo_report import write_demo_report
from signspot.workflows.demo_spotting import Search, Spotted, search_episode, truth_of
from signspot.workflows.outputs import Context, Output, write_outputs
from signspot.workflows.tracks import Progress
from signspot.workflows.training_material import MaterialOptions, MaterialSources, make_training_material
from signspot.workflows.world import WorldRequest, make_world

_SIDE = 128  # of the world's pictures
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRequest:
    """Where the demo goes, and which world and trunk it uses."""

    folder: Path
    seed: int = 0
    model: str = "world-v1"  # the trunk
    preset: str = "demo"  # of the world
    epochs: int = 100  # of each head
    backend: str = "auto"  # that computes the trunk
    workers: int = 0  # processes that draw; 0: one per core
    isolated: bool = True  # decode in a process of its own


@dataclass(frozen=True, slots=True, eq=False)
class Demonstration:
    """What the demo made and found."""

    files: DemoFolder
    table: tuple[MethodRow, ...]  # chance first, the method that searches the episode last
    n_test_words: int
    n_passages: int  # that were tested
    n_entries: int  # that each was looked up in
    spotted: Spotted


@dataclass(frozen=True, slots=True, eq=False)
class _World:
    """A world on the disk, and what its vectors are kept in."""

    request: DemoRequest
    files: DemoFolder
    corpus: CorpusSource
    dictionary: Dictionary
    store: FeatureStore


def demonstrate(
    request: DemoRequest,
    progress: Progress = lambda step, done, total: None,
    tell: Tell = lambda line: None,
) -> Demonstration:
    """Make a world, learn heads, compare them, search an episode; `tell` gets a line when a step is done."""
    files = DemoFolder(request.folder)
    trunk = load_checkpoint(model_path(request.model))  # refused before minutes of drawing
    files.claim()
    model = _drawn_and_loaded(request, trunk, progress)
    dictionary, corpus = read_dictionary(files.world.dictionary).dictionary, read_corpus(files.world.corpus)
    tell(f"drew {len(dictionary)} dictionary clips and {len(corpus.episodes)} episodes of continuous signing")
    with open_store(files.vectors) as store:
        world = _World(request, files, corpus, dictionary, store)
        classroom = _classroom(world, trunk, model, progress)
        n_train, n_test = len(classroom.train.passages), len(classroom.test.passages)
        tell(f"computed the trunk's vectors: {n_train} annotated passages to learn from, {n_test} to test on")
        pupils = compare_methods(classroom, files.heads, progress)
        tell(f"learned {len(pupils) - 1} heads, and tested them on words that were never annotated")
        episode = next(one for one in corpus.episodes if one.split == "test")
        search = Search(episode, dictionary, read_truth(files.world.truth), files.vectors, request.isolated)
        spotted = search_episode(search, classroom, pupils)
    table, scores = table_of(pupils), pupils[-1].scores
    write_json([asdict(row) for row in table], files.scores, overwrite=True)
    write_demo_report(files, table, classroom, spotted, isolated=request.isolated)
    now, eaf = datetime.now(UTC), files.outputs.paths[Output.EAF]
    elan = add_glosses(new_eaf(episode.video, eaf, date=now), truth_of(spotted, search.truth), "truth")
    context = Context(video=episode.video, now=now, elan=elan, isolated=request.isolated, progress=progress)
    write_outputs(spotted.answer, files.outputs, context)
    tell(f"searched {episode.video_id} for the test words, and wrote the report, a video and an ELAN file")
    return Demonstration(files, table, len(classroom.split.test), len(scores.passage_ids), scores.n_entries, spotted)


def _drawn_and_loaded(request: DemoRequest, trunk: Checkpoint, progress: Progress) -> VideoEmbedder:
    """Draw the world, and meanwhile compile the trunk, which takes a core for a quarter of a minute."""
    files = DemoFolder(request.folder)
    world = WorldRequest(
        folder=files.world.folder, preset=request.preset, seed=request.seed, side=_SIDE, workers=request.workers
    )
    model = embedder_from_checkpoint(trunk, backend=request.backend)
    aside = ThreadPoolExecutor(1)
    try:
        # A second run finds its vectors in the store and needs no program.
        compiled = None if files.vectors.exists() else aside.submit(_compile, model)
        make_world(world, progress)
        if compiled is not None:
            compiled.result()
    finally:
        aside.shutdown(wait=not is_asked())  # a compiler cannot be interrupted
    return model


def _compile(model: VideoEmbedder) -> None:
    """Have the programs for clips and for videos ready: each is compiled when it is first used."""
    side = model.frame_shape.crop
    blank = np.zeros((CLIP_LENGTH, side, side, 3), np.uint8)
    model.of_dictionary().trunk_vectors(blank[None])
    if is_shareable(model, stride=1):
        list(shared_vectors(blank, model))


def _classroom(world: _World, trunk: Checkpoint, model: VideoEmbedder, progress: Progress) -> Classroom:
    """The vectors of everything, from the store where they are there already."""
    sources = MaterialSources(corpus=world.corpus, dictionary=world.dictionary, model=model, store=world.store)

    def material(split: str) -> Material:
        options = MaterialOptions(split=split, isolated=world.request.isolated)
        return make_training_material(sources, options, progress).material

    return Classroom(
        train=material("train"),
        test=material("test"),
        split=read_split(world.files.world.split),
        trunk=trunk,
        seed=world.request.seed,
        epochs=world.request.epochs,
        backend=world.request.backend,
    )
