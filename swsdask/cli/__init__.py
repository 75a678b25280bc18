"""The command line. A command is imported only when it is called."""

from __future__ import annotations

import gc
import os
import re
import resource
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO, cast

import click

from swsdask import __version__
from swsdask.cli.options import progress_options, storage_option
from swsdask.ending import Ended, ended_by, has_arrived
from swsdask.model.errors import InsecureConnection, SwsdaskError
from swsdask.model.limits import check_addresses, shortage
from swsdask.model.safe_text import is_text, styled, visible, without_secrets
from swsdask.model.wording import counted
from swsdask.needless import leave_out

COMMANDS = {
    "demo": ("demo", "Make a synthetic evaluation, score it, write a report."),
    "score": ("score", "Score runs against a reference, or an archive's own runs."),
    "discover": ("discovery", "Score term discovery: classes of fragments."),
    "ingest": ("archives", "Write a reference and runs into an archive."),
    "validate": ("archives", "Check files and list every problem in them."),
    "verify": ("archives", "Verify the files of an archive by their hashes."),
    "vacuum": ("archives", "Remove the files of an archive that belong to no version."),
    "expire": ("archives", "Remove old versions of an archive."),
    "bench": ("archives", "Measure what scoring an archive costs, phase by phase."),
    "show": ("show", "Show what an archive contains."),
    "calibrate": ("convert", "Fit a map from scores to log-likelihood ratios, or apply one to runs."),
    "convert": ("convert", "Rewrite a run in another format."),
    "compare": ("comparing", "Compute confidence intervals, and test differences between systems."),
    "errors": ("comparing", "List the costliest queries of each system, with their errors."),
    "correlate": ("results", "Compute the rank correlation between measures."),
    "nightly": ("nightly", "Score the new runs of an inbox: history, board, gates."),
    "history": ("nightly", "Print how the numbers of an archive changed, night by night."),
    "report": ("results", "Write report.html from the results of a score."),
    "plot": ("results", "Draw DET and other curves as SVG, PDF or PNG."),
    "measures": ("catalogue", "List the measures, or define one."),
    "settings": ("catalogue", "List the settings, or explain some."),
    "presets": ("catalogue", "List the presets, or print one."),
    "completion": ("catalogue", "Print a script that completes words in bash, zsh or fish."),
    "simulate": ("simulate", "Simulate systems, to study measures or to have files to try."),
    "warm-up": ("catalogue", "Compile the kernels, so that later commands need not."),
}
"""Every command: its module, and its short help, so that `--help` need not import the module."""

_python_shows_warning = warnings.showwarning

_ADDRESSES = 384 << 20
"""The minimum address space: with less, libraries abort the process while they are imported."""

_NEW_OBJECTS = 1_000_000
"""The number of objects, about 100 MB, after which Python searches for reference cycles."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(
            import_module(f"swsdask.cli.{COMMANDS[cmd_name][0]}"), cmd_name.replace("-", "_")
        )
        for each in command.commands.values() if isinstance(command, click.Group) else (command,):
            if not any(param.name == "storage_option" for param in each.params):
                each.params.append(storage_option())
            if not any(param.name == "quiet" for param in each.params):
                each.params += progress_options()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called. For an unknown name, the error names the nearest command."""
        if args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS, 1)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments. The version and the help are printed here; see `invoke`."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            _discard_output()
            raise click.exceptions.Exit(0) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A closed pipe (`| head`) is not an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_output()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short_help) for name, (_, short_help) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="swsdask")
def cli() -> None:
    """Score spoken term detection: ATWV, MTWV, DET curves and other measures, equal to the official tools.

    Numbers go to stdout, progress and log to stderr. Exit codes: 0 fine, 1 an internal error, 2 bad input or settings,
    3 a gate failed, 4 the cluster failed (run the command again), 5 a night refused some runs.
    """


