"""The detecting process: `python -m signspot.embedding.detector_child`, started by a landmark detector.

MediaPipe is a large program that talks to the terminal and may crash; here only this process is lost. It reads pictures
from its standard input (two uint32, height and width, then the pixels) and answers each with 258 float32 numbers.
"""

from __future__ import annotations

import importlib
import os
import struct
import sys
from typing import Any

import numpy as np

from signspot.domain.tracks import HAND_NUMBERS, LANDMARK_DIM, POSE_NUMBERS, FloatArray, Pixels

PICTURE_SIZE = struct.Struct("<II")
ANSWER_BYTES = 4 * LANDMARK_DIM


def main() -> None:
    # Whatever a library prints must not land between the answers.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    holistic_module = importlib.import_module("mediapipe.python.solutions.holistic")
    with holistic_module.Holistic(static_image_mode=False, model_complexity=1) as holistic:
        os.write(output, b"\0")  # ready
        while (pixels := _picture()) is not None:
            os.write(output, _numbers_of(holistic.process(pixels)).tobytes())


def _numbers_of(found: Any) -> FloatArray:
    """(258,) of what MediaPipe found in one picture."""
    numbers = np.zeros(LANDMARK_DIM, np.float32)
    if found.pose_landmarks is not None:
        numbers[:POSE_NUMBERS] = [
            number
            for point in found.pose_landmarks.landmark
            for number in (point.x, point.y, point.z, point.visibility)
        ]
    for hand, first in ((found.left_hand_landmarks, POSE_NUMBERS), (found.right_hand_landmarks, -HAND_NUMBERS)):
        if hand is not None:
            first %= LANDMARK_DIM
            numbers[first : first + HAND_NUMBERS] = [n for point in hand.landmark for n in (point.x, point.y, point.z)]
    return numbers


def _picture() -> Pixels | None:
    size = sys.stdin.buffer.read(PICTURE_SIZE.size)
    if len(size) < PICTURE_SIZE.size:
        return None
    height, width = PICTURE_SIZE.unpack(size)
    content = sys.stdin.buffer.read(height * width * 3)
    if len(content) < height * width * 3:
        return None
    return np.frombuffer(content, np.uint8).reshape(height, width, 3)


if __name__ == "__main__":
    main()
