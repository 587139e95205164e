"""Find words in a video and print when they are signed.

    python find_words.py news.mp4 apple tree --dictionary dictionary/

Videos and clips need .pose files beside them, or the extra `pose`. Without arguments: all words, in a made-up world
that is drawn first, which takes minutes.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import signspot

WORLD = Path("signspot-world")

parser = argparse.ArgumentParser()
parser.add_argument("video", type=Path, nargs="?", default=WORLD / "corpus/episodes/test-0000.mp4")
parser.add_argument("words", nargs="*", help="without any: every word of the dictionary")
parser.add_argument("--dictionary", type=Path, default=WORLD / "dictionary")
given = parser.parse_args()
if given.dictionary == WORLD / "dictionary" and not (WORLD / "truth.parquet").exists():
    subprocess.run([sys.executable, "-m", "signspot", "world", "make", str(WORLD)], check=True)

dictionary = signspot.open_dictionary(given.dictionary)
model = signspot.load_model("landmark-v1")
answer = signspot.spot(given.video, given.words or list(dictionary.by_word), dictionary=dictionary, model=model)
for found in answer:
    start, stop = found.span_ms.start / 1000, found.span_ms.stop / 1000
    print(f"{start:8.2f} s to {stop:8.2f} s  {found.word} (like {found.entry_id}, cosine {found.cosine:.2f})")
missing = [word.word for word in answer.words if not word.spottings]
print(f"not found: {', '.join(missing) or 'none'}")
