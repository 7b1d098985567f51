"""The small web application that is watched: healthy, then not, until a person restarts it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

CHECKS = [200, 200, 503, 503, 503]  # what the first health checks say; then 503 until a restart
LOG = ["12:00 started", "12:07 connection pool exhausted", "12:08 requests time out"]


class WebApp:
    """Serves on loopback while its `with` block lasts.

    Attributes:
        address: Where it listens, such as "http://127.0.0.1:54321".
        restarts: How often it was restarted.
    """

    def __init__(self) -> None:
        self.restarts = 0
        self._checks = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def health(self) -> int:
        """Return the status of the next health check."""
        if self.restarts:
            return 200
        self._checks += 1
        return CHECKS[min(self._checks, len(CHECKS)) - 1]

    def restart(self) -> None:
        """Become healthy again."""
        self.restarts += 1

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        app = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/health":
                    status = app.health()
                    self._answer(status, {"status": "ok" if status == 200 else "failing"})
                elif self.path == "/log":
                    self._answer(200, {"log": LOG})
                else:
                    self._answer(404, {})

            def do_POST(self) -> None:
                app.restart()
                self._answer(200, {"restarts": app.restarts})

            def log_message(self, *arguments: object) -> None:
                """Write nothing: the demo has its own output."""

            def _answer(self, status: int, content: object) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler
