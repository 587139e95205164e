"""Making the next things in the background while one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from signspot.interrupts import is_asked

Made = TypeVar("Made")


def made_ahead(make: Callable[[int], Made], steps: range, *, workers: int, ahead: int) -> Iterator[Made]:
    """make(step) of every step in order, up to `ahead` of them early by so many threads; without either, just so."""
    if not workers or not ahead:
        yield from map(make, steps)
        return
    waiting: deque[Future[Made]] = deque()
    pool = ThreadPoolExecutor(workers, "made-ahead")
    try:
        for step in steps:
            waiting.append(pool.submit(make, step))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=not is_asked(), cancel_futures=True)
