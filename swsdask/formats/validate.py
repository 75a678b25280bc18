"""Check files as scoring would read them, and report every problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from swsdask.formats.discovery.corpus import CHECKS, CorpusFiles, roles
from swsdask.formats.files import noted
from swsdask.formats.find import is_glob, matching, runs_in
from swsdask.formats.reference.ecf import read_ecf
from swsdask.formats.reference.files import (
    ReferenceFiles,
    files_in,
    find_reference,
    kind_by_content,
    reference_candidates,
)
from swsdask.formats.reference.queries import read_queries, spoken_encoding
from swsdask.formats.reference.rttm import read_rttm
from swsdask.formats.reference.trec import read_judgments
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.resources import find_resources, read_resources
from swsdask.formats.sniff import RUNS, Format, sniff
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.resources import Phase, Resources
from swsdask.model.settings import EvaluationSettings
from swsdask.places.reading import is_folder

MOST_PROBLEMS = 1_000_000
_DEFAULTS = EvaluationSettings()


@dataclass(frozen=True)
class CheckedFile:
    """A file, its format (None if it is not recognised), and the counts of its contents, in the order of printing."""

    file: str
    format: Format | None
    counts: dict[str, int]


@dataclass(frozen=True)
class Report:
    """What `validate` found. `total` counts all problems, `problems` are the first `MOST_PROBLEMS` of them."""

    files: tuple[CheckedFile, ...]
    problems: tuple[Problem, ...]
    total: int


def validate(
    urls: Iterable[str],
    reference: ReferenceFiles | None = None,
    corpus: CorpusFiles | None = None,
    settings: EvaluationSettings = _DEFAULTS,
) -> Report:
    """Check files of any format; in a folder, its reference, or else its runs and its files of term discovery.

    The files of `reference`, or of a reference among the folders, are checked first. If they have no problems, the
    queries and documents of a run must be in the reference: each unknown one is a problem at its first line, unless the
    `settings` let it be, and is counted then. Each file of `corpus` must have the format of its role. The resources of
    a run are checked with it. Raises nothing for bad input.
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
    known = _known(reference, settings) if reference else None
    checked = [_check(file, role, known, problems) for file, role in files.items()]
    beside = find_resources([each.file for each in checked if each.format in RUNS], problems)
    others = [file for file in dict.fromkeys(beside.values()) if file not in files]
    checked += [_check(file, Format.RESOURCES, known, problems) for file in others]
    return Report(tuple(checked), tuple(problems), len(problems))


def _only_reference(urls: Iterable[str]) -> ReferenceFiles | None:
    """The reference of the only folder in `urls` that has one; None for none, several or one with problems."""
    try:
        (folder,) = [url for url in urls if is_folder(url) and any(reference_candidates(url).values())]
        return find_reference(folder)
    except (ValueError, InputError):
        return None


def _files_of(url: str, problems: Problems) -> dict[str, Format | None]:
    if is_glob(url):
        found = matching(url)
        if not found:
            problems.add(url, None, "a glob that matches some files", "none", "Check the path.")
        return {file: role for each in found for file, role in _files_of(each, problems).items()}
    if not is_folder(url):
        return {url: None}
    if any(reference_candidates(url).values()):
        return _roles(find_reference(url))
    before = len(problems)
    files = [*(file for file in files_in(url) if kind_by_content(file) in CHECKS), *runs_in(url, problems)]
    if not files and len(problems) == before:
        problems.add(
            url, None, "a folder that holds a reference, runs or files of term discovery", "none", "Check the path."
        )
    return dict.fromkeys(files)


class _Known(NamedTuple):
    """The ids of a reference, the encoding of its text, and what is to become of unknown ids."""

    queries: frozenset[str]
    documents: frozenset[str]
    encoding: str
    settings: EvaluationSettings


def _known(reference: ReferenceFiles, settings: EvaluationSettings) -> _Known | None:
    """The ids of a reference; None if it has problems, since unknown ids cannot be determined then."""
    problems = Problems()
    queries = read_queries(reference.queries, problems)
    documents = read_ecf(reference.ecf, problems)["document"].to_pylist()
    if problems:
        return None
    spoken = spoken_encoding(queries, reference.queries, reference.rttm)
    return _Known(frozenset(queries["query"].to_pylist()), frozenset(documents), spoken, settings)


