"""The settings of one call of `conduitctl`: flag, environment, client file, built-in.

Chapter 60 sections 9.1 and 9.2.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from conduit.cli.ctl.client_file import ClientFile, client_file_path, load_client_file
from conduit.cli.ctl.errors import CtlError

DEFAULT_ENDPOINT: Final = "http://127.0.0.1:5199"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SWITCHES: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


@dataclass(frozen=True)
class Settings:
    """Where the control plane is and how to reach it; `api_key` is the secret itself."""

    endpoint: str
    api_key: str | None = field(default=None, repr=False)
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_insecure: bool = False

    @property
    def target(self) -> Target:
        """The endpoint in parts; raises CtlError when it is none."""
        return parse_endpoint(self.endpoint)


@dataclass(frozen=True)
class Target:
    """An endpoint: TLS or not, host without brackets, port."""

    tls: bool
    host: str
    port: int

    @property
    def authority(self) -> str:
        """`host:port`, an IPv6 address in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_endpoint(endpoint: str) -> Target:
    """Return the parts of an endpoint URL; raises CtlError."""
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise CtlError(f'invalid control endpoint "{endpoint}": {error}') from error
    scheme = parts.scheme if "://" in endpoint else ""
    if scheme not in _DEFAULT_PORTS:
        raise CtlError(f'unsupported control endpoint scheme "{scheme}"; use http:// or https://')
    if not host or parts.username is not None:
        raise CtlError(f'invalid control endpoint "{endpoint}": expected {scheme}://host:port')
    return Target(scheme == "https", host, port or _DEFAULT_PORTS[scheme])


def resolve(options: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings for the global options that were given.

    Raises CtlError for a malformed client file or an unreadable key file.
    """
    variables = os.environ if environment is None else environment
    path = client_file_path(options.get("config"), variables)
    file = load_client_file(path, variables)

    def first(option: str, variable: str, other: str | None) -> str | None:
        return options.get(option) or variables.get(variable) or other or None

    # an endpoint is trimmed where it comes from the environment
    endpoint = options.get("endpoint") or variables.get("CONDUIT_CONTROL", "").strip()
    insecure = _SWITCHES.get(variables.get("CONDUIT_TLS_INSECURE", "").strip().lower())
    if insecure is None:
        insecure = bool(file.tls_insecure)
    return Settings(
        endpoint=endpoint or file.endpoint or DEFAULT_ENDPOINT,
        api_key=_api_key(options, variables, file),
        tls_ca=first("tls_ca", "CONDUIT_TLS_CA", file.tls_ca),
        tls_cert=first("tls_cert", "CONDUIT_TLS_CERT", file.tls_cert),
        tls_key=first("tls_key", "CONDUIT_TLS_KEY", file.tls_key),
        tls_insecure=bool(options.get("tls_insecure")) or insecure,
    )


def _api_key(
    options: Mapping[str, Any], variables: Mapping[str, str], file: ClientFile
) -> str | None:
    """Return the key: inline by flag or variable, then files, then the client file's own."""
    inline = options.get("api_key") or variables.get("CONDUIT_API_KEY", "").strip()
    if inline:
        return str(inline)
    path = (
        options.get("api_key_file")
        or variables.get("CONDUIT_API_KEY_FILE", "").strip()
        or file.api_key_file
    )
    return _key_from(str(path)) if path else file.api_key


def _key_from(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            key = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise CtlError(f'reading API key file "{path}": {reason}') from error
    if not key:
        raise CtlError(f'API key file "{path}" is empty')
    return key
