"""/reminders in a chat."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from turns.messenger import Messenger, echo, office

from botservice import AgentContext, InboundMessage
from botservice.commands.standard import standard_commands
from botservice.conversation.reminder import Repeats
from botservice.conversation.reminder_queries import NewReminder, insert_reminder, read_waiting
from botservice.texts import LANGUAGES
from botservice.turns.commands import CommandRequest, parse_command

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
async def chat(storage) -> AgentContext:
    context = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})
    for number, repeats in enumerate((None, Repeats.DAILY, Repeats.WEEKLY)):
        due_at = NOON + timedelta(hours=number)
        new = NewReminder(str(number), context.id, "test", f"Text\n{number}", due_at, NOON, repeats=repeats)
        await storage.write(lambda connection, new=new: insert_reminder(connection, new))
    return context


async def ask(context: AgentContext, text: str, language: str = "en"):
    call = parse_command(text)
    request = CommandRequest(call, InboundMessage(text, language=language), context, None, None, NOON)
    answer = await standard_commands().answer(request)
    return replace(answer, text=answer.text.plain)


@pytest.mark.any_database
async def test_what_waits_is_listed_with_a_button_for_each(chat):
    answer = await ask(chat, "/reminders", "pt-BR")
    assert answer.text.splitlines()[2:] == [
        "- 1 · hoje, 12:00 UTC · Text 0",
        "- 2 · hoje, 13:00 UTC, todos os dias · Text 1",
        "- 3 · hoje, 14:00 UTC, toda semana · Text 2",
    ]
    assert [each.says for each in answer.buttons] == [f"/reminders cancel {number}" for number in (1, 2, 3)]
    assert answer.buttons[0].text == "Cancelar 1"


async def test_one_is_cancelled_in_the_transaction_of_the_answer(chat, storage):
    answer = await ask(chat, "/reminders cancel 2")
    assert answer.text == "Cancelled: Text 1"
    assert answer.apply is not None
    assert len(await storage.read(lambda connection: read_waiting(connection, chat.id))) == 3
    await storage.write(answer.apply)
    left = await storage.read(lambda connection: read_waiting(connection, chat.id))
    assert [each.id for each in left] == [1, 3]


@pytest.mark.any_database
async def test_another_chat_s_reminder_is_not_there(chat, storage):
    other = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "2"})
    answer = await ask(other, "/reminders cancel 2")
    assert answer.apply is None
    assert "There’s no reminder 2 here" in answer.text
    assert "remind me tomorrow" in (await ask(other, "/reminders")).text


@pytest.mark.any_database
@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_language_has_its_own_words(chat, storage, language):
    other = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "2"})
    answers = [await ask(each, text, language) for each, text in ((chat, "/reminders"), (other, "/reminders"))]
    english = [await ask(each, text, "en") for each, text in ((chat, "/reminders"), (other, "/reminders"))]
    assert language == "en" or all(one.text != two.text for one, two in zip(answers, english, strict=True))


@pytest.mark.any_database
async def test_a_late_reminder_says_so_in_the_language_in_which_it_was_asked_for(storage):
    from turns.bots import call
    from turns.test_worker import history

    from botservice.agent.reminding import Reminders

    class Korean(Messenger):
        async def read(self, event):
            return InboundMessage(event.raw.decode(), language="ko-KR")

    now = [NOON]
    script = [call("remind_me", text="엄마", in_hours=1), "네"]
    async with office(
        storage, [*script, echo], messenger=Korean(), clock=lambda: now[0], tools=Reminders(lambda: now[0]).tools()
    ) as bot:
        await bot.write("알려 줘", order=1)
        await bot.messenger.shows("1", "네")
        now[0] += timedelta(hours=5)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 3)
        assert "알림이 늦었습니다" in bot.messenger.visible["1"][2]
    assert (await history(storage))[-1][1] == "⏰ 엄마"
