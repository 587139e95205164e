"""Whole EAF documents with everything the schemas of 2.7, 2.8 and 3.0 allow, made from a seed and a size."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from lxml import etree

from signspot.domain.recordings import Word
from signspot.domain.results import Presence, Provenance, Spotting
from signspot.domain.time import Millis, MillisSpan
from signspot.formats.vocabularies import ExternalVocabulary, VocabularyItem, _LocalGloss

SCHEMAS = Path("/work/shared/data/eaf_schema")
VERSIONS = ("2.7", "2.8", "3.0")
XSI = "http://www.w3.org/2001/XMLSchema-instance"
CONSTRAINTS = ("Time_Subdivision", "Symbolic_Subdivision", "Symbolic_Association", "Included_In")
REF_KINDS = ("iso12620", "ecv", "cve_id", "lexen_id", "resource_url")
TEXTS = (
    "HOUSE-A", "", " ", "haus", "e\u0301", "\u00e9", "\u202eabc", "بيت", "\U0001d800\U0001d9ff", "\ue000\ue0e6",
    'a "quoted" <tag> & more', "two\nlines", "tab\there", "]]>", "\r", "x" * 300, "\u00a0", "'", "a--b", "=1+1",
)  # fmt: skip


class _StubXmlNamespace(etree.Resolver):
    """Answers the schemas' import of xml.xsd without a network."""

    def resolve(self, system_url: str, public_id: str, context: object) -> object:
        if "xml.xsd" in (system_url or ""):
            return self.resolve_string(
                '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" '
                'targetNamespace="http://www.w3.org/XML/1998/namespace">'
                '<xs:attribute name="lang" type="xs:language"/></xs:schema>',
                context,
            )
        return None


def load_schema(version: str) -> etree.XMLSchema:
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_StubXmlNamespace())
    return etree.XMLSchema(etree.parse(str(SCHEMAS / f"EAFv{version}.xsd"), parser))


