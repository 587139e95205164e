"""Signs of the synthetic world as material for training."""

from __future__ import annotations

import numpy as np
from experiments.lib.landmark_model import synthetic_signs


def test_forms_are_shown_by_several_signers_without_their_still_ends() -> None:
    signs = synthetic_signs(3, 2)
    assert len(signs) == 6 and len({sign.word for sign in signs}) == 3
    assert all(first.word == second.word and first.signer != second.signer
               for first, second in zip(signs[::2], signs[1::2], strict=True))  # fmt: skip
    for sign in signs:
        assert 10 < len(sign.span) < len(sign.points)
        shoulders = sign.points[:, :132].reshape(-1, 33, 4)[:, [11, 12], 0]
        assert np.median(np.abs(shoulders[:, 0] - shoulders[:, 1])) > 0.8  # shoulder widths
