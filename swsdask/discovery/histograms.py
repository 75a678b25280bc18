"""How large a system's classes are and how long its fragments: rows of curves, for looking at.

"class_size": x members (duplicates too), y classes with so many, of those that have any. "fragment_length": x phones,
y distinct fragments of so many. Of all that was found, whatever its folds.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from swsdask.model.corpus import Discovered
from swsdask.model.results import CURVES


def histograms(discovered: Discovered) -> pa.Table:
    """Rows of `model.results.CURVES` in the condition "all"; x ascends, and there are none where y is 0."""
    of_members = np.bincount(discovered.member_cluster, minlength=len(discovered.classes))
    counted = {
        "class_size": of_members[of_members > 0],
        "fragment_length": discovered.last - discovered.first,
    }
    return pa.concat_tables(_rows(discovered.system, curve, each) for curve, each in counted.items())


def _rows(system: str, curve: str, each: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    x, y = np.unique(each, return_counts=True)
    names = [[text] * len(x) for text in (system, "all", curve)]
    return pa.table([*names, np.full(len(x), np.nan), x.astype(np.float64), y.astype(np.float64)], schema=CURVES)
