from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.archive.validate import CheckedFile, Report, validate
from swsdask.formats.find import ReferenceFiles
from swsdask.formats.recognise import Format
from swsdask.formats.runs.lines import CTM
from tests.engines import Seen

ECF = """<ecf>
<excerpt audio_filename="a.wav" channel="1" tbeg="0" dur="30"/>
<excerpt audio_filename="a.wav" channel="2" tbeg="0" dur="30.00001"/>
<excerpt audio_filename="b.wav" channel="1" tbeg="0" dur="30"/>
</ecf>
"""
RTTM = """SPEAKER a 1 0.00 10.00 <NA> <NA> ann <NA>
LEXEME a 1 1.00 0.50 good lex ann <NA>
NOSCORE a 1 5 1 <NA> <NA> <NA> <NA>
LEXEME a 1 1.60001 0.4 morning lex ann <NA>
"""
QUERIES = """<kwlist>
<kw kwid="K1"><kwtext>good morning</kwtext></kw>
<kw kwid="K2"><kwtext>night</kwtext></kw>
</kwlist>
"""
RUN = """<kwslist system_id="first">
<detected_kwlist kwid="K1">
<kw file="a" channel="1" tbeg="1.1" dur="0.8" score="0.9" decision="YES"/>
<kw file="b" channel="1" tbeg="20" dur="0.50001" score="0.2" decision="NO"/>
</detected_kwlist>
<detected_kwlist kwid="K2">
<kw file="b" channel="1" tbeg="5.0" dur="0.5" score="0.7" decision="YES"/>
</detected_kwlist>
</kwslist>
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (("x.ecf.xml", ECF), ("x.rttm", RTTM), ("x.kwlist.xml", QUERIES)):
        path = tmp_path / "reference" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    (tmp_path / "run.xml").write_text(RUN)
    return tmp_path


def reference(folder: Path) -> ReferenceFiles:
    return ReferenceFiles(*(str(folder / "reference" / name) for name in ("x.ecf.xml", "x.rttm", "x.kwlist.xml")))


def places(report: Report) -> list[tuple[str, int | None]]:
    assert report.total == len(report.problems)
    return [(Path(problem.file).name, problem.line) for problem in report.problems]


def mend(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_progress_and_the_default_definition(folder: Path) -> None:
    seen = Seen()
    paths = [folder / "reference", folder / "run.xml"]
    report = sws.validate(paths, progress=seen)
    assert seen.phases == [["checking", 4, 4]]
    assert report == sws.validate(paths, definition="document")


def test_counts_of_a_reference_and_a_run(folder: Path) -> None:
    files = reference(folder)
    run = str(folder / "run.xml")
    report = validate([str(folder / "reference"), run])
    assert report == Report(
        (
            CheckedFile(files.ecf, Format.ECF, {"excerpts": 3, "documents": 2, "rounded times": 1}),
            CheckedFile(
                files.rttm,
                Format.RTTM,
                {
                    "words": 2,
                    "segments": 1,
                    "rounded times": 2,
                    "records of other types": 1,
                    "words in documents that are not evaluated": 0,
                },
            ),
            CheckedFile(files.queries, Format.QUERIES, {"queries": 2}),
            CheckedFile(
                run,
                Format.RUN_XML,
                {"rows": 3, "systems": 1, "queries": 2, "documents": 2, "rounded times": 1},
            ),
        ),
        (),
        0,
    )


def test_a_reference_is_checked_first_and_once(folder: Path) -> None:
    files = reference(folder)
    report = validate([str(folder / "run.xml"), files.rttm, str(folder / "reference")], files)
    assert [file.file for file in report.files] == [files.ecf, files.rttm, files.queries, str(folder / "run.xml")]
    assert report.total == 0


def test_unknown_queries_and_documents_are_reported_at_their_first_lines(folder: Path) -> None:
    mend(folder / "run.xml", 'kwid="K2"', 'kwid="K9"')
    mend(folder / "run.xml", 'file="b"', 'file="z"')
    assert places(validate([str(folder / "run.xml")])) == []
    report = validate([str(folder / "run.xml")], reference(folder))
    assert places(report) == [("run.xml", 6), ("run.xml", 4)]
    assert [problem.found for problem in report.problems] == ["'K9' in 1 row", "'z' in 1 row"]


def test_unknown_ids_that_the_settings_let_be_are_counted(folder: Path) -> None:
    mend(folder / "run.xml", 'kwid="K2"', 'kwid="K9"')
    mend(folder / "run.xml", 'file="b"', 'file="z"')
    of = {"reference": str(folder / "reference")}
    run = str(folder / "run.xml")
    dropped = sws.validate(run, **of, settings={"evaluation": {"unknown_queries": "drop"}})
    assert [problem.found for problem in dropped.problems] == ["'z' in 1 row"]
    assert dropped.files[-1].counts["unknown queries"] == 1
    for settings in ({"compat": "kwseval"}, {"settings": {"evaluation": {"unknown_documents": "outside"}}}):
        outside = sws.validate(run, **of, **settings)
        assert [problem.found for problem in outside.problems] == ["'K9' in 1 row"]
        assert outside.files[-1].counts["unknown documents"] == 1
    with pytest.raises(sws.SettingsError, match="unknown_querys"):
        sws.validate(run, **of, settings={"evaluation": {"unknown_querys": "drop"}})


def refused(run: Path, reference: Path, **settings: Any) -> list[str]:
    """What `validate` reports, of which scoring must report the same."""
    report = sws.validate(run, reference, **settings)
    with pytest.raises(sws.InputError):
        sws.score(sws.open(reference, **settings), runs=str(run))
    return [str(problem) for problem in report.problems]


def test_detections_outside_the_excerpts_where_that_is_an_error(folder: Path) -> None:
    run, settings = folder / "run.xml", {"settings": {"evaluation": {"outside": "error"}}}
    assert sws.validate(run, folder / "reference", **settings).total == 0
    mend(run, 'tbeg="20"', 'tbeg="29.8"')
    mend(run, 'tbeg="5.0"', 'tbeg="31"')
    assert sws.validate(run, folder / "reference").total == 0
    assert refused(run, folder / "reference", **settings) == [
        f"{run}:4: expected only detections inside evaluated excerpts; found 2 detections outside them, the first one "
        "here. Take them out, or set outside=drop or outside=false_alarm."
    ]


def test_trials_that_mediaeval_has_twice(folder: Path) -> None:
    run, settings = folder / "run.xml", {"preset": "quesst2014", "compat": "mediaeval"}
    assert sws.validate(run, folder / "reference", **settings).total == 0
    mend(run, 'file="b" channel="1" tbeg="20"', 'file="a" channel="1" tbeg="20"')
    assert sws.validate(run, folder / "reference", preset="quesst2014").total == 0
    assert refused(run, folder / "reference", **settings) == [
        f"{run}:4: expected every trial once; found query K1 in document a again. Keep one of the two, or score "
        "without compat=mediaeval: then the best one counts."
    ]


def test_words_in_documents_that_the_ecf_does_not_have_are_counted(folder: Path) -> None:
    mend(folder / "reference/x.rttm", "LEXEME a 1 1.60001", "LEXEME A 1 1.60001")
    report = validate([], reference(folder))
    assert report.total == 0
    assert report.files[1].counts["words in documents that are not evaluated"] == 1


def test_every_problem_of_every_file(folder: Path) -> None:
    files = folder / "reference"
    mend(files / "x.ecf.xml", 'channel="2" tbeg="0"', 'channel="two" tbeg="-1"')
    mend(files / "x.rttm", "LEXEME a 1 1.00", "LEXEME a 1 x")
    mend(files / "x.rttm", "SPEAKER a", "SPEAKER ../a")
    mend(files / "x.kwlist.xml", "K2", "K1")
    mend(folder / "run.xml", 'score="0.2"', 'score="nan"')
    mend(folder / "run.xml", 'dur="0.8"', 'dur="-0.8"')
    report = validate([str(folder / "run.xml")], reference(folder))
    assert places(report) == [
        ("x.ecf.xml", 3),
        ("x.ecf.xml", 3),
        ("x.rttm", 1),
        ("x.rttm", 2),
        ("x.kwlist.xml", 3),
        ("run.xml", 3),
        ("run.xml", 4),
    ]


def test_nothing_is_unknown_to_a_faulty_reference(folder: Path) -> None:
    mend(folder / "reference/x.ecf.xml", "</ecf>\n", "")
    mend(folder / "run.xml", 'kwid="K2"', 'kwid="K9"')
    assert places(validate([str(folder / "run.xml")], reference(folder))) == [("x.ecf.xml", 5)]


def test_a_file_in_another_ones_place(folder: Path) -> None:
    files = reference(folder)
    report = validate([], ReferenceFiles(files.rttm, files.ecf, files.queries))
    assert [problem.found for problem in report.problems] == ["an RTTM reference", "an ECF"]


def test_files_that_cannot_be_recognised_or_read(folder: Path) -> None:
    (folder / "what").write_text("what is this\n")
    (folder / "empty").write_text("")
    report = validate([str(folder / name) for name in ("what", "empty", "absent", "run.xml")])
    assert places(report) == [("what", 1), ("empty", None), ("absent", None)]
    assert [(file.format, bool(file.counts)) for file in report.files] == [
        (None, False),
        (None, False),
        (None, False),
        (Format.RUN_XML, True),
    ]


def test_files_of_a_reference_given_alone(folder: Path) -> None:
    """Names tell its tables; a CTM without scores is no run."""
    contents = {
        "documents.csv": "document,duration\na,60\n",
        "occurrences.csv": "query,document,start,duration\nK,a,1,1\n",
        "queries.csv": "query,oov\nK,yes\n",
        "spoken.ctm": "a 1 1.0 0.4 two\n",
        "detected.ctm": "a 1 1.0 0.4 two 0.9\n",
    }
    for name, content in contents.items():
        (folder / name).write_text(content)
    report = validate([str(folder / name) for name in contents])
    assert report.problems == ()
    kinds = [Format.DOCUMENTS, Format.OCCURRENCES, Format.QUERY_TABLE, Format.RTTM, CTM]
    assert [each.format for each in report.files] == kinds


def test_folders(folder: Path) -> None:
    (folder / "runs").mkdir()
    (folder / "run.xml").rename(folder / "runs/run.xml")
    assert [file.format for file in validate([str(folder / "runs")]).files] == [Format.RUN_XML]
    (folder / "reference/y.ecf.xml").write_text(ECF)
    (problem,) = validate([str(folder / "reference")]).problems
    assert problem.expected == "one file in the folder that is an ECF"


def test_runs_are_checked_against_the_one_reference_beside_them(folder: Path) -> None:
    run = folder / "run.xml"
    run.write_text(RUN.replace("K2", "K9"))
    (problem,) = validate([str(folder / "reference"), str(run)]).problems
    assert (problem.line, "'K9'" in problem.found) == (6, True)
    other = folder / "other"
    other.mkdir()
    (other / "y.ecf.xml").write_text(ECF)
    assert not any("K9" in problem.found for problem in validate([str(other), str(run)]).problems)


def test_globs(folder: Path) -> None:
    (folder / "other.xml").write_text(RUN)
    report = validate([str(folder / "*.xml"), str(folder / "refer*")])
    assert [Path(each.file).name for each in report.files[:2]] == ["other.xml", "run.xml"]
    assert (len(report.files), report.total) == (5, 0)
    (problem,) = validate([str(folder / "*.tsv")]).problems
    assert problem.expected == "a glob that matches some files"
