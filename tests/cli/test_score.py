"""The commands as a user types them: their output, files and exit codes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pyarrow.parquet as pq
import pytest

from swsdask.calibration.maps import AffineMap, Calibration
from swsdask.model.results import ALIGNMENT, CURVES, SCORES
from swsdask.model.schemas import DETECTIONS
from tests.archives import without_hashes
from tests.command_line import Outcome, long_form
from tests.results import fitted_on
from tests.small_evaluation import RTTM, RUN, Files

Call = Callable[..., Outcome]


def test_score_by_hand(swsdask: Call, files: Files) -> None:
    """Two occurrences of K1, one of K2, none of K3; T = 60 s; beta = 999.9."""
    outcome = swsdask("score", files.reference, files.run, "--preset", "openkws13", "--format", "json")
    assert outcome.code == 0, outcome.err
    values = long_form(json.loads(outcome.out))
    assert (values["n_queries"], values["n_target"], values["n_detections"]) == (2, 3, 4)
    assert (values["n_hit"], values["n_miss"], values["n_false_alarm"]) == (2, 1, 1)
    assert values["atwv"] == pytest.approx(1 - (0.5 + 0) / 2 - 999.9 * (1 / 59) / 2, rel=1e-12)
    assert values["mtwv"] == pytest.approx(0.75, rel=1e-12)
    assert values["mtwv_threshold"] == 0.7
    assert values["mtwv_rejected_threshold"] == 0.6


def test_out_holds_what_the_design_names(swsdask: Call, files: Files, tmp_path: Path) -> None:
    out = tmp_path / "results"
    outcome = swsdask("score", files.reference, files.run, "--by", "source_type", "--alignment", "--out", out)
    assert outcome.code == 0, outcome.err
    assert "first" in outcome.out
    assert "Signature" in outcome.out
    assert {path.name for path in out.iterdir()} == {
        "scores.parquet",
        "scores.json",
        "curves.parquet",
        "alignment.parquet",
        "query_texts.parquet",
        "manifest.json",
        "report.html",
    }
    texts = pq.read_table(out / "query_texts.parquet")
    assert texts.to_pydict() == {"query": ["K1", "K2", "K3"], "text": ["good morning", "night", "noon"]}
    scores = pq.read_table(out / "scores.parquet")
    assert scores.schema.equals(SCORES)
    assert pq.read_table(out / "curves.parquet").schema.equals(CURVES)
    alignment = pq.read_table(out / "alignment.parquet")
    assert alignment.schema.equals(ALIGNMENT)
    assert sorted(alignment["outcome"].to_pylist()) == [
        "correct_nondetection",
        "false_alarm",
        "hit",
        "hit",
        "miss",
    ]
    rows = json.loads((out / "scores.json").read_text())
    assert len(rows) == scores.num_rows
    assert set(rows[0]) == {"system", "condition", "query", "measure", "value"}
    assert {row["condition"] for row in rows} == {"all", "source_type=bnews", "source_type=cts"}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["signature"] in outcome.out
    assert manifest["runs"]["first"]["rows"] == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("--executor", "serial"),
        ("--executor", "threads", "--workers", "2"),
        ("--rows-per-task", "1"),
        ("--buckets", "1"),
        ("--buckets", "64"),
    ],
)
def test_how_it_runs_changes_no_byte(swsdask: Call, files: Files, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    swsdask("score", files.reference, files.run, "--out", tmp_path / "plain")
    outcome = swsdask("score", files.reference, files.run, "--out", tmp_path / "other", *arguments)
    assert outcome.code == 0, outcome.err
    for name in ("scores.parquet", "scores.json", "curves.parquet"):
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    plain, other = (json.loads((tmp_path / d / "manifest.json").read_text()) for d in ("plain", "other"))
    assert plain["signature"] == other["signature"]


def test_the_form_of_a_run_changes_no_number(swsdask: Call, files: Files, tmp_path: Path) -> None:
    table = "system\tquery\tdocument\tchannel\tstart\tduration\tscore\tdecision\n" + "".join(
        f"first\t{row}\n"
        for row in (
            "K2\tb\t1\t9.0\t0.5\t0.6\tYES",
            "K1\ta\t1\t1.1\t0.8\t0.9\tYES",
            "K2\ta\t1\t5.0\t0.5\t0.7\tYES",
            "K1\tb\t1\t20\t0.5\t0.2\tNO",
        )
    )
    forms = [
        files.run,
        files.write("zipped.kwslist.xml.gz", gzip.compress(RUN.encode())),
        files.write("misnamed.txt", RUN),
        files.write("table.tsv", table),
        files.write("table.csv", table.replace("\t", ",")),
    ]
    bytes_of = set()
    for number, form in enumerate(forms):
        out = tmp_path / f"out{number}"
        outcome = swsdask("score", files.reference, form, "--out", out)
        assert outcome.code == 0, outcome.err
        bytes_of.add((out / "scores.parquet").read_bytes())
    assert len(bytes_of) == 1


def test_the_order_of_the_ecf_changes_no_number(swsdask: Call, files: Files) -> None:
    run = RUN.replace('score="0.6"', 'score="0.7"').replace('tbeg="9.0"', 'tbeg="2.0"').replace('"0.2"', '"0.9"')
    tied = files.write("tied.kwslist.xml", run)
    how = ("--set", "gap.width_s=1", "--set", "outside=false_alarm", "--format", "json")
    before = swsdask("score", files.reference, tied, *how)
    lines = (files.reference / "x.ecf.xml").read_text().splitlines()
    excerpts = [number for number, line in enumerate(lines) if "<excerpt" in line]
    lines[excerpts[0]], lines[excerpts[-1]] = lines[excerpts[-1]], lines[excerpts[0]]
    files.write("reference/x.ecf.xml", "\n".join(lines))
    after = swsdask("score", files.reference, tied, *how)
    assert before.code == 0
    assert json.loads(after.out) == json.loads(before.out)


def test_the_alignment_names_unknown_documents(swsdask: Call, files: Files, tmp_path: Path) -> None:
    """From files, from an archive, and from one made before their ids were kept."""
    for number, name in enumerate(("zz", "yy", "zz")):
        other = RUN.replace('file="b" channel="1" tbeg="20"', f'file="{name}" channel="1" tbeg="2{number}"')
        files.write(f"{number}.kwslist.xml", other.replace("first", f"s{number}"))
    runs = [files.folder / f"{number}.kwslist.xml" for number in range(3)]
    how = ("--set", "outside=false_alarm", "--set", "unknown_documents=outside", "--alignment", "--measures", "atwv")
    archive = tmp_path / "archive"
    ingested = swsdask("ingest", archive, files.reference, *(f"--run={run}" for run in runs), *how[:4])
    assert ingested.code == 0, ingested.err
    tables = []
    for out, given in (("of_files", [files.reference, *runs]), ("of_archive", [archive])):
        assert swsdask("score", *given, *how, "--out", tmp_path / out).code == 0
        tables.append(pq.read_table(tmp_path / out / "alignment.parquet"))
    assert tables[0].equals(tables[1])
    rows = [(row["system"], row["document"]) for row in tables[0].to_pylist() if row["document"] not in ("a", "b")]
    assert rows == [("s0", "zz"), ("s1", "yy"), ("s2", "zz")]
    without_hashes(Path(copytree(archive, tmp_path / "earlier")))
    for fragment in (tmp_path / "earlier").glob("detections/*/*.parquet"):
        pq.write_table(pq.read_table(fragment).select(DETECTIONS.names), fragment)
    assert swsdask("score", tmp_path / "earlier", *how, "--out", tmp_path / "older").code == 0
    older = pq.read_table(tmp_path / "older" / "alignment.parquet")
    assert older["document"].to_pylist().count("") == 3
    assert older.drop_columns("document").equals(tables[0].drop_columns("document"))


def test_archive(swsdask: Call, files: Files, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    new = swsdask("ingest", archive, files.reference, "--run", files.run)
    assert new.code == 0
    assert new.out == f"{archive}: version 1, 1 run\n  first: 4 detections\n"
    again = swsdask("ingest", archive, "--run", files.run)
    assert again.code == 0
    assert again.out == f"{archive}: version 1, 1 run\n  1 run already there\n"
    refused = swsdask("ingest", archive, "--run", files.run, "--buckets", "8")
    assert refused.code == 2
    assert "expected 64 query buckets, which this archive was made with; found 8. Leave that out" in refused.err
    assert swsdask("ingest", archive, "--run", files.run, "--buckets", "64").code == 0
    files.write("first.kwslist.xml", RUN.replace("0.9", "0.95"))
    changed = swsdask("ingest", archive, "--run", files.run)
    assert changed.code == 2
    assert "first" in changed.err
    assert swsdask("ingest", archive, "--run", files.run, "--replace").code == 0
    shown = swsdask("show", archive)
    assert shown.code == 0
    assert "version 2" in shown.out
    assert "first" in shown.out
    straight = swsdask("score", files.reference, files.run, "--format", "json")
    stored = swsdask("score", archive, "--format", "json")
    named = swsdask("score", archive, "first", "--format", "json")
    assert straight.out == stored.out == named.out
    assert swsdask("score", archive, "second").code == 2


def test_nothing_is_decided_without_decisions(swsdask: Call, files: Files) -> None:
    run = files.write("kaldi.txt", "K1 a 1.1 1.9 0.9\nK2 a 5.0 5.5 0.7\nK2 b 9.0 9.5 0.6\n")
    outcome = swsdask("score", files.reference, run, "--format", "json")
    assert outcome.code == 0, outcome.err
    values = long_form(json.loads(outcome.out))
    assert values["atwv"] is None
    assert values["mtwv"] == pytest.approx(0.75)
    told = [line for line in swsdask("score", files.reference, run).out.splitlines() if "decision" in line]
    assert told == [
        "Note: kaldi: 3 of 3 trials without a YES/NO decision: ATWV and other measures of decisions are not defined."
    ]


def test_dry_run_scores_nothing(swsdask: Call, files: Files, tmp_path: Path) -> None:
    outcome = swsdask("score", files.reference, files.run, "--dry-run", "--out", tmp_path / "none")
    assert outcome.code == 0, outcome.err
    assert "first" in outcome.out
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("option", [("--top", "1"), ("--wide",), ("--dry-run",)])
def test_options_of_the_table_are_refused_beside_other_formats(
    swsdask: Call, files: Files, option: tuple[str, ...]
) -> None:
    outcome = swsdask("score", files.reference, files.run, "--format", "markdown", *option)
    assert (outcome.code, outcome.out) == (2, "")
    assert option[0] in outcome.err


def test_only_the_asked_measures(swsdask: Call, files: Files) -> None:
    outcome = swsdask("score", files.reference, files.run, "--measures", "atwv,mtwv", "--format", "json")
    assert {row["measure"] for row in json.loads(outcome.out)} == {"atwv", "mtwv"}


def test_measures_by_the_names_of_other_tools(swsdask: Call, files: Files) -> None:
    outcome = swsdask("score", files.reference, files.run, "--measures", "P@5,map_cut_100,ATWV", "--format", "json")
    found = {row["measure"] for row in json.loads(outcome.out)}
    assert found == {"precision_at_rank@5", "ap_at_rank@100", "atwv"}
    refused = swsdask("score", files.reference, files.run, "--measures", "nDCG@10")
    assert refused.code == 2
    assert "'ndcg_at_rank@10' needs judged documents" in refused.err


def test_a_measure_with_its_threshold(swsdask: Call, files: Files) -> None:
    """At 0.7 K1 misses one of two and K2 none, without false alarms; P_miss is 1/4 from there on."""
    asked = ("--measures", "TWV@.7,p_miss@1e-3")
    outcome = swsdask("score", files.reference, files.run, *asked, "--format", "json")
    assert outcome.code == 0, outcome.err
    assert long_form(json.loads(outcome.out)) == {"twv@0.7": 0.75, "p_miss@0.001": 0.25}
    assert "0.7500" in swsdask("score", files.reference, files.run, *asked).out
    assert "twv@0.7" in swsdask("score", files.reference, files.run, *asked, "--dry-run").out
    refused = swsdask("score", files.reference, files.run, "--measures", "twv@")
    assert refused.code == 2
    assert "Request twv@0.5, or set thresholds=[0.5]" in refused.err


def test_report_again_from_results(swsdask: Call, files: Files, tmp_path: Path) -> None:
    out = tmp_path / "results"
    swsdask("score", files.reference, files.run, "--out", out)
    page = tmp_path / "page.html"
    outcome = swsdask("report", out, page)
    assert outcome.code == 0, outcome.err
    assert page.read_bytes() == (out / "report.html").read_bytes()


def test_presets(swsdask: Call) -> None:
    listed = swsdask("presets").out
    assert all(name in listed for name in ("std2006", "sws2011", "sws2012", "sws2013", "openkws13", "quesst2014"))
    assert "p_target = 0.00015" in swsdask("presets", "sws2013").out
    assert swsdask("presets", "sws2014").code == 2


def test_convert_and_calibrate_keep_a_table(swsdask: Call, files: Files, tmp_path: Path) -> None:
    """Its columns in their order, its quotes, its digits; without quotes where it has none."""
    table = files.write(
        "run.tsv",
        "document\tstart\tnote\tduration\tscore\tquery\r\n"
        "a\t1.10\tsaid, twice\t0.8000\t0.90\tK1\r\n"
        "\r\n"
        'b\t20\t"a\ttab ""and"" quotes"\t.5\t2e-1\t"K1"\r\n',
    )
    assert swsdask("convert", table, tmp_path / "to" / "run.tsv").code == 2
    (tmp_path / "to").mkdir()
    assert swsdask("convert", table, tmp_path / "to" / "run.tsv").out.endswith("run.tsv: 2 detections\n")
    assert (tmp_path / "to" / "run.tsv").read_bytes() == table.read_bytes().replace(b"\r\n\r\n", b"\r\n")
    assert swsdask("convert", table, tmp_path / "renamed.csv").code == 0
    assert (tmp_path / "renamed.csv").read_bytes().decode() == (
        "document,start,note,duration,score,query,system\r\n"
        'a,1.10,"said, twice",0.8000,0.90,K1,run\r\n'
        'b,20,"a\ttab ""and"" quotes",.5,2e-1,"K1",run\r\n'
    )
    assert swsdask("convert", tmp_path / "renamed.csv", tmp_path / "to" / "other.csv", "--system", "mine").code == 0
    assert (tmp_path / "to" / "other.csv").read_text().splitlines()[1].endswith(",K1,mine")
    Calibration(map=AffineMap(gamma=2.0, delta=-1.0), fitted_on=fitted_on(prior_log_odds=0.0)).write(
        tmp_path / "c.toml"
    )
    applied = swsdask("calibrate", "--apply", tmp_path / "c.toml", table, "--out", tmp_path / "calibrated")
    assert applied.code == 0, applied.err
    assert "not written" not in applied.out
    assert (tmp_path / "calibrated" / "run.tsv").read_bytes().decode() == (
        "document\tstart\tnote\tduration\tscore\tquery\tdecision\r\n"
        "a\t1.10\tsaid, twice\t0.8000\t0.8\tK1\tYES\r\n"
        'b\t20\t"a\ttab ""and"" quotes"\t.5\t-0.6\t"K1"\tNO\r\n'
    )


def test_a_list_becomes_a_table_without_quotes(swsdask: Call, files: Files, tmp_path: Path) -> None:
    assert swsdask("convert", files.run, tmp_path / "run.tsv").code == 0
    lines = (tmp_path / "run.tsv").read_text().splitlines()
    assert lines[0] == "system\tquery\tdocument\tchannel\tstart\tduration\tscore\tdecision"
    assert lines[1].split("\t") == ["first", "K1", "a", "1", "1.1000", "0.8000", "0.9", "YES"]


def test_convert(swsdask: Call, files: Files, tmp_path: Path) -> None:
    for name in ("run.stdlist.xml", "run.tsv", "run.parquet", "back.kwslist.xml.gz"):
        outcome = swsdask("convert", files.run, tmp_path / name)
        assert outcome.code == 0, outcome.err
        same = swsdask("score", files.reference, tmp_path / name, "--format", "json")
        assert same.out == swsdask("score", files.reference, files.run, "--format", "json").out


def test_validate(swsdask: Call, files: Files) -> None:
    outcome = swsdask("validate", files.reference, files.run)
    assert outcome.code == 0, outcome.err
    assert "4" in outcome.out
    run = files.write("other.kwslist.xml", RUN.replace('file="b"', 'file="c"'))
    assert swsdask("validate", files.reference, run).code == 2
    for settings in (["--set", "unknown_documents=outside"], ["--compat", "kwseval"]):
        outcome = swsdask("validate", files.reference, run, *settings)
        assert outcome.code == 0, outcome.err
        assert "1 unknown document" in outcome.out


def test_stdeval_counts_what_the_ecf_does_not_have(swsdask: Call, files: Files) -> None:
    """An occurrence in a document without excerpts is a target there, its detection a hit; elsewhere not."""
    files.write("reference/x.rttm", RTTM + "LEXEME c 1 3.00 0.50 night lex eve <NA>\n")
    run = files.write(
        "first.kwslist.xml", RUN.replace('file="b" channel="1" tbeg="9.0"', 'file="c" channel="1" tbeg="3.0"')
    )
    stdeval = swsdask("score", files.reference, run, "--compat", "stdeval", "--format", "json")
    values = long_form(json.loads(stdeval.out))
    assert (values["n_target"], values["n_hit"], values["n_false_alarm"]) == (4, 3, 0)
    kwseval = swsdask("score", files.reference, run, "--compat", "kwseval", "--format", "json")
    values = long_form(json.loads(kwseval.out))
    assert (values["n_target"], values["n_hit"], values["n_false_alarm"]) == (3, 2, 0)
    told = swsdask("score", files.reference, run, "--compat", "kwseval").out
    assert "Not counted: 1 occurrence outside the evaluated excerpts." in told
    assert "c (1)" in told
    assert swsdask("score", files.reference, run).code == 2


def test_an_unknown_output_is_refused_before_anything_is_read(swsdask: Call, tmp_path: Path) -> None:
    outcome = swsdask("score", tmp_path / "nothing", tmp_path / "no.tsv", "--out", tmp_path, "--outputs", "scores,foo")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no output 'foo': there are scores, json, curves, report." in outcome.err