class _Visible:
    """A stream to a terminal or a file that escapes control characters, and masks secrets of URLs and stores.

    On a terminal, the sequences that colour our own tables stay. Sequences that move the cursor, as a bar does, are
    written to `bare`, the underlying stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.bare = stream
        self._made_visible = styled if stream.isatty() else visible

    def write(self, text: str) -> int:
        """Write text, escaped."""
        self.bare.write(self._made_visible(without_secrets(text)))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.bare, name)


@contextmanager
def _streams() -> Iterator[None]:
    """Make the standard streams escape control characters, and replace closed streams with ones that discard output.

    A character that the encoding of a stream lacks is escaped too.
    """
    with ExitStack() as opened:
        out, err = (
            stream or opened.enter_context(open(os.devnull, "w", encoding="utf-8"))
            for stream in (sys.stdout, sys.stderr)
        )
        if isinstance(out, TextIOWrapper) and out.errors == "strict":
            out.reconfigure(errors="backslashreplace")
            opened.callback(out.reconfigure, errors="strict")
        with redirect_stdout(cast(TextIO, _Visible(out))), redirect_stderr(cast(TextIO, _Visible(err))):
            yield


def console() -> None:
    """Run the installed command: `main` without needless garbage collection, and without needless libraries.

    Nearly all objects that are made at the start stay: modules, kernels. Searching them for cycles, repeatedly while
    their number grows and again at the end, takes a fourth of the time of scoring a small evaluation. NumPy's BLAS is
    hardly used here, and each of its threads would take 40 MB of the address space. Arrow's own allocator reserves a
    gigabyte of it, and returns pages that the next piece of a table needs again: with glibc's allocator, scoring
    hundreds of systems takes 4 % less CPU time and a tenth less memory, and reading Parquet a third less CPU time.
    Pydantic would search the metadata of every installed package for plugins of its own.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if "CS_GNU_LIBC_VERSION" in os.confstr_names or resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    gc.set_threshold(_NEW_OBJECTS)
    leave_out()
    try:
        main()
    finally:
        gc.freeze()
        _note_memory()


def _note_memory() -> None:
    """Note that files at memory:// URLs do not outlive the command."""
    memory = sys.modules.get("fsspec.implementations.memory")
    if memory is not None and memory.MemoryFileSystem.store:
        files = counted(len(memory.MemoryFileSystem.store), "files")
        click.echo(
            f"swsdask: memory:// ends with the command: {files} lost. Give a path, or the URL of a store.", err=True
        )


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code. `SWSDASK_TRACEBACK=1` shows tracebacks."""
    with _streams():
        _run(arguments)


def _call(arguments: list[str] | None) -> None:
    check_addresses(_ADDRESSES, "any command")
    _check_arguments(sys.argv[1:] if arguments is None else arguments)
    try:
        cli.main(arguments, prog_name="swsdask", standalone_mode=False)
        sys.stdout.flush()
    except Exception as error:
        if (ended := ended_by(error)) is None:
            raise
        raise ended from None


def _check_arguments(arguments: Sequence[str]) -> None:
    """Raise `click.UsageError` for an argument that is not UTF-8 or is empty.

    An unset shell variable yields an empty argument, which would be read as the working directory, or as an option that
    is not given.
    """
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if argument == "" or re.fullmatch("--[a-z-]+=", argument):
            option = argument or before
            where = f"{option.rstrip('=')}: the value is" if option.startswith("--") else "An argument is"
            raise click.UsageError(f"{where} empty. Is a shell variable unset? Leave it out, or give a value.")
        if not is_text(argument):
            raise click.UsageError(f"{argument}: expected UTF-8; found bytes of another encoding. Rename the file.")


def _run(arguments: list[str] | None) -> None:
    warnings.showwarning = _show_warning
    try:
        _call(arguments)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except Ended as ended:
        has_arrived(ended)
        if ended.is_logged:
            sys.exit(ended.exit_code)
        _fail(str(ended), ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SwsdaskError as error:
        traceback_if_asked()
        _fail(str(error), error.exit_code)
    except BrokenPipeError:
        _discard_output()
    except Exception as error:
        traceback_if_asked()
        _fail(*describe_unforeseen(error))


def describe_unforeseen(error: Exception) -> tuple[str, int]:
    """Return the message and the exit code for an error of another library."""
    if (short := shortage(error)) is not None:
        return str(short), short.exit_code
    if isinstance(error, OSError):
        try:
            sys.stdout.flush()
        except OSError:
            _discard_output()
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}. Check the path, its permissions and the space that is left.", 2
    return f"{type(error).__name__}: {error}\nThis is a fault of swsdask. SWSDASK_TRACEBACK=1 shows where.", 1


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Write our own warnings in one line, and those of libraries as Python does."""
    if issubclass(category, InsecureConnection):
        click.echo(f"swsdask: warning: {message}", err=True)
    else:
        _python_shows_warning(message, category, filename, lineno, file, line)


def _discard_output() -> None:
    """Discard all output that is still to be printed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def traceback_if_asked() -> None:
    """Raise the current error if `SWSDASK_TRACEBACK` is set."""
    if os.environ.get("SWSDASK_TRACEBACK"):
        raise


def _fail(message: str, code: int) -> NoReturn:
    with suppress(OSError):
        click.echo(visible(f"swsdask: {message}"), err=True)
    sys.exit(code)
