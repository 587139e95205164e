"""Adding tiers to an EAF tree: a tier of aligned annotations and child tiers with a note on each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lxml import etree

from signspot.formats.eaf_document import ElanDocument, integer
from signspot.formats.eaf_tree import RootOrder, add_before, append, fresh_ids, lay_out, taken_ids, xml_text
from signspot.formats.eaf_vocabulary import VocabularyLink, version_of

_ASSOCIATION = "Symbolic_Association"
_ASSOCIATION_MEANING = "1-1 association with a parent annotation"  # ELAN's own words
_GLOSS_TYPE, _NOTE_TYPE = "signspot-gloss", "signspot-note"


@dataclass(frozen=True, slots=True)
class NewAnnotation:
    """An annotation to add, with its time in the unit of the file and one note for each child tier."""

    start: int
    stop: int
    value: str
    cve_id: str  # the vocabulary entry to link; may be empty
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTiers:
    """What the new tiers are called and where their glosses come from."""

    name: str
    notes: tuple[str, ...]  # the child tiers are called name-note
    annotator: str
    language: str
    link: VocabularyLink | None


class TierAdder:
    """Adds tiers to one tree; everything else in it stays."""

    def __init__(self, root: etree._Element, document: ElanDocument, tiers: NewTiers) -> None:
        self._root, self._new = root, tiers
        self._has_cve_ref = version_of(document) >= (2, 8)
        self._order = RootOrder(root, version_of(document))
        if tiers.link and not tiers.link.new_ecv_url:
            for linked in (
                cv for cv in root.iterchildren("CONTROLLED_VOCABULARY") if cv.get("CV_ID") == tiers.link.cv_id
            ):
                self._order.go_after(linked)
        self._last_used = root.find("HEADER/PROPERTY[@NAME='lastUsedAnnotationId']")
        taken = taken_ids(root)
        last_used = integer(self._last_used.text) if self._last_used is not None else None
        self._newest_id = ""
        self._annotation_ids = fresh_ids("a", taken, above=last_used or 0)
        self._slot_ids = fresh_ids("ts", taken)
        self._reference_ids = fresh_ids("er", taken)
        self._references = {
            (ref.get("TYPE", ""), ref.get("VALUE", "")): ref.get("EXT_REF_ID", "")
            for ref in root.iterchildren("EXTERNAL_REF")
        }

    def add(self, layers: Sequence[Sequence[NewAnnotation]]) -> None:
        """Add one tier with its child tiers for each layer; the annotations of a layer must not overlap."""
        slots = self._add_slots([one for layer in layers for one in layer])
        gloss_type, note_type = self._add_gloss_type(), self._add_note_type()
        name = self._free_name(len(layers))
        for number, layer in enumerate(layers, start=1):
            ending = _ending(number)
            tiers = [self._tier(f"{name}{ending}", gloss_type)]
            tiers += [self._tier(f"{name}-{note}{ending}", note_type, f"{name}{ending}") for note in self._new.notes]
            for one in layer:
                self._annotate(one, tiers, next(slots))
            for tier in tiers:
                lay_out(self._root, tier)
                self._order.add(tier)
        self._update_last_used()

    def _add_slots(self, annotations: Sequence[NewAnnotation]) -> Iterator[tuple[str, str]]:
        """Add two time slots for each annotation, among the others in order of time as ELAN writes them."""
        order = self._root.find("TIME_ORDER")
        if order is None:
            order = etree.Element("TIME_ORDER")
            self._order.add(order)
        ends = sorted(
            (time, i, end) for i, one in enumerate(annotations) for end, time in enumerate((one.start, one.stop))
        )
        slots: list[list[str]] = [["", ""] for _ in annotations]
        existing = iter(_in_time(order))
        value, following = next(existing, (0, None))
        for time, i, end in ends:
            while following is not None and value <= time and following.tag == "TIME_SLOT":
                value, following = next(existing, (0, None))
            slots[i][end] = next(self._slot_ids)
            slot = etree.Element("TIME_SLOT", TIME_SLOT_ID=slots[i][end], TIME_VALUE=str(time))
            append(order, slot) if following is None else add_before(following, slot)
        return ((first, last) for first, last in slots)

    def _free_name(self, n_layers: int) -> str:
        taken = {tier.get("TIER_ID") for tier in self._root.iterchildren("TIER")}
        base, parts = xml_text(self._new.name), ("", *(f"-{note}" for note in self._new.notes))
        names = (base if number == 1 else f"{base}-{number}" for number in itertools.count(1))
        endings = [_ending(number) for number in range(1, n_layers + 1)]
        return next(
            name for name in names if not any(f"{name}{part}{end}" in taken for part in parts for end in endings)
        )

    def _tier(self, name: str, linguistic_type: str, parent: str = "") -> etree._Element:
        tier = etree.Element("TIER", TIER_ID=name, LINGUISTIC_TYPE_REF=linguistic_type)
        if self._new.annotator:
            tier.set("ANNOTATOR", xml_text(self._new.annotator))
        if parent:
            tier.set("PARENT_REF", parent)
        elif self._new.link and self._has_cve_ref and self._new.language in self._languages():
            # Says which of the entry's values is meant.
            tier.set("LANG_REF", self._new.language)
        return tier

    def _languages(self) -> set[str]:
        declared = (one for one in self._root.iterchildren("LANGUAGE") if self._order.sees(one))
        return {one.get("LANG_ID", "") for one in declared} - {""}

    def _annotate(self, one: NewAnnotation, tiers: Sequence[etree._Element], slots: tuple[str, str]) -> None:
        aligned = etree.SubElement(etree.SubElement(tiers[0], "ANNOTATION"), "ALIGNABLE_ANNOTATION")
        annotation_id = self._write(aligned, one.value)
        aligned.set("TIME_SLOT_REF1", slots[0])
        aligned.set("TIME_SLOT_REF2", slots[1])
        if one.cve_id and self._has_cve_ref:
            aligned.set("CVE_REF", xml_text(one.cve_id))
        elif one.cve_id:
            aligned.set("EXT_REF", self._reference("cve_id", one.cve_id))
        for tier, note in zip(tiers[1:], one.notes, strict=True):
            reference = etree.SubElement(etree.SubElement(tier, "ANNOTATION"), "REF_ANNOTATION")
            self._write(reference, note)
            reference.set("ANNOTATION_REF", annotation_id)

    def _write(self, annotation: etree._Element, value: str) -> str:
        self._newest_id = next(self._annotation_ids)
        annotation.set("ANNOTATION_ID", self._newest_id)
        etree.SubElement(annotation, "ANNOTATION_VALUE").text = xml_text(value)
        return self._newest_id

    def _add_gloss_type(self) -> str:
        attributes = {"TIME_ALIGNABLE": "true", "GRAPHIC_REFERENCES": "false"}
        link = self._new.link
        if link:
            attributes["CONTROLLED_VOCABULARY_REF"] = cv_id = xml_text(link.cv_id)
            if link.new_ecv_url:
                reference = self._reference("ecv", link.new_ecv_url)
                self._order.add(etree.Element("CONTROLLED_VOCABULARY", CV_ID=cv_id, EXT_REF=reference))
        return self._linguistic_type(_GLOSS_TYPE, attributes)

    def _add_note_type(self) -> str:
        if all(element.get("STEREOTYPE") != _ASSOCIATION for element in self._root.iterchildren("CONSTRAINT")):
            constraint = etree.Element("CONSTRAINT", STEREOTYPE=_ASSOCIATION, DESCRIPTION=_ASSOCIATION_MEANING)
            self._order.add(constraint)
        attributes = {"TIME_ALIGNABLE": "false", "GRAPHIC_REFERENCES": "false", "CONSTRAINTS": _ASSOCIATION}
        return self._linguistic_type(_NOTE_TYPE, attributes)

    def _linguistic_type(self, base: str, attributes: dict[str, str]) -> str:
        """The name of a type with exactly these attributes: one of ours that is there, or a new one."""
        existing = {one.get("LINGUISTIC_TYPE_ID"): one for one in self._root.iterchildren("LINGUISTIC_TYPE")}
        used = {tier.get("LINGUISTIC_TYPE_REF") for tier in self._root.iterchildren("TIER")}  # maybe of a lost type
        names = (base if number == 1 else f"{base}-{number}" for number in itertools.count(1))
        for name in names:
            wanted, there = {"LINGUISTIC_TYPE_ID": name, **attributes}, existing.get(name)
            if there is None and name not in used:
                self._order.add(etree.Element("LINGUISTIC_TYPE", wanted))
                break
            if there is not None and dict(there.items()) == wanted and self._order.sees(there):
                break
        return name

    def _reference(self, kind: str, value: str) -> str:
        """The id of an EXTERNAL_REF with this value, added if it is not there."""
        value = xml_text(value)
        if not self._references.get((kind, value)):
            reference_id = self._references[kind, value] = next(self._reference_ids)
            self._order.add(etree.Element("EXTERNAL_REF", EXT_REF_ID=reference_id, TYPE=kind, VALUE=value))
        return self._references[kind, value]

    def _update_last_used(self) -> None:
        newest = int(self._newest_id.removeprefix("a") or 0)
        if self._last_used is not None and newest > (integer(self._last_used.text) or 0):
            self._last_used.text = str(newest)


def _ending(number: int) -> str:
    return f" ({number})" if number > 1 else ""


def _in_time(order: etree._Element) -> Iterator[tuple[int, etree._Element]]:
    """The time slots that have a time; the first thing that is no time slot is the last: nothing goes after it."""
    for slot in order.iterchildren(etree.Element):
        value = integer(slot.get("TIME_VALUE"))
        if value is not None or slot.tag != "TIME_SLOT":
            yield value or 0, slot
        if slot.tag != "TIME_SLOT":
            return
