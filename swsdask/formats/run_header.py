"""What a run says of itself: from the attributes or metadata of a file to a header."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from swsdask.formats.run_values import FormatError, shown
from swsdask.model.ids import id_fault
from swsdask.model.runs import RunHeader

_SYSTEM = "system_id"
_LEAST, _MOST = "min_score", "max_score"
_ENDINGS = re.compile(r"(\.(gz|zst|xml|kwslist|stdlist|tsv|csv|txt|parquet))+$", re.IGNORECASE)


def system_of_file(url: str) -> str:
    """The name of the system that a file's name gives: the name without its known endings."""
    name = url.rstrip("/").rsplit("/", 1)[-1]
    return _ENDINGS.sub("", name) or name


def read_header(attributes: Mapping[str, str], file: str, system: str | None) -> RunHeader:
    """The header that `attributes` give. The run's name is `system`, else what they say, else that of the file.

    Raises `FormatError` for a name that is no id, or declared scores that are no range.
    """
    others = dict(attributes)
    said = others.pop(_SYSTEM, "").strip()
    name = system or said or system_of_file(file)
    wrong = id_fault(name)
    if wrong:
        raise FormatError(f"a system id ({_SYSTEM})", wrong, "Give the system a plain name.")
    if not {_LEAST, _MOST} <= set(others):
        return RunHeader(name, None, others)
    return RunHeader(name, _declared_scores(others.pop(_LEAST), others.pop(_MOST)), others)


def _declared_scores(first: str, last: str) -> tuple[float, float]:
    try:
        least, most = float(first), float(last)
    except ValueError:
        least, most = math.nan, math.nan
    if not (math.isfinite(least) and math.isfinite(most) and least <= most):
        found = f"{shown(first)} and {shown(last)}"
        raise FormatError(f"finite {_LEAST} <= {_MOST}", found, "Give the range of the scores, or leave both out.")
    return least, most
