"""ECF: which parts of which recordings are evaluated (NIST's experiment control file)."""

from __future__ import annotations

import pyarrow as pa

from swsdask.formats.files import noted, noted_at, opened_once
from swsdask.formats.sniff import Format, expect
from swsdask.formats.values import FormatError, read_channel, read_document, read_span, shown
from swsdask.formats.xml_stream import End, read_elements
from swsdask.model.errors import Problems
from swsdask.model.schemas import DOCUMENTS

_ROOT = ("ecf",)
_EXCERPT = ("ecf", "excerpt")
_NEEDED = ("audio_filename", "channel", "tbeg", "dur")


def read_ecf(url: str, problems: Problems) -> pa.Table:
    """The evaluated excerpts (`model.schemas.DOCUMENTS`), in file order; whatever is wrong is added to `problems`.

    Times in ticks; start and end are each rounded once, half to even, and `rounded` in the metadata counts those that
    were. An excerpt without `language` or `source_type` has the root element's. Excerpts may overlap. The root's
    `source_signal_duration` is passed over, since it is often wrong, and so are attributes that an ECF does not have.
    """
    excerpts = _Excerpts(url, problems)
    with noted(problems), opened_once(url) as url:
        expect(url, Format.ECF)
        root: dict[str, str] = {}
        for event in read_elements(url):
            if isinstance(event, End):
                if event.path in (_ROOT, _EXCERPT) and event.text.strip():
                    problems.add(url, event.line, "no text in an ECF", shown(event.text), "Take it out.")
            elif event.path == _ROOT:
                root = event.attributes
            elif event.path == _EXCERPT:
                excerpts.add(event.line, {**root, **event.attributes})
            elif len(event.path) == len(_EXCERPT):
                problems.add(url, event.line, "an excerpt", f"the element {event.path[-1]!r}", "Correct or remove it.")
        if not excerpts.seen:
            problems.add(url, 1, "at least one excerpt", "none", "List what was evaluated.")
    return excerpts.table()


class _Excerpts:
    """What was read so far: how many excerpts were `seen`, and the rows of those without fault."""

    def __init__(self, url: str, problems: Problems) -> None:
        self.seen = 0
        self._url = url
        self._problems = problems
        self._rows: list[tuple[str, int, int, int, str, str]] = []
        self._rounded = 0

    def add(self, line: int, attributes: dict[str, str]) -> None:
        """Take in an excerpt, or note what is wrong with it."""
        self.seen += 1
        before = len(self._problems)
        missing = [name for name in _NEEDED if name not in attributes]
        if missing:
            found = f"an excerpt without {', '.join(missing)}"
            self._problems.add(self._url, line, f"the attributes {', '.join(_NEEDED)}", found, "Give what is missing.")
            return
        filename, channel_text, start, duration = (attributes[name] for name in _NEEDED)
        with noted_at(self._problems, self._url, line):
            document = read_document(filename)
        with noted_at(self._problems, self._url, line):
            channel = read_channel(channel_text)
        with noted_at(self._problems, self._url, line):
            span = read_span(start, duration)
            if span.start == span.end:
                raise FormatError(
                    "a duration of more than 0 seconds", shown(duration), "Correct or remove the excerpt."
                )
        if len(self._problems) == before:
            kind, language = attributes.get("source_type", ""), attributes.get("language", "")
            self._rows.append((document, channel, span.start, span.end, kind, language))
            self._rounded += span.rounded

    def table(self) -> pa.Table:
        """The excerpts without fault."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(DOCUMENTS)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
        return pa.Table.from_arrays(arrays, schema=DOCUMENTS.with_metadata({"rounded": str(self._rounded)}))
