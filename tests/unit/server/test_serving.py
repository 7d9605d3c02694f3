"""The socket that a server answers on."""

from __future__ import annotations

import asyncio
import socket

from tailrace.server.answering import bound_to


def test_an_answer_in_two_parts_is_sent_without_waiting_for_the_first_to_be_confirmed() -> None:
    async def delays() -> bool:
        found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted = writer.get_extra_info("socket")
            found.set_result(not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bound_to("127.0.0.1", 0) as bound:
            async with await asyncio.start_server(connected, sock=bound):
                _, writer = await asyncio.open_connection(*bound.getsockname())
                writer.close()
                return await asyncio.wait_for(found, 30)

    assert not asyncio.run(delays())
