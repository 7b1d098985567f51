"""/link and /unlink: one person on several platforms."""

from typing import Final

from sqlalchemy import Connection

from botservice.commands.asking import Asker, find_alone
from botservice.commands.command import Command, Texts
from botservice.messages import Button
from botservice.people.identities import identities_of, part_identity
from botservice.people.linking import (
    CODE_LIFETIME,
    LinkProblem,
    accept_offer,
    confirm_offer,
    new_code,
    offer_link,
    offer_of,
    take_code,
)
from botservice.turns.commands import CommandAnswer, CommandRequest

_LINK_MENU: Final[Texts] = {
    "en": "Tell me that you are the same person on another platform",
    "de": "Sag mir, dass du auf einer anderen Plattform dieselbe Person bist",
    "es": "Dime que eres la misma persona en otra plataforma",
    "fr": "Dites-moi que vous êtes la même personne sur une autre plateforme",
    "it": "Dimmi che sei la stessa persona su un’altra piattaforma",  # noqa: RUF001 - an Italian apostrophe
    "pt": "Diga-me que você é a mesma pessoa em outra plataforma",
    "ru": "Сообщить мне, что вы тот же человек на другой платформе",
    "ko": "다른 플랫폼에서도 같은 사람임을 알리기",
    "ja": "別のプラットフォームでも同じ人だと伝える",
    "zh": "告诉我你在另一个平台上是同一个人",
}
_UNLINK_MENU: Final[Texts] = {
    "en": "Take this account apart from your others",
    "de": "Dieses Konto von deinen anderen trennen",
    "es": "Separar esta cuenta de tus otras",
    "fr": "Séparer ce compte de vos autres comptes",
    "it": "Separare questo account dagli altri tuoi",
    "pt": "Separar esta conta das suas outras",
    "ru": "Отделить эту учётную запись от других ваших",
    "ko": "이 계정을 다른 계정과 분리하기",
    "ja": "このアカウントを他のアカウントから切り離す",
    "zh": "将此账户与你的其他账户分开",
}
_IN_PRIVATE: Final = CommandAnswer("That is between you and me: write /link to me in a private chat.")
_MINUTES: Final = int(CODE_LIFETIME.total_seconds() // 60)
_PROBLEMS: Final = {
    LinkProblem.UNKNOWN: f"I do not know this code. A code works once, for {_MINUTES} minutes: /link gives a new one.",
    LinkProblem.GUESSING: "That were too many wrong codes. Try again in an hour.",
    LinkProblem.SAME: "These two accounts are linked already.",
}


async def _link(request: CommandRequest) -> CommandAnswer:
    asker = await find_alone(request, _IN_PRIVATE)
    if isinstance(asker, CommandAnswer):
        return asker
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
    linked = f"You are {' and '.join(each.label for each in known)}.\n\n" if len(known) > 1 else ""
    return CommandAnswer(
        f"{linked}Write this to me from your other account, within {_MINUTES} minutes:\n\n`/link {code}`\n\nShow it to "
        "nobody: whoever gives it, and is confirmed here by you, counts as you. When you have given it there, press "
        "the button, or write /link confirm.",
        (Button("I gave it there", "/link confirm"),),
        apply=lambda connection: offer_link(connection, asker.identity, code, request.now),
    )


async def _take(request: CommandRequest, asker: Asker, code: str) -> CommandAnswer:
    taken = await request.context.storage.write(
        lambda connection: take_code(connection, asker.identity, code, request.now), fence=request.claim
    )
    if isinstance(taken, LinkProblem):
        return CommandAnswer(_PROBLEMS[taken])
    accept = f"/link accept {taken.id}"
    return CommandAnswer(
        f"This is the code of {taken.asker.label}. Is that you? Then what I know of you is known in both accounts. "
        f"If so, press the button, or write {accept}.",
        (Button("Yes, that is me", accept),),
    )


async def _accept(request: CommandRequest, asker: Asker, offer_id: int) -> CommandAnswer:
    offer = await request.context.storage.write(
        lambda connection: accept_offer(connection, asker.identity, offer_id, request.now), fence=request.claim
    )
    if offer is None:
        return CommandAnswer(_PROBLEMS[LinkProblem.UNKNOWN])
    return CommandAnswer(
        f"Good. Now confirm it as {offer.asker.label}: press the button there, or write /link confirm."
    )


async def _look(request: CommandRequest, asker: Asker) -> CommandAnswer:
    offer = await request.context.storage.read(lambda connection: offer_of(connection, asker.identity, request.now))
    if offer is None:
        return CommandAnswer("No code of yours is waiting. /link gives a new one.")
    if offer.giver is None or not offer.is_accepted:
        return CommandAnswer(
            "The code has not been given yet, or not been agreed to there.",
            (Button("I gave it there", "/link confirm"),),
        )
    confirm = f"/link confirm {offer.id}"
    return CommandAnswer(
        f"{offer.giver.label} gave your code. Is that you? Only then press the button, or write {confirm}.",
        (Button("Yes, that is me", confirm),),
    )


async def _confirm(request: CommandRequest, asker: Asker, offer_id: int) -> CommandAnswer:
    offer = await request.context.storage.read(lambda connection: offer_of(connection, asker.identity, request.now))
    if offer is None or offer.id != offer_id or offer.giver is None or not offer.is_accepted:
        return CommandAnswer("Nobody has given a code of yours that waits. /link gives a new one.")

    def join(connection: Connection) -> None:
        confirm_offer(connection, asker.identity, offer_id, request.now)

    text = f"Done: you are {offer.giver.label} too. /unlink, in either account, takes them apart again."
    return CommandAnswer(text, apply=join)


async def _unlink(request: CommandRequest) -> CommandAnswer:
    asker = await find_alone(request, _IN_PRIVATE)
    if isinstance(asker, CommandAnswer):
        return asker
    known = await request.context.storage.read(lambda connection: identities_of(connection, asker.person_id))
    others = [each.label for each in known if each.id != asker.identity.id]
    if not others:
        return CommandAnswer("This account is not linked to any other.")

    def part(connection: Connection) -> None:
        part_identity(connection, asker.identity, request.now)

    text = f"Done: this account is apart from {' and '.join(others)}. What you told me here is known here alone."
    return CommandAnswer(text, apply=part)


LINK: Final = Command("link", _LINK_MENU, _link)
UNLINK: Final = Command("unlink", _UNLINK_MENU, _unlink)
