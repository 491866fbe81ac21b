"""A TCP proxy that cuts connections at points chosen by a test."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, TypeAlias

# Decides what to do with a piece from a client: pass it on, or cut before or after sending it.
Verdict: TypeAlias = Literal["pass", "cut before", "cut after"]


class Proxy:
    """Listens on loopback and passes bytes on in both directions until it is told to cut.

    Args:
        target: Address of the server: a host and port, or the path of a socket file.

    Attributes:
        target: Server of new connections.
        judge: Called for each piece that a client sends.
        answer_bytes: Bytes of the answer to pass on before a connection is cut; None for all.
        answered: Bytes of answers that were passed on so far.
        speaks: Cleared to hold everything back without a word, and set to pass it on again.
    """

    def __init__(self, target: tuple[str, int] | str) -> None:
        self.target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.judge: Callable[[bytes], Verdict] = lambda _: "pass"
        self.answer_bytes: int | None = None
        self.answered = 0
        self.speaks = threading.Event()
        self.speaks.set()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._listening.getsockname()[1])

    def close(self) -> None:
        """Cut all connections and stop listening."""
        # Closing alone does not wake the accepting thread.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.speaks.set()
        for connection in list(self._open):
            _cut(connection)
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = self._connected()
            if server is None:
                client.close()
                continue
            # Otherwise each small piece waits until the one before it is acknowledged.
            for one in (client, server):
                if one.family != socket.AF_UNIX:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open |= {client, server}
            for work in (self._ask, self._answer):
                threading.Thread(target=work, args=(client, server), daemon=True).start()

    def _connected(self) -> socket.socket | None:
        """Return a new connection to the server; None if it accepts none."""
        unix = isinstance(self.target, str)
        server = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        try:
            server.connect(self.target)
        except OSError:
            server.close()
            return None
        return server

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(2**16):
                verdict = self.judge(data)
                if verdict == "cut before":
                    break
                if verdict == "cut after":
                    # Nobody receives the answer: only the server knows the outcome.
                    _cut(client)
                    server.sendall(data)
                    server.recv(2**16)
                    break
                self.speaks.wait()
                server.sendall(data)
        self._end(client, server)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(2**16):
                self.speaks.wait()
                left = self.answer_bytes
                if left is not None and left <= len(data):
                    client.sendall(data[:left])
                    self.answer_bytes = None
                    break
                client.sendall(data)
                self.answered += len(data)
                if left is not None:
                    self.answer_bytes = left - len(data)
        self._end(client, server)

    def _end(self, *connections: socket.socket) -> None:
        for connection in connections:
            _cut(connection)
            self._open.discard(connection)


class Front(Proxy):
    """Shares new connections among replicas in turn, passing over those that accept none.

    Attributes:
        targets: Addresses of the replicas.
    """

    def __init__(self) -> None:
        self.targets: list[tuple[str, int]] = []
        self._turns = itertools.count()
        super().__init__(("127.0.0.1", 0))

    def _connected(self) -> socket.socket | None:
        targets, turn = list(self.targets), next(self._turns)
        for number in range(len(targets)):
            self.target = targets[(turn + number) % len(targets)]
            server = super()._connected()
            if server is not None:
                return server
        return None


@contextmanager
def front() -> Iterator[Front]:
    """Run a front of replicas until the end of the block."""
    started = Front()
    try:
        yield started
    finally:
        started.close()


@contextmanager
def proxy(target: tuple[str, int] | str) -> Iterator[Proxy]:
    """Run a proxy until the end of the block."""
    started = Proxy(target)
    try:
        yield started
    finally:
        started.close()


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
