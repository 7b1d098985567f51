"""What a person may ask of the service itself, in any chat: commands that belong together stand in one file."""

from botservice.commands.catalogue import Catalogue
from botservice.commands.command import Command

__all__ = ["Catalogue", "Command"]
