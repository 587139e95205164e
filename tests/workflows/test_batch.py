from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from signspot.errors import EnvironmentProblem, InputError, OutputExists, SignspotError, VideoError
from signspot.workflows.batch import Engine, FailureList, Finished, each, in_parallel


def media(number: int) -> Path:
    return Path(f"{number}.mp4")


def halved(number: int) -> tuple[int, int]:
    """Half of a number, and in which process; odd ones are wrong in two ways."""
    if number % 4 == 1:
        raise VideoError(media(number), "is odd", "give an even one")
    if number % 4 == 3:
        raise ValueError("is odd, too")
    return number // 2, os.getpid()


def start() -> Callable[[int], tuple[int, int]]:
    return halved


def stopping(number: int, at: int) -> int:
    if number == at:
        raise EnvironmentProblem("store", "the disk is full", "make room")
    return number


def start_stopping(at: int) -> Callable[[int], int]:
    return partial(stopping, at=at)


def dying(number: int) -> int:
    if number == 1:
        os._exit(9)
    return number


def start_dying() -> Callable[[int], int]:
    return dying


def told(one: Finished[int, tuple[int, int]]) -> tuple[int, int | None, str]:
    return one.item, one.result[0] if one.result else None, str(one.failure or "")


def test_every_item_has_an_outcome_in_order_and_failures_are_noted() -> None:
    assert [told(one) for one in each(range(5), halved, media)] == [
        (0, 0, ""),
        (1, None, "1.mp4: is odd: give an even one"),
        (2, 1, ""),
        (3, None, "3.mp4: what was found in it makes no sense (is odd, too): leave it out, and report this"),
        (4, 2, ""),
    ]
    assert list(each([], halved, media)) == []


def test_the_next_item_waits_until_the_last_outcome_is_taken() -> None:
    done: list[int] = []
    outcomes = each(range(3), done.append, media)
    assert done == []
    next(outcomes)
    assert done == [0]


def test_two_processes_give_the_same_as_one_and_work_elsewhere() -> None:
    alone = list(each(range(9), halved, media))
    both = list(each(range(9), halved, media, Engine(2, start)))
    assert [told(one) for one in both] == [told(one) for one in alone]
    assert {one.result[1] for one in alone if one.result} == {os.getpid()}
    assert os.getpid() not in {one.result[1] for one in both if one.result}


def test_a_single_item_needs_no_other_process() -> None:
    (one,) = each([2], halved, media, Engine(2, start))
    assert one.result == (1, os.getpid())


@pytest.mark.parametrize("jobs", [1, 2])
def test_trouble_of_the_machine_ends_the_loop(jobs: int) -> None:
    seen: list[int] = []
    with pytest.raises(EnvironmentProblem, match="the disk is full: make room"):
        for one in each(range(20), start_stopping(2), media, Engine(jobs, partial(start_stopping, 2))):
            seen.append(one.item)
    assert seen == [0, 1]


def test_a_process_that_dies_is_named_as_trouble_of_the_machine() -> None:
    with pytest.raises(EnvironmentProblem, match=r"--jobs: one of the processes ended unexpectedly.*with fewer"):
        list(each(range(6), dying, media, Engine(2, start_dying)))


def test_a_loop_that_is_left_early_ends_its_processes() -> None:
    outcomes = each(range(50), halved, media, Engine(2, start))
    process = next(outcomes).result[1]  # type: ignore[index]
    outcomes.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_no_processes_are_refused() -> None:
    with pytest.raises(InputError, match="--jobs: 0 is out of range: use 1 or more processes"):
        Engine(0)


def touch(path: Path) -> None:
    path.touch()


def refuse() -> None:
    raise InputError("task", "cannot be done", "")


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_are_counted_and_an_error_ends_all(tmp_path: Path, jobs: int) -> None:
    files = [tmp_path / str(number) for number in range(3)]
    assert list(in_parallel([partial(touch, file) for file in files], jobs)) == [1, 2, 3]
    assert all(file.exists() for file in files)
    with pytest.raises(InputError, match="cannot be done"):
        list(in_parallel([partial(touch, files[0]), refuse], jobs))


# The list of what failed


def failure(video: Path) -> tuple[Path, SignspotError]:
    return video, VideoError(video, "cannot be read", "give another one")


def test_a_list_says_which_videos_failed_and_why(tmp_path: Path) -> None:
    failures = FailureList(tmp_path / "failures.jsonl")
    failures.refuse_foreign()
    failures.write([failure(Path("ü 1.mp4")), failure(Path("2.mp4"))], {"ü 1.mp4", "2.mp4", "3.mp4"})
    lines = [json.loads(line) for line in failures.path.read_text().splitlines()]
    assert [line["video"] for line in lines] == ["ü 1.mp4", "2.mp4"]
    assert lines[0] == {"video": "ü 1.mp4", "where": "ü 1.mp4", "what": "cannot be read", "fix": "give another one"}
    failures.refuse_foreign()  # a list of ours is replaced
    failures.write([failure(Path("3.mp4"))], {"3.mp4"})
    assert len(failures.path.read_text().splitlines()) == 1


def test_a_list_that_is_no_longer_true_is_removed(tmp_path: Path) -> None:
    failures, video = FailureList(tmp_path / "failures.jsonl"), tmp_path / "1.mp4"
    video.touch()
    failures.write([], {str(video)})
    assert not failures.path.exists()
    failures.write([failure(video)], {str(video)})
    failures.write([], {"another.mp4"})
    assert failures.path.exists()  # the video that failed is there, and was not tried again
    failures.write([], {str(video)})
    assert not failures.path.exists()
    failures.write([failure(video)], {str(video)})
    video.unlink()
    failures.write([], {"another.mp4"})
    assert not failures.path.exists()


@pytest.mark.parametrize("content", ["", "my notes\n", '{"video": "a"}\n', "[1]\n", "\udcff"])
def test_a_file_of_somebody_else_is_never_replaced(tmp_path: Path, content: str) -> None:
    failures = FailureList(tmp_path / "failures.jsonl")
    failures.path.write_text(content, errors="surrogateescape")
    with pytest.raises(OutputExists, match="exists and is not a list of failures: name another file with --failures"):
        failures.refuse_foreign()
    failures.write([], set())
    assert failures.path.read_text(errors="surrogateescape") == content


def test_what_failed_is_listed_at_the_end_and_when_the_user_interrupts(tmp_path: Path) -> None:
    def interrupted(number: int) -> tuple[int, int]:
        if number == 4:
            raise KeyboardInterrupt
        return halved(number)

    whole, partly = FailureList(tmp_path / "whole.jsonl"), FailureList(tmp_path / "partly.jsonl")
    assert [one.item for one in whole.watch(each(range(6), halved, media), media)] == list(range(6))
    with pytest.raises(KeyboardInterrupt):
        list(partly.watch(each(range(6), interrupted, media), media))
    listed = [[json.loads(line)["video"] for line in one.path.read_text().splitlines()] for one in (whole, partly)]
    assert listed == [["1.mp4", "3.mp4", "5.mp4"], ["1.mp4", "3.mp4"]]


def test_several_processes_report_how_many_items_are_done() -> None:
    seen: list[tuple[float, float | None]] = []
    list(each(range(3), halved, media, Engine(2, start), lambda done, total: seen.append((done, total))))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    list(each(range(3), halved, media, report=lambda done, total: seen.append((done, total))))
    assert len(seen) == 3  # alone, the work itself reports
