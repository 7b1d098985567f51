"""What metrics and traces cost of a turn: CPU with neither, with each, interleaved in one run.

    python benchmarks/monitoring.py [--rounds N]

The receiver of the traces is a process of its own; what goes out at the end of each round is counted.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from botservice import AgentContext, AgentService, ChatResponse, FunctionsBasedAgent, Storage, TokenUsage
from botservice.telemetry.exporting import tracing
from botservice.telemetry.instrumentation import sending_to
from botservice.telemetry.metrics import Metrics

TURNS = 200


class Model:
    """Answers at once, in thirty pieces."""

    model = "instant"

    async def chat(self, _: Any, tools: Sequence[Any] = (), *, on_text: Any = None) -> ChatResponse:
        for _ in range(30):
            if on_text is not None:
                on_text("word ")
        return ChatResponse("word " * 30, usage=TokenUsage(500, 30))


def receive(port: Connection) -> None:
    """Take whatever is sent, and say yes."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Be silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def receiver() -> Iterator[None]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=receive, args=(theirs,), daemon=True)
    process.start()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{ours.recv()}"
    try:
        yield
    finally:
        process.terminate()
        process.join()


async def measure(rounds: int) -> dict[str, list[float]]:
    """Return milliseconds of CPU for a turn, of each round, by what is on."""
    metrics = Metrics("1")
    spent: dict[str, list[float]] = {"neither": [], "metrics": [], "traces": []}
    with tempfile.TemporaryDirectory() as folder:
        async with Storage.open(f"sqlite:///{Path(folder) / 'bot.db'}", migrate=True) as storage:
            service = AgentService(FunctionsBasedAgent(tools=[], llm=Model()), storage)
            context = await AgentContext.get_or_create(storage, {"id": "42"})
            for number in range(TURNS):
                await service.prompt(context, f"warm up {number}")
            for _ in range(rounds):
                for name, taken in spent.items():
                    began = time.process_time()
                    async with AsyncExitStack() as stack:
                        if name == "metrics":
                            stack.enter_context(sending_to(metrics))
                        elif name == "traces":
                            await stack.enter_async_context(tracing("1"))
                        for number in range(TURNS):
                            await service.prompt(context, f"what is number {number}?")
                    taken.append((time.process_time() - began) / TURNS * 1000)
    return spent


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    with receiver():
        spent = asyncio.run(measure(rounds))
    print("| | ms of CPU a turn | ratio |\n|---|---|---|")
    for name, taken in spent.items():
        pairs = [one / other for one, other in zip(taken, spent["neither"], strict=True)]
        print(f"| {name} | {statistics.median(taken):.2f} | {statistics.median(pairs):.3f} |")


if __name__ == "__main__":
    main()
