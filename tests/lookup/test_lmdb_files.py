"""Opening LMDB stores: layouts, foreign and damaged files, locks, restarts and crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conduit.config.model_policy import LmdbStore as Settings
from conduit.lookup.cache.errors import CacheError
from conduit.lookup.cache.lmdb_files import SIDECAR
from conduit.lookup.cache.lmdb_store import LmdbStore
from conduit.lookup.cache.serve import serve
from tests.lookup.messages import key_of, query, reply, stored, ttls
from tests.lookup.test_lmdb_store import NOW, Opened, fill, held

lmdb = pytest.importorskip("lmdb")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    openings = Opened(tmp_path)
    yield openings
    for store in openings.stores:
        store.close()


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_fresh_store_creates_parents_and_describes_itself(opened: Opened) -> None:
    store = opened("deep/er/cache", shard_count=2)
    directory = opened.directory / "deep/er/cache"
    assert {"shard-0", "shard-1", SIDECAR} <= set(os.listdir(directory))
    described = json.loads((directory / SIDECAR).read_text())
    assert described["version"] == 1
    assert described["shard_count"] == 2
    assert described["generated_by"] == "dnsconduit"
    assert "Do not edit" in described["do_not_edit"]
    assert store.shard_count == 2


def test_ch40_example_30_a_restart_keeps_entries_and_their_age(opened: Opened) -> None:
    asked = query("a.test")
    store = opened()
    answer = reply(asked, ["a.test. 3600 A 192.0.2.1"])
    store.put(key_of(asked), stored(asked, answer, NOW), NOW)
    store.close()
    again = opened()
    assert len(again) == 1
    entry = again.get(key_of(asked), NOW + 60)
    assert entry is not None
    assert ttls(serve(entry, asked, NOW + 60)) == [3540]
    assert again.get(key_of(asked), NOW + 3600) is None


def test_ch40_example_35_another_format_is_refused_and_untouched(opened: Opened) -> None:
    store = opened(shard_count=1)
    fill(store, range(3))
    store.close()
    directory = opened.directory / "cache"
    env = lmdb.open(str(directory / "shard-0"), subdir=False, max_dbs=2)
    with env.begin(write=True) as txn:
        txn.put(
            b"format", b"CDCL" + (99).to_bytes(4, "little"), db=env.open_db(b"conduit_meta", txn)
        )
    env.close()
    before = contents(directory)
    with pytest.raises(CacheError, match="Move or delete"):
        opened()
    assert contents(directory) == before


def test_ch40_example_36_default_shards_and_their_reuse(opened: Opened) -> None:
    store = opened(concurrency=3)
    assert store.shard_count == 6
    store.close()
    assert opened(concurrency=1).shard_count == 6


def test_more_than_64_shards_are_64(opened: Opened) -> None:
    assert opened(concurrency=100, map_size=64 * 200_000).shard_count == 64
    assert opened("other", shard_count=100, map_size=64 * 200_000).shard_count == 64


def test_another_explicit_shard_count_at_opening_starts_empty(opened: Opened) -> None:
    store = opened(shard_count=4)
    fill(store, range(10))
    store.close()
    again = opened(shard_count=2)
    assert (again.shard_count, len(again)) == (2, 0)


def test_ch40_example_37_another_explicit_shard_count_live(opened: Opened) -> None:
    store = opened(shard_count=4)
    fill(store, range(10))
    wanted = Settings(path="unused", map_size=8_000_000, sync="none", shard_count=2)
    assert store.wants_other_layout(wanted)
    assert not store.wants_other_layout(Settings(path="unused", map_size=1))
    fresh = store.open_replacement(wanted, 0)
    opened.stores.append(fresh)
    # the old one serves until the change
    assert held(store, range(10)) == list(range(10))
    fresh.take_place_of(store)
    assert len(fresh) == 0
    directory = opened.directory / "cache"
    assert fresh.path == str(directory)
    assert os.listdir(opened.directory) == ["cache"]
    names = {name for name in os.listdir(directory) if not name.endswith("-lock")}
    assert names == {"shard-0", "shard-1", SIDECAR}
    fill(fresh, range(5))
    # the lock went along
    with pytest.raises(CacheError, match="in use"):
        opened()
    fresh.close()
    assert held(opened(), range(10)) == list(range(5))


def test_leftovers_of_an_interrupted_change_are_removed(opened: Opened) -> None:
    for suffix in ("reopen", "abandoned"):
        leftover = opened.directory / f"cache.conduit-lmdb-{suffix}"
        leftover.mkdir()
        (leftover / "shard-0").write_bytes(b"x")
    opened()
    assert os.listdir(opened.directory) == ["cache"]


def test_ch40_example_38_a_file_as_path_is_refused(opened: Opened) -> None:
    (opened.directory / "cache").write_text("plain")
    with pytest.raises(CacheError, match="must be a directory"):
        opened()


def test_a_second_store_on_one_path_is_refused_in_this_process_and_another(opened: Opened) -> None:
    store = opened(shard_count=1)
    fill(store, range(3))
    with pytest.raises(CacheError, match="in use"):
        opened()
    script = (
        "import sys\n"
        "from conduit.config.model_policy import LmdbStore as Settings\n"
        "from conduit.lookup.cache.errors import CacheError\n"
        "from conduit.lookup.cache.lmdb_store import LmdbStore\n"
        "try:\n"
        "    LmdbStore('g', sys.argv[1], Settings(path='x', map_size=10**6), 0, 1)\n"
        "except CacheError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, store.path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "in use by another process" in done.stdout
    assert held(store, range(3)) == [0, 1, 2]
    store.close()
    assert held(opened(), range(3)) == [0, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "not json",
        "{}",
        '{"version": 2, "shard_count": 1}',
        '{"version": true, "shard_count": 1}',
        '{"version": 1}',
        '{"version": 1, "shard_count": 0}',
        '{"version": 1, "shard_count": 65}',
        '{"version": 1, "shard_count": "1"}',
        '{"version": 1, "shard_count": 2}',
    ],
)
def test_a_sidecar_that_is_unclear_is_refused_and_untouched(opened: Opened, text: str) -> None:
    store = opened(shard_count=1)
    fill(store, range(3))
    store.close()
    directory = opened.directory / "cache"
    (directory / SIDECAR).write_text(text)
    before = contents(directory)
    with pytest.raises(CacheError, match="Move or delete"):
        opened()
    assert contents(directory) == before


def test_unknown_members_of_the_sidecar_are_ignored(opened: Opened) -> None:
    store = opened(shard_count=1)
    fill(store, range(3))
    store.close()
    sidecar = opened.directory / "cache" / SIDECAR
    sidecar.write_text('{"version": 1, "shard_count": 1, "future": [1]}')
    assert held(opened(), range(3)) == [0, 1, 2]


def test_shard_files_without_a_sidecar_are_refused(opened: Opened) -> None:
    store = opened(shard_count=1)
    store.close()
    (opened.directory / "cache" / SIDECAR).unlink()
    with pytest.raises(CacheError, match="Move or delete"):
        opened()


def test_a_directory_of_the_old_layout_is_kept_as_one_shard(opened: Opened) -> None:
    directory = opened.directory / "cache"
    directory.mkdir()
    env = lmdb.open(str(directory), map_size=1_000_000, max_dbs=2)
    asked = query("a.test")
    answer = reply(asked, ["a.test. 3600 A 192.0.2.1"])
    value = NOW.to_bytes(8, "little") + (NOW + 3600).to_bytes(8, "little") + b"\0"
    value += len(answer).to_bytes(4, "little") + answer
    with env.begin(write=True) as txn:
        txn.put(b"format", b"CDCL\1\0\0\0", db=env.open_db(b"conduit_meta", txn))
        txn.put(key_of(asked), value, db=env.open_db(b"conduit_entries", txn))
    env.close()
    store = opened(concurrency=3)
    assert (store.shard_count, len(store)) == (1, 1)
    entry = store.get(key_of(asked), NOW + 60)
    assert entry is not None
    assert ttls(serve(entry, asked, NOW + 60)) == [3540]
    assert SIDECAR not in os.listdir(directory)
    store.close()
    again = opened(shard_count=2)
    assert (again.shard_count, len(again)) == (2, 0)
    assert "data.mdb" not in os.listdir(directory)


@pytest.mark.parametrize("damage", ["noise", "zeros", "cut", "foreign"])
def test_damaged_and_foreign_files_are_refused_and_untouched(opened: Opened, damage: str) -> None:
    store = opened(shard_count=1)
    fill(store, range(100))
    store.close()
    directory = opened.directory / "cache"
    shard = directory / "shard-0"
    size = shard.stat().st_size
    if damage == "noise":
        shard.write_bytes(b"\x5a" * size)
    elif damage == "zeros":
        shard.write_bytes(bytes(size))
    elif damage == "cut":
        os.truncate(shard, size // 2 // 4096 * 4096)
    else:
        shard.unlink()
        env = lmdb.open(str(shard), subdir=False)
        with env.begin(write=True) as txn:
            txn.put(b"somebody", b"else")
        env.close()
    before = contents(directory)
    with pytest.raises(CacheError, match="Move or delete"):
        opened()
    assert contents(directory) == before


def test_an_empty_shard_file_is_a_new_one(opened: Opened) -> None:
    store = opened(shard_count=1)
    store.close()
    shard = opened.directory / "cache" / "shard-0"
    shard.write_bytes(b"")
    again = opened()
    assert all(fill(again, range(3)))


def test_a_wrong_entry_count_is_counted_again(opened: Opened) -> None:
    store = opened(shard_count=1)
    fill(store, range(7))
    store.close()
    env = lmdb.open(str(opened.directory / "cache" / "shard-0"), subdir=False, max_dbs=2)
    with env.begin(write=True) as txn:
        txn.put(b"entry_count", b"odd", db=env.open_db(b"conduit_meta", txn))
    env.close()
    assert len(opened()) == 7


WRITER = """
import sys
from conduit.config.model_policy import LmdbStore as Settings
from conduit.lookup.cache.lmdb_store import LmdbStore
from tests.lookup.messages import key_of, query, reply, stored

