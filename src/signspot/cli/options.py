"""Options that belong together as one dataclass: typer sees its fields, the command gets it filled.

A command of many options would else repeat them all in its parameters, and so would every command like it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_type_hints

import typer

from signspot.cli.console import Bars, print_json, warn
from signspot.domain.recordings import SignerBox
from signspot.embedding.model import COLOUR_MODEL, Reading
from signspot.embedding.zoo import ModelChoice
from signspot.errors import EnvironmentProblem, InputError, one_line
from signspot.files.atomic import refuse_existing
from signspot.files.json import write_json
from signspot.stores.features import usable_store_folder
from signspot.workflows.spot import SpotOptions
from signspot.workflows.variants import FootageRequest


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with every parameter that is a dataclass replaced by the fields of it, in their order."""
    kinds = get_type_hints(command)
    groups: dict[str, type] = {}
    shown: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind = kinds[parameter.name]
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name] = kind
            shown += _options(kind)
        else:
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind))

    @wraps(command)
    def run(**given: Any) -> None:
        filled = {name: kind(**{option.name: given.pop(option.name) for option in fields(kind)})
                  for name, kind in groups.items()}  # fmt: skip
        command(**given, **filled)

    run.__signature__ = Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown} | {"return": None}
    return run


def _options(kind: type) -> list[Parameter]:
    own, alone = get_type_hints(kind), Parameter.KEYWORD_ONLY
    return [Parameter(one.name, alone, default=one.default, annotation=own[one.name]) for one in fields(kind)]


# Options that several commands share, and what every one of them does with JSON.
FAILURES_FOUND = 1
STANDARD_OUTPUT = Path("-")

_CLIPS = "Folder, CSV or manifest of dictionary clips"
DICTIONARY = typer.Option(..., "--dictionary", "-d", help=f"{_CLIPS}.")
DICTIONARY_OR_LEARNED = typer.Option(
    None, "--dictionary", "-d", show_default=False, help=f"{_CLIPS} (default: the words that the model learned)."
)
NO_LEXICON = typer.Option(False, "--no-lexicon", help="Only the dictionary, none of the words that the model learned.")
_MODEL = "A name of `signspot models list`, or a .safetensors file (default: landmark-v1, where landmarks can be had)."
MODEL = typer.Option("", "--model", "-m", show_default=False, help=_MODEL)
BACKEND = typer.Option("auto", "--backend", help="auto, torch, openvino or openvino-bf16.")
DEVICE = typer.Option("cpu", "--device", help="cpu or cuda.")
THRESHOLD = typer.Option(None, "--threshold", help="Lowest cosine that counts as alike (-1 to 1).")
LANGUAGE = typer.Option("en", "--language", help="Written language of words and subtitles.")
JSON = typer.Option(None, "--json", metavar="[F.json]", help="JSON, on the screen or in a file.")
OVERWRITE = typer.Option(False, "--overwrite", help="Replace outputs that exist.")
STRIDE = typer.Option(1, "--stride", min=1, help="Frames between two windows.")
FAILURES = typer.Option(Path("failures.jsonl"), "--failures", help="Where a batch lists what failed.")
JOBS = typer.Option(1, "--jobs", "-j", min=1, help="Processes that work at once on several recordings.")
VOCABULARY = typer.Option(
    None,
    "--vocabulary",
    metavar="FILE[#NAME]",
    help="ELAN .ecv or SignBank .csv: its ids go into the ELAN output. NAME is the vocabulary of an .ecv that holds "
    "several, by its CV_ID; not needed where the tiers of the ELAN file use one of them.",
)
_BOX = "Look only at the signer, in fractions or percent of the picture: 0.5,0,1,0.9 or 50%,0%,100%,90%."
BOX = typer.Option(None, "--box", metavar="LEFT,TOP,RIGHT,BOTTOM", help=_BOX)
TRUST = typer.Option(False, "--trust", help="Decode in this process: faster, for videos you made yourself.")
_CLEARED = "Also cut clips out of videos whose rights say nothing about it; what they forbid stays forbidden."
RIGHTS_CLEARED = typer.Option(False, "--rights-cleared", help=_CLEARED)
_ALARMS = "Instead of a threshold: the false alarms you accept per word and hour of video, e.g. 1/h."


def _default_store(model: str) -> Path | None:
    """Where vectors are kept unless the user says otherwise; the colours of a video are not worth keeping."""
    if model == COLOUR_MODEL:
        return None
    try:
        return usable_store_folder(os.environ)
    except EnvironmentProblem as error:
        warn(f"{error.where}: {error.what}: vectors are not kept (--store DIR keeps them)")
        return None


