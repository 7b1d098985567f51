"""Loading what only messages and pages need, once a service is ready; and Ctrl+C while a command is loaded."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

_INTERRUPTED = 130  # what a shell says of a command that Ctrl+C has ended
SETTLING_SECONDS = 0.25  # whoever asks whether the service is ready is answered first


@contextlib.contextmanager
def loading_alongside(load: Callable[[], object]) -> Iterator[None]:
    """Call load in a thread of its own, in a moment; not any more where the block is over by then."""
    import threading

    timer = threading.Timer(SETTLING_SECONDS, load)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """End the process at once and without a word where Ctrl+C comes within the block, in which nothing is begun.

    An exception instead would show the lines of imports; and where Python loses it, as it does in some moments of an
    import, it leaves a lock taken for which others wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # as behind `nohup` or `&`
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(_: int, __: FrameType | None) -> None:
    os._exit(_INTERRUPTED)
