from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Dictionary, Entry, Word
from signspot.embedding.landmarks import LandmarkModel
from signspot.embedding.model import Lexicon, Reading, Views
from signspot.embedding.pictures import ColourModel
from signspot.embedding.zoo import embed_query, load_model, with_lexicon
from signspot.errors import InputError, Notice
from signspot.models.checkpoints import ModelCard, describe, load_checkpoint, save_checkpoint, state_of
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint
from signspot.models.head import Head, HeadConfig
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig
from signspot.workflows.spot import SpotOptions, prepare

WORDS = (Word("apple"), Word("eat"), Word("eat"))
HERE = Reading(isolated=False)


def networks() -> tuple[LandmarkEncoder, Head]:
    torch.manual_seed(0)
    trunk = LandmarkEncoder(LandmarkEncoderConfig(classes=1, width=32, dropout=0.0))
    head = Head(HeadConfig(input_dim=trunk.embedding_dim, hidden_dim=16, embedding_dim=8, classes=3, prototypes=3))
    assert head.prototypes is not None
    head.prototypes.copy_(2 * torch.eye(3, 8))
    return trunk, head


def model() -> LandmarkModel:
    return LandmarkModel(LandmarkEmbedder(*networks(), name="tiny", words=WORDS, language="ase"))


def entry(name: str, language: str = "") -> Entry:
    return Entry(entry_id=f"{name}.pose", word=Word(name), video=Path(f"{name}.pose"), language=language)


def added(*entries: Entry) -> list[str]:
    return [one.entry_id for one in with_lexicon(Dictionary.of("own", entries), model()) if one.is_learned]


def test_words_of_subtitles_bring_no_learned_signs_into_a_dictionary_of_unknown_language() -> None:
    for language, expected in (("", False), ("ase", True), ("bfi", False)):
        own = Dictionary.of("own", [entry("zebra", language)])
        assert any(one.is_learned for one in with_lexicon(own, model(), are_named=False)) == expected
    assert any(one.is_learned for one in with_lexicon(None, model(), are_named=False))


def test_a_word_of_several_rows_has_numbered_variants_and_each_is_searched_by_its_prototype() -> None:
    tiny = model()
    assert [(one.entry_id, one.variant) for one in tiny.lexicon.entries] == [
        ("tiny: apple", ""), ("tiny: eat 1", "1"), ("tiny: eat 2", "2"),
    ]  # fmt: skip
    query = embed_query([Word("eat")], with_lexicon(None, tiny), tiny, HERE)
    np.testing.assert_array_equal(query.words[0].vectors, np.eye(3, 8, dtype=np.float32)[1:])
    mirrored = embed_query([Word("eat")], with_lexicon(None, tiny), tiny, HERE, Views(mirror=True))
    assert mirrored.words[0].vectors.shape == (4, 8) and mirrored.n_views == 2


def test_a_file_keeps_the_lexicon_and_vectors_do_not_depend_on_it(tmp_path: Path) -> None:
    trunk, head = networks()
    card = ModelCard(name="tiny", architecture="landmark+mlp", config=describe(trunk, head), vocabulary=WORDS)
    save_checkpoint(tmp_path / "tiny.safetensors", state_of(trunk, head), card)
    read = landmark_embedder_from_checkpoint(load_checkpoint(tmp_path / "tiny.safetensors"))
    np.testing.assert_array_equal(read.word_prototypes, np.eye(3, 8, dtype=np.float32))
    bare = Head(HeadConfig(input_dim=trunk.embedding_dim, hidden_dim=16, embedding_dim=8, classes=3))
    bare.load_state_dict({name: held for name, held in head.state_dict().items() if name != "prototypes"})
    without = LandmarkEmbedder(trunk, bare, name="tiny", words=WORDS)
    assert without.fingerprint == read.fingerprint
    np.testing.assert_array_equal(without.word_prototypes, without.word_directions)  # as in old files


def test_the_shipped_model_of_one_row_a_word_has_a_lexicon_and_its_old_fingerprint() -> None:
    shipped = load_model("landmark-v1")
    assert len(shipped.lexicon) == shipped.lexicon.n_words == 306 and shipped.lexicon.language == "ase"
    assert shipped.fingerprint.startswith("8de05a1f7bb1b37a")  # stored vectors and calibrations stay valid


def test_a_dictionary_goes_before_the_lexicon_unless_it_shows_the_same_language() -> None:
    assert added(entry("apple")) == ["tiny: eat 1", "tiny: eat 2"]
    assert added(entry("apple", "bfi")) == []
    assert added(entry("apple", "ASL")) == added(entry("apple", "ase")) == [
        "tiny: apple", "tiny: eat 1", "tiny: eat 2",
    ]  # fmt: skip
    assert added(entry("apple", "bfi"), entry("tree", "ase")) == ["tiny: eat 1", "tiny: eat 2"]
    own, *_ = with_lexicon(Dictionary.of("own", [entry("apple", "ase")]), model()).entries(Word("apple"))
    assert own.entry_id == "apple.pose"


def test_words_that_nobody_knows_are_named_and_the_others_searched() -> None:
    tiny, said = model(), list[Notice]()
    options = SpotOptions(reading=Reading(isolated=False, notify=said.append))
    query = prepare(["eat", "appel"], with_lexicon(None, tiny), tiny, options)
    assert [one.word for one in query.words] == ["eat"]
    what = "appel: tiny has not learned this word, and there is no dictionary: did you mean apple?"
    assert [str(one) for one in said] == [what]
    with pytest.raises(InputError, match=r"xyzzy, qqq: tiny has not learned these words.*models show tiny --words"):
        prepare(["xyzzy", "qqq"], with_lexicon(None, tiny), tiny, options)


def test_models_without_words_need_a_dictionary() -> None:
    with pytest.raises(InputError, match="colour: knows no words by itself: give --dictionary"):
        with_lexicon(None, ColourModel())
    own = Dictionary.of("own", [entry("apple")])
    assert with_lexicon(own, ColourModel()) is own or list(with_lexicon(own, ColourModel())) == list(own)
    assert len(Lexicon.empty(3)) == 0
