"""`botservice prove`: simulated users write while the service is killed, and a checker counts what became of it."""

import asyncio
import secrets
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from botservice.cli.console import long_work, run

if TYPE_CHECKING:
    from botservice.core.progress import Progress
    from botservice.proving.checker import SimulationRecord
    from botservice.proving.proof import Proof, SimulationPlan

_MOST_SEED = 10**6


def prove(
    seconds: Annotated[float, typer.Option(min=1, help="How long people write.")] = 120,
    kills: Annotated[int, typer.Option(min=0, help="How many processes are killed.")] = 20,
    seed: Annotated[int | None, typer.Option(help="The seed of messages and kills; by default a random one.")] = None,
    database: Annotated[
        str | None, typer.Option(metavar="URL", help="An empty Postgres database, for two processes.")
    ] = None,
    record: Annotated[Path | None, typer.Option(help="A file for each change of a state, as JSON lines.")] = None,
) -> None:
    """Show that nothing is lost: fifty people write while the service is killed again and again."""
    from botservice.proving.proof import SimulationPlan, write_table

    plan = SimulationPlan(secrets.randbelow(_MOST_SEED) if seed is None else seed, seconds, kills, database, record)
    typer.echo(f"seed {plan.seed}; it takes about {plan.seconds + 10:.0f} seconds", err=True)
    with long_work("prove", left="No process and no file of the proof is left.") as progress:
        proof = run(_prove(plan, progress))
    typer.echo(write_table(proof))
    if proof.findings.faults:
        raise typer.Exit(1)


async def _prove(plan: "SimulationPlan", progress: "Progress") -> "Proof":
    from botservice.proving.proof import prove

    def watch(passed: float, record: "SimulationRecord") -> None:
        said, waiting = len(record.said), record.waiting()
        progress(passed, plan.seconds, f"{said} said, {waiting} wait, {len(record.killed)} kills")

    task = asyncio.ensure_future(prove(plan, watch))
    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl+C, which cancels by itself
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
