"""Every argument and option that takes a place takes a URL: with it a command prints and writes what it does here.

Arguments and options are those of the commands themselves: one that is neither called here nor known to take no place
makes a test fail.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import fsspec
import pytest

import swsdask as sws
from swsdask.cli import COMMANDS, cli
from tests.command_line import Outcome
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN, Files
from tests.whole_flow import content, names, put

Call = Callable[..., Outcome]

NO_PLACE = {
    *("--preset", "--set", "--compat", "--measures", "--measure", "--by", "--executor", "--outputs", "--baseline"),
    *("--fail-if", "--system", "--systems", "--condition", "--only", "--storage-option", "<system>", "<name>"),
    "--cluster",  # an address, or a file of the machine that connects
}

LOCAL = {("demo", "--out"), ("simulate discovery", "--out")}
"""Folders of files to look at: a URL is refused."""

FILES = {
    "reference/x.ecf.xml": ECF,
    "reference/x.rttm": RTTM,
    "reference/x.kwlist.xml": QUERIES,
    "runs/first.kwslist.xml": RUN,
    "runs/second.kwslist.xml": RUN.replace('"first"', '"second"').replace('score="0.6"', 'score="0.3"'),
    "settings.toml": "[evaluation]\ntolerance_s = 0.25\n",
    "discovery.toml": '[discovery]\ncoverage = "union"\n',
    "documents.csv": "document,duration\na,30\nb,30\n",
    "occurrences.csv": "query,document,start,duration\nK1,a,1,1\nK2,a,5,0.5\nK1,b,2,1\n",
    "lexicon.txt": "good g u d\nmorning m o n\nnight n ai t\nnoon n u n\n",
    "vocabulary.txt": "good\nmorning\nnight\n",
    "judged.qrels": "K1 0 a 1\nK1 0 b 0\nK2 0 a 0\nK2 0 b 1\n",
    "judged.tsv": "query\tdocument\tscore\nK1\ta\t0.9\nK2\tb\t0.4\nK2\ta\t0.6\n",
    "segments": "u1 a 0 10\nu2 b 0 10\n",
    "uttered.tsv": "query\tdocument\tstart\tduration\tscore\tdecision\nK1\tu1\t1\t1\t0.9\tYES\nK2\tu2\t3\t1\t0.2\tNO\n",
    "asr.ctm": "a 1 1.0 0.5 good 0.9\na 1 1.6 0.4 morning 0.8\nb 1 2.0 0.5 night 0.7\n",
    "nightly.toml": """[[evaluation]]
