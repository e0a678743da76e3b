"""Ports for servers that tests start."""

import random
import socket


def free_port() -> int:
    """A port of the loopback that nobody has, and that no connection is given while its server is not there.

    The system gives connections ports from 32768 on, so one from that range may be gone before the server begins.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
