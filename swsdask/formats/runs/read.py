"""Runs in any format, recognised by content: NIST's XML, tables, Kaldi's and TREC's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from swsdask.formats.files import noted, open_bytes, opened_once
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.parts import Span, read_span, spans
from swsdask.formats.runs.resources import with_resources
from swsdask.formats.runs.text import read_blocks, utf8_blocks, with_newlines
from swsdask.formats.runs.xml import read_xml_run, xml_window
from swsdask.formats.sniff import RUNS, Format, expect
from swsdask.model.errors import Problems
from swsdask.model.resources import Resources
from swsdask.model.schemas import RunPiece

ROWS_PER_PIECE = 1_000_000

TABLES = (Format.TABLE, Format.JSON_LINES, Format.PARQUET, Format.KALDI, Format.CTM)


def read_run(
    url: str,
    problems: Problems,
    *,
    rows_per_piece: int = ROWS_PER_PIECE,
    system: str | None = None,
    encoding: Encoding | None = None,
) -> Iterator[RunPiece]:
    """The rows of a run, in file order, in pieces of about `rows_per_piece` rows; a table may hold several systems.

    `system` is the name of the run, if the user gives one; else that in the file, else that of the file, without
    endings. `encoding` has the units of a table's times and scores. Problems are added to `problems`, and the rest is
    read as far as possible: after a problem the pieces are not the run. Memory is bounded by the size of a piece.
    """
    with noted(problems), opened_once(url) as url:
        found = expect(url, *RUNS)
        if not encoding:
            yield from _reader(found)(url, problems, rows_per_piece, system)
        elif found in TABLES:
            yield from _reader(found)(url, problems, rows_per_piece, system, encoding)
        else:
            expected = "a table: only tables can have frames for times, negated scores or utterances"
            problems.add(
                url, None, expected, f"{found.value}", "Leave out --frame-shift, --negate-scores and --segments."
            )


def _reader(found: Format) -> Callable[..., Iterator[RunPiece]]:
    """The reader of a format. Readers of tables are imported when needed: most runs are not tables."""
    if found is Format.RUN_XML:
        return _read_xml
    if found is Format.PARQUET:
        from swsdask.formats.runs.table import read_parquet_table

        return read_parquet_table
    if found is Format.TREC:
        from swsdask.formats.reference.trec import read_trec_run

        return read_trec_run
    from swsdask.formats.runs.table import read_ctm, read_json_lines, read_kaldi_results, read_text_table

    others = {Format.TABLE: read_text_table, Format.JSON_LINES: read_json_lines, Format.CTM: read_ctm}
    return others.get(found, read_kaldi_results)


def _read_xml(url: str, problems: Problems, rows_per_piece: int, system: str | None) -> Iterator[RunPiece]:
    with open_bytes(url) as stream:
        window = xml_window(with_newlines(utf8_blocks(read_blocks(stream), xml=True)))
        yield from read_xml_run(window, url, problems, rows_per_piece, system)


@dataclass(frozen=True)
class RunPart:
    """A file with runs (`span` is None), or some of the lists in one. Picklable.

    `system` is the name of the run, if the user gives one, `resources` are those of the file's only system, `encoding`
    has the units of a table's times and scores.
    """

    file: str
    system: str | None = None
    span: Span | None = None
    resources: Resources | None = None
    encoding: Encoding | None = None

    def read(self, problems: Problems, *, rows_per_piece: int = ROWS_PER_PIECE) -> Iterator[RunPiece]:
        """The rows, as from `read_run`; line numbers are those of the whole file."""
        if self.span is None:
            pieces = read_run(
                self.file, problems, rows_per_piece=rows_per_piece, system=self.system, encoding=self.encoding
            )
        else:
            pieces = read_span(self.file, self.span, problems, rows_per_piece, self.system)
        return pieces if self.resources is None else with_resources(pieces, self.resources, problems)

    def line_of(self, system: str, row: int) -> int | None:
        """The line of one of a system's rows, counted from 0; None where a table does not begin a piece with it."""
        before = 0
        for piece in self.read(Problems(), rows_per_piece=max(row, 1)):
            if piece.header.system == system:
                if before == row:
                    return piece.document_lines[int(piece.document[0])]
                before += len(piece)
        return None


def split_run(url: str, n_parts: int, *, system: str | None = None, encoding: Encoding | None = None) -> list[RunPart]:
    """Divide a run into at most `n_parts` parts of about equal size, which read one after the other are the run.

    Only large XML files and tables in text are divided, uncompressed and in UTF-8; any other file, or one with
    problems, is one part. Each part checks only its own rows for decisions in all or none: whoever joins the parts must
    check the whole.
    """
    cut = [] if encoding else spans(url, n_parts, system)
    return [RunPart(url, system, span) for span in cut] or [RunPart(url, system, encoding=encoding)]
