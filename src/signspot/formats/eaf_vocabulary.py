"""Which controlled vocabulary of an ELAN file the glosses of a new tier belong to.

Linking is careful because ELAN is believed (not checked against ELAN itself) to find an external vocabulary by its
CV_ID inside the ECV and, on opening a file, to replace the values of linked annotations by the entries' own. A link to
the wrong vocabulary would then change glosses silently, so a vocabulary counts as the one given only if both its CV_ID
and the file name of its ECV agree, and an id that several vocabularies use is never linked by guessing which is meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from signspot.errors import FormatError
from signspot.formats.eaf_document import ElanDocument, ElanVocabulary
from signspot.formats.oddities import Oddities
from signspot.formats.vocabulary import ExternalVocabulary, VocabularyItem, shortened

_FIRST_VERSION_WITH_ENTRY_IDS = (2, 7)


@dataclass(frozen=True, slots=True)
class VocabularyLink:
    """The vocabulary of a tier; `new_ecv_url` is set if the file does not have it yet."""

    cv_id: str
    items: Mapping[str, VocabularyItem]  # by type id
    new_ecv_url: str = ""


def version_of(document: ElanDocument) -> tuple[int, ...]:
    """The EAF version as numbers; 3.0 where it is none."""
    parts = document.format_version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() and len(part) < 5 for part in parts) else (3, 0)


def one_list(given: ExternalVocabulary, document: ElanDocument | None) -> ExternalVocabulary:
    """The vocabulary of an ECV that the tiers of `document` use, or its only one; refused where that is not clear."""
    if not given.url or len(given.lists) < 2:  # a table has ids that say everything
        return given
    name = None if document is None else _tiers_use(document, _groups(given.items), given)
    if document is None or name is None:
        what = f"holds {len(given.lists)} vocabularies: {shortened(given.lists)}"
        fix = f"choose one by its name, such as --vocabulary '{given.source}#{next(filter(None, given.lists))}'"
        raise FormatError(given.source, what, fix)
    said = f"the vocabulary {name!r} is taken, which the tiers of {document.where} use"
    return replace(given.only(name), warnings=(*given.warnings, said))


def chosen_link(
    document: ElanDocument, type_ids: Sequence[str], given: ExternalVocabulary | None, odd: Oddities
) -> VocabularyLink | None:
    """The vocabulary that holds most of the type ids, if it can be linked; otherwise the reason is noted."""
    if not any(type_ids) or (given is None and not document.vocabularies):
        return None
    groups = _groups(given.items if given else [item for cv in document.vocabularies for item in cv.items])
    if not any(type_id in items for items in groups.values() for type_id in type_ids):
        odd.note("vocabularies that hold none of the type ids, not linked", given.source if given else "of the file")
        return None
    groups = _told_apart(document, groups, given, type_ids, odd)
    counts = {name: sum(type_id in items for type_id in type_ids) for name, items in groups.items()}
    name = max(counts, key=lambda name: counts[name])
    if not counts[name]:
        return None
    if not name:
        odd.note("vocabularies without a name, not linked", given.source if given else "of the file")
        return None
    if version_of(document) < _FIRST_VERSION_WITH_ENTRY_IDS:
        odd.note("formats without links to vocabulary entries", f"EAF {document.format_version}")
        return None
    if given is None:
        return VocabularyLink(name, groups[name])
    return _link_to_given(document, name, given, groups[name], odd)


def _link_to_given(
    document: ElanDocument, name: str, given: ExternalVocabulary, items: Mapping[str, VocabularyItem], odd: Oddities
) -> VocabularyLink | None:
    existing = next((cv for cv in document.vocabularies if cv.cv_id == name), None)
    if existing is not None and _is_same(existing, given, items):
        return VocabularyLink(name, items)
    if existing is not None:
        odd.note("vocabularies whose name belongs to another one in this file, not linked", name)
        return None
    if not given.url:
        odd.note("tables that ELAN cannot load as a vocabulary, not linked; give the ECV", given.source)
        return None
    return VocabularyLink(name, items, given.url)


def _is_same(existing: ElanVocabulary, given: ExternalVocabulary, items: Mapping[str, VocabularyItem]) -> bool:
    if existing.ecv_url:
        return not given.url or _file_name(existing.ecv_url) == _file_name(given.url)
    known = {item.type_id: item for item in existing.items}
    # Lists that count their entries have the same ids and other glosses.
    return all(i in known and _agree(known[i], item) for i, item in items.items())


def _agree(one: VocabularyItem, other: VocabularyItem) -> bool:
    glosses = {gloss.text for gloss in one.glosses}
    return not other.glosses or any(gloss.text in glosses for gloss in other.glosses)


def _tiers_use(
    document: ElanDocument, groups: Mapping[str, Mapping[str, VocabularyItem]], given: ExternalVocabulary | None
) -> str | None:
    """Which one of these vocabularies the linguistic types of the file's tiers refer to; None: none, or several."""
    used = {tier.vocabulary for tier in document.tiers}
    here = (cv for cv in document.vocabularies if cv.cv_id in used and cv.cv_id in groups)
    found = {cv.cv_id for cv in here if given is None or _is_same(cv, given, groups[cv.cv_id])}
    return found.pop() if len(found) == 1 else None


def _told_apart(
    document: ElanDocument,
    groups: dict[str, dict[str, VocabularyItem]],
    given: ExternalVocabulary | None,
    type_ids: Sequence[str],
    odd: Oddities,
) -> dict[str, dict[str, VocabularyItem]]:
    """The vocabularies without the type ids that may be of several of them, unless the tiers tell which is meant."""
    counts = Counter(type_id for items in groups.values() for type_id in items)
    shared = {type_id for type_id in type_ids if counts[type_id] > 1}
    if shared and (name := _tiers_use(document, groups, given)) is not None:
        return {name: groups[name]}
    for type_id in sorted(shared):
        odd.note("type ids that several vocabularies use, not linked; choose one vocabulary", type_id)
    return {name: {i: item for i, item in items.items() if i not in shared} for name, items in groups.items()}


def _groups(items: Sequence[VocabularyItem]) -> dict[str, dict[str, VocabularyItem]]:
    groups: dict[str, dict[str, VocabularyItem]] = {}
    for item in items:
        if item.type_id:
            groups.setdefault(item.vocabulary, {}).setdefault(item.type_id, item)
    return groups


def _file_name(url: str) -> str:
    return unquote(url).replace("\\", "/").rpartition("/")[2].casefold()
