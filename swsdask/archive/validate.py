"""Check files as scoring would read them, and report every problem."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdask.archive.encode import Codes, FileOrder, Tally, encode_piece
from swsdask.archive.fragments import concatenate, in_order
from swsdask.archive.reference_files import read_reference
from swsdask.execution.executor import Executor, Progress, SerialExecutor, or_unseen
from swsdask.formats.discovery import CHECKS, CorpusFiles, roles
from swsdask.formats.files import noted
from swsdask.formats.find import (
    ReferenceFiles,
    files_in,
    find_reference,
    find_resources,
    is_glob,
    matching,
    reference_candidates,
    runs_in,
    tables_in,
)
from swsdask.formats.recognise import RUNS, TABLES, AnyFormat, Format, format_by_content, reference_table_format, sniff
from swsdask.formats.reference.nist_xml import read_ecf, read_queries, spoken_encoding
from swsdask.formats.reference.rttm import read_rttm
from swsdask.formats.reference.table import (
    holds_judgments_alone,
    read_documents,
    read_judgments,
    read_occurrences,
    read_query_table,
)
from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.lines import CTM, has_scores
from swsdask.formats.runs.read import RunFile
from swsdask.formats.runs.resources import read_resources
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.resources import Phase, Resources
from swsdask.model.schemas import WORDS, RunPiece
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections
from swsdask.model.wording import counted
from swsdask.places.reading import Pipe, is_folder

MOST_PROBLEMS = 1_000_000
_OF_TABLES = (Format.DOCUMENTS, Format.OCCURRENCES, Format.QUERY_TABLE)
_DEFAULTS = EvaluationSettings()


@dataclass(frozen=True)
class CheckedFile:
    """A file, its format (None if not recognised), and the counts of its contents, in the order of output."""

    file: str
    format: AnyFormat | None
    counts: dict[str, int]


@dataclass(frozen=True)
class Report:
    """The findings of `validate`. `total` counts all problems, `problems` are the first `MOST_PROBLEMS` of them."""

    files: tuple[CheckedFile, ...]
    problems: tuple[Problem, ...]
    total: int


def validate(
    urls: Iterable[str],
    reference: ReferenceFiles | None = None,
    corpus: CorpusFiles | None = None,
    settings: EvaluationSettings = _DEFAULTS,
    executor: Executor | None = None,
    encoding: Encoding = PLAIN,
    progress: Progress | None = None,
) -> Report:
    """Check files of any format. In a folder, check its reference, or otherwise its runs and files of term discovery.

    The files of `reference`, or of a reference among the folders, are checked first. If they have no problems, runs are
    checked against it as in scoring under `settings`: unknown queries and documents, detections outside the excerpts,
    and trials that a run has twice are problems, unless the settings allow them; then unknown ids are counted.
    `encoding` has the units of tables of runs. Each file of `corpus` must have the format of its role. The resources of
    a run are checked with it. Each file is a task of the `executor`; None: this process checks them. `progress`
    receives the number of files done. Bad input raises nothing.
    """
    urls = list(urls)
    reference = reference or _only_reference(urls)
    problems = Problems(MOST_PROBLEMS)
    files = _roles(reference) if reference else {}
    files.update(roles(corpus) if corpus else {})
    for url in urls:
        with noted(problems):
            for file, role in _files_of(url, problems).items():
                files.setdefault(file, role)
    rules = _Rules(encoding, _read_known_ids(reference, settings) if reference else None)
    checked = []
    executor = executor or SerialExecutor()
    executor.check([file for file in files if os.path.exists(file) and not isinstance(file, Pipe)])
    shown = or_unseen(progress)
    shown.begin("checking", len(files))
    for each, own in executor.map(
        _check_alone,
        files.items(),
        executor.share(rules),
        label=_file_of,
        done=lambda _: shown.advance(1),
        name="check",
    ):
        checked.append(each)
        problems.extend(own)
    beside = find_resources([each.file for each in checked if each.format in RUNS], problems)
    others = [file for file in dict.fromkeys(beside.values()) if file not in files]
    checked += [_check(file, Format.RESOURCES, rules, problems) for file in others]
    return Report(tuple(checked), tuple(problems), len(problems))


def _only_reference(urls: Iterable[str]) -> ReferenceFiles | None:
    """Return the reference of the only folder in `urls` that has one; None for none, several or one with problems."""
    try:
        (folder,) = [url for url in urls if is_folder(url) and _holds_reference(url)]
        return find_reference(folder)
    except (ValueError, InputError):
        return None


def _holds_reference(folder: str) -> bool:
    return any(reference_candidates(folder).values()) or bool(tables_in(files_in(folder)))


def _files_of(url: str, problems: Problems) -> dict[str, Format | None]:
    if is_glob(url):
        found = matching(url)
        if not found:
            problems.add(url, None, "a glob that matches some files", "none", "Check the path.")
        return {file: role for each in found for file, role in _files_of(each, problems).items()}
    if not is_folder(url):
        return {url: None}
    if _holds_reference(url):
        return _roles(find_reference(url))
    before = len(problems)
    files = [*(file for file in files_in(url) if format_by_content(file) in CHECKS), *runs_in(url, problems)]
    if not files and len(problems) == before:
        problems.add(
            url, None, "a folder that holds a reference, runs or files of term discovery", "none", "Check the path."
        )
    return dict.fromkeys(files)


class _Known(NamedTuple):
    """The rules for runs that follow from a reference and the settings, and the encoding of its text."""

    codes: Codes
    encoding: str
    settings: EvaluationSettings


class _Rules(NamedTuple):
    """The encoding of runs, and the rules for them; None without a reference."""

    encoding: Encoding
    known: _Known | None


def _read_known_ids(reference: ReferenceFiles, settings: EvaluationSettings) -> _Known | None:
    """Return the ids that a reference defines; None if it has problems, since unknown ids cannot be determined then."""
    problems = Problems()
    if reference.tables or reference.queries is None:
        with noted(problems):
            tables = read_reference(reference)
            return _Known(Codes.of(tables.documents, tables.queries, tables.words), "utf-8", settings)
        return None
    queries = read_queries(reference.queries, problems)
    documents = read_ecf(reference.ecf, problems)
    if problems:
        return None
    spoken = spoken_encoding(queries, reference.queries, reference.rttm)
    return _Known(Codes.of(documents, queries, WORDS.empty_table()), spoken, settings)


def _roles(reference: ReferenceFiles) -> dict[str, Format | None]:
    kinds = _OF_TABLES if reference.tables else (Format.ECF, Format.RTTM, Format.QUERIES)
    files = (reference.ecf, reference.rttm, reference.queries)
    return {file: kind for file, kind in zip(files, kinds, strict=True) if file is not None}


def _file_of(item: tuple[str, Format | None]) -> str:
    return item[0]


def _check_alone(item: tuple[str, Format | None], rules: _Rules) -> tuple[CheckedFile, Problems]:
    """Check a file, given with its role, and return its problems too."""
    problems = Problems(MOST_PROBLEMS)
    return _check(*item, rules, problems), problems


def _check(file: str, role: Format | None, rules: _Rules, problems: Problems) -> CheckedFile:
    """Check a file in the format of its `role` or, without one, in the format that it has."""
    found: AnyFormat | None = role
    counts: dict[str, int] = {}
    with noted(problems):
        found = role or _format_alone(file)
        match found:
            case Format.ECF:
                counts = _of_excerpts(read_ecf(file, problems))
            case Format.RTTM:
                counts = _check_rttm(file, rules.known, problems)
            case Format.QUERIES:
                counts = _check_queries(file, problems)
            case Format.DOCUMENTS:
                counts = _of_excerpts(read_documents(file, problems))
            case Format.OCCURRENCES:
                queries, words, _ = read_occurrences(file, None, problems)
                counts = {
                    "occurrences": len(words),
                    "queries": len(queries),
                    "rounded times": _counted(words, "rounded"),
                }
            case Format.QUERY_TABLE:
                counts = {"queries": len(read_query_table(file, problems))}
            case Format.RESOURCES:
                counts = _check_resources(file, problems)
            case Format.QRELS:
                counts = _check_judgments(file, problems)
            case _ if found in CHECKS:
                counts = CHECKS[found](file, problems)
            case _:
                counts = _check_run(RunFile(file, encoding=rules.encoding), rules.known, problems)
    return CheckedFile(file, found, counts)


def _format_alone(file: str) -> AnyFormat:
    """Return the format of a file that is given without a role.

    Tables of a reference are recognised by name. Judgments in a table have no scores, nor has a CTM of a reference.
    """
    found = sniff(file)
    if found in TABLES:
        return reference_table_format(file) or (Format.QRELS if holds_judgments_alone(file, found) else found)
    return Format.RTTM if found is CTM and not has_scores(file) else found


def _of_excerpts(excerpts: pa.Table) -> dict[str, int]:
    documents = len(excerpts["document"].unique())
    return {"excerpts": len(excerpts), "documents": documents, "rounded times": _counted(excerpts, "rounded")}


def _check_rttm(file: str, known: _Known | None, problems: Problems) -> dict[str, int]:
    words, segments = read_rttm(file, problems, known.encoding if known else "utf-8")
    documents = words["document"].value_counts().to_pylist()
    repeated = _counted(words, "repeated") + _counted(segments, "repeated")
    evaluated = {*known.codes.document_ids} if known else set()
    outside = sum(each["counts"] for each in documents if known and each["values"] not in evaluated)
    return {
        "words": len(words),
        "segments": len(segments),
        "rounded times": _counted(words, "rounded") + _counted(segments, "rounded"),
        "records of other types": _counted(words, "skipped"),
        **({"repeated records": repeated} if repeated else {}),
        "words in documents that are not evaluated": outside,
    }


def _check_queries(file: str, problems: Problems) -> dict[str, int]:
    return {"queries": len(read_queries(file, problems))}


def _check_resources(file: str, problems: Problems) -> dict[str, int]:
    reported = read_resources(file, problems) or Resources()
    phases = sum(phase != Phase() for phase in (reported.indexing, reported.searching))
    return {"phases": phases, "types of nodes": len(reported.hardware)}


def _check_judgments(file: str, problems: Problems) -> dict[str, int]:
    judged = read_judgments(file, problems)
    counts = {"queries": len(judged.queries), "documents": len(judged.documents)}
    return counts | {"relevant pairs": len(judged.relevant)}


def _check_run(run: RunFile, known: _Known | None, problems: Problems) -> dict[str, int]:
    rows = rounded = 0
    systems, queries, documents = set[str](), set[str](), set[str]()
    against = _AgainstReference(run, known) if known else None
    with noted(problems):
        for piece in against.read(problems) if against else run.read(problems):
            rows += len(piece)
            rounded += piece.rounded
            systems.add(piece.header.system)
            queries.update(piece.queries)
            documents.update(piece.documents)
    return {
        "rows": rows,
        "systems": len(systems),
        "queries": len(queries),
        "documents": len(documents),
        "rounded times": rounded,
        **(against.finish(problems) if against else {}),
    }


@dataclass(eq=False)
class _Seen:
    """The tally of one system's rows, the rows if they are needed, and the position of the first one outside."""

    tally: Tally | None = None
    rows: list[Detections] = field(default_factory=list)
    first_outside: int | None = None


