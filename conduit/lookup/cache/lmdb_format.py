"""The names inside an LMDB environment, and the check that an existing file is ours and whole.

The check opens the file for reading alone, so what is refused stays untouched (chapter 40 section
7.2).
"""

from __future__ import annotations

import importlib
import os
from typing import Final

from conduit.lookup.cache.errors import CacheError

#: Named databases.
META: Final = b"conduit_meta"
ENTRIES: Final = b"conduit_entries"
#: The key of META that holds the format, and the one value that is understood.
FORMAT: Final = b"format"
FORMAT_VALUE: Final = b"CDCL" + (1).to_bytes(4, "little")

_ADVICE: Final = "Move or delete the files to start empty"


def data_file(path: str, legacy: bool) -> str:
    """The file that holds the pages; `legacy` environments are directories."""
    return os.path.join(path, "data.mdb") if legacy else path


def refuse_foreign(path: str, legacy: bool) -> None:
    """Return when the environment at `path` is absent, empty, or an intact one of ours.

    Raises CacheError for a file of something else, of another format, or cut short, and
    lmdb.Error for one that is no LMDB file.
    """
    file = data_file(path, legacy)
    if not os.path.exists(file) or not os.path.getsize(file):
        return
    lmdb = importlib.import_module("lmdb")
    env = lmdb.open(path, subdir=legacy, readonly=True, create=False, lock=False, max_dbs=2)
    try:
        size = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
        if os.path.getsize(file) < size:
            raise CacheError(f"LMDB cache file {file} is cut short. {_ADVICE}")
        with env.begin() as txn, txn.cursor() as cursor:
            names = list(cursor.iternext(values=False))
        if any(name not in (META, ENTRIES) for name in names):
            raise CacheError(f"LMDB file {file} belongs to something else. {_ADVICE}")
        found = None
        if META in names:
            meta = env.open_db(META, create=False)
            with env.begin(db=meta) as txn:
                found = txn.get(FORMAT)
        if found is not None and found != FORMAT_VALUE:
            raise CacheError(
                f"LMDB cache file {file} has format {found.hex()}, not {FORMAT_VALUE.hex()}. "
                f"{_ADVICE}"
            )
    finally:
        env.close()
