"""The beginning of a list of detections: declaration, comments, and the root element with what it says of the run."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from lxml import etree

from swsdask.formats.run_dialect import DIALECTS, Dialect
from swsdask.formats.run_text import Window
from swsdask.formats.run_values import FormatError, shown
from swsdask.model.ids import id_fault
from swsdask.model.runs import RunHeader

_PLACE = re.compile(r",? line \d+(?:, column \d+)?")
_SYSTEM = "system_id"
_LEAST, _MOST = "min_score", "max_score"


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


def read_root(window: Window, system: str) -> Root:
    """Read up to and including the root's start tag. `system` names the run if the root does not. Raises `FormatError`.

    Entities and other declarations of a document type are refused: nothing that a list of detections needs.
    """
    parser = etree.XMLPullParser(("start",), resolve_entities=False, no_network=True, load_dtd=False)
    while passed := window.next_tag_end():
        feed(parser, passed)
        for _, element in parser.read_events():
            return _root(element, system)
    raise cut_off(window, "the root element of a list of detections")


def _root(element: etree._Element, system: str) -> Root:
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
    system = attributes.pop(_SYSTEM, "").strip() or system
    wrong = id_fault(system)
    if wrong:
        raise FormatError(f"a system id ({_SYSTEM})", wrong, "Give the system a plain name.")
    scores = _declared_scores(attributes)
    tag = etree.tostring(element.makeelement(element.tag, nsmap=element.nsmap)).rstrip()
    return Root(DIALECTS[name], RunHeader(system, scores, attributes), tag.removesuffix(b"/>") + b">")


def _declared_scores(attributes: dict[str, str]) -> tuple[float, float] | None:
    if _LEAST not in attributes or _MOST not in attributes:
        return None
    texts = attributes.pop(_LEAST), attributes.pop(_MOST)
    try:
        least, most = (float(text) for text in texts)
    except ValueError:
        least, most = math.nan, math.nan
    if not (math.isfinite(least) and math.isfinite(most) and least <= most):
        found = f"{shown(texts[0])} and {shown(texts[1])}"
        raise FormatError(
            f"finite {_LEAST} <= {_MOST}", found, "Give the range of the run's scores, or leave both out."
        )
    return least, most
