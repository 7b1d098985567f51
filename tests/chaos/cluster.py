"""Several processes of the same service behind one address."""

import os
import resource
import signal
from pathlib import Path

from chaos.relay import Relay
from crash.served import WarmBot

GOES_ON = resource.RLIM_INFINITY


class Replica(WarmBot):
    """One process, which can also be stopped for a while, find its disk full, or its machine's clock set wrong.

    Attributes:
        process: The name of the process that runs; the next one has another.
        ended_by_itself: The processes that nobody had ended.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, "--app", "chaos_bot:service", **settings)
        self.is_stopped = False
        self.process = ""
        self.ended_by_itself: list[str] = []
        self._started = 0

    def start(self) -> None:
        self._started += 1
        self.process = f"{self._folder.name}-{self._started}"
        self._environment["CHAOS_PROCESS"] = self.process
        super().start()

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        if self._process is not None and self._process.poll() is not None:
            self.ended_by_itself.append(self.process)
        return super().kill(number)

    def stop(self) -> None:
        """Stop the process where it stands; it does not notice."""
        os.kill(self.pid, signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.is_stopped = False

    def limit_files(self, limit_bytes: int) -> None:
        """Let no file of the process grow beyond a size, as on a full disk."""
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (limit_bytes, GOES_ON))

    def set_clock(self, wrong_seconds: float) -> None:
        """Set the clock of its machine wrong."""
        (self._folder / "clock").write_text(str(wrong_seconds))


class Cluster:
    """Replicas, and the relay that their platform reaches them by."""

    def __init__(self, folder: Path, size: int, settings: dict[str, str]) -> None:
        self._folder = folder
        self._settings = settings
        self.replicas: list[Replica] = []
        self.size = size
        self.url = ""  # where platforms reach any of them

    def start(self, relay: Relay, *, clocks_apart: float = 0.0) -> None:
        """Start all of them; the public address is the relay's.

        Args:
            clocks_apart: How many seconds the clock of each machine is ahead of the one before.
        """
        self.url = f"http://127.0.0.1:{relay.port}"
        settings = self._settings | {"PUBLIC_URL": self.url}
        for number in range(self.size):
            replica = Replica(self._folder / f"replica{number}", **settings)
            self.replicas.append(replica)
            replica.set_clock(number * clocks_apart)
            replica.start()

    def ports(self) -> list[int]:
        """Return where a balancer finds those that it believes to be well."""
        return [replica.port for replica in self.replicas if replica.port and not replica.is_stopped]

    def close(self) -> None:
        for replica in self.replicas:
            replica.__exit__()

    @property
    def ended_by_themselves(self) -> list[str]:
        """The processes that nobody had ended."""
        return [process for replica in self.replicas for process in replica.ended_by_itself]

    @property
    def log(self) -> str:
        return "\n".join(replica.log for replica in self.replicas)
