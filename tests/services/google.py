"""An emulator of Google Cloud Storage with the one condition that it lacks: an object is made only if there is none.

`python -m tests.services.google PORT`
"""

from __future__ import annotations

import sys
from http import HTTPStatus
from threading import Lock
from typing import Any

from gcp_storage_emulator import server
from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.handlers import objects

_one_at_a_time = Lock()
_upload = objects._multipart_upload


def _upload_if_allowed(request: Any, response: Any, storage: Any) -> Any:
    with _one_at_a_time:
        if request.query.get("ifGenerationMatch") == ["0"] and _is_there(request, storage):
            response.status = HTTPStatus.PRECONDITION_FAILED
            return response.json({"error": {"code": 412, "message": "conditionNotMet"}})
        return _upload(request, response, storage)


def _is_there(request: Any, storage: Any) -> bool:
    try:
        storage.get_file_obj(request.params["bucket_name"], request.data["meta"]["name"])
    except NotFound:
        return False
    return True


if __name__ == "__main__":
    objects._multipart_upload = _upload_if_allowed
    server.create_server("127.0.0.1", int(sys.argv[1]), in_memory=True).run()
