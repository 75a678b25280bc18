"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import wraps
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click

from swsdask.model.errors import SettingsError
from swsdask.model.wording import cut

if TYPE_CHECKING:
    from swsdask.api.opening import Evaluation
    from swsdask.model.discovery import Definition

Command = TypeVar("Command", bound=Callable[..., object])

Arguments = dict[str, Any]
"""Arguments of functions of the Python API, by keyword."""


def named_place(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse `-`, which means stdout in other programs, as the name of a file or directory to write."""
    if value == "-":
        said = "expected a name; found -. Files are written, nothing to stdout: name one."
        raise click.BadParameter(said, ctx, param)
    return value


def writable_place(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check, before the work begins, that a directory or URL can be written to. It is created later."""
    from swsdask.places.writing import check_writable

    if value is None:
        return None
    named_place(ctx, param, value)
    try:
        check_writable(value)
    except OSError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    return value


def writable_directory(ctx: click.Context, param: click.Parameter, value: str) -> Path:
    """Check a directory of this machine."""
    if "://" in value:
        raise click.BadParameter(f"{value} is a URL; give a local directory.", ctx, param)
    writable_place(ctx, param, value)
    return Path(value)


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN and infinities.

    Click accepts NaN in every range, because each comparison with NaN is false.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. End the command with exit code 2 for one that is not in the range."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class Age(FiniteRange):
    """An age in hours or days, as 36h or 7d, or a number in the unit of the option. Its value is in seconds."""

    def __init__(self, unit: Literal["h", "d"]) -> None:
        super().__init__(0)
        self._unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds. End the command with exit code 2 for what is no age."""
        number, unit = (value[:-1], value[-1]) if value[-1:] in _SECONDS else (value, self._unit)
        try:
            return super().convert(number, param, ctx) * _SECONDS[unit]
        except click.BadParameter:
            self.fail(f"{value!r} is not an age. Give hours or days, as 36h or 7d.", param, ctx)


_SECONDS = {"h": 3600, "d": 86_400}
"""The seconds of a unit of ages."""


def storage_option() -> click.Option:
    """--storage-option, which every command has. It takes effect before any other option is read."""
    return click.Option(
        ["--storage-option"],
        multiple=True,
        metavar="KEY=VALUE",
        is_eager=True,
        expose_value=False,
        callback=_set_storage_options,
        help="An option of fsspec for object stores, e.g. endpoint_url=http://host:9000 or s3.anon=true. Repeatable.",
    )


QUIET, VERBOSE = "swsdask.quiet", "swsdask.verbose"
"""The keys of -q and -v in click's context."""


def progress_options() -> list[click.Option]:
    """-q and -v, which every command has."""

    def option(letter: str, name: str, key: str, help_text: str) -> click.Option:
        def keep(ctx: click.Context, _: click.Parameter, given: bool) -> None:
            ctx.meta[key] = given

        return click.Option([letter, name], is_flag=True, expose_value=False, callback=keep, help=help_text)

    return [
        option("-q", "--quiet", QUIET, "Print no progress."),
        option("-v", "--verbose", VERBOSE, "Print every phase of the work with its time, and no bar."),
    ]


def _set_storage_options(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> None:
    if not given:
        return
    from swsdask.places.store_options import set_option

    for assignment in given:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise click.BadParameter("expected KEY=VALUE, e.g. endpoint_url=http://localhost:9000.", ctx, param)
        set_option(key, text if key.rpartition(".")[2] in TEXTS else _value(text))


TEXTS = ("key", "secret", "token", "account_key", "account_name", "sas_token", "password", "username")
"""Storage options that are always text, even if they look like numbers."""


def runs_of_arguments(given: Sequence[str], held: Sequence[str] = ()) -> list[str] | dict[str, str]:
    """RUNs as they are given or, if they have the form NAME=FILE, a mapping from name to file.

    An existing file is not read as NAME=FILE, nor is a system of an archive (`held`). Pipes are read. Raises
    `click.UsageError` if only some RUNs are named, or if two have one name.
    """
    from swsdask.model.units import id_fault
    from swsdask.places.reading import readable

    named: dict[str, str] = {}
    for each in given:
        name, equals, file = each.partition("=")
        there = each in held or os.path.exists(each) or glob(each)
        if equals and file and not id_fault(name) and not there:
            if name in named:
                raise click.UsageError(f"{name} names two RUNs: {named[name]} and {file}. Give each its own name.")
            named[name] = readable(file)
    if named and len(named) < len(given):
        name, file = next(iter(named.items()))
        raise click.UsageError(f"Give all RUNs as NAME=FILE, as {name}={file}, or none.")
    return named or [readable(each) for each in given]


def reference_and_runs(paths: Sequence[str], given: bool) -> tuple[str | None, list[str]]:
    """Return the reference and the RUNs among the arguments of a command: all are RUNs if options gave a reference.

    Raises `click.UsageError` if there is no reference.
    """
    if given:
        return None, list(paths)
    if not paths:
        raise click.UsageError(
            "Give a REFERENCE directory or archive, or --ecf, --rttm and --queries, or --documents and --occurrences, "
            "or --qrels."
        )
    return paths[0], list(paths[1:])


def _stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _together(kind: type, keyword: str, *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Give a command `options`. It receives their values as one argument `keyword` of the type `kind`."""
    names = [field.name for field in fields(kind)]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(*args: object, **given: object) -> object:
            values = {name: given.pop(name) for name in names}
            return command(*args, **{keyword: kind(**values)}, **given)

        return _stack(*options)(cast(Command, called))

    return decorate


@dataclass(frozen=True)
class CorpusOptions:
    """--phones, --words, --split, --folds, --within, --speakers, --definition."""

    phones: str | None
    words: str | None
    split: str | None
    folds: str | None
    within: str | None
    speakers: str | None
    definition: Definition | None

    def arguments(self) -> Arguments:
        """Return the arguments of `discover`, `ingest_discovery` and `validate`."""
        return asdict(self)


corpus_options = _together(
    CorpusOptions,
    "corpus",
    click.option("--phones", metavar="FILE", help="The phones of the corpus: file onset offset label."),
    click.option("--words", metavar="FILE", help="The words of the corpus, in the same form."),
    click.option("--split", metavar="FILE", help="The stretches of speech that tde2015 clips fragments to."),
    click.option(
        "--folds", metavar="FILE", help="The folds, separated by empty lines. Default: equal parts of whole files."
    ),
    click.option("--within", metavar="FILE", help="The folds within talkers, in the form of --folds."),
    click.option("--speakers", metavar="FILE", help="Lines 'file speaker', instead of --within."),
    click.option(
        "--definition",
        type=click.Choice(["document", "tde2015", "tdev2"]),
        help="The definition of the measures: of the measures document (default) or of an official tool.",
    ),
)


@dataclass(frozen=True)
class ReferenceOptions:
    """--ecf, --rttm, --queries, --documents, --occurrences, --lexicon, --vocabulary, --qrels."""

    ecf: str | None
    rttm: str | None
    queries: str | None
    documents: str | None
    occurrences: str | None
    lexicon: str | None
    vocabulary: str | None
    qrels: str | None

    def __bool__(self) -> bool:
        return any((self.ecf, self.rttm, self.queries, self.documents, self.occurrences, self.qrels))

    def files(self) -> Arguments:
        """Return the arguments of `open` and `ingest`."""
        return asdict(self)


reference_options = _together(
    ReferenceOptions,
    "reference",
    click.option("--ecf", metavar="FILE", help="The evaluated excerpts: an ECF."),
    click.option("--rttm", metavar="FILE", help="The transcript of the reference: an RTTM."),
    click.option("--queries", metavar="FILE", help="The queries: a kwlist or termlist."),
    click.option(
        "--documents", metavar="FILE", help="A table (CSV, Parquet, ...) with document and duration, instead of an ECF."
    ),
    click.option(
        "--occurrences",
        metavar="FILE",
        help="A table with query, document, start and duration, instead of an RTTM; --queries is optional, or a table.",
    ),
    click.option("--lexicon", metavar="FILE", help="A lexicon: adds n_phones and oov to the queries, for --by."),
    click.option("--vocabulary", metavar="FILE", help="A text or list of words: adds oov to the queries, for --by."),
    click.option(
        "--qrels",
        metavar="FILE",
        help="Judged documents instead of a reference: TREC qrels, or a table with query, document and relevance.",
    ),
)


@dataclass(frozen=True)
class SettingsOptions:
    """--preset, --settings, --set, --compat."""

    preset: str | None
    settings_file: str | None
    assignments: tuple[str, ...]
    compat: str | None

    def arguments(self, engine: EngineOptions | None = None) -> Arguments:
        """Return the arguments of `open`, `ingest` and `validate`."""
        explicit = settings_of_options(self.settings_file, self.assignments, engine)
        return {"preset": self.preset, "compat": self.compat, "settings": explicit}


def _settings(table: str, example: str) -> tuple[Callable[[Command], Command], ...]:
    help_text = f"A key of [{table}], e.g. {example}. Repeatable."
    return (
        click.option("--settings", "settings_file", metavar="FILE", help="A settings file (TOML), path or URL."),
        click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help=help_text),
    )


def _presets(*typed: object) -> list[str]:
    """Return the presets for completion in the shell. click gives the context, the parameter and the typed text."""
    from swsdask.model.layers import preset_names

    return [name for name in preset_names() if name.startswith(str(typed[-1]))]


settings_options = _together(
    SettingsOptions,
    "chosen",
    click.option(
        "--preset",
        metavar="NAME",
        shell_complete=_presets,
        help="The settings of an evaluation; `swsdask presets` lists the presets.",
    ),
    *_settings("evaluation", "trials=segment or operating_point.c_miss=10"),
    click.option("--compat", metavar="TOOL", help="Follow the rules of a tool: kwseval, stdeval or mediaeval."),
)

discovery_settings_options = _stack(*_settings("discovery", "coverage=union or fold_by=time"))
"""--settings, --set."""


@dataclass(frozen=True)
class EncodingOptions:
    """--frame-shift, --negate-scores, --segments."""

    frame_shift: float | None
    negate_scores: bool
    segments: str | None

    def arguments(self) -> Arguments:
        """Return the arguments of all functions that read runs."""
        return asdict(self)


encoding_options = _together(
    EncodingOptions,
    "encoded",
    click.option(
        "--frame-shift", type=float, metavar="SECONDS", help="RUNs are tables with times in frames, as from Kaldi."
    ),
    click.option("--negate-scores", is_flag=True, help="RUNs are tables whose scores are costs, as Kaldi's -log p."),
    click.option("--segments", metavar="FILE", help="RUNs are tables of utterances of Kaldi's segments FILE."),
)


@dataclass(frozen=True)
class EngineOptions:
    """--executor, --cluster, --workers, --rows-per-task."""

    executor: str | None = None
    cluster: str | None = None
    workers: int | None = None
    rows_per_task: int | None = None

    def __post_init__(self) -> None:
        """Start requested worker processes now, while the command is still importing its modules."""
        several = (self.workers or 1) > 1 and self.executor in (None, "auto")
        if self.cluster is None and (several or self.executor == "processes"):
            from swsdask.execution import fork_server

            with suppress(OSError):
                fork_server.start()

    def settings(self) -> Arguments:
        """Return the given options as the table [engine] of a settings file."""
        if self.executor and self.cluster:
            raise SettingsError("--executor and --cluster exclude each other.")
        if self.cluster:
            from swsdask.execution.open import read_cluster

            read_cluster(self.cluster, self.workers)
        table = {
            "executor": self.cluster or self.executor,
            "workers": self.workers,
            "rows_per_task": self.rows_per_task,
        }
        return {key: value for key, value in table.items() if value is not None}


engine_options = _together(
    EngineOptions,
    "engine",
    click.option("--executor", metavar="NAME", help="auto (default), serial, threads or processes."),
    click.option("--cluster", metavar="ADDRESS", help="tcp://..., a scheduler file, or a file of conf/cluster."),
    click.option("--workers", type=click.IntRange(1), help="Number of tasks that run at once."),
    click.option(
        "--rows-per-task",
        type=click.IntRange(1),
        help="Maximum number of rows per task (times workers / 16 above 16 workers).",
    ),
)

verify_option = click.option(
    "--no-verify",
    "verify",
    flag_value=False,
    default=True,
    help="Read an archive without verifying it by its hashes.",
)


def by_option(help_text: str = "Conditions, as for `swsdask score`. Repeatable.") -> Callable[[Command], Command]:
    """--by KEY[,KEY]."""
    return click.option("--by", multiple=True, metavar="KEY[,KEY]", help=help_text)


def split_names(given: str) -> list[str]:
    """Names separated by commas: the type of an option."""
    return [name.strip() for name in given.split(",") if name.strip()]


def _measures(given: str) -> list[str]:
    from swsdask.measures.names import measure_name

    return [measure_name(name) for name in split_names(given)]


def measures_option(help_text: str) -> Callable[[Command], Command]:
    """--measures A,B."""
    return click.option("--measures", type=_measures, metavar="A,B", help=help_text)


def open_evaluation(
    where: str | None,
    runs: Sequence[str],
    reference: ReferenceOptions,
    chosen: SettingsOptions,
    engine: EngineOptions,
    verify: bool = True,
) -> tuple[Evaluation, list[str] | dict[str, str]]:
    """Return the evaluation that the options of a command describe, and its RUNs (none: those of the archive)."""
    import swsdask as sws

    evaluation = sws.open(where, **reference.files(), **chosen.arguments(engine), verify=verify)
    return evaluation, runs_of_arguments(runs, evaluation.systems)


def settings_of_options(
    settings_file: str | None,
    assignments: Sequence[str] = (),
    engine: EngineOptions | None = None,
    table_name: str = "evaluation",
) -> Arguments:
    """Return the given options in the shape of a settings file. --set overrides --settings.

    Raises `SettingsError` for an assignment without a key, or for both --executor and --cluster.
    """
    explicit = _settings_file(settings_file) if settings_file else {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise SettingsError(f"--set {cut(repr(assignment))}: expected KEY=VALUE, e.g. tolerance_s=0.5.")
        table = explicit
        named = key.partition(".")[0] in ("engine", table_name)
        *parents, last = [*([] if named else [table_name]), *key.split(".")]
        for parent in parents:
            table = table.setdefault(parent, {})
            if not isinstance(table, dict):
                raise SettingsError(f"--set {cut(repr(assignment))}: {parent} holds a value, not further keys.")
        table[last] = _value(text)
    if engine is not None and (set_there := engine.settings()):
        from swsdask.model.layers import merge_layers

        explicit = merge_layers(explicit, {"engine": set_there})
    return explicit


def _settings_file(file: str) -> Arguments:
    from swsdask.model.layers import check_keys, settings_of
    from swsdask.places.reading import read_small

    try:
        given = settings_of(read_small(file), file)
    except OSError as error:
        raise SettingsError(f"{file}: the settings file cannot be read: {error}") from None
    check_keys(given, file)
    return given


def _value(text: str) -> Any:
    """Return a TOML value if it is one, else the text itself."""
    from swsdask.model.layers import read_toml

    try:
        found = read_toml(f"value = {text}".encode())
    except ValueError:
        return text
    return found["value"] if len(found) == 1 else text
