"""Where a server is and how it is reached: `mysql://user:password@host:3306/?ssl-mode=verify_ca&ssl-ca=FILE`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tailrace.errors import DefiniteError

SCHEMES = ("mysql", "mariadb")
SSL_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_OPTIONS = ("ssl-mode", "ssl-ca", "ssl-cert", "ssl-key")
_PORT = 3306
_EXAMPLE = "it looks like mysql://user:password@host:3306/"


@dataclass(frozen=True)
class ServerAddress:
    """A parsed connection string. Its text has no password."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    options: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def arguments(self) -> dict[str, Any]:
        """For the driver."""
        mode = self.options.get("ssl-mode", "preferred")
        files: dict[str, Any] = {
            name.replace("-", "_"): self.options[name] for name in _OPTIONS[1:] if name in self.options
        }
        found: dict[str, Any] = {"host": self.host, "port": self.port, "user": self.user, "password": self.password}
        if mode == "disabled":
            return found | {"ssl_disabled": True}
        if mode == "required" and not files:
            return found | {"ssl": {"check_hostname": False, "verify_mode": "none"}}
        if mode in ("verify_ca", "verify_identity"):
            files |= {"ssl_verify_cert": True, "ssl_verify_identity": mode == "verify_identity"}
        return found | files


def parse_address(dsn: str) -> ServerAddress:
    """A definite error, without the password in it, for what is no address of a server."""
    try:
        parts = urlsplit(dsn)
        port = parts.port or _PORT
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise DefiniteError("the connection string cannot be read", _EXAMPLE) from None
    if parts.scheme.lower() not in SCHEMES or not parts.hostname or not parts.username:
        raise DefiniteError("the connection string needs a scheme, a user and a host", _EXAMPLE)
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise DefiniteError(f"the connection string has an unknown option {unknown[0]}", f"known: {_OPTIONS}")
    if options.get("ssl-mode", "preferred") not in SSL_MODES:
        raise DefiniteError(f"{options['ssl-mode']!r} is no ssl-mode", f"one of {', '.join(SSL_MODES)}")
    user, password = unquote(parts.username), unquote(parts.password or "")
    return ServerAddress(parts.hostname, port, user, password, options)
