from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from signspot.errors import InputError
from signspot.learning.batches import Minibatch
from signspot.learning.losses import Released, _BagSums, _released_terms, _watch_lookup, watch_read_lookup
from tests.released_rows import ReleasedRows, minibatch_from_rows

# What the released loss, or a float64 transcription of it, gives for the released sample batch.
FULL = {1.0: 5.6777048111, 0.5: 5.5697188377, 0.1: 4.5592093468, 0.07: 4.3083238602}
GRADIENT_LENGTH = {1.0: 0.02193130, 0.5: 0.04411957, 0.1: 0.35448534, 0.07: 0.69216126}
FIRST_ITEMS = {
    2: {1.0: 2.5601341724, 0.07: 2.0798456669},
    4: {1.0: 3.2159993649, 0.07: 3.0167996883},
    16: {1.0: 4.3102965355, 0.07: 3.5010366440},
}
FIRST_TERMS = {
    1.0: [5.82000088, 4.95933897, 4.71091224, 5.68111503, 6.71224321, 4.30499484, 6.77317647, 4.59888682],
    0.07: [1.92572559, 5.02646006, 3.97508637, 0.34717787, 6.21426368, 3.48433371, 8.37775887, 3.61036808],
}
VARIANTS = [
    (Released(count="words"), {1.0: 6.3199020153, 0.07: 4.5943604181}),
    (Released(cross_item="nowhere"), {1.0: 6.6666282365, 0.07: 5.3008255610}),
    (Released(cross_item="nowhere", count="words"), {1.0: 6.7059946659, 0.07: 4.9819553060}),
    (Released(cross_item="both"), {1.0: 5.6816652966, 0.07: 4.3329778206}),
    (Released(cross_item="both", count="words"), {1.0: 6.3212123265, 0.07: 4.6092564235}),
    (Released(same_subtitle="neither"), {1.0: 5.6740299107, 0.07: 4.2964041462}),
    (Released(cross_item="nowhere", same_subtitle="neither"), {1.0: 6.6629527539, 0.07: 5.2889056909}),
]
WATCH_LOOKUP = {1.0: 5.2725815220, 0.07: 1.4825659888}
SEGMENT_ANCHORED = {1.0: 4.6151843524, 0.07: 1.1392695342}
DICTIONARY_ANCHORED = {1.0: 4.4800503665, 0.07: 1.1603031522}


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def sample(shared_data: Path) -> ReleasedRows:
    path = shared_data / "official_loss" / "sample_batch.npz"
    if not path.exists():
        pytest.skip(f"the released sample batch is not at {path}")
    with np.load(path) as arrays:
        return ReleasedRows(**{name: torch.from_numpy(arrays[name]) for name in arrays.files})


def part(rows: ReleasedRows, chosen: Tensor, dtype: torch.dtype = torch.float64) -> ReleasedRows:
    return ReleasedRows(
        rows.features[chosen].to(dtype),
        rows.targets[chosen],
        rows.domain_labels[chosen],
        rows.batch_labels[chosen],
        rows.is_mouthing[chosen],
    )


@pytest.fixture(scope="module")
def exact(sample: ReleasedRows) -> Minibatch:
    return minibatch_from_rows(part(sample, sample.targets > -2))


@pytest.mark.parametrize("temperature", FULL)
@pytest.mark.parametrize("deduplicate", [True, False])
def test_the_sample_batch_costs_what_the_released_loss_says(
    sample: ReleasedRows, temperature: float, deduplicate: bool
) -> None:
    batch = minibatch_from_rows(sample, deduplicate=deduplicate)
    assert watch_read_lookup(batch, "released", temperature).item() == pytest.approx(FULL[temperature], abs=2e-6)


@pytest.mark.parametrize("temperature", FULL)
def test_gradients_of_the_sample_batch_are_as_long_as_released(sample: ReleasedRows, temperature: float) -> None:
    rows = part(sample, sample.targets > -2)
    rows.features.requires_grad_()
    loss = watch_read_lookup(minibatch_from_rows(rows, deduplicate=False), "released", temperature)
    (gradient,) = torch.autograd.grad(loss, rows.features)
    assert gradient.norm().item() == pytest.approx(GRADIENT_LENGTH[temperature], abs=1e-7)
    merged = watch_read_lookup(minibatch_from_rows(rows), "released", temperature)
    (merged_gradient,) = torch.autograd.grad(merged, rows.features)
    torch.testing.assert_close(merged_gradient.sum(dim=0), gradient.sum(dim=0))


