"""The installation: where this botservice is from, and whether its second package came with it."""

import json
import re
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from botservice.core.errors import SettingsError

_LOGIN: Final = re.compile(r"(?<=://)[^/@]*@")


@dataclass(frozen=True, slots=True)
class InstallOrigin:
    """Where a distribution was installed from.

    Attributes:
        url: Where from, without a login, or None if it was a package index.
        commit: Which commit of a repository.
        is_editable: Whether changes there take effect here.
    """

    version: str
    url: str | None = None
    vcs: str | None = None
    commit: str | None = None
    is_editable: bool = False

    @property
    def requirement(self) -> str:
        """The line of a requirements.txt that installs the same."""
        if self.url is None:
            return f"botservice=={self.version}"
        if self.vcs is None:
            return f"-e {self.url}" if self.is_editable else f"botservice @ {self.url}"
        address = f"{self.vcs}+{self.url}@{self.commit}"
        # Of a repository on this machine, pip of Python 3.11 takes the address alone.
        return address if self.url.startswith("file:") else f"botservice @ {address}"

    @property
    def is_elsewhere(self) -> bool:
        """Whether another machine can install it from there, too."""
        return self.url is None or not self.url.startswith("file:")

    def describe(self) -> str:
        """Return the version, and where it came from where that is no package index."""
        from botservice import __version__

        if self.url is None:
            return __version__
        commit = f", commit {self.commit[:12]}" if self.commit else ""
        return f"{__version__} (from {self.url}{commit}{', editable' if self.is_editable else ''})"


def origin_of_this() -> InstallOrigin:
    """Return where this very botservice came from.

    Source: PEP 610, "Recording the Direct URL Origin of installed distributions".
    """
    from botservice import __version__

    try:
        distribution = Distribution.from_name("botservice")
    except PackageNotFoundError:  # run from its folder
        return InstallOrigin(__version__, Path(__file__).parents[2].as_uri(), is_editable=True)
    recorded = distribution.read_text("direct_url.json")
    if recorded is None:
        return InstallOrigin(distribution.version)
    found: dict[str, Any] = json.loads(recorded)
    source = found.get("vcs_info", {})
    return InstallOrigin(
        distribution.version,
        _LOGIN.sub("", str(found["url"])),
        source.get("vcs"),
        source.get("commit_id"),
        bool(found.get("dir_info", {}).get("editable")),
    )


def check_packages() -> None:
    """Return if Python finds the package `transports` alongside this one."""
    own = Path(__file__).parents[2] / "transports"
    spec = find_spec("transports")
    found = None if spec is None or spec.origin is None else Path(spec.origin)
    if found is not None and found.parent == own and (own / "web" / "plugin.py").is_file():
        return
    if found is None or found.parent == own:
        raise SettingsError(
            f"botservice is not whole: its second package {own} is not there, or another distribution has written over "
            "it; install botservice again in an environment of its own"
        )
    raise SettingsError(
        f"{found if found.name != '__init__.py' else found.parent} stands before botservice's own package of that "
        "name, transports: give yours another name"
    )
