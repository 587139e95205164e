"""The detecting process: `python -m signspot.embedding.detector_child`, started by a landmark detector.

MediaPipe is a large program that talks to the terminal and may crash; here only this process is lost. It reads pictures
from its standard input (two uint32, height and width, then the pixels) and answers each with 258 float32 numbers.

Body and hands come from MediaPipe Holistic. Where it loses a hand that should be in the picture, MediaPipe Hands looks
at the same picture.
"""

from __future__ import annotations

import importlib
import os
import struct
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from signspot.domain.tracks import HAND_NUMBERS, LANDMARK_DIM, POSE_NUMBERS, FloatArray, Pixels
from signspot.embedding.hands import Hand, MissingHands

PICTURE_SIZE = struct.Struct("<II")
ANSWER_BYTES = 4 * LANDMARK_DIM
# What the detectors are started with; experiments/detector compares.
HOLISTIC = {"static_image_mode": False, "model_complexity": 1}
HANDS = {"static_image_mode": True, "max_num_hands": 2, "model_complexity": 1, "min_detection_confidence": 0.3}


def main() -> None:
    # Whatever a library prints must not land between the answers.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with solution("holistic").Holistic(**HOLISTIC) as holistic:
        missing = MissingHands()
        look: Callable[[Pixels], Any] | None = None
        os.write(output, b"\0")  # ready
        while (pixels := _picture()) is not None:
            numbers, hands = numbers_of(holistic.process(pixels)), []
            if missing.wanted(numbers):
                look = look or solution("hands").Hands(**HANDS).process  # many videos never need it
                hands = hands_of(look(pixels))
            height, width = pixels.shape[:2]
            os.write(output, missing.filled(numbers, hands, width, height).tobytes())


def solution(name: str) -> ModuleType:
    """A part of MediaPipe."""
    return importlib.import_module(f"mediapipe.python.solutions.{name}")


def numbers_of(found: Any) -> FloatArray:
    """(258,) of what MediaPipe Holistic found in one picture."""
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


def hands_of(found: Any) -> list[Hand]:
    """What MediaPipe Hands found in one picture. It takes pictures for mirrored: its "Left" is the signer's right."""
    return [
        Hand(np.array([(point.x, point.y, point.z) for point in hand.landmark], np.float32), int(label == "Left"))
        for hand, kind in zip(found.multi_hand_landmarks or (), found.multi_handedness or (), strict=True)
        for label in [kind.classification[0].label]
    ]


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
