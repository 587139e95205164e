"""Ctrl-C, SIGTERM and a closed terminal end a command soon and in order, the same way everywhere.

The first signal raises `Stopped` where the program stands. What is on the way out saves what there is to save and
says so (`at_interruption`), and half-written files go (`gone_afterwards`). A program that is inside a library cannot
raise anything; a thread then does the same in its place and ends it. A later signal ends the program at once.
Used as a library, signspot leaves signals alone: Python's KeyboardInterrupt takes the same way out.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from signspot.errors import SignspotError, one_line

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE_SECONDS = 1.0  # for a library to come back
_ECHO_SECONDS = 1.0  # a terminal and the program between it and this one may both pass on one Ctrl-C

Farewell = Callable[[], str | None]


class _Stopped(KeyboardInterrupt):
    """Somebody asked the program to end."""


class _State:
    def __init__(self) -> None:
        self.number = 0  # the signal that came, or 0
        self.at = 0.0  # when
        self.n_shields = 0  # blocks that are not to be cut in two
        self.is_raised = False
        self.turn = threading.Lock()  # whoever has it leads the way out
        self.noticed = threading.Event()
        self.farewells: list[Farewell] = []
        self.remains: dict[Path, None] = {}
        self.last_words: list[str] = []


_STATE = _State()


def listen() -> None:
    """From now on signals are answered here; one that is ignored, as under nohup, stays so."""
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)
    signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(receiving,), name="interrupts", daemon=True).start()
    sys.unraisablehook = _unraisable
    for number in _heard():
        signal.signal(number, _stop)


def end_at_once() -> None:
    """In a helping process, or when all is done: a signal takes away what is half-written, and nothing is said."""
    for number in _heard():
        signal.signal(number, lambda number, _: leave(128 + number))


def is_asked() -> bool:
    """Whether somebody asked the program to end."""
    return bool(_STATE.number)


def exit_code() -> int:
    """The exit code of an interrupted command, as a shell would give it."""
    return 128 + (_STATE.number or signal.SIGINT)


def message() -> str:
    """What is to be said about the interruption: only what is true."""
    words, _STATE.last_words = list(dict.fromkeys(_STATE.last_words)), []
    return "; ".join(("interrupted", *words))


def leave(code: int) -> NoReturn:
    """End the process: nothing waits for a thread inside a library, and nothing half-written stays."""
    for path in tuple(_STATE.remains):
        _remove(path)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # nobody listens any more
            stream.flush()
    os._exit(code)


@contextmanager
def at_interruption(farewell: Farewell) -> Iterator[None]:
    """An interruption of the block calls `farewell`, which may save something, and gives what the user should know."""
    _STATE.farewells.append(farewell)
    try:
        yield
    except KeyboardInterrupt:
        _say(farewell)
        raise
    except GeneratorExit:  # it was whoever reads from a generator that was interrupted
        if is_asked():
            _say(farewell)
        raise
    finally:
        _STATE.farewells.remove(farewell)


@contextmanager
def gone_afterwards(path: Path) -> Iterator[None]:
    """A file or folder that may not outlive the block, whatever ends it."""
    _STATE.remains[path] = None
    try:
        yield
    finally:
        _remove(path)
        _STATE.remains.pop(path, None)


def gone_at_the_end(path: Path) -> None:
    """A file or folder that may not outlive the program."""
    _STATE.remains[path] = None
    atexit.register(_remove, path)


@contextmanager
def undisturbed() -> Iterator[None]:
    """A block that is not cut in two: the interruption comes at its end."""
    _STATE.n_shields += 1
    try:
        yield
    finally:
        _STATE.n_shields -= 1
        if _STATE.number and not _STATE.is_raised and not _STATE.n_shields:
            _STATE.is_raised = True
            raise _Stopped


def _heard() -> list[signal.Signals]:
    return [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]


def _stop(number: int, _: FrameType | None) -> None:
    if _STATE.number:
        if time.monotonic() - _STATE.at > _ECHO_SECONDS:
            leave(128 + number)
        return
    _STATE.number, _STATE.at = number, time.monotonic()
    if not _STATE.turn.acquire(blocking=False):
        threading.Event().wait()  # the thread has begun to end the program
    _STATE.noticed.set()
    if not _STATE.n_shields:
        _STATE.is_raised = True
        raise _Stopped


def _watch(receiving: int) -> None:
    """End the program where its main thread is inside a library for too long to notice a signal."""
    while number := next(iter(os.read(receiving, 1)), 0):
        if number not in _SIGNALS or _STATE.noticed.wait(_PATIENCE_SECONDS):
            continue
        while _STATE.n_shields and not _STATE.noticed.wait(_PATIENCE_SECONDS):
            pass
        if not _STATE.turn.acquire(blocking=False):
            continue
        _STATE.number = number
        for farewell in reversed(tuple(_STATE.farewells)):
            _say(farewell)
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"signspot: {one_line(message())}\n")
        leave(exit_code())


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """An interruption that fell into a place that cannot raise, such as a destructor, comes again a moment later."""
    if not isinstance(problem.exc_value, _Stopped):
        sys.__unraisablehook__(problem)
        return
    threading.Timer(0.05, _again).start()


def _again() -> None:
    number, _STATE.number = _STATE.number, 0
    _STATE.turn.release()
    os.kill(os.getpid(), number)  # wakes the main thread too


def _say(farewell: Farewell) -> None:
    try:
        words = farewell()
    except SignspotError as error:
        words = str(error)
    if words:
        _STATE.last_words.append(words)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # a disk that fails keeps it; what went wrong first is the thing to say
            path.unlink(missing_ok=True)
