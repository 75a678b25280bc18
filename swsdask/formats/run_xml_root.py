"""The beginning of a list of detections: declaration, comments, and the root element with what it says of the run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from swsdask.formats.run_dialect import DIALECTS, Dialect
from swsdask.formats.run_header import read_header
from swsdask.formats.run_text import Window
from swsdask.formats.run_values import FormatError, shown
from swsdask.model.runs import RunHeader

_PLACE = re.compile(r",? line \d+(?:, column \d+)?")


@dataclass(frozen=True)
class Root:
    """The root element: its dialect, what it says, and a start tag that opens it again (with its namespaces)."""

    dialect: Dialect
    header: RunHeader
    start_tag: bytes


def local_name(tag: str) -> str:
    """The name of an element without its namespace."""
    return tag.rpartition("}")[2]


def feed(parser: etree.XMLParser, passed: bytes) -> None:
    """Feed a parser. Raises `FormatError` on any error of syntax or of namespaces."""
    try:
        parser.feed(passed)
    except etree.XMLSyntaxError as error:
        raise syntax_fault(error.msg) from None
    for entry in parser.feed_error_log:
        if entry.level >= etree.ErrorLevels.ERROR:
            raise syntax_fault(entry.message)


def syntax_fault(message: str) -> FormatError:
    """What lxml found wrong, without the places, which are those of a fragment."""
    return FormatError("well-formed XML", _PLACE.sub("", message), "Mend the file there; what follows was not read.")


def cut_off(window: Window, closing: str) -> FormatError:
    """What is wrong where the text ended before `closing`; moves to that end."""
    window.take(window.end - window.position)
    return window.fault or FormatError(
        closing, "the end of the file", "The file was cut off: copy it, or write it, again."
    )


def read_root(window: Window, file: str, system: str | None) -> Root:
    """Read up to and including the root's start tag. `system` is the name of the run where it is given.

    Raises `FormatError`. Declarations of entities or elements are refused: no list of detections needs them.
    """
    parser = etree.XMLPullParser(("start",), resolve_entities=False, no_network=True, load_dtd=False)
    while passed := window.next_tag_end():
        feed(parser, passed)
        for _, element in parser.read_events():
            return _root(element, file, system)
    raise cut_off(window, "the root element of a list of detections")


def _root(element: etree._Element, file: str, system: str | None) -> Root:
    declared = element.getroottree().docinfo.internalDTD
    if declared is not None and any((*declared.iterentities(), *declared.iterelements())):
        expected = "no declarations of entities or elements"
        raise FormatError(
            expected, f"a document type {declared.name} with some", "Take out what stands between [ and ]."
        )
    name = local_name(element.tag)
    if name not in DIALECTS:
        remedy = "Give the list of a system's detections where a run is asked for."
        raise FormatError(
            f"the root {' or '.join(DIALECTS)} of a list of detections", f"the root {shown(name)}", remedy
        )
    attributes = {local_name(key): value for key, value in element.attrib.items()}
    tag = etree.tostring(element.makeelement(element.tag, nsmap=element.nsmap)).rstrip()
    return Root(DIALECTS[name], read_header(attributes, file, system), tag.removesuffix(b"/>") + b">")
