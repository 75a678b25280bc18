"""Compiled templates, which are kept as Python keeps modules.

A template is compiled once and kept beside the templates, where that folder can be written: to compile it takes longer
than to fill in the report of one system. What is kept is used if it was made from the same template, by these modules,
this jinja and this Python, and is whole.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from swsdask.model.errors import InputError
from swsdask.places.writing import replacing


class Compiled(BytecodeCache):
    """Templates that were compiled, in a folder: a file of each, which begins with a hash of all that it depends on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        beneath = f"{version('jinja2')} {sys.version}\n".encode()
        sources = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("compiled.py", "environment.py"))
        self._maker = hashlib.sha256(beneath + sources).digest()

    def get_cache_key(self, name: str, filename: str | None = None) -> str:  # noqa: ARG002
        """The name of the template."""
        return name

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what is kept, if it is still right."""
        with suppress(OSError):
            content = self._place(bucket).read_bytes()
            size = hashlib.sha256().digest_size
            if content[:size] == self._hash(bucket, content[size:]):
                # Of the package, as its .pyc files are: who can write it can change the package.
                bucket.code = marshal.loads(content[size:])  # nosec B302

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled, where that is possible."""
        code = marshal.dumps(bucket.code)
        if not sys.dont_write_bytecode:
            with suppress(OSError, InputError), replacing(str(self._place(bucket))) as file:
                file.write(self._hash(bucket, code) + code)

    def _place(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}.pyc"

    def _hash(self, bucket: Bucket, code: bytes) -> bytes:
        return hashlib.sha256(self._maker + bucket.checksum.encode() + code).digest()
