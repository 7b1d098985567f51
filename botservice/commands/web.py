"""/web: a link that opens the asker's chat in a browser."""

from functools import partial
from typing import Final

from botservice.commands.asker import Asker, find_asker
from botservice.commands.command import Command
from botservice.core.formatted_text import Span
from botservice.people.identities import LINK_LIFETIME, new_secret
from botservice.people.names import is_browser_account
from botservice.people.queries import close_browsers, count_browsers, has_enough_links, offer_browser
from botservice.storage.database import Connection
from botservice.texts.formatted import below
from botservice.turns.command_parsing import CommandAnswer, CommandRequest

LINK_PATH: Final = "/web/link"
_MINUTES: Final = str(int(LINK_LIFETIME.total_seconds() // 60))


def web_command(public_url: str | None) -> Command:
    """Return the command /web, or None if the service has no public address."""
    return Command("web", partial(_answer, public_url), is_counted=True, is_listed=public_url is not None)


async def _answer(public_url: str | None, request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request)
    if asker is None:
        return CommandAnswer(request.say("memory.nobody"))
    if not asker.is_alone:
        return CommandAnswer(request.say("web.in_private"))
    if request.call.arguments.strip().lower() == "off":
        return CommandAnswer(
            request.say("web.off"), apply=lambda connection: close_browsers(connection, asker.person_id)
        )
    if is_browser_account(asker.identity.platform, asker.identity.platform_id):
        return CommandAnswer(request.say("web.elsewhere"))
    if public_url is None:
        return CommandAnswer(request.say("web.not_set_up"))
    return await _offer(public_url, request, asker)


async def _offer(public_url: str, request: CommandRequest, asker: Asker) -> CommandAnswer:
    def look(connection: Connection) -> tuple[bool, int]:
        has_enough = has_enough_links(connection, asker.identity, request.now)
        return has_enough, count_browsers(connection, asker.person_id, request.now)

    has_enough, count = await request.context.storage.read(look)
    if has_enough:
        return CommandAnswer(request.say("web.too_many", minutes=_MINUTES))
    secret = new_secret()
    address = f"{public_url}{LINK_PATH}/{secret}"
    offer = request.say("web.offer", url=Span(address, link=address), minutes=_MINUTES)
    is_open = request.say("web.open_now", count=count) if count else None
    return CommandAnswer(
        below(offer, is_open), apply=lambda connection: offer_browser(connection, asker.identity, secret, request.now)
    )
