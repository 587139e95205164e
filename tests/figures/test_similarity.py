from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from signspot.domain.results import VideoAnswer, WordAnswer
from signspot.domain.time import MillisSpan
from signspot.errors import InputError, OutputExists
from signspot.figures import similarity as plot
from signspot.figures.similarity import plot_answer
from tests.media.answers import track, video_answer, word_answer

FOUND = np.array((0, 158, 115))
SHADED = np.rint(255 - 0.28 * (255 - FOUND))
GREY = (236, 236, 236)
PANEL_LEFT, PANEL_RIGHT = 0.75 * 160, (11 - 0.95) * 160  # pixels


def drawn(answer: VideoAnswer, folder: Path) -> np.ndarray:
    plot_answer(answer, folder / "figure.png", overwrite=True)
    return np.asarray(Image.open(folder / "figure.png").convert("RGB")).astype(int)


def said(answer: VideoAnswer, folder: Path) -> list[str]:
    """Every text of the figure: matplotlib notes it in SVG next to its letters."""
    plot_answer(answer, folder / "figure.svg", overwrite=True)
    return re.findall(r"<!-- (.*?) -->", (folder / "figure.svg").read_text(encoding="utf-8"))


def columns_of(picture: np.ndarray, colour: object, at_least: int = 40) -> np.ndarray:
    """The columns with a good part of a colour: more than a sign of the key has."""
    return np.flatnonzero((np.abs(picture - np.asarray(colour)).max(axis=2) <= 2).sum(axis=0) >= at_least)


def at(seconds: float, duration: float = 20) -> float:
    return PANEL_LEFT + seconds / duration * (PANEL_RIGHT - PANEL_LEFT)


def test_the_found_span_is_shaded_where_it_is(tmp_path: Path) -> None:
    shaded = columns_of(drawn(video_answer({"apple": [100]}), tmp_path), SHADED)
    assert (shaded.min(), shaded.max()) == pytest.approx((at(3.68), at(4.32)), abs=2)


def test_what_was_not_searched_is_grey(tmp_path: Path) -> None:
    searched = (MillisSpan.of(4000, 10_000), MillisSpan.of(15_000, 20_000))
    word = dataclasses.replace(word_answer("apple", []), searched_ms=searched)
    answer = VideoAnswer(video_id="news.mp4", words=(word,), duration_ms=20_000, threshold=0.4)
    grey = columns_of(drawn(answer, tmp_path), GREY)
    gaps = np.flatnonzero(np.diff(grey) > 5)
    assert len(gaps) == 1
    ends = (grey[0], grey[gaps[0]], grey[gaps[0] + 1], grey[-1])
    assert ends == pytest.approx((at(0), at(4), at(10), at(15)), abs=3)
    assert "not searched" in said(answer, tmp_path)
    assert "not searched" not in said(video_answer({"apple": []}), tmp_path)


def test_peaks_are_labelled_with_word_variant_and_cosine(tmp_path: Path) -> None:
    texts = said(video_answer({"apple": [100, 300]}), tmp_path)
    assert {"apple", "apple #1 0.70", "apple #2 0.70", "found 2×, highest cosine 0.70"} <= set(texts)
    assert {"#1", "#2", "threshold 0.40", "found", "media time"} <= set(texts)


def test_the_only_entry_of_a_word_needs_no_name(tmp_path: Path) -> None:
    texts = said(video_answer({"apple": [100]}, n_entries=1), tmp_path)
    assert "apple 0.70" in texts and not {"#1", "v1"} & set(texts)


def test_variants_have_the_names_of_the_dictionary(tmp_path: Path) -> None:
    word = word_answer("eat", [100, 300])
    entries = tuple(
        dataclasses.replace(entry, variant=name)
        for entry, name in zip(word.similarity.entries, ("2", "7"), strict=True)
    )
    word = dataclasses.replace(word, similarity=dataclasses.replace(word.similarity, entries=entries))
    texts = said(VideoAnswer(video_id="n", words=(word,), duration_ms=20_000, threshold=0.4), tmp_path)
    assert {"v2", "v7", "eat v2 0.70", "eat v7 0.70"} <= set(texts) and not {"v1", "eat v1 0.70"} & set(texts)


def test_not_found_is_said(tmp_path: Path) -> None:
    texts = said(video_answer({"apple": [100], "tree": []}), tmp_path)
    assert "not found: highest cosine 0.10, threshold 0.40" in texts
    assert "tree" in texts


def test_the_title_says_which_video_how_long_and_how_much_of_it(tmp_path: Path) -> None:
    answer = dataclasses.replace(video_answer({"apple": []}), partial="partial, 0:20 of 42:00")
    assert "news.mp4 · 0:20 · partial, 0:20 of 42:00" in said(answer, tmp_path)


@pytest.mark.parametrize(
    ("duration_ms", "ticks"),
    [
        (1_000, {"0:00.0", "0:00.5", "0:01.0"}),
        (20_000, {"0:00", "0:10", "0:20"}),
        (600_000, {"0:00", "5:00", "10:00"}),
        (7_200_000, {"0:00", "1:00:00", "2:00:00"}),
    ],
)
def test_the_axis_is_in_minutes_and_seconds(tmp_path: Path, duration_ms: int, ticks: set[str]) -> None:
    answer = dataclasses.replace(video_answer({"apple": []}), duration_ms=duration_ms)
    assert ticks <= set(said(answer, tmp_path))


