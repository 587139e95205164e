"""Where in its picture the signer of a clip is, as released data sets say it."""

from __future__ import annotations

from dataclasses import dataclass

from signspot.domain.boxes import SignerBox


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a picture: fractions of its height and width in 0..1, or pixels; (0, 0) is the upper left corner."""

    top: float
    left: float
    bottom: float
    right: float
    in_pixels: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.top <= self.bottom and 0 <= self.left <= self.right):
            raise ValueError("a box ends before it starts")
        if not self.in_pixels and max(self.bottom, self.right) > 1:
            raise ValueError("a box outside its picture")

    @property
    def signer_box(self) -> SignerBox | None:
        """The same as our entries have it; None if it is empty, or in pixels of a picture whose size is not known."""
        if self.in_pixels or not (self.left < self.right and self.top < self.bottom):
            return None
        return SignerBox(self.left, self.top, self.right, self.bottom)

    @classmethod
    def clamped(cls, top: float, left: float, bottom: float, right: float) -> Box:
        """The part of a box that lies in the picture; pose detectors often reach a little over the edge."""
        inside = [min(1.0, max(0.0, edge)) for edge in (top, left, bottom, right)]
        return cls(inside[0], inside[1], inside[2], inside[3])
