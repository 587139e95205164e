from __future__ import annotations

import errno
import fcntl
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from signspot.errors import InputError, OutputExists, SignspotError
from signspot.learning.config import EmbeddingConfig, read_config
from signspot.learning.runs import RunFolder, Start

CONFIG = EmbeddingConfig()
DATA = {"train": "abc"}


def begun(path: Path, config: EmbeddingConfig = CONFIG, start: Start = "new") -> RunFolder:
    run = RunFolder(path)
    with run.opened(config, DATA, start):
        pass
    return run


def test_a_new_run_records_config_data_and_machine(tmp_path: Path) -> None:
    run = begun(tmp_path / "deep" / "run", replace(CONFIG, epochs=7, decay_epochs=(3,)))
    assert read_config(run.config, EmbeddingConfig) == replace(CONFIG, epochs=7, decay_epochs=(3,))
    assert json.loads(run.data.read_text()) == DATA
    machine = json.loads((run.path / "environment.json").read_text())
    assert {"signspot", "torch", "numpy", "python", "cores", "threads"} <= machine.keys()


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path) -> None:
    begun(tmp_path / "run")
    with pytest.raises(OutputExists, match="holds a run: continue it with --resume, or add --overwrite"):
        begun(tmp_path / "run")
    begun(tmp_path / "run", start="resume")
    with pytest.raises(InputError, match=r"begun with other options \(epochs = 50, now 9\)"):
        begun(tmp_path / "run", replace(CONFIG, epochs=9, decay_epochs=(3,)), start="resume")
    with pytest.raises(InputError, match=r"begun with other options \(split not set, now "):
        begun(tmp_path / "run", replace(CONFIG, split=Path("/a")), start="resume")


def test_a_run_is_not_continued_on_other_data(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    with pytest.raises(InputError, match="begun with other data"), run.opened(CONFIG, {"train": "other"}, "resume"):
        pass


def test_resume_begins_a_run_that_has_not_begun(tmp_path: Path) -> None:
    assert begun(tmp_path / "run", start="resume").config.is_file()


def test_overwrite_takes_away_the_files_of_the_old_run_and_nothing_else(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    for path in (run.state, run.last, run.best, run.curves, run.results, run.bad_batch, run.path / "notes.txt"):
        path.write_text("{}")
    begun(run.path, replace(CONFIG, seed=3), start="overwrite")
    assert {path.name for path in run.path.iterdir() if path.suffix} == {
        "config.toml",
        "data.json",
        "environment.json",
        "notes.txt",
    }
    assert read_config(run.config, EmbeddingConfig).seed == 3


@pytest.mark.parametrize("start", ["new", "resume", "overwrite"])
def test_a_folder_of_something_else_is_never_touched(tmp_path: Path, start: Start) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(OutputExists, match="exists and is not a run folder"):
        begun(tmp_path, start=start)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(OutputExists, match="exists and is not a run folder"):
        begun(tmp_path / "thesis.txt", start=start)


def test_what_a_killed_process_left_half_written_is_taken_away(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    (run.path / ".signspot-0123456789abcdef.tmp.safetensors").write_text("half")
    begun(run.path, start="resume")
    assert not list(run.path.glob(".signspot-*"))


def test_two_processes_do_not_train_in_one_folder(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from signspot.learning.runs import RunFolder\n"
        "from signspot.learning.config import EmbeddingConfig\n"
        "with RunFolder(Path(sys.argv[1])).opened(EmbeddingConfig(), {'train': 'abc'}, 'resume'): pass"
    )
    with run.opened(CONFIG, DATA, "new"):
        done = subprocess.run([sys.executable, "-c", code, str(run.path)], capture_output=True, text=True, check=False)
    assert "another process trains in this folder" in done.stderr
    begun(run.path, start="resume")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SignspotError, match="could not be written"):
        begun(tmp_path / "file" / "run")


def test_a_file_system_without_locks_is_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".nfs000000000000abcd00000001").touch()
    assert begun(tmp_path / "run").config.is_file()
