"""Ports for servers that tests start."""

import random
import socket


def free_port() -> int:
    """A free port of the loopback interface that the system does not give to a connection before the server starts.

    The system uses ports from 32768 on for connections, so the port is below that range.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
