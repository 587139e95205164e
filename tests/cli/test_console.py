from __future__ import annotations

import pytest
from rich.progress import Progress

from signspot.cli.console import PaceColumn


@pytest.mark.parametrize(
    ("windows_per_second", "shown"), [(0.0321, "0.0321/s"), (5.518, "5.52/s"), (40, "40/s"), (1234.5, "1234/s")]
)
def test_the_pace_is_what_is_done_in_a_second(windows_per_second: float, shown: str) -> None:
    now = 0.0
    bars = Progress(get_time=lambda: now)
    task = bars.add_task("reading the windows of news.mp4", total=1e6)
    assert PaceColumn().render(bars.tasks[0]).plain == ""
    for second in range(5):
        now = float(second)
        bars.update(task, completed=second * windows_per_second)
    assert PaceColumn().render(bars.tasks[0]).plain == shown
