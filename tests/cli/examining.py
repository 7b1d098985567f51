"""What the tests of `doctor` share."""

import socket
from typing import Any

from botservice.cli.doctor import check_everything
from botservice.config.settings import Settings
from botservice.core.check_result import Finding

NAMES = [
    "database",
    "model",
    "models",
    "refused",
    "tokens",
    "tools",
    "search",
    "web",
    "speech",
    "skills",
    "browser",
    "telegram",
    "slack",
    "encryption",
    "access",
    "port",
    "public",
]


async def examine(name: str, *, limit_seconds: float = 30.0, **values: Any) -> Finding:
    values.setdefault("database_url", "sqlite://")
    values.setdefault("port", 0)
    chosen = Settings(**{"_env_file": None, "openai_api_key": None, "openai_base_url": None, **values})
    findings = await check_everything(chosen, limit_seconds=limit_seconds)
    assert [finding.name for finding in findings] == NAMES
    assert all("\n" not in finding.text and "Traceback" not in finding.text for finding in findings)
    return next(finding for finding in findings if finding.name == name)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
