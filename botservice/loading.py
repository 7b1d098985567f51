"""Loading once a service is ready what only messages and pages need: until then it would hold up the start."""

import contextlib
import threading
from collections.abc import Callable, Iterator

SETTLING_SECONDS = 0.25  # whoever asks whether the service is ready is answered first


@contextlib.contextmanager
def loading_beside(load: Callable[[], object]) -> Iterator[None]:
    """Call load in a thread of its own, in a moment; not any more where the block is over by then."""
    timer = threading.Timer(SETTLING_SECONDS, load)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
