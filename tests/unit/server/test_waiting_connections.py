"""Connections that ask nothing make room, and those that are being answered stay."""

from __future__ import annotations

import asyncio

from tailrace.server.connections import Connections


class Wire:
    """A transport that notes how it ended."""

    def __init__(self) -> None:
        self.is_aborted = False
        self.ended = asyncio.Event()

    def abort(self) -> None:
        self.is_aborted = True
        self.ended.set()


def opened(connections: Connections, *clients: tuple[str, int]) -> list[Wire]:
    wires = [Wire() for _ in clients]
    for client, wire in zip(clients, wires, strict=True):
        connections.opened(client, wire)  # type: ignore[arg-type]
    return wires


def aborted(wires: list[Wire]) -> list[bool]:
    return [each.is_aborted for each in wires]


def test_of_one_peer_the_longest_waiting_makes_room() -> None:
    async def run() -> None:
        connections = Connections(peer_waiting_max=2)
        first, second = opened(connections, ("a", 1), ("a", 2))
        connections.begun(("a", 1))
        third, other = opened(connections, ("a", 3), ("b", 1))
        assert aborted([first, second, third, other]) == [False] * 4
        (fourth,) = opened(connections, ("a", 4))
        # The first is being answered.
        assert aborted([first, second, third, fourth, other]) == [False, True, False, False, False]
        connections.ended(("a", 1))
        opened(connections, ("a", 5))
        assert aborted([first, third, fourth]) == [False, True, False]

    asyncio.run(run())


def test_where_there_are_too_many_the_peer_with_most_makes_room() -> None:
    async def run() -> None:
        connections = Connections(connections_max=4)
        wires = opened(connections, ("b", 1), ("a", 1), ("a", 2), ("c", 1), ("d", 1))
        assert aborted(wires) == [False, True, False, False, False]
        for client in (("b", 1), ("a", 2), ("c", 1), ("d", 1)):
            connections.begun(client)
        assert aborted(opened(connections, ("e", 1))) == [True]
        connections.closed(("b", 1))
        assert aborted(opened(connections, ("e", 2))) == [False]

    asyncio.run(run())


def test_one_that_waits_too_long_is_closed_and_one_that_is_answered_is_not() -> None:
    async def run() -> None:
        connections = Connections(wait_seconds=0.05)
        silent, busy, between = opened(connections, ("a", 1), ("a", 2), ("a", 3))
        connections.begun(("a", 2))
        connections.begun(("a", 3))
        connections.ended(("a", 3))
        async with asyncio.timeout(30):
            await silent.ended.wait()
            await between.ended.wait()
        assert not busy.is_aborted
        assert connections.requests_of("a") == 1
        connections.ended(("a", 2))
        connections.closed(("a", 2))
        assert connections.requests_of("a") == 0

    asyncio.run(run())
