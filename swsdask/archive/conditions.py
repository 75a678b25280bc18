"""Conditions: the parts of an evaluation that are averaged on their own, as asked for by keys.

A key is the name of a query attribute (among them `language` and `oov` where the list gives them), `source_type` or
`document_language` (those of a document's first excerpt), `query_pattern:REGEX` or `document_pattern:REGEX` (found
anywhere in the id). Every value of a key that occurs makes a condition `key=value`, a pattern makes `query~REGEX` or
`document~REGEX`; joined keys make every combination, `a=1&b=2` in the order of the keys. An id without the attribute,
or with the empty value, is in no condition of that key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pyarrow as pa

from swsdask.archive.excerpts import document_ids
from swsdask.errors import SettingsError
from swsdask.model.trials import Bool
from swsdask.model.wording import counted

DOCUMENT_KEYS = {"source_type": "source_type", "document_language": "language"}
"""The keys of documents, and their columns in `model.schemas.DOCUMENTS`."""

QUERY_PATTERN = "query_pattern:"
DOCUMENT_PATTERN = "document_pattern:"

ALL = "all"


@dataclass(frozen=True, eq=False)
class Part:
    """A named part of an evaluation: bool [n_queries] and bool [n_documents]; None: all, unknown documents as well."""

    name: str
    queries: Bool | None
    documents: Bool | None


def parts(documents: pa.Table, queries: pa.Table, by: Sequence[Sequence[str]]) -> list[Part]:
    """The whole, named "all", then the parts that each entry of `by` (joined keys) makes, in order of values.

    Raises `SettingsError` for an unknown key, naming the valid ones, for a pattern that is no regular expression and
    for a pattern that nothing matches.
    """
    keys = _Keys(documents, queries)
    found = {ALL: Part(ALL, None, None)}
    for entry in by:
        for combination in product(*(keys.parts(key) for key in entry)):
            part = Part(
                "&".join(each.name for each in combination),
                _both([each.queries for each in combination]),
                _both([each.documents for each in combination]),
            )
            if combination and _is_some(part.queries) and _is_some(part.documents):
                found.setdefault(part.name, part)
    return list(found.values())


def group_documents(of: Sequence[Part], n_evaluated: int, n_others: int) -> tuple[np.ndarray, list[Bool]]:
    """Documents in groups that no part cuts: int16 [n_evaluated + n_others], and each part's groups, bool [n_groups].

    Documents that no part tells apart are one group. The others, which the ECF does not have, are a group of their own,
    which only parts of all documents hold, where any part is one of some documents, else in the only group there is.
    Raises `SettingsError` for more groups than an int16 counts.
    """
    cuts = [part.documents for part in of if part.documents is not None]
    if not cuts:
        return np.zeros(n_evaluated + n_others, np.int16), [np.ones(1, bool) for _ in of]
    distinct, group = np.unique(np.column_stack(cuts), axis=0, return_inverse=True)
    unknown = len(distinct)
    if unknown > np.iinfo(np.int16).max:
        raise SettingsError(f"the conditions cut the documents into {unknown} groups; at most 32767 are possible.")
    columns = iter(np.vstack((distinct, np.zeros((1, len(cuts)), bool))).T)
    groups = [np.ones(unknown + 1, bool) if part.documents is None else next(columns) for part in of]
    return np.append(group, np.full(n_others, unknown)).astype(np.int16), groups


class _Keys:
    def __init__(self, documents: pa.Table, queries: pa.Table) -> None:
        self.query_ids = queries["query"].to_pylist()
        self.document_ids = document_ids(documents)
        self.attributes = [dict(pairs) for pairs in queries["attributes"].to_pylist()]
        self.documents = documents

    def parts(self, key: str) -> list[Part]:
        """The parts that one key makes."""
        if key.startswith(QUERY_PATTERN):
            regex = key.removeprefix(QUERY_PATTERN)
            return [Part(f"query~{regex}", _matching(regex, self.query_ids, key), None)]
        if key.startswith(DOCUMENT_PATTERN):
            regex = key.removeprefix(DOCUMENT_PATTERN)
            return [Part(f"document~{regex}", None, _matching(regex, self.document_ids, key))]
        if key in DOCUMENT_KEYS:
            return _by_value(self._of_first_excerpts(key), lambda value, there: Part(f"{key}={value}", None, there))
        values = [attributes.get(key, "") for attributes in self.attributes]
        if not any(values):
            raise self._unknown(key)
        return _by_value(values, lambda value, there: Part(f"{key}={value}", there, None))

    def _of_first_excerpts(self, key: str) -> list[str]:
        first: dict[str, str] = {}
        columns = (self.documents[name].to_pylist() for name in ("document", DOCUMENT_KEYS[key]))
        for document, value in zip(*columns, strict=True):
            first.setdefault(document, value)
        return list(first.values())

    def _unknown(self, key: str) -> SettingsError:
        names = sorted({name for attributes in self.attributes for name in attributes} | set(DOCUMENT_KEYS))
        near = difflib.get_close_matches(key, names, n=1, cutoff=0.0)
        known = ", ".join([*names, f"{QUERY_PATTERN}REGEX", f"{DOCUMENT_PATTERN}REGEX"])
        return SettingsError(f"condition key {key!r} is unknown. Nearest: {near[0]}. Known: {known}.")


def _by_value(values: Sequence[str], part: Callable[[str, Bool], Part]) -> list[Part]:
    column = np.array(values, object)
    return [part(value, column == value) for value in sorted(set(values) - {""})]


def _matching(regex: str, ids: Sequence[str], key: str) -> Bool:
    try:
        pattern = re.compile(regex)
    except re.error as error:
        raise SettingsError(f"condition key {key!r}: not a regular expression: {error}.") from None
    matching = np.array([pattern.search(identifier) is not None for identifier in ids], bool)
    if not matching.any():
        raise SettingsError(f"condition key {key!r}: none of the {counted(len(ids), 'ids')} matches.")
    return matching


def _both(masks: Sequence[Bool | None]) -> Bool | None:
    given = [mask for mask in masks if mask is not None]
    return np.logical_and.reduce(given) if given else None


def _is_some(mask: Bool | None) -> bool:
    return mask is None or bool(mask.any())