def test_labels_never_cover_each_other(tmp_path: Path) -> None:
    answer = video_answer({"apple": list(range(20, 490, 6))})
    figure = plot._answer_figure(answer)
    labels = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text().startswith("apple #")]
    assert 5 < len(labels) < 20
    for number, label in enumerate(labels):
        assert not label.count_overlaps(labels[:number])


def test_one_window_of_an_hour_is_seen(tmp_path: Path) -> None:
    word = word_answer("apple", [], 90_000)
    word.similarity.cosine[60_000 - 8, 0] = 0.9
    picture = drawn(VideoAnswer(video_id="x", words=(word,), duration_ms=3_600_000, threshold=0.4), tmp_path)
    top = int((plot._TOP + plot._HEADER) * 160)
    high = picture[top + 30 : top + 60]  # well above the rest of the curve
    columns = np.flatnonzero((high.max(axis=2) < 240).any(axis=0))
    columns = columns[(columns > PANEL_LEFT + 5) & (columns < PANEL_RIGHT)]
    assert len(columns)
    assert columns == pytest.approx(np.full(len(columns), at(2400, 3600)), abs=3)


def test_a_single_window_is_seen_as_a_dot(tmp_path: Path) -> None:
    word = word_answer("apple", [], 10, n_entries=1)
    picture = drawn(VideoAnswer(video_id="x", words=(word,), duration_ms=400, threshold=0.4), tmp_path)
    blue = np.argwhere(np.abs(picture[:, : int(PANEL_RIGHT)] - (0, 114, 178)).max(axis=2) <= 2)
    assert 10 < len(blue) < 400
    assert blue[:, 1].mean() == pytest.approx(at(0.32, 0.4), abs=3)


def nothing_comparable() -> WordAnswer:
    answer = word_answer("apple", [])
    answer.similarity.cosine[:] = -np.inf
    return answer


@pytest.mark.parametrize(
    "answer",
    [
        VideoAnswer(video_id="x", words=(), duration_ms=20_000, threshold=0.4),
        VideoAnswer(video_id="x", words=(nothing_comparable(),), duration_ms=20_000, threshold=0.4),
        VideoAnswer(video_id="x", words=(WordAnswer(track("apple", 0), ()),), duration_ms=0, threshold=0.4),
        VideoAnswer(video_id="x", words=(WordAnswer(track("apple", 500, 0), ()),), duration_ms=20_000, threshold=0.4),
        video_answer({"apple": [100]}, n_entries=60),
    ],
    ids=["no-words", "unusable", "empty", "no-entries", "sixty-entries"],
)
def test_odd_answers_are_drawn(tmp_path: Path, answer: VideoAnswer) -> None:
    texts = said(answer, tmp_path)
    assert drawn(answer, tmp_path).size
    if answer.words and answer.words[0].best_cosine is None:
        assert "not found: nothing could be compared" in texts


@pytest.mark.parametrize(
    "word",
    ["\ue001\ue0e2", "\U0001d800\U0001da00", "手話", "🤟🏽", "\u202eabc\n\x1b[31m", "$x_1^$", "_x", "a<b>&", "x" * 200],
)
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_odd_letters_neither_fail_nor_warn(tmp_path: Path, word: str, suffix: str) -> None:
    answer = dataclasses.replace(video_answer({word: [100]}), video_id=f"{word}.mp4")
    plot_answer(answer, tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").stat().st_size > 5000


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"), (".PNG", b"\x89PNG")]
)
def test_the_suffix_chooses_the_format_and_equal_answers_give_equal_bytes(
    tmp_path: Path, suffix: str, magic: bytes
) -> None:
    for name in ("a", "b"):
        plot_answer(video_answer({"apple": [100]}), tmp_path / f"{name}{suffix}")
    first, second = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b"))
    assert first.startswith(magic)
    assert first == second


def test_of_many_words_the_first_are_drawn_and_the_title_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "_MAX_PANELS", 3)
    texts = said(video_answer({f"word{n}": [] for n in range(5)}), tmp_path)
    assert "news.mp4 · 0:20 · 3 of 5 words shown" in texts
    assert "word2" in texts and "word3" not in texts


def test_outputs_that_cannot_be_are_refused(tmp_path: Path) -> None:
    answer = video_answer({"apple": [100]})
    with pytest.raises(InputError, match=r"ends in .png, .svg, .pdf"):
        plot_answer(answer, tmp_path / "figure.mp4")
    with pytest.raises(InputError, match="folder to write to does not exist"):
        plot_answer(answer, tmp_path / "missing" / "figure.png")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "figure.png").write_bytes(b"old")
    with pytest.raises(OutputExists, match="exists already"):
        plot_answer(answer, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes() == b"old"


def test_importing_is_light_and_plotting_keeps_its_hands_off_pyplot(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "import signspot.media.writer, signspot.figures.similarity\n"
        "assert not {'matplotlib', 'PIL', 'torch'} & set(sys.modules), 'heavy'\n"
        "from pathlib import Path\n"
        "from tests.media.answers import video_answer\n"
        "answer = video_answer({'apple': [100]})\n"
        f"signspot.figures.similarity.plot_answer(answer, Path({str(tmp_path / 'x.png')!r}))\n"
        "assert 'matplotlib.pyplot' not in sys.modules, 'pyplot'\n"
    )
    repository = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", script], cwd=repository, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
