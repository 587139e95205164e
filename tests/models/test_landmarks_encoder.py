"""The landmark encoder: invariances it claims, missing landmarks, and that it can learn."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig, mirrored
from tests.models.signing import LEFT, POSE, RIGHT, moved, signing

SMALL = {"classes": 3, "width": 16, "heads": 2, "embedding_dim": 24}


def small(**options: object) -> LandmarkEncoder:
    torch.manual_seed(0)
    return LandmarkEncoder(LandmarkEncoderConfig(**{**SMALL, **options})).eval()


ENCODER = small()


def embedded(points: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return ENCODER(points).embedding


def test_windows_become_embeddings_of_1024_numbers_and_logits() -> None:
    network = LandmarkEncoder().eval()
    with torch.inference_mode():
        output = network(signing(3))
    assert output.embedding.shape == (3, 1024) == (3, network.embedding_dim)
    assert output.logits.shape == (3, 1064)
    assert sum(parameter.numel() for parameter in network.parameters()) < 4_000_000


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**16), st.floats(0.3, 3), st.floats(-1, 1), st.floats(-1, 1))
def test_place_and_size_of_the_signer_do_not_matter(seed: int, scale: float, right: float, down: float) -> None:
    points = signing(seed=seed)
    torch.testing.assert_close(embedded(moved(points, scale, right, down)), embedded(points), atol=2e-3, rtol=1e-3)


def test_different_signing_is_embedded_differently() -> None:
    first, second = embedded(signing(seed=1)), embedded(signing(seed=2))
    assert (first - second).norm() > 0.1 * first.norm()


@pytest.mark.parametrize("missing", [[POSE], [LEFT], [RIGHT], [LEFT, RIGHT], [POSE, LEFT], [POSE, LEFT, RIGHT]])
def test_missing_parts_give_finite_embeddings_and_gradients(missing: list[slice]) -> None:
    points = signing()
    for part in missing:
        points[..., part] = 0
    network = small().train()
    points.requires_grad_()
    output = network(points)
    (output.embedding.sum() + output.logits.square().sum()).backward()
    assert output.embedding.isfinite().all() and output.logits.isfinite().all()
    assert points.grad is not None and points.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


def test_a_missing_hand_is_told_from_a_still_one() -> None:
    points = signing(gaps=False)
    without = points.clone()
    without[..., RIGHT] = 0
    assert not torch.allclose(embedded(points), embedded(without))


def test_landmarks_that_are_not_numbers_count_as_missing() -> None:
    points, missing = signing(gaps=False), signing(gaps=False)
    points[0, 5, 200] = math.nan
    missing[0, 5, RIGHT] = 0
    assert torch.equal(embedded(points), embedded(missing))


def test_order_in_time_matters() -> None:
    points = signing(gaps=False)
    assert not torch.allclose(embedded(points), embedded(points.flip(1)))


def test_a_window_is_embedded_the_same_in_any_batch() -> None:
    points = signing(4)
    assert torch.equal(embedded(points), embedded(points))
    torch.testing.assert_close(embedded(points)[2:3], embedded(points[2:3]), atol=1e-5, rtol=1e-5)
    assert embedded(points[:0]).shape == (0, 24)


def test_half_precision_landmarks_are_accepted() -> None:
    points = signing().half()
    torch.testing.assert_close(embedded(points), embedded(points.float()))


def test_every_parameter_receives_a_gradient() -> None:
    network = small(dropout=0.0).train()
    points = signing()
    points[0, :, LEFT] = 0  # a hand that is never found has a vector of its own
    output = network(points)
    (output.logits.square().sum() + output.embedding.square().sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in network.parameters())


def test_it_learns_to_tell_signs_apart_on_new_signers_and_places() -> None:
    """Three movements of the right hand, by bodies of any size and place; chance is one third."""

    def batch(seed: int, count: int = 48) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        words = torch.arange(count) % 3
        windows = []
        for word in words.tolist():
            points = signing(1, seed=int(torch.randint(2**16, (), generator=generator)), gaps=False)
            time = torch.linspace(0, 1, 16)
            path = torch.stack([(0.3 * time, 0 * time), (0 * time, 0.3 * time), (-0.3 * time, 0 * time)][word], dim=-1)
            points[..., RIGHT].view(1, 16, 21, 3)[..., :2] += path[None, :, None]
            scale, right, down = (0.5 + torch.rand(3, generator=generator)).tolist()
            windows.append(moved(points, scale, right, down))
        return torch.cat(windows), words

    network = small(dropout=0.0).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    for step in range(40):
        points, words = batch(step)
        optimiser.zero_grad()
        F.cross_entropy(network(points).logits, words).backward()
        optimiser.step()
    points, words = batch(10_000)
    with torch.inference_mode():
        accuracy = (network.eval()(points).logits.argmax(1) == words).float().mean()
    assert accuracy > 0.8


def test_a_mirrored_window_is_another_window() -> None:
    points = signing()
    assert not torch.allclose(embedded(points), embedded(mirrored(points)))


@pytest.mark.parametrize("shape", [(16, 258), (2, 15, 258), (2, 16, 225)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"instead of \(B, 16, 258\)"):
        ENCODER(torch.zeros(shape))


@pytest.mark.parametrize(
    "options", [{"width": 30, "heads": 4}, {"frames": 15}, {"classes": 0}, {"dropout": 1.5}, {"convolutions": -1}]
)
def test_a_senseless_config_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"divide|even|without|dropout|negative"):
        LandmarkEncoderConfig(**options)
