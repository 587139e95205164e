"""The report of the demo: the table, what stands behind it, and a found and a missed sign as the paper draws them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from signspot.domain.boxes import SignerBox
from signspot.domain.spans import FrameSpan
from signspot.domain.tracks import FrameShape, Pixels
from signspot.formats.report_page import Figure, MethodRow, ReportPage, write_report
from signspot.media.plot_example import Example, Panel, example_png
from signspot.media.reader import VideoReader
from signspot.media.thumbnails import TILE_HEIGHT, strip
from signspot.workflows.demo_folder import DemoFolder
from signspot.workflows.demo_methods import FALSE_ALARMS, Classroom
from signspot.workflows.demo_spotting import Mention, Spotted

NOTE = (
    "This world is synthetic: drawn figures, invented signs, made-up sentences. It shows how the parts work together "
    "and makes no claim about real signing."
)
_TILE = FrameShape(TILE_HEIGHT, TILE_HEIGHT, keep_aspect=True)


def write_demo_report(
    files: DemoFolder, table: tuple[MethodRow, ...], classroom: Classroom, spotted: Spotted, *, isolated: bool
) -> None:
    """Write the page, in place of an older one."""
    page = ReportPage(
        title="signspot demo: spotting signs that were never annotated",
        note=NOTE,
        paragraphs=(*_paragraphs(classroom), findings_note(spotted)),
        rows=table,
        table_note=table_note(classroom),
        figures=tuple(_figures(spotted, isolated=isolated)),
        files=_files(files),
        commands=next_commands(files, spotted),
    )
    write_report(page, files.report, overwrite=True)


def table_note(classroom: Classroom) -> str:
    """What the numbers of the table are."""
    return (
        "mAP and R@5: a passage of continuous signing is looked up in the dictionary clips of the "
        f"{len(classroom.split.test)} test words; a clip is right if its word is the annotated one and its best match "
        "lies at the annotated time. Localisation: the share of passages whose sign is found at the right time when "
        "its word is known. Chance: what vectors that know nothing would score. Range: where mAP would mostly lie with "
        "other words; so few words hardly tell one method from another."
    )


def findings_note(spotted: Spotted) -> str:
    """How many signs of the searched episode were found, and where the threshold comes from."""
    answer, mentions = spotted.answer, spotted.mentions
    return (
        f"{spotted.methods[-1]} searched {spotted.episode.video_id}: of {len(mentions)} times that a test word "
        f"is in a subtitle and signed near it, its highest point lies on the sign {sum(m.is_found for m in mentions)} "
        f"times. With a threshold of {answer.threshold:.4f} there are {len(list(answer))} findings, {spotted.n_right} "
        f"of them right. In the training passages {FALSE_ALARMS:.0%} of the words that are not there pass this "
        "threshold. All cosines of so small a head are near 1: only their order says anything."
    )


def next_commands(files: DemoFolder, spotted: Spotted) -> tuple[str, ...]:
    """What a newcomer may try now."""
    world, word = files.world, max(spotted.answer.words, key=lambda one: len(one.spottings)).word
    model, threshold = files.heads / f"{spotted.methods[-1]}.safetensors", spotted.answer.threshold
    return (
        ". .venv/bin/activate",
        f"signspot dictionary check {world.dictionary}",
        f"signspot train compare {files.heads / 'watch-lookup'} {files.heads / 'watch-read-lookup'}",
        f"signspot spot {world.corpus} {word} --dictionary {world.dictionary} --model {model}"
        f" --threshold {threshold:.4f} --store {files.vectors} --csv {word}.csv",
        "signspot dictionary check MY_DICTIONARY      # a folder of clips per word, or a CSV",
        "pip install -e '.[pose]'      # what finds body and hands in your videos",
        "signspot spot MY_VIDEO.mp4 WORD --dictionary MY_DICTIONARY --plot similarity.png",
    )


def _paragraphs(classroom: Classroom) -> tuple[str, ...]:
    train, split = classroom.train, classroom.split
    return (
        f"A world was drawn: a dictionary of {len(train.entry_ids)} clips of {len(train.vocabulary)} words, and "
        f"subtitled broadcasts in which {len(train.passages)} passages for training carry one annotated sign each. A "
        f"small video network that knows another such world turned all of it into vectors. On top of it, heads were "
        f"learned from three supervisors: watching sparse annotations, reading subtitles, looking words up in the "
        f"dictionary.",
        f"Annotations of {len(split.train)} words are learned from. The table is about the other {len(split.test)} "
        f"words: no annotation of them was ever used, and the people who sign them in the test were never seen.",
    )


def _files(files: DemoFolder) -> tuple[tuple[str, str], ...]:
    outputs = (
        "in a spreadsheet: the findings",
        "in ELAN: the findings as tiers, and what was really signed",
        "the video, with curves moving along",
    )
    named = [(path.name, what) for path, what in zip(files.outputs.paths.values(), outputs, strict=True)]
    folders = (
        ("world", "the videos, subtitles, annotations and the truth"),
        ("heads", "the runs, and a model of each"),
    )
    return (*named, (files.scores.name, "the table, for scripts"), *folders)


def _figures(spotted: Spotted, *, isolated: bool) -> Iterator[Figure]:
    stories = {
        True: ("A found sign", "The highest point (circle) lies where the word is signed (green)."),
        False: ("A missed sign", "The highest point (circle) lies elsewhere: something else looks more like the clip."),
    }
    for is_found, (title, text) in stories.items():
        if (mention := spotted.clearest(is_found=is_found)) is not None:
            said = f"Each curve is one dictionary clip of {mention.word}, over the passage whose subtitle mentions it. "
            png = example_png(example_of(mention, spotted, isolated=isolated))
            yield Figure(f"{title}: {mention.word}", said + text, png)


def example_of(mention: Mention, spotted: Spotted, *, isolated: bool) -> Example:
    """What a figure shows of a mention: pictures, the truth, and the curves of every method."""
    episode, entry = spotted.episode, mention.entry
    panels = tuple(
        Panel(name, word)
        for name, answer in zip(spotted.methods, spotted.answers, strict=True)
        for word in answer.words
        if word.word == mention.word
    )
    axis = panels[-1].word.similarity.axis
    strips = [
        (f"{mention.word}, as it is signed here", _strip(episode.video, mention.signed[0], episode.box, isolated))
    ]
    if not mention.is_found:
        strips.append(("what was taken for it", _strip(episode.video, mention.taken, episode.box, isolated)))
    if entry.video is not None:
        strips.append((f"its dictionary clip {entry.entry_id}", _strip(entry.video, entry.kept, entry.box, isolated)))
    return Example(mention.span_ms, tuple(axis.millis_of(span) for span in mention.signed), panels, tuple(strips))


def _strip(video: Path, span: FrameSpan | None, box: SignerBox | None, isolated: bool) -> Pixels:
    """Pictures of some frames of a video, all of them by default, side by side."""
    frames: list[Pixels] = []
    with VideoReader(video, shape=_TILE, box=box, isolated=isolated) as reader:
        for number, frame in enumerate(reader):
            if span is not None and number >= span.stop:
                break
            if span is None or number in span:
                frames.append(frame.pixels)
    return strip(frames)
