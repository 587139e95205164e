"""Sentences of RWTH-BOSTON-104: what is read at 25 frames a second, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from experiments.lib.data_sets import read_boston104

from signspot.domain.time import FrameSpan
from signspot.errors import FormatError

REAL = Path(__file__).parents[3] / "shared/data/boston104"
_HANDS = "video,frame,left-x,left-y,right-x,right-y,nose-x,nose-y\n"
_WORDS = "video,speaker,word,startframe,endframe\n"


def _folder(path: Path, **changed: str) -> Path:
    """A folder of two sentences of 60 frames: in both the left hand moves one pixel a frame to the right."""
    rows = [f"{video},{frame},{frame},5,7,8,9,10" for video in (1, 2) for frame in range(60)]
    files = {
        "hands_condensed": _HANDS + "\n".join(rows) + "\n",
        "speaker": "video,speaker\n1,woman-1\n2,man-1\n",
        "train_words": _WORDS + "1,woman-1,JOHN,6,11\n1,woman-1,IX-1P,30,59\n",
        "test_words": _WORDS + "2,man-1,NEW-YORK,0,0\n",
    }
    for name, content in (files | changed).items():
        (path / f"{name}.csv").write_text(content)
    return path


def test_sentences_are_read_with_their_signers_words_and_splits(tmp_path: Path) -> None:
    first, second = read_boston104(_folder(tmp_path))
    assert (first.video_id, first.signer, first.split) == ("1", "woman-1", "train")
    assert (second.video_id, second.signer, second.split) == ("2", "man-1", "test")
    assert [word.word for word in (*first.words, *second.words)] == ["john", "ix-1p", "new-york"]


def test_motion_is_interpolated_to_25_frames_a_second(tmp_path: Path) -> None:
    places = read_boston104(_folder(tmp_path))[0].places
    assert places.shape == (50, 3, 2)  # two seconds
    np.testing.assert_allclose(places[:, 0, 0], np.minimum(np.arange(50) * 1.2, 59), rtol=1e-6)
    assert (places[:, 1] == [7, 8]).all()
    assert (places[:, 2] == [9, 10]).all()


def test_a_word_has_the_frames_whose_time_lies_in_it(tmp_path: Path) -> None:
    first, second = read_boston104(_folder(tmp_path))
    # Native frames 6 to 11 last from 200 ms up to 400 ms; a frame of ours lasts 40 ms.
    assert [word.span for word in first.words] == [FrameSpan(5, 10), FrameSpan(25, 50)]
    assert second.words[0].span == FrameSpan(0, 1)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"train_words": _WORDS + "1,woman-1,JOHN,9,8\n"}, "line 2: frames 9 to 8 of a sentence of 60"),
        ({"train_words": _WORDS + "1,woman-1,JOHN,9,60\n"}, "frames 9 to 60 of a sentence of 60"),
        ({"train_words": _WORDS + "1,woman-1,JOHN,-1,6\n"}, "startframe is '-1', which is no frame number"),
        ({"train_words": _WORDS + "1,woman-1,JOHN,1.5,6\n"}, "startframe is '1.5', which is no frame number"),
        ({"train_words": _WORDS + "1,woman-1,JOHN,,6\n"}, "startframe is '', which is no place or frame"),
        ({"train_words": _WORDS + "1,woman-1,...,1,6\n"}, "no word in"),
        ({"train_words": _WORDS + "1,man-1,JOHN,1,6\n"}, "speaker.csv says that 'woman-1' signs this sentence"),
        ({"train_words": _WORDS + "3,man-1,JOHN,1,6\n"}, "the sentence '3' has no trajectories"),
        ({"test_words": _WORDS + "1,woman-1,JOHN,1,6\n"}, "the sentence 1 is a training sentence too"),
        ({"speaker": "video,speaker\n1,woman-1\n"}, "speaker.csv does not say who signs the sentence '2'"),
        ({"speaker": "video\n1\n"}, "speaker.csv: no column speaker"),
        ({"hands_condensed": _HANDS + "1,0,1,2,3,4,5,six\n"}, "line 2: nose-y is 'six', which is not a number"),
        ({"hands_condensed": _HANDS + "1,0,1,2,3,4,5,1e9\n"}, "nose-y is '1e9', which is no place or frame"),
        ({"hands_condensed": _HANDS + "1,1,1,2,3,4,5,6\n"}, "frame 1 where frame 0 is expected"),
        ({"hands_condensed": _HANDS + "1,0,1,2,3,4,5,6,7\n"}, "9 cells under 8 columns"),
        ({"train_words": _WORDS, "test_words": _WORDS}, "no sentence has words"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path: Path, changed: dict[str, str], match: str) -> None:
    with pytest.raises(FormatError, match=match):
        read_boston104(_folder(tmp_path, **changed))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (_folder(tmp_path) / "speaker.csv").unlink()
    with pytest.raises(FormatError, match=r"speaker\.csv: no such file"):
        read_boston104(tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/data/boston104")
def test_the_real_corpus_has_the_sentences_and_words_it_is_known_for() -> None:
    sentences = read_boston104(REAL)
    by_split = {split: [one for one in sentences if one.split == split] for split in ("train", "test")}
    assert {split: len(some) for split, some in by_split.items()} == {"train": 161, "test": 40}
    assert {split: sum(len(one.words) for one in some) for split, some in by_split.items()} == {
        "train": 710,
        "test": 178,
    }
    assert len({one.signer for one in sentences}) == 3
    assert all(len(word.span) > 0 and word.span.stop <= len(one.places) for one in sentences for word in one.words)
