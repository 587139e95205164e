from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signspot.cli.spot import _AnnotateFiles, _ExportFiles
from signspot.domain.recordings import Subtitle, normalise
from signspot.domain.results import Presence, Provenance, Spotting, VideoAnswer, WordAnswer
from signspot.domain.time import MillisSpan, TimeAxis
from signspot.domain.tracks import SimilarityTrack, WindowGrid
from signspot.errors import FormatError, InputError, OutputExists
from signspot.formats.challenge import read_challenge
from signspot.formats.elan import read_eaf
from signspot.stores.spottings import read_spottings, write_spottings
from signspot.workflows.outputs import ExportRequest, Output, WhyRequest, _read_results, export, why, write_answer


def spotting(video: str, start: int, word: str = "apple", source: str = "lookup") -> Spotting:
    return Spotting(
        video_id=video, span_ms=MillisSpan.of(start, start + 640), frame=start // 40 + 8, word=normalise(word),
        entry_id=f"{word}_1.mp4", variant="1", cosine=0.75, presence=Presence(0.5, "c"),
        provenance=Provenance(
            media_sha256="ab", model="m", fingerprint="f", dictionary="d", source=source,
            subtitle=Subtitle(MillisSpan.of(0, 9000), "an apple"),
        ),
    )  # fmt: skip


RESULTS = (spotting("a", 1000), spotting("a", 5000, "tree"), spotting("b", 0))


def saved(path: Path, *spottings: Spotting) -> Path:
    write_spottings(spottings or RESULTS, path, overwrite=True)
    return path


def request(results: Path, kind: Output, path: Path, **more: object) -> ExportRequest:
    return ExportRequest(results=results, targets={kind: path}, **more)  # type: ignore[arg-type]


def test_the_name_of_a_file_says_how_an_answer_is_written(tmp_path: Path) -> None:
    video = tmp_path / "a.mp4"
    video.write_bytes(b"x")
    grid, axis = WindowGrid(20, 16, 1), TimeAxis(40.0 * np.arange(20))
    track = SimilarityTrack(normalise("apple"), "a", grid, axis, (), np.empty((len(grid), 0), np.float32))
    words = (WordAnswer(track, RESULTS[:1]),)
    answer = VideoAnswer(video_id="a", words=words, duration_ms=800, threshold=0.5)
    for name in ("found.csv", "found.jsonl", "found.parquet", "found.via.json"):
        assert write_answer(answer, str(tmp_path / name), video=str(video)) == ()
        assert [one.span_ms for one in _read_results(tmp_path / name)] == [RESULTS[0].span_ms]
    write_answer(answer, tmp_path / "found.eaf", video=video)
    tiers = {tier.tier_id: tier for tier in read_eaf(tmp_path / "found.eaf").tiers}
    assert [one.value for one in tiers["signspot"].annotations] == ["apple"]
    write_answer(answer, tmp_path / "found.json", video=video)
    assert json.loads((tmp_path / "found.json").read_text())["video_id"] == "a"
    write_answer(answer, tmp_path / "found.VTT", video=video)
    with pytest.raises(OutputExists):
        write_answer(answer, tmp_path / "found.eaf", video=video)
    with pytest.raises(InputError, match=r"found.txt: its name tells no format: use a name that ends in .csv or"):
        write_answer(answer, tmp_path / "found.txt", video=video)


tables = [Output.CSV, Output.JSON, Output.JSONL, Output.PARQUET]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(tables), min_size=2, max_size=5))
def test_results_survive_any_chain_of_tables(tmp_path: Path, chain: list[Output]) -> None:
    path = saved(tmp_path / "start.csv")
    for number, kind in enumerate(chain):
        target = tmp_path / f"{number}{kind.value.ending}"
        export(ExportRequest(results=path, targets={kind: target}, overwrite=True))
        path = target
    assert tuple(_read_results(path)) == RESULTS


def test_files_of_several_videos_go_into_a_folder_and_of_one_video_into_a_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.mp4").write_bytes(b"x")
    results = saved(tmp_path / "r.csv")
    done = export(
        ExportRequest(
            results=results,
            targets={Output.EAF: tmp_path / "eaf", Output.VTT: tmp_path / "vtt"},
            videos=tmp_path,
        )
    )
    assert sorted(path.name for path in done.written) == ["a.eaf", "a.vtt", "b.eaf", "b.vtt"]
    tiers = {tier.tier_id: tier for tier in read_eaf(tmp_path / "eaf" / "a.eaf").tiers}
    assert [a.value for a in tiers["signspot"].annotations] == ["apple", "tree"]
    alone = saved(tmp_path / "alone.csv", RESULTS[2])
    export(request(alone, Output.SRT, tmp_path / "b.srt"))
    assert "00:00:00,000 --> 00:00:00,640" in (tmp_path / "b.srt").read_text()