def signer_box(text: str | None) -> SignerBox | None:
    try:
        return None if text is None else SignerBox.parsed(text)
    except ValueError as error:
        fix = "give fractions or percent, such as --box 0.5,0,1,0.9 or --box 50%,0%,100%,90%"
        raise InputError("--box", str(error), fix) from error


@dataclass(frozen=True)
class _ModelOptions:
    """Which model, and where it runs."""

    model: str = MODEL
    backend: str = BACKEND
    device: str = DEVICE

    @property
    def choice(self) -> ModelChoice:
        return ModelChoice(name=self.model, backend=self.backend, device=self.device)


@dataclass(frozen=True)
class StoreOptions:
    """How recordings are read, and where their vectors are kept."""

    store: Path | None = typer.Option(
        None, "--store", metavar="DIR", help="Where vectors are kept (default: the cache)."
    )
    no_store: bool = typer.Option(False, "--no-store", help="Keep nothing: compute everything anew.")
    trust: bool = TRUST

    def reading_for(self, model: str, bars: Bars, *, box: str | None = None) -> Reading:
        return Reading(
            store=None if self.no_store else self.store or _default_store(model), isolated=not self.trust,
            box=signer_box(box), progress=bars, notify=bars.notify,
        )  # fmt: skip


@dataclass(frozen=True)
class ReadingOptions(StoreOptions, _ModelOptions):
    """The model, and how recordings are read for it."""

    def reading(self, bars: Bars, *, box: str | None = None) -> Reading:
        return self.reading_for(self.model, bars, box=box)


@dataclass(frozen=True)
class WindowOptions:
    """How densely windows lie."""

    stride: int = STRIDE

    def on(self, reading: Reading) -> Reading:
        return replace(reading, stride=self.stride)


@dataclass(frozen=True)
class SearchOptions(ReadingOptions):
    """How videos are compared with a dictionary: the options of every command that searches videos."""

    threshold: float | None = THRESHOLD
    presence: float | None = typer.Option(
        None, "--presence", help="Instead of a threshold: the lowest probability (0 to 1) of a calibrated model."
    )
    false_alarms: str | None = typer.Option(None, "--false-alarms", metavar="N/h", help=_ALARMS)
    calibration: Path | None = typer.Option(
        None, "--calibration", help="Of `signspot calibrate` (default: the one kept for the model, or shipped with it)."
    )
    box: str | None = BOX
    language: str = LANGUAGE

    def options(self, bars: Bars, windows: WindowOptions | None = None, *, lexicon: bool = True) -> SpotOptions:
        reading = self.reading(bars, box=self.box)
        return SpotOptions(
            threshold=self.threshold,
            least_presence=self.presence,
            false_alarms=_alarm_rate(self.false_alarms),
            language=self.language,
            lexicon=lexicon,
            reading=reading if windows is None else windows.on(reading),
        )

    def footage(self, source: Path, word: str, dictionary: Path, subtitles: Path | None, bars: Bars) -> FootageRequest:
        return FootageRequest(
            source=source, word=word, dictionary=dictionary, model=self.choice, subtitles=subtitles,
            calibration=self.calibration, options=self.options(bars),
        )  # fmt: skip


def refuse_json(target: Path | None, *, overwrite: bool) -> None:
    if target is not None and target != STANDARD_OUTPUT:
        refuse_existing(target, overwrite=overwrite)


def give_json(value: object, target: Path | None, *, overwrite: bool) -> bool:
    """Give the result as JSON if that was asked for; whether the screen is taken by it."""
    if target == STANDARD_OUTPUT:
        print_json(value)
    elif target is not None:
        write_json(value, target, overwrite=overwrite)
    return target == STANDARD_OUTPUT


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "clip"), counted(0, "clip")
    ('1 clip', '0 clips')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def say(text: str) -> None:
    typer.echo(one_line(text))


def warn_all(messages: Iterable[str]) -> None:
    for message in messages:
        warn(message)


def _alarm_rate(text: str | None) -> float | None:
    """The false alarms an hour in `1/h`, `0.5/h` or `2`."""
    if text is None:
        return None
    number = text.strip().removesuffix("/h").strip()
    try:
        rate = float(number)
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1e9:
        raise InputError("--false-alarms", f"{text!r} is not a number per hour", "write 1/h or 0.2/h")
    return rate
