"""A simulated evaluation as official files, in MediaEval's layout."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.simulate.evaluation import SimulatedEvaluation
from swsdask.simulate.systems import SCORE_UNIT, TICKS_PER_MS


def write(evaluation: SimulatedEvaluation, directory: Path) -> None:
    """Write `sim.ecf.xml`, `sim.rttm`, `sim.kwlist.xml` and `runs/SYSTEM.kwslist.xml`: times with three decimals.

    The files say what the tables say, and the same evaluation gives the same bytes. Raises `OSError` where the
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
    """Excerpts without their language: F4DE's schema has no such attribute, and KWSEval stops reading there."""
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
    """Every query is listed, with or without detections."""
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
    """Times of whole milliseconds, in seconds."""
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
