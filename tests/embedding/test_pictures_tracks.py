from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from signspot.domain.recordings import Episode
from signspot.domain.time import FRAME_MS
from signspot.domain.tracks import EmbeddingTrack
from signspot.embedding.model import Reading, trunk_of
from signspot.embedding.pictures import QUICK_LOOK, ColourModel, PictureModel
from signspot.errors import InputError
from signspot.media.video import media_sha256
from signspot.media.writer import VideoWriter
from signspot.models import embedders as embedder_module
from signspot.models.head import Head, HeadConfig
from signspot.stores import features as rows_module
from signspot.stores.features import FeatureStore, RowFile, TrackKey
from tests.embedding.boxed import BLUE, LEFT, RED, RIGHT, BoxedColours, write_halves
from tests.models.networks import embedder_of, moving_frames, tiny_head, tiny_i3d

HERE = Reading(isolated=False)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def written(folder: Path, n_frames: int) -> Episode:
    with VideoWriter(folder / "noise.mp4", width=64, height=64) as writer:
        for number, pixels in enumerate(moving_frames(n_frames)):
            writer.write(pixels, number * FRAME_MS)
    return Episode(video_id="noise", video=folder / "noise.mp4")


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Episode:
    return written(tmp_path_factory.mktemp("noise"), 60)


@pytest.fixture
def kept(tmp_path: Path) -> Reading:
    return dataclasses.replace(HERE, store=tmp_path / "store")


def model_of(head: Head | None = None) -> PictureModel:
    return PictureModel(embedder_of(tiny_i3d(), head))


def other_head() -> Head:
    torch.manual_seed(7)
    return Head(HeadConfig(input_dim=128, hidden_dim=32, embedding_dim=24))


def same_vectors(*tracks: EmbeddingTrack) -> bool:
    return all(track.vectors.tobytes() == tracks[0].vectors.tobytes() for track in tracks)


def test_two_heads_share_what_their_trunk_computed(noise: Episode, kept: Reading) -> None:
    first, second = model_of(tiny_head()), model_of(other_head())
    made, reused = first.track(noise, kept), second.track(noise, kept)
    assert (made.was_stored, reused.was_stored) == (False, True)
    assert (made.track.fingerprint, reused.track.fingerprint) == (first.fingerprint, second.fingerprint)
    assert same_vectors(reused.track, second.track(noise, HERE).track)
    with kept.opened_store() as store:
        assert store is not None
        (entry,) = store.entries()
    assert (entry.key.fingerprint, entry.dim) == (first.network.trunk_fingerprint, first.network.trunk_dim)
    assert made.kept_as == reused.kept_as == entry.key.fingerprint


@pytest.mark.parametrize("model", [model_of(tiny_head()), model_of(), ColourModel()])
def test_an_answer_is_the_same_the_first_time_later_and_without_a_store(
    noise: Episode, kept: Reading, model: PictureModel
) -> None:
    first, later = (model.track(noise, kept) for _ in range(2))
    without = model.track(dataclasses.replace(noise, video_id="other name"), HERE)
    assert (first.was_stored, later.was_stored, without.was_stored) == (False, True, False)
    assert same_vectors(first.track, later.track, without.track)
    assert without.track.video_id == "other name"
    np.testing.assert_allclose(np.linalg.norm(first.track.vectors, axis=1), 1, atol=1e-5)


def test_the_trunk_s_track_can_be_had_and_is_the_one_that_is_kept(noise: Episode, kept: Reading) -> None:
    model = model_of(tiny_head())
    trunk = trunk_of(model)
    made = trunk.track(noise, kept).track
    with kept.opened_store() as store:
        assert store is not None
        rows = store.open_rows(TrackKey(media_sha256(noise.video), trunk.fingerprint))
    assert rows is not None and not made.unit_rows and made.fingerprint == trunk.fingerprint
    np.testing.assert_array_equal(made.vectors, rows)
    assert trunk.track(noise, kept).was_stored and model.track(noise, kept).was_stored
    with pytest.raises(InputError, match="colour: has no trunk whose vectors could be used: name a model that is"):
        trunk_of(ColourModel())


class Stops(Exception):
    """Stands for the end of the program."""