@dataclass
class Maker:
    """Builds one document; every choice comes from `rng`."""

    rng: random.Random
    size: int
    version: str
    ids: int = 0
    slots: list[str] = field(default_factory=list)
    annotations: list[str] = field(default_factory=list)
    root: etree._Element = field(init=False)

    def maybe(self) -> bool:
        return self.rng.random() < 0.5

    def few(self) -> range:
        return range(self.rng.randint(0, self.size))

    def text(self) -> str:
        return self.rng.choice(TEXTS) + self.rng.choice(("", "", "1", "é"))

    def new_id(self, prefix: str) -> str:
        self.ids += self.rng.randint(1, 3)
        return f"{prefix}{self.ids}"

    def modern(self) -> bool:
        return self.version != "2.7"

    def make(self) -> bytes:
        self.root = etree.Element("ANNOTATION_DOCUMENT", nsmap={"xsi": XSI})
        self.root.set("AUTHOR", self.text())
        self.root.set("DATE", "2020-02-29T12:00:00+01:00")
        self.root.set("VERSION", self.version)
        self.root.set("FORMAT", self.version)
        self.root.set(f"{{{XSI}}}noNamespaceSchemaLocation", f"http://www.mpi.nl/tools/elan/EAFv{self.version}.xsd")
        self.languages = [f"lang{i}" for i in range(1 + self.rng.randint(0, 2))] if self.modern() else []
        self.refs = [(self.new_id("er"), kind) for kind in REF_KINDS if self.maybe()]
        self.cvs = [f"cv {i} {self.text()}" for i in self.few()]
        self.lexica = [self.new_id("lr") for _ in self.few()]
        self.locales = ["en", "nl"][: self.rng.randint(0, 2)]
        self.head()
        order = etree.SubElement(self.root, "TIME_ORDER")
        self.tiers()
        self.time_order(order)
        self.tail()
        self.decorate()
        return etree.tostring(self.root.getroottree(), encoding="UTF-8", xml_declaration=True)

    def head(self) -> None:
        if self.modern():
            for _ in self.few():
                etree.SubElement(self.root, "LICENSE", LICENSE_URL="https://x.org/by").text = self.text()
        header = etree.SubElement(self.root, "HEADER")
        if self.maybe():
            units = ("milliseconds", "milliseconds", "PAL-frames", "NTSC-frames")
            header.attrib.update({"MEDIA_FILE": self.text(), "TIME_UNITS": self.rng.choice(units)})
        for i in self.few():
            media = etree.SubElement(
                header, "MEDIA_DESCRIPTOR", MEDIA_URL=f"file:///C:/v {i}.mp4", MIME_TYPE="video/mp4"
            )
            if self.maybe():
                media.set("TIME_ORIGIN", str(self.rng.choice((0, 1, 480, -700, 2500))))
            if self.maybe():
                media.attrib.update({"RELATIVE_MEDIA_URL": f"../v%20{i}.mp4", "EXTRACTED_FROM": "file:///x.mpg"})
        for i in self.few():
            linked = etree.SubElement(
                header, "LINKED_FILE_DESCRIPTOR", LINK_URL=f"file:///{i}.csv", MIME_TYPE="unknown"
            )
            linked.attrib.update(
                {"RELATIVE_LINK_URL": "./x.csv", "TIME_ORIGIN": "3", "ASSOCIATED_WITH": "file:///v.mp4"}
            )
        for _ in self.few():
            etree.SubElement(header, "PROPERTY", NAME=self.text()).text = self.text()
        if self.maybe():
            last = etree.SubElement(header, "PROPERTY", NAME="lastUsedAnnotationId")
            last.text = str(self.rng.choice((0, 5, 4000)))

    def tiers(self) -> None:
        self.types: dict[str, str] = {}
        used: dict[str, list[etree._Element]] = {}
        for number in self.few():
            parent = self.rng.choice([*used, ""])
            kind = self.rng.choice(CONSTRAINTS) if parent else ""
            if any(a.tag == "REF_ANNOTATION" for a in used.get(parent, ())):
                kind = self.rng.choice(CONSTRAINTS[1:3])  # nothing is aligned below what is not
            names = ("signspot", "signspot-source", "signspot (2)", 'with "quotes"', "R-gloss")
            name = self.rng.choice(names) if self.maybe() else f"tier {number} {self.text()}"
            if name in used:
                continue
            tier = etree.SubElement(self.root, "TIER", TIER_ID=name, LINGUISTIC_TYPE_REF=self.type_for(kind))
            if parent:
                tier.set("PARENT_REF", parent)
            self.decorate_tier(tier)
            used[name] = self.fill(tier, kind, used.get(parent, []))

    def type_for(self, kind: str) -> str:
        name = self.rng.choice((f"type {kind}", f"other {kind}"))
        if not kind and self.maybe():
            name = "signspot-gloss"
        if kind == "Symbolic_Association" and self.maybe():
            name = "signspot-note"
        self.types[name] = kind
        return name

    def decorate_tier(self, tier: etree._Element) -> None:
        if self.maybe():
            tier.attrib.update({"PARTICIPANT": self.text(), "ANNOTATOR": self.text()})
        if self.locales and self.maybe():
            tier.set("DEFAULT_LOCALE", self.locales[0])
        if self.languages and self.maybe():
            tier.set("LANG_REF", self.rng.choice(self.languages))
        if self.modern() and self.refs and self.maybe():
            tier.set("EXT_REF", self.refs[0][0])

    def fill(self, tier: etree._Element, kind: str, parents: list[etree._Element]) -> list[etree._Element]:
        made: list[etree._Element] = []
        if kind in ("Symbolic_Association", "Symbolic_Subdivision"):
            for parent in parents:
                previous = ""
                for _ in range(1 if kind == "Symbolic_Association" else self.rng.randint(0, 3)):
                    one = self.annotation(tier, "REF_ANNOTATION")
                    one.set("ANNOTATION_REF", parent.get("ANNOTATION_ID", ""))
                    if previous:
                        one.set("PREVIOUS_ANNOTATION", previous)
                    previous = one.get("ANNOTATION_ID", "")
                    made.append(one)
            return made
        for _ in self.few():
            one = self.annotation(tier, "ALIGNABLE_ANNOTATION")
            first, second = self.new_id("ts"), self.new_id("ts")
            self.slots += [first, second]
            one.attrib.update({"TIME_SLOT_REF1": first, "TIME_SLOT_REF2": second})
            if self.maybe():
                one.set("SVG_REF", self.text())
            made.append(one)
        return made

    def annotation(self, tier: etree._Element, tag: str) -> etree._Element:
        one = etree.SubElement(etree.SubElement(tier, "ANNOTATION"), tag)
        one.set("ANNOTATION_ID", self.new_id(self.rng.choice(("a", "a", "ann_", "TIE1a"))))
        self.annotations.append(one.get("ANNOTATION_ID", ""))
        if self.refs and self.maybe():
            one.set("EXT_REF", " ".join(ref for ref, _ in self.refs[:2]))
        if self.modern() and self.maybe():
            one.set("CVE_REF", self.rng.choice(("cveid0", "7", "x y")))
            one.set("LANG_REF", self.languages[0])
        value = etree.SubElement(one, "ANNOTATION_VALUE")
        value.text = self.text()
        if self.rng.random() < 0.05:
            comment = etree.Comment("inside")
            value.append(comment)
            comment.tail = self.text()
        return one

    def time_order(self, order: etree._Element) -> None:
        times = sorted(self.rng.randint(0, 6000) for _ in self.slots)
        for slot, time in zip(self.slots, times, strict=True):
            one = etree.SubElement(order, "TIME_SLOT", TIME_SLOT_ID=slot)
            if self.rng.random() < 0.8:
                one.set("TIME_VALUE", str(time))

    def tail(self) -> None:
        for name, kind in self.types.items():
            one = etree.SubElement(self.root, "LINGUISTIC_TYPE", LINGUISTIC_TYPE_ID=name)
            one.set("TIME_ALIGNABLE", "false" if kind.startswith("Symbolic") else "true")
            if kind:
                one.set("CONSTRAINTS", kind)
            if self.maybe():
                one.set("GRAPHIC_REFERENCES", "false")
            if self.cvs and self.maybe():
                one.set("CONTROLLED_VOCABULARY_REF", self.cvs[0])
            if self.lexica and self.maybe():
                one.set("LEXICON_REF", self.lexica[0])
            if self.refs and self.maybe():
                one.set("EXT_REF", self.refs[-1][0])
        for locale in self.locales:
            etree.SubElement(self.root, "LOCALE", LANGUAGE_CODE=locale, COUNTRY_CODE="X", VARIANT=self.text())
        for language in self.languages:
            etree.SubElement(self.root, "LANGUAGE", LANG_ID=language, LANG_DEF="http://x", LANG_LABEL=self.text())
        kinds = {kind for kind in self.types.values() if kind} | {kind for kind in CONSTRAINTS if self.maybe()}
        for kind in sorted(kinds):
            etree.SubElement(self.root, "CONSTRAINT", STEREOTYPE=kind, DESCRIPTION=self.text())
        for cv in self.cvs:
            self.vocabulary(cv)
        for lexicon in self.lexica:
            names = ("NAME", "TYPE", "URL", "LEXICON_ID", "LEXICON_NAME", "DATCAT_ID", "DATCAT_NAME")
            etree.SubElement(self.root, "LEXICON_REF", LEX_REF_ID=lexicon, **{name: self.text() for name in names})
        if self.version == "3.0":
            self.links()
        for ref, kind in self.refs:
            value = "http://x.org/signs.ecv" if kind == "ecv" else self.text()
            etree.SubElement(self.root, "EXTERNAL_REF", EXT_REF_ID=ref, TYPE=kind, VALUE=value)

    def vocabulary(self, name: str) -> None:
        cv = etree.SubElement(self.root, "CONTROLLED_VOCABULARY", CV_ID=name)
        ecv = next((ref for ref, kind in self.refs if kind == "ecv"), None)
        if ecv and self.maybe():
            cv.set("EXT_REF", ecv)
            return
        if not self.modern():
            cv.set("DESCRIPTION", self.text())
            for _ in self.few():
                etree.SubElement(cv, "CV_ENTRY", DESCRIPTION=self.text()).text = self.text()
            return
        etree.SubElement(cv, "DESCRIPTION", LANG_REF=self.languages[0]).text = self.text()
        for i in self.few():
            entry = etree.SubElement(cv, "CV_ENTRY_ML", CVE_ID=f"cveid{i}")
            for language in self.languages:
                value = etree.SubElement(entry, "CVE_VALUE", LANG_REF=language, DESCRIPTION=self.text())
                value.text = self.text()

    def links(self) -> None:
        for _ in self.few():
            links = etree.SubElement(
                self.root, "REF_LINK_SET", LINK_SET_ID=self.new_id("rls"), LINK_SET_NAME=self.text()
            )
            for _ in self.few():
                if not self.annotations:
                    break
                one, two = self.rng.choice(self.annotations), self.rng.choice(self.annotations)
                cross = etree.SubElement(links, "CROSS_REF_LINK", REF1=one, REF2=two, REF_LINK_ID=self.new_id("crl"))
                cross.attrib.update({"DIRECTIONALITY": "undirected", "REF_LINK_NAME": self.text(), "CVE_REF": "cveid0"})
                group = etree.SubElement(links, "GROUP_REF_LINK", REFS=f"{one} {two}", REF_LINK_ID=self.new_id("grl"))
                group.attrib.update({"REF_TYPE": self.text(), "LANG_REF": self.languages[0]})

    def decorate(self) -> None:
        """Comments and layout, which no schema sees."""
        if self.maybe():
            etree.indent(self.root, space=self.rng.choice(("    ", "\t", "")))
        for child in list(self.root):
            if self.rng.random() < 0.1:
                comment = etree.Comment(" kept ")
                comment.tail = "\n    "
                child.addprevious(comment)
        if self.maybe():
            self.root.addprevious(etree.Comment("before"))
            self.root.addnext(etree.ProcessingInstruction("after", "all"))
            self.root.addnext(etree.Comment("and more"))


