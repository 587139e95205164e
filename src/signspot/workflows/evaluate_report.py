"""The folder of an evaluation: the figures for scripts, every decision, the curves, and a page for people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from signspot.evaluation.intervals import Interval
from signspot.evaluation.localisation import false_alarms_per_hour
from signspot.evaluation.protocol import CaseKind
from signspot.figures.evaluation import CaseFigure, case_png, ranking_png, search_png
from signspot.files.atomic import atomic_output, new_folder, refuse_folder
from signspot.files.json import write_json
from signspot.files.pages import PageFigure, PageSection, PageTable, ReportPage, percent, write_report
from signspot.stores.corpus import DecisionNames, write_decisions
from signspot.workflows.evaluate import ALARM_RATES, N_LISTED, CaseCurves, Evaluation

SCORES, DECISIONS, CURVES, SEARCH, PAGE = "scores.json", "decisions.parquet", "curves.png", "search.png", "index.html"
_OWN_FILES = frozenset((SCORES, DECISIONS, CURVES, SEARCH, PAGE))
_HEAD = ("", "score", "other words", "other {unit}s", "chance", "paper")
_MOST_PAIRS = 12
_STORIES: dict[CaseKind, tuple[str, str]] = {
    "clear": ("Right", "The annotated word scores highest of all words, at the annotated time."),
    "just beaten": ("Just beaten", "Found at the right time, but another word scores a little higher."),
    "wrong time": ("Right word, wrong time", "The annotated word scores highest of all, but at another moment."),
    "missed": ("Missed", "Another word scores higher, and the annotated word is found at another moment."),
}


def refuse_evaluation_folder(folder: Path, *, overwrite: bool = False) -> None:
    """Raise if an evaluation cannot be written there, before minutes are spent on it."""
    refuse_folder(folder, _OWN_FILES, overwrite=overwrite)


def write_evaluation(evaluation: Evaluation, folder: Path, *, overwrite: bool = False) -> None:
    with new_folder(folder, _OWN_FILES, overwrite=overwrite) as temporary:
        write_json(evaluation.as_json(), temporary / SCORES)
        _write_decisions(evaluation, temporary / DECISIONS)
        ranking, search = _ranking_figure(evaluation), _search_figure(evaluation)
        for name, figure in ((CURVES, ranking), (SEARCH, search)):
            if figure is not None:
                with atomic_output(temporary / name) as path:
                    path.write_bytes(figure.png)
        write_report(_page(evaluation, ranking, search), temporary / PAGE)


def table_rows(evaluation: Evaluation) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            one.name,
            percent(one.value),
            _between(one.by_class),
            _between(one.by_unit),
            "" if one.chance is None else percent(one.chance),
            "" if one.paper is None else percent(one.paper),
        )
        for one in evaluation.measures
    )


def table_head(evaluation: Evaluation) -> tuple[str, ...]:
    return tuple(name.format(unit=evaluation.test.unit) for name in _HEAD)


def summary_lines(evaluation: Evaluation) -> tuple[str, ...]:
    """What was tested, how the table is to be read, and what should be known about it."""
    scores, choice = evaluation.scores, evaluation.request.protocol
    kind = "" if choice.name == "all" else f"{choice.name} "
    level = round(100 * evaluation.request.bootstrap.level)
    tested = (
        f"{len(scores.passage_ids)} passages of {evaluation.n_words} {kind}words, each looked up in "
        f"{scores.n_entries} dictionary clips ({choice.dictionary_words} dictionary, stride {choice.stride})"
    )
    units = len(set(scores.signers))
    spread = f"intervals hold {level}% of the draws of other words, and of other {evaluation.test.unit}s ({units} here)"
    lines = [tested, spread]
    if any(measure.paper is not None for measure in evaluation.measures):
        row = "the spotting benchmark" if evaluation.paper is None else evaluation.paper.name
        lines.append(f"paper: {row}, on BSL-1K: another data set, so only the order of methods compares")
    return (*lines, *_search_lines(evaluation), *evaluation.notes)


def _search_lines(evaluation: Evaluation) -> Iterator[str]:
    found = evaluation.spotting
    if found is None:
        return
    rates = ", ".join(f"{percent(found.recall_at(rate))} at {rate:g}" for rate in ALARM_RATES)
    yield (
        f"searching {found.hours:.2f} hours for {found.n_words} words: of {found.curve.n_positives} annotated signs, "
        f"{rates} false alarms an hour are found; signs that nobody annotated count as false alarms"
    )


def _write_decisions(evaluation: Evaluation, path: Path) -> None:
    scores, test = evaluation.scores, evaluation.test
    if scores.decisions is None:
        raise ValueError("scores without decisions")
    names = DecisionNames(
        passages=scores.passage_ids,
        words=[evaluation.word(number) for number in scores.passages.words],
        signers=scores.signers,
        label_frames=scores.label_frame,
        entries=[test.material.entry_ids[row] for row in test.entry_rows],
        entry_words=[evaluation.word(number) for number in test.gallery_words],
    )
    write_decisions(scores.decisions, names, path)


def _page(evaluation: Evaluation, ranking: PageFigure, search: PageFigure | None) -> ReportPage:
    table = PageTable("Scores; intervals in brackets", table_head(evaluation), table_rows(evaluation))
    figures = tuple(figure for figure in (ranking, search) if figure is not None)
    cases = tuple(_case_figure(evaluation, one) for one in evaluation.cases)
    files = (
        (SCORES, "all figures, for scripts"),
        (DECISIONS, f"every entry of the annotated word and the first {N_LISTED} of all, for each passage"),
        (CURVES, "the ranking, and where words are found"),
        *(((SEARCH, "precision, recall and false alarms"),) if search is not None else ()),
    )
    explanation = (
        "Each figure is one passage of continuous signing. Coloured lines: similarity with each dictionary clip of the "
        "annotated word. Dashed: the clip of another word that comes closest. Green: where the sign is annotated. "
        "Circle: where the word would be found."
    )
    return ReportPage(
        title=f"Evaluation of {evaluation.request.model}",
        paragraphs=summary_lines(evaluation),
        sections=(
            PageSection("Scores", table=table, figures=figures),
            PageSection("Cases", (explanation,), figures=cases),
            _confusion_section(evaluation),
        ),
        files=files,
    )


def _ranking_figure(evaluation: Evaluation) -> PageFigure:
    scores = evaluation.scores
    best = np.empty(0, np.int64)  # the rank of the annotated word's first entry, passage by passage
    if (decisions := scores.decisions) is not None:
        own = decisions.is_relevant
        stops = np.searchsorted(decisions.passage[own], np.arange(1, len(scores.passage_ids)))
        best = np.array([ranks.min() for ranks in np.split(decisions.rank[own], stops)], np.int64)
    found = scores.found_frame >= 0
    offset = scores.found_frame[found] - scores.label_frame[found]
    first, five = (percent(float((best <= k).mean())) for k in (1, 5))
    median = f"{np.median(np.abs(offset)):.0f} frames" if len(offset) else "unknown"
    said = (
        f"The annotated word is first in {first} of the passages and among the first five in {five}, at any time. "
        f"With the word known, the median distance from the annotation is {median}."
    )
    png = ranking_png(best, offset, scores.n_entries, scores.options.tolerance)
    return PageFigure("Ranking and time", png, said, said)


def _search_figure(evaluation: Evaluation) -> PageFigure | None:
    found = evaluation.spotting
    if found is None:
        return None
    alarms = false_alarms_per_hour(found.curve, found.hours)
    said = "".join(_search_lines(evaluation))
    said = f"{said[:1].upper()}{said[1:]}. Best F1 at any threshold: {percent(float(found.curve.f1.max(initial=0)))}."
    png = search_png(found.curve.precision, found.curve.recall, alarms)
    return PageFigure("Searching whole videos", png, said, said)


def _case_figure(evaluation: Evaluation, shown: CaseCurves) -> PageFigure:
    case, scores, test = shown.case, evaluation.scores, evaluation.test
    ids = [test.material.entry_ids[row] for row in test.entry_rows]
    title, story = _STORIES[case.kind]
    word = evaluation.word(int(scores.passages.words[case.passage]))
    rival = "no other word" if case.other_row is None else evaluation.word(int(test.gallery_words[case.other_row]))
    label, found = int(scores.label_frame[case.passage]), int(scores.found_frame[case.passage])
    figure = CaseFigure(
        centres=shown.centres, own=shown.own, other=shown.other, label_frame=label, tolerance=scores.options.tolerance
    )
    clips = ", ".join(f"v{number} {ids[row]}" for number, row in enumerate(shown.own_rows, 1))
    told = f"{story} Margin {case.margin:+.3f}. {clips}; other word: {rival}. {scores.passage_ids[case.passage]}."
    where = f"{word!r} is annotated at frame {label} and found at frame {found}"
    alternative = f"{where}; it scores {case.margin:+.3f} in cosine against {rival!r}, the closest other word."
    return PageFigure(f"{title}: {word}", case_png(figure), alternative, told)


def _confusion_section(evaluation: Evaluation) -> PageSection:
    report = evaluation.confusion
    kinds = "; ".join(f"{one.differs_in}: {percent(one.rate.estimate)} {_between(one.rate)}" for one in report.kinds)
    other = report.other_words
    usual = "" if other is None else f" Any other word gets ahead in {percent(other.estimate)}."
    how = (
        "A passage is confused when the best clip of the pair's other word scores at least as high as its own. Pairs "
        "are words that the dictionary files under one sign, and words whose clips look most alike to the trunk."
    )
    rows = tuple(
        (
            f"{evaluation.word(one.pair.first)} / {evaluation.word(one.pair.second)}",
            one.pair.differs_in,
            f"{one.n_confused} of {one.n_passages}",
            f"{one.mean_margin:+.3f}",
        )
        for one in report.pairs[:_MOST_PAIRS]
    )
    head = ("pair", "differs in", "confused", "mean margin")
    table = PageTable(f"The pairs most often confused, at most {_MOST_PAIRS}", head, rows) if rows else None
    return PageSection("Signs taken for each other", (how, f"{kinds or 'No pair has a passage.'}.{usual}"), table)


def _between(interval: Interval | None) -> str:
    if interval is None:
        return ""
    if interval.low is None or interval.high is None:
        return "[unknown]"
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
