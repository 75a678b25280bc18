"""A synthetic evaluation of the size of SWS 2013 (twenty hours, 500 queries, five systems), in memory and as files.

`nights` makes three nights of an inbox of its runs. `write` writes official files, in MediaEval's layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.model import schemas
from swsdask.model.trials import I64
from swsdask.simulate.speech import (
    FILLED_PAUSE,
    LANGUAGES,
    SCORE_UNIT,
    SYSTEMS,
    TICKS_PER_MS,
    DetectionTask,
    Queries,
    Recordings,
    SpokenQueries,
    SpokenWords,
    SystemModel,
    choose,
    detect,
    find,
    make_lexicon,
    make_recordings,
    talk,
)


@dataclass(frozen=True, eq=False)
class SimulatedEvaluation:
    """The tables of an evaluation, each in the schema of that name in `model.schemas`, and the runs by system.

    `occurrences` holds every place where a query was spoken, evaluated or not. Runs are in the canonical order of
    `DETECTIONS`.
    """

    documents: pa.Table
    queries: pa.Table
    words: pa.Table
    segments: pa.Table
    occurrences: pa.Table
    runs: dict[str, pa.Table]


def simulate(
    seed: int, *, hours: float, n_queries: int, systems: Sequence[SystemModel] = SYSTEMS
) -> SimulatedEvaluation:
    """Make an evaluation: several languages, two source types, some recordings with two channels.

    `hours` counts every recording once, whatever its channels, as NIST does. Speech and queries depend only on `seed`,
    `hours` and `n_queries`; a run also depends on its place in `systems`, so an appended system does not change the
    other runs.
    """
    rng = np.random.default_rng([seed, 0])
    recordings = make_recordings(hours, rng)
    spellings, syllables = make_lexicon(rng)
    queries, words = choose(n_queries, talk(recordings, syllables, rng), rng)
    occurrences = find(queries, words)
    n_syllables = np.array([int(syllables[list(query)].sum()) for query in queries.words])
    evaluated_s = float((recordings.length - recordings.lead_in).sum()) / 1000
    task = DetectionTask(
        recordings=recordings,
        occurrences=occurrences,
        hardness=rng.normal(size=len(occurrences.query)),
        query_ease=np.clip((n_syllables - 4) / 4, -1, 1) - 0.5 * queries.oov + rng.normal(0.0, 0.3, n_queries),
        query_duration=110.0 + 95.0 * n_syllables,
        n_nontargets=evaluated_s,
    )
    return SimulatedEvaluation(
        documents=_documents(recordings),
        queries=_queries(queries, spellings, n_syllables.tolist()),
        words=_words(recordings, words, spellings),
        segments=_segments(recordings, words),
        occurrences=_occurrences(recordings, occurrences),
        runs={
            model.name: detect(task, model, np.random.default_rng([seed, 1, place]))
            for place, model in enumerate(systems)
        },
    )


def _documents(recordings: Recordings) -> pa.Table:
    document = recordings.track_document
    return pa.table(
        {
            "document": np.array(recordings.ids)[document],
            "channel": recordings.track_channel,
            "start": (recordings.lead_in[document] * TICKS_PER_MS).astype(np.int32),
            "end": (recordings.length[document] * TICKS_PER_MS).astype(np.int32),
            "source_type": np.where(recordings.conversation[document], "cts", "bnews"),
            "language": np.array(LANGUAGES)[recordings.language[document]],
        },
        schema=schemas.DOCUMENTS,
    )


def _queries(queries: Queries, spellings: list[str], syllables: list[int]) -> pa.Table:
    texts = [" ".join(spellings[word] for word in words) for words in queries.words]
    attributes = [
        [
            ("NGram", f"{len(words)}-grams"),
            ("Characters", str(len(text.replace(" ", "")))),
            ("Syllables", str(count)),
            ("language", LANGUAGES[language]),
            ("oov", "true" if oov else "false"),
        ]
        for words, text, count, language, oov in zip(
            queries.words, texts, syllables, queries.language.tolist(), queries.oov.tolist(), strict=True
        )
    ]
    ids = [f"sim-{number:04d}" for number in range(1, len(texts) + 1)]
    return pa.table({"query": ids, "text": texts, "attributes": attributes}, schema=schemas.QUERIES)


def _words(recordings: Recordings, words: SpokenWords, spellings: list[str]) -> pa.Table:
    """Words are in lower case, except for the first word of a turn. The subtype marks disfluencies."""
    capitals = [word.capitalize() for word in spellings]
    said = np.array([*spellings, *capitals, "eh", "m-"])
    first = np.diff(words.turn, prepend=-1) != 0
    number = np.where(words.word >= 0, words.word + len(spellings) * first, 2 * len(spellings))
    disfluency = np.where(words.word == FILLED_PAUSE, "fp", "frag")
    return (
        pa.table(
            {
                **_spoken(recordings, words, np.arange(len(words.word)), np.arange(len(words.word))),
                "word": said[np.where((words.word < 0) & (words.word != FILLED_PAUSE), number + 1, number)],
                "subtype": np.where(words.word >= 0, "lex", disfluency),
            }
        )
        .select(schemas.WORDS.names)
        .cast(schemas.WORDS)
    )


def _segments(recordings: Recordings, words: SpokenWords) -> pa.Table:
    """Make one SPEAKER record per turn."""
    first = np.flatnonzero(np.diff(words.turn, prepend=-1))
    last = np.append(first[1:], len(words.turn)) - 1
    columns = _spoken(recordings, words, first, last)
    return pa.table(columns).select(schemas.SEGMENTS.names).cast(schemas.SEGMENTS)


def _spoken(recordings: Recordings, words: SpokenWords, first: I64, last: I64) -> dict[str, NDArray[np.generic]]:
    document = np.array(recordings.ids)[words.document[first]]
    return {
        "document": document,
        "channel": words.channel[first],
        "speaker": np.strings.add(np.strings.add(document, "_s"), words.speaker[first].astype(str)),
        "start": words.start[first] * TICKS_PER_MS,
        "end": words.end[last] * TICKS_PER_MS,
    }


def _occurrences(recordings: Recordings, occurrences: SpokenQueries) -> pa.Table:
    times = ("start", "end", "first_word_end", "last_word_start")
    return pa.table(
        {
            "query": occurrences.query,
            "document": np.array(recordings.ids)[occurrences.document],
            "channel": occurrences.channel,
            **{name: getattr(occurrences, name) * TICKS_PER_MS for name in times},
        }
    ).cast(schemas.OCCURRENCES)


NIGHTLY_SETTINGS = """\
[[evaluation]]
name = "demo"
reference = "files"
archive = "archive"
out = "board"
inbox = ["inbox"]
preset = "sws2013"
measures = ["atwv", "mtwv", "otwv", "stwv", "cnxe", "cnxe_min", "map"]
baseline = "previous"
gates = ["atwv drops .02 with p < .05"]
"""


def nights(runs: Path, inbox: Path) -> list[tuple[str, Callable[[], None]]]:
    """Return, for each night, a description of the change before it and the function that makes it.

    `runs` is the folder of the runs of `simulate.evaluation`; `inbox` gets a folder for each system.
    """

    def arrive(system: str, original: str) -> None:
        (inbox / system).mkdir(parents=True, exist_ok=True)
        copyfile(runs / f"{original}.kwslist.xml", inbox / system / "run.kwslist.xml")

    def first() -> None:
        for system in ("weak", "middling", "overconfident"):
            arrive(system, system)

    def second() -> None:
        arrive("keyword-specific", "keyword-specific")
        arrive("weak", "calibrated")

    def third() -> None:
        arrive("middling", "weak")
        arrive("calibrated", "calibrated")
        broken = inbox / "calibrated" / "run.kwslist.xml"
        content = broken.read_bytes()
        broken.write_bytes(content[: len(content) // 2])

    return [
        ("three systems arrive", first),
        ("a new system, and a better run of weak", second),
        ("a worse run of middling, and a file that breaks off", third),
    ]


def write(evaluation: SimulatedEvaluation, directory: Path) -> None:
    """Write `sim.ecf.xml`, `sim.rttm`, `sim.kwlist.xml` and `runs/SYSTEM.kwslist.xml`: times with three decimals.

    The files have the content of the tables, and the same evaluation gives the same bytes. Raises `OSError` if the
    directory cannot be written.
    """
    (directory / "runs").mkdir(parents=True, exist_ok=True)
    _write(directory / "sim.ecf.xml", [_ecf(evaluation.documents)])
    _write(directory / "sim.rttm", [_rttm(evaluation.segments, evaluation.words)])
    _write(directory / "sim.kwlist.xml", [_kwlist(evaluation.queries)])
    for system, run in evaluation.runs.items():
        _write(directory / "runs" / f"{system}.kwslist.xml", _kwslist(system, run, evaluation))


def _write(path: Path, parts: list[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(parts)


def _ecf(documents: pa.Table) -> str:
    """Return excerpts without their language: F4DE's schema has no such attribute, and KWSEval stops reading there."""
    rows = _rows(
        '<excerpt audio_filename="audio/',
        documents["document"],
        '.wav" channel="',
        _text(documents["channel"]),
        '" tbeg="',
        _seconds(documents["start"]),
        '" dur="',
        _seconds(pc.subtract(documents["end"], documents["start"])),
        '" source_type="',
        documents["source_type"],
        '"/>\n',
    )
    once = documents.group_by("document", use_threads=False).aggregate([("start", "min"), ("end", "max")])
    total = pc.sum(pc.subtract(once["end_max"], once["start_min"])).cast(pa.int64())
    header = (
        f'<ecf source_signal_duration="{_seconds(pa.array([total.as_py()]))[0]}" language="multiple" version="1">\n'
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{header}{"".join(rows)}</ecf>\n'


def _rttm(segments: pa.Table, words: pa.Table) -> str:
    """SPEAKER records, then LEXEME records."""
    speakers = _rows("SPEAKER ", *_rttm_place(segments), " <NA> <NA> ", segments["speaker"], " <NA>\n")
    lexemes = _rows(
        "LEXEME ", *_rttm_place(words), " ", words["word"], " ", words["subtype"], " ", words["speaker"], " <NA>\n"
    )
    return "".join(speakers) + "".join(lexemes)


def _rttm_place(table: pa.Table) -> tuple[pa.ChunkedArray | str, ...]:
    duration = pc.subtract(table["end"], table["start"])
    return table["document"], " ", _text(table["channel"]), " ", _seconds(table["start"]), " ", _seconds(duration)


def _kwlist(queries: pa.Table) -> str:
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<kwlist ecf_filename="sim.ecf.xml" version="1" language="multiple" '
        'encoding="UTF-8" compareNormalize="lowercase">\n'
    ]
    for query in queries.to_pylist():
        parts.append(f"<kw kwid={quoteattr(query['query'])}><kwtext>{escape(query['text'])}</kwtext><kwinfo>")
        for name, value in query["attributes"]:
            parts.append(f"<attr><name>{escape(name)}</name><value>{escape(value)}</value></attr>")
        parts.append("</kwinfo></kw>\n")
    parts.append("</kwlist>\n")
    return "".join(parts)


