"""Faults that tests must find: each changes the meaning of one line, and names the tests that fail then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutant:
    """`new` in place of `old`, which occurs once in `file`."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        """The mutated source. Raises `ValueError` if `old` does not occur exactly once."""
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} occurs {source.count(self.old)} times in {self.file}")
        return source.replace(self.old, self.new)


DURABLE = ("tests/unit/test_archive_durability.py",)

MUTANTS = (
    Mutant(
        "failed tasks are not tried again",
        "swsdask/execution/dask.py",
        "RETRIES = 2",
        "RETRIES = 0",
        ("tests/cluster/test_dask.py", "-k", "fails_once"),
    ),
    Mutant(
        "an id as long as the one of the line before is taken for it",
        "swsdask/kernels/text.py",
        "        if word_at(one, at) != word_at(other, first):",
        "        if False:",
        ("tests/property/test_run_ordinary.py", "-k", "long_ids"),
    ),
    Mutant(
        "lost rows are committed",
        "swsdask/archive/ingest.py",
        "if written != run.rows:",
        "if written > run.rows:",
        DURABLE,
    ),
    Mutant(
        "data files are not synced",
        "swsdask/archive/storage.py",
        "                sync(path)\n",
        "",
        DURABLE,
    ),
    Mutant(
        "folders of data files are not synced",
        "swsdask/archive/storage.py",
        '                sync(path.rsplit("/", 1)[0])\n',
        "                pass\n",
        DURABLE,
    ),
    Mutant(
        "the manifest is not synced before it has its name",
        "swsdask/archive/local.py",
        "        sync(str(aside))\n        os.link(aside, path)",
        "        os.link(aside, path)",
        DURABLE,
    ),
    Mutant(
        "the folder of manifests is not synced",
        "swsdask/archive/local.py",
        "    sync(os.path.dirname(path))\n    return True",
        "    return True",
        DURABLE,
    ),
    Mutant(
        "missed targets are ordered without their channel",
        "swsdask/scoring/alignment_table.py",
        '("reference_end", "reference_start", "channel", "document", "query")',
        '("reference_end", "reference_start", "document", "query")',
        ("tests/unit/test_scoring_align.py",),
    ),
    Mutant(
        "tasks that wait are not cancelled after a failure",
        "swsdask/execution/executor.py",
        "                future.cancel()",
        "                pass",
        ("tests/unit/test_execution.py",),
    ),
    Mutant(
        "APE rejects what lies at the threshold",
        "swsdask/measures/threshold_curves.py",
        "np.searchsorted(x[order], thresholds)",
        'np.searchsorted(x[order], thresholds, "right")',
        ("tests/unit/test_measures_cross_entropy.py", "-k", "error_rates"),
    ),
    Mutant(
        "a merged minimum is a maximum",
        "swsdask/statistics/counts.py",
        "lowest=np.minimum(self.lowest, other.lowest)",
        "lowest=np.maximum(self.lowest, other.lowest)",
        ("tests/unit/test_statistics_trials.py",),
    ),
    Mutant(
        "a part of a round replaces another",
        "swsdask/scoring/rounds.py",
        "own[kind].merge(value) if kind in own else value",
        "value",
        ("tests/unit/test_scoring_rounds.py",),
    ),
    Mutant(
        "statistics of one system are merged with another's",
        "swsdask/scoring/rounds.py",
        "own = merged.get(system, {})",
        "own = next(iter(merged.values()), {})",
        ("tests/unit/test_scoring_rounds.py",),
    ),
    Mutant(
        "every statistic is counted in the first round",
        "swsdask/scoring/detections.py",
        "            waiting.extend(statistic.after)",
        "            pass",
        ("tests/unit/test_scoring_rounds.py",),
    ),
    Mutant(
        "groups never end",
        "swsdask/scoring/rounds.py",
        "if rows >= enough or len(group) == MOST_SYSTEMS:",
        "if len(group) == MOST_SYSTEMS:",
        ("tests/unit/test_scoring_plan.py",),
    ),
    Mutant(
        "an F-score of 0 and 0 is not defined",
        "swsdask/discovery/placing.py",
        "np.where(together == 0, 0.0,",
        "np.where(together == 0, np.nan,",
        ("tests/unit/test_discovery_folds.py",),
    ),
    Mutant(
        "tde2015 counts folds without coverage",
        "swsdask/discovery/measures/matching.py",
        "np.where(coverage == 0, np.nan, coverage)",
        "coverage",
        ("tests/conformance/test_discovery_whole.py",),
    ),
    Mutant(
        "the later of two equally near cuts",
        "swsdask/discovery/placing.py",
        "cuts.append(min(before, after, key",
        "cuts.append(min(after, before, key",
        ("tests/unit/test_discovery_corpus.py",),
    ),
    Mutant(
        "notes of many systems are repeated for each",
        "swsdask/model/results.py",
        "if len(who) <= FEW_SYSTEMS and not",
        "if who and not",
        ("tests/unit/test_scoring_tables.py",),
    ),
    Mutant(
        "bytes with another hash are trusted",
        "swsdask/archive/stored_tables.py",
        "hash_bytes(content).hex() != self.hash",
        "False",
        ("tests/unit/test_archive_integrity.py",),
    ),
    Mutant(
        "KWSEval does not know the oov_count of a query that a run does not list",
        "swsdask/archive/reference.py",
        'dict.fromkeys(spoken.codes.query_ids, "0") | known',
        "known",
        ("tests/conformance/test_kwseval_cases.py",),
    ),
    Mutant(
        "queries that a run does not list count",
        "swsdask/archive/reference.py",
        "queries = np.array([query in listed for query in self.codes.query_ids], bool)",
        "queries = np.ones(len(self.codes.query_ids), bool)",
        ("tests/conformance/test_kwseval_cases.py",),
    ),
    Mutant(
        "AP in the order of texts is rounded once",
        "swsdask/measures/average_precision.py",
        'addition: Addition = "running" if options.score_order == "text" else options.addition',
        "addition: Addition = options.addition",
        ("tests/conformance/test_kwseval_cases.py",),
    ),
    Mutant(
        "averages under trec_eval are rounded once",
        "swsdask/measures/average_precision.py",
        "sums_of(counted, offsets, self.addition)",
        'sums_of(counted, offsets, "exact")',
        ("tests/conformance/test_trec_eval.py",),
    ),
    Mutant(
        "sums of a topic under trec_eval are rounded once",
        "swsdask/measures/average_precision.py",
        "sums_of(ranked.hits * height, ranked.offsets, addition)",
        'sums_of(ranked.hits * height, ranked.offsets, "exact")',
        ("tests/conformance/test_trec_eval.py",),
    ),
    Mutant(
        "STDEval adds no ends up",
        "swsdask/statistics/alignment.py",
        'if rule.arithmetic == "stdeval" else end / unit',
        "if False else end / unit",
        ("tests/conformance/test_stdeval_output.py",),
    ),
    Mutant(
        "trec_eval 10 rounds recall down",
        "swsdask/measures/average_precision.py",
        "hits - int(hits) >= 0.5",
        "hits - int(hits) > 1.0",
        ("tests/conformance/test_trec_eval.py",),
    ),
    Mutant(
        "a collection that grew is another reference",
        "swsdask/archive/cache.py",
        "if role != self._grows",
        "if role",
        ("tests/unit/test_nightly.py",),
    ),
    Mutant(
        "of a local file only the time of the last change counts",
        "swsdask/places/stamps.py",
        'if "ino" in info:',
        "if False:",
        ("tests/unit/test_known_sources.py", "tests/unit/test_nightly.py"),
    ),
    Mutant(
        "files of an inbox that changed within the tick of the clock are not waited for",
        "swsdask/nightly/inbox.py",
        "time.sleep(wait)",
        "pass",
        ("tests/unit/test_nightly.py",),
    ),
    Mutant(
        "row groups of a joined file keep the places of their columns",
        "swsdask/model/parquet_files.py",
        "_add(chunk[_DETAILS][1], _PLACES_OF_DETAILS, distance)",
        "pass",
        ("tests/unit/test_parquet_files.py",),
    ),
    Mutant(
        "a row group of a joined file begins where it did",
        "swsdask/model/parquet_files.py",
        "_add(group, (_BEGIN,), distance)",
        "pass",
        ("tests/unit/test_parquet_files.py",),
    ),
    Mutant(
        "names of encoded rows keep the codes that they came with",
        "swsdask/model/parquet_files.py",
        "codes = chunk.indices.dictionary_encode()",
        "codes = pa.DictionaryArray.from_arrays(chunk.indices, np.arange(len(chunk.dictionary)))",
        ("tests/unit/test_parquet_files.py", "tests/unit/test_render_outputs.py"),
    ),
    Mutant(
        "ladders have the Bayes threshold",
        "swsdask/model/settings.py",
        "thresholds = set(settings.thresholds)",
        "asked = {*settings.thresholds, settings.operating_point.resolve(1, 10**9).bayes_threshold}",
        ("tests/unit/test_cached_statistics.py",),
    ),
    Mutant(
        "replaced entries are verified",
        "swsdask/archive/verify.py",
        "    for entry in merged_entries(run.parts.get(part, {}) for part in parts).values():\n",
        "    for entry in (entry for part in parts for entry in run.parts[part].values()):\n",
        ("tests/unit/test_archive_expiry.py",),
    ),
    Mutant(
        "a collection that grew meanwhile is overlooked",
        "swsdask/archive/change.py",
        "if self.grows is not None and on.inputs.get(self.grows) != self.base.inputs.get(self.grows):",
        "if False:",
        ("tests/unit/test_growing_collection.py",),
    ),
    Mutant(
        "a writer commits without its lease",
        "swsdask/archive/change.py",
        "        self.lease.check()\n",
        "",
        ("tests/unit/test_archive_commit.py", "-k", "lease_was_taken"),
    ),
    Mutant(
        "the loser of a race leaves its files when it is refused",
        "swsdask/archive/change.py",
        "        self.lease.may_withdraw = True\n",
        "",
        ("tests/unit/test_archive_commit.py", "-k", "another_run_of_that_name"),
    ),
    Mutant(
        "the loser of a race leaves its part of the table of runs",
        "swsdask/archive/change.py",
        "            self.storage.remove(part.file)\n",
        "            pass\n",
        ("tests/unit/test_archive_commit.py", "-k", "commits_on_top"),
    ),
    Mutant(
        "given occurrences are sought by their ids",
        "swsdask/archive/occurrences.py",
        'rule.finder == "mediaeval" and not has_tokens(queries)',
        'rule.finder == "mediaeval"',
        ("tests/unit/test_in_memory.py",),
    ),
    Mutant(
        "a folder is known by its place, whatever became of its files",
        "swsdask/archive/cache.py",
        "[*(parts_of(file) or [file]), *resource_places(file)]",
        "[file, *resource_places(file)]",
        ("tests/unit/test_run_folder.py",),
    ),
    Mutant(
        "files of one table may have other columns",
        "swsdask/formats/runs/parquet.py",
        "if columns.keys() != wanted.keys():",
        "if False:",
        ("tests/unit/test_run_folder.py",),
    ),
    Mutant(
        "files that are in a table no longer count",
        "swsdask/formats/runs/parquet.py",
        "if folder is not None and _LOG.fullmatch(file):",
        "if False:",
        ("tests/unit/test_run_folder.py",),
    ),
    Mutant(
        "a lost worker leaves an error to the next connection",
        "swsdask/execution/encryption.py",
        "        _clear()\n        raise",
        "        raise",
        ("tests/unit/test_execution_encryption.py",),
    ),
    Mutant(
        "a table in an inbox may have links",
        "swsdask/nightly/inbox.py",
        "if parts.keys() <= inside.keys():",
        "if True:",
        ("tests/unit/test_run_folder.py",),
    ),
    Mutant(
        "parts of a named run may name several systems",
        "swsdask/formats/runs/parquet.py",
        'if system is not None and "system" in proper_names(first.schema.names):',
        "if False:",
        ("tests/unit/test_run_folder.py",),
    ),
)
