"""What people do with landmarks: every command takes .pose files, or videos with a detector, without naming a model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from experiments.lib.landmark_model import best_over_rates, multi_rate_windows, sign_window

import signspot
from signspot.cli import main as cli
from signspot.domain.recordings import Word
from signspot.domain.tracks import in_picture_heights
from signspot.embedding.landmarks import LandmarkModel, Rates, _mirrored
from signspot.embedding.model import Reading, Views
from signspot.embedding.zoo import ModelChoice, _chosen_model, model_path
from signspot.formats.pose import read_pose
from signspot.models.checkpoints import load_checkpoint, save_checkpoint, state_of
from signspot.models.embedders import LandmarkEmbedder, landmark_embedder_from_checkpoint
from signspot.models.landmarks import LandmarkEncoder
from signspot.workflows.spot import SpotOptions
from tests.media.stand_in_detector import coloured_video, install
from tests.workflows.signed import WORDS, passage, resting, sign, write, write_dictionary


@pytest.fixture(scope="module")
def model() -> LandmarkModel:
    return LandmarkModel(landmark_embedder_from_checkpoint(model_path("landmark-v1")))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dictionary of .pose files and a passage in which `cheese` is signed around frame 32."""
    folder = tmp_path_factory.mktemp("desk")
    write_dictionary(folder / "dictionary")
    write(passage(), folder / "passage.pose")
    return folder


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


def run(*arguments: object) -> int:
    return cli.run([str(argument) for argument in arguments])


def as_published(desk: Path, model: LandmarkModel, word: str) -> np.ndarray:
    """The cosines (n_windows,) of the passage with a word, step by step as experiments/aslearn computes them."""
    clip, passage = (read_pose(desk / name) for name in (f"dictionary/{word}.pose", "passage.pose"))
    sign, signing = (in_picture_heights(np.asarray(one.track.points), one.aspect) for one in (clip, passage))
    vector = model.network.embed(sign_window(sign)[None])
    windows = [model.network.embed(cut) for cut in multi_rate_windows(signing, Rates())]
    return best_over_rates(windows, vector)[:, 0]


