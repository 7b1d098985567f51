"""What is newer than most chats: tried once, left out where it is refused, and not tried there again."""

from typing import Any

import pytest
from standins.bot_api import BotApi, LoseAnswer, MessageShown, Refuse
from standins.bot_api.personal import PersonalShown
from standins.clocks import fast_clock
from standins.payments import Till, cashier

from botservice import Attachment, Button, Tool, ToolCall
from botservice.agent.reminding import REMINDER_TOOLS
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.texts import in_language
from transports.telegram.context import TelegramTempo

GROUP = -1001000000001
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
QUICK = TelegramTempo(first_sign=0.01, draft=0.05, first_message=0.05, edit=0.05)
NO_METHOD = Refuse(404, "Not Found: method not found")


def personal(api: BotApi) -> list[PersonalShown]:
    return api.journal.entries(PersonalShown)


def of_group(api: BotApi, *, administrator: bool) -> None:
    api.add_group(GROUP)
    api.world.chats[GROUP].bot_status = "administrator" if administrator else "member"


def noted(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["form"] for record in caplog.records if record.message == "transport.form_refused"]


async def test_usage_in_a_group_is_seen_by_whoever_asked_alone(api: BotApi, bot_on: Any) -> None:
    of_group(api, administrator=True)
    async with bot_on(api):
        api.person_says(f"/usage@{api.username}", chat_id=GROUP, user=1001)
        await api.until(lambda: personal(api))
    (shown,) = personal(api)
    assert (shown.receiver_id, "UTC" in shown.text) == (1001, True)
    assert api.visible_texts(GROUP) == []


async def test_where_that_is_refused_it_is_said_as_before_and_not_tried_again(
    api: BotApi, bot_on_both: Any, caplog: pytest.LogCaptureFixture
) -> None:
    of_group(api, administrator=False)
    for count in (1, 2):  # the second is another process
        async with bot_on_both(api):
            said = api.person_says(f"/usage@{api.username}", chat_id=GROUP, user=1001)
            shown = (await api.messages(GROUP, count, "UTC"))[-1]
            assert shown.reply_to == said.message_id
    tried = [call for call in api.calls("sendMessage") if "ephemeral_message_parameters" in call.params]
    assert len(tried) == 1
    assert noted(caplog) == ["personal"]
    assert personal(api) == []


async def test_what_is_private_is_not_said_in_the_group_where_nobody_can_be_told_alone(
    api: BotApi, bot_on: Any
) -> None:
    of_group(api, administrator=False)
    async with bot_on(api):
        api.person_says(f"/link@{api.username}", chat_id=GROUP, user=1001)
        await api.message(GROUP, in_language("link.in_private", "en"))


async def test_what_is_no_command_is_told_to_whoever_gave_it_and_a_refusal_of_the_group_to_all(
    api: BotApi, bot_on: Any
) -> None:
    of_group(api, administrator=True)
    async with bot_on(api):
        api.person_says(f"/usagee@{api.username}", chat_id=GROUP, user=1001)
        await api.until(lambda: personal(api))
    assert "/usage" in personal(api)[0].text
    assert api.visible_texts(GROUP) == []
    async with bot_on(api, access=Access(AccessMode.ALLOW, owners=frozenset({"telegram:42"}))):
        api.person_says(f"@{api.username} hello", chat_id=GROUP, user=1001)
        await api.message(GROUP, in_language("access.group", "en"))


async def test_a_button_that_one_person_alone_sees_can_be_pressed(api: BotApi, bot_on: Any) -> None:
    of_group(api, administrator=True)

    async def ask() -> list[Any]:
        """Ask."""
        return ["Which?", Button("Small"), Button("Large")]

    async with bot_on(api, [ToolCall("1", "ask", {}), "You want it small."], tools=[Tool(ask, is_final=True)]) as bot:
        plan = bot.transport.plan
        bot.transport.plan = lambda answer, events: plan(_personal(answer), events)
        api.person_says(f"@{api.username} ask me", chat_id=GROUP, user=1001)
        await api.until(lambda: personal(api))
        wire = personal(api)[0].wire
        api.person_presses_alone(GROUP, wire, wire["reply_markup"]["inline_keyboard"][0][0]["callback_data"], user=1001)
        await api.until(lambda: "You want it small." in [each.text for each in personal(api)])
        await api.until(lambda: any("✓ Small" in str(each.wire.get("reply_markup")) for each in personal(api)))
    assert api.visible_texts(GROUP) == []


def _personal(answer: Any) -> Any:
    from dataclasses import replace

    return replace(answer, is_personal=True)


async def test_reminders_name_times_that_each_reader_sees_as_their_own(api: BotApi, bot_on: Any) -> None:
    def script(prompt: list[Any]) -> Any:
        if prompt[-1]["role"] == "tool":
            return "I will."
        return ToolCall("1", "remind_me", {"text": "tea", "in_days": 1})

    async with bot_on(api, script, tools=REMINDER_TOOLS):
        api.person_says("remind me", chat_id=42)
        await api.message(42, "I will.")
        api.person_says("/reminders", chat_id=42)
        shown = await api.message(42, "tea")
        api.order(Refuse(400, "Bad Request: can't parse MessageEntity: unsupported type"), "sendMessage")
        api.person_says("/reminders", chat_id=42)
        plain = await api.message(42, "tea", after=shown.message_id)
    (moment,) = [each for each in shown.entities if each["type"] == "date_time"]
    words = shown.text[moment["offset"] : moment["offset"] + moment["length"]]
    assert words.endswith(" UTC")
    assert plain.text == shown.text
    assert [each["type"] for each in plain.entities] == ["bold"], "the rest of the formatting stays"


