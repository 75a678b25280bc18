"""The files of the Zero Resource challenge's official tools, per system.

`document` and `tde2015` write those of tde: `matching`, `group`, `token_type`, `nlp`, `boundary` and an empty file
named after a version. Every file has a block of each measure over all folds and, if there are folds within talkers, a
second one: mean, standard deviation, minimum and maximum with three decimals. `#samples` is the number of stretches of
a set of folds. QUIRK: like the tool, `nlp` prints the two counts of the other set of folds in its head.

`tdev2` writes those of tdev2: `boundary`, `grouping`, `token_type`, `coverage` and `ned`, with lines of `name: value`
in full precision; and the `scores.json` of the challenge's later toolbox, where matching, which tdev2 lacks, is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from swsdask.model.results import Result
from swsdask.render.records import as_json

VERSION = "0.2.1"
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

Values = Mapping[tuple[str, str], float]
"""The numbers of one system by (condition, measure)."""


def write_tde_output(result: Result, directory: Path) -> list[Path]:
    """Write the files of every system into directory/tde, or directory/tde/SYSTEM for several; return these paths.

    The result must have all measures of its definition. Raises `OSError` if a file cannot be written.
    """
    systems = list(dict.fromkeys(result.table["system"].to_pylist()))
    paths = []
    for system in systems:
        path = directory / "tde" / system if len(systems) > 1 else directory / "tde"
        path.mkdir(parents=True, exist_ok=True)
        paths.append(path)
        for name, text in output_files(result, system).items():
            (path / name).write_text(text, encoding="utf-8")
    return paths


def output_files(result: Result, system: str) -> dict[str, str]:
    """The text of each file of one system."""
    own = result.table.filter(pc.equal(result.table["system"], system))
    columns = (own[name].to_pylist() for name in ("condition", "measure", "value"))
    values = {(condition, measure): value for condition, measure, value in zip(*columns, strict=True)}
    if result.manifest["definition"] == "tdev2":
        return _tdev2_files(values, str(result.manifest["corpus"]["name"]))
    version = VERSION if result.manifest["definition"] == "tde2015" else f"swsdask_{result.manifest['swsdask']}"
    return {**tde_files(values, result.manifest["folds"]), f"VERSION_{version}": ""}


def tde_files(values: Values, folds: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The files of tde; `folds` has the names of the folds and the number of `stretches` of each condition."""
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
    values: Values,
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


def _tdev2_files(values: Values, corpus: str) -> dict[str, str]:
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
