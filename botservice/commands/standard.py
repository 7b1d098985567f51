"""The commands of the service as it is served."""

from collections.abc import Sequence

from botservice.commands.access import ACCESS, APPROVE, REVOKE, ROLE, ROLES
from botservice.commands.answer import ANSWER_COMMAND, CANCEL_COMMAND
from botservice.commands.approvals import ALLOW_COMMAND, DENY_COMMAND, TOOLS
from botservice.commands.catalogue import Catalogue
from botservice.commands.command import Command
from botservice.commands.documents import LEARN, PASSAGE
from botservice.commands.forget_and_export import EXPORT, FORGET
from botservice.commands.links import LINK, UNLINK
from botservice.commands.memory import MEMORY
from botservice.commands.new_stop_and_retry import NEW, RETRY, STOP
from botservice.commands.pause_and_listen import LISTEN, PAUSE_COMMAND, RESUME
from botservice.commands.persona import PERSONA_COMMAND
from botservice.commands.schedules import REMINDERS, SCHEDULE, SCHEDULES
from botservice.commands.start_and_help import START, help_command
from botservice.commands.usage import USAGE
from botservice.commands.why import WHY


def standard_commands(more: Sequence[Command] = ()) -> Catalogue:
    """Return the commands that every service has, and more; one of the same name takes the place of the first."""
    # A new capability adds its command here, or hands it in if it needs something to work with.
    of_chat = [
        NEW,
        RETRY,
        WHY,
        PERSONA_COMMAND,
        REMINDERS,
        SCHEDULE,
        SCHEDULES,
        ALLOW_COMMAND,
        DENY_COMMAND,
        ANSWER_COMMAND,
        CANCEL_COMMAND,
        TOOLS,
        PASSAGE,
    ]
    about_people = [MEMORY, FORGET, EXPORT, LINK, UNLINK]
    for_owners = [PAUSE_COMMAND, RESUME, LISTEN, APPROVE, REVOKE, ACCESS, ROLE, ROLES, LEARN]
    catalogue = Catalogue(
        [START, help_command(lambda: catalogue), *of_chat, *about_people, USAGE, STOP, *for_owners, *more]
    )
    return catalogue
