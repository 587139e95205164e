"""Spottings become new tiers, and everything else stays as it was."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from datetime import datetime
from functools import cache
from pathlib import Path

import pympi
import pytest
from hypothesis import HealthCheck, given, settings
from lxml import etree

from signspot.domain.recordings import Word
from signspot.domain.results import Provenance, Spotting
from signspot.domain.time import Millis, MillisSpan
from signspot.errors import FormatError, InputError
from signspot.files.xml import parse_xml
from signspot.formats.elan import (
    ElanDocument,
    ElanMedia,
    TierOptions,
    _document_of,
    _ElanTier,
    _fresh_ids,
    new_eaf,
    one_list,
    read_eaf,
)
from signspot.formats.vocabularies import ExternalVocabulary, VocabularyItem, _LocalGloss
from tests.formats.eaf_generator import (
    SCHEMAS,
    VERSIONS,
    load_schema,
    make_eaf,
    make_spottings,
    make_vocabulary,
    seeds,
    sizes,
)

MINIMAL = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2020-01-01T00:00:00+00:00" FORMAT="{version}" VERSION="{version}">
    <HEADER MEDIA_FILE="" TIME_UNITS="{unit}">
        <MEDIA_DESCRIPTOR MEDIA_URL="file:///a.mp4" MIME_TYPE="video/mp4" TIME_ORIGIN="{origin}"/>
    </HEADER>
    <TIME_ORDER/>
{rest}</ANNOTATION_DOCUMENT>
"""
NAMED = {
    "TIME_SLOT": "TIME_SLOT_ID",
    "TIER": "TIER_ID",
    "LINGUISTIC_TYPE": "LINGUISTIC_TYPE_ID",
    "CONSTRAINT": "STEREOTYPE",
    "CONTROLLED_VOCABULARY": "CV_ID",
    "EXTERNAL_REF": "EXT_REF_ID",
}

many = settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def document(
    *, version: str = "3.0", unit: str = "milliseconds", origin: int = 0, rest: str = "", where: str = "x.eaf"
) -> ElanDocument:
    text = MINIMAL.format(version=version, unit=unit, origin=origin, rest=rest)
    return _document_of(parse_xml(text.encode(), where, FormatError), where)


def spotting(start: int, stop: int, word: str = "apple", *, cosine: float = 0.5, type_id: str = "") -> Spotting:
    return Spotting(
        video_id="v",
        span_ms=MillisSpan(Millis(start), Millis(stop)),
        frame=0,
        word=Word(word),
        entry_id="apple/1",
        type_id=type_id,
        cosine=cosine,
        provenance=Provenance(media_sha256="0", model="m", fingerprint="f", dictionary="d"),
    )


def vocabulary(url: str = "file:///D:/signs.ecv", cv_id: str = "BSL") -> ExternalVocabulary:
    glosses = (_LocalGloss("eng", "HOUSE-A"), _LocalGloss("nld", "HUIS-A"))
    return ExternalVocabulary("signs.ecv", (VocabularyItem(type_id="7", glosses=glosses, vocabulary=cv_id),), url)


@cache
def schema(version: str) -> etree.XMLSchema:
    if not SCHEMAS.is_dir():
        pytest.skip("the EAF schemas are not on this computer")
    return load_schema(version)


def is_valid(xml: bytes) -> bool:
    root = etree.fromstring(xml)
    return bool(schema(root.get("VERSION", "3.0")).validate(root))


def canonical(root: etree._Element) -> bytes:
    return etree.tostring(root.getroottree(), method="c14n", with_comments=True)


def names(root: etree._Element) -> set[tuple[str, str]]:
    return {(one.tag, one.get(NAMED[one.tag], "")) for one in root.iter(*NAMED)}


def without_additions(before: bytes, after: bytes) -> bytes:
    """The file as it was, from the file as it is: every new node taken out, the layout before it restored."""
    old, new = etree.fromstring(before), etree.fromstring(after)
    known = names(old)
    for one in [node for node in new.iter(*NAMED) if (node.tag, node.get(NAMED[node.tag], "")) not in known]:
        previous, tail, parent = one.getprevious(), one.tail, one.getparent()
        parent.remove(one)
        if previous is not None:
            previous.tail = tail
        elif not len(parent):
            assert not (parent.text or "").strip()
            parent.text = old.find(parent.tag).text
    last_used = "HEADER/PROPERTY[@NAME='lastUsedAnnotationId']"
    if new.find(last_used) is not None:
        new.find(last_used).text = old.find(last_used).text
    return canonical(new)


def serialised_tiers(xml: bytes) -> list[bytes]:
    return [etree.tostring(tier, with_tail=False) for tier in etree.fromstring(xml).iter("TIER")]


def new_tiers(before: ElanDocument, after: ElanDocument) -> list[str]:
    old = {tier.tier_id for tier in before.tiers}
    return [tier.tier_id for tier in after.tiers if tier.tier_id not in old]


