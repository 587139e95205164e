"""The command `signspot`: where arguments come in and errors go out.

Exit codes: 0 done, 1 a batch or a check that found problems, 2 wrong input, 3 something missing on this machine,
4 a bug, 130 interrupted (143 by SIGTERM, 129 by a closed terminal).
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from signspot import interrupts
from signspot.cli import dictionary, embed, evaluate, lookup, models, spot, train, variants, world
from signspot.cli.console import warn
from signspot.errors import SignspotError, one_line
from signspot.files.atomic import machine_trouble

BUG = 4
INTERRUPTED = 130
MOST_NOTICES = 5

app = typer.Typer(
    name="signspot",
    help="Find signs in sign-language video: whether, where and in which variant.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"signspot {importlib.metadata.version('signspot')}")
        raise typer.Exit


@app.callback()
def _options(
    debug: bool = typer.Option(False, "--debug", help="Show the whole traceback of an error."),
    version: bool = typer.Option(False, "--version", is_eager=True, callback=_show_version, help="Show the version."),
) -> None:
    """Options that stand before any command."""


app.command("demo")(world.demo)
app.command("spot")(spot.spot)
app.command("annotate")(spot.annotate)
app.command("calibrate")(models.calibrate)
app.command("embed")(embed.embed)
app.command("landmarks")(embed.landmarks)
app.command("evaluate")(evaluate.evaluate)
app.command("lookup")(lookup.lookup)
app.command("variants")(variants.variants)
app.command("friends")(lookup.friends)
app.command("export")(spot.export)
app.command("why")(spot.why)
app.add_typer(variants.mine_app, name="mine")
app.add_typer(dictionary.dictionary_app, name="dictionary")
app.add_typer(dictionary.corpus_app, name="corpus")
app.add_typer(models.app, name="models")
app.add_typer(embed.store_app, name="store")
app.add_typer(train.app, name="train")
app.add_typer(world.app, name="world")


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    # People type --debug anywhere; it belongs to no single command.
    return run([word for word in words if word != "--debug"], debug="--debug" in words)


class _Notices(logging.Handler):
    """Keeps what is logged while a command runs, each message once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.said.setdefault(record.getMessage())


@contextmanager
def _notices_at_the_end() -> Iterator[None]:
    """Show what was logged, such as a damaged file in a store, when no bars are on the screen any more."""
    log, notices = logging.getLogger("signspot"), _Notices()
    log.addHandler(notices)
    try:
        yield
    finally:
        log.removeHandler(notices)
        said = list(notices.said)
        for message in said[:MOST_NOTICES]:
            warn(message)
        if said[MOST_NOTICES:]:
            warn(f"and {len(said) - MOST_NOTICES} more of these notices")


def run(arguments: list[str], *, debug: bool = False) -> int:
    """Run one command; every error becomes one line and an exit code, and what was noticed on the way is said."""
    with _notices_at_the_end():
        return _run(arguments, debug)


def _run(arguments: list[str], debug: bool) -> int:
    try:
        code = int(app(args=_with_json_target(arguments), prog_name="signspot", standalone_mode=False) or 0)
        sys.stdout.flush()
        return _interrupted(debug) if code == INTERRUPTED else code
    except KeyboardInterrupt:
        return _interrupted(debug)
    except Exception as error:  # whatever an interruption became inside a library is still one
        return _interrupted(debug) if interrupts.is_asked() else _error(error, debug)


def _error(error: Exception, debug: bool) -> int:
    for note in getattr(error, "__notes__", ()):
        warn(note)
    if isinstance(error, SignspotError):
        return _failed(str(error), error.exit_code, debug)
    if isinstance(error, typer.TyperException):
        if "Usage:" in error.format_message():  # a command without its subcommand: show what there is
            typer.echo(error.format_message())
            return 2
        return _failed(_explained(error), 2, debug)
    if isinstance(error, BrokenPipeError):
        # The reader of our output has left (`signspot ... | head`): leave too, quietly.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    # The border of the program: anything unexpected is a bug, told in one line.
    trouble = machine_trouble(error) if isinstance(error, OSError) else None
    if trouble is None:
        what = f"{type(error).__name__}: {error}"
        return _failed(f"this is a bug in signspot: {what}: run again with --debug and report it", BUG, debug)
    try:
        sys.stdout.flush()
    except OSError:  # it is the output itself that fails: Python must not try again at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _failed(str(trouble), trouble.exit_code, debug)


def _interrupted(debug: bool) -> int:
    return _failed(interrupts.message(), interrupts.exit_code(), debug)


def _with_json_target(arguments: list[str]) -> list[str]:
    """Let --json stand alone for the standard output, or be followed by a file name that ends in .json."""
    result: list[str] = []
    for position, word in enumerate(arguments):
        following = arguments[position + 1] if position + 1 < len(arguments) else ""
        alone = word == "--json" and following != "-" and not following.lower().endswith(".json")
        result.append("--json=-" if alone else word)
    return result


def _explained(error: typer.TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "signspot"
    return f"{error.format_message().rstrip('.')}: see `{command} --help`"


def _failed(message: str, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    typer.echo(f"signspot: {one_line(message.removeprefix('signspot: '))}", err=True)
    return code
