"""/link, /unlink and /web: one person on several platforms, and in a browser."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from botservice.commands.command import Asker, Command, CommandRefused, find_asker
from botservice.core.formatted_text import FormattedText, Span
from botservice.core.messages import Button
from botservice.people.identities import (
    CODE_LIFETIME,
    LINK_LIFETIME,
    Identity,
    LinkProblem,
    is_browser_of,
    new_code,
    new_secret,
)
from botservice.people.names import is_browser_account
from botservice.people.queries import (
    accept_offer,
    close_browsers,
    confirm_offer,
    count_browsers,
    has_enough_links,
    identities_of,
    offer_browser,
    offer_link,
    offer_of,
    part_identity,
    take_code,
)
from botservice.storage.database import Connection
from botservice.texts.formatted import Value, below, command, line
from botservice.turns.commands import CommandAnswer, CommandRequest

_MINUTES: Final = str(int(CODE_LIFETIME.total_seconds() // 60))
_PROBLEMS: Final = {
    LinkProblem.UNKNOWN: "link.unknown",
    LinkProblem.GUESSING: "link.guessing",
    LinkProblem.SAME: "link.same",
}
_CONFIRM: Final = "/link confirm"


async def _link(request: CommandRequest) -> CommandAnswer:
    asker = await _find_alone(request)
    match request.call.arguments.split():
        case []:
            return await _offer(request, asker)
        case ["confirm"]:
            return await _look(request, asker)
        case ["confirm", number] if number.isdecimal():
            return await _confirm(request, asker, int(number))
        case ["accept", number] if number.isdecimal():
            return await _accept(request, asker, int(number))
        case _:
            return await _take(request, asker, request.call.arguments)


async def _offer(request: CommandRequest, asker: Asker) -> CommandAnswer:
    code = new_code()
    known = await request.context.storage.read(lambda connection: identities_of(connection, asker.person_id))
    linked = request.say("link.linked", accounts=_listed(known)) if len(known) > 1 else None
    offer = request.say("link.offer", telegram=f"/link {code}", slack=f"!link {code}", minutes=_MINUTES)
    return CommandAnswer(
        below(linked, offer),
        (Button(request.label("link.given_button"), _CONFIRM),),
        apply=lambda connection: offer_link(connection, asker.identity, code, request.now),
    )


async def _take(request: CommandRequest, asker: Asker, code: str) -> CommandAnswer:
    taken = await request.context.storage.write(
        lambda connection: take_code(connection, asker.identity, code, request.now), fence=request.claim
    )
    if isinstance(taken, LinkProblem):
        return CommandAnswer(request.say(_PROBLEMS[taken], minutes=_MINUTES))
    return _ask("link.is_it_you", request, account=taken.asker.label, order=f"/link accept {taken.id}")


async def _accept(request: CommandRequest, asker: Asker, offer_id: int) -> CommandAnswer:
    offer = await request.context.storage.write(
        lambda connection: accept_offer(connection, asker.identity, offer_id, request.now), fence=request.claim
    )
    if offer is None:
        return CommandAnswer(request.say("link.unknown", minutes=_MINUTES))
    return CommandAnswer(request.say("link.now_there", account=offer.asker.label))


async def _look(request: CommandRequest, asker: Asker) -> CommandAnswer:
    offer = await request.context.storage.read(lambda connection: offer_of(connection, asker.identity, request.now))
    if offer is None:
        return CommandAnswer(request.say("link.none_waits"))
    if offer.giver is None or not offer.is_accepted:
        return CommandAnswer(request.say("link.not_yet"), (Button(request.label("link.given_button"), _CONFIRM),))
    return _ask("link.gave", request, account=offer.giver.label, order=f"{_CONFIRM} {offer.id}")


async def _confirm(request: CommandRequest, asker: Asker, offer_id: int) -> CommandAnswer:
    offer = await request.context.storage.read(lambda connection: offer_of(connection, asker.identity, request.now))
    if offer is None or offer.id != offer_id or offer.giver is None or not offer.is_accepted:
        return CommandAnswer(request.say("link.none_waits"))
    text = request.say("link.done", account=offer.giver.label)
    return CommandAnswer(
        text, apply=lambda connection: confirm_offer(connection, asker.identity, offer_id, request.now)
    )


async def _unlink(request: CommandRequest) -> CommandAnswer:
    asker = await _find_alone(request)
    known = await request.context.storage.read(lambda connection: identities_of(connection, asker.person_id))
    others = [each for each in known if each != asker.identity and not is_browser_of(each, asker.identity)]
    if not others:
        return CommandAnswer(request.say("unlink.alone"))
    text = request.say("unlink.apart", accounts=_listed(others))
    return CommandAnswer(text, apply=lambda connection: part_identity(connection, asker.identity, request.now))


async def _find_alone(request: CommandRequest) -> Asker:
    """Return the asker in a private chat that is not one of a browser.

    Raises:
        CommandRefused: it is another one.
    """
    asker = await find_asker(request, in_private="link.in_private")
    if is_browser_account(asker.identity.platform, asker.identity.platform_id):
        raise CommandRefused(request.say("web.elsewhere"))
    return asker


def _listed(accounts: Sequence[Identity]) -> FormattedText:
    listed: list[Value] = [value for each in accounts for value in (", ", each.label)]
    return line(*listed[1:])


def _ask(key: str, request: CommandRequest, *, account: FormattedText, order: str) -> CommandAnswer:
    text = request.say(key, account=account, order=command(order))
    return CommandAnswer(text, (Button(request.label("link.yes_button"), order),))


LINK: Final = Command("link", _link, is_personal=True)
UNLINK: Final = Command("unlink", _unlink)


LINK_PATH: Final = "/web/link"
_LINK_MINUTES: Final = str(int(LINK_LIFETIME.total_seconds() // 60))


def web_command(public_url: str | None) -> Command:
    """Return the command /web, or None if the service has no public address."""
    return Command("web", partial(_answer, public_url), is_counted=True, is_listed=public_url is not None)


async def _answer(public_url: str | None, request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request, in_private="web.in_private")
    if request.call.arguments.strip().lower() == "off":
        return CommandAnswer(
            request.say("web.off"), apply=lambda connection: close_browsers(connection, asker.person_id)
        )
    if is_browser_account(asker.identity.platform, asker.identity.platform_id):
        return CommandAnswer(request.say("web.elsewhere"))
    if public_url is None:
        return CommandAnswer(request.say("web.not_set_up"))
    return await _offer_link(public_url, request, asker)


async def _offer_link(public_url: str, request: CommandRequest, asker: Asker) -> CommandAnswer:
    def look(connection: Connection) -> tuple[bool, int]:
        has_enough = has_enough_links(connection, asker.identity, request.now)
        return has_enough, count_browsers(connection, asker.person_id, request.now)

    has_enough, count = await request.context.storage.read(look)
    if has_enough:
        return CommandAnswer(request.say("web.too_many", minutes=_LINK_MINUTES))
    secret = new_secret()
    address = f"{public_url}{LINK_PATH}/{secret}"
    offer = request.say("web.offer", url=Span(address, link=address), minutes=_LINK_MINUTES)
    is_open = request.say("web.open_now", count=count) if count else None
    return CommandAnswer(
        below(offer, is_open), apply=lambda connection: offer_browser(connection, asker.identity, secret, request.now)
    )
