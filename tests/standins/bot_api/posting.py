"""A client for webhook deliveries: HTTP/1.1 over kept connections, small because it posts thousands."""

import asyncio
from urllib.parse import urlsplit

import h11

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter, h11.Connection]


class Poster:
    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], list[Connection]] = {}
        self._open: set[asyncio.StreamWriter] = set()

    async def post(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Return status and body of the answer.

        Raises:
            OSError: no connection, or it broke.
            h11.RemoteProtocolError: what came back is not HTTP.
        """
        parts = urlsplit(url)
        place = (parts.hostname or "", parts.port or 80)
        connection = await self._connection(place)
        reader, writer, http = connection
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            fields = {"Host": parts.netloc, "Content-Length": str(len(body)), **headers}
            writer.write(http.send(h11.Request(method="POST", target=target, headers=list(fields.items()))) or b"")
            writer.write((http.send(h11.Data(data=body)) or b"") + (http.send(h11.EndOfMessage()) or b""))
            await writer.drain()
            answer = await self._answer(reader, http)
        except BaseException:
            self._close(writer)
            raise
        if http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
            self._idle.setdefault(place, []).append(connection)
        else:
            self._close(writer)
        return answer

    async def _connection(self, place: tuple[str, int]) -> Connection:
        idle = self._idle.get(place, [])
        while idle:
            connection = idle.pop()
            if not connection[0].at_eof() and not connection[1].is_closing():
                return connection
            self._close(connection[1])
        reader, writer = await asyncio.open_connection(*place)
        self._open.add(writer)
        return reader, writer, h11.Connection(h11.CLIENT)

    async def _answer(self, reader: asyncio.StreamReader, http: h11.Connection) -> tuple[int, bytes]:
        status, parts = 0, []
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(65536)
                if not data and not status:
                    raise ConnectionResetError("closed without an answer")
                http.receive_data(data)
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return status, b"".join(parts)
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError("closed in the middle of an answer")

    def _close(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        writer.transport.abort()

    def close(self) -> None:
        for writer in list(self._open):
            self._close(writer)
        self._idle.clear()
