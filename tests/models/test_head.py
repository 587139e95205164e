"""The head against its equation read aloud, and its unit rows at the edges of floating point."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from signspot.models.head import Head, HeadConfig, unit_rows

SMALL = {"input_dim": 6, "hidden_dim": 5, "embedding_dim": 4}


def small(**options: object) -> Head:
    torch.manual_seed(0)
    return Head(HeadConfig(**{**SMALL, **options}))


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def linear(weight: Tensor, bias: Tensor, vector: list[float]) -> list[float]:
    rows = zip(weight.tolist(), bias.tolist(), strict=True)
    return [sum(w * x for w, x in zip(row, vector, strict=True)) + b for row, b in rows]


def leaky(vector: list[float]) -> list[float]:
    return [x if x > 0 else 0.2 * x for x in vector]


def projected_by_hand(head: Head, vector: list[float]) -> list[float]:
    state = head.state_dict()
    lifted = leaky(linear(state["res.0.weight"], state["res.0.bias"], vector))
    residual = [x + r for x, r in zip(vector, lifted, strict=True)]
    hidden = leaky(linear(state["adaptor.0.weight"], state["adaptor.0.bias"], residual))
    projected = linear(state["adaptor.2.weight"], state["adaptor.2.bias"], hidden)
    return leaky(projected) if head.config.activation_after_last == "released" else projected


@pytest.mark.parametrize("after_last", ["paper", "released"])
@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**16))
def test_the_head_is_its_equation(after_last: str, seed: int) -> None:
    head = small(activation_after_last=after_last, classes=3).double()
    vector = torch.randn(1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    output = head(vector)
    projected = projected_by_hand(head, vector[0].tolist())
    length = math.sqrt(sum(x * x for x in projected))
    assert output.embedding[0].tolist() == pytest.approx([x / length for x in projected], abs=1e-9)
    state = head.state_dict()
    assert output.logits is not None
    assert output.logits[0].tolist() == pytest.approx(
        linear(state["logits.weight"], state["logits.bias"], projected), abs=1e-9
    )


def test_parameters_with_and_without_the_classifier() -> None:
    assert count(Head(HeadConfig(classes=1064))) == 1_979_176
    assert count(Head()) == 1_705_728
    assert count(Head(HeadConfig(domains=2))) == 2 * 1_705_728


def test_without_a_classifier_there_are_no_logits() -> None:
    assert small()(torch.randn(2, 6)).logits is None


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.floats(1e-5, 1e5))
def test_rows_have_length_one_whatever_their_scale(rows: int, scale: float) -> None:
    vectors = scale * (1 + torch.rand(rows, 4, generator=torch.Generator().manual_seed(rows)))
    torch.testing.assert_close(torch.linalg.vector_norm(unit_rows(vectors), dim=1), torch.ones(rows))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_zero_row_stays_zero_with_a_zero_gradient_beside_others(dtype: torch.dtype) -> None:
    vectors = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=dtype, requires_grad=True)
    unit = unit_rows(vectors)
    assert unit[0].tolist() == [0, 0] and unit[1].tolist() == pytest.approx([0.6, 0.8], rel=1e-2)
    (unit * torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=dtype)).sum().backward()
    assert vectors.grad is not None
    assert vectors.grad[0].tolist() == [0, 0] and vectors.grad.isfinite().all() and vectors.grad[1].any()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_a_number_is_not_hidden(bad: float) -> None:
    assert unit_rows(torch.tensor([[bad, 1.0]])).isnan().any()


def test_a_head_that_gives_zero_learns_without_exploding() -> None:
    head = small(classes=3)
    for parameter in head.parameters():
        nn.init.zeros_(parameter)
    output = head(torch.zeros(2, 6))
    assert output.embedding.tolist() == [[0] * 4] * 2
    assert output.logits is not None
    (output.embedding.sum() + output.logits.square().sum()).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in head.parameters())


def test_domains_have_layers_of_their_own_and_one_classifier() -> None:
    head, vectors = small(domains=2, classes=3), torch.randn(2, 6)
    continuous, dictionary = head(vectors, domain=0), head(vectors, domain=1)
    assert not torch.allclose(continuous.embedding, dictionary.embedding)
    dictionary.embedding[:, 0].sum().backward()
    touched = {name for name, parameter in head.named_parameters() if parameter.grad is not None}
    assert touched == {f"{part}.1.{i}.{kind}" for part, i in (("res", 0), ("adaptor", 0), ("adaptor", 2)) for kind in
                       ("weight", "bias")}  # fmt: skip
    assert [name for name in head.state_dict() if name.startswith("logits")] == ["logits.weight", "logits.bias"]


def test_every_parameter_receives_a_gradient() -> None:
    head = small(classes=3)
    output = head(torch.randn(3, 6))
    assert output.logits is not None
    (output.embedding[:, 0].sum() + output.logits.sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in head.parameters())


def test_other_shapes_and_domains_are_refused() -> None:
    with pytest.raises(ValueError, match=r"instead of \(B, 6\)"):
        small()(torch.zeros(2, 7))
    with pytest.raises(ValueError, match="domain 2 of a head with 2"):
        small(domains=2)(torch.zeros(2, 6), domain=2)


@pytest.mark.parametrize("options", [{"classes": 0}, {"hidden_dim": 0}, {"domains": 0}, {"activation_after_last": "x"}])
def test_a_senseless_config_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"classes|without numbers|'paper' or 'released'"):
        HeadConfig(**options)
