"""`python -m botservice` is the command `botservice`."""

import os
import signal
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130  # what a shell says of a command that Ctrl+C has ended


def main() -> None:
    """Load the command line and run it; Ctrl+C while it is loaded ends it without a word."""
    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so behind `nohup` or `&`
    if is_heard:
        signal.signal(signal.SIGINT, _end)
    from botservice.cli.main import main as run  # a tenth of a second, in which nothing has begun

    if is_heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(_: int, __: FrameType | None) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
