"""NIST's lists of detections in XML, read by a compiled scanner, and by lxml where that does not recognise a form.

Both ways give the same pieces and the same problems; only the speed differs. The line of a row is that of the end of
its tag. Elements that a list of detections does not have and text between elements are problems; attributes beyond
those of the format are passed over. Several lists of one query add up, as official tools take them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from swsdask.errors import Problems
from swsdask.formats.run_builder import PieceBuilder
from swsdask.formats.run_text import Window
from swsdask.formats.run_values import FormatError
from swsdask.formats.run_xml_odd import OddReader, read_end
from swsdask.formats.run_xml_root import Root, read_root
from swsdask.kernels.xml_rows import CLOSED, MORE, ODD
from swsdask.kernels.xml_tags import LOOKAHEAD
from swsdask.model.runs import RunPiece

_MOST_PATIENCE = 4096


def xml_window(blocks: Iterator[bytes], line: int = 1) -> Window:
    """A window that the scanner can read in, over blocks in UTF-8."""
    return Window(blocks, LOOKAHEAD, line)


def read_xml_run(
    window: Window, file: str, problems: Problems, rows_per_piece: int, system: str | None
) -> Iterator[RunPiece]:
    """The pieces of a whole list of detections. `system` is the name of the run where it is given."""
    try:
        root = read_root(window, file, system)
    except FormatError as fault:
        problems.add(file, window.line, fault.expected, fault.found, fault.remedy)
        return
    yield from read_body(window, root, file, problems, rows_per_piece, to_the_end=True)


def read_body(
    window: Window, root: Root, file: str, problems: Problems, rows_per_piece: int, *, to_the_end: bool
) -> Iterator[RunPiece]:
    """The pieces of what follows the root's start tag, or of some whole lists from there (unless `to_the_end`)."""
    builder = PieceBuilder(root.header, file, rows_per_piece, problems)
    try:
        closed = yield from _read_rows(window, root, builder, to_the_end)
        if closed:
            read_end(window)
    except FormatError as fault:
        builder.fault(window.line, fault)
    yield from builder.finish()


def _read_rows(window: Window, root: Root, builder: PieceBuilder, to_the_end: bool) -> Generator[RunPiece, None, bool]:
    """Read lists until the root is closed or, unless `to_the_end`, there are none left; whether it was closed."""
    words = root.dialect.words
    patience = 1
    while True:
        before = builder.rows
        why = builder.scan(window, words)
        if why == CLOSED:
            return True
        if builder.is_full:
            yield builder.take()
        elif why == ODD or (why == MORE and not window.more()):
            if not to_the_end and not builder.inside and not window.fault and window.position == window.end:
                return False
            patience = 1 if builder.rows - before > patience else min(2 * patience, _MOST_PATIENCE)
            odd = OddReader(window, builder, root)
            yield from odd.read(patience)
            if odd.closed:
                return True
