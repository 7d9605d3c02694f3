"""Every error as Kafka Connect's body: a code and a message, a hint on its second line. Never a stack trace."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import PydanticSerializationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from tailrace.configuration.reading import ConfigurationError
from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.server.api.models import ErrorMessage
from tailrace.server.errors import RequestError
from tailrace.server.hints import in_properties

logger = logging.getLogger(__name__)

METHOD_NOT_ALLOWED = 405
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorMessage, "description": "The request makes no sense; the message says why."},
    401: {"model": ErrorMessage, "description": "No token, or a wrong one."},
    404: {"model": ErrorMessage, "description": "There is no such thing."},
    409: {"model": ErrorMessage, "description": "It contradicts what is there."},
    413: {"model": ErrorMessage, "description": "The request is too large."},
    503: {"model": ErrorMessage, "description": "A source or the server's state cannot be reached now."},
}
"""What any call may answer."""


def answer(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    # What was sent may have letters that UTF-8 cannot write, and messages repeat it.
    written = message.encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error_code": status, "message": written}, status, headers)


def explain_errors(app: FastAPI) -> None:
    """Answer all errors in this way."""

    @app.exception_handler(TailraceError)
    def _ours(_: Request, error: TailraceError) -> JSONResponse:
        return answer(status_of(error), text_of(error))

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        if not _is_json(request) and any(each["loc"][0] == "body" for each in error.errors()):
            return answer(415, "HTTP 415 Unsupported Media Type\nhint: -H 'content-type: application/json'")
        # What was sent is not repeated: it may be a secret.
        found = [
            f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}" for each in error.errors()
        ]
        return answer(400, "; ".join(found))

    # Nothing of ours is other than UTF-8: it was sent, and would now be stored or shown.
    @app.exception_handler(PydanticSerializationError)
    @app.exception_handler(UnicodeEncodeError)
    def _no_text(_: Request, __: Exception) -> JSONResponse:
        return answer(400, "the request has text that is not UTF-8\nhint: half a surrogate pair is not a character")

    @app.exception_handler(RecursionError)
    def _too_deep(_: Request, __: Exception) -> JSONResponse:
        return answer(400, "the request is nested too deeply\nhint: ask in a simpler way")

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> JSONResponse:
        headers = {name.lower(): value for name, value in (error.headers or {}).items()}
        if error.status_code == METHOD_NOT_ALLOWED:
            headers["allow"] = ", ".join(_methods(app, request))
        return answer(error.status_code, f"HTTP {error.status_code} {error.detail}", headers)

    @app.exception_handler(Exception)
    def _unexpected(request: Request, error: Exception) -> JSONResponse:
        logger.error("request failed", exc_info=error, extra={"path": request.url.path, "method": request.method})
        return answer(500, f"unexpected: {type(error).__name__}; the server's messages have the details")


def _methods(app: FastAPI, request: Request) -> list[str]:
    """What can be asked of a path. Starlette tells of the first of its routes alone."""
    return [
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in app.routes)
    ]


def _is_json(request: Request) -> bool:
    """Whether its body says that it is JSON, or nothing of what it is."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def status_of(error: TailraceError) -> int:
    match error:
        case RequestError():
            return error.status
        case ConfigurationError():
            return 400
        case TransientError():
            return 503
        case DefiniteError():
            return 400
    return 500


def text_of(error: TailraceError) -> str:
    if isinstance(error, ConfigurationError):
        problems = [f"{key}: {each}" for key, found in error.problems.items() for each in found]
        return "\n".join(
            [
                f"Connector configuration is invalid and contains the following {len(problems)} error(s):",
                *problems,
                "You can also find the above list of errors at the endpoint "
                "`/connector-plugins/{connectorType}/config/validate`",
            ]
        )
    return error.message if error.hint is None else f"{error.message}\nhint: {in_properties(error.hint)}"
