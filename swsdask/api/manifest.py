"""The manifest of a result: the signature, which identifies the meaning of the numbers, and counts of dropped rows.

Content hashes depend on the content of files, not on how they are written or compressed.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from swsdask import __version__
from swsdask.archive.protocols import Archive, Run
from swsdask.execution.executor import Executor
from swsdask.model.discovery import Corpus, Discovered, DiscoverySettings, FileIntervals, Fragments, Tokens
from swsdask.model.hashes import hash_arrays
from swsdask.model.layers import Override
from swsdask.model.results import Note
from swsdask.model.safe_text import without_secrets
from swsdask.model.settings import Settings
from swsdask.model.settings_table import flat
from swsdask.model.trials import given_score

PER_QUERY = ("search_time.", "oov_count.")
"""The beginnings of the names of attributes that describe one query."""


def circumstances(
    began: float,
    executor: Executor,
    verification: str | None,
    overridden: Iterable[Override],
    notes: Mapping[str, Sequence[Note]],
) -> dict[str, object]:
    """Return the other entries of a manifest: overridden settings, notes on systems, time and place of the scoring."""
    return {
        "overridden": {each.setting: {"kept": each.kept, "used": each.used} for each in overridden},
        "notes": {system: [note.text for note in own] for system, own in notes.items() if own},
        "run": {
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "seconds": round(time.time() - began, 3),
            "executor": type(executor).__name__,
            "workers": executor.workers,
            "verification": verification,
            "python": platform.python_version(),
        },
    }


def manifest_of(
    archive: Archive, systems: Sequence[str], settings: Settings, measures: Sequence[str] | None, by: Sequence[str]
) -> dict[str, Any]:
    """Return the manifest of a result of detections."""
    runs = {run.system: run for run in archive.runs}
    meaning = _meaning(archive, {system: runs[system].content for system in systems}, settings, measures, by)
    return {
        "signature": _signature(meaning, changed_settings(settings)),
        **meaning,
        "runs": {system: _provenance(runs[system]) for system in systems},
    }


def signatures_of(
    archive: Archive, settings: Settings, measures: Sequence[str] | None, by: Sequence[str]
) -> dict[str, str]:
    """Return the signature of scoring each system alone."""
    common, chosen = _meaning(archive, {}, settings, measures, by), changed_settings(settings)
    return {
        run.system: _signature({**common, "inputs": {**archive.inputs, "runs": {run.system: run.content}}}, chosen)
        for run in archive.runs
    }


def _meaning(
    archive: Archive,
    contents: Mapping[str, str],
    settings: Settings,
    measures: Sequence[str] | None,
    by: Sequence[str],
) -> dict[str, object]:
    """Return everything that the numbers of runs with these contents depend on."""
    return {
        "swsdask": __version__,
        "measures": list(measures) if measures else "all",
        "by": list(by),
        "settings": settings.evaluation.model_dump(mode="json"),
        "inputs": {**archive.inputs, "runs": dict(contents)},
    }


def _signature(meaning: Mapping[str, object], chosen: str) -> str:
    return f"swsdask {__version__} {chosen} {_digest(meaning)}"


def _provenance(run: Run) -> dict[str, object]:
    """Describe a run and its counts, without the attributes of single queries."""
    attributes = {name: text for name, text in run.attributes.items() if not name.startswith(PER_QUERY)}
    resources = None if run.resources is None else run.resources.model_dump(mode="json", exclude_defaults=True)
    reported = asdict(replace(run, attributes=attributes, resources=None))
    reported["scores"]["run"] = tuple(map(given_score, run.scores.run))
    return {**reported, "resources": resources}


def changed_settings(settings: Settings) -> str:
    """Return the settings that are not the defaults, in one line."""
    chosen = settings.evaluation.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    point = chosen.pop("operating_point", {})
    return " ".join(f"{name}={value}" for name, value in (*flat(chosen), *point.items())) or "defaults"


def _digest(meaning: Mapping[str, object]) -> str:
    """Return the hash that ends a signature: equal for results that mean the same."""
    return xxhash.xxh3_64_hexdigest(json.dumps(meaning, sort_keys=True, allow_nan=False).encode())


def discovery_provenance(url: str, fragments: Fragments, discovered: Discovered, corpus: Corpus) -> dict[str, object]:
    """Return the file of a system, the hash of its content, and the counts of its fragments."""
    return {
        "files": [without_secrets(url)],
        "content": fragments_content(fragments, corpus),
        "classes": len(discovered.classes),
        "rows": len(fragments),
        "members": len(discovered.member_cluster),
        "fragments": len(discovered),
        "dropped": dict(discovered.dropped),
        "clipped": discovered.clipped,
    }


def discovery_manifest(
    corpus: Corpus,
    settings: DiscoverySettings,
    measures: list[str] | None,
    runs: Mapping[str, Mapping[str, object]],
    phones: str,
) -> dict[str, object]:
    """Return the manifest of a result of term discovery; `phones` is the name of the file of phones."""
    meaning = {
        "kind": "discovery",
        "swsdask": __version__,
        "definition": corpus.definition,
        "settings": settings.listed(),
        "measures": measures or "all",
        "inputs": {**corpus_content(corpus), "runs": {system: run["content"] for system, run in runs.items()}},
    }
    folds = "" if corpus.definition == "tdev2" else f" folds={len(corpus.folds[0].names)}"
    chosen = "".join(
        f" {name}={value}"
        for name, value in settings.model_dump(exclude={"definition", "n_folds"}, exclude_defaults=True).items()
    )
    return {
        "signature": f"swsdask {__version__} discover definition={corpus.definition}{chosen}{folds} {_digest(meaning)}",
        **meaning,
        "corpus": {
            "name": phones.partition(".")[0],
            "files": len(corpus.files),
            "phones": len(corpus.phones),
            "words": len(corpus.words),
        },
        "folds": {
            folds.condition: {"names": list(folds.names), "stretches": len(folds.stretches)} for folds in corpus.folds
        },
        "runs": {system: dict(run) for system, run in runs.items()},
    }


def corpus_content(corpus: Corpus) -> dict[str, str]:
    """Return the content hash of the phones, the words, the stretches of speech, if any, and each set of folds."""
    hashes = {"phones": _tokens(corpus.phones, corpus), "words": _tokens(corpus.words, corpus)}
    if corpus.speech is not None:
        hashes["split"] = hash_arrays(corpus.files, _columns(corpus.speech))
    for folds in corpus.folds:
        hashes[f"folds of {folds.condition}"] = hash_arrays((corpus.files, folds.names), _columns(folds.stretches))
    return hashes


def fragments_content(fragments: Fragments, corpus: Corpus) -> str:
    """Return the content hash of the fragments of one system."""
    columns = (fragments.cluster, fragments.file, fragments.start, fragments.end)
    return hash_arrays((corpus.files, fragments.classes), columns)


def _tokens(tokens: Tokens, corpus: Corpus) -> str:
    return hash_arrays((corpus.files, tokens.labels), (tokens.file, tokens.start, tokens.end, tokens.label))


def _columns(stretches: FileIntervals) -> tuple[NDArray[np.generic], ...]:
    return stretches.file, stretches.start, stretches.end, stretches.fold
