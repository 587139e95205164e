"""The shipped landmark model on trajectories alone: `python experiments/boston104/transfer.py [FOLDER]`.

landmark-v1 wants body and hands; here only nose and hands are known, as points. They are put onto an average body: the
median pose of the clips of wlasl300, moved to the nose and scaled so that the hands move as far as they do there; the
wrists are where the hands are, the elbows half way to the shoulders, and the hands themselves count as not found.
Nothing is learned from the sentences. The pairs, entries and measures are those of run.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from experiments.lib.baselines import raw_rows
from experiments.lib.data_sets import SignedSentence, read_boston104
from experiments.lib.landmark_model import RealSigning
from experiments.lib.paper_tables import ExperimentResults, Measured, ResultRow, write_results
from judging import Answer, Judged, judge
from trajectories import Postures

from signspot.domain.tracks import FloatArray
from signspot.embedding.landmarks import LENGTHS, window_at, windows_around
from signspot.embedding.zoo import model_path
from signspot.evaluation.measures import Interval, class_interval, mean_interval
from signspot.models.embedders import landmark_embedder_from_checkpoint

DATA = Path(__file__).parents[3] / "shared/data"
HERE = Path(__file__).parent
COLUMNS = ("localisation", "mAP, sentences of a word", "mAP, entries of a sentence")
_HANDS = ((13, 11, (15, 17, 19, 21)), (14, 12, (16, 18, 20, 22)))  # elbow, shoulder, wrist and hand: left, right
_WRISTS = (15, 16)
VERDICT = (
    "Without handshapes landmark-v1 is no better than the raw positions of the hands on the same body: nothing "
    "transfers from trajectories alone. The model depends on handshapes, and hardly a window of its training lacked "
    "both hands. Training on boston104 itself (run.py) helps more."
)


class AverageBody:
    """Where the points of a pose are in shoulder widths, and how far its wrists move."""

    def __init__(self, data: Path) -> None:
        signs = RealSigning.read(data).test("train")
        shown = np.concatenate([sign.points[sign.span.start : sign.span.stop] for sign in signs])
        poses = shown[shown[:, :132].any(axis=1), :132].reshape(-1, 33, 4).astype(np.float32)
        self.pose: FloatArray = np.median(poses, axis=0)
        self.spread = float(poses[:, _WRISTS, :2].std(axis=0).mean())

    def moved_by(self, sentence: SignedSentence, postures: Postures) -> FloatArray:
        """Landmarks (n_frames, 258) in shoulder widths."""
        width = postures.spread[sentence.signer] / self.spread
        nose = np.median(sentence.places[:, 2], axis=0)
        pose = np.tile(self.pose, (len(sentence.places), 1, 1))
        for hand, (elbow, shoulder, points) in enumerate(_HANDS):
            place = (sentence.places[:, hand] - nose) / width + self.pose[0, :2]
            pose[:, points, :2] = place[:, None]
            pose[:, elbow, :2] = (place + self.pose[shoulder, :2]) / 2
        return np.pad(pose.reshape(len(pose), -1), ((0, 0), (0, 126)))


def judged(data: Path, folder: Path, model: str) -> Judged:
    """Every test sentence against the words that other signers show in training sentences."""
    embed = raw_rows if model == "raw landmarks" else landmark_embedder_from_checkpoint(model_path(model)).embed
    sentences, body = read_boston104(folder), AverageBody(data)
    train = [sentence for sentence in sentences if sentence.split == "train"]
    postures = Postures.of(train)
    points = {sentence.video_id: body.moved_by(sentence, postures) for sentence in sentences}
    tokens = [(sentence, one) for sentence in train for one in sentence.words]
    cut = [window_at(points[sentence.video_id], one.span.start, len(one.span)) for sentence, one in tokens]
    entries = embed(np.stack(cut))
    answers = []
    for sentence in sentences:
        if sentence.split == "test":
            others = np.array([token.signer != sentence.signer for token, _ in tokens])
            own = points[sentence.video_id]
            starts = np.arange(len(own)) - 8  # the window around every frame
            cosine = [embed(windows_around(own, starts, length)) @ entries[others].T for length in LENGTHS]
            words = tuple(one.word for (_, one), is_other in zip(tokens, others, strict=True) if is_other)
            answers.append(Answer(sentence, words, np.max(cosine, axis=0)))
    return judge(answers)


def row_of(name: str, found: Judged) -> ResultRow:
    """The figures of a method: by sentence, by word, by pair."""
    intervals = (
        mean_interval(found.is_localised.astype(np.float64), found.sentences),
        mean_interval(found.word_ap),
        class_interval(found.pair_ap, np.unique(found.words, return_inverse=True)[1]),
    )
    means = (found.localisation, found.word_map, found.paper_map)
    cells = {
        column: _measured(mean, interval) for column, mean, interval in zip(COLUMNS, means, intervals, strict=True)
    }
    return ResultRow(name, cells)


def _measured(mean: float, interval: Interval) -> Measured:
    return Measured(mean, (mean,), interval.low, interval.high)


def main(folder: Path, data: Path) -> None:
    """Write results-transfer.json."""
    torch.set_num_threads(1)
    rows = tuple(row_of(name, judged(data, folder, name)) for name in ("raw landmarks", "landmark-v1"))
    results = ExperimentResults(
        name="boston104 transfer",
        title="The shipped landmark model on hand trajectories alone (American Sign Language)",
        data="real: RWTH-BOSTON-104, nose and hands on an average body, hands themselves not found",
        command="python experiments/boston104/transfer.py",
        conditions={
            "windows": f"{LENGTHS} frames around every frame; an entry is one window over the word; the best counts",
            "model": landmark_embedder_from_checkpoint(model_path("landmark-v1")).fingerprint,
            "interval": "95% bootstrap over sentences (localisation) or words (mAP)",
        },
        columns=COLUMNS,
        rows=rows,
        verdict=VERDICT,
    )
    write_results(results, HERE / "results-transfer.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=DATA / "boston104")
    parser.add_argument("--data", type=Path, default=DATA, help="where wlasl300_landmarks lies")
    options = parser.parse_args()
    main(options.folder, options.data)
