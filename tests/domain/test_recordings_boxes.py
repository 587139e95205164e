from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signspot.domain.recordings import SignerBox

edges = st.floats(0, 1)


@st.composite
def boxes(draw: st.DrawFn) -> SignerBox:
    left, right = sorted((draw(edges), draw(edges)))
    top, bottom = sorted((draw(edges), draw(edges)))
    if left == right or top == bottom:
        return SignerBox(0, 0, 1, 1)
    return SignerBox(left, top, right, bottom)


@given(boxes())
def test_a_box_is_its_text_and_back(box: SignerBox) -> None:
    assert SignerBox.parsed(str(box)) == box


@pytest.mark.parametrize("text", ["0.25,0,1,0.07", " 25% , 0%,100%, 7%", "0.25,0%,1,7%"])
def test_fractions_and_percent_say_the_same(text: str) -> None:
    assert SignerBox.parsed(text) == SignerBox(0.25, 0, 1, 0.07)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a box of four numbers"),
        ("0,0,1", "not a box of four numbers left,top,right,bottom"),
        ("0,0,1,1,1", "not a box of four numbers"),
        ("0,0,1,x", "not a box of four numbers"),
        ("0,0,1,%", "not a box of four numbers"),
        ("385,37,885,720", "does not lie in its picture: its edges are fractions from 0 to 1"),
        ("-0.1,0,1,1", "does not lie in its picture"),
        ("0,0,101%,1", "does not lie in its picture"),
        ("0,nan,1,1", "does not lie in its picture"),
        ("0,0,inf,1", "does not lie in its picture"),
        ("0.5,0,0.5,1", "is empty"),
        ("0,0.9,1,0.1", "is empty: left comes before right, and top before bottom"),
    ],
)
def test_a_bad_box_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SignerBox.parsed(text)


def test_a_clamped_box_is_the_part_inside_the_picture() -> None:
    assert SignerBox.clamped(-0.5, 0.2, 1.14, 0.9) == SignerBox(0, 0.2, 1, 0.9)
    with pytest.raises(ValueError, match="is empty"):
        SignerBox.clamped(1.2, 0, 1.5, 1)
