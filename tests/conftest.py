"""Profiles of the property tests. An example may take as long as the kernel that it compiles, so there is no deadline.

`swsdask` tries the same examples in every run; `fuzz` tries others in each, by the seed it is given (`make fuzz`).
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("swsdask", derandomize=True, deadline=None, database=None)
settings.register_profile("fuzz", derandomize=False, deadline=None, database=None, max_examples=1000, print_blob=True)
settings.load_profile("swsdask")
