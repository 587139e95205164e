"""Looking for one word in all videos of a source, and remembering what each finding looks like."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from signspot.domain.corpus import Episode, Subtitle
from signspot.domain.dictionary import Dictionary
from signspot.domain.results import Provenance, WordAnswer
from signspot.domain.spans import FRAME_MS, MillisSpan
from signspot.domain.tracks import Embedder, EmbeddingTrack
from signspot.domain.words import Vocabulary, Word
from signspot.errors import InputError, SignspotError, trouble_of
from signspot.features.extract import ExtractOptions
from signspot.features.stages import filed_under
from signspot.formats.manifests import read_corpus, read_dictionary
from signspot.models.zoo import load_model
from signspot.spotting.occurrences import Occurrence, occurrence
from signspot.spotting.peaks import spottings_of
from signspot.spotting.queries import best_view
from signspot.spotting.refine import Refinement
from signspot.spotting.similarity import similarity
from signspot.text.subtitles import read_subtitles
from signspot.text.tokenise import find_words
from signspot.workflows.default_model import chosen_model, kept_for
from signspot.workflows.entry_vectors import LEFT_OUT
from signspot.workflows.spot import Query, SpotOptions, prepare
from signspot.workflows.tracks import Progress, store_at, track_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FootageRequest:
    """One word, where to look for it, and with what."""

    source: Path  # a video, or a folder or list (.csv, .json) of videos
    word: str
    dictionary: Path
    model: str = ""  # a name, or the path of a .safetensors file; "": what can see the videos and clips best
    backend: str = "auto"
    device: str = "cpu"
    subtitles: Path | None = None  # of a single video; a corpus knows its own
    options: SpotOptions = SpotOptions()


@dataclass(frozen=True, slots=True, eq=False)
class SearchedVideo:
    """One video after the search."""

    episode: Episode
    answer: WordAnswer
    occurrences: tuple[Occurrence, ...]
    track: EmbeddingTrack
    provenance: Provenance
    duration_ms: int
    mentions: tuple[MillisSpan, ...] | None  # subtitles that mention the word; None: there are no subtitles
    silent: tuple[MillisSpan, ...] = ()  # subtitles that do not
    partial: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedVideo:
    """A video that could not be searched."""

    episode: Episode
    failure: SignspotError


@dataclass(frozen=True, slots=True)
class Search:
    """A request with everything looked up that all videos share."""

    request: FootageRequest
    episodes: tuple[Episode, ...]
    dictionary: Dictionary
    query: Query
    model: Embedder
    threshold: float
    warnings: tuple[str, ...]

    @property
    def word(self) -> Word:
        """The word that is looked for."""
        return self.query.words[0].word


def prepare_search(request: FootageRequest, progress: Progress | None = None) -> Search:
    """Open model, dictionary and corpus, and embed the word's clips."""
    source = read_dictionary(request.dictionary)
    episodes, problems = _episodes(request)
    recordings = (*(episode.video for episode in episodes), *(entry.video for entry in source.dictionary))
    chosen = chosen_model(request.model, recordings)
    request = replace(request, options=replace(request.options, store=kept_for(chosen, request.options.store)))
    model = load_model(chosen.name, backend=request.backend, device=request.device)
    query = prepare([request.word], source.dictionary, model, request.options, progress)
    left_out = tuple(f"{LEFT_OUT}{problem}" for problem in source.problems if not problem.is_remark)
    threshold = model.threshold if request.options.threshold is None else request.options.threshold
    warnings = chosen.remarks + left_out + problems + query.warnings
    return Search(request, episodes, source.dictionary, query, model, threshold, warnings)


def search(prepared: Search, progress: Progress | None = None) -> Iterator[SearchedVideo | FailedVideo]:
    """Every video, one after the other; one that cannot be read is an outcome too, unless it is the only one."""
    for episode in prepared.episodes:
        try:
            yield _searched(episode, prepared, progress)
        except (SignspotError, ValueError) as error:
            if len(prepared.episodes) == 1:
                raise
            yield FailedVideo(episode, trouble_of(episode.video, error))


def _episodes(request: FootageRequest) -> tuple[tuple[Episode, ...], tuple[str, ...]]:
    source = request.source
    if not (source.is_dir() or source.suffix.lower() in (".csv", ".json")):
        return (Episode(video_id=source.stem, video=source, subtitles=request.subtitles),), ()
    if request.subtitles is not None:
        raise InputError(request.subtitles, "a corpus knows its own subtitles", "leave --subtitles out")
    found = read_corpus(source)
    problems = tuple(f"left out: {problem}" for problem in found.problems if not problem.is_remark)
    if not found.episodes:
        raise InputError(source, "holds no videos", "name a video, or a folder of videos")
    return found.episodes, problems


def _searched(episode: Episode, prepared: Search, progress: Progress | None) -> SearchedVideo:
    options = prepared.request.options
    with store_at(options.store) as store:
        extract = ExtractOptions(stride=options.stride, isolated=options.isolated, box=options.box)
        read = track_of(episode, prepared.model, store=store, options=extract, progress=progress)
    compared = best_view(similarity(read.track, prepared.query.words[0]), prepared.query.n_views)
    provenance = Provenance(
        media_sha256=read.media_sha256,
        model=prepared.model.name,
        fingerprint=filed_under(prepared.model.fingerprint, read.box),
        dictionary=prepared.dictionary.name,
    )
    cues, warnings = _cues(episode)
    mentions = None if cues is None else _mentioning(cues, prepared)
    found = tuple(
        replace(one, provenance=replace(provenance, subtitle=_cue_at(one.span_ms, mentions)))
        for one in spottings_of(compared, prepared.threshold, provenance, Refinement() if options.refine else None)
    )
    return SearchedVideo(
        episode,
        WordAnswer(compared, found),
        tuple(occurrence(one, episode, read.track) for one in found),
        read.track,
        provenance,
        round(read.track.axis.time_of(-1)) + FRAME_MS,
        None if mentions is None else tuple(cue.span_ms for cue in mentions),
        tuple(cue.span_ms for cue in cues or () if cue not in (mentions or ())),
        read.remarks.partial,
        read.remarks.warnings + warnings,
    )


def _cues(episode: Episode) -> tuple[tuple[Subtitle, ...] | None, tuple[str, ...]]:
    if episode.subtitles is None:
        return None, ()
    read = read_subtitles(episode.subtitles)
    return read.subtitles, read.in_short


def _mentioning(cues: tuple[Subtitle, ...], prepared: Search) -> tuple[Subtitle, ...]:
    """The subtitles that mention the word. All words of the dictionary compete: "ice cream" is no mention of cream."""
    vocabulary: Vocabulary = prepared.dictionary.vocabulary
    language = prepared.request.options.language
    return tuple(
        cue for cue in cues if any(m.word == prepared.word for m in find_words(cue.text, vocabulary, language))
    )


def _cue_at(span: MillisSpan, mentions: tuple[Subtitle, ...] | None) -> Subtitle | None:
    """The subtitle within reach of a finding that mentions its word, the nearest of several."""
    reach = SpotOptions().padding_ms
    near = [cue for cue in mentions or () if cue.span_ms.padded(reach, reach).overlaps(span)]
    middle = span.start + span.stop
    return min(near, key=lambda cue: abs(cue.span_ms.start + cue.span_ms.stop - middle), default=None)
