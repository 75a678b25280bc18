"""From official files to an archive, and the same in memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from swsdask.archive import ingest as writing
from swsdask.archive.fragments import spill, take_up
from swsdask.archive.ingest import divide, ingest
from swsdask.archive.memory import read_into_memory
from swsdask.archive.reference import build_reference
from swsdask.archive.reference_files import read_reference
from swsdask.archive.storage import Storage
from swsdask.archive.store import is_archive, open_archive
from swsdask.execution.executor import ThreadExecutor
from swsdask.formats.find import ReferenceFiles
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import InputError
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections
from tests.archives import COLUMNS, as_rows

SETTINGS = EvaluationSettings(unknown_documents="outside")


@pytest.fixture
def reference(tmp_path: Path) -> ReferenceFiles:
    (tmp_path / "r.ecf.xml").write_text(
        '<ecf source_signal_duration="90" language="x" version="1">\n'
        '<excerpt audio_filename="audio/d0.sph" channel="1" tbeg="0.000" dur="60.000" source_type="cts"/>\n'
        '<excerpt audio_filename="audio/d1.wav" channel="1" tbeg="10" dur="30.5" source_type="bnews"/>\n</ecf>\n'
    )
    (tmp_path / "r.rttm").write_text(
        "SPEAKER d0 1 0.000 9.000 <NA> <NA> s <NA>\n"
        "LEXEME d0 1 1.000 0.500 Good lex s <NA>\nLEXEME d0 1 1.900 0.500 day lex s <NA>\n"
        "LEXEME d1 1 5.0 1.0 day lex s <NA>\n"
    )
    (tmp_path / "r.kwlist.xml").write_text(
        '<kwlist ecf_filename="r.ecf.xml" version="1" language="x" encoding="UTF-8" compareNormalize="lowercase">\n'
        '<kw kwid="K1"><kwtext>good Day</kwtext></kw>\n<kw kwid="K2"><kwtext>day</kwtext></kw>\n</kwlist>\n'
    )
    return ReferenceFiles(*(str(tmp_path / f"r.{ending}") for ending in ("ecf.xml", "rttm", "kwlist.xml")))


def kwslist(path: Path, lists: dict[str, Sequence[tuple[str, float]]], system: str = "sys") -> str:
    lines = [f'<kwslist kwlist_filename="r.kwlist.xml" language="x" system_id="{system}">']
    for query, found in lists.items():
        lines.append(f'<detected_kwlist kwid="{query}" search_time="1" oov_count="0">')
        lines += [
            f'<kw file="{file}" channel="1" tbeg="{at:.4f}" dur="0.5000" score="{at / 64}" decision="YES"/>'
            for file, at in found
        ]
        lines.append("</detected_kwlist>")
    path.write_text("\n".join([*lines, "</kwslist>", ""]))
    return str(path)


def test_files_become_an_archive(reference: ReferenceFiles, tmp_path: Path) -> None:
    run = kwslist(tmp_path / "a.kwslist.xml", {"K2": [("d1", 15.0), ("d0", 59.75), ("zz", 1.0)], "K1": []})
    files = [RunFile(run), RunFile(run, "renamed")]
    url = str(tmp_path / "archive")
    stored = ingest(url, reference, files, SETTINGS)
    memory = read_into_memory(read_reference(reference), files, SETTINGS)
    assert stored.runs == memory.runs
    assert stored.inputs == memory.inputs
    assert [(run.system, run.rows, run.outside, run.unknown_documents) for run in stored.runs] == [
        ("renamed", 3, 2, {"zz": 1}),
        ("sys", 3, 2, {"zz": 1}),
    ]
    assert stored.runs[0].content == stored.runs[1].content
    assert build_reference(stored, SETTINGS).targets.tolist() == [[1], [1]]
    assert ingest(url, None, files, SETTINGS).version == 1


def test_decisions_in_some_parts_of_a_file_only(
    reference: ReferenceFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a file is cut, and in however many files a run lies, its rows have decisions, or none has."""
    run = Path(kwslist(tmp_path / "big.xml", {"K1": [("d0", i / 512) for i in range(9000)] * 2, "K2": [("d1", 1.0)]}))
    lines = run.read_text().split("\n")
    wrong = next(number for number, line in enumerate(lines, 1) if 'file="d1"' in line)
    lines[wrong - 1] = lines[wrong - 1].replace(' decision="YES"', "")
    run.write_text("\n".join(lines))
    found = {}
    for parts in (1, 2):
        monkeypatch.setattr(writing, "ROWS_PER_PART", RunFile(str(run)).rows_about // parts + 1)
        assert len(divide([RunFile(str(run))], 2)) == parts
        with closing(ThreadExecutor(2)) as two, pytest.raises(InputError) as caught:
            ingest(str(tmp_path / "archive"), reference, [RunFile(str(run))], SETTINGS, executor=two)
        (problem,) = caught.value.problems
        found[parts] = (problem.line, problem.found, problem.remedy)
    assert found[1] == found[2] == (wrong, "a row without one", "Give all rows of a system a decision, or none.")


def test_faults_of_the_files_are_reported_and_nothing_is_written(reference: ReferenceFiles, tmp_path: Path) -> None:
    wrong = kwslist(tmp_path / "w.kwslist.xml", {"K9": [("d0", 1.0)], "K1": [("d0", -5.0)]})
    with pytest.raises(InputError) as caught:
        ingest(str(tmp_path / "archive"), reference, [RunFile(wrong)], SETTINGS)
    assert {(problem.file, problem.line) for problem in caught.value.problems} == {(wrong, 2), (wrong, 6)}
    assert not is_archive(str(tmp_path / "archive"))


def test_a_large_file_is_read_in_parts(
    reference: ReferenceFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = "\n".join(f'<kw kwid="Q{n}"><kwtext>w{n}</kwtext></kw>' for n in range(40))
    Path(reference.queries).write_text(
        f'<kwlist ecf_filename="e" version="1" language="x" encoding="UTF-8" compareNormalize="">{queries}</kwlist>'
    )
    run = kwslist(tmp_path / "big.xml", {f"Q{n}": [("d0", (n * 400 + i) / 512) for i in range(400)] for n in range(40)})
    monkeypatch.setattr(writing, "ROWS_PER_PART", RunFile(run).rows_about // 3)
    assert len(divide([RunFile(run)], 2)) > 1
    with closing(ThreadExecutor(2)) as two:
        parts = ingest(str(tmp_path / "parts"), reference, [RunFile(run)], SETTINGS, executor=two)
    monkeypatch.undo()
    assert len(divide([RunFile(run)], 2)) == 1
    whole = ingest(str(tmp_path / "whole"), reference, [RunFile(run)], SETTINGS)
    assert parts.runs == whole.runs
    assert whole.runs[0].rows == 16000
    found = [
        [as_rows(c.read(COLUMNS) for c in open_archive(each.storage.url).cells("sys", 10**6))]
        for each in (parts, whole)
    ]
    assert found[0] == found[1]


def test_files_are_cut_where_workers_would_have_unlike_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker, and many files of one size, need no part of a file."""
    run = kwslist(tmp_path / "a.xml", {f"Q{n}": [("d0", i / 512) for i in range(4000)] for n in range(9)})
    monkeypatch.setattr(writing, "ROWS_PER_PART", 10_000)
    assert [len(divide([RunFile(run)], workers)) for workers in (1, 2)] == [1, 4]
    assert len(divide([RunFile(run, str(n)) for n in range(9)], 2)) == 9


def test_small_runs_are_written_by_the_task_that_reads_them(
    reference: ReferenceFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a run is spilled that one file has whole; the parts of a run may lie in several files."""
    files = [kwslist(tmp_path / f"{n}.xml", {"K1": [("d0", n + 0.5)], "K2": [("d1", 15.0)]}, f"s{n}") for n in (1, 2)]
    spilled: list[int] = []
    spill = writing.spill
    monkeypatch.setattr(writing, "spill", lambda *given: spilled.append(len(given[2])) or spill(*given))
    apart = ingest(str(tmp_path / "apart"), reference, [RunFile(file) for file in files], SETTINGS)
    assert [(run.system, run.rows) for run in apart.runs] == [("s1", 2), ("s2", 2)]
    assert spilled == []
    again = ingest(str(tmp_path / "apart"), None, [RunFile(files[0]), RunFile(files[1], "s3")], SETTINGS)
    assert [len(list((tmp_path / "apart" / "detections").glob(f"{run.content}/*"))) for run in again.runs] == [1, 2, 2]
    together = ingest(str(tmp_path / "together"), reference, [RunFile(file, "s") for file in files], SETTINGS)
    assert [(run.system, run.rows) for run in together.runs] == [("s", 4)]
    assert spilled == [2, 2]


def test_what_is_spilled_is_taken_up_by_partition(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    few = Detections(query=np.array([3, 1, 3], np.int32), score=np.array([0.5, 1.5, 2.5]))
    for rows, expected in ((few, [[], [1.5], [0.5, 2.5]]), (few.take(slice(0)), [[], [], []])):
        file = spill(storage, "temporary/w", rows, np.array([2, 1, 2])[: len(rows)], 3)
        found = [take_up(storage, [file], partition, partition).score.tolist() for partition in range(3)]
        assert found == expected
        assert len(take_up(storage, [file], 0, 2)) == len(rows)