@dataclasses.dataclass
class Watch:
    """Counts the rows that are computed, and ends the program at a number of them or when they are to be put."""

    n_rows: int = 0
    stop_at: float = math.inf

    def check(self) -> None:
        if self.n_rows >= self.stop_at:
            raise Stops


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch, append, put = Watch(), RowFile.append, FeatureStore.put

    def watched_append(self: RowFile, rows: np.ndarray) -> None:
        if self._dtype == np.float16:
            watch.check()
            watch.n_rows += len(rows)
        append(self, rows)

    def watched_put(self: FeatureStore, *arguments: object) -> None:
        watch.check()
        put(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(rows_module, "BLOCK_ROWS", 8)
    monkeypatch.setattr(embedder_module, "_MOST_ROWS", 2)  # as of a full-size network
    monkeypatch.setattr(RowFile, "append", watched_append)
    monkeypatch.setattr(FeatureStore, "put", watched_put)
    return watch


I3D_STOPS = [(1, 60, 4), (1, 60, 28), (1, 59, 44), (2, 61, 20)]  # stride, frames, windows computed until then
COLOUR_STOPS = [(1, 207, 192), (3, 208, 64), (3, 16 + 3 * 126 + 1, 128)]


@pytest.mark.parametrize(
    ("model", "stop"),
    [
        *((model_of(tiny_head()), stop) for stop in I3D_STOPS),
        *((ColourModel(), stop) for stop in COLOUR_STOPS),
    ],
)
def test_an_interrupted_video_goes_on_where_it_stopped_and_ends_the_same(
    tmp_path: Path, kept: Reading, watch: Watch, model: PictureModel, stop: tuple[int, int, int]
) -> None:
    stride, n_frames, n_computed = stop
    episode, reading = written(tmp_path, n_frames), dataclasses.replace(kept, stride=stride)
    whole = model.track(episode, dataclasses.replace(reading, store=None)).track
    watch.n_rows, watch.stop_at = 0, n_computed
    with pytest.raises(Stops):
        model.track(episode, reading)
    assert watch.n_rows == n_computed
    watch.n_rows, watch.stop_at = 0, math.inf
    resumed = model.track(episode, reading)
    assert watch.n_rows == len(whole.grid) - max(0, n_computed // 8 - 1) * 8
    assert not resumed.was_stored
    assert same_vectors(resumed.track, whole, model.track(episode, reading).track)


def test_progress_counts_windows_and_never_goes_back(noise: Episode) -> None:
    seen: list[tuple[str, float, float | None]] = []
    ColourModel().track(noise, dataclasses.replace(HERE, progress=lambda *step: seen.append(step)))
    assert {step for step, _, _ in seen} == {"reading the windows of noise.mp4"}
    assert [done for _, done, _ in seen] == pytest.approx(range(60))
    assert seen[-1][2] == pytest.approx(60, abs=1)


def is_stored(episode: Episode, model: PictureModel, reading: Reading) -> bool:
    """A quick look is taken only at what is not in the store."""
    seen = model.track(episode, reading, near=np.eye(1, model.dim, dtype=np.float32))
    assert seen.was_stored == (QUICK_LOOK not in seen.remarks.warnings)
    return seen.was_stored


def test_a_quick_look_keeps_nothing_and_says_so(noise: Episode, kept: Reading) -> None:
    model = model_of(tiny_head())
    exact = model.track(noise, HERE).track
    query = exact.vectors[20:21]  # every fourth window is looked at, and around the best all
    quick = model.track(noise, kept, near=query)
    assert QUICK_LOOK in quick.remarks.warnings and quick.kept_as == ""
    assert int((quick.track.vectors @ query[0]).argmax()) == 20
    cosine = (quick.track.vectors * exact.vectors).sum(axis=1)
    assert cosine[17:24].min() > 1 - 1e-5 and cosine.min() < 1 - 1e-3
    assert not is_stored(noise, model, kept) and not model.track(noise, kept).was_stored
    assert is_stored(noise, model, kept) and not is_stored(noise, ColourModel(), kept)
    assert same_vectors(model.track(noise, kept, near=query).track, exact)


def test_tracks_of_different_boxes_are_kept_apart_and_withdrawn_together(tmp_path: Path, kept: Reading) -> None:
    video = write_halves(tmp_path / "halves.mp4")
    recordings = [Episode(video_id="v", video=video, box=box) for box in (LEFT, RIGHT, None)]
    model = PictureModel(BoxedColours())
    made, again = ([model.track(recording, kept) for recording in recordings] for _ in range(2))
    assert [each.was_stored for each in (*made, *again)] == [False] * 3 + [True] * 3
    assert [each.box for each in again] == [LEFT, RIGHT, None]
    for number, colour in enumerate((RED, BLUE)):
        np.testing.assert_allclose(again[number].track.vectors[0], colour, atol=0.1)
        assert same_vectors(made[number].track, again[number].track)
    assert {each.track.fingerprint for each in (*made, *again)} == {BoxedColours.fingerprint}  # all can be compared
    with kept.opened_store() as store:
        assert store is not None
        assert {entry.key.fingerprint for entry in store.entries()} == {each.kept_as for each in made}
        assert len(store.remove(media_sha256(video)).tracks) == 3 == len({each.kept_as for each in made})


def test_a_model_without_boxes_has_one_track_whatever_the_manifest_says(tmp_path: Path, kept: Reading) -> None:
    video, model = write_halves(tmp_path / "halves.mp4"), ColourModel()
    for box, was_stored in ((None, False), (LEFT, True)):
        recording = Episode(video_id="v", video=video, box=box)
        assert model.track(recording, kept).was_stored == was_stored
    asked = dataclasses.replace(kept, box=RIGHT)
    plain = Episode(video_id="v", video=video)
    assert is_stored(plain, model, kept) and not is_stored(plain, model, asked)
    boxed = model.track(plain, asked)
    assert (boxed.was_stored, boxed.box) == (False, RIGHT)
    np.testing.assert_allclose(boxed.track.vectors[0], BLUE, atol=0.1)
    quick = model.track(plain, dataclasses.replace(asked, store=None), near=np.array([BLUE], np.float32))
    np.testing.assert_allclose(quick.track.vectors, boxed.track.vectors, atol=1e-3)
    assert quick.box == RIGHT


def test_heads_over_one_trunk_share_the_track_of_a_box(tmp_path: Path, kept: Reading) -> None:
    asked = dataclasses.replace(kept, box=LEFT)
    recording = written(tmp_path, 20)
    first, second = model_of(tiny_head()), model_of(other_head())
    assert not first.track(recording, asked).was_stored
    shared = second.track(recording, asked)
    assert shared.was_stored and shared.track.fingerprint == second.fingerprint
    assert same_vectors(shared.track, second.track(recording, dataclasses.replace(asked, store=None)).track)
