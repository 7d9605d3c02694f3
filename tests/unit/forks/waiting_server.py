"""A fork server for tests: a fork echoes what comes on its socket, until that ends or it is told its exit code."""

from __future__ import annotations

import socket
import sys

from tailrace.forks.server import serve


def echo(files: list[int]) -> int:
    with socket.socket(fileno=files[0]) as connection:
        while line := connection.recv(100):
            if line.isdigit():
                return int(line)
            connection.sendall(line)
    return 0


if __name__ == "__main__":
    serve(lambda _: None, echo, kills_forks=sys.argv[2] == "killed")
