"""Errors that users see: each says where, what was expected, what was found and what to do.

`exit_code` of a class is the exit code of the command line: 1 a fault of swsdask, 2 bad input or settings, 3 a gate
failed, 4 the cluster failed (the work can be resumed). `Problems` collects the faults of a file before one error
is raised; `counted` writes numbers of things in sentences.

In text that is shown or kept, secrets are struck out and invisible control characters are escaped.

A URL may contain a password (`https://user:password@host/`) or, if it is presigned, a signature or a token in its query
string. Errors strike out secrets when they are made, and so does all code that keeps the name of a file. Where a
password has characters that a URL must write as %40 or %2F, everything up to the last @ is taken for the password: too
much is struck out rather than too little.

Ids, file names and attributes are untrusted. A terminal obeys some characters (ESC, U+009B), and others display a line
in another order than it is stored (U+202E).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from operator import index
from typing import ClassVar, SupportsIndex
from urllib.parse import unquote

STRUCK = "***"
"""The text that replaces a secret."""

_SHORTEST = 8
"""Shorter values are not searched for in text: they could be any word."""

_PASSWORD = re.compile(
    r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://(?!\[|(?:localhost|[^\s/:@?#]*\.[^\s/:@?#]*):\d{1,5}[/?#])[^\s/:@?#]*:)\S+@",
    re.IGNORECASE,
)
"""The user and the password; not an IPv6 address or a host with a port, followed by an @."""
_TOKEN = re.compile(r"(https?://)[^\s/:@?#]+@", re.IGNORECASE)
"""A user without a password: a token, as repository hosts accept it."""
_PARAMETER = re.compile(r"[?&;#]([^\s=&?#;]+)=")
_VALUE = re.compile(r"[^&\s]*[^&\s'\"<>:.,;)]|")
"""The value of a parameter, without punctuation that may follow it in a sentence."""
_SECRET = re.compile(r"sig|token|passw|pwd|secret|credential|key|auth|jwt|^code$", re.IGNORECASE)
"""The names of parameters that are struck out."""
_OPTION = re.compile(r"signature|token|passw|secret|credential|account_key|connection_string", re.IGNORECASE)

_known: set[str] = set()


def without_secrets(text: str) -> str:
    """Strike out the secrets in a text: those of its URLs, and the values that `remember` got.

    Examples
    --------
    >>> without_secrets("https://me:hush@host/a.xml?X-Amz-Signature=0f0f&versionId=3")
    'https://me:***@host/a.xml?X-Amz-Signature=***&versionId=3'
    >>> without_secrets("https://host/a.xml?sig=ab%3D: no answer")
    'https://host/a.xml?sig=***: no answer'
    >>> without_secrets("https://host/a.xml: no answer")
    'https://host/a.xml: no answer'
    """
    if "://" in text:
        text = _TOKEN.sub(rf"\1{STRUCK}@", _PASSWORD.sub(rf"\1{STRUCK}@", text))
        text = "".join(_without_parameters(text))
    for value in _known:
        if value in text:
            text = text.replace(value, STRUCK)
    return text


def _without_parameters(text: str) -> Iterator[str]:
    """The parts of text, without the values of parameters that are secrets, also in URLs inside URLs."""
    done = 0
    for parameter in _PARAMETER.finditer(text):
        if parameter.start() >= done and _SECRET.search(unquote(parameter[1])):
            yield f"{text[done : parameter.end()]}{STRUCK}"
            value = _VALUE.match(text, parameter.end())
            done = value.end() if value else parameter.end()
    yield text[done:]


def remember(options: Mapping[str, object]) -> None:
    """Remember the secrets among the options of a store; names identify them, and options may be nested."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            remember(value)
        elif isinstance(value, str) and len(value) >= _SHORTEST and _OPTION.search(name):
            _known.add(value)


_ACTING = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or directions
    r"\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""U+200C and U+200D are kept: several scripts need them to join letters."""

