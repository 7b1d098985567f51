"""A program's own messages on Telegram: in parts, with files and buttons, as answers have them."""

from standins.bot_api import BotApi, LoseAnswer, Refuse
from standins.clocks import fast_clock

from botservice import AgentContext, AgentService, Attachment, Button, FunctionsBasedAgent, ScriptedChatLLM, Storage

CHAT = {"transport": "telegram", "chat_id": "42"}


async def send(storage: Storage, text: str, **more: object) -> None:
    service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])), storage)
    await service.send(await AgentContext.get_or_create(storage, CHAT), text, **more)


async def test_a_message_that_nobody_asked_for_comes_with_its_file_and_its_buttons(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    api.add_private_chat(42)
    async with bot_on(api, clock=fast_clock()):
        file = Attachment("text/csv", data=b"a,b", name="figures.csv")
        await send(sqlite_storage, "**Red.** Ship it?", attachments=[file], buttons=[Button("Ship it")])
        await api.message(42, "Red. Ship it?")
        [sent] = api.visible_messages(42, from_bot=True)
        assert [call.method for call in api.calls("sendDocument")] == ["sendDocument"]
        [[button]] = sent.buttons
        api.person_presses(42, sent.message_id, button["callback_data"])
        await api.message(42, "You said: Ship it")


async def test_a_long_one_comes_in_parts_in_order(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    api.add_private_chat(42)
    text = "\n\n".join(f"Paragraph {n}. " + "Some words follow. " * 30 for n in range(40))
    async with bot_on(api, clock=fast_clock()):
        api.order(Refuse(404, "Not Found: method not found"), "sendRichMessage", times=None)
        await send(sqlite_storage, text)
        await api.message(42, "Paragraph 39", timeout=60)
    assert " ".join(api.visible_texts(42)).split() == text.split()


async def test_a_lost_answer_costs_one_duplicate_at_most(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    api.add_private_chat(42)
    async with bot_on(api, clock=fast_clock()):
        api.order(LoseAnswer(), "sendMessage")
        for _ in range(3):
            await send(sqlite_storage, "news", key="k")
        await api.messages(42, 2)
    assert api.visible_texts(42) == ["news"] * 2
