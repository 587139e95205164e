"""The first walk through the software: make a signing world, learn from its supervisors, spot signs never annotated."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, Episode, SignerBox, Word
from signspot.domain.results import VideoAnswer, WordAnswer
from signspot.domain.time import FrameSpan, MillisSpan
from signspot.domain.tracks import CLIP_LENGTH, EntryVectors, FloatArray, FrameShape, Pixels
from signspot.embedding.model import Reading, trunk_of
from signspot.embedding.pictures import ClipNetwork, PictureModel
from signspot.embedding.zoo import model_path
from signspot.errors import InputError
from signspot.evaluation.measures import class_interval
from signspot.evaluation.protocol import ProtocolScores
from signspot.figures.evaluation import Example, Panel
from signspot.files.atomic import names_in, output_folder
from signspot.files.json import write_json
from signspot.files.pages import PageFigure, PageSection, PageTable, ReportPage, percent
from signspot.formats.elan import new_eaf
from signspot.interrupts import is_asked
from signspot.learning.config import EmbeddingConfig
from signspot.learning.head import (
    Controls,
    HeadProgress,
    ModelFile,
    TrainingData,
    make_setup,
    score_head,
    train_head,
)
from signspot.learning.material import Material, WordSplit
from signspot.learning.runs import RunFolder
from signspot.media.frames import TILE_HEIGHT, strip
from signspot.media.reader import VideoReader
from signspot.models.checkpoints import HEAD, Checkpoint, build_head, load_checkpoint
from signspot.models.embedders import VideoEmbedder, embedder_from_checkpoint
from signspot.models.head import Head
from signspot.models.i3d_shared import is_shareable, shared_vectors
from signspot.spotting.search import Query
from signspot.stores.corpus import SignedSign, read_corpus, read_truth
from signspot.stores.dictionary import read_dictionary
from signspot.text.subtitles import read_subtitles
from signspot.text.words import find_words
from signspot.workflows.outputs import Context, Output, Outputs, write_outputs
from signspot.workflows.spot import SpotOptions, spot_prepared
from signspot.workflows.train import MaterialOptions, MaterialSources, make_training_material
from signspot.workflows.world import WorldFolder, WorldRequest, make_world

_SIDE = 128  # of the world's pictures
_Tell = Callable[[str], None]


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
    reading: Reading = Reading()


@dataclass(frozen=True, slots=True)
class _MethodRow:
    """One line of the table; scores from 0 to 1."""

    name: str
    what: str
    mean_ap: float
    recall_at_5: float
    localisation: float
    mean_ap_range: tuple[float, float] | None = None  # 95 %, with other words; None: unknown
    is_chance: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        between = "" if self.mean_ap_range is None else "-".join(f"{100 * share:.1f}" for share in self.mean_ap_range)
        return self.name, percent(self.mean_ap), between, percent(self.recall_at_5), percent(self.localisation)


HEADINGS = ("", "mAP", "95% range", "R@5", "localisation")


@dataclass(frozen=True, slots=True, eq=False)
class Demonstration:
    """What the demo made and found."""

    files: _DemoFolder
    table: tuple[_MethodRow, ...]  # chance first, the method that searches the episode last
    n_test_words: int
    n_passages: int  # that were tested
    n_entries: int  # that each was looked up in
    spotted: _Spotted


def demonstrate(request: DemoRequest, tell: _Tell = lambda line: None) -> Demonstration:
    """Make a world, train heads, compare them, search an episode; `tell` gets a line when a step is done."""
    files = _DemoFolder(request.folder)
    trunk = load_checkpoint(model_path(request.model))  # refused before minutes of drawing
    files.claim()
    network = _draw_and_compile(request, files, trunk)
    dictionary, corpus = read_dictionary(files.world.dictionary).dictionary, read_corpus(files.world.corpus)
    tell(f"drew {len(dictionary)} dictionary clips and {len(corpus.episodes)} episodes of continuous signing")
    reading = replace(request.reading, store=files.vectors)
    sources = MaterialSources(corpus=corpus, dictionary=dictionary, trunk=trunk_of(PictureModel(network)))
    train, test = (
        make_training_material(sources, MaterialOptions(split=split, reading=reading)).material
        for split in ("train", "test")
    )
    split, seed, epochs, backend = WordSplit.read(files.world.split), request.seed, request.epochs, request.backend
    experiment = _Experiment(train, test, split, trunk, seed, epochs, backend)
    n_train, n_test = len(train.passages), len(test.passages)
    tell(f"computed the trunk's vectors: {n_train} annotated passages to learn from, {n_test} to test on")
    trained = _compare_methods(experiment, files.heads, reading)
    tell(f"learned {len(trained) - 1} heads, and tested them on words that were never annotated")
    episode = next(one for one in corpus.episodes if one.split == "test")
    truth = [sign for sign in read_truth(files.world.truth) if sign.video_id == episode.video_id]
    spotted = _search_episode(episode, dictionary, truth, reading, experiment, trained)
    table, scores = _table_of(trained), trained[-1].scores
    write_json([asdict(row) for row in table], files.scores, overwrite=True)
    _write_demo_report(files, table, experiment, spotted, reading)
    now, eaf = datetime.now(UTC), files.outputs.paths[Output.EAF]
    axis = spotted.answer.words[0].similarity.axis
    glosses = ((axis.millis_of(_span(sign)), sign.word) for sign in truth)
    elan = new_eaf(episode.video, eaf, date=now).add_glosses(glosses, "truth")
    context = Context(videos={episode.video_id: episode.video}, now=now, elan=elan, reading=reading)
    write_outputs(spotted.answer, files.outputs, context)
    tell(f"searched {episode.video_id} for the test words, and wrote the report, a video and an ELAN file")
    return Demonstration(files, table, len(split.test), len(scores.passage_ids), scores.n_entries, spotted)


def _draw_and_compile(request: DemoRequest, files: _DemoFolder, trunk: Checkpoint) -> VideoEmbedder:
    """Draw the world, and meanwhile compile the trunk, which takes a core for a quarter of a minute."""
    world = WorldRequest(
        folder=files.world.folder, preset=request.preset, seed=request.seed, side=_SIDE, workers=request.workers
    )
    model = embedder_from_checkpoint(trunk, backend=request.backend)
    aside = ThreadPoolExecutor(1)
    try:
        # A second run finds its vectors in the store and needs no program.
        compiled = None if files.vectors.exists() else aside.submit(_compile, model)
        make_world(world, request.reading.progress)
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


# The files of a demo.

_MARK = ".signspot-demo"  # a folder that carries it was made by the demo and may be written again


class _DemoFolder:
    """The files that a demo leaves."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.world = folder, WorldFolder(folder / "world")
        self.vectors, self.heads = folder / "vectors", folder / "heads"  # the trunk's vectors; what was learned
        self.scores, self.report = folder / "scores.json", folder / "report.html"  # for scripts, for people
        names = {Output.CSV: "spottings.csv", Output.EAF: "spottings.eaf", Output.VIDEO: "overlay.mp4"}
        self.outputs = Outputs({kind: folder / name for kind, name in names.items()}, overwrite=True)

    def claim(self) -> None:
        """Mark the folder as ours, or refuse one that holds somebody's files."""
        folder, mark = self.folder, self.folder / _MARK
        if folder.exists() and (not folder.is_dir() or (names_in(folder) and not mark.exists())):
            raise InputError(folder, "is there already and was not made by the demo", "name another folder")
        output_folder(folder)
        mark.touch()

    def next_commands(self, spotted: _Spotted) -> tuple[str, ...]:
        """What a newcomer may try now, as a shell takes it."""
        word, threshold = max(spotted.answer.words, key=lambda one: len(one.spottings)).word, spotted.answer.threshold
        model = self.heads / f"{spotted.methods[-1]}.safetensors"
        dictionary, corpus, vectors = map(_quoted, (self.world.dictionary, self.world.corpus, self.vectors))
        runs = (_quoted(self.heads / name) for name in ("watch-lookup", "watch-read-lookup"))
        return (
            *_activation(),
            f"signspot dictionary check {dictionary}",
            f"signspot train compare {' '.join(runs)}",
            f"signspot spot {corpus} {word} --dictionary {dictionary} --model {_quoted(model)}"
            f" --threshold {threshold:.4f} --store {vectors} --csv {word}.csv",
            "signspot dictionary check MY_DICTIONARY      # a folder of clips per word, or a CSV",
            # In a checkout, too: pip finds the installed signspot, and adds what it lacks.
            "pip install 'signspot[pose]'      # what finds body and hands in your videos",
            "signspot spot MY_VIDEO.mp4 WORD --dictionary MY_DICTIONARY --plot similarity.png",
        )


