from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError, OutputExists
from signspot.evaluation.localisation import SignSpan, overlap_scores
from signspot.formats.challenge import read_challenge, write_challenge

times = st.integers(0, 10**9)
sign_spans = st.builds(
    lambda number, start, length: SignSpan(number, MillisSpan(Millis(start), Millis(start + length))),
    st.integers(-5, 1 << 52),
    times,
    times,
)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1, max_size=20)
names = names.filter(lambda name: name.strip() and not name.startswith("."))


def test_a_file_of_the_challenge_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text('{"p01_n001.mp4": [[7, 0, 480], [59, 1200.4, 1800]], "p02_n000.mp4": []}')
    spans = read_challenge(path)
    assert spans == {
        "p01_n001.mp4": (SignSpan(7, MillisSpan.of(0, 480)), SignSpan(59, MillisSpan.of(1200, 1800))),
        "p02_n000.mp4": (),
    }
    assert overlap_scores(spans, spans).f1 == 1.0


@given(spans=st.dictionaries(names, st.lists(sign_spans, max_size=4).map(tuple), max_size=4))
def test_what_is_written_reads_back(
    spans: dict[str, tuple[SignSpan, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("challenge") / "answers.json"
    write_challenge(spans, path)
    assert read_challenge(path) == spans
    assert list(read_challenge(path)) == list(spans)


def test_what_is_written_has_the_form_of_the_challenge(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    write_challenge({"a.mp4": (SignSpan(3, MillisSpan.of(40, 80)),)}, path)
    assert json.loads(path.read_text()) == {"a.mp4": [[3, 40, 80]]}
    with pytest.raises(OutputExists):
        write_challenge({}, path)
    write_challenge({}, path, overwrite=True)
    assert read_challenge(path) == {}


class Trap:
    """Marks a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["gt.pkl", "gt.json"])
def test_a_pickle_is_refused_whatever_its_name_and_never_opened(tmp_path: Path, name: str, protocol: int) -> None:
    path, mark = tmp_path / name, tmp_path / "ran"
    path.write_bytes(pickle.dumps({"p01.mp4": [[1, 0, 10]], "trap": Trap(mark)}, protocol))
    with pytest.raises(FormatError, match=r"is a pickle, which can run code when it is opened: use the JSON form"):
        read_challenge(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "is \\[\\], which is not a table with names"),
        ('{"a": 3}', "a is 3, which is not a list"),
        ('{"a": [[1, 2]]}', r"a\[0\] has 2 values where 3 are expected"),
        ('{"a": [[1, 20, 10]]}', r"a\[0\] is \[1, 20, 10\], which is not a class with a start and a stop"),
        ('{"a": [[1, -5, 10]]}', "not a class with a start and a stop in milliseconds"),
        ('{"a": [["dog", 0, 10]]}', "not a whole number|not a number"),
        ('{"a": [[1.5, 0, 10]]}', "1.5, which is not a whole number"),
        ('{"a": [[true, 0, 10]]}', "True, which is not a number"),
        ('{"a": [[1, 0, 1e300]]}', "not a class with a start and a stop"),
        ('{"a": [[1, 0, NaN]]}', "not valid JSON"),
        ('{"../a": []}', "which is not a name"),
        ('{"": []}', "which is not a name"),
        ('{"a": [], "a": []}', "comes twice"),
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_damaged_files_say_what_is_wrong(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "gt.json"
    path.write_text(content)
    with pytest.raises(FormatError, match=words):
        read_challenge(path)


@given(content=st.binary(max_size=60) | st.text(alphabet='{}[]",:0123456789.-eE a', max_size=60).map(str.encode))
def test_anything_else_is_a_format_error(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("challenge") / "x.json"
    path.write_bytes(content)
    try:
        read_challenge(path)
    except FormatError as error:
        assert str(path) in str(error)


def test_spans_that_would_not_read_back_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    for video, one in (
        ("a/b.mp4", SignSpan(1, MillisSpan.of(0, 10))),
        ("a.mp4", SignSpan(1, MillisSpan.of(-10, 10))),
        ("a.mp4", SignSpan(1 << 60, MillisSpan.of(0, 10))),
    ):
        with pytest.raises(FormatError):
            write_challenge({video: (one,)}, path)
    assert not path.exists()


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        read_challenge(tmp_path / "none.json")
