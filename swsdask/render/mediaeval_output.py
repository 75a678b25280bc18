"""Our numbers in the format of MediaEval's scoring tool, so that scripts that read its output still work.

    Loading tlist file: NAME ...  Done (size: QUERIES)
    Loading ecf file: NAME ...  Done (size: EXCERPTS)
    Loading rttm file: NAME ...  Done (size: OCCURRENCES IN DOCUMENTS OF THE ECF)
    Removing unseen models metadata ...  Done (removed: QUERIES WITHOUT TARGETS)
    Loading stdlist file: NAME ... Done
    Scores: TRIALS (QUERIES model x DOCUMENTS test)  given: N  default(SCORE): N  minScore: SCORE  maxScore: SCORE
    actTWV: ATWV  maxTWV: MTWV  Threshold: LARGEST REJECTED SCORE
    actCnxe: C_nxe  minCnxe: C_nxe AFTER PAV
    Upper-bound TWV (model-dependent offset)  -  actTWV: TWV  maxTWV: TWV  Threshold: SCORE
    Lower-bound Cnxe (model-dependent PAV)    -  actCnxe: C_nxe  minCnxe: C_nxe

The line "Scores" prints numbers as Java prints doubles; all other numbers are rounded to float32 and printed as Java
prints floats. Under `compat = "mediaeval"` the lines equal the tool's to the last character and have the measures
`mediaeval_*` (`measures.mediaeval_tool`). Otherwise they have our own measures; for the best offset or map of each
query only the value at threshold 0 is known, which is printed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from swsdask.model.results import Result

_OF_THE_TOOL = {
    "mediaeval_atwv": "atwv",
    "mediaeval_mtwv": "mtwv",
    "mediaeval_threshold": "mtwv_rejected_threshold",
    "mediaeval_cnxe": "cnxe",
    "mediaeval_cnxe_min": "cnxe_min_pav",
    "mediaeval_offset_atwv": "twv_query_offset",
    "mediaeval_offset_mtwv": "twv_query_offset",
    "mediaeval_pav_cnxe": "cnxe_query_pav",
    "mediaeval_pav_cnxe_min": "cnxe_query_pav",
}
"""The numbers as the tool computes them, and our nearest measure for each."""

_COUNTED = (
    "n_queries",
    "n_given_target",
    "n_imputed_target",
    "n_given_nontarget",
    "n_imputed_nontarget",
    "impute_score",
)

MEASURES = (*_COUNTED, *dict.fromkeys(_OF_THE_TOOL.values()))
"""The measures that the lines need."""

TOOL_MEASURES = (*_COUNTED, *_OF_THE_TOOL, "mediaeval_offset_threshold", "mediaeval_min_score", "mediaeval_max_score")
"""The measures that they need under `compat = "mediaeval"`."""


@dataclass(frozen=True)
class Loaded:
    """The file names of a reference, and their numbers of queries, excerpts and occurrences."""

    queries: str
    n_queries: int
    ecf: str
    n_excerpts: int
    rttm: str
    n_occurrences: int


def write_mediaeval_output(result: Result, loaded: Loaded, directory: Path) -> list[Path]:
    """Write `score.out`, or for several systems one SYSTEM.score.out each, into a directory; their paths.

    The result must have `MEASURES`, or `TOOL_MEASURES`.
    """
    runs = result.manifest["runs"]
    paths = []
    for system in runs:
        path = directory / ("score.out" if len(runs) == 1 else f"{system}.score.out")
        path.write_text(mediaeval_output(result, loaded, system), encoding="utf-8")
        paths.append(path)
    return paths


def mediaeval_output(result: Result, loaded: Loaded, system: str) -> str:
    """The lines for one system."""
    number = _overall(result, system)
    run, settings = result.manifest["runs"][system], result.manifest["settings"]
    if settings["compat"] != "mediaeval":
        low, high = run["scores"]["run"] if run["rows"] else (np.inf, -np.inf)
        number |= {name: number[ours] for name, ours in _OF_THE_TOOL.items()}
        number |= {"mediaeval_offset_threshold": 0.0, "mediaeval_min_score": low, "mediaeval_max_score": high}
    given, imputed = (int(number[f"n_{kind}_target"] + number[f"n_{kind}_nontarget"]) for kind in ("given", "imputed"))
    n_queries = int(number["n_queries"])
    n_documents = (given + imputed) // max(n_queries, 1)
    default = "null" if settings["impute"] == "error" else java_double(number["impute_score"])
    low, high = (java_double(number[f"mediaeval_{which}_score"]) for which in ("min", "max"))
    shown = {name.removeprefix("mediaeval_"): java_float(value) for name, value in number.items()}
    return "\n".join(
        [
            f"Loading tlist file: {loaded.queries} ...  Done (size: {loaded.n_queries})",
            f"Loading ecf file: {loaded.ecf} ...  Done (size: {loaded.n_excerpts})",
            f"Loading rttm file: {loaded.rttm} ...  Done (size: {loaded.n_occurrences})",
            f"Removing unseen models metadata ...  Done (removed: {loaded.n_queries - n_queries})",
            f"Loading stdlist file: {', '.join(run['files'])} ... Done",
            f"Scores: {given + imputed} ({n_queries} model x {n_documents} test)  given: {given}  "
            f"default({default}): {imputed}  minScore: {low}  maxScore: {high}",
            "",
            "Main Results:",
            "",
            f"actTWV: {shown['atwv']}  maxTWV: {shown['mtwv']}  Threshold: {shown['threshold']}",
            f"actCnxe: {shown['cnxe']}  minCnxe: {shown['cnxe_min']}",
            "",
            "Model-dependent calibration Results:",
            "",
            f"Upper-bound TWV (model-dependent offset)  -  actTWV: {shown['offset_atwv']}  "
            f"maxTWV: {shown['offset_mtwv']}  Threshold: {shown['offset_threshold']}",
            f"Lower-bound Cnxe (model-dependent PAV)    -  actCnxe: {shown['pav_cnxe']}  "
            f"minCnxe: {shown['pav_cnxe_min']}",
            "",
        ]
    )


def java_float(value: float) -> str:
    """A number rounded to float32, as Java's `Float.toString` prints it: 0.25, 1.0E-5, NaN, -Infinity."""
    with np.errstate(over="ignore"):
        return _as_java(np.float32(value))


def java_double(value: float) -> str:
    """A number as Java's `Double.toString` prints it."""
    return _as_java(np.float64(value))


def _as_java(number: np.floating[Any]) -> str:
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, trim="0")
    mantissa, _, exponent = np.format_float_scientific(number, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


def _overall(result: Result, system: str) -> dict[str, float]:
    """The numbers of the condition "all" over all queries."""
    table = result.table
    wanted = pc.and_(pc.equal(table["system"], system), pc.equal(table["condition"], "all"))
    rows = table.filter(pc.and_(wanted, pc.is_null(table["query"])))
    return dict(zip(rows["measure"].to_pylist(), rows["value"].to_pylist(), strict=True))
