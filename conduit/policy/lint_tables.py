"""Lint of data sources: tables that nothing reads; and which names the script files mention.

A script reads a table or sets a pool by name, so a name that stands in no script text is used by
no script. A name that does occur may still be unused: the linter then stays silent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from conduit.config import Config
from conduit.policy.lint_finding import Finding

_MAX_SCRIPT_BYTES = 1_048_576


class ScriptTexts:
    """The text of every script that rules name, each file read once."""

    __slots__ = ("_complete", "_texts", "any")

    def __init__(self, config: Config, base_dir: str) -> None:
        paths = {
            action.value
            for rule in config.rules.rules
            for action in rule.actions
            if action.type == "rhai"
        }
        #: True when the configuration has script actions.
        self.any = bool(paths)
        self._complete = True
        self._texts: list[str] = []
        for path in sorted(paths):
            text = _read(os.path.join(base_dir, path))
            if text is None:
                self._complete = False
            else:
                self._texts.append(text)

    def may_name(self, name: str) -> bool:
        """True when a script may use `name`: it occurs in a text, or a file was not readable."""
        return not self._complete or any(name in text for text in self._texts)


def _read(path: str) -> str | None:
    try:
        # a pipe would block here
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            content = file.read(_MAX_SCRIPT_BYTES + 1)
    except (OSError, ValueError):
        return None
    return content.decode("utf-8", "replace") if len(content) <= _MAX_SCRIPT_BYTES else None


def table_findings(config: Config, scripts: ScriptTexts) -> Iterator[Finding]:
    """Yield the tables that no ACL, no `client_cidr` selector and no script names."""
    used = {
        selector.value
        for rule in config.rules.rules
        for selector in rule.selectors
        if selector.type == "client_cidr"
    }
    for acls in (config.acls, *(entry.acls for entry in config.listeners.listeners)):
        if acls is not None:
            used.update(rule.match for rule in acls.rules)
    for index, source in enumerate(config.data_sources):
        if source.name in used or scripts.may_name(source.name):
            continue
        readers = (
            "client_cidr selector, ACL or script"
            if source.type == "cidr"
            else "script (only scripts read csv tables)"
        )
        yield Finding(
            ("data_sources", index, "name"),
            f"table '{source.name}' is loaded and never used: it is named by no {readers}",
            "table-unused",
        )
