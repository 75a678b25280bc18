"""A slow, literal scorer: rows in, every number out, in plain Python with exact fractions.

It shares no code with the product: each function is a sentence of the definition of a measure, written down without a
thought for speed. Times are ticks (0.1 ms).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

NAN = math.nan


@dataclass(frozen=True)
class Excerpt:
    document: str
    channel: int
    start: int
    end: int
    source_type: str


@dataclass(frozen=True)
class Word:
    document: str
    channel: int
    speaker: str
    start: int
    end: int
    text: str
    subtype: str = "lex"


@dataclass(frozen=True)
class Turn:
    """A SPEAKER record."""

    document: str
    channel: int
    start: int
    end: int


@dataclass(frozen=True)
class Query:
    name: str
    text: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Detection:
    query: str
    document: str
    channel: int
    start: int
    end: int
    score: float
    decision: bool | None


@dataclass(frozen=True)
class Occurrence:
    query: str
    document: str
    channel: int
    start: int
    end: int
    first: Word
    last: Word


@dataclass(frozen=True)
class Trial:
    """A trial the system scored; `hit` says whether it is mapped to a target."""

    query: str
    document: str
    score: float
    decision: bool | None
    hit: bool


@dataclass(frozen=True)
class Evaluation:
    excerpts: Sequence[Excerpt]
    words: Sequence[Word]
    turns: Sequence[Turn]
    queries: Sequence[Query]
    lowercase: bool
    detections: Sequence[Detection]
    has_decisions: bool
    declared: tuple[float, float] | None = None


@dataclass(frozen=True)
class Rules:
    """The settings, every one of them explicit: times in ticks, beta exact (None: Eq. 18)."""

    trials: str = "virtual"
    trials_per_second: Fraction = Fraction(1)
    tolerance: int = 5000
    find_gap: int = 5000
    compat: str = "none"
    outside: str = "drop"
    no_targets: str = "exclude"
    score_scale: str = "group"
    objective: str = "nist"
    costs: tuple[Fraction, Fraction, Fraction] | None = None
    alpha: Fraction = Fraction(1)
    thresholds: tuple[float, ...] = ()
    by: tuple[tuple[str, ...], ...] = ()


# --- what was spoken


def occurrences(evaluation: Evaluation, rules: Rules) -> list[Occurrence]:
    """Every place where a query's words follow each other, evaluated or not."""
    lines: dict[tuple[str, int, str], list[Word]] = defaultdict(list)
    tool = rules.compat in ("kwseval", "stdeval")
    for word in evaluation.words if tool else dict.fromkeys(evaluation.words):
        lines[word.document, word.channel, word.speaker].append(word)
    found = []
    for query in evaluation.queries:
        for line in lines.values():
            places = {"kwseval": _kwseval_places, "stdeval": _stdeval_places}.get(rules.compat, _places)
            for said in places(line, query.text.split(), evaluation.lowercase, rules.find_gap):
                first, last = said[0], said[-1]
                found.append(Occurrence(query.name, first.document, first.channel, first.start, last.end, first, last))
    return found


def _places(line: Sequence[Word], wanted: Sequence[str], lowercase: bool, gap: int) -> Iterator[Sequence[Word]]:
    line = sorted(line, key=lambda word: word.start)
    texts = [_folded(text, lowercase) for text in wanted]
    for at, first in enumerate(line):
        said = line[at : at + len(wanted)]
        if (
            [_folded(word.text, lowercase) for word in said] == texts
            and first.subtype not in ("frag", "fp")
            and all(b.start - a.end <= gap for a, b in pairwise(said))
        ):
            yield said


def _kwseval_places(line: Sequence[Word], wanted: Sequence[str], lowercase: bool, gap: int) -> Iterator[Sequence[Word]]:
    in_time = sorted(range(len(line)), key=lambda place: line[place].start)
    for at, first in enumerate(line):
        if _folded(first.text, lowercase) != _folded(wanted[0], lowercase) or first.subtype in ("frag", "fp"):
            continue
        places = [at]
        for text in wanted[1:]:
            if places[-1] + 1 == len(line):
                break
            following = in_time[places[-1] + 1]
            if line[following].start - line[places[-1]].end > gap or line[following].text.lower() != text.lower():
                break
            places.append(following)
        if len(places) == len(wanted):
            yield [line[place] for place in places]


