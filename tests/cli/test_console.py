from __future__ import annotations

import sys

import pytest
from rich.progress import Progress

from signspot.cli.console import _PaceColumn, progress_bars
from signspot.errors import InputError, Notice


@pytest.mark.parametrize(
    ("windows_per_second", "shown"), [(0.0321, "0.0321/s"), (5.518, "5.52/s"), (40, "40/s"), (1234.5, "1234/s")]
)
def test_the_pace_is_what_is_done_in_a_second(windows_per_second: float, shown: str) -> None:
    now = 0.0
    bars = Progress(get_time=lambda: now)
    task = bars.add_task("reading the windows of news.mp4", total=1e6)
    assert _PaceColumn().render(bars.tasks[0]).plain == ""
    for second in range(5):
        now = float(second)
        bars.update(task, completed=second * windows_per_second)
    assert _PaceColumn().render(bars.tasks[0]).plain == shown


def test_what_was_noticed_is_said_once_before_the_next_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bars() as bars:
        bars.notify(Notice("a.mp4", "is\ndark"))
        assert capsys.readouterr().err == ""
        bars.clear()
        assert capsys.readouterr().err == "signspot: a.mp4: is\\ndark\n"
        bars("reading", 1, 2)
        bars.notify(Notice("", "b"))
    assert capsys.readouterr().err.endswith("signspot: b\n") and bars.warnings == ["a.mp4: is\\ndark", "b"]


def test_an_error_is_the_only_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError), progress_bars() as bars:
        bars.notify(Notice("a.mp4", "is dark"))
        raise InputError("b.mp4", "no such file")
    assert capsys.readouterr().err == ""
