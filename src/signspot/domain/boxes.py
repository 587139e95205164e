"""Where in the picture the signer is: a broadcast shows one in a corner, a dictionary shows the whole person."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class SignerBox:
    """The part of a picture that holds the signer, in fractions 0..1 of the width and height that a player shows.

    >>> str(SignerBox.parsed("50%, 10%, 100%, 90%"))
    '0.5,0.1,1.0,0.9'
    """

    left: float
    top: float
    right: float
    bottom: float

    def __post_init__(self) -> None:
        if not (0 <= self.left <= 1 and 0 <= self.top <= 1 and 0 <= self.right <= 1 and 0 <= self.bottom <= 1):
            raise ValueError(f"the box {self} does not lie in its picture: its edges are fractions from 0 to 1")
        if not (self.left < self.right and self.top < self.bottom):
            raise ValueError(f"the box {self} is empty: left comes before right, and top before bottom")

    def __str__(self) -> str:
        return ",".join(str(float(edge)) for edge in astuple(self))

    @classmethod
    def clamped(cls, left: float, top: float, right: float, bottom: float) -> SignerBox:
        """The part of a box that lies in the picture."""
        inside = [min(1.0, max(0.0, edge)) for edge in (left, top, right, bottom)]
        return cls(inside[0], inside[1], inside[2], inside[3])

    @classmethod
    def parsed(cls, text: str) -> SignerBox:
        """The box in `left,top,right,bottom`, as fractions or, with % signs, percent."""
        parts = [part.strip() for part in text.split(",")]
        try:
            left, top, right, bottom = (_fraction(part) for part in parts)
        except ValueError as error:
            raise ValueError(f"{text[:60]!r} is no box of four numbers left,top,right,bottom") from error
        return cls(left, top, right, bottom)


def _fraction(text: str) -> float:
    # Divided by a hundred as a decimal is: 0.07 is 7%, and 7 * 0.01 is not.
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)