def _stdeval_places(line: Sequence[Word], wanted: Sequence[str], lowercase: bool, gap: int) -> Iterator[Sequence[Word]]:
    said: list[Word] = []
    at = 0
    while at < len(line):
        matches = line[at].text.encode().lower() == wanted[len(said)].encode().lower()
        if matches and said and line[at].start - said[-1].end > gap:
            said, at = [], at + 1
        elif matches:
            said, at = [*said, line[at]], at + 1
            if len(said) == len(wanted):
                yield said
                said = []
        elif said:
            said = []
        else:
            at += 1


def _folded(text: str, lowercase: bool) -> str:
    return text.lower() if lowercase else text


def _inside(document: str, channel: int, start: int, end: int, excerpts: Iterable[Excerpt]) -> bool:
    return any(e.document == document and e.channel == channel and e.start <= start and end <= e.end for e in excerpts)


def _inside_in_doubles(d: Detection | Occurrence, excerpts: Iterable[Excerpt], compat: str) -> bool:
    """STDEval adds up the ends of excerpts, too."""
    here = [e for e in excerpts if (e.document, e.channel) == (d.document, d.channel)]
    ends = [_added_up(e) if compat == "stdeval" else e.end / 10_000 for e in here]
    return any(e.start <= d.start and _added_up(d) <= end for e, end in zip(here, ends, strict=True))


def _added_up(stretch: Detection | Occurrence | Excerpt) -> float:
    return stretch.start / 10_000 + (stretch.end - stretch.start) / 10_000


def evaluated(evaluation: Evaluation, rules: Rules) -> list[Occurrence]:
    """The occurrences that count."""
    every = occurrences(evaluation, rules)
    if rules.compat == "stdeval" and rules.outside == "false_alarm":
        return every
    if rules.compat == "stdeval":
        return [o for o in every if _inside_in_doubles(o, evaluation.excerpts, "stdeval")]
    return [o for o in every if _inside(o.document, o.channel, o.first.start, o.first.end, evaluation.excerpts)]


# --- how many trials


def audio_ticks(excerpts: Sequence[Excerpt]) -> Fraction:
    """T of the excerpts of some documents, as this package defines it."""
    total = Fraction(0)
    for document in sorted({e.document for e in excerpts}):
        mine = [e for e in excerpts if e.document == document]
        edges = sorted({edge for e in mine for edge in (e.start, e.end)})
        for begin, end in pairwise(edges):
            shares = [_share(e) for e in mine if e.start <= begin and end <= e.end]
            total += (end - begin) * max(shares, default=Fraction(0))
    return total


def kwseval_seconds(excerpts: Sequence[Excerpt]) -> float:
    """T in doubles: every excerpt up to the next one's start."""
    total = 0.0
    for document in dict.fromkeys(e.document for e in excerpts):
        mine = sorted((e for e in excerpts if e.document == document), key=lambda e: (e.start, e.end))
        for e, after in zip(mine, [*mine[1:], None], strict=True):
            end = e.end if after is None else min(e.end, after.start)
            total += (end / 10_000 - e.start / 10_000) * float(_share(e))
    return total


def stdeval_seconds(excerpts: Sequence[Excerpt]) -> float:
    """T in doubles: the excerpts of channel 1."""
    total = 0.0
    for e in excerpts:
        if e.channel == 1:
            total += (e.end - e.start) / 10_000
    return total


def _share(excerpt: Excerpt) -> Fraction:
    return Fraction(1, 2) if excerpt.source_type == "splitcts" else Fraction(1)


TURNS_OF = "s1"
"""Who speaks in all SPEAKER records."""


@dataclass(frozen=True)
class Segment:
    document: str
    channel: int
    start: int
    end: int


def segments(evaluation: Evaluation) -> list[Segment]:
    """Speech and what lies between, of every excerpt; excerpts that overlap are one."""
    made = []
    for e in _united(evaluation.excerpts):
        inside = sorted(
            (max(t.start, e.start), min(t.end, e.end))
            for t in evaluation.turns
            if (t.document, t.channel) == (e.document, e.channel) and t.start < e.end and t.end > e.start
        )
        speech: list[list[int]] = []
        for start, end in inside:
            if speech and start < speech[-1][1]:
                speech[-1][1] = max(speech[-1][1], end)
            else:
                speech.append([start, end])
        at = e.start
        for start, end in [*speech, [e.end, e.end]]:
            if at < start:
                made.append(Segment(e.document, e.channel, at, start))
            if start < end:
                made.append(Segment(e.document, e.channel, start, end))
            at = end
    return made


