"""S3D: parameters counted by hand from the published channel table, and separation as a property."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from signspot.models.i3d import S3D, S3DConfig, _GatedUnit, _SeparableUnit

# Inception-v1: input channels, then 1x1 | 1x1, 3x3 | 1x1, 3x3 | pool, 1x1 (Szegedy et al. 2015, Tab. 1).
BLOCKS = [
    (192, 64, 96, 128, 16, 32, 32),
    (256, 128, 128, 192, 32, 96, 64),
    (480, 192, 96, 208, 16, 48, 64),
    (512, 160, 112, 224, 24, 64, 64),
    (512, 128, 128, 256, 24, 64, 64),
    (512, 112, 144, 288, 32, 64, 64),
    (528, 256, 160, 320, 32, 128, 128),
    (832, 256, 160, 320, 32, 128, 128),
    (832, 384, 192, 384, 48, 128, 128),
]


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def unit(inputs: int, outputs: int, taps: int) -> int:
    return inputs * outputs * taps + 2 * outputs  # no bias; weight and bias of the batch norm


def separable(inputs: int, outputs: int, side: int) -> int:
    return unit(inputs, outputs, side**2) + unit(outputs, outputs, side)


def trunk_by_hand() -> int:
    total = separable(3, 64, 7) + unit(64, 64, 1) + separable(64, 192, 3)
    for inputs, b0, b1a, b1b, b2a, b2b, b3b in BLOCKS:
        total += unit(inputs, b0, 1) + unit(inputs, b1a, 1) + separable(b1a, b1b, 3)
        total += unit(inputs, b2a, 1) + separable(b2a, b2b, 3) + unit(inputs, b3b, 1)
    return total


def gates_by_hand() -> int:
    gated = [192] + [outputs for _, b0, _, b1b, _, b2b, b3b in BLOCKS for outputs in (b0, b1b, b2b, b3b)]
    return sum(outputs * outputs + outputs for outputs in gated)


def tiny(**options: object) -> S3D:
    torch.manual_seed(0)
    return S3D(S3DConfig(**{"classes": 5, "width": 0.125, **options}))


def clips(count: int = 2, frames: int = 16, side: int = 32) -> torch.Tensor:
    return torch.rand(count, 3, frames, side, side, generator=torch.Generator().manual_seed(1)) - 0.5


@pytest.mark.parametrize("classes", [400, 1064])
def test_parameters_are_counted_by_hand(classes: int) -> None:
    assert count(S3D(S3DConfig(classes=classes))) == trunk_by_hand() + 1025 * classes


def test_400_classes_need_the_8320048_parameters_of_the_published_implementation() -> None:
    """torchvision's documentation of its Kinetics-400 S3D states this number."""
    assert trunk_by_hand() + 1025 * 400 == 8_320_048


def test_gates_add_a_square_matrix_per_branch() -> None:
    assert count(S3D(S3DConfig(classes=400, gated=True))) == 8_320_048 + gates_by_hand()


def test_no_kernel_spans_both_space_and_time() -> None:
    for module in S3D(S3DConfig(width=0.125)).modules():
        if isinstance(module, nn.Conv3d):
            time, height, width = module.kernel_size
            assert height == width and (time == 1 or height == 1)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("frames", "side"), [(16, 64), (7, 33), (20, 32)])
def test_clips_of_any_length_and_size_are_embedded(gated: bool, frames: int, side: int) -> None:
    network = tiny(gated=gated).eval()
    with torch.inference_mode():
        output, again = network(clips(2, frames, side)), network(clips(2, frames, side))
    assert output.embedding.shape == (2, 128) and output.logits.shape == (2, 5)
    assert output.embedding.isfinite().all() and torch.equal(output.embedding, again.embedding)


def test_maps_have_the_sizes_of_i3d() -> None:
    with torch.inference_mode():
        assert tiny().eval().features(clips(1, side=224)).shape == (1, 128, 2, 7, 7)


def test_an_untrained_gate_of_zero_weights_halves_every_channel() -> None:
    gated = tiny(gated=True).eval().stages()["Conv3d_2c_3x3"]
    assert isinstance(gated, _GatedUnit) and isinstance(gated.unit, _SeparableUnit)
    nn.init.zeros_(gated.gate.weight)
    nn.init.zeros_(gated.gate.bias)
    maps = torch.rand(1, 8, 4, 6, 6)
    with torch.inference_mode():
        torch.testing.assert_close(gated(maps), 0.5 * gated.unit(maps))


def test_a_gate_weighs_each_channel_by_the_average_of_its_clip() -> None:
    gated = tiny(gated=True).eval().stages()["Conv3d_2c_3x3"]
    maps = torch.rand(2, 8, 4, 6, 6)
    with torch.inference_mode():
        plain, weighted = gated.unit(maps), gated(maps)
        for clip in range(2):
            average = plain[clip].flatten(1).mean(1)
            weights = 1 / (1 + torch.exp(-(gated.gate.weight @ average + gated.gate.bias)))
            for channel in range(plain.shape[1]):
                torch.testing.assert_close(weighted[clip, channel], weights[channel] * plain[clip, channel])


@pytest.mark.parametrize("gated", [False, True])
def test_every_parameter_receives_a_gradient(gated: bool) -> None:
    network = tiny(gated=gated).train()
    output = network(clips(2, side=64))
    (output.logits.square().sum() + output.embedding.square().sum()).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all() and parameter.grad.any(), name


def test_domains_keep_their_own_statistics() -> None:
    network = tiny(domains=2, gated=True)
    with torch.inference_mode():
        before = network.eval()(clips(), 0).embedding
        network.train()(3 * clips(4, side=64), domain=1)
        assert torch.equal(network.eval()(clips(), 0).embedding, before)
