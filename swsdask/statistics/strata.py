"""What conditions know of the classes that `Reference.class_of` makes of strata (query, group of documents)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from swsdask.model.trials import I32, I64, Bool, Condition, Reference


def members(condition: Condition) -> Bool:
    """The strata of a condition: bool [n_queries, n_groups]."""
    return condition.queries[:, np.newaxis] & condition.groups


@lru_cache(maxsize=2)
def class_targets(reference: Reference) -> I64:
    """N_act of a class's queries in every condition: int64 [n_conditions, n_classes], -1 where it holds none of them.

    Raises `ValueError` if a condition does tell strata of one class apart: it holds some of them only, or their
    queries differ in N_act.
    """
    table = np.full((len(reference.conditions), reference.n_classes), -1, np.int64)
    counted = reference.class_of >= 0
    for targets, condition in zip(table, reference.conditions, strict=True):
        inside = counted & members(condition)
        n_act = np.broadcast_to(reference.condition_targets(condition)[:, np.newaxis], inside.shape)
        targets[reference.class_of[inside]] = n_act[inside]
        shown = np.where(inside, n_act, -1)
        if (targets[reference.class_of[counted]] != shown[counted]).any():
            raise ValueError(f"condition {condition.name} tells strata of one class apart")
    table.flags.writeable = False
    return table


def class_layers(reference: Reference) -> tuple[I32, int]:
    """The layer of every class, int32 [n_classes], and how many there are: classes of the same conditions share one."""
    presence = class_targets(reference) >= 0
    if reference.n_classes == 0:
        return np.empty(0, np.int32), 0
    kinds, layer = np.unique(presence, axis=1, return_inverse=True)
    return layer.reshape(-1).astype(np.int32), kinds.shape[1]
