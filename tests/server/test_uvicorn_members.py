"""What uvicorn documents nowhere and the web server leans on: an update that takes it away fails here, by its name."""

import inspect

import pytest
import uvicorn
from uvicorn.protocols.http import h11_impl

from botservice.proving.process import _PlainServer
from botservice.server.connection_limits import GuardedConnection
from botservice.server.serving import _WebServer

READ = {"client", "conn", "connections", "cycle", "limit_concurrency", "loop", "transport"}
READ_OF_A_CYCLE = {"disconnected", "message_event", "response_complete"}


@pytest.mark.parametrize(
    ("ours", "its", "own"),
    [
        (
            GuardedConnection,
            h11_impl.H11Protocol,
            {"head_seconds", "write_seconds", "write_bytes", "most_pipelined", "has_shares"},
        ),
        (_WebServer, uvicorn.Server, set()),
        (_PlainServer, uvicorn.Server, set()),
    ],
)
def test_what_is_overridden_is_there(ours: type, its: type, own: set[str]) -> None:
    public = {name for name in vars(ours) if not name.startswith("_")} - own
    assert {name for name in public if not hasattr(its, name)} == set()


def test_what_is_read_of_a_connection_and_of_its_request_is_there() -> None:
    connection, cycle = map(inspect.getsource, (h11_impl.H11Protocol, h11_impl.RequestResponseCycle))
    assert {name for name in READ if f"self.{name}" not in connection} == set()
    assert {name for name in READ_OF_A_CYCLE if f"self.{name}" not in cycle} == set()
