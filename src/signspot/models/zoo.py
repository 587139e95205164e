"""Models by name."""

from __future__ import annotations

from signspot.domain.tracks import Embedder
from signspot.errors import InputError
from signspot.models.colour import ColourEmbedder

_MODELS = {"colour": ColourEmbedder}


def load_model(name: str) -> Embedder:
    """The model of that name."""
    if name not in _MODELS:
        raise InputError(name, "no model of this name", f"choose one of: {', '.join(sorted(_MODELS))}")
    return _MODELS[name]()
