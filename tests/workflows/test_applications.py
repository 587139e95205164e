"""Variants, mining, lookup and friends on the toy world, whose truth is known, through real files."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import re
import shutil
from datetime import date
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import signspot
from signspot.domain.recordings import Rights
from signspot.domain.results import Band
from signspot.domain.tracks import FloatArray, FrameShape
from signspot.embedding.model import Reading, Views
from signspot.embedding.pictures import PictureModel
from signspot.embedding.zoo import ModelChoice, embed_gallery
from signspot.errors import FormatError, InputError, OutputExists, UnknownWord, VideoError
from signspot.media.writer import VideoWriter
from signspot.spotting.friends import FriendOptions, Relation
from signspot.spotting.variants import Diversity
from signspot.stores.dictionary import read_dictionary
from signspot.stores.features import open_store
from signspot.stores.spottings import read_spottings
from signspot.workflows.lookup import FriendsRequest, Lookup, LookupOptions, compare_dictionaries, lookup
from signspot.workflows.spot import SpotOptions
from signspot.workflows.variants import (
    FootageRequest,
    MineOptions,
    VariantFiles,
    _may,
    _minute_of,
    _read_mined,
    _signer_of,
    _video_of,
    accept_mined,
    find_variants,
    mine,
)
from tests.toy_world import ToyWorld, make_toy_world

TODAY = date(2026, 1, 1)
TRUSTED = SpotOptions(reading=Reading(isolated=False))


@pytest.fixture(scope="module")
def corpus(toy_world: ToyWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two broadcasts of two signers with subtitles; the second may not be cut."""
    folder = tmp_path_factory.mktemp("footage") / "corpus"
    folder.mkdir()
    other = make_toy_world(tmp_path_factory.mktemp("other"), seed=1)
    for name, world in (("a", toy_world), ("b", other)):
        shutil.copy(world.broadcast, folder / f"{name}.mp4")
        shutil.copy(world.subtitles, folder / f"{name}.vtt")
    rows = ["video,subtitles,signer,may_export_clips", "a.mp4,a.vtt,Ann,", "b.mp4,b.vtt,Bob,no"]
    (folder / "corpus.csv").write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="module")
