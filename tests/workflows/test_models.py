from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from signspot.cli import main as cli
from signspot.embedding.zoo import (
    _known_models,
    fetch_model,
    import_model,
    list_models,
    load_model,
    model_path,
    models_folder,
)
from signspot.errors import InputError
from signspot.models.checkpoints import load_checkpoint
from signspot.models.head import Head, HeadConfig
from signspot.models.i3d import I3D, I3DConfig
from tests.models.test_checkpoints import written_by_hand
from tests.toy_world import ToyWorld


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder laid out as the released files are, with untrained weights."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("released") / "bsldict" / "data" / "pretrained_models"
    folder.mkdir(parents=True)
    parts = {"i3d": I3D(I3DConfig(classes=7)), "mlp": Head(HeadConfig(activation_after_last="released", classes=7))}
    state = {f"{part}.{name}": tensor for part, net in parts.items() for name, tensor in net.state_dict().items()}
    torch.save(state, folder / "i3d_mlp.pth.tar")
    return folder.parents[2]


@pytest.fixture
def server(released: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(released))) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


def test_a_released_model_is_fetched_imported_listed_and_loaded(server: str, tmp_path: Path) -> None:
    seen: list[float] = []
    brought = fetch_model("bsldict", tmp_path, base_url=server, progress=lambda step, done, total: seen.append(done))
    assert brought.report is not None
    assert brought.report.card.architecture == "i3d+mlp"
    assert seen[-1] > 1e7
    listed = {model.name: model for model in list_models(tmp_path)}
    assert listed["bsldict"].path == brought.path
    assert not listed["kinetics"].is_here
    model = load_model("bsldict", folder=tmp_path, backend="torch")
    assert (model.name, model.dim, model.threshold) == ("bsldict", 256, 0.4)
    with pytest.raises(InputError, match="exists already"):
        fetch_model("bsldict", tmp_path, base_url=server)


def test_the_built_in_model_needs_no_folder(tmp_path: Path) -> None:
    assert load_model("colour").name == "colour"
    assert [model.name for model in _known_models(tmp_path / "none")] == ["colour", "landmark-v1", "world-v1"]


def test_a_damaged_model_is_listed_as_such(tmp_path: Path) -> None:
    (tmp_path / "broken.safetensors").write_bytes(b"x" * 100)
    assert _known_models(tmp_path)[-1].what.startswith("cannot be used: ")


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/b", "", ".hidden", "a\\b", "..", "two words", "-m", "a.b", "é", "a\nb", "a" * 101],
)
def test_a_model_cannot_be_named_out_of_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no name for a model: give --name with letters a to z, digits, - and _"):
        import_model(tmp_path / "x.pth", tmp_path / "models", name)
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("name", ["colour", "landmark-v1", "World-V1"])
def test_no_imported_model_hides_behind_one_that_comes_with_signspot(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is the name of a model that comes with signspot"):
        import_model(tmp_path / "x.pth", tmp_path, name)


@pytest.mark.parametrize("name", ["a" * 100, "i3d_mlp", "Wlasl-2000", "7"])
def test_a_model_of_ours_is_imported_and_found_by_its_name(name: str, tmp_path: Path) -> None:
    brought = import_model(model_path("world-v1"), tmp_path, name)
    assert brought.path == tmp_path / f"{name}.safetensors"
    ours, given = (load_model(which, folder=tmp_path, backend="torch") for which in (name, "world-v1"))
    assert (ours.name, ours.fingerprint, ours.threshold) == (name, given.fingerprint, given.threshold)


def test_a_name_no_file_can_have_is_no_model() -> None:
    with pytest.raises(InputError, match="no model of this name"):
        load_model("a" * 5000)


@pytest.mark.parametrize("number", [float("nan"), 1e30])
def test_a_model_that_gives_no_numbers_is_told_of_in_one_line(
    number: float, toy_world: ToyWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = load_checkpoint(model_path("world-v1"))
    name = next(name for name in sorted(sound.weights) if name.endswith("conv3d.weight"))
    weights = dict(sound.weights) | {name: torch.full_like(sound.weights[name], number)}
    bad = tmp_path / "bad.safetensors"
    written_by_hand(bad, weights, sound.card)
    clip, signs = str(next(toy_world.dictionary.glob("*/*.mp4"))), str(toy_world.dictionary)
    same = ["-d", signs, "-m", str(bad), "--backend", "torch", "--no-store", "--trust"]
    for words in (["spot", str(toy_world.broadcast), "apple", *same], ["lookup", clip, *same]):
        assert cli.run(words) == 2
        error = capsys.readouterr().err
        assert ("holds NaN" in error or "its vectors are not numbers" in error) and error.count("\n") == 1


def test_where_models_are_kept() -> None:
    assert models_folder({"XDG_DATA_HOME": "/data", "HOME": "/home/me"}) == Path("/data/signspot/models")
    assert models_folder({"HOME": "/home/me"}) == Path("/home/me/.local/share/signspot/models")


def test_wrong_models_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "evil.pth").write_bytes(b"cos\nsystem\n(S'touch /tmp/never'\ntR.")
    assert cli.run(["models", "import", str(tmp_path / "evil.pth")]) == 2
    assert "system" in capsys.readouterr().err
    assert cli.run(["models", "fetch", "nothing"]) == 2
    assert "is not a released file: choose one of" in capsys.readouterr().err
    with pytest.raises(InputError, match="no model of this name is on this computer"):
        load_model("bsl9k")
    with pytest.raises(InputError, match="signspot models import"):
        load_model(tmp_path / "evil.pth")
    assert cli.run(["models", "list"]) == 0
    assert "colour" in capsys.readouterr().out
