"""Fixtures of the configuration tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def with_lmdb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let validation find the optional packages, installed or not."""
    monkeypatch.setattr("conduit.config.validate_cache.missing_extra", lambda module: None)


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let validation find no optional package."""

    def find_spec(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("conduit.config.extras.importlib.util.find_spec", find_spec)
