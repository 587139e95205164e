"""A package named mediapipe whose answers can be computed by hand, in place of the real one.

A picture with a mean red below 40 has nobody in it; otherwise all points of the body lie at (red, green) / 255 of the
picture's centre pixel with z = 0.5 and visibility 0.9, and the right hand, seen where blue is over 127, too. The
hands-only detector is asked where the body is there and a hand is not, and finds none. `body` and `hands` may change
what the two find.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from signspot.embedding import detector as landmark_process
from signspot.media.writer import VideoWriter

_PROGRAM = """
import os, sys, time
print("noise that must not land between the answers")

class Point:
    def __init__(self, x, y): self.x, self.y, self.z, self.visibility = x, y, 0.5, 0.9

class Points:
    def __init__(self, n, x, y): self.landmark = [Point(x, y)] * n

class Found:
    pose_landmarks = left_hand_landmarks = right_hand_landmarks = None

class Holistic:
    def __init__(self, **settings): open({log!r}, "a").write(f"start {{settings}}\\n")
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def process(self, pixels):
        print("noise"); sys.stdout.flush()
        red, green, blue = (float(c) for c in pixels[pixels.shape[0] // 2, pixels.shape[1] // 2])
        open({log!r}, "a").write(f"{{pixels.shape}}\\n")
        {fault}
        found = Found()
        if red >= 40:
            found.pose_landmarks = Points(33, red / 255, green / 255)
            {body}
            if blue > 127: found.right_hand_landmarks = Points(21, red / 255, green / 255)
        return found
"""


_HANDS = """
import os, sys, time
from mediapipe.python.solutions.holistic import Point, Points

class Class:
    def __init__(self, label): self.label = label

class Kind:
    def __init__(self, label): self.classification = [Class(label)]

class Found:
    multi_hand_landmarks = multi_handedness = None

class Hands:
    def __init__(self, **settings): open({log!r}, "a").write(f"hands {{settings}}\\n")
    def process(self, pixels):
        open({log!r}, "a").write("hands looked\\n")
        found = Found()
        {hands}
        return found
"""


def install(
    folder: Path, patched: pytest.MonkeyPatch, fault: str = "pass", *, body: str = "pass", hands: str = "pass"
) -> Path:
    """Put the package before all others, here and in child processes; gives its log, a line for every picture."""
    package, log = folder / "mediapipe" / "python" / "solutions", folder / "asked.log"
    package.mkdir(parents=True)
    for part in (package, package.parent, package.parent.parent):
        (part / "__init__.py").touch()  # a folder without one would stand behind an installed package
    (package / "holistic.py").write_text(_PROGRAM.format(log=str(log), fault=fault, body=body))
    (package / "hands.py").write_text(_HANDS.format(log=str(log), hands=hands))
    information = folder / "mediapipe-0.10.21.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mediapipe\nVersion: 0.10.21\n")
    patched.syspath_prepend(str(folder))
    patched.setattr(landmark_process, "_DISTRIBUTIONS", ("mediapipe",))
    patched.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])))
    return log


def coloured_video(path: Path, colours: npt.ArrayLike, width: int = 64, height: int = 48) -> Path:
    """A video of one colour a frame, at 25 fps."""
    with VideoWriter(path, width=width, height=height) as writer:
        for number, colour in enumerate(np.asarray(colours, np.uint8)):
            writer.write(np.broadcast_to(colour, (height, width, 3)).copy(), 40 * number)
    return path
