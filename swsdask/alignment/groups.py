"""The group of documents that a trial belongs to."""

from __future__ import annotations

from swsdask.model.trials import I16, I32, I64, Reference


def groups_of(document: I32 | None, rows: I64 | slice, reference: Reference) -> I16 | None:
    """The group of the document (-1: unknown) in each of the rows, or None where no condition tells documents apart."""
    if reference.n_groups == 1:
        return None
    if document is None:
        raise ValueError("the column `document` was not read")
    return reference.group_of_document[document[rows]]
