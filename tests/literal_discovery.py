"""Literal oracles for placing fragments and for coverage, token, type and boundary: sets, loops and the formulas.

They take the rows of a world (`tests.discovery_worlds`) and look at every phone, word, stretch and pair. Only the folds
are those of the corpus that was built. Times are ticks, and doubles where an official tool computes in them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from swsdask.model.discovery import Corpus, Definition, FileIntervals, Folds, Readings
from tests.discovery_worlds import Stretch, Token, World

Labels = tuple[str, ...]
Numbers = dict[str, list[float]]


def s(ticks: int) -> float:
    """Seconds."""
    return ticks / 10_000


def shared(a: Stretch | Token, b: Stretch | Token) -> int:
    """The ticks that both last."""
    return min(a[2], b[2]) - max(a[1], b[1]) if a[0] == b[0] else 0


def near(a: Stretch | Token, b: Stretch | Token) -> bool:
    """The predicate of tde."""
    if a[0] != b[0] or a[2] < b[1] or b[2] < a[1]:
        return False
    ov = min(s(a[2]), s(b[2])) - max(s(a[1]), s(b[1]))
    if abs(ov) <= 1e-8:
        return False
    return ov > 0.03 or ov > 0.5 * (s(a[2]) - s(a[1])) or ov > 0.5 * (s(b[2]) - s(b[1]))


def overlap(a: Stretch, b: Stretch) -> bool:
    """Two fragments share more than half of the shorter one."""
    return shared(a, b) * 2 > min(a[2] - a[1], b[2] - b[1])


def segments_of(tokens: list[Token]) -> list[list[Token]]:
    """Runs of tokens of which each starts where the one before ends."""
    segments: list[list[Token]] = []
    for token in tokens:
        if segments and segments[-1][-1][0] == token[0] and segments[-1][-1][2] == token[1]:
            segments[-1].append(token)
        else:
            segments.append([token])
    return segments


def looked_up(fragment: Stretch, segments: list[list[Token]]) -> list[Token] | None:
    """What tde finds near a fragment in the one segment that it looks at; None if that is none."""
    found = None
    for segment in segments:
        whole = (segment[0][0], segment[0][1], segment[-1][2])
        if whole[0] == fragment[0] and (whole[1] <= fragment[1] or near(whole, fragment)):
            found = segment
    if found is None or shared((found[0][0], found[0][1], found[-1][2]), fragment) <= 0:
        return None
    return [token for token in found if near(token, fragment)]


def kept_by_tdev2(fragment: Stretch, phone: Token) -> bool:
    """Whether tdev2 keeps a phone at the edge of a fragment."""
    ov = min(s(fragment[2]), s(phone[2])) - max(s(fragment[1]), s(phone[1]))
    if round(s(phone[2]) - s(phone[1]), 3) >= 0.060:
        return bool(np.round(np.float64(ov), 3) >= 0.030)
    return ov / (s(phone[2]) - s(phone[1])) >= 0.5


def transcribed(fragment: Stretch, phones: list[Token], definition: Definition) -> list[Token] | None:
    """The phones of a fragment; None where the definition drops it."""
    if definition == "tde2015":
        return looked_up(fragment, segments_of(phones))
    touched = [phone for phone in phones if shared(phone, fragment) > 0]
    if definition == "document":
        return [p for p in touched if shared(p, fragment) > 300 or 2 * shared(p, fragment) > p[2] - p[1]]
    ends = [place for place in {0, len(touched) - 1} if touched and not kept_by_tdev2(fragment, touched[place])]
    return [phone for place, phone in enumerate(touched) if place not in ends] or None


def clipped(fragment: Stretch, speech: list[Stretch]) -> Stretch | None:
    """A fragment cut to speech as tde does; None where it is outside."""
    if any(x[0] == fragment[0] and x[1] <= fragment[1] and fragment[2] <= x[2] for x in speech):
        return fragment
    some = [x for x in speech if shared(x, fragment) > 0]
    if not some:
        return None
    best = max(some, key=lambda x: min(s(x[2]), s(fragment[2])) - max(s(x[1]), s(fragment[1])))
    return fragment[0], max(best[1], fragment[1]), min(best[2], fragment[2])


def fold_of(stretch: Stretch | Token, folds: Folds, files: tuple[str, ...]) -> int | None:
    """The fold one of whose stretches a stretch of time is entirely inside."""
    parts: FileIntervals = folds.stretches
    for file, start, end, fold in zip(parts.file, parts.start, parts.end, parts.fold, strict=True):
        if files[file] == stretch[0] and start <= stretch[1] and stretch[2] <= end:
            return int(fold)
    return None


@dataclass
class Placed:
    """A world under a definition: members of classes as placed, the phones of each fragment, what was dropped."""

    members: list[tuple[int, Stretch]]
    phones: dict[Stretch, list[Token]]
    dropped: dict[str, int]


def placed(world: World, corpus: Corpus) -> Placed:
    """Every fragment of a world, one by one."""
    phones = sorted(world.phones)
    found = Placed([], {}, defaultdict(int))
    unplaced = {"tde2015": "outside the segments of phones", "tdev2": "without phones"}
    for cluster, (_, fragments) in enumerate(world.classes):
        for fragment in fragments:
            cut = fragment if corpus.speech is None else clipped(fragment, world.split)
            if cut is None:
                found.dropped["outside speech"] += 1
                continue
            own = transcribed(cut, phones, corpus.definition)
            if own is None:
                found.dropped[unplaced[corpus.definition]] += 1
                continue
            found.members.append((cluster, cut))
            found.phones[cut] = own
    return found


def labels(phones: list[Token]) -> Labels:
    """The transcription."""
    return tuple(phone[3] for phone in phones)


def numbers(world: World, corpus: Corpus, fold_set: int) -> Numbers:
    """Every number per fold of one set."""
    found, folds = placed(world, corpus), corpus.folds[fold_set]
    words = sorted(w for w in world.words if corpus.definition != "tdev2" or w[3] != "SIL")
    made: Numbers = defaultdict(list)
    for fold in range(len(folds.names)):

        def inside(stretch: Stretch | Token, fold: int = fold) -> bool:
            return fold_of(stretch, folds, corpus.files) == fold

        members = [(cluster, fragment) for cluster, fragment in found.members if inside(fragment)]
        fragments = {fragment: found.phones[fragment] for _, fragment in members}
        spoken = [word for word in words if inside(word)]
        gold = [gram for gram in grams(world, corpus) if inside((gram[0][0], gram[0][1], gram[-1][2]))]
        of = {"document": of_document, "tde2015": of_tde, "tdev2": of_tdev2}[corpus.definition]
        for name, value in of(members, fragments, spoken, gold, sorted(world.phones), corpus.readings).items():
            made[name].append(value)
    return made


def grams(world: World, corpus: Corpus) -> list[list[Token]]:
    """F_all: runs of 3 to 20 phones without a gap; tde2015: those only that occur twice in the corpus."""
    made = []
    for segment in segments_of(sorted(world.phones)):
        for first, last in combinations(range(len(segment) + 1), 2):
            if 3 <= last - first <= 20:
                made.append(segment[first:last])
    if corpus.definition == "tde2015":
        times: dict[Labels, int] = defaultdict(int)
        for gram in made:
            times[labels(gram)] += 1
        made = [gram for gram in made if times[labels(gram)] > 1]
    return made


def share(part: float, whole: float) -> float:
    """Their ratio, if there is one."""
    return part / whole if whole else math.nan


def precision_recall(name: str, right: int, found: int, recalled: int, gold: int) -> dict[str, float]:
    """Both."""
    return {f"{name}_precision": share(right, found), f"{name}_recall": share(recalled, gold)}


def of_document(
    members: list[tuple[int, Stretch]],
    fragments: dict[Stretch, list[Token]],
    words: list[Token],
    gold: list[list[Token]],
    phones: list[Token],
    readings: Readings,
) -> dict[str, float]:
    """The numbers of a fold by the measures document."""
    pairs = {(a, b) for (c, a), (d, b) in product(members, repeat=2) if c == d and not overlap(a, b)}
    covered = {phone for a, _ in pairs for phone in fragments[a]}
    by_labels = defaultdict(list)
    for gram in gold:
        by_labels[labels(gram)].append(gram)
    to_cover = {
        phone
        for same in by_labels.values()
        for a, b in product(same, repeat=2)
        if not overlap((a[0][0], a[0][1], a[-1][2]), (b[0][0], b[0][1], b[-1][2]))
        for phone in a
    }
    spelled = [transcribed(word[:3], phones, "document") or [] for word in words]
    found = {tuple(own) or fragment for fragment, own in fragments.items()}
    lexemes = {tuple(own) or (number,) for number, own in enumerate(spelled)}
    types, word_types = {labels(own) for own in fragments.values()}, {labels(own) for own in spelled}
    bounds = {boundary(f[0], time, phones) for f in fragments for time in f[1:]}
    word_bounds = {boundary(w[0], time, phones) for w in words for time in w[1:3]}
    if readings.boundaries == "together":
        bounds, word_bounds = ({b if b[2] else ("", -1, True) for b in some} for some in (bounds, word_bounds))
    right = {b for b in bounds & word_bounds if b[2]}
    covered = covered if readings.coverage == "union" else covered & to_cover
    return {
        "coverage": share(len(covered), len(to_cover)),
        **precision_recall("token", len(found & lexemes), len(found), len(found & lexemes), len(lexemes)),
        **precision_recall("type", len(types & word_types), len(types), len(types & word_types), len(word_types)),
        **precision_recall("boundary", len(right), len(bounds), len(right), len(word_bounds)),
    }


def boundary(file: str, time: int, phones: list[Token]) -> tuple[str, int, bool]:
    """The edge of a phone that is nearest and closer than 30 ms; else the time itself, and that it is wrong."""
    edges = sorted({edge for phone in phones if phone[0] == file for edge in phone[1:3]})
    nearest = min(edges, key=lambda edge: abs(edge - time))
    return (file, nearest, True) if abs(nearest - time) < 300 else (file, time, False)


def of_tde(
    members: list[tuple[int, Stretch]],
    fragments: dict[Stretch, list[Token]],
    words: list[Token],
    gold: list[list[Token]],
    phones: list[Token],
    _: Readings,
) -> dict[str, float]:
    """The numbers of a fold by tde."""
    segments = segments_of(words)
    lying = {fragment: looked_up(fragment, segments) or [] for fragment in fragments}
    hits = {
        fragment: own[0]
        for fragment, own in lying.items()
        if len(own) == 1 and all(abs(s(own[0][k]) - s(fragment[k])) <= 0.03 for k in (1, 2))
    }
    seen, hit = {labels(own) for own in lying.values()}, {word[3] for word in hits.values()}
    bounds = {(f[0], time) for f in fragments for time in f[1:]}
    word_bounds = {(w[0], time) for w in words for time in w[1:3]}

    def has_near(one: tuple[str, int], others: set[tuple[str, int]]) -> bool:
        return any(one[0] == other[0] and abs(s(one[1]) - s(other[1])) < 0.03 for other in others)

    right = sum(has_near(b, word_bounds) for b in bounds)
    recalled = sum(has_near(b, bounds) for b in word_bounds)
    return {
        "coverage": share(union(set(fragments)), union({(g[0][0], g[0][1], g[-1][2]) for g in gold})) or math.nan,
        **precision_recall("token", len(hits), len(fragments), len(hits), len(words)),
        **precision_recall("type", len(hit), len(seen), len(hit), len({word[3] for word in words})),
        **precision_recall("boundary", right, len(bounds), recalled, len(word_bounds)),
    }


def union(stretches: set[Stretch]) -> int:
    """The ticks of the union of stretches, those that nearly touch (numpy's default closeness) joined."""
    total, file, begin, end = 0, "", 0, 0
    for stretch in sorted(stretches):
        close = abs(s(end) - s(stretch[1])) <= 1e-8 + 1e-5 * abs(s(stretch[1]))
        if stretch[0] == file and (stretch[1] <= end or close):
            end = max(end, stretch[2])
        else:
            total += end - begin
            file, begin, end = stretch
    return total + end - begin


def of_tdev2(
    members: list[tuple[int, Stretch]],
    fragments: dict[Stretch, list[Token]],
    words: list[Token],
    gold: list[list[Token]],
    phones: list[Token],
    _: Readings,
) -> dict[str, float]:
    """The numbers of the corpus by tdev2."""
    heard = {phone for phone in phones if phone[3] not in ("SIL", "SPN")}
    covered = {phone for own in fragments.values() for phone in own}
    hits = {}
    for fragment, own in fragments.items():
        most, best = 0.0, None
        for word in words:
            if shared(word, fragment) > 0:
                ov = min(s(word[2]), s(fragment[2])) - max(s(word[1]), s(fragment[1]))
                if ov / (s(word[2]) - s(word[1])) > most:
                    most, best = ov / (s(word[2]) - s(word[1])), word
        if best and labels(own) == labels([phone for phone in phones if shared(phone, best) > 0]):
            hits[fragment] = best
    starts = {(f[0], own[0][1]) for f, own in fragments.items()}
    ends = {(f[0], own[-1][2]) for f, own in fragments.items()}
    word_starts, word_ends = {(w[0], w[1]) for w in words}, {(w[0], w[2]) for w in words}
    right = len((starts & word_starts) | (ends & word_ends))
    seen, hit = {labels(own) for own in fragments.values()}, {labels(fragments[fragment]) for fragment in hits}
    tokens = len(set(hits.values()))
    return {
        "coverage": share(len(covered & heard), len(heard)),
        **precision_recall("token", tokens, len(fragments), tokens, len(words)),
        **precision_recall("type", len(hit), len(seen), len(hit), len({word[3] for word in words})),
        **precision_recall("boundary", right, len(starts | ends), right, len(word_starts | word_ends)),
    }