def test_a_via_project_comes_back_with_its_signs_and_times(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.mp4").write_bytes(b"x")
    export(request(saved(tmp_path / "r.csv"), Output.VIA, tmp_path / "p.json", videos=tmp_path))
    back = list(_read_results(tmp_path / "p.json"))
    assert [(s.video_id, s.word, s.span_ms) for s in back] == [(s.video_id, s.word, s.span_ms) for s in RESULTS]
    assert {s.provenance.source for s in back} == {"lookup"}
    export(request(tmp_path / "p.json", Output.CSV, tmp_path / "again.csv"))
    assert len(list(read_spottings(tmp_path / "again.csv"))) == 3


def test_a_via_project_tells_videos_of_one_stem_apart(tmp_path: Path) -> None:
    for name in ("a.mp4", "a.mov"):
        (tmp_path / name).write_bytes(b"x")
    found = [replace(RESULTS[0], video_id=name) for name in ("a.mov", "a.mp4")]
    write_spottings(found, tmp_path / "r.csv")
    export(request(tmp_path / "r.csv", Output.VIA, tmp_path / "p.json", videos=tmp_path))
    assert {one.video_id for one in _read_results(tmp_path / "p.json")} == {"a.mov", "a.mp4"}


def test_the_challenge_numbers_words_by_the_lines_of_a_file_or_by_the_alphabet(tmp_path: Path) -> None:
    results = saved(tmp_path / "r.csv")
    done = export(request(results, Output.CHALLENGE, tmp_path / "c.json"))
    assert done.classes == {"apple": 0, "tree": 1}
    (tmp_path / "words.txt").write_text("house\ntree\nApple\n")
    export(request(results, Output.CHALLENGE, tmp_path / "d.json", classes=tmp_path / "words.txt"))
    assert [span.sign for span in read_challenge(tmp_path / "d.json")["a"]] == [2, 1]
    (tmp_path / "words.txt").write_text("tree\n")
    with pytest.raises(FormatError, match="has no line for 'apple'"):
        export(request(results, Output.CHALLENGE, tmp_path / "e.json", classes=tmp_path / "words.txt"))


def test_what_cannot_be_exported_says_what_is_missing_and_nothing_is_replaced(tmp_path: Path) -> None:
    results = saved(tmp_path / "r.csv")
    with pytest.raises(InputError, match=r"name the videos.*--videos"):
        export(request(results, Output.EAF, tmp_path / "x"))
    assert not (tmp_path / "x").exists(), "no folder is left where nothing was written"
    (tmp_path / "a.mp4").write_bytes(b"x")
    with pytest.raises(InputError, match="has no video 'b'"):
        export(request(results, Output.VIA, tmp_path / "x.json", videos=tmp_path))
    with pytest.raises(InputError, match="no format was asked for"):
        export(ExportRequest(results=results, targets={}))
    with pytest.raises(InputError, match="is the input"):
        export(request(results, Output.CSV, results))
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(OutputExists, match="exists already"):
        export(request(results, Output.JSONL, tmp_path / "there.jsonl"))
    (tmp_path / "odd.json").write_text(json.dumps({"project": {}, "metadata": {}, "view": {}}))
    with pytest.raises(FormatError, match="is not a VIA 3 project"):
        export(request(tmp_path / "odd.json", Output.CSV, tmp_path / "y.csv"))
    with pytest.raises(InputError, match=r"what only a search knows: use --plot of `signspot spot`"):
        export(request(results, Output.PLOT, tmp_path / "p.png"))
    for kind in (Output.CSV, Output.JSONL):
        with pytest.raises(
            InputError, match=rf"not a name for the output --{kind.name.lower()}: use a name that ends in"
        ):
            export(request(results, kind, tmp_path / "p.txt"))


def test_every_format_of_the_table_has_an_ending_of_its_own_and_an_option() -> None:
    assert len({kind.value.ending for kind in Output}) == len(Output)
    options = {files: {option.name for option in fields(files)} for files in (_AnnotateFiles, _ExportFiles)}
    assert options[_AnnotateFiles] | {"json"} == {kind.name.lower() for kind in Output}
    assert options[_ExportFiles] == {kind.name.lower() for kind in Output if not kind.value.needs_search} - {"bobsl"}


def test_no_results_at_all_export_to_an_empty_table(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    write_spottings([], empty)
    assert export(request(empty, Output.JSONL, tmp_path / "e.jsonl")).n_spottings == 0
    assert (tmp_path / "e.jsonl").read_text() == ""


def test_why_finds_a_result_by_the_beginning_of_its_id_and_says_who_else_says_so(tmp_path: Path) -> None:
    one, human, rival = RESULTS[0], spotting("a", 1040, source="human"), spotting("a", 1200, "tree")
    results = saved(tmp_path / "r.csv", one, human, rival, RESULTS[1], RESULTS[2])
    found = why(WhyRequest(results=results, spotting_id=one.spotting_id[:12]))
    assert (found.spotting, found.agreeing, found.competing) == (one, (human,), (rival,))
    assert found.is_same_video is None and found.entry is None
    assert found.as_json()["spotting"]["model"] == "m"  # type: ignore[index]


def test_why_checks_the_video_and_refuses_ids_that_fit_nothing_or_too_much(tmp_path: Path) -> None:
    results = saved(tmp_path / "r.csv")
    (tmp_path / "a.mp4").write_bytes(b"another video")
    found = why(WhyRequest(results=results, spotting_id=RESULTS[0].spotting_id, video=tmp_path / "a.mp4"))
    assert found.is_same_video is False
    with pytest.raises(InputError, match="none of its 3 results has the id 'spot:0000'"):
        why(WhyRequest(results=results, spotting_id="spot:0000"))
    with pytest.raises(InputError, match="at least 4 characters"):
        why(WhyRequest(results=results, spotting_id="spot:"))
