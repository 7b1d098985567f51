"""Log lines, traces and metrics of a running service: they hold ids and names, never texts."""

from botservice.telemetry.logs import configure_logging, find_registered, redact, register_secret

__all__ = ["configure_logging", "find_registered", "redact", "register_secret"]
