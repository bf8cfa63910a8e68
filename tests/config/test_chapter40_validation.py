"""Validation of caches and lookup profiles (chapter 40 sections 2, 3.3 and 3.4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conduit.config import load_text
from conduit.config.quantities import parse_byte_size, parse_duration_ms
from conduit.config.validate_cache import PROBE_NAME
from tests.config.support import MINIMAL, extend, extend_errors, has

pytestmark = pytest.mark.usefixtures("with_lmdb")


@pytest.mark.parametrize(
    ("caches", "fragment"),
    [
        ("{name: '', type: memory}", "caches[0]: name must not be empty"),
        ("{name: c, type: memory}, {name: c, type: memory}", "duplicate cache name 'c'"),
        ("{name: c, type: redis}", "type 'redis' must be memory or lmdb (ebpf_map is reserved)"),
        ("{name: c, type: ebpf_map}", "caches[0]: type 'ebpf_map' must be"),
        ("{name: c, type: lmdb}", "requires an lmdb block"),
        (
            "{name: c, type: memory, lmdb: {path: /tmp, map_size: 1GB}}",
            "caches[0]: lmdb block is not allowed",
        ),
        ("{name: c, type: memory, memory: {shard_count: 0}}", "memory.shard_count must be at le"),
        ("{name: c, type: memory, memory: {eviction: lru}}", "memory.eviction 'lru'"),
        ("{name: c, type: memory, on_hit: {response_rules: x}}", "on_hit.response_rules 'x'"),
        ("{name: c, type: memory, truncated_udp: {enabled: true}}", "truncated_udp.ttl_secs"),
        (
            "{name: c, type: memory, truncated_udp: {enabled: true, ttl_secs: 0}}",
            "truncated_udp.ttl_secs",
        ),
        ("{name: c, type: lmdb, lmdb: {path: '', map_size: 1GB}}", "lmdb.path must not be empty"),
        ("{name: c, type: lmdb, lmdb: {path: '', map_size: 1, when_full: x}}", "when_full 'x'"),
        (
            "{name: c, type: lmdb, lmdb: {path: '', map_size: 1, when_full: sample, "
            "sample_size: 0}}",
            "lmdb.sample_size",
        ),
        (
            "{name: c, type: lmdb, lmdb: {path: '', map_size: 1, shard_count: 0}}",
            "lmdb.shard_count",
        ),
        ("{name: c, type: lmdb, lmdb: {path: '', map_size: 1, sync: x}}", "lmdb.sync 'x'"),
        (
            "{name: c, type: lmdb, lmdb: {path: '', map_size: 1, sync_interval: 1s}}",
            "lmdb.sync_interval is only valid with sync: periodic",
        ),
        (
            "{name: c, type: lmdb, lmdb: {path: '', map_size: 1, sync: periodic, "
            "sync_interval: 0s}}",
            "lmdb.sync_interval must be > 0",
        ),
    ],
)
def test_caches_rejected(caches: str, fragment: str) -> None:
    assert has(extend_errors(f"caches: [{caches}]\n"), fragment)


@pytest.mark.parametrize(
    ("profiles", "fragment"),
    [
        ("{default: {providers: []}}", "lookup.profiles.default.providers must have at least one"),
        ("{'': {providers: [{type: forward}]}}", "profile name must not be empty"),
        ("{a: {providers: [{type: disk}]}}", "lookup.profiles.a.providers[0]: provider type"),
        ("{a: {providers: [{type: ''}]}}", "must be cache or forward"),
        ("{a: {providers: [{type: cache}]}}", "requires cache instance name"),
        ("{a: {providers: [{type: cache, cache: x}]}}", "unknown cache instance 'x'"),
    ],
)
def test_profiles_rejected(profiles: str, fragment: str) -> None:
    text = f"lookup: {{profiles: {profiles}}}\ncaches: [{{name: c, type: memory}}]\n"
    assert has(extend_errors(text), fragment)


def test_profile_without_any_cache() -> None:
    text = "lookup: {profiles: {default: {providers: [{type: ' cache ', cache: x}]}}}\n"
    assert has(extend_errors(text), "caches list is empty")


def test_provider_types_are_trimmed() -> None:
    lookup = extend("lookup: {profiles: {default: {providers: [{type: ' forward '}]}}}\n").lookup
    assert lookup is not None
    assert list(lookup.profiles) == ["default"]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1024", 1024),
        (" 7KB ", 7000),
        ("4.5GB", 4_500_000_000),
        ("1.9999kb", 1999),
        (".5mb", 500_000),
        ("1PB", 10**15),
        (str(2**64 - 1), 2**64 - 1),
    ],
)
def test_byte_sizes(text: str, size: int) -> None:
    assert parse_byte_size(text) == size


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("", "must not be empty"),
        ("4GiB", "IEC"),
        ("4pib", "IEC"),
        ("4G", "unknown suffix"),
        ("4 GB", "unknown suffix"),
        ("-1", "non-negative"),
        ("infGB", "non-negative"),
        ("1.5", "needs a suffix"),
        (str(2**64), "above"),
        ("99999PB", "above"),
        ("9" * 100, "too long"),
    ],
)
def test_byte_sizes_rejected(text: str, fragment: str) -> None:
    with pytest.raises(ValueError, match=fragment):
        parse_byte_size(text)


def test_sizes_outside_64_bits() -> None:
    for number in (-1, 2**64):
        with pytest.raises(ValueError, match="must be from 0"):
            parse_byte_size(number)


@pytest.mark.parametrize(("text", "ms"), [("250ms", 250), (" 1S ", 1000), ("0ms", 0), ("2Ms", 2)])
def test_durations(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "250", "1.5s", "1 s", "1m", "-1s", "+1s", "s", "1" * 50 + "s"]
)
def test_durations_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="must include an ms or s unit"):
        parse_duration_ms(text)


def lmdb_at(path: str) -> str:
    return f"caches: [{{name: c, type: lmdb, lmdb: {{path: '{path}', map_size: 1MB}}}}]\n"


def test_preflight_leaves_nothing_behind(tmp_path: Path) -> None:
    extend(lmdb_at(str(tmp_path)))
    extend(lmdb_at(str(tmp_path / "not" / "yet")))
    assert os.listdir(tmp_path) == []


def test_preflight_refuses_what_is_no_writable_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert has(extend_errors(lmdb_at(str(file))), "lmdb.path", "must be a directory")
    assert has(extend_errors(lmdb_at(str(file / "below"))), "lmdb.path", "must be a directory")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    assert has(extend_errors(lmdb_at(str(locked))), "lmdb.path", "is read-only")


def test_preflight_does_not_follow_a_planted_link(tmp_path: Path) -> None:
    target = tmp_path / "target"
    store = tmp_path / "store"
    store.mkdir()
    (store / PROBE_NAME).symlink_to(target)
    assert has(extend_errors(lmdb_at(str(store))), "lmdb.path", "is not writable")
    assert not target.exists()


def test_relative_path_is_taken_from_the_file_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a directory")
    loaded = load_text(MINIMAL + lmdb_at("elsewhere"), str(tmp_path / "c.yaml"))
    assert [w.code for w in loaded.warnings] == ["relative-path"]
    with pytest.raises(Exception, match="must be a directory"):
        load_text(MINIMAL + lmdb_at("store"), str(tmp_path / "c.yaml"))


def test_two_instances_in_one_directory(tmp_path: Path) -> None:
    entry = "{name: %s, type: lmdb, lmdb: {path: '%s', map_size: 1MB}}"
    text = f"caches: [{entry % ('a', tmp_path)}, {entry % ('b', f'{tmp_path}/.')}]\n"
    assert has(extend_errors(text), "caches[1]", "is already used by caches[0]")
