"""Listing dictionaries and corpora: the door to dictionary_source and corpus_source."""

from __future__ import annotations

from signspot.formats.corpus_source import CorpusSource, TimedAnnotation, placed, read_corpus, write_corpus_manifest
from signspot.formats.dictionary_source import DictionarySource, read_dictionary, write_dictionary_manifest
from signspot.formats.places import VIDEO_SUFFIXES, Problem

__all__ = [
    "VIDEO_SUFFIXES",
    "CorpusSource",
    "DictionarySource",
    "Problem",
    "TimedAnnotation",
    "placed",
    "read_corpus",
    "read_dictionary",
    "write_corpus_manifest",
    "write_dictionary_manifest",
]
