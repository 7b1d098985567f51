"""Probes of the Bot API."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from probes import Differs, Finding, Probe, Refused, Room, expect_refusal, try_all
from telegram.error import InvalidToken, TelegramError

from botservice.core.messages import Attachment, Button, Message, Moment, Role
from transports.telegram.answer_messages import plan_answer
from transports.telegram.button_presses import TelegramChoice
from transports.telegram.client import BotClient, InputFile, as_media
from transports.telegram.inbound_events import UNSEEN
from transports.telegram.keyboards import make_chosen, make_disabled
from transports.telegram.refused_forms import as_parameters

NOT_TRIED: Final = {
    "getUpdates": "it would take updates away from a running bot",
    "setWebhook": "it would take the webhook of a running bot",
    "deleteWebhook": "it would take the webhook of a running bot",
    "setMyCommands": "it would change the menus of a running bot",
    "answerCallbackQuery": "needs a press of a button",
    "getFile": "needs a file that somebody has sent",
    "answerGuestQuery": "needs somebody who calls the bot in another chat",
    "sendAudio": "needs a sound; sendDocument is the same call",
    "sendVideo": "needs a film; sendDocument is the same call",
    "sendVoice": "needs a voice; sendDocument is the same call",
    "deleteMessage": "all that was sent is deleted by it, and what stays is printed",
    "createForumTopic": "it would leave a topic behind",
}
# A picture of one pixel.
_PIXEL: Final = bytes.fromhex(
    "89504e470d0a1a0a 0000000d49484452 0000000100000001 0806000000 1f15c489"
    "0000000d49444154 78da63fccfc0500f00048401805a3453d0 000000 0049454e44 ae426082"
)


async def find_out(environ: Mapping[str, str]) -> list[Finding]:
    """Return what the probes find.

    Raises:
        KeyError: a setting is missing.
    """
    url = environ.get("TELEGRAM_API_URL", "https://api.telegram.org")
    client = BotClient(environ["TELEGRAM_BOT_TOKEN"], url)
    places = {"private": environ["LIVE_TELEGRAM_CHAT"]}
    for name, setting in (("group", "LIVE_TELEGRAM_GROUP"), ("member", "LIVE_TELEGRAM_USER")):
        if environ.get(setting):
            places[name] = environ[setting]

    async def call(method: str, **parameters: Any) -> Any:
        try:
            return await client.call(method, **parameters)
        except TelegramError as error:
            # the library takes a 404 for a wrong token
            raise Refused(error.message, is_unknown=isinstance(error, InvalidToken)) from error

    room = Room(call, places)
    try:
        return await try_all("telegram", PROBES, room, pause=float(environ.get("LIVE_PAUSE_SECONDS", "1.1")))
    finally:
        for chat, message in room.known.get("messages", ()):
            try:
                await client.call("deleteMessage", chat_id=chat, message_id=message)
            except TelegramError as error:
                print(f"message {message} stays: {error.message}")
        await client.close_connections()


async def _send(room: Room, method: str = "sendMessage", *, place: str = "private", **parameters: Any) -> Any:
    sent = await room.call(method, chat_id=room.places[place], **parameters)
    for each in sent if isinstance(sent, list) else [sent]:
        room.known.setdefault("messages", []).append((room.places[place], each["message_id"]))
    return sent


def _check(*, holds: bool, said: object) -> None:
    if not holds:
        raise Differs(str(said))


async def _who(room: Room) -> None:
    me = await room.call("getMe")
    _check(holds=me["is_bot"] and bool(me["username"]), said=me)
    await room.call("getWebhookInfo")


async def _longest(room: Room) -> None:
    await _send(room, text="x" * 4096)
    await expect_refusal(_send(room, text="x" * 4097), "too long")


async def _entities(room: Room) -> None:
    text = "🦊 bold"
    sent = await _send(room, text=text, entities=[{"type": "bold", "offset": 3, "length": 4}])
    kept = [(each["type"], each["offset"], each["length"]) for each in sent.get("entities", ())]
    _check(holds=kept == [("bold", 3, 4)], said=kept)


async def _own_time(room: Room) -> None:
    moment = Moment("08:00", datetime(2027, 1, 15, 8, tzinfo=UTC))
    (payload,) = plan_answer(Message(None, Role.SYSTEM, "08:00 is when", moments=(moment,)), [])
    sent = await _send(room, text=payload["text"], entities=payload["entities"])
    _check(holds=any(each["type"] == "date_time" for each in sent.get("entities", ())), said=sent.get("entities"))


async def _rich(room: Room) -> None:
    (payload,) = plan_answer(Message(None, Role.ASSISTANT, "| Tea | Cups |\n|---|---:|\n| Assam | 3 |"), [])
    _check(holds=payload["method"] == "sendRichMessage", said=payload["method"])
    await _send(room, "sendRichMessage", rich_message=payload["rich_message"])


async def _thought(room: Room) -> None:
    block = {"type": "thinking", "text": "looks something up…"}
    where = {"chat_id": int(room.places["private"]), "draft_id": 8, "can_stop": True}
    await room.call("sendRichMessageDraft", **where, rich_message={"blocks": [block]})


async def _draft(room: Room) -> None:
    await room.call("sendMessageDraft", chat_id=int(room.places["private"]), draft_id=7, text="")
    await room.call("sendMessageDraft", chat_id=int(room.places["private"]), draft_id=7, text="a draft", can_stop=True)


async def _edit(room: Room) -> None:
    sent = await _send(room, text="first")
    where = {"chat_id": room.places["private"], "message_id": sent["message_id"]}
    await room.call("editMessageText", **where, text="second")
    await expect_refusal(room.call("editMessageText", **where, text="second"), "not modified")


async def _buttons(room: Room) -> None:
    buttons = (Button("Allow", "/allow"), Button("Not now", "/deny"))
    (payload,) = plan_answer(Message(None, Role.SYSTEM, "May I?", buttons=buttons), [])
    sent = await _send(room, text=payload["text"], reply_markup=payload["reply_markup"])
    keyboards = make_disabled(buttons, 0), make_chosen(buttons, 0)
    choice = TelegramChoice(
        {"chat_id": room.places["private"]}, str(sent["message_id"]), room.places["private"], *keyboards
    )
    for keyboard in keyboards:
        method, parameters = choice.edit(keyboard)
        await room.call(method, **parameters)


async def _aside(room: Room) -> None:
    member = int(room.places["member"])
    buttons = (Button("Allow", "/allow"),)
    (payload,) = plan_answer(Message(None, Role.SYSTEM, "May I?", buttons=buttons), [])
    sent = await room.call(
        "sendMessage",
        chat_id=room.places["group"],
        text=payload["text"],
        reply_markup=payload["reply_markup"],
        **as_parameters({"user_id": member}),
    )
    _check(holds=bool(sent.get("ephemeral_message_id")), said=sorted(sent))
    keyboards = make_disabled(buttons, 0), make_chosen(buttons, 0)
    message_id = f"{UNSEEN}{sent['ephemeral_message_id']}"
    method, parameters = TelegramChoice({"chat_id": room.places["group"]}, message_id, str(member), *keyboards).edit(
        keyboards[1]
    )
    await room.call(method, **parameters)


async def _administrators(room: Room) -> None:
    found = await room.call("getChatAdministrators", chat_id=room.places["group"])
    named = [each.get("status") in ("creator", "administrator") and "id" in each.get("user", {}) for each in found]
    _check(holds=bool(named) and all(named), said=[sorted(each) for each in found])


async def _reply_to_what_is_gone(room: Room) -> None:
    reply = {"message_id": 2_000_000_000, "allow_sending_without_reply": True}
    await _send(room, text="to nobody", reply_parameters=reply)


async def _reaction(room: Room) -> None:
    sent = await _send(room, text="heard")
    where = {"chat_id": room.places["private"], "message_id": sent["message_id"]}
    await room.call("setMessageReaction", **where, reaction=[{"type": "emoji", "emoji": "👌"}])


async def _typing(room: Room) -> None:
    await room.call("sendChatAction", chat_id=room.places["private"], action="typing")


async def _files(room: Room) -> None:
    def pixel() -> InputFile:
        return InputFile(_PIXEL, filename="pixel.png")

    for method, field in (("sendPhoto", "photo"), ("sendDocument", "document")):
        await _send(room, method, **{field: pixel()}, caption="a file")
    await expect_refusal(_send(room, "sendDocument", document=pixel(), caption="x" * 1025), "caption is too long")


async def _album(room: Room) -> None:
    pictures = tuple(Attachment("image/png", f"{name}.png", _PIXEL) for name in ("one", "two"))
    (payload,) = plan_answer(Message(None, Role.ASSISTANT, "two pictures", attachments=pictures), [])
    media = [as_media(each, InputFile(_PIXEL, filename=each["file"]["name"], attach=True)) for each in payload["media"]]
    sent = await _send(room, payload["method"], media=media)
    _check(holds=len(sent) == len(media), said=len(sent))


async def _unknown(room: Room) -> None:
    try:
        await room.call("sendSomethingThatNobodyHas")
    except Refused as refused:
        _check(holds=refused.is_unknown, said=refused)
        return
    raise Differs("it was taken")


PROBES: Final = [
    Probe("who the bot is", ["getMe", "getWebhookInfo"], "is_bot and username", _who),
    Probe("the longest message", ["sendMessage"], "4,096 characters, and 'too long' beyond", _longest, ["private"]),
    Probe("entities", ["sendMessage"], "offsets in UTF-16 units, given back as sent", _entities, ["private"]),
    Probe(
        "a moment in the reader's own time",
        ["sendMessage"],
        "date_time is kept",
        _own_time,
        ["private"],
        has_fallback=True,
    ),
    Probe("a rich message", ["sendRichMessage"], "a table as a block", _rich, ["private"], has_fallback=True),
    Probe("a thought", ["sendRichMessageDraft"], "a block of kind thinking", _thought, ["private"], has_fallback=True),
    Probe(
        "a draft",
        ["sendMessageDraft"],
        "an empty text thinks; can_stop is known",
        _draft,
        ["private"],
        has_fallback=True,
    ),
    Probe("an edit", ["editMessageText"], "the same text again is 'not modified'", _edit, ["private"]),
    Probe(
        "buttons",
        ["editMessageReplyMarkup"],
        "styles are known, and buttons can be disabled",
        _buttons,
        ["private"],
        has_fallback=True,
    ),
    Probe(
        "a message for one member alone",
        ["sendMessage", "editEphemeralMessageReplyMarkup"],
        "an administrator may send it, and change its buttons",
        _aside,
        ["group", "member"],
        has_fallback=True,
    ),
    Probe(
        "who runs a group",
        ["getChatAdministrators"],
        "its creator and its administrators, each with an id",
        _administrators,
        ["group"],
    ),
    Probe("a reply to what is gone", ["sendMessage"], "it is sent without", _reply_to_what_is_gone, ["private"]),
    Probe(
        "a reaction",
        ["setMessageReaction"],
        "👌 is one of those that are free",
        _reaction,
        ["private"],
        has_fallback=True,
    ),
    Probe("typing", ["sendChatAction"], "typing", _typing, ["private"], has_fallback=True),
    Probe("files", ["sendPhoto", "sendDocument"], "captions of 1,024 characters", _files, ["private"]),
    Probe("an album", ["sendMediaGroup"], "two pictures, one caption", _album, ["private"], has_fallback=True),
    Probe("a method that nobody has", [], "it is said so, by 404", _unknown),
]
