"""Results as the lines and files of three tools with short output: trec_eval, MediaEval's tool and ZRC's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.errors import SettingsError
from swsdask.model.measures import describe, names_in, parse_name
from swsdask.model.ranked_measures import RELEVANT
from swsdask.model.results import Result
from swsdask.model.tables import as_json
from swsdask.render.pages import numbers_by_query

TREC_NEEDED = ("map_n_averaged", "n_retrieved")
"""The measures that the lines need: the number of topics, and which topics have rows."""

_RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)

TREC_OFFICIAL = (
    *("map_n_averaged", "n_retrieved", "n_relevant", "n_relevant_retrieved", "map", "ap", "gm_map", "r_precision"),
    *("bpref", "reciprocal_rank", *(f"precision_at_recall@{tenths / 10}" for tenths in range(11))),
    *(f"precision_at_rank@{rank}" for rank in _RANKS),
)
"""The measures that the tool prints if none are requested."""

_ORDER = (
    *("map_n_averaged", "n_retrieved", "n_relevant", "n_relevant_retrieved", "map", "gm_map", "r_precision", "bpref"),
    *("reciprocal_rank", "precision_at_recall@", "precision_at_rank@", "recall_at_rank@", "inferred_ap", "gm_bpref"),
    *("precision_at_relevant@", "utility", "eleven_point_precision", "binary_gain", "normalised_gain", "ndcg"),
    *("ndcg_of_relevant", "ndcg_at_levels", "ndcg_at_rank@", "ap_at_rank@", "relative_precision_at_rank@"),
    *("success_at_rank@", "set_precision", "set_relative_precision", "set_recall", "set_map", "set_f1"),
    "n_nonrelevant_judged",
)
"""The order in which the tool prints its measures."""

_WITH_DECIMALS = ("precision_at_recall@", "precision_at_relevant@")
"""Measures whose points the tool writes with two decimals."""


def write_trec_output(result: Result, directory: Path) -> list[Path]:
    """Write directory/SYSTEM.trec_eval.txt for every system; return these paths.

    For a topic without rows that counts in averages, trec_eval 10 prints lines and trec_eval 9 does not.

    Raises `SettingsError` if the result lacks the measures of `TREC_NEEDED`, or AP if it has MAP.
    """
    there = set(result.score_rows.names("measure"))
    missing = {*TREC_NEEDED, *({"ap"} if "map" in there else ())} - there
    if missing:
        raise SettingsError(f"trec_eval's output needs measures that were not requested: {', '.join(sorted(missing))}.")
    rules = result.manifest["settings"]["average_precision"]
    all_topics = rules["missing"] == "zero" and rules["recall_rounding"] == "nearest"
    paths = []
    for system in result.manifest["runs"]:
        path = directory / f"{system}.trec_eval.txt"
        lines = trec_lines(result.score_rows.among([system]), system, all_topics=all_topics)
        path.write_text(lines, encoding="utf-8")
        paths.append(path)
    return paths


def trec_lines(scores: pa.Table, system: str, *, all_topics: bool) -> str:
    """Return the lines of one system, of all topics or those with rows; `scores` are its rows."""
    overall, topics = numbers_by_query(scores, "all")
    lines = [
        f"{name:<22}\t{topic}\t{number}\n"
        for topic in sorted(topics)
        if all_topics or topics[topic].get("n_retrieved")
        for name, number in _written(topics[topic] | ({"map": topics[topic]["ap"]} if "map" in overall else {}))
    ]
    lines.append(f"{'runid':<22}\tall\t{system}\n")
    return "".join([*lines, *(f"{name:<22}\tall\t{number}\n" for name, number in _written(overall))])


def _written(numbers: dict[str, float]) -> Iterator[tuple[str, str]]:
    """Yield the tool's names and numbers of the measures that are there, in the tool's order."""
    theirs = {ours: name for name, ours in names_in("trec_eval").items()}
    names = {name: parse_name(name) for name in numbers}
    for measure in _ORDER:
        family = [name for name, of in names.items() if of.family == measure and of.level == RELEVANT]
        for name in sorted(family, key=lambda each: float(names[each].point or 0)):
            point = names[name].point
            shown = f"{float(point):.2f}" if measure in _WITH_DECIMALS else point
            decimals = 0 if describe(name).digits == 0 else 4
            yield f"{theirs[measure]}{shown}", f"{numbers[name]:.{decimals}f}"


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

MEDIAEVAL_MEASURES = (*_COUNTED, *dict.fromkeys(_OF_THE_TOOL.values()))
"""The measures that the lines need."""

MEDIAEVAL_TOOL_MEASURES = (
    *_COUNTED,
    *_OF_THE_TOOL,
    "mediaeval_offset_threshold",
    "mediaeval_min_score",
    "mediaeval_max_score",
)
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
    """Write `score.out`, or for several systems one SYSTEM.score.out each, into a directory; return the paths.

    The result must have `MEDIAEVAL_MEASURES`, or `MEDIAEVAL_TOOL_MEASURES`.
    """
    runs = result.manifest["runs"]
    paths = []
    for system in runs:
        path = directory / ("score.out" if len(runs) == 1 else f"{system}.score.out")
        path.write_text(mediaeval_output(result, loaded, system), encoding="utf-8")
        paths.append(path)
    return paths


def mediaeval_output(result: Result, loaded: Loaded, system: str) -> str:
    """Return the lines for one system."""
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
    """Return a number rounded to float32, as Java's `Float.toString` prints it: 0.25, 1.0E-5, NaN, -Infinity."""
    with np.errstate(over="ignore"):
        return _as_java(np.float32(value))


