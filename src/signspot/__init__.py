"""signspot finds signs in sign-language video: whether, where and in which variant.

import signspot

model = signspot.load_model("colour")
dictionary = signspot.open_dictionary("dictionary/")
for found in signspot.spot("news.mp4", ["apple"], dictionary=dictionary, model=model):
    print(found.word, found.span_ms, found.cosine, found.entry_id)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signspot.domain.recordings import Dictionary, Entry, Subtitle, Word, normalise
    from signspot.domain.results import Spotting, VideoAnswer, WordAnswer
    from signspot.domain.time import FrameSpan, MillisSpan, TimeAxis
    from signspot.domain.tracks import EmbeddingTrack, SimilarityTrack
    from signspot.embedding.model import Model, Reading, Views
    from signspot.embedding.zoo import embed, load_model, open_dictionary
    from signspot.errors import InputError, SignspotError
    from signspot.evaluation.calibration import Calibration
    from signspot.media.reader import VideoReader
    from signspot.stores.calibration import read_calibration
    from signspot.text.subtitles import read_subtitles
    from signspot.workflows.annotate import Annotated, annotate
    from signspot.workflows.dictionary import check_corpus, check_dictionary
    from signspot.workflows.lookup import Lookup, LookupOptions, lookup
    from signspot.workflows.outputs import write_answer
    from signspot.workflows.spot import SpotOptions, spot

__all__ = [
    "Annotated",
    "Calibration",
    "Dictionary",
    "EmbeddingTrack",
    "Entry",
    "FrameSpan",
    "InputError",
    "Lookup",
    "LookupOptions",
    "MillisSpan",
    "Model",
    "Reading",
    "SignspotError",
    "SimilarityTrack",
    "SpotOptions",
    "Spotting",
    "Subtitle",
    "TimeAxis",
    "VideoAnswer",
    "VideoReader",
    "Views",
    "Word",
    "WordAnswer",
    "annotate",
    "check_corpus",
    "check_dictionary",
    "embed",
    "load_model",
    "lookup",
    "normalise",
    "open_dictionary",
    "read_calibration",
    "read_subtitles",
    "spot",
    "write_answer",
]

# Names are looked up when first used: the decoding process and the command line start in a fraction of a second.
_HOMES = {
    "domain.recordings": ("Dictionary", "Entry", "Subtitle", "Word", "normalise"),
    "domain.results": ("Spotting", "VideoAnswer", "WordAnswer"),
    "domain.time": ("FrameSpan", "MillisSpan", "TimeAxis"),
    "domain.tracks": ("EmbeddingTrack", "SimilarityTrack"),
    "evaluation.calibration": ("Calibration",),
    "stores.calibration": ("read_calibration",),
    "errors": ("InputError", "SignspotError"),
    "media.reader": ("VideoReader",),
    "text.subtitles": ("read_subtitles",),
    "workflows.annotate": ("Annotated", "annotate"),
    "workflows.dictionary": ("check_corpus", "check_dictionary"),
    "embedding.model": ("Model", "Reading", "Views"),
    "embedding.zoo": ("embed", "load_model", "open_dictionary"),
    "workflows.lookup": ("Lookup", "LookupOptions", "lookup"),
    "workflows.outputs": ("write_answer",),
    "workflows.spot": ("SpotOptions", "spot"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'signspot' has no attribute {name!r}")
    return getattr(import_module(f"signspot.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
