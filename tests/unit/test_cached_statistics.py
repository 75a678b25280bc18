"""Cached statistics: the same bits with and without, nothing read twice, and never used where not right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.archive import cache
from swsdask.archive.cache import OF_READING, OF_RESULTS, OF_STATISTICS, source_digest
from swsdask.archive.change import ChangePolicy
from swsdask.archive.ingest import write_runs
from swsdask.archive.storage import Storage
from swsdask.archive.versions import CACHE, Layout
from swsdask.measures import MEASURES
from swsdask.measures.calibration import AffineCalibration, PavCalibration
from swsdask.measures.cross_entropy import CrossEntropy
from swsdask.measures.resampling import FAMILIES
from swsdask.model.errors import ArchiveError
from swsdask.model.hashes import hash_bytes
from swsdask.model.layers import Layers
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import RULES, Reference, Trials
from swsdask.scoring import detections
from swsdask.scoring import score as scoring
from swsdask.scoring.detections import rounds
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import from_arrow, to_arrow
from tests.archives import excerpt, queries, source, tables, words
from tests.engines import bytes_of, plain
from tests.faults.samples import rows

CASES = Path(__file__).resolve().parents[1] / "cases"


ASKED: dict[str, dict[str, Any]] = {
    "kwseval/audio-time": {},
    "kwseval/ends": {"objective": "score"},
    "kwseval/inc": {"no_targets": "false_alarms_only", "average_precision": {"ties": "document-descending"}},
    "kwseval/segments": {"trials": "segment", "average_precision": {"ties": "input", "duplicates": "first"}},
    "kwseval/threshold": {"gap": {"penalty": "gaussian"}, "average_precision": {"duplicates": "ignore"}},
    "kwseval/words": {"outside": "false_alarm", "thresholds": [0.5]},
    "stdeval/words": {"compat": "stdeval"},
    "quesst/ties": {"compat": "mediaeval", "trials": "document", "impute": "min"},
}
"""Cases of official tools, and settings under which all statistics are needed."""

OF_TERMS = {"ecf": ".ecf.xml", "rttm": ".rttm", "queries": ".tlist.xml", "run": ".stdlist.xml"}
ENDINGS = {
    "kwseval": {"ecf": "ecf.xml", "rttm": ".rttm", "queries": "kwlist.xml", "run": "kwslist.xml"},
    "stdeval": OF_TERMS,
    "quesst": OF_TERMS,
}


def ingested(folder: Path, case: str) -> Path:
    files = {name: next((CASES / case).glob(f"*{ending}")) for name, ending in ENDINGS[case.split("/")[0]].items()}
    run = str(files.pop("run"))
    sws.ingest(folder / "archive", **files, runs=run, settings={"evaluation": ASKED[case]})
    return folder / "archive"


def taken(found: sws.Result) -> dict[str, int]:
    counts: dict[str, int] = found.manifest["run"]["statistics"]
    return counts


@pytest.fixture(autouse=True)
def of_statistics_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are those of `test_cached_results`."""
    monkeypatch.setattr("swsdask.api.scoring.cached_results_of", lambda *_: None)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many files of detections were opened, and forget it."""
    opened: list[str] = []
    inner = Storage.open_parts

    def counting(self: Storage, name: str, size: int | None = None) -> Any:
        opened.append(name)
        return inner(self, name, size)

    def count() -> int:
        n = len(opened)
        opened.clear()
        return n

    monkeypatch.setattr(Storage, "open_parts", counting)
    return count


@pytest.mark.parametrize("case", ASKED)
def test_same_bits_of_official_cases_and_nothing_is_read_again(
    tmp_path: Path, case: str, unread: Callable[[], int]
) -> None:
    archive = ingested(tmp_path, case)
    without = sws.score(archive, cache=False)
    assert unread() > 0
    first = sws.score(archive)
    assert unread() > 0
    again = sws.score(archive)
    assert unread() == 0
    assert bytes_of(without) == bytes_of(first) == bytes_of(again)
    assert taken(first) == {"kept": 0, "counted": taken(again)["kept"]}
    assert taken(again)["counted"] == 0


def sample(folder: Path, *systems: tuple[str, int]) -> Path:
    """An archive of small random runs: a name and a seed each."""
    reference = tables(
        [excerpt(f"d{number}", 0, 50_000) for number in range(3)],
        queries({f"q{number}": f"w{number % 4}" for number in range(12)}),
        words([(f"w{number % 4}", 700 * number, 700 * number + 300, "lex") for number in range(50)], document="d1"),
        [("d1", 1, 0, 40_000, "s")],
    )
    sources = [source(rows(200, seed), name) for name, seed in systems]
    layout = Layout(buckets=4, rows_per_group=60, rows_per_fragment=150)
    write_runs(
        Storage(str(folder)),
        reference,
        sources,
        EvaluationSettings(),
        policy=ChangePolicy(replace=True, keep=Layers()),
        layout=layout,
    )
    return folder


def cached_files(archive: Path) -> list[Path]:
    return sorted((archive / CACHE).rglob("*.arrow"))


def test_only_what_is_new_is_counted(tmp_path: Path, unread: Callable[[], int]) -> None:
    archive = sample(tmp_path, ("a", 1), ("b", 2))
    sws.score(archive, ["atwv", "mtwv"], runs=["a"])
    unread()
    assert taken(sws.score(archive, ["atwv", "mtwv"])) == {"kept": 3, "counted": 3}
    assert unread() > 0
    assert taken(sws.score(archive, ["otwv", "mtwv"])) == {"kept": 6, "counted": 2}
    unread()
    whole = sws.score(archive)
    unread()
    other = {"average_precision": {"ties": "worst", "interpolation": "none"}}
    assert taken(sws.score(sws.open(archive, settings={"evaluation": other})))["counted"] == 0
    assert unread() == 0
    narrow = sws.open(archive, settings={"evaluation": {"tolerance_s": 0.1}})
    assert taken(sws.score(narrow))["kept"] == 0
    assert bytes_of(sws.score(narrow)) == bytes_of(sws.score(narrow, cache=False))
    assert bytes_of(sws.score(archive)) == bytes_of(whole)
    by = sws.score(archive, by="document_pattern:1")
    assert bytes_of(by) == bytes_of(sws.score(archive, by="document_pattern:1", cache=False))


def test_what_is_kept_is_listed_once_however_many_tasks_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = sample(tmp_path, *((name, number) for number, name in enumerate("abcdef")))
    monkeypatch.setattr(detections, "FEW_ROWS", 250)
    monkeypatch.setattr(scoring, "_MOST", 250)
    tasks: list[str] = []
    inner_tables, inner = scoring._tables_of, Storage.modified

    def tables(task: scoring.WholeRuns, *more: Any) -> Any:
        tasks.append(str(task))
        return inner_tables(task, *more)

    listed: list[str] = []

    def modified(self: Storage, folder: str = "") -> dict[str, float]:
        listed.append(folder)
        return inner(self, folder)

    monkeypatch.setattr(scoring, "_tables_of", tables)
    monkeypatch.setattr(Storage, "modified", modified)
    first = sws.score(archive, executor="serial")
    assert len(tasks) == 6
    assert sum(folder.startswith(CACHE) for folder in listed) == 1
    assert bytes_of(sws.score(archive, cache=False)) == bytes_of(first)
    assert taken(sws.score(archive)) == {"kept": taken(first)["counted"], "counted": 0}


OF_EVERY_SCORE = {name for family in (CrossEntropy, AffineCalibration, PavCalibration) for name in family.names}
"""Measures of the families of C_nxe: at another operating point every score has another cost."""


def test_with_another_operating_point_only_cross_entropy_and_the_bayes_threshold_read_detections(
    tmp_path: Path, unread: Callable[[], int]
) -> None:
    archive = sample(tmp_path, ("a", 1))
    scored = sws.score(archive).table
    names = scored["measure"].unique().to_pylist()
    reading = set()
    for number, name in enumerate(names):
        point = {"p_target": 1e-4, "c_miss": 2 + number, "c_fa": 1}
        other = sws.open(archive, settings={"evaluation": {"operating_point": point}})
        without = sws.score(other, [name], cache=False)
        unread()
        assert bytes_of(sws.score(other, [name])) == bytes_of(without)
        reading |= {name} if unread() else set()
    assert {"atwv", "mtwv", "otwv", "stwv", "map", "eer", "mgap"} <= {*names} - reading
    assert reading == {*names} & (OF_EVERY_SCORE | {"twv_bayes"})


DAMAGES = ["flipped", "cut off", "empty", "folder", "other"]


def damage_all(archive: Path, damage: str) -> int:
    """Damage every cache file, a folder in place of the first one only; returns how many were damaged."""
    files = cached_files(archive)
    contents = {file: file.read_bytes() for file in files}
    for number, file in enumerate(files):
        whole = contents[file]
        match damage:
            case "flipped":
                file.write_bytes(whole[: number + 7] + bytes([whole[number + 7] ^ 4]) + whole[number + 8 :])
            case "cut off":
                file.write_bytes(whole[: len(whole) // 2])
            case "empty":
                file.write_bytes(b"")
            case "folder" if number == 0:
                file.unlink()
                file.mkdir()
            case "other":
                file.write_bytes(contents[files[number - 1]])
    return 1 if damage == "folder" else len(files)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_counted_again_and_written_again(tmp_path: Path, damage: str) -> None:
    archive = sample(tmp_path, ("a", 1), ("b", 2))
    right = bytes_of(sws.score(archive))
    contents = {file: file.read_bytes() for file in cached_files(archive)}
    n_damaged = damage_all(archive, damage)
    found = sws.score(archive)
    assert bytes_of(found)[:2] == right[:2]
    assert taken(found)["counted"] == n_damaged
    if damage != "folder":
        assert {file: file.read_bytes() for file in cached_files(archive)} == contents


def test_a_file_that_is_no_statistic_is_counted_again(tmp_path: Path) -> None:
    """Its hash is right, so somebody else wrote it."""
    archive = sample(tmp_path, ("a", 1))
    right = bytes_of(sws.score(archive))
    files = cached_files(archive)
    for file in files:
        file.with_name(f"{file.name.rpartition('-')[0]}-{hash_bytes(b'no statistic').hex()}.arrow").write_bytes(
            b"no statistic"
        )
        file.unlink()
    found = sws.score(archive)
    assert bytes_of(found)[:2] == right[:2]
    assert taken(found)["counted"] == len(files)


def test_statistics_of_other_sources_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = sample(tmp_path, ("a", 1))
    sws.score(archive)
    monkeypatch.setattr("swsdask.archive.cache.source_digest", lambda packages: "0123456789abcdef")
    assert taken(sws.score(archive))["kept"] == 0
    assert taken(sws.score(archive))["counted"] == 0


def test_the_version_is_that_of_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {of: source_digest.__wrapped__(of) for of in (OF_STATISTICS, OF_RESULTS)}
    for package in OF_RESULTS:
        for file in (cache.PACKAGE / package).rglob("*.py"):
            copy = tmp_path / file.relative_to(cache.PACKAGE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    monkeypatch.setattr(cache, "PACKAGE", tmp_path)
    assert {of: source_digest.__wrapped__(of) for of in before} == before
    (tmp_path / "measures/resampling/drawn.py").write_text("other")
    assert [source_digest.__wrapped__(of) == was for of, was in before.items()] == [True, False]
    (tmp_path / "statistics/ladder.py").write_text("other")
    assert [source_digest.__wrapped__(of) == was for of, was in before.items()] == [False, False]
    monkeypatch.undo()
    monkeypatch.setattr("numpy.__version__", "0")
    assert [source_digest.__wrapped__(of) == was for of, was in before.items()] == [False, False]


def test_every_package_of_a_version_is_there() -> None:
    # The sources of one that is not would be missed without a word.
    named = {*OF_READING, *OF_RESULTS}
    assert named == {name for name in named if (cache.PACKAGE / name / "__init__.py").is_file()}


def test_rows_in_another_order_of_files_are_another_run(tmp_path: Path) -> None:
    """Some statistics look at positions."""
    folder = CASES / "quesst/ties"
    archive = ingested(tmp_path, "quesst/ties")
    first = sws.score(archive)
    text = (folder / "run.stdlist.xml").read_text()
    lists = re.findall(r"<detected_termlist.*?</detected_termlist>", text, re.DOTALL)
    begin, end = text.index(lists[0]), text.rindex(lists[-1]) + len(lists[-1])
    backwards, fewer = tmp_path / "run.stdlist.xml", tmp_path / "fewer" / "run.stdlist.xml"
    fewer.parent.mkdir()
    backwards.write_text(text[:begin] + "\n".join(reversed(lists)) + text[end:])
    fewer.write_text(text.replace(lists[0], ""))
    for run in (fewer, backwards):
        sws.ingest(archive, runs=str(run), replace=True)
    again = sws.score(archive)
    assert first.manifest["inputs"]["runs"] != again.manifest["inputs"]["runs"]
    assert taken(again)["counted"] > 0
    assert bytes_of(again) == bytes_of(sws.score(archive, cache=False))


def test_nothing_is_kept_of_runs_that_are_not_verified_nor_of_files(tmp_path: Path) -> None:
    archive = sample(tmp_path / "archive", ("a", 1))
    assert sws.score(sws.open(archive, verify=False)).manifest["run"]["statistics"] is None
    assert sws.score(archive, cache=False).manifest["run"]["statistics"] is None
    assert cached_files(archive) == []


def test_an_archive_that_cannot_be_written_is_scored_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = sample(tmp_path, ("a", 1))

    def full(self: Storage, contents: Mapping[str, bytes]) -> None:
        raise ArchiveError("No space left on device")

    right = bytes_of(sws.score(archive, cache=False))
    monkeypatch.setattr(Storage, "write_all", full)
    found = sws.score(archive)
    assert bytes_of(found)[:2] == right[:2]
    assert [note for note in found.notes if "No space left" in note]


def test_statistics_of_others_are_not_cached(tmp_path: Path) -> None:
    class Own(Counts):
        """A statistic whose version nobody knows."""

    class Family:
        names = ("own",)
        needs = (Own,)

        def values(self, scored: sws.Scored) -> Any:
            for population in scored.populations:
                yield population.overall({"own": float(scored[Own].mapped.sum())})

    archive = sample(tmp_path, ("a", 1))
    for _ in range(2):
        assert taken(sws.score(archive, Family()))["counted"] == 1
    assert cached_files(archive) == []


def test_vacuum_removes_what_is_kept_of_runs_that_no_version_holds(tmp_path: Path) -> None:
    archive = sample(tmp_path, ("a", 1), ("b", 2))
    sws.score(archive)
    needed = cached_files(archive)
    assert sws.vacuum(archive, older_than_s=0) == []
    for folder in (
        "kept/0123456789abcdef/0011",
        f"kept/{source_digest(OF_STATISTICS)}/0011",
        f"kept/{source_digest(OF_RESULTS)}/0011",
    ):
        (archive / folder).mkdir(parents=True)
        (archive / folder / "Counts-00-11.arrow").write_bytes(b"")
    assert len(sws.vacuum(archive, dry_run=True, older_than_s=0)) == 3
    assert sws.vacuum(archive) == []
    assert len(sws.vacuum(archive, older_than_s=0)) == 3
    assert cached_files(archive) == needed


def test_in_memory_store(tmp_path: Path) -> None:
    """As in any store of objects: several at a time."""
    url = f"memory://{tmp_path.name}-kept"
    reference = tables([excerpt("d", 0, 50_000)], queries({"q": "w"}), words([("w", 700, 900, "lex")]), [])
    write_runs(Storage(url), reference, [source([("q", "d", 1, 700, 200, 0.5, 1)], "a")], EvaluationSettings())
    right = sws.score(url)
    again = sws.score(url)
    assert taken(right)["kept"] == taken(again)["counted"] == 0
    assert bytes_of(right) == bytes_of(again)


KINDS = {kind for of in rounds(kind for family in (*MEASURES, *FAMILIES) for kind in family.needs) for kind in of}
SETTINGS: Sequence[Mapping[str, Any]] = (
    {},
    {"average_precision": {"ties": "document-ascending", "duplicates": "ignore", "score_floor": 0.1}},
)


def test_every_statistic_survives_arrow_and_follows_only_the_rules_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statistic is counted once more with a reference that has no other rules."""
    seen: set[type] = set()

    class Bare(Reference):
        """A reference that has only some of its rules."""

        def __getattribute__(self, name: str) -> Any:
            assert name not in {*RULES} - {*object.__getattribute__(self, "__dict__")["named"]}, f"looks at {name}"
            return object.__getattribute__(self, name)

    def bare(whole: Reference, named: Sequence[str]) -> Reference:
        made = object.__new__(Bare)
        object.__getattribute__(made, "__dict__").update(vars(whole), named=named)
        return made

    def watch(kind: type[Any]) -> None:
        inner = kind.from_trials.__func__

        def watched(cls: type[Any], trials: Trials, reference: Any, prepared: Any) -> Any:
            found = inner(cls, trials, reference, prepared)
            if cls is kind and type(reference) is Reference:
                again = inner(cls, trials, bare(reference, getattr(cls, "follows", ())), prepared)
                assert plain(again) == plain(found)
                row = to_arrow(found)
                with pa.ipc.new_stream(sink := pa.BufferOutputStream(), row.schema) as stream:
                    stream.write_batch(row)
                back = pa.ipc.open_stream(sink.getvalue()).read_next_batch()
                assert plain(from_arrow(cls, back)) == plain(found)
                seen.add(cls)
            return found

        monkeypatch.setattr(kind, "from_trials", classmethod(watched))

    for kind in KINDS:
        watch(kind)
    for case in ASKED:
        archive = ingested(tmp_path / case, case)
        for settings in SETTINGS:
            evaluation = sws.open(archive, settings={"evaluation": settings})
            sws.score(evaluation, cache=False)
            sws.score(evaluation, by="document_pattern:.", cache=False)
    wide = sample(tmp_path / "wide", ("a", 1))
    sws.score(wide, cache=False)
    sws.compare(wide, ["mtwv", "cnxe", "cnxe_min", "ap"], runs=["a"], replicates=10)
    ordered = sws.open(wide, settings={"evaluation": SETTINGS[1]})
    sws.compare(ordered, "ap", runs=["a"], replicates=10)
    judged = CASES / "trec_eval" / "ids"
    sws.ingest(tmp_path / "judged", qrels=judged / "judgments.qrels", runs=str(judged / "run.trec"), preset="trec")
    sws.score(tmp_path / "judged", cache=False)
    assert KINDS - seen == set()


def test_a_row_of_another_statistic_is_refused() -> None:
    row = pa.RecordBatch.from_pydict({"nothing": [1]})
    with pytest.raises(ValueError, match="no column mapped"):
        from_arrow(Counts, row)
