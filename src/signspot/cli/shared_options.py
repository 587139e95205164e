"""Options that several commands share, and what every one of them does with JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import typer

from signspot.atomic import refuse_existing
from signspot.cli.show import print_json, warn
from signspot.domain.boxes import SignerBox
from signspot.errors import EnvironmentProblem, InputError, one_line
from signspot.features.store import usable_store_folder
from signspot.formats.safe_json import write_json
from signspot.models.zoo import COLOUR_MODEL
from signspot.workflows.footage import FootageRequest
from signspot.workflows.spot import SpotOptions

FAILURES_FOUND = 1
STANDARD_OUTPUT = Path("-")

DICTIONARY = typer.Option(..., "--dictionary", "-d", help="Folder, CSV or manifest of dictionary clips.")
MODEL = typer.Option(
    "",
    "--model",
    "-m",
    show_default=False,
    help="A name of `signspot models list`, or a .safetensors file (default: landmark-v1, where landmarks can be had).",
)
BACKEND = typer.Option("auto", "--backend", help="auto, torch, openvino or openvino-bf16.")
DEVICE = typer.Option("cpu", "--device", help="cpu or cuda.")
STORE = typer.Option(None, "--store", metavar="DIR", help="Where vectors of videos are kept.")
NO_STORE = typer.Option(False, "--no-store", help="Keep nothing: compute everything anew.")
THRESHOLD = typer.Option(None, "--threshold", help="Lowest cosine that counts as alike (-1 to 1).")
LANGUAGE = typer.Option("en", "--language", help="Written language of words and subtitles.")
JSON = typer.Option(None, "--json", metavar="[F.json]", help="JSON, on the screen or in a file.")
OVERWRITE = typer.Option(False, "--overwrite", help="Replace outputs that exist.")
STRIDE = typer.Option(1, "--stride", min=1, help="Frames between two windows.")
FAILURES = typer.Option(Path("failures.jsonl"), "--failures", help="Where a batch lists what failed.")
VOCABULARY = typer.Option(
    None,
    "--vocabulary",
    metavar="FILE[#NAME]",
    help="ELAN .ecv or SignBank .csv: its ids go into the ELAN output. NAME is the vocabulary of an .ecv that holds "
    "several, by its CV_ID; not needed where the tiers of the ELAN file use one of them.",
)
BOX = typer.Option(
    None,
    "--box",
    metavar="LEFT,TOP,RIGHT,BOTTOM",
    help="Look only at the signer, in fractions or percent of the picture: 0.5,0,1,0.9 or 50%,0%,100%,90%.",
)
TRUST = typer.Option(False, "--trust", help="Decode in this process: faster, for videos you made yourself.")
RIGHTS_CLEARED = typer.Option(
    False,
    "--rights-cleared",
    help="Also cut clips out of videos whose rights say nothing about it; what they forbid stays forbidden.",
)


def default_store(model: str) -> Path | None:
    """Where vectors are kept unless the user says otherwise; the colours of a video are not worth keeping."""
    if model == COLOUR_MODEL:
        return None
    try:
        return usable_store_folder(os.environ)
    except EnvironmentProblem as error:
        warn(f"{error.where}: {error.what}: vectors are not kept (--store DIR keeps them)")
        return None


def signer_box(text: str | None) -> SignerBox | None:
    """The box of `--box`."""
    try:
        return None if text is None else SignerBox.parsed(text)
    except ValueError as error:
        fix = "give fractions or percent, such as --box 0.5,0,1,0.9 or --box 50%,0%,100%,90%"
        raise InputError("--box", str(error), fix) from error


@dataclass(frozen=True, slots=True)
class Comparing:
    """How videos are compared with a dictionary: the options of every command that searches videos."""

    model: str = MODEL
    backend: str = BACKEND
    device: str = DEVICE
    threshold: float | None = THRESHOLD
    box: str | None = BOX
    language: str = LANGUAGE
    store: Path | None = STORE
    no_store: bool = NO_STORE
    trust: bool = TRUST

    @property
    def options(self) -> SpotOptions:
        """What a search is told."""
        return SpotOptions(
            threshold=self.threshold,
            box=signer_box(self.box),
            language=self.language,
            isolated=not self.trust,
            store=None if self.no_store else self.store or default_store(self.model),
        )

    def footage(self, source: Path, word: str, dictionary: Path, subtitles: Path | None) -> FootageRequest:
        """The search for one word in footage."""
        return FootageRequest(
            source=source,
            word=word,
            dictionary=dictionary,
            model=self.model,
            backend=self.backend,
            device=self.device,
            subtitles=subtitles,
            options=self.options,
        )


def refuse_json(target: Path | None, *, overwrite: bool) -> None:
    """Refuse a file for JSON that exists, before any work is done."""
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
    """One line on the screen."""
    typer.echo(one_line(text))


def warn_all(messages: Iterable[str]) -> None:
    """One line on the error stream for each."""
    for message in messages:
        warn(message)
