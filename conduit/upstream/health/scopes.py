"""Operator scopes: global, pool, backend; the most specific setting wins (chapter 60, 13)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Key = tuple[str, str]


class ScopeLevel(Enum):
    """Where an operator control acts."""

    GLOBAL = "global"
    POOL = "pool"
    BACKEND = "backend"


class ControlAction(Enum):
    """What an operator control does."""

    FREEZE = "freeze"
    SET_UP = "set_up"
    SET_DOWN = "set_down"
    RESUME_AUTOMATIC = "resume_automatic"


class ScopeError(ValueError):
    """The scope names nothing that health knows; the text says what."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A level with the pool and the backend (name or address) that it needs."""

    level: ScopeLevel
    pool: str | None = None
    backend: str | None = None


class ScopeSettings:
    """The settings of all levels; they survive reloads and are lost on restart."""

    __slots__ = ("_backends", "_global_frozen", "_pools")

    def __init__(self) -> None:
        self._global_frozen = False
        self._pools: dict[str, bool] = {}
        self._backends: dict[Key, bool] = {}

    def frozen(self, key: Key) -> bool:
        """Resolve one backend: its own setting, else its pool's, else the global one."""
        own = self._backends.get(key)
        if own is not None:
            return own
        return self._pools.get(key[0], self._global_frozen)

    def set(self, level: ScopeLevel, pool: str | None, key: Key | None, frozen: bool) -> None:
        """Store a setting at one level; `key` is needed for a backend, `pool` for a pool."""
        if level is ScopeLevel.GLOBAL:
            self._global_frozen = frozen
        elif level is ScopeLevel.POOL:
            assert pool is not None
            self._pools[pool] = frozen
        else:
            assert key is not None
            self._backends[key] = frozen
