"""What a person may ask of the service itself, in any chat: one file for each command."""

from botservice.commands.catalogue import Catalogue
from botservice.commands.command import Command

__all__ = ["Catalogue", "Command"]
