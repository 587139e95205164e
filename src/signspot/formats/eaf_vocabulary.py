"""Which controlled vocabulary of an ELAN file the glosses of a new tier belong to.

Linking is careful because ELAN is believed (not checked against ELAN itself) to find an external vocabulary by its
CV_ID inside the ECV and, on opening a file, to replace the values of linked annotations by the entries' own. A link to
the wrong vocabulary would then change glosses silently, so a vocabulary counts as the one given only if both its CV_ID
and the file name of its ECV agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from signspot.formats.eaf_document import ElanDocument, ElanVocabulary
from signspot.formats.oddities import Oddities
from signspot.formats.vocabulary import ExternalVocabulary, VocabularyItem

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


def chosen_link(
    document: ElanDocument, type_ids: Sequence[str], given: ExternalVocabulary | None, odd: Oddities
) -> VocabularyLink | None:
    """The vocabulary that holds most of the type ids, if it can be linked; otherwise the reason is noted."""
    if not any(type_ids) or (given is None and not document.vocabularies):
        return None
    groups = _groups(given.items if given else [item for cv in document.vocabularies for item in cv.items])
    counts = {name: sum(type_id in items for type_id in type_ids) for name, items in groups.items()}
    name = max(counts, key=lambda name: counts[name], default="")
    if not counts.get(name):
        odd.note("vocabularies that hold none of the type ids, not linked", given.source if given else "of the file")
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
    return set(items) <= {item.type_id for item in existing.items}


def _groups(items: Sequence[VocabularyItem]) -> dict[str, dict[str, VocabularyItem]]:
    groups: dict[str, dict[str, VocabularyItem]] = {}
    for item in items:
        if item.type_id:
            groups.setdefault(item.vocabulary, {}).setdefault(item.type_id, item)
    return groups


def _file_name(url: str) -> str:
    return unquote(url).replace("\\", "/").rpartition("/")[2].casefold()