_ACTS = re.compile(f"[{_ACTING}]")
_STYLE = re.compile(rf"(\x1b\[[0-9;]*m)|([{_ACTING}])")


def visible(text: str) -> str:
    r"""The text with every invisible control character escaped as in JSON, such as ``\u202e``."""
    if text.isprintable():  # a faster check: no such character is printable
        return text
    return _ACTS.sub(lambda found: _escaped(found[0]), text)


def is_text(name: str) -> bool:
    """Whether the name of a file is valid UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_line(text: str) -> str:
    r"""The text in one line, each newline as ``\n``: names of files may have newlines."""
    return text.replace("\n", "\\n")


def styled(text: str) -> str:
    """The same, but sequences that set the colour and weight of text are kept."""
    return _STYLE.sub(lambda found: found[1] or _escaped(found[2]), text) if _ACTS.search(text) else text


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


_FORMULA = re.compile(r"(?![+-][0-9.]+(?:[eE][+-]?[0-9]+)?$)[=+\-@\t\r]")
"""The beginning of a formula in some spreadsheet (OWASP, CSV Injection), unless it is a number."""


def without_formula(text: str) -> str:
    """The text with an apostrophe in front if a spreadsheet would take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


SHOWN = 10
"""The number of problems that an error message spells out; the others are counted."""

LISTED = 20
"""The number of ids that a note spells out; the others are counted."""

FEW = 3
"""The number of names that a sentence gives as examples."""

LONGEST = 600
"""The number of characters of a value that a message holds."""

MOST_KEPT = 1000
"""The number of problems that an error keeps by default."""


class SwsdaskError(Exception):
    """The base of every error that swsdask raises on purpose.

    Attributes
    ----------
    exit_code : int
        The exit code of the command line.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, *said: object) -> None:
        super().__init__(*(without_secrets(each) if isinstance(each, str) else each for each in said))


@dataclass(frozen=True)
class Problem:
    """A fault of an input.

    `file` is the path or URL as the user gave it, `line` counts from 1 (None where lines have no meaning). A
    `transient` problem is a failure to reach the file, not a fault of its content: reading it again may succeed.
    Secrets are struck out (`model.errors`). Its `str` is one line.
    """

    file: str
    line: int | None
    expected: str
    found: str
    remedy: str
    transient: bool = False

    def __post_init__(self) -> None:
        for name in ("file", "found"):
            object.__setattr__(self, name, without_secrets(getattr(self, name)))

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return one_line(f"{where}: expected {cut(self.expected)}; found {cut(self.found)}. {cut(self.remedy)}")


def cut(text: str) -> str:
    """The text, without its middle if it is too long to read."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


class InputError(SwsdaskError):
    """An input file or table is not valid.

    Attributes
    ----------
    problems : tuple of Problem
        The problems in file order, each with its file, line, what was expected, what was found, and the remedy.
    total : int
        The number of all problems; `problems` may keep only the first of them.

    Examples
    --------
    >>> import swsdask as sws
    >>> sws.open("nowhere")
    Traceback (most recent call last):
    swsdask.model.errors.InputError: nowhere: expected a file or folder; found nothing there. Check the path.
    """

    exit_code = 2

    def __init__(self, *problems: Problem, total: int | None = None) -> None:
        self.problems = problems
        self.total = len(problems) if total is None else total
        super().__init__(str(self))

    @property
    def transient(self) -> bool:
        """Whether a file could not be reached, so that reading it again may succeed."""
        return any(problem.transient for problem in self.problems)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_input_error, (self.problems, self.total)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        more = self.total - len(lines)
        if more > 0:
            lines.append(f"... and {more} more; `swsdask validate` lists them all")
        return "\n".join(lines)


def _rebuild_input_error(problems: tuple[Problem, ...], total: int) -> InputError:
    return InputError(*problems, total=total)


class SettingsError(SwsdaskError):
    """A setting, preset or argument is unknown or malformed, or contradicts another.

    Examples
    --------
    >>> import swsdask as sws
    >>> sws.open("demo/files", settings={"evaluation": {"tolerance": 1}})
    Traceback (most recent call last):
    swsdask.model.errors.SettingsError: setting evaluation.tolerance: unknown key. Nearest valid key: tolerance_s.
    """

    exit_code = 2


