"""Place the words of subtitles in a video and write the signs as tiers of an ELAN file.

    python subtitles_to_elan.py news.mp4 news.vtt news.eaf --dictionary dictionary/

Videos and clips need .pose files beside them, or the extra `pose`. Without arguments: in a made-up world that is drawn
first, which takes minutes.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import signspot

WORLD = Path("signspot-world")

parser = argparse.ArgumentParser()
parser.add_argument("video", type=Path, nargs="?", default=WORLD / "corpus/episodes/test-0000.mp4")
parser.add_argument("subtitles", type=Path, nargs="?", default=WORLD / "corpus/episodes/test-0000.vtt")
parser.add_argument("eaf", type=Path, nargs="?", default=Path("signs.eaf"))
parser.add_argument("--dictionary", type=Path, default=WORLD / "dictionary")
given = parser.parse_args()
if given.dictionary == WORLD / "dictionary" and not (WORLD / "truth.parquet").exists():
    subprocess.run([sys.executable, "-m", "signspot", "world", "make", str(WORLD)], check=True)

dictionary = signspot.open_dictionary(given.dictionary)
model = signspot.load_model("landmark-v1")
placed = signspot.annotate(given.video, subtitles=given.subtitles, dictionary=dictionary, model=model)
for mention in placed.mentions:
    if mention.spotting is not None:
        print(f"{mention.spotting.span_ms.start / 1000:8.2f} s  {mention.word}: {mention.subtitle.text!r}")
print(f"{placed.n_explained} of {len(placed.mentions)} mentions have a sign")
signspot.write_answer(placed.answer, given.eaf, video=given.video, overwrite=True)
print(f"wrote {given.eaf}")
