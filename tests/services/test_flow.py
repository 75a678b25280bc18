"""Everything is read from real stores and written there, to the same bits as here."""

from __future__ import annotations

from uuid import uuid4

from tests.services.stores import Store
from tests.small_evaluation import Files
from tests.whole_flow import Call, flow


def test_the_same_here_and_there(swsdask: Call, files: Files, store: Store) -> None:
    flow(swsdask, files, f"{store.root}/{uuid4().hex}")