class ArchiveError(SwsdaskError):
    """An archive cannot be read or written as requested: no archive there, a run of that name differs, a lost race."""

    exit_code = 2

    def __str__(self) -> str:
        return one_line(super().__str__())


class StoreError(SwsdaskError):
    """A store does not let a file of an archive be read now: no permission, no connection. The file may be whole."""

    exit_code = 2

    def __str__(self) -> str:
        return one_line(super().__str__())


class ExecutionError(SwsdaskError):
    """A task failed: says which cell, system and file; the cause is chained."""


class ResourceError(SwsdaskError):
    """Too little memory, or too few threads or open files, for this process or a worker: says what to do."""

    exit_code = 2


class ClusterError(SwsdaskError):
    """The cluster could not be reached or lost its workers. Completed work is kept: run the command again."""

    exit_code = 4


class GateError(SwsdaskError):
    """A system is worse than a gate of the command line allows."""

    exit_code = 3


class InsecureConnection(UserWarning):
    """A scheduler is reached over a network without encryption."""


class Problems:
    """A collector of problems: readers go on after a problem so that all of them can be reported.

    At most `limit` are kept; the others are counted.
    """

    def __init__(self, limit: int = MOST_KEPT) -> None:
        self.limit = limit
        self.total = 0
        self._kept: list[Problem] = []

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._kept)

    def __len__(self) -> int:
        return self.total

    def add(self, file: str, line: int | None, expected: str, found: str, remedy: str) -> None:
        """Note one problem, by its parts."""
        self.note(Problem(file, line, expected, found, remedy))

    def note(self, problem: Problem) -> None:
        """Note one problem."""
        self.total += 1
        if len(self._kept) < self.limit:
            self._kept.append(problem)

    def extend(self, others: Problems) -> None:
        """Note the problems of another collector."""
        self.total += others.total
        self._kept += others._kept[: max(0, self.limit - len(self._kept))]

    def raise_if_any(self) -> None:
        """Raise `InputError` with all problems noted so far, if there are any."""
        if self.total:
            raise InputError(*self._kept, total=self.total)


_PLURAL = re.compile(r"(ies|(?<=ss)es|s)\b")


def listed(ids: Sequence[str], most: int = LISTED) -> str:
    """The first ids, and how many more there are."""
    more = len(ids) - most
    return ", ".join(ids[:most]) + (f" and {more} more" if more > 0 else "")


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Raise `SettingsError` for an argument that is not one of the known values."""
    if value not in known:
        raise SettingsError(f"{name} is {cut(repr(value))}; expected one of {', '.join(known)}.")


def check_whole(name: str, value: object, least: int) -> int:
    """An argument as an integer. Raises `SettingsError` for one that is no integer, or less than `least`."""
    if not isinstance(value, bool) and isinstance(value, SupportsIndex) and index(value) >= least:
        return index(value)
    raise SettingsError(f"{name} is {cut(repr(value))}; expected a whole number, {least} or more.")


def choices(known: Iterable[str], instead_of: str) -> str:
    """The known names; if there are more than `LISTED`, those nearest to the given one, and how many more."""
    names = list(known)
    if len(names) <= LISTED:
        return ", ".join(names) or "none"
    near = get_close_matches(instead_of, names, n=FEW, cutoff=0.0)
    return f"{', '.join(near)} and {len(names) - len(near):,} more"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar to the given one, "" if there is none."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.0)), "")


def counted(number: float, things: str, form: str = ",") -> str:
    """`3 queries without targets`; where the number prints as 1, the first plural of `things` is made singular.

    `things` has its plural in -s, -ies or -sses.
    """
    printed = format(number, form)
    if printed == "1":
        things = _PLURAL.sub(lambda plural: "y" if plural[1] == "ies" else "", things, count=1)
    return f"{printed} {things}"
