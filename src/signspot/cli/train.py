"""`signspot train`: the split of words, the trunk, the material it makes, the embedding, and runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from signspot.cli.console import Bars, print_json, progress_bars
from signspot.cli.options import BACKEND, DEVICE, DICTIONARY, TRUST, StoreOptions, grouped
from signspot.domain.time import clock
from signspot.embedding.model import Reading, trunk_of
from signspot.embedding.zoo import load_model, model_path
from signspot.errors import InputError, one_line

if TYPE_CHECKING:
    from signspot.learning.head import HeadProgress
    from signspot.learning.runs import Start
    from signspot.workflows.train import TrainedRun


app = typer.Typer(help="Train models, and compare runs.", no_args_is_help=True, rich_markup_mode=None)

_CONFIG = typer.Argument(metavar="CONFIG.toml", help="The options of the run; configs/ has those of the paper.")
_TRUNK = "What made the vectors, to be kept in the result: a name or .safetensors file."
_OUT = typer.Option(..., "--out", metavar="RUN", help="The folder of the run.")
_SET = typer.Option([], "--set", metavar="KEY=VALUE", help="Change an option of the config; may be given again.")
_RESUME = typer.Option(False, "--resume", help="Continue a run that was interrupted.")
_OVERWRITE = typer.Option(False, "--overwrite", help="Begin again in the folder of an older run.")
_SAVE = typer.Option(5.0, "--save-minutes", min=0.0, help="Save the state this often inside an epoch.")


@app.command("split")
def _split_command(
    out: Path = typer.Option(..., "--out", metavar="FILE.json", help="The split to write."),
    test_words: int = typer.Option(..., "--test-words", min=1, metavar="N", help="How many words to test."),
    corpus: Path | None = typer.Option(None, "--corpus", metavar="DIR", help="Draw from the words annotated here,"),
    data: Path | None = typer.Option(None, "--data", metavar="DIR", help="or from those of training material,"),
    words: Path | None = typer.Option(None, "--words", metavar="F.txt", help="or from a text with a word a line."),
    dictionary: Path | None = typer.Option(
        None, "--dictionary", "-d", metavar="DIR", help="Only words that this dictionary has."
    ),
    confidence: float = typer.Option(0.5, "--confidence", min=0, max=1, help="Annotations count from this one on."),
    seed: int = typer.Option(0, "--seed", help="Another number draws other words."),
    json_target: Path | None = typer.Option(None, "--json", metavar="[-]", help="Give the result as JSON."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a split that exists."),
) -> None:
    """Draw which words are trained and which are only tested, frequent and rare ones alike."""
    from signspot.workflows.train import SplitRequest, draw_words

    request = SplitRequest(out=out, n_test=test_words, seed=seed, min_confidence=confidence, overwrite=overwrite)
    drawn = draw_words(replace(request, corpus=corpus, data=data, words=words, dictionary=dictionary))
    if json_target is not None:
        sides = {"train": drawn.split.train, "test": drawn.split.test}
        record = {name: {"words": len(side), drawn.counted: drawn.labels(side)} for name, side in sides.items()}
        left = {"not_in_dictionary": drawn.not_in_dictionary, "untested": drawn.untested}
        print_json({"out": str(out), "seed": seed, **record, **left})
        return
    for line in (*drawn.lines(), f"wrote {out}"):
        _tell(line)


@app.command("material")
@grouped
def _material_command(
    corpus: Path = typer.Option(..., "--corpus", metavar="DIR", help="Annotated episodes with subtitles."),
    dictionary: Path = DICTIONARY,
    trunk: str = typer.Option(..., "--trunk", metavar="MODEL", help="Makes the vectors: a name or .safetensors file."),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="The folder of material to write."),
    split: str = typer.Option("", "--split", metavar="NAME", help="Only the videos of this split, as train or test."),
    synonyms: list[str] = typer.Option(
        [], "--synonyms", metavar="english=DIR", help="Keep English synonyms, from WordNet's files in DIR."
    ),
    language: str = typer.Option("en", "--language", help="Written language of the subtitles."),
    padding: float = typer.Option(2.0, "--padding", metavar="SECONDS", help="How far a passage reaches around a cue."),
    backend: str = BACKEND,
    device: str = DEVICE,
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace material that exists."),
    *,
    keeping: StoreOptions,
) -> None:
    """Make what the embedding is trained on or tested with: passages, and the vectors of a trunk. Run again after an
    interruption: vectors that are kept are not computed again."""
    from signspot.learning.material import PassageOptions
    from signspot.workflows.train import MaterialFiles, MaterialOptions, write_training_material

    files = MaterialFiles(
        corpus=corpus, dictionary=dictionary, out=out, wordnet=_wordnet(synonyms), overwrite=overwrite
    )
    passages = PassageOptions(language=language, padding_ms=round(1000 * padding))
    with progress_bars() as bars:
        reading = keeping.reading_for("", bars)
        model = load_model(trunk, backend=backend, device=device)
        options = MaterialOptions(split=split, passages=passages, reading=reading)
        made = write_training_material(files, trunk_of(model), options)
    for line in made.lines():
        _tell(line)
    _tell(f"wrote {out}")


@app.command("embedding")
def _embedding_command(
    config: Path = _CONFIG,
    data: Path = typer.Option(..., "--data", metavar="DIR", help="Training material."),
    out: Path = _OUT,
    test: Path | None = typer.Option(None, "--test", metavar="DIR", help="Test material, scored after every epoch."),
    trunk: Path | None = typer.Option(None, "--trunk", metavar="MODEL", help=_TRUNK),
    changes: list[str] = _SET,
    resume: bool = _RESUME,
    overwrite: bool = _OVERWRITE,
    save_minutes: float = _SAVE,
) -> None:
    """Train the head on the vectors of a trunk. Ctrl-C saves the state. `torchrun -m signspot train ...` takes several
    processes."""
    from signspot.learning.head import Controls
    from signspot.workflows.train import EmbeddingRun, train_embedding

    made_by = model_path(trunk) if trunk is not None else None
    start = _start(resume=resume, overwrite=overwrite)
    request = EmbeddingRun(
        config=config, data=data, out=out, test=test, trunk=made_by, changes=tuple(changes), start=start
    )
    with progress_bars() as bars:
        controls = Controls(progress=_watched(bars), save_seconds=60 * save_minutes)
        trained = train_embedding(request, controls, tell=_tell)
    _show(trained)


@app.command("trunk")
def _trunk_command(
    config: Path = _CONFIG,
    corpus: Path | None = typer.Option(None, "--corpus", metavar="DIR", help="Annotated episodes."),
    dictionary: Path | None = typer.Option(None, "--dictionary", metavar="DIR", help="Dictionary clips."),
    out: Path = _OUT,
    split: Path | None = typer.Option(None, "--split", metavar="FILE.json", help="Only the training words of a split."),
    cache: Path | None = typer.Option(
        None, "--cache", metavar="DIR", help="Cached frames or landmarks (default: RUN-frames)."
    ),
    trust: bool = TRUST,
    changes: list[str] = _SET,
    resume: bool = _RESUME,
    overwrite: bool = _OVERWRITE,
    save_minutes: float = _SAVE,
) -> None:
    """Train the network that sees video or landmarks, by classification of annotated and dictionary clips."""
    from signspot.learning.trunk import TrunkControls, TrunkProgress
    from signspot.workflows.train import TrunkRun, train_trunk_on

    start = _start(resume=resume, overwrite=overwrite)
    request = TrunkRun(config=config, out=out, split=split, cache=cache, changes=tuple(changes), start=start)
    with progress_bars() as bars:

        def show(moment: TrunkProgress) -> None:
            epoch, ended = f"{moment.stage}, epoch {moment.epoch + 1} of {moment.epochs}", moment.finished
            if ended is not None:
                bars.clear()
                typer.echo(f"{epoch}: loss {ended.loss:.4f}, {ended.right:.1%} of training clips right")
            bars(epoch, moment.step, moment.steps)

        controls = TrunkControls(progress=show, save_seconds=60 * save_minutes)
        reading = Reading(isolated=not trust, progress=bars)
        request = replace(request, corpus=corpus, dictionary=dictionary, reading=reading)
        trained = train_trunk_on(request, controls, tell=_tell)
    _show(trained)


@app.command("compare")
def _compare_command(
    runs: list[Path] = typer.Argument(metavar="RUN...", help="Folders of runs."),
    json_target: Path | None = typer.Option(None, "--json", metavar="[-]", help="Give the result as JSON."),
) -> None:
    """Show in which options runs differ, and what came out of each."""
    from signspot.workflows.train import compare_runs

    comparison = compare_runs(tuple(runs))
    if json_target is not None:
        print_json(asdict(comparison))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", *comparison.runs):
        table.add_column(Text(one_line(heading)), overflow="fold")
    for rows in (comparison.options, comparison.results):
        for row in rows:
            table.add_row(*(Text(one_line(cell)) for cell in (row.name, *map(_cell, row.values))))
        table.add_section()
    Console(highlight=False).print(table)


def _wordnet(synonyms: list[str]) -> Path | None:
    folders = [Path(given.removeprefix("english=")) for given in synonyms if given.startswith("english=")]
    if len(folders) != len(synonyms) or len(folders) > 1 or any(folder == Path() for folder in folders):
        fix = "give --synonyms english=FOLDER once; those of signs come from the dictionary"
        raise InputError(f"--synonyms {synonyms[-1]}", "is not english=FOLDER", fix)
    return folders[0] if folders else None


def _start(*, resume: bool, overwrite: bool) -> Start:
    if resume and overwrite:
        raise InputError("--resume and --overwrite", "cannot be given together", "choose one")
    return "resume" if resume else "overwrite" if overwrite else "new"


def _watched(bars: Bars) -> Callable[[HeadProgress], None]:
    def show(moment: HeadProgress) -> None:
        row = moment.finished
        if row is None:
            bars(f"epoch {moment.epoch + 1} of {moment.epochs}", moment.step, moment.steps)
            return
        bars.clear()
        scores = {"mAP": row.mean_ap, "R@5": row.recall_at_5, "localisation": row.localisation}
        scored = "".join(f", {name} {value:.4f}" for name, value in scores.items() if value is not None)
        left = f", {clock(1000 * round(moment.seconds_left), hours=True)} left" if moment.seconds_left else ""
        typer.echo(f"epoch {moment.epoch + 1} of {moment.epochs}: loss {row.loss:.4f}{scored}{left}")

    return show


def _show(trained: TrainedRun) -> None:
    folder = trained.folder
    _tell(f"wrote {folder.results} and {folder.best if folder.best.exists() else folder.last}")


def _tell(line: str) -> None:
    typer.echo(one_line(line))


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
