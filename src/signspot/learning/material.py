"""What there is to learn from, as columns: tracks of trunk vectors, labelled passages, dictionary entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from signspot.domain.tracks import FloatArray
from signspot.domain.words import Vocabulary

Ints = npt.NDArray[np.int64]
Track = npt.NDArray[np.float16] | npt.NDArray[np.float32]  # (n_windows, d); a memory map for what lies on the disk


@dataclass(frozen=True, slots=True, eq=False)
class Passages:
    """Stretches of video with one labelled sign and the words of their subtitle: M and S of Paper 3, joined."""

    names: tuple[str, ...]  # to name them in messages
    track: Ints  # (P,) which track
    start: Ints  # (P,) first frame of the passage in its video
    stop: Ints  # (P,) behind its last frame
    label: Ints  # (P,) the annotated word, as its place in the vocabulary
    label_frame: Ints  # (P,) in the video
    confidence: FloatArray  # (P,) of the annotation
    word_offsets: Ints  # (P + 1,) the words of passage p are words[word_offsets[p] : word_offsets[p + 1]]
    words: Ints  # the words of the subtitle in the order of their mentions, repeats included, the label's among them

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """A training or test set of trunk vectors. Row i of a track is the window of 16 frames that starts at frame i."""

    vocabulary: Vocabulary  # what word numbers mean
    tracks: Sequence[Track]
    passages: Passages
    entry_ids: tuple[str, ...]
    entry_vectors: FloatArray  # (E, d): of every dictionary entry, the mean of its clips' trunk vectors
    entry_word: Ints  # (E,)
    fingerprint: str  # of the trunk that made all vectors
