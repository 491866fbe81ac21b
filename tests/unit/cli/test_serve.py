"""The socket of `windrow serve`."""

from __future__ import annotations

import socket

from windrow_cli.serve import listen


def test_the_socket_names_its_protocol_so_that_answers_are_not_delayed() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert (listening.proto, listening.type) == (socket.IPPROTO_TCP, socket.SOCK_STREAM)
        with socket.create_connection(listening.getsockname()) as caller:
            accepted, address = listening.accept()
            with accepted:
                assert address == caller.getsockname()
