"""Sheets to order the signs of recordings by pictures alone: `python experiments/aslearn/blind.py FOLDER`.

Names are hidden and words listed alphabetically, so that nothing but the pictures says in which order they are signed.
Drawn are the recordings in doubt and eight others; FOLDER.key.json says which is which. Answers: blind.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from experiments.lib.data_sets import read_aslearn
from PIL import Image, ImageDraw
from run import DATA, RECORDED

from signspot.files.json import write_json
from signspot.media.reader import VideoReader

IN_DOUBT = (*RECORDED, "mymomdrivecar.mp4")
N_OTHERS = 8
SEED = 20261116
IN_A_ROW = 6  # pictures


def draw_sheet(video: Path, n_pictures: int, width: int, path: Path) -> None:
    """Pictures of a video from its first frame to its last, each with its number."""
    with VideoReader(video) as reader:
        frames = [frame.pixels for frame in reader]
    numbers = np.linspace(0, len(frames) - 1, min(n_pictures, len(frames))).round().astype(int).tolist()
    height = round(frames[0].shape[0] * width / frames[0].shape[1])
    sheet = Image.new("RGB", (IN_A_ROW * width, -(-len(numbers) // IN_A_ROW) * height))
    for place, number in enumerate(numbers):
        picture = Image.fromarray(frames[number]).resize((width, height))
        drawing = ImageDraw.Draw(picture)
        drawing.rectangle((0, 0, 44, 16), fill="black")
        drawing.text((3, 2), f"f{number}", fill="white")
        sheet.paste(picture, (place % IN_A_ROW * width, place // IN_A_ROW * height))
    sheet.save(path)


def main(folder: Path, data: Path) -> None:
    """Write a sheet for each recording and each of its words, and the list of words."""
    folder.mkdir(parents=True)
    rng, sentences = np.random.default_rng(SEED), read_aslearn(data).sentences
    doubted = [one for one in sentences if one.name in IN_DOUBT]
    others = [one for one in sentences if one.name not in IN_DOUBT and 2 <= len(one.words) <= 4]
    chosen = [*doubted, *(others[i] for i in rng.permutation(len(others))[:N_OTHERS])]
    key, words = {}, []
    for number, place in enumerate(rng.permutation(len(chosen)).tolist(), start=1):
        one, name = chosen[place], f"S{number:02}"
        key[name] = one.name
        words.append(f"{name}: {', '.join(sorted(set(one.words)))}")
        draw_sheet(data / "sentences" / one.name, 30, 230, folder / f"{name}.png")
    for word in sorted({word for one in chosen for word in one.words}):
        draw_sheet(data / "words" / f"{word}.mp4", 12, 200, folder / f"word_{word}.png")
    (folder / "list.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    write_json(key, folder.with_suffix(".key.json"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    main(options.folder, options.data)
