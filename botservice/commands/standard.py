"""The commands of the service as it is served."""

from collections.abc import Sequence

from botservice.commands.catalogue import Catalogue
from botservice.commands.command import Command
from botservice.commands.greeting import START, STOP, help_command
from botservice.commands.reminders import REMINDERS


def standard_commands(more: Sequence[Command] = ()) -> Catalogue:
    """Return the commands that every service has, and more."""

    def menu(language: str) -> list[tuple[str, str]]:
        return catalogue.menu(language)

    # Whoever adds a capability adds its command here, or hands it in where it needs something to work with.
    catalogue = Catalogue([START, help_command(menu), REMINDERS, STOP, *more])
    return catalogue
