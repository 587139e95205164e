"""Landmarks at several speeds through a real, untrained encoder: the same sign at half the speed is found as well."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from experiments.lib.landmark_model import multi_rate_windows

from signspot.domain.time import TimeAxis
from signspot.domain.tracks import (
    EmbeddingTrack,
    LandmarkTrack,
    RateTrack,
    SignerLandmarks,
    WindowGrid,
    in_picture_heights,
)
from signspot.embedding.landmarks import RateRows, Rates, points_at
from signspot.embedding.pictures import window_batches
from signspot.models.embedders import LandmarkEmbedder
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig
from tests.models.signing import signing


def test_a_slow_sign_is_found_by_long_windows_and_a_usual_one_by_the_usual() -> None:
    torch.manual_seed(0)
    encoder = LandmarkEncoder(LandmarkEncoderConfig(classes=1, width=16, embedding_dim=32))
    model = LandmarkEmbedder(encoder, None, name="small")
    sign = signing(1, gaps=False)[0].numpy()
    slow = points_at(sign, np.linspace(-0.25, 15.25, 32))
    before, after = np.repeat(sign[:1], 12, axis=0), np.repeat(sign[-1:], 12, axis=0)
    points = np.concatenate([before, slow, after])
    usual, long = (model.embed(windows) for windows in multi_rate_windows(points, Rates((16, 32))))
    (windows,) = window_batches(points, stride=1)
    np.testing.assert_allclose(usual, model.embed(windows), atol=1e-5)
    query = model.embed(sign[None])[0]
    cosines = [usual @ query, long @ query]
    assert cosines[1].max() > 0.98 and cosines[1].max() > cosines[0].max()
    assert abs(WindowGrid(len(points)).centre(int(cosines[1].argmax())) - (12 + 16)) <= 1


def test_rows_in_blocks_are_the_tracks_of_all_lengths_and_nobody_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    encoder = LandmarkEncoder(LandmarkEncoderConfig(classes=1, width=16, embedding_dim=32))
    model = LandmarkEmbedder(encoder, None, name="small")
    points = signing(1, frames=90)[0].numpy()
    points[40:80] = 0
    landmarks = SignerLandmarks(LandmarkTrack("v", TimeAxis(np.arange(90) * 40.0), points), 100, 80)
    made = RateRows(model, Rates(stride=3))
    expected = [model.embed(w) for w in multi_rate_windows(in_picture_heights(points, landmarks.aspect), made.rates)]
    monkeypatch.setattr("signspot.embedding.landmarks._WINDOWS_AT_ONCE", 7)
    rows = np.concatenate(list(made.blocks(landmarks)))
    np.testing.assert_allclose(np.concatenate(list(made.blocks(landmarks, first=5))), rows[5:], atol=1e-5)
    kept = EmbeddingTrack("v", WindowGrid(90, stride=3), landmarks.track.axis, rows, made.fingerprint, unit_rows=False)
    track = made.track(kept, "named")
    assert isinstance(track, RateTrack) and track.video_id == "named" and track.fingerprint == model.fingerprint
    assert made.rates.lengths == (10, 16, 24, 34) and track.lengths == (16, 10, 24, 34)
    found = (track.other_rates[0], track.vectors, *track.other_rates[1:])
    for ours, theirs in zip(found, expected, strict=True):
        seen = np.asarray(ours).any(axis=1)
        np.testing.assert_allclose(np.asarray(ours)[seen], theirs[seen], atol=1e-5)
    unseen = [bool((points[start : start + 16] == 0).all()) for start in track.grid.starts()]
    assert any(unseen) and np.array_equal(~np.asarray(track.vectors).any(axis=1), unseen)
