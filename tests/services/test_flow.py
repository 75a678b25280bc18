"""Everything is read from real stores and written there, to the same bits as here."""

from __future__ import annotations

from uuid import uuid4

from tests.cli.conftest import Files, files, swsdask
from tests.services.stores import Store
from tests.whole_flow import Call, flow

__all__ = ["files", "swsdask"]


def test_the_same_here_and_there(swsdask: Call, files: Files, store: Store) -> None:
    flow(swsdask, files, f"{store.root}/{uuid4().hex}")
