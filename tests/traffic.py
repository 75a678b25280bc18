"""A proxy before a store: it counts requests and bytes, and delays every answer as a distant store would."""

from __future__ import annotations

import asyncio
import re
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue

_BLOCK = 1 << 18
_EXPECT = re.compile(rb"Expect: 100-continue\r\n", re.IGNORECASE)


@dataclass(frozen=True)
class Request:
    """A request that was answered: its method and path, and the bytes of the answer, if their number was said."""

    method: str
    path: str
    down: int


@dataclass
class Traffic:
    """The address that counts, and what was requested there; every answer begins `delay_s` late.

    `most_at_once` is the largest number of requests that waited for their answers at one moment, `in_sequence` the
    length of the longest chain of requests of which each was made after the one before had been answered, whether it
    had to wait for that or not.
    """

    target: str
    delay_s: float = 0.0
    address: str = ""
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0
    in_sequence: int = 0
    waiting: int = 0

    def of(self, part: str) -> list[Request]:
        """The requests for what has `part` in its path."""
        return [each for each in self.requests if part in each.path]

    async def serve(self, from_client: StreamReader, to_client: StreamWriter) -> None:
        """Pass on the requests of one connection until it ends."""
        host, _, port = self.target.removeprefix("http://").rpartition(":")
        from_store, to_store = await asyncio.open_connection(host, int(port))
        try:
            while True:
                head = await from_client.readuntil(b"\r\n\r\n")
                to_store.write(_EXPECT.sub(b"", head))
                if _EXPECT.search(head):
                    to_client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await _body(from_client, to_store, _fields(head))
                self.waiting += 1
                place = self.in_sequence + 1
                self.most_at_once = max(self.most_at_once, self.waiting)
                answer = await from_store.readuntil(b"\r\n\r\n")
                await asyncio.sleep(self.delay_s)
                self.waiting -= 1
                self.in_sequence = max(self.in_sequence, place)
                method, path, _ = head.decode("latin1").split(" ", 2)
                fields = _fields(answer)
                if method == "HEAD" or answer.split(b" ", 2)[1] in (b"204", b"304"):
                    fields = {}
                self.requests.append(Request(method, path, int(fields.get("content-length", 0))))
                to_client.write(answer)
                await _body(from_store, to_client, fields)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            to_store.close()
            to_client.close()


@contextmanager
def traffic(target: str, delay_s: float = 0.0) -> Iterator[Traffic]:
    """Run a proxy before the server at an address, in a thread of its own."""
    seen = Traffic(target, delay_s)
    started: SimpleQueue[Callable[[], object]] = SimpleQueue()

    async def run() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(seen.serve, "127.0.0.1", 0, limit=1 << 20)
        seen.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.put(lambda: loop.call_soon_threadsafe(ended.set))
        await ended.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    end = started.get()
    try:
        yield seen
    finally:
        end()
        thread.join()


def _fields(head: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in head.decode("latin1").split("\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in lines}


async def _body(reader: StreamReader, writer: StreamWriter, fields: dict[str, str]) -> None:
    """Pass on a body."""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        size = -1
        while size:
            line = await reader.readline()
            size = int(line.split(b";")[0], 16)
            writer.write(line + await reader.readexactly(size + 2))
    left = int(fields.get("content-length", 0))
    while left:
        block = await reader.read(min(left, _BLOCK))
        if not block:
            raise ConnectionError
        writer.write(block)
        await writer.drain()
        left -= len(block)
    await writer.drain()