class _AgainstReference:
    """Checks a file of runs against a reference, as scoring would."""

    def __init__(self, run: RunFile, known: _Known) -> None:
        self.codes, self.settings = known.codes, known.settings
        self.order = FileOrder((run,), known.codes, once=known.settings.compat == "mediaeval")
        self.seen: dict[str, _Seen] = {}

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        """Yield the pieces of the file, each counted."""
        for piece in self.order.read(0, problems):
            rows, tally = encode_piece(piece, self.codes)
            seen = self.seen.setdefault(piece.header.system, _Seen())
            seen.tally = seen.tally + tally if seen.tally else tally
            if self.order.once:
                seen.rows.append(rows)
            assert rows.inside is not None
            assert rows.position is not None
            if seen.first_outside is None and tally.outside:
                seen.first_outside = int(rows.position[np.argmin(rows.inside != 0)])
            yield piece

    def finish(self, problems: Problems) -> dict[str, int]:
        """Add what the settings make problems, and return the counts of unknown ids that they allow."""
        counts = {"unknown queries": 0, "unknown documents": 0}
        for system, seen in self.seen.items():
            assert seen.tally is not None
            seen.tally.note_faults(self.settings, problems)
            if seen.first_outside is not None and self.settings.outside == "error":
                self._note_outside(system, seen.tally.outside, seen.first_outside, problems)
            if self.settings.unknown_queries != "error":
                counts["unknown queries"] += len(seen.tally.unknown_queries)
            if self.settings.unknown_documents != "error":
                counts["unknown documents"] += len(seen.tally.unknown_documents)
            if seen.rows:
                with noted(problems):
                    self.order.check_once(system, in_order(concatenate(seen.rows)))
        return {name: count for name, count in counts.items() if count}

    def _note_outside(self, system: str, rows: int, first: int, problems: Problems) -> None:
        found = f"{counted(rows, 'detections')} outside them, the first one here"
        remedy = "Take them out, or set outside=drop or outside=false_alarm."
        where = self.order.place_of(system, first)
        problems.add(*where, "only detections inside evaluated excerpts", found, remedy)


def _counted(table: pa.Table, what: str) -> int:
    return int(table.schema.metadata.get(what.encode(), 0))
