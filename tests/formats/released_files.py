"""Metadata in the layouts of the released pickles, made on the spot, and ways to damage it."""

from __future__ import annotations

import copy
import os
import pickle
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

WORDS = ["apple", "bank", "ice-cream", "one-hundred", "unseen"]
# word, sign of the page, version: two versions of apple, one of them with two videos, and a second sign of bank
ROWS = [
    ("ice-cream", 7, 1), ("apple", 1, 1), ("apple", 1, 2), ("apple", 1, 2), ("bank", 2, 1), ("bank", 3, 1),
]  # fmt: skip
N = len(ROWS)


class Payload:
    """Touches the canary when it is unpickled by the standard library."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.canary}",)


def vectors(length: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, length))


def bsldict_tree(form: str = "rows") -> dict[str, object]:
    """The layout of bsldict_v1.pkl; features as one array, an array a row, or lists."""
    features = {"i3d": vectors(1024, 1), "mlp": vectors(256, 2)}
    forms = {
        "array": lambda a: a,
        "rows": list,
        "float32": lambda a: list(a.astype(np.float32)),
        "lists": np.ndarray.tolist,
    }
    facts = {"T": [70] * N, "H": [360] * N, "W": [640] * N, "duration_sec": [2.8] * N, "fps": [25.0] * N}
    words = [word for word, _, _ in ROWS]
    videos = {
        "name": [f"a_001_{sign:03}_{i:03}_{word}.mp4" for i, (word, sign, _) in enumerate(ROWS)],
        "word": words,
        "word_id": [WORDS.index(word) for word in words],
        "alternative_words": [["gelato"], *([] for _ in range(N - 1))],
        "letter_db": ["a"] * N,
        "page_db": [1] * N,
        "sign_cnt_db": [sign for _, sign, _ in ROWS],
        "sign_text_orig_db": [None, *words[1:]],
        "sign_text_db": words,
        "sign_link_db": [f"/sign/{word}" for word in words],
        "version_cnt_db": [version for _, _, version in ROWS],
        "how_to_db": ["Lick “it”."] * N,
        "see_also_db": [["fruit"]] * N,
        "similar_items_db": [["Gelato", "Frozen Yoghurt"], *([] for _ in range(N - 1))],
        "categories_db": [["food"]] * N,
        "within_this_cat_db": [["pear", "plum"]] * N,
        "video_cnt_in_version_db": [1] * N,
        "video_cnt_in_sign_db": list(range(N)),
        "video_link_db": [f"https://media.signbsl.com/{word}.mp4" for word in words],
        "source_site_db": ["Signstation", *[None] * (N - 1)],
        "download_method_db": ["wget"] * N,
        "youtube_identifier_db": [None, "C37R_Ix8-qs", *[None] * (N - 2)],
        "upload_date_db": ["2014-02-03"] * N,
        "bbox": [np.array([0.1, 0.2, 0.9, 0.75])] * N,
        "temp_interval": [[5, 60]] * N,
        "features": {kind: forms[form](array) for kind, array in features.items()},
        "videos_original": facts,
        "videos_360h_25fps": facts,
    }
    ids = {word: i for i, word in enumerate(WORDS)}
    spelt = [word.replace("-", " ") for word in WORDS]
    tree = {"words": WORDS, "words_to_id": ids, "words_normalised": spelt, "videos": videos}
    return copy.deepcopy(tree)


def mouthings_tree() -> dict[str, object]:
    """The layout of the mouthings: names and times as arrays, as they come from numpy."""
    return {
        "train": {
            "apple": {
                "names": np.array(["show--one", "show--two"]),
                "times": np.array([1.5, 2.25]),
                "probs": [0.9, 0.5],
            },
            "yogurt": {"names": ["show--one"], "times": [3.0], "probs": [1.0]},
            "yoghurt": {"names": ["show--one"], "times": [4.0], "probs": [0.25]},
        },
        "val": {},
        "test": {"gray": {"names": ["news--three"], "times": [0.04], "probs": [0.75]}},
    }


def info_tree() -> dict[str, object]:
    videos = {
        "name": ["train/apple/show--one_000000_000001.mp4", "test/gray/news--three_000000_000000.mp4"],
        "word": ["apple", "gray"],
        "word_id": [0, 1],
        "split": [0, 2],
        "videos": {"T": [64, 64], "W": [256, 256], "H": [256, 256], "duration_sec": [2.56, 2.56], "fps": [25.0, 25.0]},
        "mouthing_time": [1.5, 0.04],
        "mouthing_prob": [0.9, 0.75],
    }
    return {"words": ["apple", "grey"], "words_to_id": {"apple": 0, "grey": 1}, "videos": videos}


def write_pickle(tree: object, path: Path, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(tree, protocol))
    return path


STRANGE: tuple[object, ...] = (
    None, True, -1, 0, 2**60, 0.5, float("nan"), float("inf"), "", "x" * 30_000, "../../etc/passwd", "a\x1b[2J",
    "\ud800", "é", b"\xff", [], [1], ["a", ["b"]], {}, {"a": 1}, {1: 2}, (1, 2), {1, "a"}, np.zeros(0),
    np.full((2, 2), np.nan), np.array(["a"]), np.float32(1.5),
)  # fmt: skip


def damaged_trees(tree: object, count: int, seed: int) -> Iterator[object]:
    """Copies of plain data with one to three values replaced, taken out, or put in twice."""
    rng = random.Random(seed)
    for _ in range(count):
        changed = copy.deepcopy(tree)
        for _ in range(rng.randint(1, 3)):
            _damage(changed, rng)
        yield changed


def _damage(tree: object, rng: random.Random) -> None:
    holder, depth = tree, 0
    while isinstance(holder, dict | list) and holder:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = rng.choice(keys)
        inside = holder[key]
        if isinstance(inside, dict | list) and inside and rng.random() < 0.8 + 0.05 * depth:
            holder, depth = inside, depth + 1
            continue
        match rng.randrange(4):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(inside)
            case _:
                holder[key] = rng.choice(STRANGE)
        return
