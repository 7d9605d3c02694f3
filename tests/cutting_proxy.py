"""A proxy between a client and an HTTP store, which does to a request what networks and stores do at their worst."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UPSTREAM_SECONDS = 30.0
RACERS = 2
RACE_SECONDS = 1.0
_ERROR = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>as told</Message></Error>"


class Fault(StrEnum):
    """What becomes of one request."""

    NONE = auto()
    BEFORE = auto()
    """The connection is cut, and the store has not heard of it."""
    DURING = auto()
    """The connection is cut when the store has half of it."""
    AFTER = auto()
    """The connection is cut when the store has done it."""
    LATE = auto()
    """The connection is cut, and the store does it afterwards."""
    SILENT = auto()
    """The store has done it, and its answer does not come."""
    INTERNAL = auto()
    """500, and nothing is done."""
    DONE_AND_INTERNAL = auto()
    """500, and it is done."""
    BUSY = auto()
    """503, and nothing is done."""
    CONFLICT = auto()
    """409, and nothing is done."""


_ANSWERS = {
    Fault.INTERNAL: (500, "InternalError"),
    Fault.DONE_AND_INTERNAL: (500, "InternalError"),
    Fault.BUSY: (503, "SlowDown"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
}
DONE = {Fault.NONE, Fault.AFTER, Fault.LATE, Fault.SILENT, Fault.DONE_AND_INTERNAL}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def is_conditional_put(self) -> bool:
        return self.method == "PUT" and not self.headers.keys().isdisjoint({"if-none-match", "if-match"})


@dataclass
class CuttingProxy:
    """Runs while its `with` does. Every request is asked for: `decide` says what becomes of it, and headers that
    `stripped` names do not reach the store."""

    upstream_port: int
    decide: Callable[[Request], Fault] = lambda request: Fault.NONE
    stripped: frozenset[str] = frozenset()
    answer: tuple[int, bytes] | None = None
    """What every request gets, and none reaches the store."""
    races: bool = False
    """The store looks whether an object is there when a put comes, and writes it when others have looked too."""
    looked: threading.Barrier = field(default_factory=lambda: threading.Barrier(RACERS))
    seen: list[tuple[Request, Fault]] = field(default_factory=list)
    late: list[threading.Thread] = field(default_factory=list)
    may_be_late: threading.Event = field(default_factory=threading.Event)
    """Until it is set, nothing that is late reaches the store."""
    is_over: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def count(self, fault: Fault) -> int:
        return sum(each is fault for _, each in self.seen)

    def let_late_ones_arrive(self) -> None:
        self.may_be_late.set()
        for thread in self.late:
            thread.join(UPSTREAM_SECONDS)

    @property
    def options(self) -> dict[str, str]:
        """What a client of the store is told to come here."""
        return {"endpoint": f"http://127.0.0.1:{self.port}"}


@contextmanager
def cutting(upstream_port: int, **given: Any) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(upstream_port, **given)

    class OwnExchange(_Exchange):
        told = proxy

    with ThreadingHTTPServer(("127.0.0.1", 0), OwnExchange) as server:
        server.daemon_threads = True
        proxy.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.is_over.set()
            server.shutdown()
            thread.join()
            proxy.let_late_ones_arrive()


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: CuttingProxy

    def handle_one_request(self) -> None:
        # Clients cut connections too.
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, {name.lower(): each for name, each in self.headers.items()})
        if self.told.answer is not None:
            status, content = self.told.answer
            self._answer(status, {"Content-Type": "application/xml"}, content)
            return
        fault = self.told.decide(request)
        self.told.seen.append((request, fault))
        if fault is Fault.LATE:
            thread = threading.Thread(target=self._upstream_late, args=(request, body), daemon=True)
            thread.start()
            self.told.late.append(thread)
            self._cut()
        elif fault is Fault.BEFORE:
            self._cut()
        elif fault is Fault.DURING:
            self._upstream(request, body, cut_at=len(body) // 2)
            self._cut()
        elif fault in (Fault.AFTER, Fault.SILENT):
            self._upstream(request, body)
            if fault is Fault.SILENT:
                self.told.is_over.wait(UPSTREAM_SECONDS)
            self._cut()
        elif fault is Fault.NONE and self.told.races and request.is_conditional_put:
            self._race(request, body)
        elif fault is Fault.NONE:
            self._answer(*self._upstream(request, body))
        else:
            if fault in DONE:
                self._upstream(request, body)
            status, code = _ANSWERS[fault]
            self._answer(status, {"Content-Type": "application/xml"}, _ERROR.format(code=code).encode())

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815

    def _race(self, request: Request, body: bytes) -> None:
        look = Request("HEAD", request.path, {"host": request.headers["host"]})
        is_there = self._upstream(look, b"")[0] == 200
        try:
            self.told.looked.wait(RACE_SECONDS)
        except threading.BrokenBarrierError:
            # No other one came. A barrier that broke holds no one back any more.
            self.told.looked = threading.Barrier(RACERS)
        if is_there:
            self._answer(412, {"Content-Type": "application/xml"}, _ERROR.format(code="PreconditionFailed").encode())
            return
        headers = {name: value for name, value in request.headers.items() if name != "if-none-match"}
        self._answer(*self._upstream(replace(request, headers=headers), body))

    def _upstream_late(self, request: Request, body: bytes) -> None:
        self.told.may_be_late.wait(UPSTREAM_SECONDS)
        self._upstream(request, body)

    def _upstream(
        self, request: Request, body: bytes, cut_at: int | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.told.upstream_port, timeout=UPSTREAM_SECONDS)
        try:
            connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name not in self.told.stripped:
                    connection.putheader(name, value)
            connection.endheaders(body if cut_at is None else body[:cut_at])
            if cut_at is not None:
                return 0, {}, b""
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response_only(status)
        length = str(len(content))
        for name, value in headers.items():
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """The tests' output is no place for it."""
