from __future__ import annotations

import contextlib
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.errors import InputError
from signspot.learning.config import EmbeddingConfig, as_toml, read_config

CONFIGS = sorted((Path(__file__).parents[2] / "configs" / "embedding").glob("*.toml"))


def written(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text)
    return path


def test_an_empty_file_is_the_run_of_the_paper(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, ""), EmbeddingConfig)
    assert config == EmbeddingConfig()
    assert (config.loss, config.batch_size, config.temperature) == ("watch-read-lookup", 128, 0.07)
    assert (config.learning_rate, config.momentum, config.weight_decay) == (1e-2, 0.9, 0.0)
    assert (config.epochs, config.decay_epochs, config.background_clips) == (50, (40, 45), 10)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_of_a_table_states_only_what_differs(path: Path) -> None:
    config = read_config(path, EmbeddingConfig)
    stated = [line.partition(" = ")[0] for line in path.read_text().splitlines() if not line.startswith("#")]
    paper, ours = asdict(EmbeddingConfig()), asdict(config)
    differing = tuple(name for name in paper if ours[name] != paper[name])
    # Two rows name the default that their table is about.
    assert (
        set(differing)
        <= set(stated)
        <= {*differing, "loss", "dictionary", "min_confidence", "temperature", "batch_size"}
    )


def test_the_configs_cover_the_tables() -> None:
    names = {path.stem for path in CONFIGS}
    assert len(names) >= 36
    for table in (
        "table2",
        "table3",
        "table-a3",
        "table-a4",
        "table-a5",
        "table-a6",
        "table-a7",
        "figure5a",
        "figure5b",
    ):
        assert any(name.startswith(table) for name in names)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tempreature = 0.1", "run.toml: 'tempreature' is not an option: did you mean temperature?"),
        ("xyz = 1", "'xyz' is not an option: the options are loss, "),
        ("batch_size = '128'", "batch_size is '128', but it takes a whole number"),
        ("batch_size = true", "batch_size is True, but it takes a whole number"),
        ("batch_size = 1.5", "batch_size is 1.5, but it takes a whole number"),
        ("batch_size = 0", "batch_size = 0 does not lie between 1 and"),
        ("balanced = 1", "balanced is 1, but it takes true or false"),
        ("temperature = 0", "temperature = 0.0 does not lie between"),
        ("temperature = nan", "temperature is nan, but it takes a number"),
        ("learning_rate = inf", "learning_rate is inf, but it takes a number"),
        ("loss = 'watch-lokup'", "but it takes .* \\(perhaps watch-lookup\\?\\)"),
        ("decay_epochs = 40", "decay_epochs is 40, but it takes a list in brackets"),
        ("decay_epochs = [40, 'x']", "decay_epochs is .*, but it takes a whole number"),
        ("decay_epochs = [45, 40]", "decay_epochs \\[45, 40\\] do not ascend"),
        ("split = ''", "split is '', but it takes the name of a file"),
        ("device = 'tpu'", "device 'tpu' is none of cpu, cuda, mps"),
        ("seed = -1", "seed = -1 does not lie between"),
        ("epochs", "is not valid TOML"),
        ("epochs = 1\nepochs = 2", "is not valid TOML"),
        ("[loss]\nx = 1", "loss is {'x': 1}, but it takes"),
        ("a = " + "[" * 5000, "is not valid TOML"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_config(written(tmp_path, text), EmbeddingConfig)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_config(path, EmbeddingConfig)
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "absent.toml", EmbeddingConfig)
    path.write_bytes(b"#" * (2 << 20))
    with pytest.raises(InputError, match="larger than 1 MB"):
        read_config(path, EmbeddingConfig)


@given(st.text(max_size=60))
def test_any_text_gives_options_or_an_input_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with contextlib.suppress(InputError):
        read_config(path, EmbeddingConfig)


@given(
    st.builds(
        EmbeddingConfig,
        loss=st.sampled_from(["watch-lookup", "infonce"]),
        temperature=st.floats(1e-3, 1e3),
        decay_epochs=st.sets(st.integers(1, 99)).map(lambda held: tuple(sorted(held))),
        balanced=st.booleans(),
        split=st.none() | st.just(Path('/data/a "quoted" näme\x7f\\.json')),
        seed=st.integers(0, 10**9),
    )
)
def test_what_is_recorded_is_read_back(tmp_path_factory: pytest.TempPathFactory, config: EmbeddingConfig) -> None:
    path = tmp_path_factory.getbasetemp() / "record.toml"
    path.write_text(as_toml(config))
    assert read_config(path, EmbeddingConfig) == config


def test_changes_of_the_command_line_come_last(tmp_path: Path) -> None:
    path = written(tmp_path, "epochs = 3\nloss = 'infonce'")
    changes = ("epochs=7", "loss=watch-lookup", "decay_epochs=[2, 5]", "balanced = false", "temperature=1")
    config = read_config(path, EmbeddingConfig, changes)
    assert (config.epochs, config.loss, config.decay_epochs, config.balanced) == (7, "watch-lookup", (2, 5), False)
    assert config.temperature == 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("epochs", "not of the form key=value"),
        ("=3", "not of the form"),
        ("epoch=3", "did you mean epochs"),
        ("epochs=x", "takes a whole number"),
    ],
)
def test_a_wrong_change_names_itself(tmp_path: Path, change: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_config(written(tmp_path, ""), EmbeddingConfig, (change,))
    assert str(caught.value).startswith(f"--set {change}")


def test_paths_are_relative_to_where_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    path = written(tmp_path, "split = 'words.json'")
    assert read_config(path, EmbeddingConfig).split == tmp_path / "words.json"
    assert read_config(path, EmbeddingConfig, ("split=words.json",)).split == elsewhere / "words.json"


@dataclass(frozen=True)
class Inner:
    side: int = 3
    name: str = "x"


@dataclass(frozen=True)
class Outer:
    needed: int
    inner: Inner = Inner()
    size: tuple[int, float] = (1, 2.0)
    mode: Literal["a", 2] = "a"
    maybe: int | None = None


def test_tables_are_nested_options(tmp_path: Path) -> None:
    path = written(tmp_path, "needed = 1\nsize = [2, 3]\nmaybe = 4\n[inner]\nside = 5\n")
    config = read_config(path, Outer, ("inner.name=y",))
    assert config == Outer(1, Inner(5, "y"), (2, 3.0), "a", 4)
    path.write_text(as_toml(config))
    assert read_config(path, Outer) == config
    with pytest.raises(InputError, match=r"'inner.sied' is not an option: did you mean inner.side\?"):
        read_config(written(tmp_path, "needed = 1\n[inner]\nsied = 5\n"), Outer)
    with pytest.raises(InputError, match=r"lacks options .*needed"):
        read_config(written(tmp_path, ""), Outer)
    with pytest.raises(InputError, match="takes a table of options"):
        read_config(written(tmp_path, "needed = 1\ninner = 3"), Outer)
    with pytest.raises(InputError, match="takes a list of 2"):
        read_config(written(tmp_path, "needed = 1\nsize = [1]"), Outer)


def test_the_learning_rate_falls_by_ten_after_each_decay() -> None:
    config = EmbeddingConfig()
    rates = [config.learning_rate_in(epoch) for epoch in range(config.epochs)]
    expected = [1e-2] * 40 + [1e-3] * 5 + [1e-4] * 5
    assert all(math.isclose(a, b) for a, b in zip(rates, expected, strict=True))
