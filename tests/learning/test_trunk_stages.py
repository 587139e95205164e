from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from signspot.domain.time import FrameSpan
from signspot.errors import InputError
from signspot.learning.clips import ClipPlace, RecordedClips
from signspot.learning.config import TrunkRunConfig
from signspot.learning.trunk import (
    ClipTest,
    TrunkData,
    _batches_of,
    _new_trunk,
    _pose_loss,
    _pose_target,
    _PoseRegressor,
    _refuse_unusable_tests,
    _stages_of,
    _start_from,
    _trunk_for,
    _trunk_output,
)
from signspot.models.checkpoints import Checkpoint, ModelCard, describe, state_of
from signspot.models.embedders import CONTINUOUS, DICTIONARY
from signspot.models.i3d import InceptionTrunk
from signspot.models.landmarks import mirrored
from tests.learning.signs import WORDS
from tests.models.signing import moved, signing

SMALL = TrunkRunConfig(width=0.125, side=32, crop=32, batch_size=2)


def used_trunk(config: TrunkRunConfig = SMALL, classes: int = 3) -> InceptionTrunk:
    """A trunk whose batch norms are far from their beginning."""
    trunk = _new_trunk(config, classes)
    assert isinstance(trunk, InceptionTrunk)
    for module in trunk.modules():
        if isinstance(module, nn.BatchNorm3d):
            for tensor in (module.weight, module.bias, module.running_mean, module.running_var):
                assert tensor is not None
                tensor.data.uniform_(0.5, 2)
            assert module.num_batches_tracked is not None
            module.num_batches_tracked += 7
    return trunk


def batch_norms(trunk: nn.Module) -> list[nn.BatchNorm3d]:
    return [module for module in trunk.modules() if isinstance(module, nn.BatchNorm3d)]


def test_the_joint_stage_begins_with_every_batch_norm_reset_and_nothing_else_changed() -> None:
    trunk = used_trunk()
    before = {name: tensor.clone() for name, tensor in trunk.state_dict().items()}
    after = _trunk_for(_stages_of(SMALL)[1], SMALL, trunk)
    norms = batch_norms(after)
    assert len(norms) > 50
    for norm in norms:
        assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
        assert bool((norm.weight == 1).all()) and bool((norm.bias == 0).all())
        assert bool((norm.running_mean == 0).all()) and bool((norm.running_var == 1).all())
        assert int(norm.num_batches_tracked) == 0
    for name, tensor in after.state_dict().items():
        assert ".bn." in name or torch.equal(tensor, before[name])


def test_without_re_initialisation_the_joint_stage_begins_where_the_first_ended() -> None:
    config = TrunkRunConfig(width=0.125, reinitialise_batch_norm=False)
    trunk = used_trunk()
    before = {name: tensor.clone() for name, tensor in trunk.state_dict().items()}
    after = _trunk_for(_stages_of(config)[1], config, trunk).state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_domain_specific_batch_norm_begins_as_copies_and_says_the_same() -> None:
    config = TrunkRunConfig(width=0.125, reinitialise_batch_norm=False, domain_specific_batch_norm=True)
    trunk = used_trunk().eval()
    both = _trunk_for(_stages_of(config)[1], config, trunk).eval()
    assert len(batch_norms(both)) == 2 * len(batch_norms(trunk))
    clips = torch.rand(3, 3, 16, 32, 32) - 0.5
    expected = trunk(clips).embedding
    assert torch.allclose(_trunk_output(both, clips, torch.tensor([1, 0, 1])).embedding, expected, atol=1e-5)


def test_each_domain_is_normalised_by_its_own_set_and_rows_keep_their_order() -> None:
    config = TrunkRunConfig(width=0.125, reinitialise_batch_norm=False, domain_specific_batch_norm=True)
    both = _trunk_for(_stages_of(config)[1], config, used_trunk()).eval()
    for name, tensor in both.state_dict().items():
        if ".bn.1." in name and tensor.is_floating_point():
            tensor *= 1.5
    clips = torch.rand(4, 3, 16, 32, 32) - 0.5
    domains = torch.tensor([1, 0, 0, 1])
    got = _trunk_output(both, clips, domains)
    for row, domain in enumerate(domains.tolist()):
        expected = both(clips[row : row + 1], domain)
        assert torch.allclose(got.embedding[row], expected.embedding[0], atol=1e-5)
        assert torch.allclose(got.logits[row], expected.logits[0], atol=1e-5)
    assert not torch.allclose(both(clips, 0).embedding, both(clips, 1).embedding, atol=1e-2)


def test_a_trunk_starts_from_a_model_and_keeps_a_classifier_of_the_same_words() -> None:
    model = used_trunk()
    card = ModelCard(name="old", architecture="i3d", config=describe(model))  # type: ignore[arg-type]
    checkpoint = Checkpoint(card, state_of(model))  # type: ignore[arg-type]
    for classes in (3, 5):
        trunk = _new_trunk(SMALL, classes)
        fresh = trunk.logits.conv3d.weight.clone()  # type: ignore[union-attr]
        _start_from(trunk, checkpoint, "i3d")
        state = trunk.state_dict()
        own = [name for name in state if not name.startswith("logits.")]
        assert all(torch.equal(state[name], model.state_dict()[name]) for name in own)
        expected = model.logits.conv3d.weight if classes == 3 else fresh
        assert torch.equal(trunk.logits.conv3d.weight, expected)  # type: ignore[union-attr]


