"""Connections of one event loop, all of them with TLS."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress

import pytest

from swsdask.execution import encryption
from swsdask.execution.clusters import RunningAt
from swsdask.execution.encryption import Encryption


def connected(keys: Encryption, *, handshake: bool = True) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    """A scheduler's end and a client's, which never wait."""
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    listening = keys.get_listen_args("scheduler")["ssl_context"]
    connecting = keys.get_connection_args("client")["ssl_context"]
    scheduler = listening.wrap_socket(ends[0], server_side=True, do_handshake_on_connect=False)
    client = connecting.wrap_socket(ends[1], do_handshake_on_connect=False)
    for _ in range(3 * handshake):
        for end in (client, scheduler):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    return scheduler, client


def test_a_connection_that_breaks_leaves_others_alone() -> None:
    """It did not where OpenSSL is 3.4 or newer: one lost worker took along the client."""
    keys = Encryption.temporary()
    lost, lost_client = connected(keys)
    sound, sound_client = connected(keys)
    lost_client.close()
    for _ in range(3):
        for touch in (lambda: lost.recv(10), lambda: lost.send(b"task")):
            with suppress(OSError):
                touch()
            with pytest.raises(ssl.SSLWantReadError):
                sound.recv(10)
    sound_client.send(b"result")
    assert sound.recv(10) == b"result"
    for end in (lost, sound, sound_client):
        end.close()


@pytest.mark.parametrize("error", [BrokenPipeError(), ssl.SSLWantReadError()])
def test_errors_of_the_system_are_cleared(error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever OpenSSL is here. Clearing what is no such error would cost time with every read."""
    cleared: list[None] = []
    monkeypatch.setattr(encryption, "_clear", lambda: cleared.append(None))

    def fails(*_: object) -> None:
        raise error

    for name in ("read", "send", "do_handshake"):
        monkeypatch.setattr(ssl.SSLSocket, name, fails)
    ends = connected(Encryption.temporary(), handshake=False)
    for touch in (lambda: ends[0].recv(1), lambda: ends[1].send(b"x"), lambda: ends[1].do_handshake()):
        with pytest.raises(type(error)):
            touch()
    assert len(cleared) == 3 * isinstance(error, BrokenPipeError)
    for end in ends:
        end.close()


def test_a_connection_with_keys_of_the_user_is_of_this_kind() -> None:
    assert isinstance(RunningAt(address="tcp://127.0.0.1:8786")._keys("tcp://127.0.0.1:8786"), Encryption)


def test_without_keys_there_is_no_encryption() -> None:
    keys = Encryption()
    assert keys.get_connection_args("client")["ssl_context"] is None
    assert keys.get_listen_args("scheduler")["ssl_context"] is None
