from __future__ import annotations

import numpy as np
import pytest

from signspot.domain.recordings import Subtitle, Word
from signspot.domain.results import Provenance, Spotting
from signspot.domain.time import MillisSpan
from signspot.spotting.annotate import FEWEST, SubtitleLag


def found(subtitle_ms: float, sign_ms: float) -> Spotting:
    cue = Subtitle(MillisSpan.of(subtitle_ms - 1500, subtitle_ms + 1500), "an apple")
    origin = Provenance(media_sha256="0" * 64, model="m", fingerprint="f", dictionary="d", subtitle=cue)
    span = MillisSpan.of(sign_ms - 200, sign_ms + 200)
    return Spotting(
        video_id="v", span_ms=span, frame=0, word=Word("apple"), entry_id="a", cosine=0.5, provenance=origin
    )


def test_lag_and_drift_come_back_though_a_fifth_of_the_findings_is_wrong() -> None:
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 1_800_000, 300))
    lags = 1400 + 0.001 * (times - 900_000) + rng.normal(0, 900, 300)
    lags[::5] = rng.uniform(-3000, 3000, 60)
    lag = SubtitleLag.of(found(time, time + late) for time, late in zip(times, lags, strict=True))
    assert lag.lag_ms == pytest.approx(1400, abs=250)
    assert lag.drift == pytest.approx(0.001, abs=0.0005)
    assert lag.line_ms(np.array([900_000.0])) == pytest.approx(1400, abs=250)


def test_a_few_findings_draw_no_line() -> None:
    lag = SubtitleLag.of(found(1000.0 * n, 1000.0 * n + 500) for n in range(2, FEWEST + 1))
    assert (lag.lag_ms, lag.drift) == (None, None)
    assert lag.lags_ms == pytest.approx(500)
    assert np.isnan(lag.line_ms(np.array([0.0]))).all()


def test_findings_without_a_subtitle_count_for_nothing() -> None:
    origin = Provenance(media_sha256="0" * 64, model="m", fingerprint="f", dictionary="d")
    alone = Spotting(
        video_id="v",
        span_ms=MillisSpan.of(0, 400),
        frame=5,
        word=Word("apple"),
        entry_id="a",
        cosine=0.5,
        provenance=origin,
    )
    assert len(SubtitleLag.of([alone]).lags_ms) == 0
