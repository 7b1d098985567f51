"""A connection pooler before a real Postgres, on loopback: in session mode, or in transaction mode as PgBouncer has it.

It speaks just enough of the protocol (Postgres manual, 54) to lend server connections: it answers the start-up itself,
passes everything else on, and looks for ReadyForQuery, which says whether a transaction is open.
"""

import contextlib
import select
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any

from sqlalchemy import make_url

_SSL, _GSS = 80877103, 80877104


class _Server:
    """A connection to Postgres, past its start-up."""

    def __init__(self, address: str, start_up: bytes) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(address)
        self.socket.sendall(start_up)
        self.greeting = b""
        while True:
            kind, body = read_message(self.socket)
            self.greeting += kind + struct.pack("!I", len(body) + 4) + body
            if kind == b"Z":
                return
            assert kind != b"E", body


class Pooler:
    """Lends a few server connections to many clients; the one that came back last is lent first, as PgBouncer does.

    Attributes:
        mode: `session` or `transaction`; a test may change it, as an operator may.
    """

    def __init__(self, postgres: str, *, mode: str, size: int = 4) -> None:
        url = make_url(postgres)
        self._address = f"{url.query['host']}/.s.PGSQL.{url.query.get('port', 5432)}"
        self._user, self._database = str(url.username), str(url.database)
        self.mode = mode
        self._idle: list[_Server] = []
        self._free = threading.Semaphore(size)
        self._guard = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.url = ""

    @classmethod
    @contextlib.contextmanager
    def running(cls, postgres: str, *, mode: str, size: int = 4) -> Iterator["Pooler"]:
        """Run one until the block is left."""
        pooler = cls(postgres, mode=mode, size=size)

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError, EOFError):
                    pooler.serve(self.request)

        class Listener(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        with Listener(("127.0.0.1", 0), Handler) as listener:
            pooler.url = f"postgresql://{pooler._user}@127.0.0.1:{listener.server_address[1]}/{pooler._database}"
            thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
            thread.start()
            try:
                yield pooler
            finally:
                listener.shutdown()
                thread.join()
                with pooler._guard:
                    for each in pooler._sockets:
                        each.close()

    def serve(self, client: socket.socket) -> None:
        """Serve one client until it goes."""
        start_up = self._read_start_up(client)
        greeting = self._lend(start_up)
        self._give_back(greeting)
        client.sendall(greeting.greeting)
        while True:
            first = client.recv(1, socket.MSG_PEEK)
            if not first or first == b"X":
                return
            server = self._lend(start_up)
            try:
                self._pass_on(client, server)
            finally:
                self._give_back(server)

    def _read_start_up(self, client: socket.socket) -> bytes:
        while True:
            length = struct.unpack("!I", _read(client, 4))[0]
            body = _read(client, length - 4)
            if struct.unpack("!I", body[:4])[0] not in (_SSL, _GSS):
                return struct.pack("!I", length) + body
            client.sendall(b"N")

    def _lend(self, start_up: bytes) -> _Server:
        assert self._free.acquire(timeout=30), "no server connection is free"
        with self._guard:
            if self._idle:
                return self._idle.pop()
        server = _Server(self._address, start_up)
        with self._guard:
            self._sockets.append(server.socket)
        return server

    def _give_back(self, server: _Server) -> None:
        with self._guard:
            self._idle.append(server)
        self._free.release()

    def _pass_on(self, client: socket.socket, server: _Server) -> None:
        while True:
            for ready in select.select([client, server.socket], [], [])[0]:
                kind, body = read_message(ready)
                whole = kind + struct.pack("!I", len(body) + 4) + body
                if ready is client:
                    if kind == b"X":
                        raise EOFError
                    server.socket.sendall(whole)
                    continue
                client.sendall(whole)
                if kind == b"Z" and body == b"I" and self.mode == "transaction":
                    return


def read_message(connection: socket.socket) -> tuple[bytes, bytes]:
    """Return the type and the body of the next message."""
    head = _read(connection, 5)
    return head[:1], _read(connection, struct.unpack("!I", head[1:])[0] - 4)


def _read(connection: socket.socket, size: int) -> bytes:
    data: Any = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