@pytest.mark.parametrize("n_items", FIRST_ITEMS)
@pytest.mark.parametrize("temperature", [1.0, 0.07])
def test_the_first_items_cost_what_the_released_loss_says(
    sample: ReleasedRows, n_items: int, temperature: float
) -> None:
    batch = minibatch_from_rows(part(sample, sample.batch_labels < n_items))
    expected = FIRST_ITEMS[n_items][temperature]
    assert watch_read_lookup(batch, "released", temperature).item() == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.07])
def test_the_first_bags_cost_what_the_released_loss_says(exact: Minibatch, temperature: float) -> None:
    terms = _released_terms(_BagSums.of(exact, temperature, None), Released())
    assert len(terms) == 486
    assert terms[:8].tolist() == pytest.approx(FIRST_TERMS[temperature], abs=1e-5)


@pytest.mark.parametrize(("variant", "expected"), VARIANTS, ids=lambda value: str(value) if value is Released else "")
@pytest.mark.parametrize("temperature", [1.0, 0.07])
def test_variants_of_the_released_loss_cost_what_they_should(
    exact: Minibatch, variant: Released, expected: dict[float, float], temperature: float
) -> None:
    assert watch_read_lookup(exact, variant, temperature).item() == pytest.approx(expected[temperature], abs=1e-9)


@pytest.mark.parametrize("temperature", [1.0, 0.07])
def test_watch_lookup_costs_what_it_should(sample: ReleasedRows, exact: Minibatch, temperature: float) -> None:
    labelled = minibatch_from_rows(part(sample, sample.is_mouthing == 1))
    for batch in (exact, labelled):
        released = _watch_lookup(batch, "released", temperature)
        assert released.item() == pytest.approx(WATCH_LOOKUP[temperature], abs=1e-9)
        segment = _watch_lookup(batch, "paper", temperature, "segment")
        assert segment.item() == pytest.approx(SEGMENT_ANCHORED[temperature], abs=1e-9)
        dictionary = _watch_lookup(batch, "paper", temperature, "dictionary")
        assert dictionary.item() == pytest.approx(DICTIONARY_ANCHORED[temperature], abs=1e-9)


def test_the_sample_batch_has_the_known_numbers_of_everything(sample: ReleasedRows) -> None:
    batch = minibatch_from_rows(sample)
    assert (batch.n_items, len(batch.segments), len(batch.row_entry), len(batch.entries)) == (128, 1408, 1436, 793)
    assert int(batch.segment_is_foreground.sum()) == 128
    assert int(batch.row_is_foreground.sum()) == 393
    assert len(set(batch.row_word.tolist())) == 253


def small_rows(**changes: Tensor) -> ReleasedRows:
    columns = {
        "features": torch.tensor([[1.0, 0], [0, 1], [1, 1], [1, 1], [1, 1]]),
        "targets": torch.tensor([4, -1, 4, 7, 7]),
        "domain_labels": torch.tensor([0, 0, 1, 1, 1]),
        "batch_labels": torch.tensor([5, 5, 5, 5, 9]),
        "is_mouthing": torch.tensor([1, 0, 1, 0, 1]),
    }
    return ReleasedRows(**(columns | changes))


def test_rows_with_equal_vectors_are_one_entry_only_within_a_word() -> None:
    batch = minibatch_from_rows(small_rows())
    assert batch.n_items == 2
    assert batch.segment_word.tolist() == [4, -1]
    assert batch.entry_word[batch.row_entry].tolist() == [4, 7, 7]
    assert len(batch.entries) == 2
    assert batch.row_item.tolist() == [0, 0, 1]
    assert batch.row_is_foreground.tolist() == [True, False, True]
    assert len(minibatch_from_rows(small_rows(), deduplicate=False).entries) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": torch.zeros(4)}, r"shapes \(5, 2\), \(4,\)"),
        ({"domain_labels": torch.full((5,), 2)}, "domain_labels holds other values"),
        ({"is_mouthing": torch.full((5,), 0.5)}, "is_mouthing holds other values"),
        ({"targets": torch.full((5,), -1)}, "has no word"),
    ],
)
def test_rows_that_make_no_minibatch_are_refused(changes: dict[str, Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        small_rows(**changes)