store = LmdbStore("g", sys.argv[1], Settings(path="x", map_size=20_000_000, sync=sys.argv[2]), 0, 1)
for number in range(100_000):
    asked = query(f"n{number:05}.test", "TXT")
    answer = reply(asked, [f'n{number:05}.test. 300 TXT "durable"'])
    assert store.put(key_of(asked), stored(asked, answer, int(sys.argv[3])), 0)
    print(number, flush=True)
"""


@pytest.mark.parametrize("sync", ["full", "no_meta"])
def test_sigkill_at_any_moment_loses_nothing_that_was_stored(opened: Opened, sync: str) -> None:
    """What a process reported as stored is there after its death, and the files are whole."""
    path = str(opened.directory / "cache")
    for kill_after in (1, 40):
        command = [sys.executable, "-c", WRITER, path, sync, str(NOW)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
            try:
                assert writer.stdout is not None
                reported = [int(writer.stdout.readline()) for _ in range(kill_after)]
            finally:
                writer.send_signal(signal.SIGKILL)
            reported += [int(line) for line in writer.stdout if line.endswith("\n")]
        store = LmdbStore("g", path, Settings(path="x", map_size=20_000_000), 0, 1)
        try:
            expected = [n for n in reported if n <= reported[-1]]
            assert held(store, range(reported[-1] + 1)) == expected
            assert len(store) >= len(expected)
        finally:
            store.close()
