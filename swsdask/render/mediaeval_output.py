"""What MediaEval's scoring tool printed, of our numbers: so that scripts that read its lines go on working.

    Loading tlist file: NAME ...  Done (size: QUERIES)
    Loading ecf file: NAME ...  Done (size: EXCERPTS)
    Loading rttm file: NAME ...  Done (size: OCCURRENCES)
    Removing unseen models metadata ...  Done (removed: QUERIES WITHOUT TARGETS)
    Loading stdlist file: NAME ... Done
    Scores: TRIALS (QUERIES model x DOCUMENTS test)  given: N  default(SCORE): N  minScore: SCORE  maxScore: SCORE
    actTWV: ATWV  maxTWV: MTWV  Threshold: LARGEST REJECTED SCORE
    actCnxe: C_nxe  minCnxe: C_nxe AFTER PAV
    Upper-bound TWV (model-dependent offset)  -  actTWV: TWV  maxTWV: TWV  Threshold: 0.0
    Lower-bound Cnxe (model-dependent PAV)    -  actCnxe: C_nxe  minCnxe: C_nxe

Numbers are rounded to float32 and printed as Java prints those. Where our lines differ from the tool's on purpose:

- A maximum that is 0 is 0.0, not what rounding leaves of it (-1.3322676E-15).
- The upper bound's maxTWV and Threshold: once each query's best threshold is taken from its scores, the threshold 0
  gives that same TWV to all. The tool prints -1.3322676E-15 and NaN there for most runs.
- A query without non-targets is left out of P_fa; the tool's TWV is NaN then.
- minScore is the lowest score. The tool passes over scores that are a new maximum when it reads them, so it prints a
  score that is too high, or Infinity.
- C_nxe is computed in float64: its last printed digit can be another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from swsdask.model.results import Result
from swsdask.render.replacing import replacing

MEASURES = (
    "n_queries",
    "atwv",
    "mtwv",
    "mtwv_rejected_threshold",
    "twv_query_offset",
    "cnxe",
    "n_given_target",
    "n_imputed_target",
    "n_given_nontarget",
    "n_imputed_nontarget",
    "impute_score",
    "cnxe_min_pav",
    "cnxe_query_pav",
)
"""The numbers that are printed."""


@dataclass(frozen=True)
class Loaded:
    """The files of a reference as they are named, and how many queries, excerpts and occurrences they hold."""

    queries: str
    n_queries: int
    ecf: str
    n_excerpts: int
    rttm: str
    n_occurrences: int


def write_mediaeval_output(result: Result, loaded: Loaded, directory: Path) -> list[Path]:
    """Write `score.out`, or for several systems one SYSTEM.score.out each, into a directory; their paths.

    The result must have `MEASURES`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    runs = result.manifest["runs"]
    paths = []
    for system in runs:
        path = directory / ("score.out" if len(runs) == 1 else f"{system}.score.out")
        with replacing(path) as file:
            file.write(mediaeval_output(result, loaded, system).encode())
        paths.append(path)
    return paths


def mediaeval_output(result: Result, loaded: Loaded, system: str) -> str:
    """The lines for one system."""
    number = _overall(result, system)
    run, impute = result.manifest["runs"][system], result.manifest["settings"]["impute"]
    given, imputed = (int(number[f"n_{kind}_target"] + number[f"n_{kind}_nontarget"]) for kind in ("given", "imputed"))
    n_queries = int(number["n_queries"])
    n_documents = (given + imputed) // max(n_queries, 1)
    default = "null" if impute == "error" else java_float(number["impute_score"])
    low, high = run["scores"]["run"] if run["rows"] else (np.inf, -np.inf)
    shown = {name: java_float(value) for name, value in number.items()}
    return "\n".join(
        [
            f"Loading tlist file: {loaded.queries} ...  Done (size: {loaded.n_queries})",
            f"Loading ecf file: {loaded.ecf} ...  Done (size: {loaded.n_excerpts})",
            f"Loading rttm file: {loaded.rttm} ...  Done (size: {loaded.n_occurrences})",
            f"Removing unseen models metadata ...  Done (removed: {loaded.n_queries - n_queries})",
            f"Loading stdlist file: {', '.join(run['files'])} ... Done",
            f"Scores: {given + imputed} ({n_queries} model x {n_documents} test)  given: {given}  "
            f"default({default}): {imputed}  minScore: {java_float(low)}  maxScore: {java_float(high)}",
            "",
            "Main Results:",
            "",
            f"actTWV: {shown['atwv']}  maxTWV: {shown['mtwv']}  Threshold: {shown['mtwv_rejected_threshold']}",
            f"actCnxe: {shown['cnxe']}  minCnxe: {shown['cnxe_min_pav']}",
            "",
            "Model-dependent calibration Results:",
            "",
            f"Upper-bound TWV (model-dependent offset)  -  actTWV: {shown['twv_query_offset']}  "
            f"maxTWV: {shown['twv_query_offset']}  Threshold: 0.0",
            f"Lower-bound Cnxe (model-dependent PAV)    -  actCnxe: {shown['cnxe_query_pav']}  "
            f"minCnxe: {shown['cnxe_query_pav']}",
            "",
        ]
    )


def java_float(value: float) -> str:
    """A number rounded to float32, as `Float.toString` of Java says it: 0.25, 1.0E-5, NaN, -Infinity."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if not np.isfinite(single):
        return "NaN" if np.isnan(single) else "Infinity" if single > 0 else "-Infinity"
    if single == 0 or 1e-3 <= abs(single) < 1e7:
        return np.format_float_positional(single, trim="0")
    mantissa, _, exponent = np.format_float_scientific(single, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


def _overall(result: Result, system: str) -> Mapping[str, Any]:
    """The numbers of the condition "all" over all queries."""
    table = result.table
    wanted = pc.and_(pc.equal(table["system"], system), pc.equal(table["condition"], "all"))
    rows = table.filter(pc.and_(wanted, pc.is_null(table["query"])))
    return dict(zip(rows["measure"].to_pylist(), rows["value"].to_pylist(), strict=True))