@pytest.mark.parametrize("config", [TrunkRunConfig(width=0.25), TrunkRunConfig(architecture="s3d", width=0.125)])
def test_a_model_of_another_shape_is_refused(config: TrunkRunConfig) -> None:
    model = used_trunk()
    checkpoint = Checkpoint(ModelCard(name="old", architecture="i3d"), state_of(model))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"old: is no .* like the one to train"):
        _start_from(_new_trunk(config, 3), checkpoint, config.architecture)


def source(confidences: list[float], labels: list[int] | None = None) -> RecordedClips:
    frames = np.zeros((20, 32, 32, 3), np.uint8)
    labels = labels or [0] * len(confidences)
    places = tuple(
        ClipPlace(f"clip {i}", label, 0, FrameSpan(0, 20), confidence)
        for i, (label, confidence) in enumerate(zip(labels, confidences, strict=True))
    )
    return RecordedClips([frames], places)


def test_stages_take_annotations_as_sure_as_the_paper_asks() -> None:
    data = TrunkData(vocabulary=WORDS, continuous=source([0.49, 0.5, 0.79, 0.8, 1.0]), dictionary=source([1.0, 0.1]))
    first, second = (_batches_of(stage, SMALL, data) for stage in _stages_of(SMALL))
    in_first = {name for step in range(20) for name in first.batch(step).names}
    assert in_first == {"clip 1", "clip 2", "clip 3", "clip 4"}
    seen_names: dict[int, set[str]] = {CONTINUOUS: set(), DICTIONARY: set()}
    for step in range(20):
        batch = second.batch(step)
        for name, domain in zip(batch.names, batch.domains.tolist(), strict=True):
            seen_names[domain].add(name)
    assert seen_names == {CONTINUOUS: {"clip 3", "clip 4"}, DICTIONARY: {"clip 0", "clip 1"}}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (TrunkData(vocabulary=WORDS), "needs annotated clips"),
        (TrunkData(vocabulary=WORDS, continuous=source([0.4])), "no annotated clips of confidence 0.5"),
        (TrunkData(vocabulary=WORDS, continuous=source([1.0], [3])), "has the label 3, the vocabulary 3 words"),
        (TrunkData(vocabulary=WORDS, continuous=source([])), "there are no annotated clips"),
    ],
)
def test_a_stage_without_what_it_needs_is_refused(data: TrunkData, words: str) -> None:
    with pytest.raises(InputError, match=words):
        _batches_of(_stages_of(SMALL)[0], SMALL, data)


def test_clips_that_do_not_fit_the_network_are_refused_before_anything_is_learned() -> None:
    data = TrunkData(vocabulary=WORDS, continuous=source([1.0]))
    for config in (TrunkRunConfig(width=0.125, side=64, crop=64), TrunkRunConfig(architecture="landmark")):
        with pytest.raises(InputError, match="stage 1: the clips do not fit the network"):
            _batches_of(_stages_of(config)[0], config, data)


@pytest.mark.parametrize(
    ("tested", "words"), [(source([]), "test set new: is empty"), (source([1.0], [7]), "test set new: .* the label 7")]
)
def test_unusable_test_sets_are_refused(tested: RecordedClips, words: str) -> None:
    with pytest.raises(InputError, match=words):
        _refuse_unusable_tests(TrunkData(vocabulary=WORDS, tests=(ClipTest("new", tested),)))


def test_pose_distillation_needs_landmarks() -> None:
    config = TrunkRunConfig(width=0.125, side=32, crop=32, pose_epochs=1)
    with pytest.raises(InputError, match="needs the landmarks of the annotated clips"):
        _batches_of(_stages_of(config)[0], config, TrunkData(vocabulary=WORDS, continuous=source([1.0])))


def test_the_target_of_pose_distillation_moves_with_the_mirror_only() -> None:
    points = signing(2)
    places, found = _pose_target(points)
    elsewhere, found_there = _pose_target(moved(points, scale=0.5, right=0.2, down=-0.1))
    assert torch.allclose(places, elsewhere, atol=1e-4)
    assert torch.equal(found, found_there)
    flipped, _ = _pose_target(mirrored(points))
    left, right = slice(25, 46), slice(46, 67)
    assert torch.allclose(flipped[:, :, left, 0], -places[:, :, right, 0], atol=1e-4)


def test_only_detected_points_count_in_the_loss_of_pose_distillation() -> None:
    places, found = _pose_target(signing(3))
    guess = _PoseRegressor(8)(torch.rand(3, 8)).detach()
    total = n = 0.0
    for b, t, p in np.ndindex(*found.shape):
        if found[b, t, p]:
            total += float((guess[b, t, p] - places[b, t, p]).abs().sum())
            n += 2
    assert float(_pose_loss(guess, places, found)) == pytest.approx(total / n, rel=1e-4)
    nobody = _pose_target(torch.zeros(3, 16, 258))
    assert float(_pose_loss(guess, *nobody)) == 0
