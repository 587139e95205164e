from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import Subtitle
from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError, InputError, OutputExists, SignspotError
from signspot.formats import bobsl as bsl1k
from signspot.formats.bobsl import (
    ReleasedCorpus,
    SplitAnnotations,
    _read_bsl1k_subtitles,
    _read_released,
    _read_splits,
    _read_vocabulary,
    import_corpus,
)
from signspot.stores.corpus import read_corpus
from signspot.text.subtitles import read_subtitles
from tests.formats.released_files import Payload, damaged_trees, info_tree, mouthings_tree, write_pickle

SPLIT_SUBTITLES = {
    "train": {
        "subtitle": ["An apple & a <pear>", "Yes --> no\n\nStop\x0b"],
        "subtitle_lemmas": [["apple"], []],
        "name": ["show--one", "show--one"],
        "start_time": np.array([2.0, 0.5]),
        "end_time": np.array([3.5, 1.04]),
    }
}
RAW_SUBTITLES = {
    "show/one": [
        {"start": 0.5, "end": 1.04, "span": {"text": "Yes"}},
        {"start": 2, "end": 3.5, "span": [{"text": "An "}, {"text": "apple"}]},
    ]
}
VOCABULARY = {"words": ["apple", "grey", "yoghurt"], "words_to_id": {"apple": 0, "grey": 1, "yoghurt": 2}}
SPLITS = {"train": ["show/one", "show/two"], "test": ["news/three"]}