def make_eaf(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    return Maker(rng, size, rng.choice(VERSIONS)).make()


def make_spottings(seed: int, count: int) -> list[Spotting]:
    rng = random.Random(seed)
    provenance = Provenance(media_sha256="0", model="m \x00 1", fingerprint="f", dictionary='d "x" <y>')
    words = ("apple", "house", "\U0001d800", "\ue0e6", "a\x0bb", "x" * 200, "\ud800", "\ufffe")
    spottings = []
    for _ in range(count):
        start = rng.randint(0, 5000)
        spottings.append(
            Spotting(
                video_id="v",
                span_ms=MillisSpan(Millis(start), Millis(start + rng.choice((0, 1, 40, 640)))),
                frame=start // 40,
                word=Word(rng.choice(words)),
                entry_id=f"e{rng.randint(0, 5)}",
                variant=rng.choice(("", "2")),
                type_id=rng.choice(("", "7", "cveid0", "cveid1", "nowhere")),
                cosine=rng.choice((float("nan"), rng.uniform(-1, 1), 0.5)),
                presence=rng.choice((None, Presence(0.25, "c"))),
                provenance=provenance,
            )
        )
    return spottings


def make_vocabulary(seed: int) -> ExternalVocabulary | None:
    rng = random.Random(seed)
    if rng.random() < 0.4:
        return None
    items = tuple(
        VocabularyItem(type_id=type_id, glosses=(_LocalGloss("lang0", f"GLOSS-{type_id}"),), vocabulary=cv)
        for cv in ("BSL", "cv 0 haus")
        for type_id in ("7", "cveid0", "x y")
        if rng.random() < 0.7
    )
    return ExternalVocabulary("signs.ecv", items, rng.choice(("file:///D:/my lists/signs.ecv", "")))


seeds = st.integers(0, 2**40)
sizes = st.integers(0, 6)
