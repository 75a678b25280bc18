"""TLS connections of Dask that do not break when another connection breaks.

Until CPython clears OpenSSL's errors itself (its issue 148594), a connection that breaks during a write leaves an error
in the queue of the thread. The next connection that the thread reads treats that error as its own, and closes. So with
OpenSSL 3.4 or newer, one lost worker would disconnect the client or a second worker.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from distributed.security import Security


class Encryption(Security):
    """Dask's keys. Connections with them leave no OpenSSL error behind."""

    def get_connection_args(self, role: str) -> dict[str, Any]:
        """Return the arguments of connecting as `role`."""
        return _clearing(Security.get_connection_args(self, role))

    def get_listen_args(self, role: str) -> dict[str, Any]:
        """Return the arguments of listening as `role`."""
        return _clearing(Security.get_listen_args(self, role))


def _clearing(arguments: dict[str, Any]) -> dict[str, Any]:
    if (context := arguments.get("ssl_context")) is not None:
        context.sslsocket_class = _Clearing
    return arguments


class _Clearing(ssl.SSLSocket):
    """A socket that clears OpenSSL's errors after system errors, which Python leaves in the queue."""

    def do_handshake(self, block: bool = False) -> None:
        with _clear_errors():
            super().do_handshake(block)

    def read(self, *arguments: Any) -> Any:
        with _clear_errors():
            return super().read(*arguments)

    def send(self, data: Any, flags: int = 0) -> int:
        with _clear_errors():
            return super().send(data, flags)


@contextmanager
def _clear_errors() -> Iterator[None]:
    try:
        yield
    except ssl.SSLError:  # already cleared by Python; it mostly means that there is nothing to read yet
        raise
    except OSError:
        _clear()
        raise


def _clear() -> None:
    """Clear OpenSSL's errors of this thread. In Python, a failing setting does this."""
    with suppress(ssl.SSLError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers("none of this name")