Quick = Callable[[object, Callable[[Path], object]], object]


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quick:
    """Reads what the process that reads pickles would give: starting it every time would take minutes."""

    def run(tree: object, read: Callable[[Path], object]) -> object:
        monkeypatch.setattr(bsl1k, "read_metadata", lambda _: tree)
        return read(tmp_path / "x.pkl")

    return run


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is really read, by its process, but only the first time."""
    monkeypatch.setattr(bsl1k, "read_metadata", cache(bsl1k.read_metadata))


def read_annotations(path: Path) -> SplitAnnotations:
    return _read_released(ReleasedCorpus(annotations=path, source="mouthing"))


def span(start: int, stop: int) -> MillisSpan:
    return MillisSpan(Millis(start), Millis(stop))


def test_mouthings_get_british_spelling_and_keep_their_confidence(tmp_path: Path) -> None:
    found = read_annotations(write_pickle(mouthings_tree(), tmp_path / "mouthings.pkl", 2))
    rows = [
        (s, a.video_id, a.word, a.time_ms, a.confidence, a.source) for s in found.by_split for a in found.by_split[s]
    ]
    assert rows == [
        ("train", "show--one", "apple", 1500, 0.9, "mouthing"),
        ("train", "show--two", "apple", 2250, 0.5, "mouthing"),
        ("train", "show--one", "yoghurt", 3000, 1.0, "mouthing"),
        ("train", "show--one", "yoghurt", 4000, 0.25, "mouthing"),  # both spellings, and none is lost
        ("test", "news--three", "grey", 40, 0.75, "mouthing"),
    ]


def test_every_listed_spelling_is_corrected(quick: Quick) -> None:
    american = ["airplane", "center", "favor", "gray", "practice", "recognize", "yogurt"]
    tree = {"train": {word: {"names": ["a"], "times": [1], "probs": [1]} for word in american}}
    found = quick(tree, read_annotations)
    british = ["aeroplane", "centre", "favour", "grey", "practise", "recognise", "yoghurt"]
    assert [annotation.word for annotation in found] == british  # type: ignore[attr-defined]


def test_the_clips_of_info_are_the_same_annotations(quick: Quick) -> None:
    found, mouthings = quick(info_tree(), read_annotations), quick(mouthings_tree(), read_annotations)
    assert isinstance(found, SplitAnnotations) and isinstance(mouthings, SplitAnnotations)
    assert found.by_split == {"train": mouthings.by_split["train"][:1], "val": (), "test": mouthings.by_split["test"]}


def test_both_layouts_of_subtitles_are_read_in_the_order_of_time(quick: Quick) -> None:
    assert quick(SPLIT_SUBTITLES, _read_bsl1k_subtitles) == {
        "show--one": (Subtitle(span(500, 1040), "Yes --> no Stop"), Subtitle(span(2000, 3500), "An apple & a <pear>"))
    }
    expected = {"show--one": (Subtitle(span(500, 1040), "Yes"), Subtitle(span(2000, 3500), "An apple"))}
    assert quick(RAW_SUBTITLES, _read_bsl1k_subtitles) == expected


def test_the_id_of_a_word_is_its_position(quick: Quick) -> None:
    assert quick(VOCABULARY, _read_vocabulary).words == ("apple", "grey", "yoghurt")  # type: ignore[attr-defined]
    for ids in ({"apple": 1}, {"apple": 99}, {"apple": -1}):
        with pytest.raises(FormatError, match="words_to_id/apple is not the position of the word"):
            quick({**VOCABULARY, "words_to_id": ids}, _read_vocabulary)
    with pytest.raises(FormatError, match="names each word once"):
        quick({"words": ["a", "A"]}, _read_vocabulary)


def test_the_split_of_an_episode_is_one(quick: Quick) -> None:
    assert quick(SPLITS, _read_splits) == {"show--one": "train", "show--two": "train", "news--three": "test"}
    with pytest.raises(FormatError, match=r"test\[0\] is in two splits: 'show/one'"):
        quick({**SPLITS, "test": ["show/one"]}, _read_splits)


@pytest.fixture
def files(tmp_path: Path) -> ReleasedCorpus:
    return ReleasedCorpus(
        annotations=write_pickle(mouthings_tree(), tmp_path / "mouthings.pkl"),
        subtitles=write_pickle(SPLIT_SUBTITLES, tmp_path / "subtitles.pkl"),
        vocabulary=write_pickle({**VOCABULARY, "words": ["apple", "grey"], "words_to_id": {}}, tmp_path / "vocab.pkl"),
        splits=write_pickle(SPLITS, tmp_path / "subset2episode.pkl"),
    )


@pytest.mark.usefixtures("read_once")
def test_an_imported_corpus_reads_like_any_other(tmp_path: Path, files: ReleasedCorpus) -> None:
    with pytest.raises(
        FormatError, match=r"none of the 3 videos of mouthings.pkl is there: put .*, such as news--three.mp4"
    ):
        import_corpus(files, tmp_path)  # no folder of videos yet
    assert {path.suffix for path in tmp_path.iterdir()} == {".pkl"}
    folder = tmp_path / "videos"
    (folder / "news" / "three").mkdir(parents=True)
    for name in ("show--one.mp4", "news/three/signhd.mp4"):
        (folder / name).touch()
    result = import_corpus(files, folder)
    read = read_corpus(folder)
    assert read.problems == () and read.episodes == result.corpus.episodes
    assert [(e.video_id, e.video, e.split, e.language) for e in read.episodes] == [
        ("news--three", folder / "news" / "three" / "signhd.mp4", "test", "bfi"),
        ("show--one", folder / "show--one.mp4", "train", "bfi"),
    ]
    assert [(a.video_id, a.word, a.time_ms, a.confidence, a.source) for a in read.annotations] == [
        ("news--three", "grey", 40, 0.75, "mouthing"),
        ("show--one", "apple", 1500, 0.9, "mouthing"),
    ]
    assert [str(problem) for problem in result.corpus.problems] == [
        "show--two: the video of this episode is not there: add show--two.mp4"
    ]
    subtitles = read.episodes[1].subtitles
    assert subtitles == folder / "subtitles" / "show--one.vtt"
    expected = (Subtitle(span(500, 1040), "Yes --> no Stop"), Subtitle(span(2000, 3500), "An apple & a <pear>"))
    assert read_subtitles(subtitles).subtitles == expected
    assert (result.missing_videos, result.left_out) == (1, 1)
    with pytest.raises(OutputExists, match="exists already"):
        import_corpus(files, folder)
    assert import_corpus(files, folder, overwrite=True) == result


@pytest.mark.parametrize(
    ("read", "tree", "words"),
    [
        (read_annotations, {"videos": {"name": ["x.mp4"]}}, "videos has no field 'word'"),
        (read_annotations, {"train": {"a": {"names": ["x"], "times": [1, 2]}}}, "train/a/times has 2 values"),
        (_read_bsl1k_subtitles, {"a": [{"start": 2, "end": 1, "span": {"text": "x"}}]}, r"a\[0\]/end lies before"),
        (_read_bsl1k_subtitles, {"a": [{"start": 2, "end": 3}]}, r"a\[0\] has no field 'span'"),
        (
            _read_bsl1k_subtitles,
            {"../../x": [{"start": 2, "end": 3, "span": []}]},
            "the episode is .*which is not a name",
        ),
        (_read_splits, {"train": ["../x"]}, r"train\[0\] is '..--x', which is not a name"),
        (_read_splits, 5, "is 5, which is not a table"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(
    quick: Quick, read: Callable[[Path], object], tree: object, words: str
) -> None:
    with pytest.raises(FormatError, match=words):
        quick(tree, read)


@pytest.mark.parametrize("column", ["name", "split", "mouthing_time", "mouthing_prob", "word"])
def test_a_wrong_clip_of_info_is_named(quick: Quick, column: str) -> None:
    tree = info_tree()
    tree["videos"][column][1] = -5 if column != "word" else "?"  # type: ignore[index]
    place = "word" if column in ("word", "mouthing_prob") else column
    with pytest.raises(FormatError, match=rf"videos/{place}\[1\]"):
        quick(tree, read_annotations)


def test_a_payload_is_refused_by_name_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary"
    path = write_pickle({"train": Payload(canary)}, tmp_path / "x.pkl")
    with pytest.raises(InputError, match=r"refused: wants posix.system.*Nothing was run") as refusal:
        read_annotations(path)

    def refusing(_: Path) -> object:
        raise refusal.value

    monkeypatch.setattr(bsl1k, "read_metadata", refusing)  # the one door, for the others too
    for read in (read_annotations, _read_bsl1k_subtitles, _read_splits, _read_vocabulary):
        with pytest.raises(InputError, match=r"refused: wants posix.system.*Nothing was run"):
            read(path)
    assert not canary.exists()


@pytest.mark.parametrize(
    ("read", "tree"),
    [
        (read_annotations, info_tree()),
        (read_annotations, mouthings_tree()),
        (_read_bsl1k_subtitles, SPLIT_SUBTITLES),
        (_read_bsl1k_subtitles, RAW_SUBTITLES),
        (_read_splits, SPLITS),
        (_read_vocabulary, VOCABULARY),
    ],
    ids=["info", "mouthings", "subtitles", "raw subtitles", "splits", "vocabulary"],
)
@pytest.mark.parametrize("count", [200, pytest.param(3000, marks=pytest.mark.soak)])
def test_a_damaged_tree_gives_data_or_a_typed_error(
    quick: Quick, read: Callable[[Path], object], tree: object, count: int
) -> None:
    for damaged in damaged_trees(tree, count, seed=6):
        with contextlib.suppress(SignspotError):
            quick(damaged, read)
