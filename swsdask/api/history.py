"""The history of nights as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swsdask.archive.nights import read_history
from swsdask.archive.storage import Storage
from swsdask.archive.store import is_archive
from swsdask.model.errors import ArchiveError
from swsdask.model.name_columns import decoded
from swsdask.model.tables import LateImport
from swsdask.places.reading import Location, as_path

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")


def history(archive: Location) -> pd.DataFrame:
    """Return the history that `swsdask nightly` keeps in an archive.

    Parameters
    ----------
    archive : path or URL
        The archive.

    Returns
    -------
    pandas.DataFrame
        One row per number over all queries of a system that a night scored: night, date, version (of the archive),
        system, content, signature, condition, measure, value. Without nights it has no rows.

    Raises
    ------
    ArchiveError
        There is no archive, or a night is missing or damaged.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> len(sws.history("demo/archive"))
    0
    """
    past = read_history(Storage(as_path(archive)))
    if not past.nights and not is_archive(as_path(archive)):
        raise ArchiveError(f"{as_path(archive)}: expected an archive; found none.")
    frame: pd.DataFrame = decoded(past.table).to_pandas()
    return frame