# What the demo compares: the trunk alone, and heads learned from its supervisors, on words that nobody annotated.

_FALSE_ALARMS = 0.2  # share of passages in which a word that is not there may pass the threshold


@dataclass(frozen=True, slots=True)
class _Method:
    """One line of the table."""

    name: str
    what: str
    loss: Literal["classification", "watch-lookup", "watch-read-lookup"] | None = None  # None: nothing is learned
    dictionary: Literal["limited", "full"] = "limited"  # whose clips are looked up: of the training words, or of all


_METHODS = (
    _Method("trunk alone", "nothing is learned here: the vectors of the shipped trunk are compared as they are"),
    _Method(
        "classification",
        "learns to name the annotated signs and the dictionary clips of the training words",
        loss="classification",
    ),
    _Method(
        "watch-lookup",
        "watch: learns that an annotated sign looks like the dictionary clips of its word, unlike those of others",
        loss="watch-lookup",
    ),
    _Method(
        "watch-read-lookup",
        "also reads: somewhere in a passage are signs of the other words of its subtitle, nobody says where",
        loss="watch-read-lookup",
    ),
    _Method(
        "full-dictionary",
        "the same, and it may look up every word it reads: the clips of test words too, their annotations never",
        loss="watch-read-lookup",
        dictionary="full",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Experiment:
    """What all methods learn from and are tested on."""

    train: Material
    test: Material
    split: WordSplit  # the test words are in no label that is learned from
    trunk: Checkpoint
    seed: int
    epochs: int
    backend: str = "auto"  # that computed the vectors


@dataclass(frozen=True, slots=True, eq=False)
class _TrainedMethod:
    """A method, its model and its scores."""

    method: _Method
    model: PictureModel
    path: Path | None  # the trunk and the learned head as one file
    scores: ProtocolScores  # of the test words in the test passages


def _compare_methods(experiment: _Experiment, folder: Path, reading: Reading) -> tuple[_TrainedMethod, ...]:
    """Train every method in a run folder of its own, and test it once, at the end."""
    output_folder(folder)
    return tuple(_train(method, experiment, folder, reading) for method in _METHODS)


def _table_of(trained: tuple[_TrainedMethod, ...]) -> tuple[_MethodRow, ...]:
    """Chance, then every method."""
    last = trained[-1].scores
    chance = (last.chance_mean_ap, last.chance_recall_at_k, last.chance_localisation)
    rows = [_MethodRow("chance", "vectors that know nothing", *chance, is_chance=True)]
    for one in trained:
        scores, method = one.scores, one.method
        drawn = class_interval(scores.passages.ap, scores.passages.words)
        spread = None if drawn.low is None or drawn.high is None else (drawn.low, drawn.high)
        means = (scores.mean_ap, scores.recall_at_5, scores.localisation)
        rows.append(_MethodRow(method.name, method.what, *means, mean_ap_range=spread))
    return tuple(rows)


def _train(method: _Method, experiment: _Experiment, folder: Path, reading: Reading) -> _TrainedMethod:
    trunk, words, backend = experiment.trunk, experiment.split.test, experiment.backend
    if method.loss is None:
        model = PictureModel(embedder_from_checkpoint(trunk, backend=backend))
        return _TrainedMethod(method, model, None, score_head(None, experiment.test, words))
    head = _train_head(method, experiment, RunFolder(folder / method.name), reading)
    path = folder / f"{method.name}.safetensors"
    labels = tuple(experiment.train.vocabulary) if head.config.classes else ()
    made_by = f"signspot demo; trunk {trunk.card.name}"
    ModelFile(name=method.name, trunk=trunk, created_from=made_by, words=labels).save(path, head)
    model = PictureModel(embedder_from_checkpoint(path, backend=backend))
    return _TrainedMethod(method, model, path, score_head(head, experiment.test, words))


def _train_head(method: _Method, experiment: _Experiment, run: RunFolder, reading: Reading) -> Head:
    """Train a head on the training words alone; the run is begun anew each time: it takes seconds."""
    epochs = experiment.epochs
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
        seed=experiment.seed,
    )
    setup = make_setup(config, TrainingData(train=experiment.train, split=experiment.split))

    def show(moment: HeadProgress) -> None:
        done = (moment.epoch + moment.step / max(1, moment.steps)) / moment.epochs
        reading.progress(f"learning {method.name}", done, 1.0)

    with run.opened(config, {"trunk": experiment.train.fingerprint}, "overwrite"):
        train_head(config, setup, run, Controls(progress=show))
    learned = load_checkpoint(run.last)
    head = build_head(learned.card.config)
    head.load_state_dict(learned.part(HEAD))
    return head.eval()


def _threshold_of(model: ClipNetwork, experiment: _Experiment) -> float:
    """The cosine that a word which is not there rarely reaches, measured on the training passages.

    The words are the test words, so that no curve of theirs was learned, in passages whose subtitle lacks them.
    """
    absent = _absent_peaks(model, experiment.train, experiment.split.test)
    # Rounding makes the cosine of equal vectors a little more than 1.
    return min(1.0, float(np.quantile(absent, 1 - _FALSE_ALARMS))) if len(absent) else model.threshold


def _absent_peaks(model: ClipNetwork, train: Material, words: tuple[Word, ...]) -> FloatArray:
    """The highest cosine of every word in every passage whose subtitle does not mention it."""
    tested, passages, peaks = train.numbers_of(words), train.passages, [np.empty(0, np.float32)]
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


# The report of the demo: the table, what stands behind it, and a found and a missed sign as the paper draws them.

NOTE = (
    "This world is synthetic: drawn figures, invented signs, made-up sentences. It shows how the parts work together "
    "and makes no claim about real signing."
)
_TILE = FrameShape(TILE_HEIGHT, TILE_HEIGHT, keep_aspect=True)


def _write_demo_report(
    files: _DemoFolder, table: tuple[_MethodRow, ...], experiment: _Experiment, spotted: _Spotted, reading: Reading
) -> None:
    rows = [(*row.cells, row.what) for row in table]
    scores = PageTable("Words that were never annotated", (*HEADINGS, "what it learns from"), rows)
    figures = tuple(_figures(spotted, reading))
    page = ReportPage(
        title="signspot demo: spotting signs that were never annotated",
        note=NOTE,
        paragraphs=(*_paragraphs(experiment), spotted.note()),
        sections=(PageSection("Scores", (_table_note(experiment),), scores), PageSection("Examples", figures=figures)),
        files=_files(files),
        commands=files.next_commands(spotted),
    )
    page.write(files.report, overwrite=True)


def _table_note(experiment: _Experiment) -> str:
    return (
        "mAP and R@5: a passage of continuous signing is looked up in the dictionary clips of the "
        f"{len(experiment.split.test)} test words; a clip is right if its word is the annotated one and its best match "
        "lies at the annotated time. Localisation: the share of passages whose sign is found at the right time when "
        "its word is known. Chance: what vectors that know nothing would score. Range: where mAP would mostly lie with "
        "other words; so few words hardly tell one method from another."
    )


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _activation() -> tuple[str, ...]:
    """What makes `signspot` and `pip` those of the environment that runs; nothing where they are so already."""
    script = Path(sys.prefix) / "bin" / "activate"
    if not script.is_file() or str(script.parent) in os.environ.get("PATH", "").split(os.pathsep):
        return ()
    return (f". {_quoted(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)}",)


def _paragraphs(experiment: _Experiment) -> tuple[str, ...]:
    train, split = experiment.train, experiment.split
    return (
        f"A world was drawn: a dictionary of {len(train.entry_ids)} clips of {len(train.vocabulary)} words, and "
        f"subtitled broadcasts in which {len(train.passages)} passages for training carry one annotated sign each. A "
        f"small video network that knows another such world turned all of it into vectors. On top of it, heads were "
        f"learned from three supervisors: watching sparse annotations, reading subtitles, looking words up in the "
        f"dictionary.",
        f"Annotations of {len(split.train)} words are learned from. The table is about the other {len(split.test)} "
        f"words: no annotation of them was ever used, and the people who sign them in the test were never seen.",
    )


def _files(files: _DemoFolder) -> tuple[tuple[str, str], ...]:
    csv, eaf, video = (path.name for path in files.outputs.paths.values())
    return (
        (csv, "in a spreadsheet: the findings"),
        (eaf, "in ELAN: the findings as tiers, and what was really signed"),
        (video, "the video, with curves moving along"),
        (files.scores.name, "the table, for scripts"),
        ("world", "the videos, subtitles, annotations and the truth"),
        ("heads", "the runs, and a model of each"),
    )


def _figures(spotted: _Spotted, reading: Reading) -> Iterator[PageFigure]:
    stories = {
        True: ("A found sign", "The highest point (circle) lies where the word is signed (green)."),
        False: ("A missed sign", "The highest point (circle) lies elsewhere: something else looks more like the clip."),
    }
    for is_found, (title, text) in stories.items():
        if (mention := spotted.clearest(is_found=is_found)) is not None:
            said = f"Each curve is one dictionary clip of {mention.word}, over the passage whose subtitle mentions it. "
            png = _example_of(mention, spotted, reading).png()
            yield PageFigure(f"{title}: {mention.word}", png, said + text, said + text)


def _example_of(mention: _Mention, spotted: _Spotted, reading: Reading = Reading()) -> Example:
    """What a figure shows of a mention: pictures, the truth, and the curves of every method."""
    episode, entry = spotted.episode, mention.entry
    panels = tuple(
        Panel(name, word)
        for name, answer in zip(spotted.methods, spotted.answers, strict=True)
        for word in answer.words
        if word.word == mention.word
    )
    axis = panels[-1].word.similarity.axis
    strips = [(f"{mention.word}, as it is signed here", _strip(episode.video, mention.signed[0], episode.box, reading))]
    if not mention.is_found:
        strips.append(("what was taken for it", _strip(episode.video, mention.taken, episode.box, reading)))
    if entry.video is not None:
        strips.append((f"its dictionary clip {entry.entry_id}", _strip(entry.video, entry.kept, entry.box, reading)))
    return Example(mention.span_ms, tuple(axis.millis_of(span) for span in mention.signed), panels, tuple(strips))


def _strip(video: Path, span: FrameSpan | None, box: SignerBox | None, reading: Reading) -> Pixels:
    """Pictures of some frames of a video, all of them by default, side by side."""
    frames: list[Pixels] = []
    with VideoReader(video, shape=_TILE, box=box, isolated=reading.isolated) as reader:
        for number, frame in enumerate(reader):
            if span is not None and number >= span.stop:
                break
            if span is None or number in span:
                frames.append(frame.pixels)
    return strip(frames)


# One test episode of the demo searched for words never annotated, and the answers held against the truth.


@dataclass(frozen=True, slots=True)
class _Mention:
    """A stretch around a subtitle that mentions a word which is signed there, and the best match in it."""

    word: Word
    span_ms: MillisSpan
    signed: tuple[FrameSpan, ...]  # where the word is signed in the stretch
    taken: FrameSpan  # the window of the highest cosine
    entry: Entry  # that it looks like
    cosine: float

    @property
    def is_found(self) -> bool:
        return any(self.taken.overlaps(span) for span in self.signed)


@dataclass(frozen=True, slots=True, eq=False)
class _Spotted:
    """An episode searched by every method for the test words that its subtitles mention."""

    episode: Episode
    methods: tuple[str, ...]
    answers: tuple[VideoAnswer, ...]  # of each method
    mentions: tuple[_Mention, ...]  # of words that are really signed there, as the last method has them
    n_right: int  # findings of the last method at a place where their word is signed

    @property
    def answer(self) -> VideoAnswer:
        """What the last method found; only its threshold was measured."""
        return self.answers[-1]

    def clearest(self, *, is_found: bool) -> _Mention | None:
        alike = [mention for mention in self.mentions if mention.is_found == is_found]
        return max(alike, key=lambda mention: mention.cosine, default=None)

    def note(self) -> str:
        """How many signs of the searched episode were found, and where the threshold comes from."""
        answer, mentions = self.answer, self.mentions
        return (
            f"{self.methods[-1]} searched {self.episode.video_id}: of {len(mentions)} times that a test word "
            "is in a subtitle and signed near it, its highest point lies on the sign "
            f"{sum(m.is_found for m in mentions)} times. With a threshold of {answer.threshold:.4f} there are "
            f"{len(list(answer))} findings, {self.n_right} of them right. In the training passages {_FALSE_ALARMS:.0%} "
            "of the words that are not there pass this threshold. All cosines of so small a head are near 1: only "
            "their order says anything."
        )


def _search_episode(
    episode: Episode,
    dictionary: Dictionary,
    truth: Sequence[SignedSign],
    reading: Reading,  # its store holds the trunk's vectors
    experiment: _Experiment,
    trained: Sequence[_TrainedMethod],
) -> _Spotted:
    """Let every method look for the test words that the subtitles mention, near those subtitles."""
    cues = read_subtitles(episode.subtitles).subtitles if episode.subtitles is not None else ()
    mentioned = [mention.word for cue in cues for mention in find_words(cue.text, dictionary.vocabulary)]
    # The most frequent first: an overlay has room for a few.
    asked = set(experiment.split.test) & set(mentioned)
    words = tuple(sorted(asked, key=lambda word: (-mentioned.count(word), word)))
    if not words:
        raise InputError(episode.video, "its subtitles mention no test word", "choose another seed")
    threshold = _threshold_of(trained[-1].model.network, experiment)
    options = SpotOptions(threshold=threshold, subtitles=cues, reading=reading)
    queries = (_query(words, dictionary, experiment.test, one) for one in trained)
    answers = tuple(
        spot_prepared(episode, query, one.model, options) for query, one in zip(queries, trained, strict=True)
    )
    n_right = 0  # findings at whose frame, give or take a window, their word is signed
    for found in answers[-1]:
        near = FrameSpan(max(0, found.frame - 8), found.frame + 8)
        n_right += any(sign.word == found.word and near.overlaps(_span(sign)) for sign in truth)
    methods = tuple(one.method.name for one in trained)
    return _Spotted(episode, methods, answers, _signed_mentions(answers[-1], truth), n_right)


def _query(words: tuple[Word, ...], dictionary: Dictionary, material: Material, one: _TrainedMethod) -> Query:
    """The dictionary clips of the words as a method sees them, from the trunk's vectors that are known already."""
    rows = {entry_id: row for row, entry_id in enumerate(material.entry_ids)}
    vectors = []
    for word in words:
        entries = tuple(entry for entry in dictionary.entries(word) if entry.entry_id in rows)
        own = material.entry_vectors[np.array([rows[entry.entry_id] for entry in entries], np.int64)]
        vectors.append(EntryVectors(word, entries, one.model.network.head_vectors(own), one.model.fingerprint))
    return Query(tuple(vectors), dictionary)


def _span(sign: SignedSign) -> FrameSpan:
    return FrameSpan(sign.start_frame, sign.stop_frame)


def _signed_mentions(answer: VideoAnswer, truth: Iterable[SignedSign]) -> tuple[_Mention, ...]:
    """Every mention of a searched word that is signed near its subtitle; all signs of `truth` are of this video."""
    spans: dict[str, list[FrameSpan]] = {}
    for sign in truth:
        spans.setdefault(sign.word, []).append(_span(sign))
    return tuple(mention for word in answer.words for mention in _mentions(word, spans.get(word.word, ())))


def _mentions(word: WordAnswer, spans: Sequence[FrameSpan]) -> Iterator[_Mention]:
    similarity = word.similarity
    for searched in word.searched_ms or ():
        stretch = similarity.axis.frames_in(searched)
        signed = tuple(span for span in spans if stretch.start <= span.start and span.stop <= stretch.stop)
        inside = (similarity.times_ms >= searched.start) & (similarity.times_ms < searched.stop)
        if not signed or not inside.any():
            continue
        window = int(np.where(inside, similarity.best, -np.inf).argmax())
        place = int(similarity.cosine[window].argmax())
        cosine, taken = float(similarity.cosine[window, place]), similarity.grid.span(window)
        yield _Mention(similarity.word, searched, signed, taken, similarity.entries[place], cosine)