def _kwslist(system: str, run: pa.Table, evaluation: SimulatedEvaluation) -> list[str]:
    """Return the parts of a file that lists every query, with or without detections."""
    documents = pc.unique(evaluation.documents["document"])
    rows = _rows(
        '<kw file="',
        documents.take(run["document"]),
        '" channel="',
        _text(run["channel"]),
        '" tbeg="',
        _seconds(run["start"]),
        '" dur="',
        _seconds(run["duration"]),
        '" score="',
        _score(run["score"]),
        '" decision="',
        pa.array(["NO", "YES"]).take(run["decision"]),
        '"/>\n',
    )
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<kwslist kwlist_filename="sim.kwlist.xml" language="multiple" '
        f"system_id={quoteattr(system)}>\n"
    ]
    ids = evaluation.queries["query"].to_pylist()
    edges = np.searchsorted(run["query"].to_numpy(), np.arange(len(ids) + 1)).tolist()
    for number, query in enumerate(ids):
        parts.append(f'<detected_kwlist kwid={quoteattr(query)} search_time="1.000" oov_count="0">\n')
        parts.extend(rows[edges[number] : edges[number + 1]])
        parts.append("</detected_kwlist>\n")
    parts.append("</kwslist>\n")
    return parts


def _rows(*columns: pa.ChunkedArray | pa.Array | str) -> list[str]:
    """Join columns side by side into one string per row."""
    joined: list[str] = pc.binary_join_element_wise(*columns, "").to_pylist()
    return joined


def _text(numbers: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    return pc.cast(numbers, pa.string())


def _seconds(ticks: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return times of whole milliseconds, in seconds."""
    return _decimal(pc.divide(pc.cast(ticks, pa.int64()), TICKS_PER_MS), 3)


def _score(scores: pa.ChunkedArray) -> pa.Array:
    units = np.round(scores.to_numpy() / SCORE_UNIT).astype(np.int64)
    sign = pa.array(np.where(units < 0, "-", ""))
    return pc.binary_join_element_wise(sign, _decimal(pa.array(np.abs(units)), 4), "")


def _decimal(units: pa.ChunkedArray | pa.Array, decimals: int) -> pa.ChunkedArray | pa.Array:
    """Whole numbers of 10**-decimals as text, exactly."""
    whole = pc.divide(units, 10**decimals)
    part = pc.subtract(units, pc.multiply(whole, 10**decimals))
    return pc.binary_join_element_wise(_text(whole), pc.utf8_lpad(_text(part), decimals, "0"), ".")
