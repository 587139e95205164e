"""The one loop over recordings: one that fails is noted and the others go on, in this process or in several."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any, Generic, TypeVar

from signspot.domain.time import MediaProgress
from signspot.errors import EnvironmentProblem, InputError, OutputExists, SignspotError, trouble_of
from signspot.files.atomic import atomic_output
from signspot.interrupts import at_interruption, end_at_once, undisturbed
from signspot.media.reader import shared_decoding

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
Work = Callable[[_Item], _Result]

_FAILURE_KEYS = {"video", "where", "what", "fix"}
_LARGEST_LIST = 64 << 20
_LISTS_PER_COLLECTION = 100_000  # looking through short-lived lists often takes a seventh longer
_AHEAD = 2  # items that each process has waiting


@dataclass(frozen=True, slots=True)
class Finished(Generic[_Item, _Result]):
    """What became of one item: a result or a failure."""

    item: _Item
    result: _Result | None = None
    failure: SignspotError | None = None


@dataclass(frozen=True, slots=True)
class Engine(Generic[_Item, _Result]):
    """Where the work of a loop runs: in this process, or in `jobs` processes that each call `start` for it."""

    jobs: int = 1
    start: Callable[[], Work[_Item, _Result]] | None = None  # survives pickling; None: in this process only

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InputError("--jobs", f"{self.jobs} is out of range", "use 1 or more processes")


def each(
    items: Sequence[_Item],
    work: Work[_Item, _Result],
    media: Callable[[_Item], Path],
    engine: Engine[_Item, _Result] | None = None,
    report: MediaProgress | None = None,
) -> Iterator[Finished[_Item, _Result]]:
    """Work on every item and give the outcomes in their order; trouble of the machine, such as a full disk, ends it.

    Work in this process reports its own progress; of several processes, `report` gets how many items are done.
    """
    if engine is None or engine.start is None or min(engine.jobs, len(items)) <= 1:
        for item in items:
            yield _attempted(work, item, media(item))
        return
    with _pool(engine.start, min(engine.jobs, len(items))) as pool:
        running: deque[Future[Finished[_Item, _Result]]] = deque()
        waiting, done = iter(items), 0
        try:
            while True:
                for item in islice(waiting, _AHEAD * engine.jobs - len(running)):
                    running.append(pool.submit(_in_worker, item, media(item)))
                if not running:
                    return
                outcome = running.popleft().result()
                done += 1
                if report is not None:
                    report(done, len(items))
                yield outcome
        except BrokenProcessPool as error:
            what = "one of the processes ended unexpectedly, perhaps for lack of memory"
            raise EnvironmentProblem("--jobs", what, "run the same command again with fewer") from error


def in_parallel(tasks: Sequence[Callable[[], None]], jobs: int) -> Iterator[int]:
    if min(jobs, len(tasks)) <= 1:
        for done, task in enumerate(tasks, start=1):
            task()
            yield done
        return
    with _pool(_nothing, min(jobs, len(tasks)), has_own_cores=False) as pool:
        for done, _ in enumerate(pool.map(_call, tasks, chunksize=1), start=1):
            yield done


def _attempted(work: Work[_Item, _Result], item: _Item, video: Path) -> Finished[_Item, _Result]:
    try:
        return Finished(item, work(item))
    except (SignspotError, ValueError) as error:
        return Finished(item, failure=trouble_of(video, error))


# Inside a worker process.


_WORK: list[Any] = []


def _begin(start: Callable[[], Work[Any, Any]], numbers: SimpleQueue[int], jobs: int) -> None:
    end_at_once()
    gc.set_threshold(_LISTS_PER_COLLECTION)
    if jobs:
        _take_cores(numbers.get(), jobs)
    decoding = shared_decoding()  # until this process ends
    decoding.__enter__()
    _WORK.extend((start(), decoding))


def _take_cores(number: int, jobs: int) -> None:
    """Keep to a share of the cores: libraries start as many threads as they see cores."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[number::jobs] or cores[number % len(cores) :][:1])


def _in_worker(item: _Item, video: Path) -> Finished[_Item, Any]:
    return _attempted(_WORK[0], item, video)


def _nothing() -> Work[Any, Any]:
    return _call


def _call(task: Callable[[], None]) -> None:
    task()


@contextmanager
def _pool(
    start: Callable[[], Work[Any, Any]], jobs: int, *, has_own_cores: bool = True
) -> Iterator[ProcessPoolExecutor]:
    """Processes that are new, not copies of this one, which may crash or hang where a library has threads."""
    context = multiprocessing.get_context("spawn")
    numbers: SimpleQueue[int] = context.SimpleQueue()
    for number in range(jobs):
        numbers.put(number)
    arguments = (start, numbers, jobs if has_own_cores else 0)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=arguments)
    try:
        with at_interruption(lambda: _end(pool)), _unknown_to_the_terminal():
            for _ in range(jobs):  # all are started here, in this block
                pool.submit(os.getpid)
        with at_interruption(lambda: _end(pool)):
            yield pool
    except GeneratorExit:
        _end(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):  # nothing public ends those at work before Python 3.14
        process.terminate()


@contextmanager
def _unknown_to_the_terminal() -> Iterator[None]:
    """Processes that are started in the block never hear of Ctrl-C: this one ends them in order."""
    with undisturbed():  # a process that is half started complains
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


# The list of what failed in a batch: one JSON object a line.


@dataclass(frozen=True, slots=True)
class FailureList:
    """A file that says which videos failed, what is wrong, and what to do."""

    path: Path

    def refuse_foreign(self) -> None:
        """The list is replaced by the next run, but only if a run wrote it."""
        if self.path.exists() and not self._videos():
            raise OutputExists(self.path, "exists and is not a list of failures", "name another file with --failures")

    def watch(
        self, outcomes: Iterator[Finished[_Item, _Result]], media: Callable[[_Item], Path]
    ) -> Iterator[Finished[_Item, _Result]]:
        """The same outcomes; what failed is written at the end, or when the user interrupts."""
        failed: list[tuple[Path, SignspotError]] = []
        seen: set[str] = set()
        with at_interruption(lambda: self.write(failed, seen)):
            for outcome in outcomes:
                seen.add(str(media(outcome.item)))
                if outcome.failure is not None:
                    failed.append((media(outcome.item), outcome.failure))
                yield outcome
        self.write(failed, seen)

    def write(self, failed: Sequence[tuple[Path, SignspotError]], searched: set[str]) -> None:
        """Write what failed; if nothing did, remove an older list, unless other videos are in it."""
        if not failed:
            listed = self._videos()
            if listed and not any(video not in searched and Path(video).exists() for video in listed):
                self.path.unlink()  # of an earlier run over these videos: nothing in it is true any more
            return
        with atomic_output(self.path, overwrite=True) as temporary, temporary.open("w", encoding="utf-8") as file:
            for video, error in failed:
                record = {"video": str(video), "where": error.where, "what": error.what, "fix": error.fix}
                file.write(json.dumps(record) + "\n")

    def _videos(self) -> list[str]:
        if not self.path.is_file() or self.path.stat().st_size > _LARGEST_LIST:
            return []
        try:
            lines = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
        except ValueError:
            return []
        is_list = all(isinstance(line, dict) and set(line) == _FAILURE_KEYS for line in lines)
        return [str(line["video"]) for line in lines] if is_list else []
