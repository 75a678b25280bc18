"""Evaluations of document trials in official files, and MediaEval's list of trials gone through literally."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Given = tuple[str, str, float, bool]
"""A trial of a run: query, document, score, decision."""


@dataclass(frozen=True)
class World:
    """What was spoken where, and a run in the order of its file."""

    documents: tuple[str, ...]
    queries: tuple[str, ...]
    targets: frozenset[tuple[str, str]]
    run: tuple[Given, ...]

    def write(self, folder: Path) -> Path:
        """Write the reference's three files and run.stdlist.xml, one list for each stretch of a query."""
        folder.mkdir(exist_ok=True)
        excerpts = (f'<excerpt audio_filename="{d}.wav" channel="1" tbeg="0" dur="10"/>' for d in self.documents)
        (folder / "t.ecf.xml").write_text("<ecf>\n" + "\n".join(excerpts) + "\n</ecf>\n")
        terms = (f'<term termid="{q}"><termtext>{q}</termtext></term>' for q in self.queries)
        (folder / "t.tlist.xml").write_text("<termlist>\n" + "\n".join(terms) + "\n</termlist>\n")
        words = (f"LEXEME {d} 1 0 10 {q} lex SELF <NA>\n" for q, d in sorted(self.targets))
        (folder / "t.rttm").write_text("".join(words) or "LEXEME none 1 0 10 none lex SELF <NA>\n")
        lines = ['<stdlist system_id="S">']
        for query, document, score, decision in self.run:
            said = f'score="{score!r}" decision="{"YES" if decision else "NO"}"'
            row = f'<term file="{document}" channel="1" tbeg="0" dur="10" {said}/>'
            lines += [f'<detected_termlist termid="{query}">', row, "</detected_termlist>"]
        path = folder / "run.stdlist.xml"
        path.write_text("\n".join([*lines, "</stdlist>"]) + "\n")
        return path


def ascending(scores: Sequence[float]) -> list[int]:
    """The places of scores in the order of Java's Double.compare, equal ones as they come."""
    return sorted(range(len(scores)), key=lambda at: (scores[at], math.copysign(1.0, scores[at])))


@dataclass(frozen=True)
class Literal:
    """The tool's numbers, trial by trial, for some queries and documents of a world."""

    beta: float
    target: np.ndarray
    score: np.ndarray
    query: np.ndarray
    accepted: np.ndarray
    n_given: int

    @classmethod
    def of(cls, world: World, impute: float, beta: float, queries: Sequence[str], documents: Sequence[str]) -> Literal:
        """The list of trials in the order of the file, missing ones behind, query by query."""
        queries = [q for q in queries if any((q, d) in world.targets for d in documents)]
        given = [each for each in world.run if each[0] in queries and each[1] in documents]
        n_given = len(given)
        there = {(q, d) for q, d, *_ in given}
        given += [(q, d, impute, False) for q in queries for d in documents if (q, d) not in there]
        target = np.array([(q, d) in world.targets for q, d, *_ in given])
        score, query = np.array([s for _, _, s, _ in given]), np.array([queries.index(q) for q, *_ in given])
        return cls(beta, target, score, query, np.array([accepted for *_, accepted in given]), n_given)

    @property
    def prior(self) -> float:
        return 1.0 / (1.0 + self.beta)

    def minimum(self) -> float:
        """C_nxe after PAV of the whole list."""
        return self._cnxe(self._llr(np.arange(len(self.score))))

    def query_minimum(self) -> float:
        """C_nxe after PAV of each query's list."""
        llr = np.zeros(len(self.score))
        for query in np.unique(self.query):
            own = np.flatnonzero(self.query == query)
            llr[own] = self._llr(own)
        return self._cnxe(llr)

    def _llr(self, trials: np.ndarray) -> np.ndarray:
        order = ascending(self.score[trials])
        blocks: list[list[float]] = []
        for value in self.target[trials][order].tolist():
            blocks.append([float(value), 1.0])
            while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
                value_above, weight = blocks.pop()
                blocks[-1][0] += value_above
                blocks[-1][1] += weight
        pav = np.concatenate([np.full(int(weight), total / weight) for total, weight in blocks])
        llr = np.empty(len(trials))
        with np.errstate(divide="ignore"):
            llr[order] = np.log(pav) - np.log1p(-pav)
        share = self.target.mean()
        return llr - (math.log(share) - math.log1p(-share))

    def _cnxe(self, llr: np.ndarray) -> float:
        odds = llr - math.log(self.beta)
        p = self.prior
        cost = p * np.logaddexp(0, -odds[self.target]).mean() + (1 - p) * np.logaddexp(0, odds[~self.target]).mean()
        return float(cost / -(p * math.log(p) + (1 - p) * math.log(1 - p)))

    def twv(self, accepted: np.ndarray) -> float:
        """TWV of decisions."""
        misses, alarms = [], []
        for query in np.unique(self.query):
            own = self.query == query
            misses.append((~accepted & self.target & own).sum() / (self.target & own).sum())
            if (~self.target & own).any():
                alarms.append((accepted & ~self.target & own).sum() / (~self.target & own).sum())
        return float(1 - np.mean(misses) - self.beta * (np.mean(alarms) if alarms else np.nan))

    def maximum(self) -> tuple[float, float]:
        """The highest TWV of one threshold, and the largest score that it rejects."""
        rejected = [-math.inf, *np.unique(self.score)]
        values = [self.twv(self.score > score) for score in rejected]
        best = int(np.argmax(np.array(values) >= max(values) - 1e-12))
        return values[best], float(rejected[best])

    def query_offset(self) -> float:
        """TWV where each query's list is cut in two where that is best for it."""
        accepted = np.zeros(len(self.score), bool)
        for query in np.unique(self.query):
            own = np.flatnonzero(self.query == query)
            order = own[ascending(self.score[own])]
            target = self.target[order]
            n_target, n_nontarget = target.sum(), max((~target).sum(), 1)
            losses = [
                target[:cut].sum() / n_target + self.beta * (~target[cut:]).sum() / n_nontarget
                for cut in range(len(order) + 1)
            ]
            accepted[order[int(np.argmin(losses)) :]] = True
        return self.twv(accepted)
