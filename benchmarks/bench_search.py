"""How long a search takes once the vectors of a video exist: comparing, competition, probabilities.

    python benchmarks/bench_search.py [--words 2000] [--windows 1500] [--json FILE]

A minute of video has 1,500 windows, each of four lengths; every word has one clip. The vectors are random, but as
smooth in time as those of a video, and every tenth word is in it. The claim: 2,000 words under 1 s on one core. Where
"cpu" is far below the seconds, the machine was busy.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from signspot.domain.recordings import Dictionary, Entry, normalise
from signspot.domain.results import Provenance
from signspot.domain.time import FRAME_MS, TimeAxis
from signspot.domain.tracks import CLIP_LENGTH, EntryVectors, RateTrack, WindowGrid, unit
from signspot.evaluation.calibration import Calibration, Logistic, PresenceFit
from signspot.spotting.search import Query, Rule, search

REPEATS = 3
DIM, LENGTHS, COHORT = 256, (16, 10, 24, 36), 2000  # of landmark models
SAME = "bench"  # fingerprint


def material(n_words: int, n_windows: int) -> tuple[RateTrack, Query, Rule]:
    """A video, words, and a calibration that shows what is at all like a word."""
    rng = np.random.default_rng(0)
    signs = unit(rng.normal(size=(n_words, DIM)).astype(np.float32))
    cohort = unit(rng.normal(size=(COHORT, DIM)).astype(np.float32))
    noise = rng.normal(size=(len(LENGTHS), n_windows + 7, DIM))
    smooth = sum(noise[:, shift : shift + n_windows] for shift in range(8)) / 8**0.5 / DIM**0.5
    for number in range(0, n_windows, 30):  # a sign
        near = np.exp(-(((np.arange(n_windows) - number) / 4) ** 2))[None, :, None]
        smooth += near * signs[10 * number % n_words]
    usual, *others = unit(smooth.astype(np.float32)).astype(np.float16)
    axis = TimeAxis(FRAME_MS * np.arange(n_windows + CLIP_LENGTH - 1, dtype=np.float64))
    track = RateTrack("video", WindowGrid(len(axis)), axis, usual, SAME, other_rates=tuple(others), lengths=LENGTHS)
    entries = [Entry(entry_id=str(number), word=normalise(f"word {number}")) for number in range(n_words)]
    rows = (EntryVectors(one.word, (one,), row[None], SAME) for one, row in zip(entries, signs, strict=True))
    fit = PresenceFit(Logistic((0.4, 0, 0.4, 4, 0, 7), (0.1,) * 6, (0.5, 0.5, 0.2, 0, 0, 0), -1.0), None, np.ones(1), 1)
    calibration = Calibration(
        model="bench", fingerprint=SAME, plain=fit, read=None, cohort=cohort, fitted_on="nothing", lowest=0.15,
        cohort_words=tuple(normalise(f"known {number}") for number in range(COHORT)),
    )  # fmt: skip
    rule = Rule(threshold=0.45, calibration=calibration, least_presence=0.35)
    return track, Query(tuple(rows), Dictionary.of("bench", entries)), rule


def measured(n_words: int, n_windows: int) -> dict[str, float]:
    """Seconds of the quickest of some searches."""
    track, query, rule = material(n_words, n_windows)
    origin = Provenance(media_sha256="0" * 64, model="bench", fingerprint=SAME, dictionary="bench")
    seconds, cpu, n_found = [], [], 0
    for _ in range(REPEATS):
        begun, begun_cpu = time.perf_counter(), time.process_time()
        n_found = sum(len(answer.spottings) for answer in search(track, query, rule, origin))
        seconds.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - begun_cpu)
    return {"words": n_words, "windows": n_windows, "found": n_found, "seconds": min(seconds), "cpu": min(cpu)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--windows", type=int, default=1500)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = measured(given.words, given.windows)
    print(", ".join(f"{name} {number:.3g}" for name, number in result.items()))
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