def java_double(value: float) -> str:
    """Return a number as Java's `Double.toString` prints it."""
    return _as_java(np.float64(value))


def _as_java(number: np.floating) -> str:
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, trim="0")
    mantissa, _, exponent = np.format_float_scientific(number, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


def _overall(result: Result, system: str) -> dict[str, float]:
    """Return the numbers of the condition "all" over all queries."""
    own = result.score_rows.among([system])
    rows = own.filter(pc.and_(pc.equal(own["condition"], "all"), pc.is_null(own["query"])))
    return dict(zip(rows["measure"].to_pylist(), rows["value"].to_pylist(), strict=True))


TDE_VERSION = "0.2.1"
"""The version of tde that `tde2015` reproduces."""

_RULE = "-" * 37
_PRF = ("precision", "recall", "f_score")
_TITLES = {"all": "total", "within_talker": "within-speaker only"}
_OTHER = {"all": "within_talker", "within_talker": "all"}
_SPREAD = ("", "_std", "_min", "_max")

_BLOCKS: dict[str, dict[str, dict[str, str]]] = {
    "matching": {"match": {name: f"matching_{name}" for name in _PRF}},
    "group": {"group": {name: f"grouping_{name}" for name in _PRF}},
    "token_type": {kind: {name: f"{kind}_{name}" for name in _PRF} for kind in ("token", "type")},
    "nlp": {"NLP": {"NED": "ned", "coverage": "coverage"}},
    "boundary": {"boundary": {name: f"boundary_{name}" for name in _PRF}},
}
"""The blocks of each file by title, and the measures of each block by the tool's row names."""

NumbersOfSystem = Mapping[tuple[str, str], float]
"""The numbers of one system by (condition, measure)."""


def write_tde_output(result: Result, directory: Path) -> list[Path]:
    """Write the files of every system into directory/tde, or directory/tde/SYSTEM for several; return these paths.

    The result must have all measures of its definition. Raises `OSError` if a file cannot be written.
    """
    systems = result.score_rows.systems
    paths = []
    for system in systems:
        path = directory / "tde" / system if len(systems) > 1 else directory / "tde"
        path.mkdir(parents=True, exist_ok=True)
        paths.append(path)
        for name, text in output_files(result, system).items():
            (path / name).write_text(text, encoding="utf-8")
    return paths


def output_files(result: Result, system: str) -> dict[str, str]:
    """Return the text of each file of one system."""
    own = result.score_rows.among([system])
    columns = (own[name].to_pylist() for name in ("condition", "measure", "value"))
    values = {(condition, measure): value for condition, measure, value in zip(*columns, strict=True)}
    if result.manifest["definition"] == "tdev2":
        return _tdev2_files(values, str(result.manifest["corpus"]["name"]))
    version = TDE_VERSION if result.manifest["definition"] == "tde2015" else f"swsdask_{result.manifest['swsdask']}"
    return {**tde_files(values, result.manifest["folds"]), f"VERSION_{version}": ""}


def tde_files(values: NumbersOfSystem, folds: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Return the files of tde; `folds` has the names of the folds and the number of `stretches` of each condition."""
    return {
        name: "\n".join(
            _block(f"{title} {_TITLES[condition]}", rows, values, condition, folds, swapped=name == "nlp")
            for condition in folds
            for title, rows in blocks.items()
        )
        for name, blocks in _BLOCKS.items()
    }


def _block(
    title: str,
    rows: Mapping[str, str],
    values: NumbersOfSystem,
    condition: str,
    folds: Mapping[str, Mapping[str, Any]],
    *,
    swapped: bool,
) -> str:
    head = folds.get(_OTHER[condition] if swapped else condition, {"names": (), "stretches": 0})
    lines = [
        _RULE,
        title,
        f"#folds:    {len(head['names'])}",
        f"#samples:  {head['stretches']}",
        _RULE,
        _row("measure", ("mean", "std", "min", "max")),
        _row("-" * 9, ["-" * 5] * 4),
        *(
            _row(name.replace("_", ""), [f"{values[condition, measure + spread]:.3f}" for spread in _SPREAD])
            for name, measure in rows.items()
        ),
        _RULE,
        "",
    ]
    return "\n".join(lines)


def _row(name: str, cells: Sequence[str]) -> str:
    return "  ".join([f"{name:9}", *(f"{cell:5}" for cell in cells)])


def _tdev2_files(values: NumbersOfSystem, corpus: str) -> dict[str, str]:
    def of(family: str, names: Sequence[str] = _PRF) -> dict[str, float]:
        return {name.replace("_", ""): values["all", f"{family}_{name}"] for name in names}

    def lines(metric: str, numbers: Mapping[str, float]) -> str:
        return "".join(f"{name}: {value}\n" for name, value in {"metric": metric, **numbers}.items())

    ned, coverage = values["all", "ned"], values["all", "coverage"]
    scores = {
        "matching": None,
        **{family: of(family) for family in ("boundary", "token", "type")},
        "nlp": {
            "ned": ned,
            "coverage": coverage,
            "npairs": int(values["all", "n_pairs"]),
            "nwords": int(values["all", "n_words"]),
        },
        "grouping": of("grouping"),
    }
    return {
        "boundary": lines("boundary", of("boundary")),
        "grouping": lines("grouping", of("grouping")),
        "token_type": lines("token", of("token")) + lines("type", of("type")),
        "coverage": lines("coverage", {"coverage": coverage}),
        "ned": lines("ned", {"score": ned}),
        "scores.json": as_json({corpus: scores}, indent=4) + "\n",
    }