def _united(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    made: list[Excerpt] = []
    for e in sorted(excerpts, key=lambda e: (e.document, e.channel, e.start)):
        before = made[-1] if made else None
        if before and (before.document, before.channel) == (e.document, e.channel) and e.start < before.end:
            made[-1] = replace(before, end=max(before.end, e.end))
        else:
            made.append(e)
    return made


def kwseval_segments(evaluation: Evaluation) -> tuple[list[Segment], dict[Word, Segment]]:
    """The segments of KWSEval, excerpt by excerpt, and that of each word that it gives one."""
    made: list[Segment] = []
    of_word: dict[Word, int] = {}
    for e in evaluation.excerpts:
        first = len(made)
        turns = [t for t in evaluation.turns if (t.document, t.channel) == (e.document, e.channel)]
        for t in sorted(turns, key=lambda t: t.start):
            if t.start < e.start or t.end > e.end:
                continue
            at = made[-1].end if len(made) > first else e.start
            if at < t.start:
                made.append(Segment(e.document, e.channel, at, t.start))
            if at <= t.start:
                made.append(Segment(e.document, e.channel, t.start, t.end))
            else:
                made[-1] = replace(made[-1], end=max(at, t.end))
            for w in evaluation.words:
                own = (w.document, w.channel, w.speaker) == (e.document, e.channel, TURNS_OF)
                if own and made[-1].start <= w.start and w.end <= made[-1].end:
                    of_word[w] = len(made) - 1
        at = made[-1].end if len(made) > first else e.start
        if at < e.end:
            made.append(Segment(e.document, e.channel, at, e.end))
    return made, {word: made[number] for word, number in of_word.items()}


def segment_at(evaluation: Evaluation, document: str, channel: int, start: int, end: int) -> Segment | None:
    """The segment that holds a mid-point: on a boundary the later one."""
    holding = [
        s
        for s in segments(evaluation)
        if (s.document, s.channel) == (document, channel) and 2 * s.start <= start + end <= 2 * s.end
    ]
    return max(holding, key=lambda s: s.start, default=None)


# --- alignment


@dataclass
class Aligned:
    trials: list[Trial]
    targets: dict[tuple[str, str], int]
    """Targets of a query in a document."""


def align(evaluation: Evaluation, rules: Rules) -> Aligned:
    known = {query.name for query in evaluation.queries}
    detections = [d for d in evaluation.detections if d.query in known]
    spoken = evaluated(evaluation, rules)
    if rules.trials == "segment" and rules.compat == "kwseval":
        return Aligned(*_kwseval_segment(evaluation, detections, spoken))
    if rules.outside == "drop":
        detections = [d for d in detections if _inside(d.document, d.channel, d.start, d.end, evaluation.excerpts)]
    if rules.outside == "drop" and rules.compat in ("kwseval", "stdeval"):
        detections = [d for d in detections if _inside_in_doubles(d, evaluation.excerpts, rules.compat)]
    if rules.trials == "virtual":
        return Aligned(*_virtual(evaluation, detections, spoken, rules))
    if rules.trials == "segment":
        return Aligned(*_segment(evaluation, detections, spoken))
    known_documents = {e.document for e in evaluation.excerpts}
    return Aligned(
        *_document(
            [d for d in detections if d.document in known_documents],
            [o for o in spoken if o.document in known_documents],
        )
    )


def _virtual(
    evaluation: Evaluation, detections: Sequence[Detection], spoken: Sequence[Occurrence], rules: Rules
) -> tuple[list[Trial], dict[tuple[str, str], int]]:
    targets: dict[tuple[str, str], int] = defaultdict(int)
    for o in spoken:
        targets[o.query, o.document] += 1
    groups: dict[tuple[str, str, int], list[Detection]] = defaultdict(list)
    for d in detections:
        groups[d.query, d.document, d.channel].append(d)
    run = [d.score for d in evaluation.detections]
    trials = []
    for key, group in groups.items():
        group.sort(key=lambda d: (d.start + d.end, d.start, -d.score, d.decision is not True))
        mine = [o for o in spoken if (o.query, o.document, o.channel) == key]
        scores = run if rules.score_scale == "run" else [d.score for d in group]
        lo, hi = evaluation.declared or (min(scores), max(scores))
        mapped = best_mapping(mine, group, rules, lo, hi)
        for number, d in enumerate(group):
            trials.append(Trial(d.query, d.document, d.score, d.decision, number in mapped))
    return trials, targets


def congruence(o: Occurrence, d: Detection, rules: Rules, lo: float, hi: float) -> Fraction:
    """What a pair adds to the objective, beside 1."""
    spread = max(_decimal(hi) - _decimal(lo), Fraction(1, 100_000))
    score = (_decimal(d.score) - _decimal(lo)) / spread
    length = max(Fraction(o.end - o.start, 10_000), Fraction(1, 100_000))
    time = Fraction(min(d.end, o.end) - max(d.start, o.start), 10_000) / length
    if rules.objective == "score":
        return score
    return score / 10**6 + time / 10**8


def _decimal(score: float) -> Fraction:
    """The score as a file says it, so that what ties there is a tie."""
    return Fraction(repr(score))


def best_mapping(
    spoken: Sequence[Occurrence], group: Sequence[Detection], rules: Rules, lo: float, hi: float
) -> frozenset[int]:
    """The detections mapped by the best one-to-one mapping, of all there are; of equals the earliest detections."""
    pairs = [
        [
            (number, congruence(o, d, rules, lo, hi))
            for number, d in enumerate(group)
            if 2 * (o.start - rules.tolerance) <= d.start + d.end <= 2 * (o.end + rules.tolerance)
        ]
        for o in spoken
    ]
    best: dict[int, Fraction] = {0: Fraction(0)}
    for choices in pairs:
        after = dict(best)
        for used, gained in best.items():
            for number, gain in choices:
                if not used >> number & 1:
                    now = used | 1 << number
                    after[now] = max(after.get(now, gained + gain), gained + gain)
        best = after
    sets = [(-used.bit_count(), -gained, _members(used)) for used, gained in best.items()]
    return frozenset(min(sets)[2])


def _members(used: int) -> tuple[int, ...]:
    return tuple(number for number in range(used.bit_length()) if used >> number & 1)


def _best(detections: Iterable[Detection]) -> Detection:
    """The detection a trial is scored by."""
    return min(detections, key=lambda d: (-d.score, d.start, -d.end, d.channel, d.decision is not True))


def _segment(
    evaluation: Evaluation, detections: Sequence[Detection], spoken: Sequence[Occurrence]
) -> tuple[list[Trial], dict[tuple[str, str], int]]:
    held: dict[tuple[str, Segment], list[Detection]] = defaultdict(list)
    for d in detections:
        segment = segment_at(evaluation, d.document, d.channel, d.start, d.end)
        if segment:
            held[d.query, segment].append(d)
    wanted = set()
    for o in spoken:
        first = segment_at(evaluation, o.document, o.channel, o.first.start, o.first.end)
        last = segment_at(evaluation, o.document, o.channel, o.last.start, o.last.end)
        if first and first == last:
            wanted.add((o.query, first))
    return _of_segments(held, wanted)


def _kwseval_segment(
    evaluation: Evaluation, detections: Sequence[Detection], spoken: Sequence[Occurrence]
) -> tuple[list[Trial], dict[tuple[str, str], int]]:
    made, of_word = kwseval_segments(evaluation)
    wanted = {
        (o.query, of_word[o.first]) for o in spoken if o.first in of_word and of_word.get(o.last) == of_word[o.first]
    }

    def holding(d: Detection) -> list[Segment]:
        middle = d.start / 10_000 + (d.end - d.start) / 10_000 / 2
        there = [s for s in made if (s.document, s.channel) == (d.document, d.channel)]
        return [s for s in there if s.start / 10_000 <= middle <= s.end / 10_000]

    first: dict[tuple[str, Segment], list[Detection]] = defaultdict(list)
    for d in detections:
        for segment in holding(d)[:1]:
            first[d.query, segment].append(d)
    held: dict[tuple[str, Segment], list[Detection]] = defaultdict(list)
    for (query, _), group in first.items():
        best = _best(group)
        targets = [segment for segment in holding(best) if (query, segment) in wanted]
        for segment in targets or holding(best)[:1]:
            held[query, segment].append(best)
    return _of_segments(held, wanted)


def _of_segments(
    held: dict[tuple[str, Segment], list[Detection]], wanted: set[tuple[str, Segment]]
) -> tuple[list[Trial], dict[tuple[str, str], int]]:
    targets: dict[tuple[str, str], int] = defaultdict(int)
    for query, segment in wanted:
        targets[query, segment.document] += 1
    trials = []
    for (query, segment), group in held.items():
        best = _best(group)
        trials.append(Trial(query, segment.document, best.score, best.decision, (query, segment) in wanted))
    return trials, targets


def _document(
    detections: Sequence[Detection], spoken: Sequence[Occurrence]
) -> tuple[list[Trial], dict[tuple[str, str], int]]:
    targets = dict.fromkeys(((o.query, o.document) for o in spoken), 1)
    groups: dict[tuple[str, str], list[Detection]] = defaultdict(list)
    for d in detections:
        groups[d.query, d.document].append(d)
    trials = []
    for (query, document), group in groups.items():
        best = _best(group)
        trials.append(Trial(query, document, best.score, best.decision, (query, document) in targets))
    return trials, targets


# --- conditions


@dataclass(frozen=True)
class Condition:
    name: str
    queries: tuple[str, ...]
    documents: frozenset[str] | None
    """None: all, known or not."""
    n_trials: int


def conditions(evaluation: Evaluation, rules: Rules) -> Iterator[Condition]:
    source_types = {e.document: e.source_type for e in evaluation.excerpts}
    names = tuple(query.name for query in evaluation.queries)
    yield Condition("all", names, None, _n_trials(evaluation, rules, set(source_types)))
    for keys in rules.by:
        parts: dict[tuple[str, ...], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for query in evaluation.queries:
            for document, source_type in source_types.items():
                known = {**query.attributes, "source_type": source_type}
                if all(key in known for key in keys):
                    some_queries, some_documents = parts[tuple(known[key] for key in keys)]
                    some_queries.add(query.name)
                    some_documents.add(document)
        for values, (some_queries, some_documents) in parts.items():
            name = "&".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
            documents = frozenset(some_documents) if "source_type" in keys else None
            n = _n_trials(evaluation, rules, some_documents)
            yield Condition(name, tuple(q for q in names if q in some_queries), documents, n)


def _n_trials(evaluation: Evaluation, rules: Rules, documents: set[str]) -> int:
    """N, the trials of one query."""
    if rules.trials == "document":
        return len(documents)
    if rules.trials == "segment":
        made = kwseval_segments(evaluation)[0] if rules.compat == "kwseval" else segments(evaluation)
        return sum(s.document in documents for s in made)
    mine = [e for e in evaluation.excerpts if e.document in documents]
    if rules.compat == "kwseval":
        return round(kwseval_seconds(mine) / float(rules.trials_per_second))
    if rules.compat == "stdeval":
        return round(float(rules.trials_per_second) * stdeval_seconds(mine))
    return round(rules.trials_per_second * audio_ticks(mine) / 10_000)


# --- measures


def score(evaluation: Evaluation, rules: Rules) -> dict[tuple[str, str | None, str], float]:
    """Every number, by condition, query (None: over all) and measure."""
    aligned = align(evaluation, rules)
    made: dict[tuple[str, str | None, str], float] = {}
    beta: Fraction | None = None
    for condition in conditions(evaluation, rules):
        if beta is None:
            costs = rules.costs or eq_18(sum(aligned.targets.values()), condition.n_trials, rules.alpha)
            p, c_miss, c_fa = costs
            beta = c_fa * (1 - p) / (c_miss * p)
        part = Part(aligned, condition, rules, costs, evaluation.has_decisions or not aligned.trials)
        for name, value in part.overall().items():
            made[condition.name, None, name] = float(value)
        for query in part.queries:
            for name, value in part.of_query(query).items():
                made[condition.name, query, name] = float(value)
    return made


def eq_18(n_true: int, n_trials: int, alpha: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """P_target, C_miss and C_fa from the data: beta = (N - N_true) / (alpha N_true)."""
    return Fraction(n_true, n_trials), Fraction(1), 1 / alpha


class Part:
    """The numbers of one condition."""

    def __init__(
        self,
        aligned: Aligned,
        condition: Condition,
        rules: Rules,
        costs: tuple[Fraction, Fraction, Fraction],
        has_decisions: bool,
    ) -> None:
        self.rules, self.has_decisions = rules, has_decisions
        self.p_target, self.c_miss, self.c_fa = costs
        self.beta = self.c_fa * (1 - self.p_target) / (self.c_miss * self.p_target)
        self.n_act = {
            query: sum(
                n for (q, document), n in aligned.targets.items() if q == query and self._there(document, condition)
            )
            for query in condition.queries
        }
        keep_all = rules.no_targets == "false_alarms_only"
        there = [t for t in aligned.trials if self._there(t.document, condition)]
        asked = condition.queries
        if keep_all and rules.compat == "kwseval":
            somewhere = {q for (q, _), n in aligned.targets.items() if n} | {t.query for t in aligned.trials}
            here = {query for query in asked if self.n_act[query] > 0} | {t.query for t in there}
            asked = tuple(query for query in asked if query in here or query not in somewhere)
        self.queries = [query for query in asked if keep_all or self.n_act[query] > 0]
        self.with_targets = [query for query in self.queries if self.n_act[query] > 0]
        self.n_trials = condition.n_trials
        self.n_nt = {query: condition.n_trials - self.n_act[query] for query in self.queries}
        self.with_nontargets = [query for query in self.queries if self.n_nt[query] > 0]
        self.everything = [t for t in there if t.query in condition.queries]
        self.trials = [t for t in there if t.query in self.queries]
        self.candidates = sorted({t.score for t in self.trials})

    @staticmethod
    def _there(document: str, condition: Condition) -> bool:
        return condition.documents is None or document in condition.documents

    # rates

    def n_hit(self, query: str, accepted: Sequence[Trial]) -> int:
        return sum(t.hit for t in accepted if t.query == query)

    def n_fa(self, query: str, accepted: Sequence[Trial]) -> int:
        return sum(not t.hit for t in accepted if t.query == query)

    def p_miss(self, query: str, accepted: Sequence[Trial]) -> Fraction | float:
        n = self.n_act[query]
        return 1 - Fraction(self.n_hit(query, accepted), n) if n > 0 else NAN

    def p_fa(self, query: str, accepted: Sequence[Trial]) -> Fraction | float:
        n = self.n_nt[query]
        return Fraction(self.n_fa(query, accepted), n) if n > 0 else NAN

    def rates(self, accepted: Sequence[Trial]) -> tuple[Fraction | float, Fraction | float]:
        return (
            _mean([self.p_miss(query, accepted) for query in self.with_targets]),
            _mean([self.p_fa(query, accepted) for query in self.with_nontargets]),
        )

    def above(self, threshold: float, query: str | None = None) -> list[Trial]:
        return [t for t in self.trials if t.score >= threshold and query in (None, t.query)]

    def twv(self, accepted: Sequence[Trial]) -> Fraction | float:
        return self._twv(*self.rates(accepted))

    def _twv(self, p_miss: Fraction | float, p_fa: Fraction | float) -> Fraction | float:
        """Eq. 6; not defined where a rate is not."""
        if isinstance(p_miss, float) or isinstance(p_fa, float):
            return NAN
        return 1 - (p_miss + self.beta * p_fa)

    # over all

    def overall(self) -> dict[str, Any]:
        yes = [t for t in self.trials if t.decision]
        made: dict[str, Any] = {"n_queries": len(self.queries), "beta": self.beta}
        made["effective_prior"] = 1 / (1 + self.beta)
        made["bayes_threshold"] = math.log(self.beta)
        made["c_default"] = min(self.c_miss * self.p_target, self.c_fa * (1 - self.p_target))
        made |= self._counts(self.queries, self.trials)
        made |= self._actual(yes)
        if self.rules.compat in ("kwseval", "stdeval"):
            made["occurrence_weighted_value"] = self._counts(self.queries, self.everything)["occurrence_weighted_value"]
        made |= self._maximum()
        made |= self._optimum()
        unmapped = self.rates([t for t in self.trials if t.hit])
        made["stwv_p_miss"], made["stwv"] = unmapped[0], 1 - unmapped[0]
        if self.rules.compat == "kwseval" and not self.trials:
            made |= dict.fromkeys(("otwv", "otwv_p_miss", "otwv_p_fa", "stwv", "stwv_p_miss"), NAN)
        made["twv_bayes"] = self.twv(self.above(made["bayes_threshold"]))
        for threshold in self.rules.thresholds:
            made[f"twv@{threshold!r}"] = self.twv(self.above(threshold))
        return made

    def _counts(self, queries: Sequence[str], trials: Sequence[Trial]) -> dict[str, Any]:
        n_target = sum(self.n_act[query] for query in queries)
        made: dict[str, Any] = {
            "n_target": n_target,
            "n_detections": len(trials),
            "n_nontarget": sum(not t.hit for t in trials),
        }
        n_hit = sum(t.hit for t in trials if t.decision)
        n_fa = sum(not t.hit for t in trials if t.decision)
        decided = {
            "n_hit": n_hit,
            "n_miss": n_target - n_hit,
            "n_false_alarm": n_fa,
            "n_correct_nondetection": sum(not t.hit for t in trials if not t.decision),
            "occurrence_weighted_value": (n_hit - self.c_fa / self.c_miss * n_fa) / n_target if n_target else NAN,
        }
        return made | (decided if self.has_decisions else dict.fromkeys(decided, NAN))

    def _actual(self, yes: Sequence[Trial]) -> dict[str, Any]:
        names = ("p_miss", "p_fa", "p_miss_pooled", "p_fa_pooled", "atwv", "actual_threshold", "c_det", "c_norm")
        if not self.has_decisions:
            return dict.fromkeys(names, NAN)
        made: dict[str, Any] = dict.fromkeys(names, NAN)
        every = self.everything if self.rules.compat == "kwseval" else self.trials
        made["actual_threshold"] = _explained(every)
        if self.rules.compat == "kwseval" and every and not any(t.decision for t in every):
            made["actual_threshold"] = max(t.score for t in every)
        n_target = sum(self.n_act[query] for query in self.queries)
        like_nist = self.rules.compat in ("kwseval", "stdeval")
        n_nt = (1 if like_nist else len(self.queries)) * self.n_trials - n_target
        if n_target:
            made["p_miss_pooled"] = 1 - Fraction(sum(t.hit for t in yes), n_target)
        if n_nt > 0 or (n_nt < 0 and like_nist):
            counted = self.everything if like_nist else self.trials
            made["p_fa_pooled"] = Fraction(sum(not t.hit for t in counted if t.decision), n_nt)
        p_miss, p_fa = self.rates(yes)
        made["p_miss"], made["p_fa"], made["atwv"] = p_miss, p_fa, self.twv(yes)
        made["c_det"] = self.c_miss * self.p_target * p_miss + self.c_fa * (1 - self.p_target) * p_fa
        made["c_norm"] = made["c_det"] / min(self.c_miss * self.p_target, self.c_fa * (1 - self.p_target))
        return made

    def _thresholds(self, *queries: str) -> list[float]:
        """Where the TWV of some queries is tried: every score, and what accepts nothing.

        Where a false alarm costs nothing, for want of non-target trials, only the scores of hits are.
        """
        scores = self.candidates
        if any(self.n_nt[query] <= 0 for query in queries):
            scores = sorted({t.score for t in self.trials if t.hit and t.query in queries})
        if self.rules.compat == "kwseval" and self.candidates:
            return sorted({*scores, self.candidates[-1]})
        return [*scores, math.inf]

    def _maximum(self) -> dict[str, Any]:
        names = ("mtwv", "mtwv_threshold", "mtwv_rejected_threshold", "mtwv_p_miss", "mtwv_p_fa")
        like_kwseval = self.rules.compat == "kwseval"
        if not self.with_nontargets or not (self.with_targets or like_kwseval):
            return dict.fromkeys(names, NAN)
        thresholds = self._thresholds(*self.queries)
        if self.with_targets:
            best = min(thresholds, key=lambda threshold: (-self.twv(self.above(threshold)), threshold))
        else:
            best = min(self.candidates, default=math.inf)
        rates = self.rates(self.above(best))
        rejected = max((score for score in self.candidates if score < best), default=-math.inf)
        printed = best
        if best == math.inf and (like_kwseval or self.rules.compat == "stdeval"):
            printed = max(self.candidates, default=NAN)
        return dict(zip(names, (self.twv(self.above(best)), printed, rejected, *rates), strict=True))

    def _optimum(self) -> dict[str, Any]:
        names = ("otwv", "otwv_p_miss", "otwv_p_fa")
        chosen: list[Trial] = []
        for query in self.queries:
            chosen += self.above(self._optimum_threshold(query), query)
        rates = self.rates(chosen)
        return dict(zip(names, (self.twv(chosen), *rates), strict=True))

    # of a query

    def _loss(self, query: str, accepted: Sequence[Trial]) -> Fraction | float:
        """What the query adds to P_miss + beta P_fa: a rate that it does not have adds nothing."""
        p_miss, p_fa = self.p_miss(query, accepted), self.p_fa(query, accepted)
        return (p_miss if self.n_act[query] > 0 else 0) + self.beta * (p_fa if self.n_nt[query] > 0 else 0)

    def _optimum_threshold(self, query: str) -> float:
        """The smallest score of the query that its best threshold accepts."""
        best = min(self._thresholds(query), key=lambda at: (self._loss(query, self.above(at, query)), at))
        return min((t.score for t in self.above(best, query)), default=math.inf)

    def _printed_threshold(self, query: str, best: Sequence[Trial]) -> float:
        """The threshold of a query's optimum: KWSEval's sweep and lists, or the query's own."""
        if self.rules.compat != "kwseval" or not self.candidates:
            return self._optimum_threshold(query)
        at = min(score for score in self.candidates if self.above(score, query) == best)
        n_rejected = sum(t.hit and t.query == query for t in self.trials) - sum(t.hit for t in best)
        found = []
        for hit, number in ((True, n_rejected), (False, sum(not t.hit for t in best))):
            scores = sorted(t.score for t in self.trials if t.query == query and t.hit == hit)
            found += scores[number : number + 1]
        if not found and at < 0:
            return NAN
        return min(found) if len(found) == 2 and min(found) > at else max([*found, at])

    def of_query(self, query: str) -> dict[str, Any]:
        mine = [t for t in self.trials if t.query == query]
        yes = [t for t in mine if t.decision]
        made = self._counts([query], mine)
        best = self.above(self._optimum_threshold(query), query)
        made["otwv_threshold"] = self._printed_threshold(query, best)
        made["otwv_p_miss"], made["otwv_p_fa"] = self.p_miss(query, best), self.p_fa(query, best)
        made["otwv"] = self._twv(made["otwv_p_miss"], made["otwv_p_fa"])
        made |= dict.fromkeys(("p_miss", "p_fa", "atwv", "actual_threshold"), NAN)
        if self.has_decisions:
            made["p_miss"], made["p_fa"] = self.p_miss(query, yes), self.p_fa(query, yes)
            made["atwv"], made["actual_threshold"] = self._twv(made["p_miss"], made["p_fa"]), _explained(mine)
        mapped = [t for t in mine if t.hit]
        made["stwv_p_miss"] = self.p_miss(query, mapped)
        made["stwv"] = 1 - made["stwv_p_miss"]
        if math.isnan(made["otwv_threshold"]):
            made |= dict.fromkeys(("otwv", "otwv_p_miss", "otwv_p_fa"), NAN)
        if self.rules.compat == "kwseval" and not self.trials:
            made |= dict.fromkeys(("otwv", "otwv_p_miss", "otwv_p_fa", "otwv_threshold", "stwv", "stwv_p_miss"), NAN)
        return made


def _mean(values: Sequence[Any]) -> Fraction | float:
    return sum(values, Fraction(0)) / len(values) if values else NAN


def _explained(trials: Sequence[Trial]) -> Fraction | float:
    """The threshold that the decisions follow, if there is one."""
    yes = [t.score for t in trials if t.decision]
    no = [t.score for t in trials if not t.decision]
    if not yes:
        return NAN
    if not no:
        return min(yes)
    return (Fraction(min(yes)) + Fraction(max(no))) / 2 if min(yes) >= max(no) else NAN
