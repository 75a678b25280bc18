"""QUESST's task in one whole process: every query against every document, 495 x 10 762 trials in XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.bench.cost import cost
from tests.bench.data import SEED, Data
from tests.bench.process import run_process
from tests.bench.small import SWSDASK
from tests.bench.table import Row

N_QUERIES, N_DOCUMENTS, TARGET_RATE = 495, 10_762, 0.002
OFFICIAL_S, OFFICIAL_GB = 15.0, 2.0
"""What MediaEval's tool took on a like machine."""


def rows(data: Data) -> Iterator[Row]:
    """CPU time and memory, and wall-clock time and memory beside those of the official tool."""
    folder = data.folder / "documents"
    n_documents = data.rows(N_DOCUMENTS)
    run = _write(folder, n_documents)
    command = (SWSDASK, "score", str(folder), run, "--preset", "quesst2014", "--out", str(folder / "out"))
    ours = cost(run_process, command, repeats=3)
    ours = replace(ours, peak=ours.result)
    what = f"{N_QUERIES * n_documents:,} document trials, XML to report"
    over = "MediaEval's tool, for scale"
    yield Row(f"{what}, CPU", ours.cpu, "limit", 2.0, ours.cpu / 2, most=1.0, peak=ours.peak)
    yield Row(f"{what}, wall", ours.wall, over, OFFICIAL_S, OFFICIAL_S / ours.wall, peak=ours.peak)
    gib = ours.peak / 2**30
    yield Row(f"{what}, peak memory", gib, over, OFFICIAL_GB, OFFICIAL_GB / gib, unit="GiB", peak=ours.peak)
    yield Row(f"{what}, peak memory", gib, "limit", 0.5, gib / 0.5, most=1.0, unit="GiB", peak=ours.peak)


def _write(folder: Path, n_documents: int) -> str:
    (folder / "runs").mkdir(parents=True)
    random = np.random.default_rng(SEED)
    documents = [f"quesst2014_{number:05d}" for number in range(n_documents)]
    queries = [f"quesst2014_eval_{number:04d}" for number in range(N_QUERIES)]
    excerpts = "".join(
        f'<excerpt audio_filename="{document}" channel="1" tbeg="0" dur="10" language="m" source_type="bnews"/>\n'
        for document in documents
    )
    (folder / "q.ecf.xml").write_text(f'<ecf source_signal_duration="1" version="1">\n{excerpts}</ecf>\n')
    terms = "".join(f'<term termid="{query}"><termtext>{query}</termtext></term>\n' for query in queries)
    (folder / "q.tlist.xml").write_text(
        f'<termlist ecf_filename="q.ecf.xml" language="m" version="1">\n{terms}</termlist>\n'
    )
    run = folder / "runs" / "system.stdlist.xml"
    with (folder / "q.rttm").open("w") as spoken, run.open("w") as detected:
        detected.write(
            '<stdlist termlist_filename="q.tlist.xml" indexing_time="1" language="m" index_size="1" system_id="s">\n'
        )
        for query in queries:
            target = random.random(n_documents) < TARGET_RATE
            target[random.integers(n_documents)] = True
            score = np.where(target, random.normal(4, 3, n_documents), random.normal(-6, 2, n_documents))
            spoken.writelines(
                f"LEXEME {documents[number]} 1 0 10 {query} lex SELF <NA>\n" for number in np.flatnonzero(target)
            )
            detected.write(f'<detected_termlist termid="{query}" term_search_time="1" oov_term_count="1">\n')
            detected.writelines(
                f'<term file="{document}" channel="1" tbeg="0" dur="10" score="{value:.5f}" '
                f'decision="{"YES" if value > 2.52 else "NO"}"/>\n'
                for document, value in zip(documents, score.tolist(), strict=True)
            )
            detected.write("</detected_termlist>\n")
        detected.write("</stdlist>\n")
    return str(run)