def test_the_command_and_the_library_compare_as_the_published_figures_were_made(
    desk: Path, model: LandmarkModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("spot", desk / "passage.pose", *WORDS, "-d", desk / "dictionary", "--json") == 0
    said = capsys.readouterr()
    told = {word["word"]: word["best_cosine"] for word in json.loads(said.out)["words"]}
    dictionary = signspot.open_dictionary(desk / "dictionary")
    answer = signspot.spot(desk / "passage.pose", WORDS, dictionary=dictionary, model=model)
    for word in answer.words:
        expected = as_published(desk, model, word.word)
        np.testing.assert_allclose(word.similarity.best, expected, atol=1e-3)  # rows are kept as halves
        assert told[word.word] == pytest.approx(expected.max(), abs=1e-3)
    assert said.err.count("\n") == 1 and "model landmark-v1: sees body and hands" in said.err


@pytest.mark.parametrize("n_frames", [14, 32])
def test_a_sign_is_found_where_it_is_however_fast_it_is_signed(
    desk: Path, model: LandmarkModel, tmp_path: Path, n_frames: int
) -> None:
    video = write(passage(1, n_frames), tmp_path / "video.pose")
    dictionary = signspot.open_dictionary(desk / "dictionary")
    options = signspot.SpotOptions(threshold=model.threshold)
    answer = signspot.spot(video, WORDS, dictionary=dictionary, model=model, options=options)
    best = max(answer.words, key=lambda word: word.best_cosine or -1)
    assert best.word == "cheese" and best.best_cosine is not None and best.best_cosine > 0.8
    found = max(best.spottings, key=lambda one: one.cosine)
    assert abs(found.frame - (20 + n_frames / 2)) <= 4
    assert found.provenance.model == "landmark-v1"


def test_a_sign_of_the_other_hand_is_the_same_sign_if_asked_for(
    desk: Path, model: LandmarkModel, tmp_path: Path
) -> None:
    video = write(_mirrored(passage()), tmp_path / "left.pose")
    dictionary = signspot.open_dictionary(desk / "dictionary")
    options = SpotOptions(views=Views(mirror=True, rates=(1.4,)))
    answer = signspot.spot(video, "cheese", dictionary=dictionary, model=model, options=options)
    plain = signspot.spot(video, "cheese", dictionary=dictionary, model=model).words[0].best_cosine
    mirrored = answer.words[0].best_cosine
    # The model learned to take mirror images for the same sign, so it misses little without the option.
    assert mirrored == pytest.approx(1, abs=5e-4) and plain is not None and plain < 1 - 2e-3
    assert "--rates changes nothing" in answer.warnings[0]


def test_without_a_dictionary_the_words_that_the_model_learned_are_named(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy of the model that learned our words: the direction of each is the vector of its clip."""
    checkpoint = load_checkpoint(model_path("landmark-v1"))
    trunk, head = checkpoint.networks()
    assert isinstance(trunk, LandmarkEncoder) and head is not None and head.logits is not None
    clips = [read_pose(desk / "dictionary" / f"{word}.pose") for word in WORDS]
    windows = [sign_window(in_picture_heights(np.asarray(one.track.points), one.aspect)) for one in clips]
    vectors = LandmarkEmbedder(trunk, head, name="m").embed(np.stack(windows))
    head.logits.weight.data[: len(WORDS)] = 3 * torch.from_numpy(vectors)
    words = (*WORDS, *checkpoint.card.vocabulary[len(WORDS) :])
    card = dataclasses.replace(checkpoint.card, vocabulary=words)
    save_checkpoint(tmp_path / "taught.safetensors", state_of(trunk, head), card)
    for word in WORDS:
        recording = desk / "dictionary" / f"{word}.pose"
        assert run("lookup", recording, "--model", tmp_path / "taught.safetensors", "--json") == 0
        first, *_ = json.loads(capsys.readouterr().out)["guesses"]
        assert first["word"] == word and first["cosine"] == pytest.approx(1, abs=1e-3) and first["band"] == "likely"


def test_the_shipped_model_names_words_by_itself_and_pictures_need_a_dictionary(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = desk / "dictionary" / f"{WORDS[0]}.pose"
    assert run("lookup", recording, "--sheet", tmp_path / "sheet.png") == 0
    said = capsys.readouterr()
    assert said.out.count("landmark-v1: ") == 6 and (tmp_path / "sheet.png").exists()
    trunk, head = load_checkpoint(model_path("landmark-v1")).networks()
    assert isinstance(trunk, LandmarkEncoder)
    other = [Word("apple")]  # not those of its classifier
    unnamed = LandmarkModel(LandmarkEmbedder(trunk, head, name="unnamed", words=other))
    with pytest.raises(signspot.InputError, match="unnamed: knows no words by itself"):
        signspot.lookup(recording, model=unnamed)
    assert run("lookup", coloured_video(tmp_path / "red.mp4", [[200, 0, 0]] * 20), "--model", "colour") == 2
    assert "colour: knows no words by itself: give --dictionary, or use landmark-v1" in capsys.readouterr().err


def test_vectors_are_kept_by_the_content_of_the_landmarks(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video, beside = tmp_path / "v.mp4", tmp_path / "v.pose"
    video.write_bytes(b"is not opened: its landmarks lie beside it")
    asked = ("spot", video, "cheese", "-d", desk / "dictionary", "--store", tmp_path / "store", "--json")
    answers = []
    for points in (passage(), passage(), passage(2)):
        write(points, beside, overwrite=True)
        assert run(*asked) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1] != answers[2]
    assert run("embed", video, "-m", "landmark-v1", "--store", tmp_path / "store") == 0
    assert "was there" in capsys.readouterr().out
    assert len(list((tmp_path / "store" / "shards").iterdir())) == 2


def test_a_check_says_how_many_clips_have_landmarks(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("dictionary", "check", desk / "dictionary") == 0
    assert "4 clips · 4 with a .pose file" in capsys.readouterr().out


def test_friends_of_few_words_are_doubted(desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_dictionary(tmp_path / "other")
    assert run("friends", desk / "dictionary", other, "--no-store") == 0
    assert "only 4 words on one side" in capsys.readouterr().err


def test_landmarks_of_another_recording_are_doubted(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video = coloured_video(tmp_path / "v.mp4", np.zeros((100, 3)))
    asked = ("spot", video, "cheese", "-d", desk / "dictionary", "--store", tmp_path / "store")
    points = np.concatenate([passage()] * 3)[:100]
    write(points, tmp_path / "v.pose")
    assert run(*asked) == 0
    assert "another recording" not in capsys.readouterr().err
    write(points[:60], tmp_path / "v.pose", overwrite=True)
    for _ in range(2):  # also when its vectors were kept
        assert run(*asked) == 0
        assert "v.pose, whose landmarks are taken, lasts 2.4 s, the video 4.0 s" in capsys.readouterr().err
    corpus = ("corpus", "check", tmp_path)
    assert run(*corpus) == 0
    assert "lasts 2.4 s, the video 4.0 s" in capsys.readouterr().out
    (tmp_path / "v.pose").write_bytes(b"no landmarks")
    assert run(*corpus) == 1
    assert "v.pose" in capsys.readouterr().out


def test_every_command_takes_landmarks_without_naming_a_model(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, video = desk / "dictionary", desk / "passage.pose"
    (tmp_path / "cues.vtt").write_text("WEBVTT\n\n00:00.500 --> 00:02.000\nSome cheese.\n")
    other = write_dictionary(tmp_path / "other")
    footage = tmp_path / "footage"
    footage.mkdir()
    write(passage(), footage / "a.pose")
    for command, said in (
        (("spot", video, "--query", words / "cheese.pose"), "cheese"),
        (("spot", footage, "cheese", "-d", words), "a:"),
        (
            ("annotate", video, "--subtitles", tmp_path / "cues.vtt", "-d", words),
            "signs for 1 of 1 subtitle words",
        ),
        (("lookup", words / "tea.pose", "-d", words, "--no-store"), "1  tea"),
        (("friends", words, other, "--no-store"), "4 of them in both"),
        (("variants", video, "cheese", "-d", words), "cheese"),
        (("mine", "find", footage, "cheese", "-d", words, "--out", tmp_path / "mined"), "in 1 video (1 likely); "),
    ):
        code = run(*command)
        printed = capsys.readouterr()
        assert code == 0, printed.err
        assert said in printed.out and "model landmark-v1" in printed.err, command
    assert (tmp_path / "mined" / "mined.png").is_file(), "the skeletons of what was found"


def test_videos_are_seen_by_the_detector_once_and_never_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = install(tmp_path / "packages", monkeypatch)
    bright = [(60 + 6 * number, 80, 200) for number in range(20)]
    video, clip = coloured_video(tmp_path / "v.mp4", bright), coloured_video(tmp_path / "c.mp4", bright[::-1])
    for _ in range(2):
        assert run("spot", video, "--query", clip, "--trust", "--threshold", -1) == 0
        assert "model landmark-v1" in capsys.readouterr().err
        assert log.read_text().count("start") == 2
    assert run("lookup", video, "-d", clip.parent, "--trust", "--json") == 0
    assert log.read_text().count("start") == 3, "a recording is looked at again: nothing of it is kept"


def test_without_the_extra_one_line_says_what_to_do(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    video = coloured_video(tmp_path / "v.mp4", [(60, 80, 200)] * 20)
    clips = tmp_path / "clips"
    clips.mkdir()
    coloured_video(clips / "tea.mp4", [(60, 80, 200)] * 20)
    for arguments, code, said in (
        (
            ("spot", video, "tea", "-d", clips, "-m", "landmark-v1"),
            3,
            "pip install 'signspot[pose]', or put a .pose file",
        ),
        (("spot", video, "tea", "-d", desk / "dictionary"), 3, "or choose another --model"),
        (
            ("spot", desk / "passage.pose", "tea", "-d", desk / "dictionary", "-m", "colour"),
            2,
            "holds landmarks and no",
        ),
        (("lookup", desk / "passage.pose", "-d", clips, "-m", "colour"), 2, "use --model landmark-v1"),
        (("spot", video, "tea", "-d", clips), 0, "model colour: compares mean colours and knows nothing about signing"),
    ):
        assert run(*arguments, "--trust") == code, said
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, error


def test_the_default_is_the_model_that_can_see_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video, pose = tmp_path / "a.mp4", tmp_path / "b.pose"
    beside = tmp_path / "c.mp4"
    beside.with_suffix(".pose").touch()
    reading, said = Reading().collecting()
    assert ModelChoice(name="world-v1").open([pose], reading).name == "world-v1" and not said
    assert _chosen_model([beside]) == "landmark-v1"
    assert _chosen_model([video, beside], said.append) == "colour"
    assert "a .pose file beside a.mp4 (" in str(said[-1]), "which recording stands in the way"
    _chosen_model([tmp_path / f"{number}.mp4" for number in range(5)], said.append)
    assert "beside 0.mp4, 1.mp4, 2.mp4 and 2 more of 5 (" in str(said[-1]) and len(said) == 2
    assert _chosen_model([video, pose]) == "landmark-v1", "nothing else can see a .pose file"
    install(tmp_path / "packages", monkeypatch)
    assert _chosen_model([video, beside]) == "landmark-v1"
    assert _chosen_model([video, None]) == "colour", "an entry without a clip has vectors of another model"


def test_bad_landmarks_cost_one_line(desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = write_dictionary(tmp_path / "words")
    (words / "tea_2.pose").write_bytes(b"no pose")
    write(np.zeros((20, 258), np.float32), words / "tea_3.pose")
    assert run("spot", desk / "passage.pose", "tea", "-d", words) == 0
    error = capsys.readouterr().err
    assert "tea_2.pose: is not a .pose file" in error and "tea_3.pose: nobody was found in it" in error
    for name, points, code, said in (
        ("empty", resting(0), 2, "holds no frames"),
        ("nobody", np.zeros((40, 258), np.float32), 0, "nobody was found in it"),
        ("idle", resting(40), 0, "a hand was found in only 0% of the frames"),
        ("short", sign(0, 3), 0, "model landmark-v1"),
    ):
        write(points, tmp_path / f"{name}.pose")
        assert run("spot", tmp_path / f"{name}.pose", "tea", "-d", desk / "dictionary") == code, name
        printed = capsys.readouterr()
        assert said in printed.err, printed.err
        assert name != "nobody" or "no window could be compared" in printed.out


def test_every_recording_is_looked_up_or_refused_in_one_line(
    desk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one_hand, gaps, held = sign(0), sign(0), np.repeat(sign(0, 1), 20, axis=0)
    one_hand[:, 60:64], one_hand[:, 132:195] = 0, 0
    gaps[np.random.default_rng(0).random(gaps.shape) < 0.02] = np.nan
    for name, points, code, said in (
        ("empty", sign(0, 1)[:0], 2, "nobody is found"),
        ("short", sign(0, 7), 2, "short.pose is too short (7 frames, 0.3 s)"),
        ("just long enough", sign(0, 8), 0, ""),
        ("one hand", one_hand, 0, ""),
        ("gaps", gaps, 0, ""),
        ("no numbers", np.full((24, 258), np.nan, np.float32), 2, "nobody is found"),
        ("hands only", np.where(np.arange(258) < 132, 0, sign(0)).astype(np.float32), 2, "nobody is found"),
        ("held", held, 0, ""),
        ("idle", resting(40), 2, "nothing was looked up: no hand is raised or moves"),
    ):
        recording = write(points, tmp_path / f"{name}.pose")
        assert run("lookup", recording, "-d", desk / "dictionary", "--no-store") == code, name
        printed = capsys.readouterr()
        assert said in printed.err.splitlines()[-1], printed.err
        assert code or "dictionary entry" in printed.out, name
