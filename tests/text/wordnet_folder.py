"""A WordNet of a few words in the format of the real one: index and data files joined by byte offsets."""

from __future__ import annotations

from pathlib import Path

Synset = tuple[str, tuple[str, ...]]  # part of speech (n, v, a, r) and lemmas, phrases with "_"

_SUFFIX = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_LICENCE = "  1 A comment line, as the real files begin with.  \n"


def write_wordnet(folder: Path, synsets: list[Synset]) -> Path:
    """Write data.* and index.*; no lexnames and no *.exc, as the npm package has none."""
    folder.mkdir(parents=True, exist_ok=True)
    for pos, suffix in _SUFFIX.items():
        data, offsets = _LICENCE, {}
        for number, (kind, lemmas) in enumerate(synsets):
            if kind != pos:
                continue
            offsets[number] = len(data)
            names = " ".join(f"{lemma} 0" for lemma in lemmas)
            frames = " 00" if pos == "v" else ""
            data += f"{len(data):08} 03 {pos} {len(lemmas):02x} {names} 000{frames} | a meaning  \n"
        by_lemma: dict[str, list[int]] = {}
        for number, offset in offsets.items():
            for lemma in synsets[number][1]:
                by_lemma.setdefault(lemma.lower(), []).append(offset)
        lines = (
            f"{lemma} {pos} {len(where)} 0 {len(where)} 0 {' '.join(f'{o:08}' for o in where)}  \n"
            for lemma, where in sorted(by_lemma.items())
        )
        for kind, content in (("data", data), ("index", _LICENCE + "".join(lines))):
            (folder / f"{kind}.{suffix}").write_text(content)
            (folder / f"{kind}.{suffix}").chmod(0o644)
    folder.chmod(0o755)
    return folder