@many
@given(seeds, sizes)
def test_tiers_are_added_to_any_document_and_nothing_else_changes(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int
) -> None:
    source = make_eaf(seed, size)
    assert is_valid(source)  # the generator is honest
    before = _document_of(parse_xml(source, "x.eaf", FormatError), "x.eaf")
    assert before.warnings == ()
    spottings, options = make_spottings(seed, size * 2), TierOptions(vocabulary=make_vocabulary(seed), language="lang0")

    after = before.add_spottings(spottings, options)

    assert is_valid(after.xml)
    assert without_additions(before.xml, after.xml) == canonical(etree.fromstring(source))
    assert serialised_tiers(source) == serialised_tiers(after.xml)[: len(before.tiers)]
    kept = {tier.tier_id for tier in before.tiers}
    assert tuple(tier for tier in after.tiers if tier.tier_id in kept) == before.tiers
    glosses = [t for t in after.tiers if t.tier_id in new_tiers(before, after) and not t.parent]
    check_times(before, glosses, spottings)
    check_with_pympi(after, tmp_path_factory.getbasetemp() / "pympi.eaf")


def check_times(before: ElanDocument, glosses: list[_ElanTier], spottings: list[Spotting]) -> None:
    origin = before.media[0].time_origin_ms if before.media else 0
    unit = {"milliseconds": 1, "PAL-frames": 40, "NTSC-frames": 1001 / 30}[before.time_unit]
    expected = []
    for one in spottings:
        if one.span_ms.stop - origin > 0:
            first = max(0, round((one.span_ms.start - origin) / unit))
            expected.append((first, max(first + 1, round((one.span_ms.stop - origin) / unit))))
    found = sorted((a.span_ms.start, a.span_ms.stop) for tier in glosses for a in tier.annotations if a.span_ms)
    assert found == sorted((round(first * unit), round(second * unit)) for first, second in expected)
    for tier in glosses:
        spans = [a.span_ms for a in tier.annotations if a.span_ms]
        assert len(spans) == len(tier.annotations)
        assert all(a.start < a.stop for a in spans)
        assert all(a.stop <= b.start for a, b in itertools.pairwise(spans))


def check_with_pympi(after: ElanDocument, path: Path) -> None:
    """A second reader sees the same annotations, on the tiers that were there and on ours."""
    path.write_bytes(after.xml)
    seen = pympi.Elan.Eaf(str(path))
    for tier in after.tiers:
        aligned, references, attributes, _ = seen.tiers[tier.tier_id]
        values = {key: value[2] for key, value in aligned.items()} | {key: v[1] for key, v in references.items()}
        assert values == {a.annotation_id: a.value.replace("\r\n", "\n") for a in tier.annotations}
        assert attributes.get("PARENT_REF", "") == tier.parent
    if after.time_unit == "milliseconds":
        for tier in after.tiers:
            for one in tier.annotations:
                if not one.parent_id and one.span_ms:
                    first, second, *_ = seen.tiers[tier.tier_id][0][one.annotation_id]
                    assert (seen.timeslots[first], seen.timeslots[second]) == (one.span_ms.start, one.span_ms.stop)


@settings(many, max_examples=150)
@given(seeds, sizes)
def test_two_additions_in_a_row_both_stay(seed: int, size: int) -> None:
    before = _document_of(parse_xml(make_eaf(seed, size), "x.eaf", FormatError), "x.eaf")
    spottings = make_spottings(seed, size)
    once = before.add_spottings(spottings)
    twice = once.add_spottings(spottings)
    assert is_valid(twice.xml)
    assert without_additions(once.xml, twice.xml) == canonical(etree.fromstring(once.xml))
    assert len(new_tiers(once, twice)) == len(new_tiers(before, once))
    ids = [a.annotation_id for tier in twice.tiers for a in tier.annotations]
    assert len(ids) == len(set(ids))
    # The types of the first addition serve the second.
    types = Counter(one.get("LINGUISTIC_TYPE_ID") for one in etree.fromstring(twice.xml).iter("LINGUISTIC_TYPE"))
    assert types == Counter(one.get("LINGUISTIC_TYPE_ID") for one in etree.fromstring(once.xml).iter("LINGUISTIC_TYPE"))


