"""A cache of compiled templates, like Python's cache of modules.

A template is compiled once and kept in the folder of templates, if that can be written, because compiling takes longer
than rendering the report of one system. A cached template is used if it was made from the same template by the same
versions of these modules, jinja and Python, and is complete.
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
    """Compiled templates in a folder, one file each, which begins with a hash of everything that it depends on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        beneath = f"{version('jinja2')} {sys.version}\n".encode()
        sources = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("compiled.py", "environment.py"))
        self._maker = hashlib.sha256(beneath + sources).digest()

    def get_cache_key(self, name: str, filename: str | None = None) -> str:  # noqa: ARG002
        """Return the name of the template."""
        return name

    def load_bytecode(self, bucket: Bucket) -> None:
        """Use the cached template if it is still valid."""
        with suppress(OSError):
            content = self._place(bucket).read_bytes()
            size = hashlib.sha256().digest_size
            if content[:size] == self._hash(bucket, content[size:]):
                # Part of the package, like its .pyc files: anyone who can write it can change the package.
                bucket.code = marshal.loads(content[size:])  # nosec B302

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Cache the compiled template, if possible."""
        code = marshal.dumps(bucket.code)
        if not sys.dont_write_bytecode:
            with suppress(OSError, InputError), replacing(str(self._place(bucket))) as file:
                file.write(self._hash(bucket, code) + code)

    def _place(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}.{sys.implementation.cache_tag}.pyc"

    def _hash(self, bucket: Bucket, code: bytes) -> bytes:
        return hashlib.sha256(self._maker + bucket.checksum.encode() + code).digest()
