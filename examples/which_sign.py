"""Say which sign a recording of one sign may show.

    python which_sign.py clip.mp4                            among the words of ASL that landmark-v1 learned
    python which_sign.py clip.mp4 --dictionary dictionary/   among your own

Recordings need .pose files beside them, or the extra `pose`. Without arguments: a clip of a made-up world, among the
other clips of that world, which is drawn first; that takes minutes.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import signspot

WORLD = Path("signspot-world")

parser = argparse.ArgumentParser()
parser.add_argument("clip", type=Path, nargs="?")
parser.add_argument("--dictionary", type=Path)
given = parser.parse_args()
clip, folder = given.clip, given.dictionary
if clip is None:
    if not (WORLD / "truth.parquet").exists():
        subprocess.run([sys.executable, "-m", "signspot", "world", "make", str(WORLD)], check=True)
    folder = folder or WORLD / "dictionary"
    clip = min((WORLD / "dictionary" / "clips").glob("*.mp4"))

dictionary = None if folder is None else signspot.open_dictionary(folder)
found = signspot.lookup(clip, dictionary=dictionary, model=signspot.load_model("landmark-v1"))
for doubt in (*found.faults, *found.doubts, *found.warnings):
    print(f"note: {doubt}")
for guess in found.guesses:
    print(f"{guess.word:20} {guess.band.value:9} {guess.cosine:.2f}  {guess.entry.entry_id}")
