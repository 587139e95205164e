"""One vector per dictionary entry: from its clip, or, where there is none, from vectors stored with the dictionary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from signspot.domain.dictionary import Dictionary, Entry
from signspot.domain.tracks import Embedder, EntryVectors, FloatArray, StagedEmbedder
from signspot.domain.words import Word
from signspot.errors import DictionaryError, InputError, VideoError
from signspot.features.extract import EntryOptions, embed_entry
from signspot.features.stages import for_dictionary
from signspot.formats.entry_features import FEATURES_FILE, EntryFeatures, read_entry_features
from signspot.workflows.tracks import refuse_landmark_file

LEFT_OUT = "left out of the dictionary: "
STORED_KIND = "i3d"  # vectors of the trunk: the head of the model at hand makes embeddings of them


@dataclass(frozen=True, slots=True)
class EntrySource:
    """Where the vectors of a dictionary's entries come from."""

    dictionary: Dictionary
    model: Embedder
    stored: EntryFeatures | None
    seed: int
    isolated: bool

    @classmethod
    def of(cls, dictionary: Dictionary, model: Embedder, *, seed: int, isolated: bool) -> EntrySource:
        """Open the stored vectors if the dictionary has any."""
        folder = dictionary.folder
        has_stored = folder is not None and (folder / FEATURES_FILE).is_file()
        stored = read_entry_features(folder) if folder is not None and has_stored else None
        return cls(dictionary, model, stored, seed, isolated)

    def vector(self, entry: Entry) -> FloatArray:
        """The vector of one entry (dim,); raises VideoError where it has none."""
        if entry.video is not None:
            refuse_landmark_file(entry.video, self.model)
            return embed_entry(entry, self.model, EntryOptions(seed=self.seed, isolated=self.isolated))
        stored = self.stored.vector(STORED_KIND, entry.entry_id) if self.stored is not None else None
        if stored is None:
            raise VideoError(entry.entry_id, "has neither a clip nor a stored vector", "add the clip or remove it")
        model = for_dictionary(self.model)
        if not isinstance(model, StagedEmbedder) or model.trunk_dim != len(stored):
            what = f"only vectors of {len(stored)} numbers are stored, which the model {model.name!r} cannot use"
            raise InputError(self.dictionary.name, what, "use --model with the model that made them, such as bsldict")
        vector: FloatArray = model.head_vectors(stored[None])[0]
        return vector

    def remarks(self, words: Iterable[Word]) -> tuple[str, ...]:
        """What should be known about the vectors of these words."""
        entries = (entry for word in words for entry in self.dictionary.entries(word))
        if self.stored is None or all(entry.video is not None for entry in entries):
            return ()
        made_by = self.stored.kinds[STORED_KIND].made_by
        return (f"{self.dictionary.name}: stored vectors are used ({made_by}); they fit only the trunk that made them",)


def vectors_of(word: Word, usable: list[tuple[Entry, FloatArray]], model: Embedder, trouble: str) -> EntryVectors:
    """The entries of a word that could be read, as one array."""
    if not usable:
        raise DictionaryError(word, "none of its clips can be used", trouble.removeprefix(LEFT_OUT))
    vectors = np.stack([vector for _, vector in usable])
    return EntryVectors(word, tuple(entry for entry, _ in usable), vectors, model.fingerprint)
