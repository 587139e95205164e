from __future__ import annotations

from dataclasses import dataclass

import pytest
import typer
from typer.testing import CliRunner

from signspot.cli.options import grouped


@dataclass(frozen=True, slots=True)
class Looking:
    far: int = typer.Option(3, "--far", help="How far.")
    twice: bool = typer.Option(False, "--twice")


app = typer.Typer()


@app.command()
@grouped
def look(name: str = typer.Argument(metavar="NAME"), loud: bool = typer.Option(False), *, how: Looking) -> None:
    """Look for NAME."""
    typer.echo(f"{name} {loud} {how}")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["ada"], "ada False Looking(far=3, twice=False)"),
        (["--far", "7", "--twice", "ada", "--loud"], "ada True Looking(far=7, twice=True)"),
    ],
)
def test_a_group_is_filled_from_its_options(given: list[str], expected: str) -> None:
    assert CliRunner().invoke(app, given).stdout.strip() == expected


def test_options_of_a_group_have_their_help_and_types() -> None:
    assert "How far." in CliRunner().invoke(app, ["--help"]).stdout
    assert CliRunner().invoke(app, ["ada", "--far", "much"]).exit_code == 2
