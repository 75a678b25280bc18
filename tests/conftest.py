"""Profiles of the property tests. An example may take as long as the kernel that it compiles, so there is no deadline,
and on a busy machine drawing them may take long: that is no failure.

`swsdask` tries the same examples in every run; `fuzz` (`make fuzz`) tries others in each, by the seed it is given, and
twenty times as many.

Hypothesis also tries constants of the modules that are loaded. So all of the package are loaded first: else the
examples of a property would depend on the tests that its process ran before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import swsdask
from swsdask.cli import main
from tests.command_line import Outcome
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN, Files

for module in walk_packages(swsdask.__path__, "swsdask."):
    import_module(module.name)

settings.register_profile(
    "swsdask",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz", settings.get_profile("swsdask"), derandomize=False, max_examples=1000, print_blob=True
)
settings.load_profile("swsdask")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Call cases of bytes by their number. Processes that share the tests must agree on every name, and the bytes of
    a gzip file hold the time at which they were made."""
    return argname if isinstance(val, bytes) else None


def examples(number: int) -> settings:
    """Those of a property that tries `number` of examples for each hundred that others try, in whichever profile."""
    return settings(max_examples=number * settings().max_examples // 100)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[dict[str, Any]]:
    """The options of an S3 server in this process."""
    for module in ("s3fs", "moto", "flask"):
        pytest.importorskip(module, reason=f"{module} is not installed: S3 is not tried")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield {"endpoint_url": f"http://{host}:{port}", "key": "x", "secret": "x"}
    server.stop()


@pytest.fixture(name="swsdask")
def command_line(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """The command line, in this process: swsdask("score", ...) gives its exit code, stdout and stderr."""

    def call(*arguments: str | Path) -> Outcome:
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """The small evaluation and its run, on disk."""
    made = Files(tmp_path)
    made.write("reference/x.ecf.xml", ECF)
    made.write("reference/x.rttm", RTTM)
    made.write("reference/x.kwlist.xml", QUERIES)
    made.write("first.kwslist.xml", RUN)
    return made
