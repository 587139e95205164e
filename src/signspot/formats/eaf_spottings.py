"""Spottings as new tiers of an ELAN file; nothing that is there is touched.

    signspot              the glosses, on the time line, linked to the vocabulary where there is one
      signspot-confidence   one note for each: "cosine 0.713; presence 0.920"
      signspot-source       one note for each: id, model, dictionary, entry, variant
    signspot (2), ...     where two findings overlap, which ELAN does not allow on one tier; the surer one comes first

In EAF 2.8 and later an annotation names its vocabulary entry in CVE_REF; in 2.7 in an EXTERNAL_REF of its own.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from signspot.domain.results import Spotting
from signspot.domain.spans import MillisSpan
from signspot.errors import FormatError, InputError, readable_size
from signspot.formats.eaf_document import MAX_TIME_VALUE, UNITS_MS, ElanDocument, ElanMedia, document_of
from signspot.formats.eaf_tiers import NewAnnotation, NewTiers, TierAdder
from signspot.formats.eaf_vocabulary import VocabularyLink, chosen_link
from signspot.formats.oddities import Oddities
from signspot.formats.vocabulary import ExternalVocabulary
from signspot.text.safe_xml import MAX_BYTES, parse_xml

_NOTES = ("confidence", "source")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierOptions:
    """How spottings become tiers."""

    tier: str = "signspot"  # the name of the new tier; a number follows if the name is taken
    media: ElanMedia | None = None  # the linked video that was searched; None: the first
    vocabulary: ExternalVocabulary | None = None  # None: the vocabularies that stand in the file
    language: str = ""  # of the glosses, as the vocabulary names it; empty: its first
    annotator: str = "signspot"

    def __post_init__(self) -> None:
        if not self.tier.strip():
            raise InputError("tier", "the name of the new tier is empty", "name it, such as signspot")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A spotting and its time in the unit of the file."""

    spotting: Spotting
    start: int
    stop: int


def add_spottings(
    document: ElanDocument, spottings: Iterable[Spotting], options: TierOptions | None = None
) -> ElanDocument:
    """The document with the spottings on new tiers; what could not be added is in its warnings.

    The times of spottings are media times, so TIME_ORIGIN of the video is subtracted. What lies wholly before the
    annotated part is left out, what begins before it is cut.
    """
    options, odd = options or TierOptions(), Oddities()
    placed = list(_placed(document, spottings, options, odd))
    tree = parse_xml(document.xml, document.where, FormatError)
    link = chosen_link(document, [one.spotting.type_id for one in placed], options.vocabulary, odd)
    tiers = NewTiers(name=options.tier, notes=_NOTES, annotator=options.annotator, language=options.language, link=link)
    layers = [[_annotation(one, link, options) for one in layer] for layer in _layers(placed)]
    TierAdder(tree.getroot(), document, tiers).add(layers)
    added = document_of(tree, document.where, odd.lines())
    if len(added.xml) > MAX_BYTES:
        what = f"would grow beyond {readable_size(MAX_BYTES)} with {len(placed):,} spottings"
        raise FormatError(document.where, what, "ask for fewer words or a higher threshold")
    return added


def add_glosses(document: ElanDocument, glosses: Iterable[tuple[MillisSpan, str]], tier: str) -> ElanDocument:
    """The document with glosses of the first linked video, none of which overlap, on a new tier without notes."""
    unit = UNITS_MS[document.time_unit]
    media = document.media[0] if document.media else ElanMedia("")
    placed = sorted((media.to_eaf(span), gloss) for span, gloss in glosses)
    layer = [NewAnnotation(round(span.start / unit), round(span.stop / unit), gloss, "", ()) for span, gloss in placed]
    if any(later.start < earlier.stop for earlier, later in pairwise(layer)):
        raise InputError(document.where, f"glosses of the tier {tier!r} overlap", "give them tiers of their own")
    tree = parse_xml(document.xml, document.where, FormatError)
    tiers = NewTiers(name=tier, notes=(), annotator="", language="", link=None)
    TierAdder(tree.getroot(), document, tiers).add([layer])
    return document_of(tree, document.where, ())


def _placed(
    document: ElanDocument, spottings: Iterable[Spotting], options: TierOptions, odd: Oddities
) -> Iterator[_Placed]:
    unit = UNITS_MS[document.time_unit]
    media = options.media or (document.media[0] if document.media else ElanMedia(""))
    for spotting in spottings:
        span = media.to_eaf(spotting.span_ms)
        start = max(0, round(span.start / unit))
        stop = max(start + 1, round(span.stop / unit))  # an annotation without duration cannot be seen or clicked
        if span.stop <= 0:
            odd.note("spottings before the annotated part of the video, left out", spotting.word)
        elif stop > MAX_TIME_VALUE:
            odd.note("spottings later than an EAF file can say, left out", spotting.word)
        else:
            yield _Placed(spotting, start, stop)


def _layers(placed: Iterable[_Placed]) -> list[list[_Placed]]:
    """Split spottings so that none overlap within a layer; the first layer holds the surest of every moment."""
    layers: list[list[_Placed]] = [[]]
    for one in sorted(placed, key=_by_sureness):
        layer = next((layer for layer in layers if _fits(one, layer)), None)
        if layer is None:
            layers.append(layer := [])
        layer.insert(bisect(layer, one.start, key=_start), one)
    return layers


def _start(one: _Placed) -> int:
    return one.start


def _fits(one: _Placed, layer: Sequence[_Placed]) -> bool:
    following = bisect(layer, one.start, key=_start)
    free_before = following == 0 or layer[following - 1].stop <= one.start
    return free_before and (following == len(layer) or one.stop <= layer[following].start)


def _by_sureness(one: _Placed) -> tuple[float, int, int, str, str]:
    cosine = one.spotting.cosine
    return (math.inf if math.isnan(cosine) else -cosine, one.start, one.stop, one.spotting.word, one.spotting.entry_id)


def _annotation(one: _Placed, link: VocabularyLink | None, options: TierOptions) -> NewAnnotation:
    type_id = one.spotting.type_id
    linked = link.items.get(type_id) if link and type_id else None
    known = linked or (options.vocabulary.item(type_id) if options.vocabulary and type_id else None)
    value = (known.gloss(options.language) if known else "") or one.spotting.word
    return NewAnnotation(one.start, one.stop, value, type_id if linked else "", _notes(one.spotting))


def _notes(spotting: Spotting) -> tuple[str, str]:
    """What the child tiers say: confidence and source."""
    confidence = f"cosine {spotting.cosine:.3f}"
    if spotting.presence is not None:
        confidence += f"; presence {spotting.presence.probability:.3f}"
    origin = spotting.provenance
    source = f"{_identity(spotting)}; model {origin.model}; dictionary {origin.dictionary}; entry {spotting.entry_id}"
    return confidence, f"{source}; variant {spotting.variant}" if spotting.variant else source


def _identity(spotting: Spotting) -> str:
    try:
        return spotting.spotting_id
    except UnicodeEncodeError:  # half a character, from a file name in no known encoding, has no bytes to hash
        return "spot:unknown"
