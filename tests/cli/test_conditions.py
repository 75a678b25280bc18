"""Computed conditions from files and archives: what the command line takes, keeps and lists."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.archive.conditions import COMPUTED
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION
from tests.command_line import Outcome
from tests.small_evaluation import QUERIES, RTTM, RUN, Files

Swsdask = Callable[..., Outcome]

SPEAKERS = "SPKR-INFO a 1 <NA> <NA> <NA> adult_female ann <NA>\nSPKR-INFO b 1 <NA> <NA> <NA> adult_male bob <NA>\n"
LEXICON = ';;; a comment\ngood g uh d\nGOOD(2) g ow d d\nmorning 0.5 m ao r " n . ih ng\nnight n ay t\n'


@pytest.fixture
def reference(files: Files, tmp_path: Path) -> Path:
    (tmp_path / "lexicon.txt").write_text(LEXICON)
    (tmp_path / "text.txt").write_text("Good night, good\nmorning noon\n")
    (files.reference / "x.rttm").write_text(RTTM + SPEAKERS)
    return files.reference


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "conditions.md").read_text()
    assert [key.name for key in COMPUTED if f"`{key.name}`" not in page] == []


def overall(result: sws.Result, measure: str = "n_target") -> dict[str, float]:
    rows = result.scores
    rows = rows[rows["query"].isna() & (rows["measure"] == measure)]
    return dict(zip(rows["condition"], rows["value"], strict=True))


def test_talkers_and_genders_of_an_rttm(reference: Path, files: Files) -> None:
    result = sws.score(sws.open(reference), ["n_target", "n_false_alarm"], runs=files.run, by=["talker", "gender"])
    assert overall(result) == {
        "all": 3,
        "talker=ann": 2,
        "talker=bob": 1,
        "gender=adult_female": 2,
        "gender=adult_male": 1,
    }
    alarms = overall(result, "n_false_alarm")
    assert alarms["all"] == alarms["talker=ann"] == alarms["gender=adult_female"] == 1
    assert alarms["talker=bob"] == 0, "K2, which has the false alarm, is not spoken by bob: it is not averaged there"


def test_the_order_of_an_rttm_and_its_form_do_not_matter(reference: Path, files: Files) -> None:
    kept = ReferenceTables.of(sws.open(reference).archive)
    for text in (SPEAKERS + RTTM, RTTM.replace("0.50 good", ".500 good") + SPEAKERS, SPEAKERS.lower() + RTTM):
        (files.reference / "x.rttm").write_text(text)
        again = ReferenceTables.of(sws.open(reference).archive)
        assert again.segments.schema.metadata == kept.segments.schema.metadata
        assert again.inputs["genders"] == kept.inputs["genders"]


def test_an_archive_keeps_genders_and_what_a_lexicon_says(reference: Path, files: Files, tmp_path: Path) -> None:
    lexicon = tmp_path / "lexicon.txt"
    by = ["gender", "oov", "n_phones"]
    result = sws.score(sws.open(reference, lexicon=lexicon), "n_target", runs=files.run, by=by)
    assert overall(result) == {
        "all": 3,
        "gender=adult_female": 2,
        "gender=adult_male": 1,
        "oov=false": 3,
        "oov=true": 0,
        "n_phones=3": 1,
        "n_phones=9": 2,
    }
    sws.ingest(tmp_path / "archive", reference, runs=files.run, lexicon=lexicon)
    lexicon.unlink()
    kept = sws.score(tmp_path / "archive", "n_target", by=by)
    assert kept.table.equals(result.table)
    assert not [file for file in (tmp_path / "archive").rglob("manifest*") if "lexicon" in file.read_text()]
    with pytest.raises(sws.SettingsError, match="when an archive is created"):
        sws.open(tmp_path / "archive", lexicon=lexicon)


def test_a_text_says_what_is_out_of_vocabulary(reference: Path, files: Files, tmp_path: Path) -> None:
    evaluation = sws.open(reference, vocabulary=tmp_path / "text.txt", lexicon=tmp_path / "lexicon.txt")
    attributes = {row["query"]: dict(row["attributes"]) for row in evaluation.archive.queries.to_pylist()}
    assert attributes == {
        "K1": {"oov": "false", "n_phones": "9"},
        "K2": {"oov": "true", "n_phones": "3"},
        "K3": {"oov": "false"},
    }, "the text has 'night,', the lexicon no noon"


@pytest.mark.parametrize(
    ("content", "fault"), [("good\n", "1: expected a word and its phones"), (";;;\n", "at least one")]
)
def test_a_lexicon_with_a_fault(reference: Path, tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "lexicon.txt").write_text(content)
    with pytest.raises(sws.InputError, match=fault):
        sws.open(reference, lexicon=tmp_path / "lexicon.txt")


def test_archives_of_earlier_releases_know_no_genders_and_take_runs(reference: Path, tmp_path: Path) -> None:
    storage, ours = Storage(str(tmp_path), {}), sws.open(reference).archive.inputs
    earlier = {role: content for role, content in ours.items() if role != "genders"}
    EVALUATION.check_same_inputs(storage, earlier, ours)
    for other in ({**ours, "genders": "x"}, {**earlier, "rttm": "x"}):
        with pytest.raises(sws.ArchiveError, match="differs in"):
            EVALUATION.check_same_inputs(storage, other, ours)


@pytest.mark.parametrize(("compat", "n_known"), [("none", [1.0]), ("kwseval", [1.0, 2.0])])
def test_an_oov_count_of_na_is_no_number(reference: Path, tmp_path: Path, compat: str, n_known: list[float]) -> None:
    """KWSEval -w counts such a query as in the vocabulary, which is 0."""
    (tmp_path / "run.kwslist.xml").write_text(
        RUN.replace('"K1" search_time="1" oov_count="0"', '"K1" search_time="1" oov_count="NA"')
    )
    assert 'oov_count="NA"' in (tmp_path / "run.kwslist.xml").read_text()
    evaluation = sws.open(reference, compat=compat)
    result = sws.score(evaluation, ["n_target"], runs=tmp_path / "run.kwslist.xml", by=["oov_count:0/1"])
    rows = result.scores[result.scores["query"].notna() & (result.scores["condition"] == "oov_count=0")]
    assert sorted(rows["value"]) == n_known


def test_each_run_has_its_own_oov_count(swsdask: Swsdask, reference: Path, files: Files, tmp_path: Path) -> None:
    second = RUN.replace('"K1" search_time="1" oov_count="0"', '"K1" search_time="1" oov_count="2"').replace(
        "first", "second"
    )
    (tmp_path / "second.kwslist.xml").write_text(second)
    runs = [files.run, str(tmp_path / "second.kwslist.xml")]
    evaluation = sws.open(reference)
    result = sws.score(evaluation, ["n_target", "atwv"], runs=runs, by=["oov_count"], alignment=True)
    apart = [sws.score(evaluation, ["n_target", "atwv"], runs=run, by="oov_count") for run in runs]
    together = pa.concat_tables([each.table for each in apart])
    assert result.table.combine_chunks().equals(together.combine_chunks())
    rows = result.scores[result.scores["query"].isna() & (result.scores["measure"] == "n_target")]
    assert rows[["system", "condition", "value"]].to_numpy().tolist() == [
        ["first", "all", 3],
        ["first", "oov_count=0", 3],
        ["second", "all", 3],
        ["second", "oov_count=0", 1],
        ["second", "oov_count=2", 2],
    ]
    errors = sws.errors(evaluation, runs=runs, by="oov_count")
    assert [(row["system"], row["condition"], row["query"]) for row in errors.query_table.to_pylist()] == [
        (system, condition, query)
        for system in ("first", "second")
        for each in (sws.errors(evaluation, runs=runs[system == "second"], by="oov_count"),)
        for condition, query in zip(each.queries["condition"], each.queries["query"], strict=True)
    ]
    assert set(errors.queries["condition"]) == {"all", "oov_count=0", "oov_count=2"}
    (tmp_path / "third.tsv").write_text("query\tdocument\tstart\tduration\tscore\tdecision\nK1\ta\t1\t1\t.5\tYES\n")
    reported = swsdask("score", reference, files.run, tmp_path / "third.tsv", "--by", "oov_count")
    assert (reported.code, reported.err) == (
        2,
        f"swsdask: {tmp_path}/third.tsv: expected an oov_count of some query, for the condition key 'oov_count'; found "
        "none. Leave out the key or the run.\n",
    )


@pytest.mark.parametrize(
    ("key", "reported"),
    [
        ("n_word", "Nearest: n_words."),
        ("n_words:quartile", "no value 'quartile'. Nearest: quartiles. Values"),
        ("talker:anne", "no value 'anne'. Nearest: ann. Values: ann, bob."),
        ("talker:quartiles", "needs numbers; the values are ann, bob."),
        ("n_words:3/1", "the numbers must ascend"),
        ("n_words:1.2.3/5", "no value '1.2.3/5'. Nearest"),
        ("n_words:5/6", "no value is in any of its parts"),
        ("n_phones", "has no values here: it reads a lexicon (--lexicon)."),
    ],
)
def test_keys_that_cannot_be_requested(
    swsdask: Swsdask, reference: Path, files: Files, key: str, reported: str
) -> None:
    outcome = swsdask("score", reference, files.run, "--by", key)
    assert outcome.code == 2
    assert reported in outcome.err


def test_occurrences_go_with_virtual_trials(swsdask: Swsdask, reference: Path, files: Files) -> None:
    outcome = swsdask("score", reference, files.run, "--by", "talker", "--set", "trials=document")
    assert (outcome.code, "goes with virtual trials" in outcome.err) == (2, True)


def test_a_list_whose_texts_are_ids_has_none(swsdask: Swsdask, reference: Path, files: Files) -> None:
    (files.reference / "x.kwlist.xml").write_text(
        QUERIES.replace("good morning", "K1").replace(">night", ">K2").replace(">noon", ">K3")
    )
    assert "no values here: it reads the texts" in swsdask("score", reference, files.run, "--by", "n_words").err


def test_joined_values_of_documents(reference: Path, files: Files) -> None:
    result = sws.score(sws.open(reference), "n_target", runs=files.run, by=["source_type:bnews+cts", "source_type:cts"])
    assert overall(result) == {"all": 3, "source_type=bnews+cts": 3, "source_type=cts": 1}


def test_show_lists_what_can_be_requested(swsdask: Swsdask, reference: Path, files: Files, tmp_path: Path) -> None:
    sws.ingest(tmp_path / "archive", reference, runs=files.run, lexicon=tmp_path / "lexicon.txt")
    shown = swsdask("show", tmp_path / "archive").out
    listed = shown[shown.index("  conditions (--by):\n") : shown.index("System ")].splitlines()[1:]
    assert listed == [
        "    n_phones (queries): 3, 9",
        "    oov (queries): false, true",
        "    n_words (queries): 1, 2",
        "    n_characters (queries): 4, 5, 11",
        "    n_true (queries): 1, 2-4",
        "    oov_count (queries): 0",
        "    source_type (documents): bnews, cts",
        "    document_language (documents): english",
        "    talker (occurrences): ann, bob",
        "    gender (occurrences): adult_female, adult_male",
        "    duration (occurrences): Q1:0.5, Q2:1",
    ]
    assert {line.split()[0] for line in listed} == {key.name for key in COMPUTED}


def test_for_programs_show_has_a_record_for_every_system_and_version(
    swsdask: Swsdask, reference: Path, files: Files, tmp_path: Path
) -> None:
    sws.ingest(tmp_path / "archive", reference, runs=files.run)
    (record,) = json.loads(swsdask("show", tmp_path / "archive", "--format", "json").out)
    assert record["detections"] > 0
    table = swsdask("show", tmp_path / "archive", "--versions", "--format", "csv").out.splitlines()
    assert table[0] == "version,committed,systems,added,replaced,removed,settings"
    assert table[1].startswith("1,")
    assert table[1].endswith(",1,1,0,0,0")