async def test_what_a_tool_does_is_a_thought_in_a_draft_and_a_line_where_a_chat_takes_none(
    api: BotApi, bot_on: Any, typist: Any, caplog: pytest.LogCaptureFixture
) -> None:
    api.add_private_chat(43)
    chats = iter((42, 43))

    async def look_up() -> str:
        """Look."""
        chat_id = next(chats)
        await api.until(lambda: any("look up" in draft.text for draft in api.drafts(chat_id)))
        return "found"

    api.order(NO_METHOD, "sendRichMessageDraft", chat_id=43, times=None)
    async with bot_on(api, typist, tools=[Tool(look_up)], tempo=QUICK):
        for chat_id in (42, 43):
            api.person_says("find it", chat_id=chat_id)
            typist.write(ToolCall("1", "look_up"))
            typist.write("It is here.")
            typist.finish()
            await api.message(chat_id, "It is here.")
    thoughts = api.calls("sendRichMessageDraft", chat_id=42)
    assert thoughts[0].params["rich_message"]["blocks"] == [{"type": "thinking", "text": "look up…"}]
    assert thoughts[0].params["can_stop"]
    assert len(api.calls("sendRichMessageDraft", chat_id=43)) == 1
    assert "⏳ look up…" in [draft.text for draft in api.drafts(43)]
    assert noted(caplog) == ["thinking"]


async def test_an_allowing_button_is_green_and_a_denying_one_red_where_a_chat_has_colours(
    api: BotApi, bot_on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    api.add_private_chat(43)
    refusal = Refuse(400, "Bad Request: can't parse inline keyboard button: invalid button style specified")
    api.order(refusal, "sendMessage", when=lambda call: "style" in call.text("reply_markup"), chat_id=43, times=None)
    async with bot_on(api, cashier(), tools=Till().tools):
        api.person_says("pay her", chat_id=42)
        shown = await api.message(42, "May I do this")
        api.person_says("pay her", chat_id=43)
        plain = await api.message(43, "May I do this")
    assert [each.get("style") for row in shown.buttons for each in row][:2] == ["success", "danger"]
    assert [each["text"] for row in plain.buttons for each in row][:2] == ["Allow", "Deny"]
    assert noted(caplog) == ["colours"]


async def test_where_buttons_cannot_be_disabled_the_choice_is_left(
    api: BotApi, bot_on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def offer() -> list[Any]:
        """Offer."""
        return ["Which?", Button("A"), Button("B")]

    def script(prompt: list[Any]) -> Any:
        return ToolCall("1", "offer", {}) if prompt[-1]["content"] == "choose" else "As you like."

    text = "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
    old = Refuse(400, text)
    api.order(old, "editMessageReplyMarkup", when=lambda call: "disabled" in call.text("reply_markup"), times=None)
    last = 0
    async with bot_on(api, script, tools=[Tool(offer, is_final=True)]):
        for _ in range(2):
            api.person_says("choose", chat_id=42)
            shown = await api.message(42, "Which?", after=last)
            last = shown.message_id
            api.person_presses(42, last, "b0")
            await api.until(lambda: [len(row) for row in api.seen(42, last).buttons] == [1])  # noqa: B023 - at once
            assert api.seen(42, last).buttons[0][0]["text"] == "✓ A"
    tried = [call for call in api.calls("editMessageReplyMarkup") if "disabled" in str(call.params["reply_markup"])]
    assert len(tried) == 1
    assert noted(caplog) == ["disabled-buttons"]


def pictures(count: int) -> Tool:
    async def draw() -> list[Any]:
        """Draw."""
        return ["There they are.", *(Attachment("image/png", f"p{n}.png", PNG + bytes([n])) for n in range(count))]

    return Tool(draw, is_final=True)


async def test_pictures_come_as_an_album_with_the_words_below(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [ToolCall("1", "draw", {})], tools=[pictures(3)]):
        api.person_says("draw", chat_id=42)
        shown = await api.messages(42, 3)
    assert [each.kind for each in shown] == ["photo"] * 3
    assert [each.text for each in shown] == ["There they are.", "", ""]
    assert len({each.wire["media_group_id"] for each in shown}) == 1
    assert [api.file(each.file_id).data[-1] for each in shown] == [0, 1, 2]
    assert len(api.calls("sendMediaGroup")) == 1


async def test_more_than_ten_pictures_are_two_albums(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [ToolCall("1", "draw", {})], tools=[pictures(11)]):
        api.person_says("draw", chat_id=42)
        await api.messages(42, 12, timeout=60)
    assert [len(call.params["media"]) for call in api.calls("sendMediaGroup")] == [9, 2]


async def test_an_album_whose_answer_was_lost_comes_once_more_and_no_more(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [ToolCall("1", "draw", {}), "next"], tools=[pictures(2)], clock=fast_clock()):
        api.order(LoseAnswer(), "sendMediaGroup")
        api.person_says("draw", chat_id=42)
        await api.messages(42, 4)
        api.person_says("and?", chat_id=42)
        await api.message(42, "next")
    assert len(api.journal.entries(MessageShown)) == 2 + 4 + 1


async def test_what_is_no_album_to_telegram_comes_file_by_file(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, [ToolCall("1", "draw", {})], tools=[pictures(2)]):
        api.order(Refuse(400, "Bad Request: IMAGE_PROCESS_FAILED"), "sendMediaGroup", times=None)
        api.person_says("draw", chat_id=42)
        shown = await api.messages(42, 2)
    assert [each.kind for each in shown] == ["photo", "photo"]
    assert [each.text for each in shown] == ["There they are.", ""]