name = "x"
reference = "reference"
inbox = ["runs"]
archive = "archive"
out = "board"
""",
}

REFERENCE = "--ecf @reference/x.ecf.xml --rttm @reference/x.rttm --queries @reference/x.kwlist.xml"
TABLES = "--documents @documents.csv --occurrences @occurrences.csv"
LEXICON = f"{REFERENCE} --lexicon @lexicon.txt --vocabulary @vocabulary.txt"
CORPUS = "--phones @corpus/sim.phn --words @corpus/sim.wrd"
FOLDS = f"{CORPUS} --folds @folds --within @within"
SPEAKERS = f"{CORPUS} --split @corpus/sim.split --definition tde2015 --speakers @corpus/sim.speakers"
SEGMENTS = "--frame-shift 1 --segments @segments"
RUN_FILE, SETTINGS = "@runs/first.kwslist.xml", "--settings @settings.toml"


def _on_references(command: str, runs: str) -> list[str]:
    """Calls with every form of a reference."""
    calls = [f"{REFERENCE} {SETTINGS} {runs}", f"{TABLES} {runs}", f"{LEXICON} {runs}"]
    of_judged = runs.replace(RUN_FILE, "@judged.tsv")
    of_utterances = runs.replace(RUN_FILE, "@uttered.tsv")
    calls += [f"--qrels @judged.qrels {of_judged}", f"{SEGMENTS} {REFERENCE} {of_utterances}"]
    return [f"{command} {call}" for call in calls]


CALLS = [
    "demo --hours 0.2 --queries 5 --out >made",
    f"score {SETTINGS} --out >made <paths>@reference <paths>@runs",
    *_on_references("score --measures map", f"<paths>{RUN_FILE}"),
    f"discover {FOLDS} --settings @discovery.toml --out >made <classes>@corpus",
    f"discover {SPEAKERS} --ingest >made <classes>@corpus/dense.classes",
    "discover --archive @discovery",
    f"ingest {SETTINGS} <archive>>made <paths>@reference <paths>@runs",
    *_on_references("ingest", f"<archive>>made --run {RUN_FILE}"),
    f"validate {SETTINGS} --reference @reference <paths>@runs",
    f"validate {SEGMENTS} --reference @reference <paths>@uttered.tsv",
    f"validate {FOLDS}",
    f"validate {SPEAKERS} <paths>@corpus/dense.classes",
    "verify --repair @archive <archive>@archive",
    "vacuum <archive>@archive",
    "expire --keep 1 <archive>@archive",
    "bench <archive>@archive",
    "show <archive>@archive",
    f"calibrate --method pav --on @reference {SETTINGS} --out >made.toml <runs>{RUN_FILE}",
    *_on_references("calibrate --method pav --out >made.toml", f"<runs>{RUN_FILE}"),
    f"calibrate --apply @fitted.toml --out >made <runs>{RUN_FILE}",
    f"convert <run>{RUN_FILE} <target>>made.parquet",
    "convert --queries @reference/x.kwlist.xml <run>@asr.ctm <target>>made.tsv",
    f"convert {SEGMENTS} <run>@uttered.tsv <target>>made.parquet",
    f"compare {SETTINGS} --measures map --replicates 9 --out >made <paths>@archive",
    *_on_references("compare --measures map --replicates 9", f"<paths>{RUN_FILE}"),
    f"errors {SETTINGS} --out >made <paths>@reference <paths>@runs",
    *_on_references("errors", f"<paths>{RUN_FILE}"),
    "correlate --measures atwv,mtwv --out >made <results>@results",
    "nightly <file>@nightly.toml",
    "history <archive>@archive",
    "report <results>@results <page>>made.html",
    "plot <results>@results <figure>>made.svg",
    "simulate gap --replicates 1 --systems 3 --points 60 --out >made",
    "simulate discovery --phones 200 --out >made",
    "simulate compare --evaluations 2 --out >made",
]

TIMED = ("bench", "simulate gap", "simulate compare")
"""Commands that print how long something took."""

DATED = re.compile(r"(manifest.*\.json|/report\.html|/sources\.json|/tables/(runs|systems)-[0-9a-f]*\.parquet)$")
"""Files that hold a time or random names: the contents of others are compared."""


class Case(NamedTuple):
    """A call, and which of its arguments and options is a URL."""

    command: str
    parameter: str
    call: str


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((f"{name} {own}", each) for own, each in command.commands.items())
        else:
            assert command is not None
            yield name, command


def _parameters(command: click.Command) -> list[str]:
    """The arguments and options that are text and may be a place."""
    taken = [
        param
        for param in command.params
        if not isinstance(param.type, click.Choice | click.types.IntParamType | click.types.FloatParamType)
        and not getattr(param, "is_flag", False)
    ]
    named = [param.opts[0] if isinstance(param, click.Option) else f"<{param.name}>" for param in taken]
    return [name for name in named if name not in NO_PLACE]


_ARGUMENT = re.compile("<[a-z]+>")


def _words(call: str) -> Iterator[tuple[str, str]]:
    """The words of a call, each with the argument or option that it belongs to, if it is a place."""
    before = ""
    for word in call.split():
        argument = _ARGUMENT.match(word)
        if argument is not None:
            yield argument[0], word[argument.end() :]
        else:
            yield (before if word[0] in "@>" else ""), word
        before = word


def _called(command: str) -> list[str]:
    return [call for call in CALLS if call == command or call.startswith(f"{command} ")]


CASES = [
    Case(name, parameter, next((call for call in _called(name) if parameter in dict(_words(call))), ""))
    for name, command in _commands()
    for parameter in _parameters(command)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.command} {case.parameter}")
def test_every_place_is_called(case: Case) -> None:
    assert case.call, f"add a call of `swsdask {case.command}` with {case.parameter}, or say that it takes no place"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of every kind."""
    folder = tmp_path_factory.mktemp("inputs")
    files = Files(folder)
    for name, text in FILES.items():
        files.write(name, text)
    runs = str(folder / "runs")
    sws.ingest(folder / "archive", folder / "reference", runs=runs)
    sws.write(sws.score(folder / "archive"), folder / "results")
    sws.calibrate(folder / "reference", str(folder / "runs/first.kwslist.xml"), method="pav").write(
        str(folder / "fitted.toml")
    )
    corpus = folder / "corpus"
    cli.main(["simulate", "discovery", "--phones", "400", "--out", str(corpus)], standalone_mode=False)
    for name in ("folds", "within"):
        files.write(name, (corpus / "sim.split").read_text())
    sws.ingest_discovery(folder / "discovery", corpus, phones=corpus / "sim.phn", words=corpus / "sim.wrd")
    cli.main(["nightly", "-q", str(folder / "nightly.toml")], standalone_mode=False)
    return folder


def _made(folder: str, root: str) -> dict[str, bytes | bool]:
    """The files that a command wrote, by their names without what is random; of `DATED`, whether they are empty."""
    made: dict[str, bytes | bool] = {}
    for name in names(folder):
        if name.startswith("made"):
            written = content(f"{folder}/{name}")
            here = written.replace(root.encode(), b"ROOT").replace(folder.encode(), b"ROOT")
            made[re.sub("[0-9a-f]{32}", "", name)] = bool(written) if DATED.search(name) else here
    return made


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.call], ids=lambda case: f"{case.command} {case.parameter}"
)
def test_a_place_may_be_a_url(
    swsdask: Call, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"memory://{tmp_path}/there"
    writes = any(parameter == case.parameter and word[0] == ">" for parameter, word in _words(case.call))
    printed, made = [], []
    try:
        for root in (str(tmp_path / "here"), url):
            folder = tmp_path / ("here" if root != url else "beside")
            shutil.copytree(prepared, folder)
            put(folder, url)
            words = []
            for parameter, word in _words(case.call):
                place = root if parameter == case.parameter else str(folder)
                words.append(f"{place}/{word[1:]}" if word[0] in "@>" else word)
            ended = swsdask(*words)
            if root == url and (case.command, case.parameter) in LOCAL:
                assert ended.code == 2
                assert url in ended.err
                assert "URL" in ended.err
                return
            assert ended.code == 0, ended.err
            printed.append(ended.out.replace(root, "ROOT").replace(str(folder), "ROOT"))
            made.append(_made(root if writes else str(folder), root))
            assert made[-1] or not writes
        assert case.command in TIMED or printed[0] == printed[1]
        assert made[0] == made[1]
        assert not [path.name for path in tmp_path.iterdir() if path.name not in ("here", "beside")]
    finally:
        fsspec.filesystem("memory").store.clear()
