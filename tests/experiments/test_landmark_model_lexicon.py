from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from experiments.lib.landmark_model import LandmarkNetworks, with_lexicon

from signspot.domain.recordings import Vocabulary, Word
from signspot.embedding.zoo import load_model
from signspot.models.checkpoints import ModelCard
from signspot.models.head import Head, HeadConfig
from signspot.models.landmarks import LandmarkEncoder, LandmarkEncoderConfig


def test_the_variants_of_a_word_become_rows_of_a_file_that_the_package_reads(tmp_path: Path) -> None:
    torch.manual_seed(0)
    trunk = LandmarkEncoder(LandmarkEncoderConfig(classes=1, width=32, dropout=0.0))
    head = Head(HeadConfig(input_dim=trunk.embedding_dim, hidden_dim=16, embedding_dim=4, classes=2))
    networks = LandmarkNetworks(trunk.eval(), head.eval(), Vocabulary.of([Word("apple"), Word("eat")]))
    clips = F.normalize(torch.eye(4)[[0, 0, 1, 2, 2]] + 0.1 * torch.randn(5, 4), dim=1)
    words = [Word(word) for word in ("eat", "eat", "eat", "apple", "apple")]
    made = with_lexicon(networks, clips, words, ["0", "0", "1", "", ""])
    assert made.words == ("apple", "eat", "eat")
    made.save(tmp_path / "new.safetensors", ModelCard(name="new", architecture="landmark+mlp"))
    lexicon = load_model(tmp_path / "new.safetensors").lexicon
    assert [one.entry_id for one in lexicon.entries] == ["new: apple", "new: eat 1", "new: eat 2"]
    means = torch.stack([clips[3:].mean(dim=0), clips[:2].mean(dim=0), clips[2]])
    np.testing.assert_allclose(lexicon.prototypes, F.normalize(means, dim=1).numpy(), atol=1e-6)
    assert (lexicon.directions @ lexicon.prototypes.T).argmax(axis=1).tolist() == [0, 1, 2]
    assert lexicon.language == "ase"
