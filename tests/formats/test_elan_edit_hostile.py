"""Damaged and hostile EAF files end in a FormatError or a warning, never in anything else."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest
from lxml import etree

from signspot.errors import FormatError
from signspot.files.xml import parse_xml
from signspot.formats.elan import ElanDocument, TierOptions, _document_of
from tests.formats.eaf_generator import SCHEMAS, VERSIONS, load_schema, make_eaf, make_spottings, make_vocabulary

PIECES = (b"<", b">", b"&", b"\0", b"\xff", b'"', b"</TIER>", b"<!DOCTYPE a>", b"&#0;", b"<TIER/>", b"]]>", b"<!--")
ATTRIBUTE_VALUES = ("", "a1", "ts1", "-1", "abc", "9" * 40, "\U0001d800", "TIER", "2.7", "er1", " ")


def attempt(data: bytes, seed: int) -> ElanDocument | None:
    """Read, add and read again; None if the file was refused."""
    try:
        before = _document_of(parse_xml(data, "x.eaf", FormatError), "x.eaf")
    except FormatError as refused:
        assert "\n" not in str(refused)
        return None
    options = TierOptions(vocabulary=make_vocabulary(seed))
    after = before.add_spottings(make_spottings(seed, 4), options)
    assert _document_of(parse_xml(after.xml, "x.eaf", FormatError), "x.eaf").tiers == after.tiers
    assert set(before.tiers) <= set(after.tiers)
    return after


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            changed[at : at + rng.randint(1, 30)] = b""
        elif kind == 1:
            changed[at:at] = rng.choice(PIECES)
        elif kind == 2:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        else:
            source = rng.randrange(len(changed) + 1)
            changed[at:at] = changed[source : source + 60]
    return bytes(changed)


def mutated_tree(data: bytes, rng: random.Random) -> bytes:
    """Well-formed damage: attributes gone or wrong, elements moved, doubled, renamed or gone."""
    root = etree.fromstring(data)
    for _ in range(rng.randint(1, 6)):
        one = rng.choice(list(root.iter(etree.Element)))
        kind = rng.randrange(5)
        if kind == 0 and one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        elif kind == 1 and one.attrib:
            one.set(rng.choice(list(one.attrib)), rng.choice(ATTRIBUTE_VALUES))
        elif kind == 2 and one is not root:
            one.getparent().remove(one)
        elif kind == 3 and one is not root:
            rng.choice(list(root.iter(etree.Element))).append(etree.fromstring(etree.tostring(one, with_tail=False)))
        elif kind == 4:
            one.text = rng.choice(ATTRIBUTE_VALUES)
    return etree.tostring(root)


@pytest.mark.parametrize("mutate", [mutated_bytes, mutated_tree])
def test_mutated_files_are_read_or_refused(mutate: object, count: int = 1000) -> None:
    outcomes = []
    for seed in range(count):
        rng = random.Random(seed)
        outcomes.append(attempt(mutate(make_eaf(seed, 1 + seed % 4), rng), seed) is not None)
    assert sum(outcomes) > count // 20  # the mutations are not so wild that nothing is tested


def mutated_attributes(data: bytes, rng: random.Random) -> bytes:
    """Files that break the schema in their attributes, as old programs write them."""
    root = etree.fromstring(data)
    for _ in range(rng.randint(1, 6)):
        one = rng.choice([one for one in root.iter(etree.Element) if one is not root and one.attrib])
        one.set(rng.choice(list(one.attrib)), rng.choice(ATTRIBUTE_VALUES))
        del one.attrib[rng.choice(list(one.attrib))]
    return etree.tostring(root)


def test_files_that_were_invalid_before_get_no_new_violations() -> None:
    if not SCHEMAS.is_dir():
        pytest.skip("the EAF schemas are not on this computer")
    schemas = {version: load_schema(version) for version in VERSIONS}
    n_invalid = 0
    for seed in range(400):
        before = mutated_attributes(make_eaf(seed, 4), random.Random(seed))
        after = attempt(before, seed)
        assert after is not None
        violations = []
        for xml in (before, after.xml):
            root = etree.fromstring(xml)
            schema = schemas[root.get("FORMAT")]
            schema.validate(root)
            violations.append(Counter(error.message for error in schema.error_log))
        assert violations[1] <= violations[0]
        n_invalid += bool(violations[0])
    assert n_invalid > 200


@pytest.mark.soak
@pytest.mark.parametrize("mutate", [mutated_bytes, mutated_tree])
def test_many_mutated_files_are_read_or_refused(mutate: object) -> None:
    test_mutated_files_are_read_or_refused(mutate, 10_000)


@pytest.mark.parametrize(
    "body",
    [
        b"<TIER/>" * 20_000,
        b"<TIER TIER_ID='a' PARENT_REF='b'/><TIER TIER_ID='b' PARENT_REF='a'/>" * 5_000,
        b"".join(b"<TIER TIER_ID='%d' PARENT_REF='%d'/>" % (i, i + 1) for i in range(20_000)),
        b"".join(b"<TIER TIER_ID='signspot-%d'/>" % i for i in range(20_000)) + b"<TIER TIER_ID='signspot'/>",
        b"<TIER><ANNOTATION><REF_ANNOTATION ANNOTATION_ID='a' ANNOTATION_REF='a'/></ANNOTATION></TIER>" * 5_000,
        b"<TIME_ORDER>" + b"<TIME_SLOT TIME_SLOT_ID='ts9'/>" * 20_000 + b"</TIME_ORDER>",
        b"<HEADER><PROPERTY NAME='lastUsedAnnotationId'>999999999999999999</PROPERTY></HEADER>",
        b"<HEADER><PROPERTY NAME='lastUsedAnnotationId'>many</PROPERTY></HEADER>",
        b"<TIER>text<ANNOTATION>text<ALIGNABLE_ANNOTATION/>text</ANNOTATION><!--c--><?pi?></TIER>text",
    ],
)
def test_crafted_files_take_no_longer_than_two_seconds(body: bytes) -> None:
    data = b"<ANNOTATION_DOCUMENT>" + body + b"</ANNOTATION_DOCUMENT>"
    start = time.process_time()
    assert attempt(data, seed=1) is not None
    assert time.process_time() - start < 2 * 3  # three readings and an addition


def test_many_warnings_of_one_kind_are_one_line() -> None:
    tiers = b"".join(b"<TIER TIER_ID='%d' PARENT_REF='none'/>" % i for i in range(1000))
    tree = parse_xml(b"<ANNOTATION_DOCUMENT>" + tiers + b"</ANNOTATION_DOCUMENT>", "x", FormatError)
    assert _document_of(tree, "x").warnings == ("parent tiers that do not exist: 1000 (none, none, none, ...)",)
