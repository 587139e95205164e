"""Padding, convolution units, pools and batch norm against loops written from the definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from signspot.models.i3d import (
    ConvUnit,
    MaxPool,
    _narrowed,
    _UnitShape,
    copied_to_domains,
    reinitialise_batch_norm,
    same_padding,
)

sizes = st.integers(1, 9)
kernels = st.integers(1, 7)
strides = st.integers(1, 4)
triples = st.tuples(st.tuples(sizes, sizes, sizes), st.tuples(*[st.integers(1, 4)] * 3), st.tuples(*[strides] * 3))


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 300), kernels, strides)
def test_same_padding_is_the_formula_of_the_documentation(size: int, kernel: int, stride: int) -> None:
    """TensorFlow's guide has two cases, by whether the stride divides the size."""
    total = max(kernel - (stride if size % stride == 0 else size % stride), 0)
    before, after = same_padding(size, kernel, stride)
    assert before + after == total
    assert 0 <= after - before <= 1


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 300), kernels, strides)
def test_same_padding_leaves_one_output_per_stride(size: int, kernel: int, stride: int) -> None:
    padded = size + sum(same_padding(size, kernel, stride))
    assert (padded - kernel) // stride + 1 == -(-size // stride)


def windows(maps: np.ndarray, kernel: tuple[int, ...], stride: tuple[int, ...]):
    """Each output place with the input values and kernel taps that meet there; padding is simply not visited."""
    outputs = [-(-size // step) for size, step in zip(maps.shape, stride, strict=True)]
    for place in itertools.product(*map(range, outputs)):
        met = []
        for tap in itertools.product(*map(range, kernel)):
            at = []
            for axis in range(3):
                n_outputs, step, side, size = outputs[axis], stride[axis], kernel[axis], maps.shape[axis]
                total = max((n_outputs - 1) * step + side - size, 0)
                at.append(place[axis] * step + tap[axis] - total // 2)
            if all(0 <= i < size for i, size in zip(at, maps.shape, strict=True)):
                met.append((maps[tuple(at)], tap))
        yield place, met


@settings(deadline=None, max_examples=50)
@given(triples, st.integers(0, 2**16))
def test_convolution_equals_the_loop(shape, seed: int) -> None:
    size, kernel, stride = shape
    torch.manual_seed(seed)
    maps = torch.randn(1, 1, *size, dtype=torch.float64)
    unit = ConvUnit(_UnitShape(inputs=1, outputs=1, kernel=kernel, stride=stride)).double().eval()
    weight = unit.conv3d.weight[0, 0].detach().numpy()
    got = unit(maps)[0, 0].detach().numpy()
    for place, met in windows(maps[0, 0].numpy(), kernel, stride):
        total = sum(value * weight[tap] for value, tap in met) / np.sqrt(1 + 1e-3)
        assert got[place] == pytest.approx(max(total, 0), abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(triples, st.integers(0, 2**16))
def test_pool_equals_the_loop_also_below_zero(shape, seed: int) -> None:
    size, kernel, stride = shape
    torch.manual_seed(seed)
    maps = torch.randn(1, 1, *size, dtype=torch.float64) - 3
    got = MaxPool(kernel, stride)(maps)[0, 0].numpy()
    expected = dict(windows(maps[0, 0].numpy(), kernel, stride))
    assert got.size == len(expected)
    for place, met in expected.items():
        assert got[place] == max(value for value, _ in met)


@pytest.mark.parametrize("channels", [16, 24, 48, 64, 112, 208, 384])
def test_full_width_changes_no_channel_count(channels: int) -> None:
    assert _narrowed(channels, 1.0) == channels


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 48).map(lambda n: 8 * n), st.floats(0.01, 4))
def test_channels_are_multiples_of_eight_near_the_width(channels: int, width: float) -> None:
    outputs = _narrowed(channels, width)
    assert outputs % 8 == 0 and outputs >= 8
    assert outputs == 8 or abs(outputs - channels * width) <= 4


def trained_unit(domains: int) -> ConvUnit:
    torch.manual_seed(0)
    unit = ConvUnit(_UnitShape(inputs=2, outputs=3, kernel=(3, 3, 3), domains=domains)).train()
    for norm in unit.modules():
        if isinstance(norm, nn.BatchNorm3d):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    for domain in range(domains):
        unit(torch.randn(2, 2, 4, 5, 5) + 1, domain)
    return unit


def test_training_on_one_domain_leaves_the_statistics_of_the_other() -> None:
    unit = trained_unit(domains=2)
    before = {name: tensor.clone() for name, tensor in unit.state_dict().items()}
    unit(5 + torch.randn(2, 2, 4, 5, 5), domain=1)
    changed = {name for name, tensor in unit.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"bn.1.running_mean", "bn.1.running_var", "bn.1.num_batches_tracked"}


def test_reinitialising_resets_weight_bias_and_statistics_of_every_domain() -> None:
    unit = trained_unit(domains=2)
    convolution = unit.conv3d.weight.clone()
    reinitialise_batch_norm(unit)
    for name, tensor in unit.state_dict().items():
        if name.startswith("bn."):
            expected = 1.0 if name.endswith((".weight", "running_var")) else 0.0
            assert torch.equal(tensor, torch.full_like(tensor, expected)), name
    assert torch.equal(unit.conv3d.weight, convolution)


def test_a_state_copied_to_domains_gives_the_same_answer_in_each() -> None:
    single = nn.Sequential(trained_unit(domains=1)).eval()
    double = nn.Sequential(trained_unit(domains=2)).eval()
    double.load_state_dict(copied_to_domains(single.state_dict(), domains=2))
    maps = torch.randn(1, 2, 4, 5, 5)
    for domain in (0, 1):
        assert torch.equal(double[0](maps, domain), single[0](maps))


def test_a_state_copied_to_one_domain_is_the_state() -> None:
    state = nn.Sequential(trained_unit(domains=1)).state_dict()
    copied = copied_to_domains(state, domains=1)
    assert copied.keys() == state.keys()
    assert all(torch.equal(copied[name], tensor) for name, tensor in state.items())
