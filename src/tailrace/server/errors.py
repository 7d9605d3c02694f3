"""Errors of the control plane, each with HTTP's status for it. The supervisor raises them and knows no HTTP."""

from __future__ import annotations

from typing import ClassVar

from tailrace.errors import DefiniteError


class RequestError(DefiniteError):
    """What was asked cannot be done as it was asked."""

    status: ClassVar[int] = 400


class UnauthorizedError(RequestError):
    """Whoever asks has not shown the token."""

    status = 401


class NotFoundError(RequestError):
    """There is no connector, table, plugin or task of this name."""

    status = 404

    @classmethod
    def connector(cls, name: str) -> NotFoundError:
        return cls(f"Connector {name} not found")


class RequestConflictError(RequestError):
    """It contradicts what is there: a name that is taken, a lake in use, an edit that came second."""

    status = 409


class ForbiddenError(RequestError):
    """It is not allowed here, whoever asks."""

    status = 403


class BusyError(RequestError):
    """Too much is asked at once; later it may be done."""

    status = 429


class TimedOutError(RequestError):
    """It took longer than who asked allowed."""

    status = 408
