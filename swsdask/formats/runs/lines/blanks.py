"""Kaldi's results, and CTMs: values that blanks separate.

Kaldi's form: query, document, start, end and score. A CTM: document, channel (a number, or A and B), start, duration,
query and score.
"""

from __future__ import annotations

import re

from swsdask.formats.runs.lines import LineFormat
from swsdask.formats.values import is_number

_CTM = re.compile(r"\S+\s+(?:[0-9]+|[AB])\s+[0-9]*\.?[0-9]+\s+[0-9]*\.?[0-9]+\s+\S+(?:\s+\S+){0,3}\s*$")


def _is_kaldis(line: str) -> bool:
    fields = line.split()
    return len(fields) == len(KALDI.columns) and all(map(is_number, fields[2:]))


def _is_ctm(line: str) -> bool:
    """Types and speakers may follow, where it is a reference."""
    return _CTM.match(line) is not None


KALDI = LineFormat("results in Kaldi's form", _is_kaldis, ("query", "document", "start", "end", "score"))
CTM = LineFormat(
    "words with times (a CTM)",
    _is_ctm,
    ("document", "channel", "start", "duration", "query", "score"),
    endings=(".ctm",),
    given="with --rttm, or as a run",
)
FORMATS = (KALDI, CTM)
