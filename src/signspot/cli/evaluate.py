"""`signspot evaluate`: how well a model spots signs in a test set."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from signspot.cli.console import Bars, progress_bars
from signspot.cli.options import STRIDE, StoreOptions, give_json, grouped, refuse_json, say
from signspot.embedding.model import Reading
from signspot.errors import InputError

if TYPE_CHECKING:
    from signspot.workflows.evaluate import (
        DictionaryWords,
        Evaluation,
        EvaluationRequest,
        ProtocolChoice,
        TestFiles,
        TestProtocol,
        WhichModel,
    )


@dataclass(frozen=True, slots=True)
class _TestSet:
    """What a model is tested on."""

    test: Path | None = typer.Option(None, "--test", metavar="DIR", help="Test material (`signspot train material`).")
    corpus: Path | None = typer.Option(
        None, "--corpus", metavar="DIR", help="Make it from these videos; beside --test: says who signs."
    )
    dictionary: Path | None = typer.Option(
        None, "--dictionary", "-d", metavar="DIR", help="Its clips; beside --test: says which words share a sign."
    )
    corpus_split: str = typer.Option("test", "--corpus-split", metavar="NAME", help="Which videos of the corpus.")

    def files(self, reading: Reading) -> TestFiles:
        from signspot.workflows.evaluate import TestFiles

        return TestFiles(
            material=self.test,
            corpus=self.corpus,
            dictionary=self.dictionary,
            corpus_split=self.corpus_split,
            reading=reading if self.test is None else replace(reading, store=None),
        )


@dataclass(frozen=True, slots=True)
class _Rules:
    """By which rules it is tested."""

    protocol: str = typer.Option(
        "all", "--protocol", help="seen or unseen: the test words of a split; all: every word."
    )
    split: Path | None = typer.Option(None, "--split", metavar="FILE.json", help="Words (default: those of the run).")
    dictionary_words: str = typer.Option("limited", "--dictionary-words", help="Look up in limited: test words; full.")
    confidence: float = typer.Option(0.9, "--confidence", min=0, max=1, help="Least confidence of test annotations.")
    stride: int = STRIDE

    @property
    def choice(self) -> ProtocolChoice:
        from signspot.workflows.evaluate import ProtocolChoice

        return ProtocolChoice(
            name=cast("TestProtocol", self.protocol),
            split=self.split,
            dictionary_words=cast("DictionaryWords", self.dictionary_words),
            min_confidence=self.confidence,
            stride=self.stride,
        )


@grouped
def evaluate(
    model: str = typer.Argument("", metavar="RUN|MODEL", help="A run folder, a model file or name, or `random`."),
    truth: bool = typer.Option(False, "--truth", help="In place of a model: one that knows the annotations."),
    checkpoint: str = typer.Option("last", "--checkpoint", help="Of a run: last, or best (chosen on the test set)."),
    spotting: bool = typer.Option(False, "--spotting", help="Also search whole videos for all test words."),
    challenge: tuple[Path, Path] | None = typer.Option(
        None, "--challenge", metavar="TRUTH.json ANSWERS.json", help="Only the F1 of the 2022 challenge, of two files."
    ),
    seed: int = typer.Option(0, min=0, help="Of the intervals, and of `random`."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="Write a page, curves and every decision."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an evaluation that is there."),
    json_target: Path | None = typer.Option(None, "--json", metavar="[-|FILE]", help="Give the result as JSON."),
    *,
    rules: _Rules,
    test_set: _TestSet,
    keeping: StoreOptions,
) -> None:
    """Score a model: mAP, R@5 and localisation as the paper defines them, with intervals and its numbers beside."""
    if challenge is not None:
        _challenge(*challenge, json_target)
        return
    # torch takes seconds to load.
    from signspot.evaluation.measures import BootstrapOptions
    from signspot.workflows.evaluate import TRUTH, EvaluationRequest

    with progress_bars() as bars:
        request = EvaluationRequest(
            model=_named(model, TRUTH if truth else ""), which=cast("WhichModel", checkpoint),
            files=test_set.files(keeping.reading_for("", bars)), protocol=rules.choice, spotting=spotting,
            bootstrap=BootstrapOptions(seed=seed), seed=seed,
        )  # fmt: skip
        _run(request, bars, out, json_target, overwrite=overwrite)


def _named(model: str, truth: str) -> str:
    if bool(model) == bool(truth):
        what = "--truth stands in place of a model" if model else "there is nothing to evaluate"
        raise InputError("RUN|MODEL", what, "name a run folder or a model, or give --truth alone")
    return model or truth


def _run(
    request: EvaluationRequest, bars: Bars, out: Path | None, json_target: Path | None, *, overwrite: bool
) -> None:
    from signspot.workflows.evaluate import evaluate as evaluate_model
    from signspot.workflows.evaluate import refuse_evaluation_folder

    if out is not None:
        refuse_evaluation_folder(out, overwrite=overwrite)
    refuse_json(json_target, overwrite=overwrite)
    result = evaluate_model(request)
    if out is not None:
        bars("drawing", 0, None)
        result.write(out, overwrite=overwrite)
    bars.clear()
    if not give_json(result.as_json(), json_target, overwrite=overwrite):
        _print(result)
        if out is not None:
            say(f"wrote {out / 'index.html'}")


def _print(result: Evaluation) -> None:

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in result.table_head():
        table.add_column(heading, justify="right" if heading in ("score", "chance", "paper") else "left")
    for row in result.table_rows():
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)
    for line in result.summary_lines():
        say(line)


def _challenge(truth: Path, answers: Path, json_target: Path | None) -> None:
    from signspot.workflows.evaluate import evaluate_challenge

    scores = evaluate_challenge(truth, answers)
    interval = scores.f1_interval() if len(scores.videos) else None
    shares = {"f1": scores.f1, "precision": scores.precision, "recall": scores.recall}
    by_threshold = dict(zip(map(str, scores.thresholds_percent), scores.f1_by_threshold.tolist(), strict=True))
    spread = None if interval is None else asdict(interval)
    record = {**shares, "f1_by_iou_percent": by_threshold, "f1_with_other_classes": spread}
    if not give_json(record, json_target, overwrite=False):
        spread_text = "" if interval is None or interval.low is None else f" [{interval.low:.4f}, {interval.high:.4f}]"
        typer.echo(f"F1 {scores.f1:.4f}{spread_text}, precision {scores.precision:.4f}, recall {scores.recall:.4f}")
        typer.echo("averaged over IoU 0.20 to 0.80; the interval holds 95% of the draws of other classes")
