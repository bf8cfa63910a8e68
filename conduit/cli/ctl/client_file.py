"""The client configuration file of `conduitctl`: where it is and what it says (chapter 60, 9.2)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from conduit.cli.ctl.errors import CtlError

#: What a scalar is written as when it is unset.
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True)
class ClientFile:
    """What a client file sets; None is not set."""

    endpoint: str | None = None
    api_key: str | None = None
    api_key_file: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_insecure: bool | None = None


def client_file_path(option: str | None, environment: Mapping[str, str]) -> str:
    """Return the path of the client file: the first place that is named."""
    if option:
        return option
    if named := environment.get("CONDUITCTL_CONFIG"):
        return named
    for variable, *parts in (
        ("XDG_CONFIG_HOME",),
        ("HOME", ".config"),
        ("APPDATA",),
    ):
        if folder := environment.get(variable):
            return os.path.join(folder, *parts, "conduit", "conduitctl.yaml")
    return os.path.join(".", "conduitctl.yaml")


def load_client_file(path: str, environment: Mapping[str, str]) -> ClientFile:
    """Return what the file at `path` sets; a missing file sets nothing.

    Raises CtlError for a file that cannot be read or is malformed.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ClientFile()
    except (OSError, UnicodeDecodeError) as error:
        raise CtlError(f'reading client config "{path}": {_reason(error)}') from error
    import yaml

    try:
        # every scalar stays the text that it was written as: a key of digits is a text too
        root = yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise CtlError(f'client config "{path}": {" ".join(str(error).split())}') from error
    reader = _Reader(path, environment)
    top = reader.mapping(root, "the document")
    tls = reader.mapping(top.get("tls"), "tls")
    return ClientFile(
        endpoint=reader.text(top, "endpoint"),
        api_key=reader.text(top, "api_key"),
        api_key_file=reader.path(top, "api_key_file"),
        tls_ca=reader.path(tls, "ca", "tls."),
        tls_cert=reader.path(tls, "cert", "tls."),
        tls_key=reader.path(tls, "key", "tls."),
        tls_insecure=reader.boolean(tls, "insecure_skip_verify", "tls."),
    )


class _Reader:
    """Takes typed values out of a document; each method raises CtlError for a wrong type."""

    def __init__(self, path: str, environment: Mapping[str, str]) -> None:
        self._path = path
        self._environment = environment

    def mapping(self, value: Any, name: str) -> Mapping[str, Any]:
        if value is None or (isinstance(value, str) and value in _NULLS):
            return {}
        if not isinstance(value, Mapping):
            raise self._error(name, "a mapping")
        return value

    def text(self, block: Mapping[str, Any], key: str, prefix: str = "") -> str | None:
        value = block.get(key, "")
        if not isinstance(value, str):
            raise self._error(f"{prefix}{key}", "a text")
        return None if value in _NULLS else value

    def path(self, block: Mapping[str, Any], key: str, prefix: str = "") -> str | None:
        value = self.text(block, key, prefix)
        home = self._environment.get("HOME")
        if value is not None and value.startswith("~/") and home:
            return os.path.join(home, value[2:])
        return value

    def boolean(self, block: Mapping[str, Any], key: str, prefix: str = "") -> bool | None:
        value = self.text(block, key, prefix)
        if value is None:
            return None
        if value not in _BOOLEANS:
            raise self._error(f"{prefix}{key}", "true or false")
        return _BOOLEANS[value]

    def _error(self, name: str, expected: str) -> CtlError:
        return CtlError(f'client config "{self._path}": {name}: expected {expected}')


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "not UTF-8 text"
