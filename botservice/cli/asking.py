"""A service for commands that ask its model: it serves nobody, and the terminal is for what comes of it."""

from typing import TYPE_CHECKING

from botservice.settings import LogLevel, Settings

if TYPE_CHECKING:
    from botservice.service import AgentService


def quiet_service(settings: Settings, app: str | None) -> "AgentService":
    """Return the service of the settings, or somebody's own, which logs errors alone unless more is set."""
    from botservice.app import build_service, load_service, prepare

    if settings.log_level is LogLevel.INFO:
        settings.log_level = LogLevel.ERROR
    prepare(settings)
    return load_service(app) if app else build_service(settings)
