from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from experiments.lib.paper_tables import ExperimentResults, Measured, PaperTable, ResultRow, write_results

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return _loaded(ROOT / "docs" / "results.py")


def _loaded(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{script.parent.name}", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_committed_results_make(generator: ModuleType) -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == generator.results_page(ROOT / "experiments"), "run `make docs`"


def test_the_tables_of_other_documents_are_what_the_committed_results_make(generator: ModuleType) -> None:
    pages = generator.documents(ROOT)
    assert {"README.md", "docs/guides/real-video.md"} <= {str(page.relative_to(ROOT)) for page in pages}
    for page in pages:
        assert page.read_text(encoding="utf-8") == generator.filled(page, ROOT), f"{page}: run `make docs`"


def test_a_table_is_written_between_its_marks_and_nothing_else_changes(generator: ModuleType, tmp_path: Path) -> None:
    write_results(_table("ours"), tmp_path / "results.json")
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- results results.json -->\nold\n<!-- end -->\nafter\n")
    before, table, after = generator.filled(page, tmp_path).partition("| one | 50.0 |\n\n**Verdict.** A sentence.\n")
    assert table and before.startswith("before\n<!-- results") and after == "<!-- end -->\nafter\n"


def test_every_experiment_is_on_the_page_with_results_or_as_not_run(generator: ModuleType) -> None:
    page = generator.results_page(ROOT / "experiments")
    for script in (ROOT / "experiments").glob("*/run.py"):
        has_own_form = any('"columns"' not in p.read_text() for p in script.parent.glob("results*.json"))
        assert f"experiments/{script.parent.name}/run.py" in page or has_own_form


def test_an_experiment_without_results_is_listed_as_not_run(generator: ModuleType, tmp_path: Path) -> None:
    _experiment(tmp_path / "table2")
    _experiment(tmp_path / "ours")
    write_results(_table("ours"), tmp_path / "ours" / "results.json")
    page = generator.results_page(tmp_path)
    told, not_run = page.split("## Not run")
    assert "| one | 50.0 |" in told and "A sentence." in told
    assert "- `python experiments/table2/run.py`: What it measures\n" in not_run and "ours" not in not_run


def test_the_papers_tables_come_first_and_in_its_order(generator: ModuleType, tmp_path: Path) -> None:
    for name in ("bags", "table_a3", "table2", "table3"):
        _experiment(tmp_path / name)
        write_results(_table(name), tmp_path / name / "results.json")
    page = generator.results_page(tmp_path)
    places = [page.index(f"about {name}\n") for name in ("table2", "table3", "table_a3", "bags")]
    assert places == sorted(places)


def _experiment(folder: Path) -> None:
    folder.mkdir()
    (folder / "run.py").write_text(f'"""What it measures: `python experiments/{folder.name}/run.py`."""\n')


def _table(name: str) -> ExperimentResults:
    return ExperimentResults(
        name=name,
        title=f"about {name}",
        data="synthetic",
        command=f"python experiments/{name}/run.py",
        columns=("mAP",),
        rows=(ResultRow("one", {"mAP": Measured(0.5)}),),
        verdict="A sentence.",
    )


def _tables() -> list[PaperTable]:
    scripts = sorted((ROOT / "experiments").glob("*/run.py"))
    texts = {script: script.read_text(encoding="utf-8") for script in scripts}
    return [_loaded(script).TABLE for script, text in texts.items() if "TABLE = PaperTable(" in text]


@pytest.mark.parametrize("table", _tables(), ids=lambda table: table.name)
def test_a_table_names_its_folder_its_configs_and_as_many_numbers_as_columns(table: PaperTable) -> None:
    assert (ROOT / "experiments" / table.name / "run.py").is_file()
    names = [row.name for row in table.rows]
    assert len(set(names)) == len(names)
    assert {name for pair in table.differences for name in pair} <= set(names)
    for row in table.rows:
        assert row.config is None or (ROOT / "configs" / "embedding" / f"{row.config}.toml").is_file()
        assert len(row.paper) <= len(table.columns) * len(table.measures)