def _roles(reference: ReferenceFiles) -> dict[str, Format | None]:
    return {reference.ecf: Format.ECF, reference.rttm: Format.RTTM, reference.queries: Format.QUERIES}


def _check(file: str, role: Format | None, known: _Known | None, problems: Problems) -> CheckedFile:
    """Check a file in the format of its `role` or, without one, in the format that it has."""
    found, counts = role, {}
    with noted(problems):
        found = role or sniff(file)
        match found:
            case Format.ECF:
                counts = _check_ecf(file, problems)
            case Format.RTTM:
                counts = _check_rttm(file, known, problems)
            case Format.QUERIES:
                counts = _check_queries(file, problems)
            case Format.RESOURCES:
                counts = _check_resources(file, problems)
            case Format.QRELS:
                counts = _check_judgments(file, problems)
            case _ if found in CHECKS:
                counts = CHECKS[found](file, problems)
            case _:
                counts = _check_run(file, known, problems)
    return CheckedFile(file, found, counts)


def _check_ecf(file: str, problems: Problems) -> dict[str, int]:
    excerpts = read_ecf(file, problems)
    documents = len(excerpts["document"].unique())
    return {"excerpts": len(excerpts), "documents": documents, "rounded times": _counted(excerpts, "rounded")}


def _check_rttm(file: str, known: _Known | None, problems: Problems) -> dict[str, int]:
    words, segments = read_rttm(file, problems, known.encoding if known else "utf-8")
    documents = words["document"].value_counts().to_pylist()
    repeated = _counted(words, "repeated") + _counted(segments, "repeated")
    outside = sum(each["counts"] for each in documents if known and each["values"] not in known.documents)
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
    told = read_resources(file, problems) or Resources()
    phases = sum(phase != Phase() for phase in (told.indexing, told.searching))
    return {"phases": phases, "types of nodes": len(told.hardware)}


def _check_judgments(file: str, problems: Problems) -> dict[str, int]:
    judged = read_judgments(file, problems)
    counts = {"queries": len(judged.queries), "documents": len(judged.documents)}
    return counts | {"relevant pairs": len(judged.relevant)}


def _check_run(file: str, known: _Known | None, problems: Problems) -> dict[str, int]:
    rows = rounded = 0
    systems: set[str] = set()
    queries: dict[str, int | None] = {}
    documents: dict[str, int | None] = {}
    with noted(problems):
        for piece in read_run(file, problems):
            rows += len(piece)
            rounded += piece.rounded
            systems.add(piece.header.system)
            for name, line in zip(piece.queries, piece.query_lines, strict=True):
                queries.setdefault(name, line)
            for name, line in zip(piece.documents, piece.document_lines, strict=True):
                documents.setdefault(name, line)
    unknown = _unknown(file, queries, documents, known, problems) if known else {}
    return {
        "rows": rows,
        "systems": len(systems),
        "queries": len(queries),
        "documents": len(documents),
        "rounded times": rounded,
        **unknown,
    }


def _unknown(
    file: str, queries: dict[str, int | None], documents: dict[str, int | None], known: _Known, problems: Problems
) -> dict[str, int]:
    """Add a problem for each unknown id that the settings call an error; the counts of the others."""
    counts = {}
    if known.settings.unknown_queries == "error":
        _note_unknown(file, "query", queries, known.queries, problems)
    elif others := len(queries.keys() - known.queries):
        counts["unknown queries"] = others
    if known.settings.unknown_documents == "error":
        _note_unknown(file, "document", documents, known.documents, problems)
    elif others := len(documents.keys() - known.documents):
        counts["unknown documents"] = others
    return counts


def _note_unknown(
    file: str, what: str, found: dict[str, int | None], known: frozenset[str], problems: Problems
) -> None:
    remedy = f"Correct it, or use the reference that has this {what}."
    for name, line in found.items():
        if name not in known:
            problems.add(file, line, f"a {what} of the reference", f"{name!r}", remedy)


def _counted(table: pa.Table, what: str) -> int:
    return int(table.schema.metadata.get(what.encode(), 0))
