"""Checking that the package `transports` is the one that came with botservice: others may use that name, too."""

from importlib.util import find_spec
from pathlib import Path

from botservice.core.errors import SettingsError


def check_packages() -> None:
    """Return if Python finds the package `transports` beside this one."""
    own = Path(__file__).parents[2] / "transports"
    spec = find_spec("transports")
    found = None if spec is None or spec.origin is None else Path(spec.origin)
    if found is not None and found.parent == own and (own / "web" / "plugin.py").is_file():
        return
    if found is None or found.parent == own:
        raise SettingsError(
            f"botservice is not whole: its second package {own} is not there, or another distribution has written over "
            "it; install botservice anew in an environment of its own"
        )
    raise SettingsError(
        f"{found if found.name != '__init__.py' else found.parent} stands before botservice's own package of that "
        "name, transports: give yours another name"
    )