@settings(many, max_examples=150)
@given(seeds, sizes)
def test_unknown_elements_and_attributes_stay(seed: int, size: int) -> None:
    root = etree.fromstring(make_eaf(seed, size))
    for number, one in enumerate(list(root.iter(etree.Element))):
        one.set(f"FUTURE{number % 3}", "kept")
    etree.SubElement(root, "FUTURE_ELEMENT", a="1").text = "kept"
    root.insert(len(root) // 2, etree.Element("{http://x.org/ns}foreign"))
    before = _document_of(root.getroottree(), "x.eaf")
    after = before.add_spottings(make_spottings(seed, size))
    assert without_additions(before.xml, after.xml) == canonical(etree.fromstring(before.xml))


def test_the_given_document_is_untouched() -> None:
    before = document()
    xml = bytes(before.xml)
    before.add_spottings([spotting(0, 100)])
    assert before.xml == xml


def test_spottings_become_a_gloss_tier_with_confidence_and_source() -> None:
    after = document().add_spottings([spotting(400, 1040)])
    assert [tier.tier_id for tier in after.tiers] == ["signspot", "signspot-confidence", "signspot-source"]
    gloss, confidence, source = (tier.annotations[0] for tier in after.tiers)
    assert (gloss.value, gloss.span_ms) == ("apple", MillisSpan(Millis(400), Millis(1040)))
    assert confidence.value == "cosine 0.500"
    assert source.value == f"{spotting(400, 1040).spotting_id}; model m; dictionary d; entry apple/1"
    assert confidence.parent_id == source.parent_id == gloss.annotation_id
    assert confidence.span_ms == gloss.span_ms
    assert {tier.annotator for tier in after.tiers} == {"signspot"}


def test_glosses_without_notes_are_one_tier_in_the_time_of_the_file() -> None:
    glosses = [(MillisSpan.of(900, 1000), "b"), (MillisSpan.of(540, 900), "a")]
    (tier,) = document(origin=500).add_glosses(glosses, "truth").tiers
    assert tier.tier_id == "truth"
    assert [(one.span_ms, one.value) for one in tier.annotations] == [
        (MillisSpan.of(40, 400), "a"),
        (MillisSpan.of(400, 500), "b"),
    ]


def test_glosses_that_overlap_do_not_fit_one_tier() -> None:
    glosses = [(MillisSpan.of(0, 500), "a"), (MillisSpan.of(400, 600), "b")]
    with pytest.raises(InputError, match="overlap"):
        document().add_glosses(glosses, "truth")


def test_no_spottings_give_empty_tiers_since_nothing_found_is_an_answer() -> None:
    after = document().add_spottings([])
    assert [len(tier.annotations) for tier in after.tiers] == [0, 0, 0]
    assert is_valid(after.xml)


def test_time_origin_is_subtracted_from_media_times() -> None:
    before = document(origin=480)
    after = before.add_spottings([spotting(1000, 1640)])
    span = after.tiers[0].annotations[0].span_ms
    assert span == MillisSpan(Millis(520), Millis(1160))


def test_the_time_origin_of_the_searched_video_counts() -> None:
    other = ElanMedia("file:///b.mp4", time_origin_ms=-100)
    after = document(origin=480).add_spottings([spotting(1000, 1640)], TierOptions(media=other))
    assert after.tiers[0].annotations[0].span_ms == MillisSpan(Millis(1100), Millis(1740))


def test_spottings_before_the_annotated_part_are_counted_or_cut() -> None:
    after = document(origin=500).add_spottings([spotting(0, 500, "early"), spotting(400, 900, "cut")])
    assert [(a.value, a.span_ms) for a in after.tiers[0].annotations] == [("cut", MillisSpan(Millis(0), Millis(400)))]
    assert after.warnings == ("spottings before the annotated part of the video, left out: 1 (early)",)


def test_spottings_later_than_the_format_can_say_are_counted() -> None:
    after = document().add_spottings([spotting(2**32, 2**32 + 40)])
    assert after.tiers[0].annotations == ()
    assert after.warnings == ("spottings later than an EAF file can say, left out: 1 (apple)",)


def test_an_annotation_is_never_without_duration() -> None:
    span = document().add_spottings([spotting(100, 100)]).tiers[0].annotations[0].span_ms
    assert span == MillisSpan(Millis(100), Millis(101))


@pytest.mark.parametrize(("unit", "value"), [("PAL-frames", "25"), ("NTSC-frames", "30"), ("milliseconds", "1000")])
def test_times_are_written_in_the_unit_of_the_file(unit: str, value: str) -> None:
    after = document(unit=unit).add_spottings([spotting(1000, 2000)])
    assert etree.fromstring(after.xml).find("TIME_ORDER/TIME_SLOT").get("TIME_VALUE") == value
    assert abs(after.tiers[0].annotations[0].span_ms.start - 1000) <= 17


def test_overlapping_spottings_go_to_an_overflow_tier_and_the_surer_one_stays() -> None:
    spottings = [spotting(0, 600, "weak", cosine=0.4), spotting(300, 900, "sure", cosine=0.9)]
    after = document().add_spottings([*spottings, spotting(900, 1000, "next", cosine=0.1)])
    assert [t.tier_id for t in after.tiers if not t.parent] == ["signspot", "signspot (2)"]
    assert [a.value for a in after.tier("signspot").annotations] == ["sure", "next"]
    assert [a.value for a in after.tier("signspot (2)").annotations] == ["weak"]
    assert after.tier("signspot-confidence (2)").parent == "signspot (2)"


def test_a_spotting_without_a_number_as_cosine_comes_last() -> None:
    after = document().add_spottings([spotting(0, 9, "nan", cosine=math.nan), spotting(0, 9, "low", cosine=-0.9)])
    assert [a.value for a in after.tier("signspot").annotations] == ["low"]


def test_a_taken_name_gets_a_number_even_if_only_a_child_tier_is_taken() -> None:
    rest = (
        '    <TIER TIER_ID="signspot-source" LINGUISTIC_TYPE_REF="t"/>\n    <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t"/>\n'
    )
    after = document(rest=rest).add_spottings([])
    assert [t.tier_id for t in after.tiers[1:]] == ["signspot-2", "signspot-2-confidence", "signspot-2-source"]


def test_new_time_slots_stand_in_order_of_time_among_the_others() -> None:
    rest = "    <TIER TIER_ID='t' LINGUISTIC_TYPE_REF='x'/>\n"
    text = MINIMAL.format(version="3.0", unit="milliseconds", origin=0, rest=rest).replace(
        "<TIME_ORDER/>",
        '<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="100"/><TIME_SLOT TIME_SLOT_ID="ts2"/>'
        '<TIME_SLOT TIME_SLOT_ID="ts9" TIME_VALUE="500"/></TIME_ORDER>',
    )
    before = _document_of(parse_xml(text.encode(), "x", FormatError), "x")
    after = before.add_spottings([spotting(50, 100), spotting(200, 900)])
    slots = etree.fromstring(after.xml).find("TIME_ORDER")
    order = [(slot.get("TIME_SLOT_ID"), slot.get("TIME_VALUE")) for slot in slots]
    assert [slot for slot, _ in order] == ["ts10", "ts1", "ts2", "ts11", "ts12", "ts9", "ts13"]
    assert [time for _, time in order] == ["50", "100", None, "100", "200", "500", "900"]


def test_the_last_used_id_is_respected_and_updated(tmp_path: Path) -> None:
    new = new_eaf(tmp_path / "v.mp4", tmp_path / "v.eaf", date=datetime(2024, 1, 2))
    xml = new.xml.replace(b">0</PROPERTY>", b">41</PROPERTY>")
    after = _document_of(parse_xml(xml, "x", FormatError), "x").add_spottings([spotting(0, 9)])
    assert [t.annotations[0].annotation_id for t in after.tiers] == ["a42", "a43", "a44"]
    assert b'<PROPERTY NAME="lastUsedAnnotationId">44</PROPERTY>' in after.xml


@pytest.mark.parametrize("version", ["2.7", "3.0"])
def test_new_ids_never_take_the_place_of_lost_ones(version: str) -> None:
    rest = """<TIER TIER_ID="t" LINGUISTIC_TYPE_REF="x">
        <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" EXT_REF="er1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
            <ANNOTATION_VALUE/></ALIGNABLE_ANNOTATION></ANNOTATION>
        <ANNOTATION><REF_ANNOTATION ANNOTATION_ID="a2" ANNOTATION_REF="a3">
            <ANNOTATION_VALUE/></REF_ANNOTATION></ANNOTATION></TIER>"""
    before = document(version=version, rest=rest)
    after = before.add_spottings([spotting(0, 9, type_id="7")], TierOptions(vocabulary=vocabulary()))
    assert after.tiers[0] == before.tiers[0]
    assert after.tiers[1].annotations[0].annotation_id == "a4"


def test_a_last_used_id_beyond_all_counting_is_no_reason_for_ids_like_it(tmp_path: Path) -> None:
    new = new_eaf(tmp_path / "v.mp4", tmp_path / "v.eaf", date=datetime(2024, 1, 2))
    xml = new.xml.replace(b">0</PROPERTY>", b">999999999999</PROPERTY>")
    after = _document_of(parse_xml(xml, "x", FormatError), "x").add_spottings([spotting(0, 9)])
    assert after.tiers[0].annotations[0].annotation_id == "a1"


def test_new_ids_pass_over_the_largest_ones_in_use() -> None:
    ids = _fresh_ids("a", {"a999999999", "a1000000000", "b7", "a", "a1x"})
    assert [next(ids), next(ids)] == ["a1000000001", "a1000000002"]


def test_an_indented_file_stays_indented() -> None:
    after = document().add_spottings([spotting(0, 9)])
    lines = after.xml.decode().splitlines()
    assert '        <TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="9"/>' in lines
    assert "    </TIME_ORDER>" in lines
    assert '    <TIER TIER_ID="signspot" LINGUISTIC_TYPE_REF="signspot-gloss" ANNOTATOR="signspot">' in lines
    assert '            <ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">' in lines
    assert lines[-1] == "</ANNOTATION_DOCUMENT>"


@pytest.mark.parametrize("version", ["2.8", "3.0"])
def test_an_external_vocabulary_is_linked_so_that_elan_shows_it(version: str) -> None:
    found = [spotting(0, 9, "house", type_id="7"), spotting(10, 19)]
    after = document(version=version).add_spottings(found, TierOptions(vocabulary=vocabulary()))
    root = etree.fromstring(after.xml)
    assert root.xpath("//@CVE_REF") == ["7"]
    assert [(a.value, a.cve_ref) for a in after.tiers[0].annotations] == [("HOUSE-A", "7"), ("apple", "")]
    assert root.find("CONTROLLED_VOCABULARY").attrib == {"CV_ID": "BSL", "EXT_REF": "er1"}
    reference = {"EXT_REF_ID": "er1", "TYPE": "ecv", "VALUE": "file:///D:/signs.ecv"}
    assert root.find("EXTERNAL_REF").attrib == reference
    assert root.find("LINGUISTIC_TYPE").get("CONTROLLED_VOCABULARY_REF") == "BSL"
    assert is_valid(after.xml)


def test_the_gloss_is_in_the_language_asked_for() -> None:
    options = TierOptions(vocabulary=vocabulary(), language="nld")
    after = document().add_spottings([spotting(0, 9, "house", type_id="7")], options)
    assert after.tiers[0].annotations[0].value == "HUIS-A"


def test_eaf_2_7_names_the_entry_by_an_external_reference() -> None:
    spottings = [spotting(0, 9, type_id="7"), spotting(10, 19, type_id="7")]
    after = document(version="2.7").add_spottings(spottings, TierOptions(vocabulary=vocabulary()))
    root = etree.fromstring(after.xml)
    assert [a.cve_ref for a in after.tiers[0].annotations] == ["7", "7"]
    assert [ref.get("TYPE") for ref in root.iter("EXTERNAL_REF")] == ["ecv", "cve_id"]
    assert not root.xpath("//@CVE_REF")
    assert is_valid(after.xml)


ECV_IN_FILE = """    <CONTROLLED_VOCABULARY CV_ID="BSL" EXT_REF="er1"/>
    <EXTERNAL_REF EXT_REF_ID="er1" TYPE="ecv" VALUE="{url}"/>
"""


@pytest.mark.parametrize("url", ["https://bank.org/ecv/signs.ecv", "file:///C:/x/Signs.ECV"])
def test_a_vocabulary_the_file_has_already_is_used_again(url: str) -> None:
    before = document(rest=ECV_IN_FILE.format(url=url))
    after = before.add_spottings([spotting(0, 9, type_id="7")], TierOptions(vocabulary=vocabulary()))
    assert after.vocabularies == before.vocabularies
    assert after.xml.count(b"<EXTERNAL_REF") == 1
    assert after.tiers[0].annotations[0].cve_ref == "7"


def test_another_vocabulary_of_the_same_name_is_never_linked() -> None:
    before = document(rest=ECV_IN_FILE.format(url="https://bank.org/other.ecv"))
    after = before.add_spottings([spotting(0, 9, type_id="7")], TierOptions(vocabulary=vocabulary()))
    assert after.tiers[0].annotations[0].cve_ref == ""
    assert after.tiers[0].annotations[0].value == "HOUSE-A"
    assert after.warnings == ("vocabularies whose name belongs to another one in this file, not linked: 1 (BSL)",)


def test_a_table_gives_glosses_but_no_link_unless_the_file_has_its_vocabulary() -> None:
    options = TierOptions(vocabulary=vocabulary(url=""))
    alone = document().add_spottings([spotting(0, 9, type_id="7")], options)
    assert (alone.tiers[0].annotations[0].value, alone.tiers[0].annotations[0].cve_ref) == ("HOUSE-A", "")
    assert "give the ECV" in alone.warnings[0]
    rest = ECV_IN_FILE.format(url="https://bank.org/any.ecv")
    linked = document(rest=rest).add_spottings([spotting(0, 9, type_id="7")], options)
    assert linked.tiers[0].annotations[0].cve_ref == "7"


def test_a_vocabulary_that_stands_in_the_file_is_linked() -> None:
    rest = """    <LANGUAGE LANG_ID="eng"/>
    <CONTROLLED_VOCABULARY CV_ID="mine"><CV_ENTRY_ML CVE_ID="7"><CVE_VALUE LANG_REF="eng">HOUSE</CVE_VALUE>
    </CV_ENTRY_ML></CONTROLLED_VOCABULARY>
"""
    after = document(rest=rest).add_spottings([spotting(0, 9, type_id="7")], TierOptions(language="eng"))
    assert (after.tiers[0].annotations[0].value, after.tiers[0].annotations[0].cve_ref) == ("HOUSE", "7")
    assert after.tiers[0].language == "eng"
    assert is_valid(after.xml)


def lists(
    *names: str, glosses: tuple[str, ...] = ("TREE", "HOUSE"), url: str = "file:///D:/signs.ecv"
) -> ExternalVocabulary:
    """An ECV whose lists all count their entries from 1, as those of the BSL Corpus do."""
    items = (
        VocabularyItem(type_id=str(number), glosses=(_LocalGloss("eng", f"{gloss} of {name}"),), vocabulary=name)
        for name in names
        for number, gloss in enumerate(("TREE", "HOUSE"), start=1)
    )
    return ExternalVocabulary("signs.ecv", tuple(items), url)


def used_by_a_tier(name: str, url: str = "https://x.org/signs.ecv") -> str:
    return f"""    <TIER TIER_ID="mine" LINGUISTIC_TYPE_REF="t"/>
    <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t" CONTROLLED_VOCABULARY_REF="{name}"/>
    <CONTROLLED_VOCABULARY CV_ID="mouth" EXT_REF="er1"/>
    <CONTROLLED_VOCABULARY CV_ID="nouns" EXT_REF="er1"/>
    <EXTERNAL_REF EXT_REF_ID="er1" TYPE="ecv" VALUE="{url}"/>
"""


def test_an_id_that_several_vocabularies_use_is_not_linked_by_guessing() -> None:
    spottings = [spotting(0, 9, "house", type_id="2")]
    after = document().add_spottings(spottings, TierOptions(vocabulary=lists("mouth", "nouns")))
    assert (after.tiers[0].annotations[0].value, after.tiers[0].annotations[0].cve_ref) == ("house", "")
    assert after.vocabularies == ()
    what = "type ids that several vocabularies use, not linked; choose one vocabulary: 1 (2)"
    assert after.warnings == (what,)


def test_the_vocabulary_of_the_tiers_type_decides_what_an_id_means() -> None:
    spottings = [spotting(0, 9, "house", type_id="2")]
    after = document(rest=used_by_a_tier("nouns")).add_spottings(
        spottings, TierOptions(vocabulary=lists("mouth", "nouns"))
    )
    gloss = after.tier("signspot")
    assert (gloss.annotations[0].value, gloss.annotations[0].cve_ref) == ("HOUSE of nouns", "2")
    assert gloss.vocabulary == "nouns"
    assert len(after.vocabularies) == 2
    assert after.warnings == ()
    assert is_valid(after.xml)


@pytest.mark.parametrize(
    "rest",
    ["", used_by_a_tier("other"), used_by_a_tier("nouns", url="https://x.org/other.ecv")],
    ids=["no tier", "a tier of another vocabulary", "a vocabulary of the same name in another file"],
)
def test_one_of_several_vocabularies_must_be_chosen(rest: str) -> None:
    known = lists("mouth", "nouns")
    fix = "choose one by its name, such as --vocabulary 'signs.ecv#mouth'"
    with pytest.raises(FormatError) as refused:
        one_list(known, document(rest=rest))
    assert str(refused.value) == f"signs.ecv: holds 2 vocabularies: mouth, nouns: {fix}"


def test_the_vocabulary_of_the_tiers_is_chosen_and_said() -> None:
    chosen = one_list(lists("mouth", "nouns"), document(rest=used_by_a_tier("nouns")))
    assert chosen.lists == ("nouns",)
    assert chosen.warnings == ("the vocabulary 'nouns' is taken, which the tiers of x.eaf use",)


def test_a_single_vocabulary_and_a_table_need_no_choice() -> None:
    single, table = lists("nouns"), lists("BSL", "NGT", url="")
    assert one_list(single, None) is single
    assert one_list(table, None) is table


def test_a_list_of_the_same_name_and_ids_with_other_glosses_is_another_one() -> None:
    rest = """    <LANGUAGE LANG_ID="eng"/>
    <CONTROLLED_VOCABULARY CV_ID="nouns"><CV_ENTRY_ML CVE_ID="1"><CVE_VALUE LANG_REF="eng">NA</CVE_VALUE></CV_ENTRY_ML>
    <CV_ENTRY_ML CVE_ID="2"><CVE_VALUE LANG_REF="eng">{gloss}</CVE_VALUE></CV_ENTRY_ML></CONTROLLED_VOCABULARY>
"""
    options, spottings = TierOptions(vocabulary=lists("nouns")), [spotting(0, 9, "house", type_id="2")]
    after = document(rest=rest.format(gloss="Ambiguous")).add_spottings(spottings, options)
    assert (after.tiers[0].annotations[0].value, after.tiers[0].annotations[0].cve_ref) == ("HOUSE of nouns", "")


def test_type_ids_nobody_knows_are_not_written_as_links() -> None:
    after = document().add_spottings([spotting(0, 9, type_id="9")], TierOptions(vocabulary=vocabulary()))
    assert b"CVE_REF" not in after.xml
    assert after.warnings == ("vocabularies that hold none of the type ids, not linked: 1 (signs.ecv)",)


def test_formats_before_2_7_get_tiers_without_links() -> None:
    after = document(version="2.5").add_spottings([spotting(0, 9, type_id="7")], TierOptions(vocabulary=vocabulary()))
    assert after.tiers[0].annotations[0].cve_ref == ""
    assert "formats without links" in after.warnings[0]


@pytest.mark.parametrize(("word", "written"), [("a\x0bb", "a\ufffdb"), ("\ud800", "\ufffd"), ("\uffff", "\ufffd")])
def test_characters_xml_forbids_are_replaced_visibly(word: str, written: str) -> None:
    assert document().add_spottings([spotting(0, 9, word)]).tiers[0].annotations[0].value == written


@pytest.mark.parametrize("word", ["\U0001d800\U0001d9ff", "\ue000", "e\u0301", "\u202eabc", "x" * 10_000, "a\r\nb"])
def test_odd_words_come_back_as_they_were(word: str, tmp_path: Path) -> None:
    document().add_spottings([spotting(0, 9, word)]).write(tmp_path / "x.eaf")
    assert read_eaf(tmp_path / "x.eaf").tiers[0].annotations[0].value == word


def test_a_tier_may_have_quotes_in_its_name() -> None:
    name = """R "dominant" & 'left' <x>"""
    after = document().add_spottings([spotting(0, 9)], TierOptions(tier=name))
    assert after.tiers[0].tier_id == name
    assert after.tiers[1].parent == name


def test_a_tier_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="the name of the new tier is empty"):
        TierOptions(tier="  ")


