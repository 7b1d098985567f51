"""Texts that teach an agent how certain work is done."""

from botservice.tools.skills.skills import Skills

__all__ = ["Skills"]
