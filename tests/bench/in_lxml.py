"""A list of detections read by a plain lxml loop."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np
from lxml import etree


def read_with_lxml(file: str) -> Callable[[], tuple[int, float]]:
    """Builds the columns of a run; how many rows there are, and the sum of all columns of numbers."""

    def step() -> tuple[int, float]:
        query, document, channel = array("i"), array("i"), array("b")
        start, duration, score, decision = array("d"), array("d"), array("d"), array("b")
        queries: dict[str, int] = {}
        documents: dict[str, int] = {}
        current = -1
        for event, element in etree.iterparse(file, events=("start", "end"), tag=("detected_kwlist", "kw")):
            if event == "start":
                if element.tag == "detected_kwlist":
                    current = queries.setdefault(element.get("kwid"), len(queries))
                continue
            if element.tag == "kw":
                get = element.get
                query.append(current)
                document.append(documents.setdefault(get("file"), len(documents)))
                channel.append(int(get("channel")))
                start.append(float(get("tbeg")))
                duration.append(float(get("dur")))
                score.append(float(get("score")))
                decision.append(get("decision") == "YES")
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
        ticks = [np.rint(np.frombuffer(times) * 10_000).astype(np.int32) for times in (start, duration)]
        columns = (np.frombuffer(channel, np.int8), *ticks, np.frombuffer(score), np.frombuffer(decision, np.int8))
        return len(query), round(sum(float(column.sum()) for column in columns), 3)

    return step
