"""One profile for the property tests: an example may take as long as the kernel that it compiles."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("swsdask", deadline=None)
settings.load_profile("swsdask")