def test_a_type_of_our_name_with_other_attributes_is_left_alone() -> None:
    rest = '    <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="signspot-gloss" TIME_ALIGNABLE="false"/>\n'
    after = document(rest=rest).add_spottings([spotting(0, 9)])
    assert after.tiers[0].linguistic_type == "signspot-gloss-2"


def test_a_lost_type_of_our_name_is_not_replaced_by_ours() -> None:
    rest = '    <TIER TIER_ID="mine" LINGUISTIC_TYPE_REF="signspot-gloss"/>\n'
    after = document(rest=rest).add_spottings([spotting(0, 9)])
    assert [tier.linguistic_type for tier in after.tiers[:2]] == ["signspot-gloss", "signspot-gloss-2"]


def test_a_file_without_time_order_gets_one() -> None:
    text = MINIMAL.format(version="3.0", unit="milliseconds", origin=0, rest="").replace("    <TIME_ORDER/>\n", "")
    after = _document_of(parse_xml(text.encode(), "x", FormatError), "x").add_spottings([spotting(0, 9)])
    assert is_valid(after.xml)
    assert after.tiers[0].annotations[0].span_ms == MillisSpan(Millis(0), Millis(9))


def test_a_file_that_would_grow_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signspot.formats.elan.MAX_XML_BYTES", 3000)
    with pytest.raises(FormatError, match=r"would grow beyond .* with 50 spottings: ask for fewer words"):
        document().add_spottings([spotting(i * 10, i * 10 + 5) for i in range(50)])


