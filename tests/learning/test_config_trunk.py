from __future__ import annotations

from pathlib import Path

import pytest

from signspot.domain.tracks import FrameShape
from signspot.errors import InputError
from signspot.learning.config import TrunkRunConfig, as_toml, read_config
from signspot.learning.trunk import _stages_of

CONFIGS = sorted((Path(__file__).parents[2] / "configs" / "trunk").glob("*.toml"))


def config_of(path: Path) -> TrunkRunConfig:
    return read_config(path, TrunkRunConfig)


def test_the_defaults_are_the_settings_of_the_paper() -> None:
    config = TrunkRunConfig()
    assert (config.architecture, config.frame_shape) == ("i3d", FrameShape(256, 224, keep_aspect=True, signer_box=True))
    assert (config.batch_size, config.learning_rate, config.momentum, config.weight_decay) == (4, 1e-2, 0.9, 0)
    assert (config.stage1_confidence, config.stage2_confidence) == (0.5, 0.8)
    assert (config.colour_jitter, config.scale_jitter, config.flip_probability) == (0.2, 0.1, 0.5)
    assert config.reinitialise_batch_norm and not config.domain_specific_batch_norm
    assert config.clip_options.min_confidence == 0.5


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_config_loads_and_says_only_what_differs(path: Path, tmp_path: Path) -> None:
    config = config_of(path)
    assert _stages_of(config)
    assert path.read_text().startswith("# ")
    whole = tmp_path / "whole.toml"
    whole.write_text(as_toml(config))
    assert config_of(whole) == config


def test_shipped_configs_cover_the_rows_of_the_paper() -> None:
    by_name = {path.stem: config_of(path) for path in CONFIGS}
    assert {by_name[f"i3d-{sources}"].sources for sources in ("both", "dictionary", "continuous")} == {
        "both",
        "dictionary",
        "continuous",
    }
    assert by_name["s3d-continuous"].architecture == "s3d"
    assert not by_name["i3d-both-no-reinit"].reinitialise_batch_norm
    assert by_name["i3d-both-dsbn"].domain_specific_batch_norm
    assert by_name["i3d-both-consecutive"].clip_options.sampling == "consecutive"
    assert by_name["i3d-both-pose"].pose_epochs
    assert len({as_toml(config) for config in by_name.values()}) == len(by_name)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("batch_size = 3", "cannot be halved"),
        ("batch_size = 0", "batch_size = 0 does not lie between"),
        ("crop = 300", "cannot crop 300 pixels from 256"),
        ("keep_aspect = false", "signer_box needs keep_aspect"),
        ("window_before = 10", "no clip of 16 frames fits"),
        ("colour_jitter = 2.0", "no augmentation"),
        ("rotation_degrees = 200.0", "no change of landmarks"),
        ("width = 0.0", "width = 0.0"),
        ("decay_epochs = [4, 2]", "do not ascend"),
        ('device = "tpu"', "none of cpu, cuda, mps"),
        ('architecture = "i4d"', "i3d"),
        ("gated = true", "needs architecture s3d"),
        ('sources = "dictionary"\ndomain_specific_batch_norm = true', "needs both sources"),
        ('architecture = "landmark"\npose_epochs = 1', "need architecture i3d or s3d"),
        ("stage1_confidence = 1.5", "stage1_confidence"),
        ("learning_rat = 0.1", "did you mean learning_rate"),
        ("seed = -1", "seed"),
    ],
)
def test_impossible_options_are_refused_in_one_line(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(line)
    with pytest.raises(InputError, match=words) as caught:
        config_of(path)
    assert "\n" not in str(caught.value) and "run.toml" in str(caught.value)


def test_a_run_without_epochs_is_refused() -> None:
    with pytest.raises(InputError, match="no stage has any epochs"):
        _stages_of(TrunkRunConfig(stage1_epochs=0, stage2_epochs=0))


def test_each_kind_of_trunk_has_its_stages() -> None:
    def names(config: TrunkRunConfig) -> list[str]:
        return [stage.name for stage in _stages_of(config)]

    assert names(TrunkRunConfig()) == ["stage 1", "stage 2"]
    assert names(TrunkRunConfig(sources="continuous")) == ["stage 1"]
    assert names(TrunkRunConfig(sources="dictionary")) == ["stage 2"]
    assert names(TrunkRunConfig(pose_epochs=1)) == ["pose", "stage 1", "stage 2"]
    assert names(TrunkRunConfig(stage1_epochs=0)) == ["stage 2"]
