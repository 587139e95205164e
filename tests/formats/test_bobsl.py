from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.domain.recordings import Word
from signspot.errors import FormatError, OutputExists, SignspotError
from signspot.formats.bobsl import OFFSETS, OffsetRule, ReleasedCorpus, SplitAnnotations, _read_released
from signspot.stores.corpus import TimedAnnotation
from tests.formats.spottings import mutants, write_mutant

SPOTTINGS = {
    "train": {
        "Ice Cream": {"names": ["508534", "611"], "global_times": [12.3456, 0], "probs": [0.9, 1]},
        "_fingerspelling": {"names": ["508534"], "global_times": [3.0], "probs": [0.4]},
        "?!": {"names": ["508534"], "global_times": [3.0], "probs": [0.4]},
    },
    "test": {"apple": {"names": ["7"], "global_times": [1.0]}},
}


def read_bobsl_spottings(path: Path, source: str, rule: OffsetRule | None = None) -> SplitAnnotations:
    return _read_released(ReleasedCorpus(annotations=path, source=source, rule=rule))


def write(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "spottings.json"
    path.write_text(json.dumps(content))
    return path


def test_spottings_keep_their_time_and_source(tmp_path: Path) -> None:
    found = read_bobsl_spottings(write(tmp_path, SPOTTINGS), "dictionary")
    ice_cream = Word("ice-cream")
    first = TimedAnnotation(video_id="508534", word=ice_cream, time_ms=12346, confidence=0.9, source="dictionary")
    second = TimedAnnotation(video_id="611", word=ice_cream, time_ms=0, source="dictionary")
    apple = TimedAnnotation(video_id="7", word=Word("apple"), time_ms=1000, source="dictionary")
    assert found.by_split == {"train": (first, second), "test": (apple,)} and list(found) == [first, second, apple]
    assert found.rules == {"dictionary": OffsetRule(-3, 22)}
    assert found.warnings == (
        "marks that are not words: 1 (_fingerspelling)",
        "words that cannot be used: 1 (train/?!)",
    )


annotations = st.builds(
    TimedAnnotation,
    video_id=st.sampled_from(["1", "show--two", "é"]),
    word=st.sampled_from([Word("apple"), Word("ice-cream"), Word("œuf")]),
    time_ms=st.integers(0, 10**8),
    confidence=st.floats(0, 1),
    source=st.sampled_from(["mouthing", "mine"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(["train", "val"]), st.lists(annotations, max_size=5).map(tuple), min_size=1))
def test_what_is_written_is_read_back(tmp_path: Path, by_split: dict[str, tuple[TimedAnnotation, ...]]) -> None:
    rules = {"mouthing": OFFSETS["mouthing"], "mine": OffsetRule(-1, 1)}
    SplitAnnotations(by_split, rules).write(tmp_path / "s.json", overwrite=True)
    read = read_bobsl_spottings(tmp_path / "s.json", "mouthing")
    key = repr
    assert {s: sorted(a, key=key) for s, a in read.by_split.items()} == {
        s: sorted(a, key=key) for s, a in by_split.items()
    }
    assert all(read.rules[annotation.source] == rules[annotation.source] for annotation in read)


def test_the_layout_is_that_of_bobsl(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    spottings = read_bobsl_spottings(write(tmp_path, SPOTTINGS), "mouthing")
    spottings.write(path)
    assert json.loads(path.read_text())["train"]["ice-cream"] == {
        "names": ["508534", "611"],
        "global_times": [12.346, 0.0],
        "probs": [0.9, 1.0],
        "sources": ["mouthing", "mouthing"],
        "offsets": [[-15, 4], [-15, 4]],
    }
    with pytest.raises(OutputExists, match="exists already"):
        spottings.write(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "is \\[\\], which is not a table"),
        ({"train": 5}, "train is 5, which is not a table"),
        ({"train": {"a": {}}}, "train/a has no field 'names'"),
        ({"train": {"a": {"names": ["1"]}}}, "train/a has no field 'global_times'"),
        ({"train": {"a": {"names": ["1"], "times": []}}}, "train/a/times has 0 values where 1 are expected"),
        ({"train": {"a": {"names": ["1"], "times": ["x"]}}}, r"train/a/times\[0\] is 'x', which is not a number"),
        ({"train": {"a": {"names": ["../x"], "times": [1]}}}, r"train/a/names\[0\] is '..--x', which is not a name"),
        ({"train": {"a": {"names": [1], "times": [1]}}}, r"train/a/names\[0\] is 1, which is not text"),
        (
            {"train": {"a": {"names": ["1"], "times": [1], "sources": ["s"], "offsets": [[3, 1]]}}},
            r"offsets\[0\] is \[3, 1\], which is not a window",
        ),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, content: object, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read_bobsl_spottings(write(tmp_path, content), "mouthing")


def test_what_lacks_a_rule_or_a_time_is_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no offset rule is known for the source 'swin'"):
        read_bobsl_spottings(write(tmp_path, SPOTTINGS), "swin")
    assert read_bobsl_spottings(write(tmp_path, SPOTTINGS), "swin", OffsetRule(5, 25)).rules["swin"].stop == 25
    at_frame = TimedAnnotation(video_id="v", word=Word("x"), frame=3, source="mouthing")
    at_time = TimedAnnotation(video_id="v", word=Word("x"), time_ms=3, source="human")
    for annotation, words in ((at_frame, "no time, only a frame"), (at_time, "no offset rule for 'human'")):
        with pytest.raises(FormatError, match=words):
            SplitAnnotations({"train": (annotation,)}, OFFSETS).write(tmp_path / "new.json")
    assert not (tmp_path / "new.json").exists()


def test_impossible_times_are_left_out_and_told(tmp_path: Path) -> None:
    content = {"train": {"a": {"names": ["1", "2", "3"], "times": [-1, 2, 3], "probs": [1, 1.5, 1]}}}
    found = read_bobsl_spottings(write(tmp_path, content), "mouthing")
    assert [annotation.video_id for annotation in found] == ["3"]
    assert found.warnings[0].startswith("annotations with an impossible time or probability: 2 (train/a/times[0]")


def test_a_damaged_file_gives_annotations_or_a_typed_error(tmp_path: Path) -> None:
    original = json.dumps(SPOTTINGS).encode()
    for content in mutants(original, 1000, seed=5):
        with contextlib.suppress(SignspotError):
            read_bobsl_spottings(write_mutant(tmp_path / "m.json", content), "mouthing")