def schema_errors(document: ElanDocument) -> list[str]:
    known = schema(document.format_version if document.format_version in VERSIONS else "3.0")
    known.validate(etree.fromstring(document.xml))
    return [error.message for error in known.error_log]


SOUND = """<ANNOTATION_DOCUMENT AUTHOR="" DATE="2020-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0">
    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>
    <TIME_ORDER>
        <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/><TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="9"/></TIME_ORDER>
    <TIER TIER_ID="gloss" LINGUISTIC_TYPE_REF="t"><ANNOTATION>
        <ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2"><ANNOTATION_VALUE/>
        </ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
    <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t"/>
    <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="signspot-note" TIME_ALIGNABLE="false" GRAPHIC_REFERENCES="false" \
CONSTRAINTS="Symbolic_Association"/>
    <LOCALE LANGUAGE_CODE="en"/>
    <LANGUAGE LANG_ID="eng"/>
    <CONSTRAINT STEREOTYPE="Symbolic_Association" DESCRIPTION="d"/>
    <CONTROLLED_VOCABULARY CV_ID="BSL">
        <CV_ENTRY_ML CVE_ID="7"><CVE_VALUE LANG_REF="eng">HOUSE-A</CVE_VALUE></CV_ENTRY_ML></CONTROLLED_VOCABULARY>
</ANNOTATION_DOCUMENT>
"""
TYPE, SLOT = '<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t"/>', '<TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/>'
TIME_ORDER = SOUND[SOUND.index("<TIME_ORDER>") : SOUND.index("    <TIER ")]


