"""What operators see of a running service: log lines, traces and metrics. Ids and names in all of them, never texts."""

from botservice.telemetry.logs import configure_logging, redact, register_secret

__all__ = ["configure_logging", "redact", "register_secret"]
