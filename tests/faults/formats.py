"""Mutations of every format and settings file that is read: `python -m tests.faults.formats --seconds 600 --seed 1`.

A mutation knows the structure: it replaces, repeats, exchanges and removes tokens (tags, values, blanks, line ends)
and, less often, bytes. `swsdask.validate` must list problems with file and line or find none, within `SECONDS` and
`MEMORY`. What fails is printed with the number that repeats it, and the file is kept in the folder `KEPT`; so is one
that a process dies of. A process for each core tries its share of the numbers.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pyarrow.parquet as pq

import swsdask as sws
from swsdask.execution.open import read_cluster
from swsdask.formats.recognise import Format, sniff
from swsdask.formats.runs.lines import LINE_FORMATS
from swsdask.model.errors import Problem, SwsdaskError
from swsdask.model.layers import build_settings, conf_directory, settings_of
from swsdask.nightly.settings import load_nightly
from swsdask.simulate.evaluation import NIGHTLY_SETTINGS
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN

SECONDS = 20
MEMORY = 1 << 30
KEPT = Path(".fuzz")

TABLE = "system\tquery\tdocument\tchannel\tstart\tduration\tscore\tdecision\n" + "".join(
    f"s\tK{row % 3}\ta\t1\t{row}.5\t0.{row}\t-{row}e-1\t{'YES' if row % 2 else 'NO'}\n" for row in range(6)
)
PHONES = "".join(f"{start / 10:.2f} {(start + 1) / 10:.2f} {'abc'[start % 3]}\n" for start in range(12))

SAMPLES: Mapping[str, str] = {
    "x.ecf.xml": ECF,
    "x.rttm": RTTM,
    "x.kwlist.xml": QUERIES,
    "x.termlist.xml": QUERIES.replace("kwlist", "termlist")
    .replace("kwid", "termid")
    .replace("kwtext", "termtext")
    .replace("<kw ", "<term ")
    .replace("</kw>", "</term>"),
    "run.kwslist.xml": RUN,
    "run.stdlist.xml": RUN.replace("kwslist", "stdlist")
    .replace("kwlist", "termlist")
    .replace("kwid", "termid")
    .replace("<kw ", "<term "),
    "run.tsv": TABLE,
    "run.csv": TABLE.replace("\t", ","),
    "run.jsonl": "".join(
        json.dumps(dict(zip(TABLE.splitlines()[0].split("\t"), line.split("\t"), strict=True))) + "\n"
        for line in TABLE.splitlines()[1:]
    ),
    "x.ctm": "a 1 0.50 0.25 word 0.9\na 1 0.75 0.5 other .5\nb A 2 .5 word 1\n",
    "run.kaldi": "K1 a 100 180 -0.5\nK2 b 20 30 3\n",
    "run.trec": "K1 Q0 a 1 0.9 tag\nK1 Q0 b 2 0.5 tag\nK2 Q0 a 1 1e-3 tag\n",
    "x.qrels": "K1 0 a 1\nK1 0 b 0\nK2 0 a 2\n",
    "alone.resources.toml": "query_seconds = [1, 2.5]\n[indexing]\nwall_hours = 14\ncores = 16\n"
    '[[hardware]]\ncount = 4\ncpu = "x"\nbrand = "y"\ncores = 4\nclock_ghz = 2.4\nram_gb = 8\nos = "z"\n',
    "x.classes": "Class 0\na 0.1 0.3\na 0.5 0.8\n\nClass 1\nb 0.2 0.4\na 0.0 0.1\n\n",
    "x.phn": "".join(f"{document} {line}\n" for document in "ab" for line in PHONES.splitlines()),
    "x.split": "a 0.0 1.2\nb 0.0 0.6\n",
    "x.cross": "a 0.0 1.2\n\nb 0.0 0.6\n",
    "x.speakers": "a ann\nb bob\n",
    "documents.csv": "document,channel,duration,source_type\na.wav,1,30.0,bnews\nb,1,20.5,cts\n",
    "occurrences.csv": "query,document,start,end,speaker,grade\nK1,a,1.0,1.5,ann,1\nK1,b,2,2.25,bob,2\nK2,b,.5,1,,1\n",
    "queries.csv": "query,text,length\nK1,good morning,2\nK2,night,\n",
}

ROLES = {"x.phn": "phones", "x.split": "split", "x.cross": "folds", "x.speakers": "speakers"}
"""Files that are named by their role, beside phones and words that are sound."""

TABLES = {
    "documents.csv": Format.DOCUMENTS,
    "occurrences.csv": Format.OCCURRENCES,
    "queries.csv": Format.QUERY_TABLE,
}
"""The tables of a reference, which are read together from a folder."""

FOLDERS = {**dict.fromkeys(TABLES, "tables"), "part-1.parquet": "parts"}
"""The folder of files that are read together with what is sound beside them."""

ROLED = {"x.speakers": Format.SPEAKERS}
"""The format of files that only their role tells."""

SETTINGS: Mapping[str, tuple[str, Callable[[Path], object]]] = {
    "x.settings.toml": (
        (conf_directory() / "sws2013.toml").read_text(),
        lambda file: build_settings(explicit=settings_of(file.read_bytes(), str(file))),
    ),
    "x.cluster.toml": (
        re.sub(r"(?m)^# (?=\w+ =)", "", (conf_directory() / "cluster" / "slurm.toml").read_text()),
        lambda file: read_cluster(str(file)),
    ),
    "x.nightly.toml": (NIGHTLY_SETTINGS, load_nightly),
    "x.map.toml": (
        'version = 1\n[map]\nmethod = "pav"\nbegins = [-1.5, 0.5, 2]\nllr = [-7.5, -1, 0.25, 3]\n[fitted_on]\n'
        'system = "s"\nrun = "0a"\nevaluation = {ecf = "1b"}\nsignature = "swsdask 1"\nprior_log_odds = -9.0\n'
        'impute = "min"\nimpute_score = -inf\nn_given_target = 3\nn_imputed_target = 1\nn_given_nontarget = 5\n'
        "n_imputed_nontarget = 90\ncnxe = 0.9\ncnxe_calibrated = 0.7\n",
        sws.Calibration.read,
    ),
}
"""Files that are not validated by name, and what reads each."""

VALUES = (
    "", " ", "0", "-0", "-1", "1e999", "-1e999", "1e-999", "nan", "NaN", "inf", "0x10", "1_000", "٣", "9" * 30,
    "9" * 5000, "0." + "9" * 400, "214748.3647", "214748.3648", "99999999999", "1e5000000000", "..", ".", "../x",
    "/etc/passwd", "a/b", "\\", "'", '"', '""', "<", ">", "&", "&amp;", "&#0;", "&#x202e;", "&nosuch;", "]]>",
    "<!--", "-->", "<![CDATA[", "<?x?>", "<!DOCTYPE x>", '<!DOCTYPE x [<!ENTITY a "b">]>', "\0", "\x1b[31m",
    "\x85", "\u2028", "\u202e", "\ufeff", "\r", "\n", "\r\n", "\n\n", "\t", ",", ";;", "#", "é", "e\u0301",
    "\U0001f600", "x" * 501, "x" * 70_000, "<NA>", "null", "YES", "no", "true", "[[x]]", "[", "{", "=", "system",
    "query", "Class", "Class 0", "LEXEME", "Q0", "K1", "a", "b", 'xmlns="x"', 'xmlns:a="b"', "a:b",
)  # fmt: skip
BYTES = (
    b"\xff",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\0",
    b"\x80",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\x1f\x8b",
    b"PAR1",
)
_TOKENS = re.compile(r"<[/!?]?[\w:]*|[\w.+-]+|\s+|.", re.DOTALL)


def mutated(text: str, chance: random.Random) -> bytes:
    """A text with one to a few changes."""
    tokens = _TOKENS.findall(text)
    for _ in range(min(chance.randint(1, 3) * chance.randint(1, 3), len(tokens))):
        place = chance.randrange(len(tokens))
        match chance.randrange(7):
            case 0 | 1 | 2:
                tokens[place] = chance.choice(VALUES)
            case 3:
                tokens[place] += chance.choice(VALUES)
            case 4:
                tokens[place] = tokens[chance.randrange(len(tokens))]
            case 5:
                end = place + chance.randint(1, 20)
                tokens[place:end] = tokens[place:end] * chance.choice((0, 2, 2, 40))
            case 6:
                end = place + chance.randint(1, 20)
                tokens[place:end] = reversed(tokens[place:end])
        if not tokens:
            break
    content = "".join(tokens).encode("utf-8", "surrogatepass")
    if chance.random() < 0.2:
        content = content[: chance.randrange(len(content) + 1)]
    if chance.random() < 0.2:
        place = chance.randrange(len(content) + 1)
        content = content[:place] + chance.choice(BYTES) + content[place + chance.randint(0, 2) :]
    if chance.random() < 0.05:
        content = content.replace(b"\n", chance.choice((b"\r\n", b"\r", b"")))
    if chance.random() < 0.03:
        content = content.decode("utf-8", "replace").encode(chance.choice(("utf-16", "utf-16-le", "utf-32")))
    if chance.random() < 0.03:
        content = gzip.compress(content, mtime=0)
        content = content[: chance.choice((len(content), chance.randrange(len(content))))]
    return content


def parquet(chance: random.Random) -> bytes:
    """A table of detections in Parquet, with columns of other types, nulls, or damaged bytes."""
    rows = [line.split("\t") for line in TABLE.splitlines()]
    columns: dict[str, pa.Array] = {}
    for name, values in zip(rows[0], zip(*rows[1:], strict=True), strict=True):
        kinds: list[Callable[[], pa.Array]] = [
            lambda values=values: pa.array(values).cast(pa.float64()),
            lambda values=values: pa.array(values).dictionary_encode(),
            lambda values=values: pa.array([*values[:-1], None]),
            lambda values=values: pa.array([chance.choice(VALUES), *values[1:]]),
            lambda values=values: pa.array([value.encode() for value in values]),
            lambda values=values: pa.array([[value] for value in values]),
            lambda values=values: pa.array([float(chance.choice(("nan", "inf", "1e300", "-1"))) for _ in values]),
            lambda values=values: pa.nulls(len(values)),
            lambda values=values: pa.array([chance.randrange(-(2**63), 2**63) for _ in values]),
        ]
        columns[name] = pa.array(values)
        if chance.random() < 0.15:
            try:
                columns[name] = chance.choice(kinds)()
            except pa.ArrowException:
                continue
    kept = [name for name in columns if chance.random() > 0.03]
    sink = io.BytesIO()
    pq.write_table(pa.table({name: columns[name] for name in kept}), sink)
    content = bytearray(sink.getvalue())
    for _ in range(chance.choice((0, 0, 1, 3))):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def case(number: int) -> tuple[str, bytes]:
    """The name and content of a file, the case of that number."""
    chance = random.Random(number)
    name = chance.choice((*SAMPLES, *SETTINGS, "run.parquet", "part-1.parquet"))
    if name.endswith(".parquet"):
        return name, parquet(chance)
    return name, mutated(SETTINGS[name][0] if name in SETTINGS else SAMPLES[name], chance)


def fault(name: str, content: bytes, folder: Path, *, sound: bool = False) -> str | None:
    """What is wrong with how the file is handled, or None. A file that is `sound` has no problems."""
    file = folder / FOLDERS.get(name, "") / name
    before = file.read_bytes() if name in TABLES else None
    file.write_bytes(content)
    aligned = {"phones": str(folder / "sound.phn"), "words": str(folder / "sound.phn")}
    roles = {**aligned, ROLES[name]: str(file)} if name in ROLES else {}
    asked = [] if roles else str(file.parent if name in FOLDERS else file)
    problems: Sequence[Problem] = ()
    try:
        if name in SETTINGS:
            SETTINGS[name][1](file)
        else:
            problems = sws.validate(asked, **roles).problems  # type: ignore[arg-type]
    except SwsdaskError as error:
        if sound or name not in SETTINGS:
            return f"raised, not listed: {error}"[:600]
    except MemoryError:
        return "more memory than allowed"
    except TimeoutError:
        return f"more than {SECONDS} s"
    except Exception:
        return traceback.format_exc(limit=-4)
    finally:
        if before is not None:
            file.write_bytes(before)
    for problem in problems:
        if sound or str(folder) not in problem.file:
            return f"a problem of a sound file, or without the file: {problem}"[:600]
    return None


def _too_long(*_: int | FrameType | None) -> None:
    raise TimeoutError


def prepare(folder: Path) -> None:
    """Write what is sound, and read every sample once, so that modules and kernels are loaded."""
    (folder / "sound.phn").write_text(SAMPLES["x.phn"])
    for name in {*FOLDERS.values()}:
        (folder / name).mkdir()
    columns = [line.split("\t") for line in TABLE.splitlines()]
    sound = pa.table(dict(zip(columns[0], map(list, zip(*columns[1:], strict=True)), strict=True)))
    pq.write_table(sound, folder / "parts" / "part-0.parquet")
    for name in TABLES:
        (folder / "tables" / name).write_text(SAMPLES[name])
    for name, text in (*SAMPLES.items(), *((name, text) for name, (text, _) in SETTINGS.items())):
        wrong = fault(name, text.encode(), folder, sound=True)
        assert wrong is None, f"{name}: {wrong}"
    sniffed = (sniff(str(folder / name), ROLED.get(name)) for name in SAMPLES if name not in TABLES)
    tables = {Format.PARQUET, Format.PARQUET_FOLDER, *TABLES.values()}
    untried = {*Format, *LINE_FORMATS} - {*tables, *sniffed}
    assert not untried, f"formats without a sample: {untried}"


def tried(first: int, step: int, seconds: float) -> tuple[int, float, Counter[str]]:
    """Try every `step`-th case from the first on, for so long: how many, in how much CPU time, and what was wrong."""
    signal.signal(signal.SIGALRM, _too_long)
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="swsdask-fuzz-") as place:
        folder = Path(place)
        prepare(folder)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
        began, cpu, number = time.monotonic(), time.process_time(), first
        while time.monotonic() - began < seconds:
            name, content = case(number)
            kept = KEPT / f"{number}-{name}"
            kept.write_bytes(content)  # It stays if the process dies of it.
            signal.alarm(SECONDS)
            wrong = fault(name, content, folder)
            signal.alarm(0)
            if wrong:
                kind = wrong.strip().splitlines()[-1][:80]
                kinds[kind] += 1
                if kinds[kind] <= 3:
                    print(f"case {number}, {name}: {wrong}", flush=True)
            else:
                kept.unlink()
            number += step
        cpu = time.process_time() - cpu
    return (number - first) // step, cpu, kinds


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.formats", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, help="the number of the first case; random if none is given")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    first = random.SystemRandom().randrange(2**40) if asked.seed is None else asked.seed
    print(f"formats: cases from number {first}", flush=True)
    KEPT.mkdir(exist_ok=True)
    began = time.monotonic()
    with ProcessPoolExecutor(asked.processes, mp_context=get_context("spawn")) as pool:
        starts = range(first, first + asked.processes)
        found = list(pool.map(partial(tried, step=asked.processes, seconds=asked.seconds), starts))
    cases, cpu = sum(each for each, _, _ in found), sum(each for _, each, _ in found)
    kinds = sum((each for _, _, each in found), Counter[str]())
    rate = cases / (time.monotonic() - began) * 3600
    print(
        f"formats: {cases:,} cases, {rate:,.0f} an hour, {1000 * cpu / cases:.1f} ms of CPU time each, "
        f"{kinds.total()} wrong",
        flush=True,
    )
    sys.exit(bool(kinds))


if __name__ == "__main__":
    main()