@pytest.mark.parametrize("linked", [None, "in the file", "new"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"ts1"', '"1"'),
        ('ANNOTATION_ID="a1"', 'ANNOTATION_ID="1 x"'),
        ("<ANNOTATION_VALUE/>", ""),
        ('DATE="2020-01-01T00:00:00+00:00"', 'DATE="today"'),
        ('TIME_UNITS="milliseconds"', 'TIME_UNITS="weeks"'),
        ('    <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>\n', ""),
        ("<HEADER ", "<HEADER/><HEADER "),
        (TIME_ORDER, ""),
        ("<TIME_ORDER>", "<FUTURE/><TIME_ORDER>"),
        ("<TIME_ORDER>", "<TIME_ORDER><FUTURE/>"),
        (SLOT, f"{SLOT}<FUTURE/>"),
        ("<TIER ", "<FUTURE/><TIER "),
        ("<TIER ", f"{TYPE}<TIER "),
        ("<TIER ", '<TIER TIER_ID="gloss" LINGUISTIC_TYPE_REF="none" PARENT_REF="lost" ANNOTATOR=""/><TIER '),
        (TYPE, ""),
        (TYPE, f"{TYPE}{TYPE}"),
        (TYPE, f'<LOCALE LANGUAGE_CODE="nl"/>{TYPE}'),
        (TYPE, f'<CONSTRAINT STEREOTYPE="Included_In"/>{TYPE}'),
        ("<LOCALE ", "<FUTURE/><LOCALE "),
        ("<LANGUAGE ", '<CONSTRAINT STEREOTYPE="Included_In"/><LANGUAGE '),
        ("<CONSTRAINT ", '<EXTERNAL_REF EXT_REF_ID="er1" TYPE="ecv" VALUE="x"/><CONSTRAINT '),
        ("</ANNOTATION_DOCUMENT>", "<TIER/></ANNOTATION_DOCUMENT>"),
        ('FORMAT="3.0" VERSION="3.0"', 'FORMAT="2.7" VERSION="2.7"'),
        ('FORMAT="3.0" VERSION="3.0"', 'VERSION="2.7"'),
    ],
)
def test_a_file_that_is_not_valid_gets_no_further_from_being_so(old: str, new: str, linked: str | None) -> None:
    assert old in SOUND
    sound, before = (
        _document_of(parse_xml(text.encode(), "x.eaf", FormatError), "x.eaf")
        for text in (SOUND, SOUND.replace(old, new))
    )
    assert schema_errors(sound) == []
    known = schema_errors(before)
    assert known
    spottings = [spotting(0, 9, type_id="7"), spotting(5, 12), spotting(20, 30)]
    given = {None: None, "in the file": vocabulary(), "new": vocabulary(cv_id="other")}[linked]
    after = before.add_spottings(spottings, TierOptions(vocabulary=given, language="eng"))
    assert len(schema_errors(after)) <= len(known)
    if "<TIME_ORDER>" in before.xml.decode():
        assert without_additions(before.xml, after.xml) == canonical(etree.fromstring(before.xml))
    added = [a for tier in after.tiers for a in tier.annotations if tier.tier_id in ("signspot", "signspot (2)")]
    assert [a.span_ms for a in added] == [MillisSpan.of(0, 9), MillisSpan.of(20, 30), MillisSpan.of(5, 12)]
    assert added[0].cve_ref == "7"