def smaller(toy_world: ToyWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dictionary without the second variant of apple."""
    folder = tmp_path_factory.mktemp("smaller") / "dictionary"
    shutil.copytree(toy_world.dictionary, folder)
    (folder / "apple" / "apple_2.mp4").unlink()
    return folder


def asked(source: Path, dictionary: Path, word: str = "apple") -> FootageRequest:
    """A request that reads each video of the corpus once for all tests."""
    store = (source if source.is_dir() else source.parent).parent / "store"
    options = dataclasses.replace(TRUSTED, reading=Reading(isolated=False, store=store))
    colour = ModelChoice(name="colour")
    return FootageRequest(source=source, word=word, dictionary=dictionary, model=colour, options=options)


def sha256s(folder: Path) -> dict[Path, str]:
    return {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_variants_are_counted_as_they_were_signed_by_video_signer_and_minute(
    toy_world: ToyWorld, corpus: Path, tmp_path: Path
) -> None:
    before = sha256s(corpus)
    report = find_variants(asked(corpus, toy_world.dictionary))
    signed = [one.sign.variant for one in toy_world.truth if one.sign.word == "apple"]
    assert [use.match.variant for use in report.uses if _video_of(use) == "a"] == signed
    counts = (signed.count("1"), signed.count("2"))
    assert {tally.group: tally.counts for tally in report.tally(_signer_of)} == {"Ann": counts, "Bob": counts}
    assert [tally.group for tally in report.tally(_minute_of)] == ["minute 0000"]
    assert all(use.match.margin is not None and use.match.margin > 0 for use in report.uses)
    assert report.candidates == () and report.n_unexplained == 0
    files = VariantFiles(tmp_path / "out", TODAY, rights_cleared=True, reading=Reading(isolated=False))
    written = report.write(files)
    assert {path.name for path in written} >= {"spottings.csv", "occurrences.csv", "tallies.csv", "variants.png"}
    assert sorted(read_spottings(tmp_path / "out" / "spottings.csv"), key=lambda s: s.spotting_id) == sorted(
        (use.spotting for use in report.uses), key=lambda s: s.spotting_id
    )
    with (tmp_path / "out" / "occurrences.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert {(row["signer"], bool(row["clip"])) for row in rows} == {("Ann", True), ("Bob", False)}
    assert len(list((tmp_path / "out" / "curves").glob("*.png"))) == 2
    assert sha256s(corpus) == before


def test_a_variant_that_the_dictionary_lacks_is_found_where_subtitles_mention_the_word(
    toy_world: ToyWorld, corpus: Path, smaller: Path
) -> None:
    report = find_variants(asked(corpus, smaller))
    assert {use.match.variant for use in report.uses} == {"1"}
    assert [len(candidate.occurrences) for candidate in report.candidates] == [2]
    missing = next(one.span_ms for one in toy_world.truth if one.sign.variant == "2")
    new = next(one.spotting for one in report.candidates[0].occurrences if one.spotting.video_id == "a")
    assert new.span_ms.overlaps(missing) and new.provenance.source == "read"


@pytest.mark.parametrize(("gap_ms", "is_named"), [(1500, True), (2500, False)])
def test_a_finding_names_the_subtitle_up_to_two_seconds_from_it(
    toy_world: ToyWorld, corpus: Path, tmp_path: Path, *, gap_ms: int, is_named: bool
) -> None:
    """The sign of a word is hardly ever shown at the same time as its subtitle."""
    tree = next(one.span_ms for one in toy_world.truth if one.sign.word == "tree")
    start = (tree.stop + gap_ms) / 1000
    (tmp_path / "a.vtt").write_text(f"WEBVTT\n\n00:{start:06.3f} --> 00:{start + 1:06.3f}\nAn old tree.\n")
    request = dataclasses.replace(asked(corpus / "a.mp4", toy_world.dictionary, "tree"), subtitles=tmp_path / "a.vtt")
    first, second = (use.spotting for use in find_variants(request).uses)
    assert first.span_ms.overlaps(tree)
    cue = first.provenance.subtitle
    assert (cue.text if cue is not None else None) == ("An old tree." if is_named else None)
    assert second.provenance.subtitle is None, "another tree, 20 s later"


def test_without_subtitles_new_variants_are_not_looked_for_and_an_unknown_word_is_named(
    corpus: Path, smaller: Path
) -> None:
    report = find_variants(asked(corpus / "a.mp4", smaller))
    assert report.n_unexplained is None and report.candidates == ()
    with pytest.raises(UnknownWord, match="did you mean apple"):
        find_variants(asked(corpus / "a.mp4", smaller, "appel"))


def mined_options(out: Path, *, rights_cleared: bool = True) -> MineOptions:
    return MineOptions(out=out, today=TODAY, rights_cleared=rights_cleared, diversity=Diversity(per_video=2))


def test_mined_examples_are_clips_of_the_sign_and_accepted_ones_become_entries(
    toy_world: ToyWorld, corpus: Path, smaller: Path, tmp_path: Path
) -> None:
    mined = mine(asked(corpus, smaller, "garden"), mined_options(tmp_path / "out"))
    assert [bool(example.file) for example in mined.examples].count(True) == 2, "Bob's footage may not be cut"
    assert {e.remark for e in mined.examples if not e.file} == {"its rights allow no clips"}
    signed = [one.span_ms for one in toy_world.truth if one.sign.word == "garden"]
    for example in mined.examples:
        if example.video_id == "a":
            assert any(span.start < example.stop_ms and example.start_ms < span.stop for span in signed)
    table = tmp_path / "out" / "mined.csv"
    first = next(example for example in _read_mined(table) if example.file)
    text = table.read_text(encoding="utf-8-sig")
    assert f",{first.rank},garden" in text
    table.write_text(text.replace(f"\n,{first.rank},garden", f"\nyes,{first.rank},garden"), encoding="utf-8-sig")
    dictionary = tmp_path / "dictionary"
    shutil.copytree(smaller, dictionary)
    before = sha256s(dictionary)
    accepted = accept_mined(table, dictionary)
    assert (len(accepted.added), accepted.n_undecided) == (1, len(mined.examples) - 1)
    entries = read_dictionary(dictionary).dictionary.entries(first.word)
    assert [entry.entry_id.split("/")[0] for entry in entries] == ["garden", "mined"]
    assert entries[1].signer is not None and entries[1].signer.signer_id == "Ann"
    assert before.items() <= sha256s(dictionary).items(), "what was there stays"
    assert accept_mined(table, dictionary).known == (first.file,), "accepting twice adds nothing"
    found = signspot.spot(
        corpus / "a.mp4", "garden", dictionary=signspot.open_dictionary(dictionary),
        model=signspot.load_model("colour"), options=asked(corpus, dictionary).options,
    )  # fmt: skip
    assert found.words[0].similarity.entry_ids == tuple(entry.entry_id for entry in entries), "it is compared with"


def test_without_a_word_about_rights_no_clip_is_cut_and_the_table_says_why(
    toy_world: ToyWorld, corpus: Path, tmp_path: Path
) -> None:
    mined = mine(asked(corpus, toy_world.dictionary), mined_options(tmp_path / "out", rights_cleared=False))
    assert not any(example.file for example in mined.examples)
    assert {e.remark for e in mined.examples if e.video_id == "a"} == {
        "its rights do not say that clips may be cut out"
    }
    table = tmp_path / "out" / "mined.csv"
    table.write_text(table.read_text(encoding="utf-8-sig").replace("\n,1,", "\nyes,1,"))
    with pytest.raises(FormatError, match="accepted but has no clip"):
        accept_mined(table, toy_world.dictionary)
    with pytest.raises(OutputExists, match="exists already"):
        mine(asked(corpus, toy_world.dictionary), mined_options(tmp_path / "out"))


def test_a_sign_that_is_not_there_gives_empty_tables_and_no_failure(
    toy_world: ToyWorld, corpus: Path, tmp_path: Path
) -> None:
    request = asked(corpus / "a.mp4", toy_world.dictionary, "house")
    mined = mine(request, mined_options(tmp_path / "mined"))
    assert (mined.n_found, mined.examples, _read_mined(tmp_path / "mined" / "mined.csv")) == (0, (), ())
    report = find_variants(request)
    files = report.write(VariantFiles(tmp_path / "variants", TODAY, reading=Reading(isolated=False)))
    assert report.uses == () and "variants.png" not in {path.name for path in files}


@pytest.mark.parametrize("file", ["../secret.mp4", "/etc/passwd", "gone.mp4", "clips/../../x.mp4"])
def test_a_clip_that_is_not_beside_its_table_is_refused(toy_world: ToyWorld, tmp_path: Path, file: str) -> None:
    (tmp_path / "mined.csv").write_text(f"accepted,word,file\nyes,apple,{file}\n")
    with pytest.raises(InputError, match=r"does not lie beside|is not there"):
        accept_mined(tmp_path / "mined.csv", toy_world.dictionary)


def test_rights_decide_what_may_be_cut_and_shown() -> None:
    silent, yes, no = Rights(), Rights(may_export_clips=True), Rights(may_export_clips=False)
    expired = Rights(may_export_clips=True, expires=TODAY)
    allowed = [
        _may(r, "export_clips", TODAY, rights_cleared=c) for r in (silent, yes, no, expired) for c in (False, True)
    ]
    assert allowed == [False, True, True, True, False, False, False, False]
    assert not _may(Rights(expires=TODAY), "export_clips", TODAY, rights_cleared=True)


def test_a_recording_is_trimmed_and_its_word_is_likely(toy_world: ToyWorld, tmp_path: Path) -> None:
    dictionary = signspot.open_dictionary(toy_world.dictionary)
    clip = toy_world.dictionary / "tree" / "tree_1.mp4"
    found = lookup(
        clip,
        dictionary=dictionary,
        model=signspot.load_model("colour"),
        options=LookupOptions(reading=Reading(store=tmp_path, isolated=False)),
    )
    assert (found.guesses[0].word, found.guesses[0].band) == ("tree", Band.LIKELY) and found.has_match
    assert {guess.word for guess in found.guesses} == {"apple", "garden", "house", "tree", "water"}
    assert found.trim.kept.start >= 4 and found.trim.kept.stop <= 52
    with open_store(tmp_path) as store:
        assert len(store.kept().entries) == 6, "vectors of the dictionary are kept"


def test_a_damaged_recording_is_doubted(toy_world: ToyWorld, tmp_path: Path) -> None:
    whole = (toy_world.dictionary / "tree" / "tree_1.mp4").read_bytes()
    (tmp_path / "half.mp4").write_bytes(whole[: 2 * len(whole) // 3])
    found = looked_up(tmp_path / "half.mp4", toy_world)
    assert found.guesses and any(doubt.startswith("half.mp4: partial, ") for doubt in found.doubts)


def looked_up(recording: Path, toy_world: ToyWorld) -> Lookup:
    dictionary, options = signspot.open_dictionary(toy_world.dictionary), LookupOptions(reading=TRUSTED.reading)
    return lookup(recording, dictionary=dictionary, model=signspot.load_model("colour"), options=options)


def written(path: Path, pictures: list[npt.NDArray[np.uint8]]) -> Path:
    with VideoWriter(path, width=64, height=64) as writer:
        for number, pixels in enumerate(pictures):
            writer.write(pixels, 40 * number)
    return path


def test_a_poor_recording_gets_a_reason_instead_of_words(toy_world: ToyWorld, tmp_path: Path) -> None:
    noise = [np.random.default_rng(i).integers(0, 255, (64, 64, 3), np.uint8) for i in range(3)]
    short = looked_up(written(tmp_path / "short.mp4", noise), toy_world)
    assert short.guesses == () and "too short (3 frames" in short.faults[0] and not short.has_match
    still = looked_up(written(tmp_path / "still.mp4", noise[:1] * 40), toy_world)
    assert still.guesses == () and "nothing moves" in still.faults[0]
    with pytest.raises(VideoError, match=r"longer than 20 s.*record one sign"):
        looked_up(toy_world.broadcast, toy_world)


class SidedNetwork:
    """Mean colours of the left and the right half: tells a sign from its mirror image."""

    name, fingerprint, trunk_fingerprint, backend = "sided", "sided-1", "", "numpy"
    dim = trunk_dim = 6
    frame_shape, threshold = FrameShape(side=32, crop=32), 0.95

    def trunk_vectors(self, clips: npt.NDArray[np.uint8] | FloatArray) -> FloatArray:
        halves = [half.mean(axis=(1, 2, 3), dtype=np.float64) for half in np.split(clips, 2, axis=3)]
        both = np.concatenate(halves, axis=1)
        unit: FloatArray = (both / np.linalg.norm(both, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def head_vectors(self, vectors: FloatArray) -> FloatArray:
        return vectors

    def of_dictionary(self) -> SidedNetwork:
        return self


def test_a_left_handed_recording_finds_the_word_of_its_mirror_image(tmp_path: Path) -> None:
    folder = tmp_path / "dictionary"
    folder.mkdir()

    def sign(colour: int) -> list[npt.NDArray[np.uint8]]:
        pictures = [np.zeros((64, 64, 3), np.uint8) for _ in range(30)]
        for number, picture in enumerate(pictures):
            top = 8 + abs(number - 15)
            picture[top : top + 24, 4:28, colour] = 250  # on the left
        return pictures

    for colour, word in enumerate(("red", "green", "blue")):
        written(folder / f"{word}.mp4", sign(colour))
    mirrored = written(tmp_path / "left.mp4", [picture[:, ::-1].copy() for picture in sign(1)])
    dictionary, options = signspot.open_dictionary(folder), LookupOptions(reading=TRUSTED.reading)
    model = PictureModel(SidedNetwork())
    best = lookup(mirrored, dictionary=dictionary, model=model, options=options).guesses[0]
    assert (best.word, best.is_mirrored, best.band) == ("green", True, Band.LIKELY)
    plain = lookup(folder / "green.mp4", dictionary=dictionary, model=model, options=options).guesses[0]
    assert (plain.word, plain.is_mirrored) == ("green", False)


def test_vectors_of_a_dictionary_are_computed_once_and_again_when_a_clip_changes(
    toy_world: ToyWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dictionary"
    shutil.copytree(toy_world.dictionary, folder)
    dictionary = signspot.open_dictionary(folder)
    model, reading = signspot.load_model("colour"), Reading(isolated=False, store=tmp_path / "store")
    first = embed_gallery(dictionary, model, reading)
    read: list[str] = []
    embedded = PictureModel.entry

    def counted(self: PictureModel, entry: signspot.Entry, how: Reading, views: Views = Views()) -> FloatArray:
        read.append(entry.entry_id)
        return embedded(self, entry, how, views)

    monkeypatch.setattr(PictureModel, "entry", counted)
    again = embed_gallery(dictionary, model, reading)
    assert read == [] and np.array_equal(again.vectors, first.vectors)
    shutil.copy(folder / "tree" / "tree_1.mp4", folder / "house" / "house_1.mp4")
    changed = embed_gallery(dictionary, model, reading)
    assert read == []  # the same content is known by another name
    words = [entry.word for entry in changed.entries]
    np.testing.assert_array_equal(changed.vectors[words.index("house")], first.vectors[words.index("tree")])  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def two_languages(toy_world: ToyWorld, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The toy dictionary, and another language: tree is the same, red means bread, water has the form of house."""
    folder = tmp_path_factory.mktemp("other-language")
    for word, clip in (("tree", "tree/tree_1"), ("bread", "apple/apple_1"), ("water", "house/house_1")):
        (folder / word).mkdir()
        shutil.copy(toy_world.dictionary / f"{clip}.mp4", folder / word / f"{word}_1.mp4")
    return toy_world.dictionary, folder


def test_planted_friends_are_found_and_shown_side_by_side(two_languages: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = two_languages
    request = FriendsRequest(
        first=first,
        second=second,
        model=ModelChoice(name="colour"),
        reading=Reading(isolated=False),
        options=FriendOptions(least_closeness=0.25),
    )
    found = compare_dictionaries(request)
    said = {relation: [(p.entry.word, p.other.word) for p in found.of(relation)] for relation in Relation}
    assert sorted(said[Relation.FALSE_FRIEND]) == [("apple", "bread"), ("house", "water")]
    assert said[Relation.COGNATE] == [("tree", "tree")]
    assert said[Relation.DIFFERENT_FORM] == [("water", "water")]
    files = found.write(tmp_path / "out", Reading(isolated=False))
    assert [path.name for path in files] == ["friends.csv", "friends.html", "friends.png"]
    page = (tmp_path / "out" / "friends.html").read_text()
    strips = re.findall(r'base64,([^"]+)"', page)
    assert strips[0] == strips[1] != strips[2] == strips[3], "each false friend beside its own clip, whatever its id"
    assert page.count("<img") == 8 and "different words, same form (2)" in page and "http://" not in page
    with (tmp_path / "out" / "friends.csv").open(encoding="utf-8-sig") as file:
        assert len(list(csv.DictReader(file))) == 4


def test_two_dictionaries_of_one_language_have_no_false_friends(toy_world: ToyWorld, tmp_path: Path) -> None:
    shutil.copy(toy_world.dictionary / "tree" / "tree_1.mp4", tmp_path / "t.mp4")
    (tmp_path / "dictionary.csv").write_text("word,file,language\ntree,t.mp4,bfi\n")
    with pytest.raises(InputError, match="both dictionaries hold signs of the language 'bfi'"):
        compare_dictionaries(FriendsRequest(first=tmp_path, second=tmp_path))


def test_the_only_video_must_be_readable_and_one_of_many_need_not(toy_world: ToyWorld, tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    (folder / "broken.mp4").write_bytes(b"no video")
    with pytest.raises(VideoError, match=r"broken\.mp4"):
        find_variants(asked(folder / "broken.mp4", toy_world.dictionary))
    shutil.copy(toy_world.broadcast, folder / "sound.mp4")
    report = find_variants(asked(folder, toy_world.dictionary))
    assert [failed.item.video.name for failed in report.failures] == ["broken.mp4"] and report.uses
