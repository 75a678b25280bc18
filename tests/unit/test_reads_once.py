"""Runs and references are opened once and read once: recognised, decoded and hashed from one stream."""

from __future__ import annotations

import gzip
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import swsdask as sws
from swsdask.formats.files import open_bytes, open_once
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN

LONG = RUN.replace(
    "</kwslist>",
    "".join(
        f'<detected_kwlist kwid="K3" search_time="1" oov_count="0">\n<kw file="a" channel="1" tbeg="{n / 100}" '
        f'dur="0.1" score="0.{n}" decision="NO"/>\n</detected_kwlist>\n'
        for n in range(20_000)
    )
    + "</kwslist>",
)
TABLE = "query\tdocument\tstart\tduration\tscore\tdecision\n" + "K1\ta\t1.1\t0.8\t0.9\tYES\n" * 30_000


class Counting(MemoryFileSystem):
    """Files in memory, and what is opened and read of them."""

    protocol = "counting"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    opened: ClassVar[Counter[str]] = Counter()
    read: ClassVar[Counter[str]] = Counter()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return MemoryFileSystem._strip_protocol(path.removeprefix("counting://"))  # type: ignore[no-any-return]

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        file = super()._open(path, mode, **more)
        name = path.rsplit("/", 1)[-1]
        if mode != "rb":
            return file
        self.opened[name] += 1
        plain = file.read

        def read(size: int = -1) -> bytes:
            data: bytes = plain(size)
            self.read[name] += len(data)
            return data

        file.read = read
        return file


@pytest.fixture
def counting() -> Iterator[Counting]:
    fsspec.register_implementation("counting", Counting, clobber=True)
    filesystem = Counting()
    yield filesystem
    filesystem.store.clear()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("long.kwslist.xml", LONG.encode()),
        ("long.kwslist.xml.gz", gzip.compress(LONG.encode())),
        ("table.tsv", TABLE.encode()),
        ("short.kwslist.xml", RUN.encode()),
    ],
)
def test_each_file_is_opened_and_read_once(counting: Counting, name: str, content: bytes) -> None:
    files = {"x.ecf.xml": ECF.encode(), "x.rttm": RTTM.encode(), "x.kwlist.xml": QUERIES.encode(), name: content}
    for place, each in files.items():
        counting.pipe_file(f"/{place}", each)
    counting.opened.clear()
    counting.read.clear()
    names = {role: f"counting://x.{end}" for role, end in (("ecf", "ecf.xml"), ("rttm", "rttm"))}
    evaluation = sws.open(**names, queries="counting://x.kwlist.xml")
    sws.score(evaluation, "mtwv", runs=f"counting://{name}")
    assert counting.opened[name] == 1
    assert counting.read[name] == len(content)
    assert {place: counting.read[place] for place in ("x.ecf.xml", "x.rttm")} == {
        "x.ecf.xml": len(ECF),
        "x.rttm": len(RTTM),
    }
    assert counting.opened["x.ecf.xml"] == counting.opened["x.rttm"] == 1


def test_another_process_opens_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"some text")
    with open_once(str(path)) as once:
        sent = pickle.loads(pickle.dumps(once))
        with open_bytes(once) as one, open_bytes(once) as other:
            assert (one.read(4), other.read(), one.read()) == (b"some", b"some text", b" text")
    assert type(sent) is str
    assert sent == once == str(path)
    with open_bytes(once) as later:
        assert later.read() == b"some text"