def damaged(rng: random.Random, source: bytes) -> bytes:
    """The same file with a few elements moved, lost, doubled, renamed or given other attributes."""
    root = etree.fromstring(source)
    for _ in range(rng.randint(1, 3)):
        one = rng.choice(list(root.iter(etree.Element)))
        parent, how = one.getparent(), rng.choice(("move", "lose", "double", "rename", "attribute", "no attribute"))
        if how.endswith("attribute") and one.attrib:
            name = rng.choice(list(one.attrib))
            one.set(name, rng.choice(("1x", "", "x y", "a1", "ts1", "signspot-note")))
            if how == "no attribute":
                del one.attrib[name]
        elif parent is not None and how == "double":
            parent.insert(parent.index(one), etree.fromstring(etree.tostring(one, with_tail=False)))
        elif parent is not None and how in ("move", "lose"):
            parent.remove(one)
            if how == "move":
                parent.insert(rng.randint(0, len(parent)), one)
        elif parent is not None and how == "rename":
            one.tag = rng.choice(("FUTURE", "TIER", "HEADER", "CONSTRAINT", "LOCALE"))
    return etree.tostring(root)


@settings(many, max_examples=300)
@given(seeds, sizes)
def test_no_damage_makes_what_is_added_invalid(seed: int, size: int) -> None:
    rng = random.Random(seed)
    source = damaged(rng, rng.choice((SOUND.encode(), make_eaf(seed, size))))
    before = _document_of(parse_xml(source, "x.eaf", FormatError), "x.eaf")
    options = TierOptions(vocabulary=rng.choice((None, vocabulary(), make_vocabulary(seed))), language="eng")
    after = before.add_spottings(make_spottings(seed, size), options)
    assert len(schema_errors(after)) <= len(schema_errors(before))
