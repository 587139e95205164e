from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from signspot.domain.recordings import Rights, SignerBox, Word
from signspot.errors import DictionaryError, FormatError, InputError, OutputExists, SignspotError
from signspot.formats import bsldict
from signspot.formats.bsldict import (
    _ImportedDictionary,
    _read_records,
    _Record,
    import_bsldict,
    sign_synonyms,
)
from signspot.formats.wlasl import Box
from signspot.stores.dictionary import EntryFeatures, read_dictionary
from tests.formats.released_files import ROWS, WORDS, Payload, bsldict_tree, damaged_trees, vectors, write_pickle
from tests.formats.spottings import mutants

FILES = {"dictionary.json", "features.safetensors", "bsldict.json"}


def imported(tmp_path: Path, tree: object, **options: object) -> _ImportedDictionary:
    return import_bsldict(write_pickle(tree, tmp_path / "bsldict_v1.pkl"), tmp_path / "bsldict", **options)  # type: ignore[arg-type]


Import = Callable[..., _ImportedDictionary]


@pytest.fixture
def import_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Imports what the process that reads pickles would give: starting it for every table row would take minutes."""

    def run(tree: object, **options: object) -> _ImportedDictionary:
        monkeypatch.setattr(bsldict, "read_metadata", lambda _: tree)
        return import_bsldict(tmp_path / "bsldict_v1.pkl", tmp_path / "bsldict", **options)  # type: ignore[arg-type]

    return run


def with_video(column: str, row: int, value: object) -> dict[str, object]:
    tree = bsldict_tree()
    tree["videos"][column][row] = value  # type: ignore[index]
    return tree


def records(tmp_path: Path) -> list[_Record]:
    return _read_records(tmp_path / "bsldict" / "bsldict.json")


def said(result: _ImportedDictionary) -> str:
    return "\n".join(map(str, result.problems))


# What comes out


@pytest.mark.parametrize(
    ("form", "protocol"), [("rows", 2), ("rows", 5), ("array", 3), ("lists", 4), ("float32", 4)], ids=str
)
def test_every_entry_keeps_its_own_vectors_whatever_their_form(tmp_path: Path, form: str, protocol: int) -> None:
    path = write_pickle(bsldict_tree(form), tmp_path / "bsldict_v1.pkl", protocol)
    before = path.read_bytes()
    result = import_bsldict(path, tmp_path / "bsldict")
    assert path.read_bytes() == before and {p.name for p in (tmp_path / "bsldict").iterdir()} == FILES
    assert {p.name for p in tmp_path.iterdir()} == {"bsldict_v1.pkl", "bsldict"}
    assert result.problems == () and result.summary.endswith("6 entries of 3 words")
    read, features = read_dictionary(tmp_path / "bsldict"), EntryFeatures.read(tmp_path / "bsldict")
    assert read.problems == () and read.dictionary == result.dictionary
    assert features.entry_ids == tuple(entry.entry_id for entry in read.dictionary)
    for kind, seed, length in (("i3d", 1, 1024), ("mlp", 2, 256)):
        released = vectors(length, seed)
        assert features.kinds[kind].made_by == f"bsldict-released-{kind}" and features.kinds[kind].present.all()
        for row, (word, sign, _) in enumerate(ROWS):
            stored = features.vector(kind, f"a_001_{sign:03}_{row:03}_{word}")
            assert stored is not None
            np.testing.assert_array_equal(stored, released[row].astype(np.float32))


def test_words_variants_and_rights_are_those_of_the_release(tmp_path: Path, import_tree: Import) -> None:
    dictionary = import_tree(bsldict_tree()).dictionary
    assert dictionary.name == "bsldict"
    assert [(entry.word, entry.entry_id, entry.variant) for entry in dictionary] == [
        ("apple", "a_001_001_001_apple", "1"),
        ("apple", "a_001_001_002_apple", "2"),
        ("apple", "a_001_001_003_apple", "2"),
        ("bank", "a_001_002_004_bank", "1"),
        ("bank", "a_001_003_005_bank", "2"),  # another sign of the same word, though its version is 1 too
        ("ice-cream", "a_001_007_000_ice-cream", "1"),
    ]
    (ice_cream,) = dictionary.entries(Word("ice-cream"))
    assert ice_cream.video is None and ice_cream.language == "bfi"
    assert ice_cream.rights == Rights(holder="Signstation", may_export_clips=False)


def test_everything_else_is_kept_in_records(tmp_path: Path) -> None:
    imported(tmp_path, bsldict_tree())
    read = records(tmp_path)
    assert [r.entry_id for r in read] == [e.entry_id for e in read_dictionary(tmp_path / "bsldict").dictionary]
    record = read[-1]
    assert (record.name, record.word) == ("a_001_007_000_ice-cream.mp4", "ice-cream")
    size = {"T": 70, "H": 360, "W": 640, "duration_sec": 2.8, "fps": 25.0}
    assert record.fields == {
        "letter_db": "a", "sign_text_db": "ice-cream", "how_to_db": "Lick “it”.", "source_site_db": "Signstation",
        "download_method_db": "wget", "upload_date_db": "2014-02-03", "word_id": 2, "page_db": 1, "sign_cnt_db": 7,
        "version_cnt_db": 1, "video_cnt_in_version_db": 1, "video_cnt_in_sign_db": 0, "sign_link_db": "/sign/ice-cream",
        "video_link_db": "https://media.signbsl.com/ice-cream.mp4", "alternative_words": ("gelato",),
        "see_also_db": ("fruit",), "similar_items_db": ("Gelato", "Frozen Yoghurt"), "categories_db": ("food",),
        "within_this_cat_db": ("pear", "plum"), "videos_original": size, "videos_360h_25fps": size,
        "bbox": [0.1, 0.2, 0.9, 0.75], "temp_interval": [5, 60],
    }  # fmt: skip
    assert read[0].fields["youtube_identifier_db"] == "C37R_Ix8-qs"
    assert record.box == Box(0.1, 0.2, 0.9, 0.75)
    boxes = {entry.box for entry in read_dictionary(tmp_path / "bsldict").dictionary}
    assert boxes == {SignerBox(left=0.2, top=0.1, right=0.75, bottom=0.9)}
    words = json.loads((tmp_path / "bsldict" / "bsldict.json").read_text())["words"]
    assert words[3] == ["one-hundred", 3, "one hundred"] and len(words) == len(WORDS)


def test_similar_words_are_synonyms_in_both_directions(tmp_path: Path, import_tree: Import) -> None:
    import_tree(bsldict_tree())
    synonyms = sign_synonyms(tmp_path / "bsldict")
    assert synonyms.of_word(Word("ice-cream")) == {"gelato", "frozen-yoghurt", "fruit"}
    assert "ice-cream" in synonyms.of_word(Word("frozen-yoghurt"))


@pytest.mark.parametrize("nothing", [None, [], np.zeros(0), np.zeros(1024), [0.0] * 1024], ids=str)
def test_an_entry_without_features_is_kept_and_marked(tmp_path: Path, import_tree: Import, nothing: object) -> None:
    tree = bsldict_tree()
    tree["videos"]["features"]["i3d"][1] = nothing  # type: ignore[index]
    result = import_tree(tree)
    assert result.missing == {"i3d": 1, "mlp": 0} and "1 without i3d" in result.summary
    features = EntryFeatures.read(tmp_path / "bsldict")
    assert features.vector("i3d", "a_001_001_001_apple") is None
    assert features.vector("mlp", "a_001_001_001_apple") is not None


def test_the_same_pickle_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write_pickle(bsldict_tree(), tmp_path / "b.pkl")
    for parent in ("one", "two"):
        (tmp_path / parent).mkdir()
        import_bsldict(path, tmp_path / parent / "d")
    for name in FILES:
        assert (tmp_path / "one" / "d" / name).read_bytes() == (tmp_path / "two" / "d" / name).read_bytes()


def test_progress_is_told(tmp_path: Path, import_tree: Import) -> None:
    steps: list[tuple[str, float, float | None]] = []
    import_tree(bsldict_tree(), progress=lambda *step: steps.append(step))
    assert steps[0] == ("reading bsldict_v1.pkl", 0, 1) and steps[-1] == ("writing bsldict", 1, 1)


# What is refused, with its field and row


@pytest.mark.parametrize(
    ("column", "row", "value", "words"),
    [
        ("name", 3, "../../etc/passwd", r"videos/name\[3\] is '../../etc/passwd', which is not a name"),
        ("name", 3, "/etc/passwd", r"videos/name\[3\].*not a name"),
        ("name", 3, "..\\x", r"videos/name\[3\].*not a name"),
        ("name", 3, "a\x1b[2J.mp4", r"videos/name\[3\].*not a name"),
        ("name", 3, "x" * 300, r"videos/name\[3\] has 300 characters"),
        ("name", 3, 7, r"videos/name\[3\] is 7, which is not text"),
        ("name", 3, "a_001_001_001_apple.mp4", r"videos/name\[3\] is the name of row 1 too"),
        ("word", 2, None, r"videos/word\[2\] is None, which is not text"),
        ("word", 2, "\ud800", r"videos/word\[2\] holds half a character"),
        ("bbox", 4, [0, 1, 2], r"videos/bbox\[4\] has 3 values where 4 are expected"),
        ("bbox", 4, "abcd", r"videos/bbox\[4\] is 'abcd', which is not a list"),
        ("bbox", 4, [0, 0, float("nan"), 1], r"videos/bbox\[4\]\[2\] is nan, which is not a number"),
        ("temp_interval", 0, [1, 2, 3], r"videos/temp_interval\[0\] has 3 values where 2"),
        ("temp_interval", 0, [1, "x"], r"videos/temp_interval\[0\]\[1\] is 'x', which is not a number"),
    ],
)
def test_a_wrong_value_is_named_by_field_and_row(
    tmp_path: Path, import_tree: Import, column: str, row: int, value: object, words: str
) -> None:
    with pytest.raises(FormatError, match=words):
        import_tree(with_video(column, row, value))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("i3d", [float("nan")] * 1024, r"videos/features/i3d\[2\] holds a number that is not finite at 0"),
        ("mlp", [0.0] * 255 + [1e300], r"videos/features/mlp\[2\] holds a number that is not finite at 255"),
        ("mlp", [1.0] * 255, r"videos/features/mlp\[2\] is an array of shape \(255,\), which is not a vector of 256"),
        ("i3d", np.ones((2, 512)), r"videos/features/i3d\[2\] is an array of shape \(2, 512\)"),
        ("i3d", ["a"] * 1024, r"videos/features/i3d\[2\].*not a vector of 1024 numbers"),
        ("i3d", [[1.0], [2.0, 3.0]], r"videos/features/i3d\[2\].*not a vector of 1024 numbers"),
        ("i3d", {"a": 1}, r"videos/features/i3d\[2\].*not a vector of 1024 numbers"),
    ],
)
def test_wrong_features_are_named_by_kind_and_row(
    tmp_path: Path, import_tree: Import, kind: str, value: object, words: str
) -> None:
    tree = bsldict_tree()
    tree["videos"]["features"][kind][2] = value  # type: ignore[index]
    with pytest.raises(FormatError, match=words):
        import_tree(tree)


@pytest.mark.parametrize(
    "place", ["words", "words_to_id", "videos", "videos/name", "videos/word", "videos/features/mlp"]
)
def test_a_missing_field_is_named(tmp_path: Path, import_tree: Import, place: str) -> None:
    tree = holder = bsldict_tree()
    *path, last = place.split("/")
    for name in path:
        holder = holder[name]  # type: ignore[assignment]
    del holder[last]
    with pytest.raises(FormatError, match=f"{'/'.join(path)} ?has no field '{last}'"):
        import_tree(tree)


@pytest.mark.parametrize("column", ["word", "bbox", "similar_items_db", "upload_date_db"])
def test_lists_of_different_length_are_refused(tmp_path: Path, import_tree: Import, column: str) -> None:
    tree = bsldict_tree()
    tree["videos"][column].pop()  # type: ignore[index]
    with pytest.raises(FormatError, match=f"videos/{column} has 5 values where 6 are expected"):
        import_tree(tree)


@pytest.mark.parametrize("tree", [None, 5, [], {}, {"videos": []}, {"videos": {"name": {}}}], ids=str)
def test_a_pickle_of_something_else_is_refused(tmp_path: Path, import_tree: Import, tree: object) -> None:
    with pytest.raises(FormatError, match=r"has no field|which is no"):
        import_tree(tree)


def test_no_usable_word_at_all_is_an_error(tmp_path: Path, import_tree: Import) -> None:
    tree = bsldict_tree()
    tree["videos"]["word"] = ["?!"] * 6  # type: ignore[index]
    with pytest.raises(DictionaryError, match="holds no usable entry"):
        import_tree(tree)


def test_a_payload_is_refused_by_name_and_not_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    for tree in (with_video("how_to_db", 0, Payload(canary)), {"videos": Payload(canary)}):
        with pytest.raises(InputError, match=r"refused: wants posix.system.*Nothing was run"):
            imported(tmp_path, tree)
    assert not canary.exists() and not (tmp_path / "bsldict").exists()
    pickle.loads((tmp_path / "bsldict_v1.pkl").read_bytes())
    assert canary.exists()  # the file was dangerous


# What is odd but does not stop the import


def test_unknown_and_absent_side_fields_are_told(tmp_path: Path, import_tree: Import) -> None:
    tree = bsldict_tree()
    tree["videos"]["signer"] = [1] * 6  # type: ignore[index]
    tree["extra"] = 1
    del tree["videos"]["upload_date_db"], tree["words_normalised"]  # type: ignore[attr-defined]
    told = said(import_tree(tree))
    assert "unknown fields of videos that are not read: 1 (signer)" in told
    assert "unknown fields of the file that are not read: 1 (extra)" in told
    assert "fields that videos should have and has not: 1 (upload_date_db)" in told
    assert "upload_date_db" not in records(tmp_path)[0].fields


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("video_link_db", "javascript:alert(1)"),
        ("video_link_db", "https://x/<script>"),
        ("sign_link_db", "file:///etc/passwd"),
        ("youtube_identifier_db", "x; rm -rf /"),
        ("how_to_db", "x" * 30_000),
        ("similar_items_db", {"a": 1}),
        ("page_db", "first"),
        ("temp_interval", [9, 3]),
        ("temp_interval", [-2, 3]),
        ("bbox", [0.9, 0.1, 0.2, 0.8]),
    ],
)
def test_an_odd_side_value_is_left_empty_and_told(
    tmp_path: Path, import_tree: Import, column: str, value: object
) -> None:
    told = said(import_tree(with_video(column, 1, value)))
    assert f"values of {column} that are not understood and left empty: 1 (videos/{column}[1])" in told
    assert column not in records(tmp_path)[0].fields


def test_values_as_people_and_detectors_write_them_are_understood(tmp_path: Path, import_tree: Import) -> None:
    tree = with_video("bbox", 1, [-0.01, 0, 1.02, 1])
    tree["videos"]["page_db"][1] = "012"  # type: ignore[index]
    tree["videos"]["bbox"][2] = np.full(4, np.nan)  # type: ignore[index]
    tree["videos"]["name"][2] = "don’t\xa0know.mp4"  # type: ignore[index]
    tree["videos"]["video_link_db"][2] = " https://x/karl-o'keeffe/ice cream.mp4"  # type: ignore[index]
    assert import_tree(tree).problems == ()
    first, second, *_ = records(tmp_path)
    assert first.box == Box(0, 0, 1, 1) and first.fields["page_db"] == 12
    assert second.box is None and second.entry_id == "don’t\xa0know"
    assert second.fields["video_link_db"] == "https://x/karl-o'keeffe/ice%20cream.mp4"


def test_a_word_that_is_none_is_left_out_and_told(tmp_path: Path, import_tree: Import) -> None:
    result = import_tree(with_video("word", 0, "?!"))
    assert len(result.dictionary) == 5 and "a_001_007_000_ice-cream: no word in '?!'" in said(result)
    assert len(EntryFeatures.read(tmp_path / "bsldict").entry_ids) == 5


# The folder is written whole or not at all


def test_an_existing_folder_is_replaced_only_when_asked_and_only_if_it_is_ours(
    tmp_path: Path, import_tree: Import
) -> None:
    folder = tmp_path / "bsldict"
    import_tree(bsldict_tree())
    before = hashlib.sha256((folder / "dictionary.json").read_bytes()).digest()
    with pytest.raises(OutputExists, match="exists already"):
        import_tree(bsldict_tree())
    with pytest.raises(FormatError):
        import_tree({}, overwrite=True)
    assert hashlib.sha256((folder / "dictionary.json").read_bytes()).digest() == before
    import_tree(with_video("word", 0, "gelato"), overwrite=True)
    assert "gelato" in read_dictionary(folder).dictionary.vocabulary
    (folder / "mine.mp4").touch()
    with pytest.raises(OutputExists, match=r"holds other files, such as 'mine.mp4'"):
        import_tree(bsldict_tree(), overwrite=True)
    assert (folder / "mine.mp4").exists()
    assert {p.name for p in tmp_path.iterdir()} == {"bsldict"}


def test_a_folder_that_cannot_be_is_refused_before_the_pickle_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder, words in (("no/such/place", "does not exist"), ("file", "is not a folder"), ("nul\0byte", "cannot be")):
        with pytest.raises(InputError, match=words):
            import_bsldict(tmp_path / "not there.pkl", tmp_path / folder, overwrite=True)


def test_a_damaged_record_file_is_named(tmp_path: Path, import_tree: Import) -> None:
    import_tree(bsldict_tree())
    path = tmp_path / "bsldict" / "bsldict.json"
    content = json.loads(path.read_text())
    content["records"][2]["see_also_db"] = 99
    path.write_text(json.dumps(content))
    with pytest.raises(FormatError, match=r"records\[2\]/see_also_db is 99, which is not a number of a list"):
        records(tmp_path)


# Nothing but typed errors


def test_a_damaged_tree_gives_a_dictionary_or_a_typed_error(tmp_path: Path, import_tree: Import) -> None:
    worked, folder = 0, tmp_path / "bsldict"
    for number, tree in enumerate(damaged_trees(bsldict_tree(), 1000, seed=1)):
        try:
            import_tree(tree, overwrite=True)
        except SignspotError:
            continue
        worked += 1
        if number % 10 == 0:
            assert len(records(tmp_path)) == len(EntryFeatures.read(folder).entry_ids)
            assert read_dictionary(folder).problems == ()
    assert 0 < worked < 1000


@pytest.mark.parametrize("count", [12, pytest.param(400, marks=pytest.mark.soak)])
def test_a_damaged_pickle_gives_a_dictionary_or_a_typed_error(tmp_path: Path, count: int) -> None:
    path = write_pickle(bsldict_tree("float32"), tmp_path / "b.pkl", 2)
    for content in mutants(path.read_bytes(), count, seed=2):
        path.write_bytes(content)
        with contextlib.suppress(SignspotError):
            import_bsldict(path, tmp_path / "d", overwrite=True)


def test_a_damaged_record_file_gives_records_or_a_typed_error(tmp_path: Path, import_tree: Import) -> None:
    import_tree(bsldict_tree())
    path = tmp_path / "bsldict" / "bsldict.json"
    for content in mutants(path.read_bytes(), 1000, seed=3):
        path.write_bytes(content)
        with contextlib.suppress(SignspotError):
            records(tmp_path)
