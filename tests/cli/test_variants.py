from __future__ import annotations

import pytest

from signspot.cli.variants import _show
from signspot.domain.recordings import Word
from signspot.workflows.variants import VariantReport, _NewVariant


@pytest.mark.parametrize(("n", "is_warned"), [(0, False), (2, True)])
def test_candidates_for_new_variants_are_shown_with_how_often_such_are_wrong(
    n: int, is_warned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    _show(VariantReport(Word("apple"), (), (), (_NewVariant((), 0.7),) * n, (), (), 5))
    said = capsys.readouterr().out
    assert said.count("candidate 2 for a new variant") == is_warned
    assert ("two of three candidates are wrong" in said) == is_warned
