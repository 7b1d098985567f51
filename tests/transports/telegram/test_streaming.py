"""While the bot is at work, a person sees that it is, and what it will say; the answer comes whatever happens."""

import asyncio
import itertools

import pytest
from standins.bot_api import BotApi, Drop, Hang, LoseAnswer, MessageEdited, RateLimits, flood, server_error
from standins.clocks import JumpingClock, fast_pace

from botservice import Attachment, LLMError, Storage, Tool, ToolCall, progress
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import deliveries
from transports.telegram.context import TelegramTempo

GROUP = -1001000000001
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
QUICK = TelegramTempo(first_sign=0.0, typing=0.05, draft=0.01, first_message=0.01, edit=0.01)
SENTENCE = "Here is one more sentence of the answer, which goes on and on for a while. "


def counted(api: BotApi, chat_id: int) -> list[str]:
    """Return the methods called about a chat."""
    return [call.method for call in api.calls(chat_id=chat_id)]


def is_at_work(api: BotApi, chat_id: int) -> bool:
    return any(method in ("sendChatAction", "sendMessageDraft") for method in counted(api, chat_id))


async def test_a_first_sign_of_life_comes_within_a_second(api: BotApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        for chat_id in range(42, 52):  # a machine that has something else to do may be late now and then
            said = api.person_says("think hard", chat_id=chat_id)
            sign = await api.call("sendChatAction", chat_id=chat_id)
            draft = await api.call("sendMessageDraft", chat_id=chat_id)
            typist.write("done")
            typist.finish()
            await api.message(chat_id, "done")
            heard = next(each for each in api.journal.entries() if getattr(each, "update_id", None) == said.update_id)
            if (late := min(sign.at, draft.at) - heard.at) < 1.0:
                break
    assert late < 1.0
    assert draft.params["text"] == "", "an empty draft shows as Thinking…"


async def test_a_private_answer_grows_in_a_draft_and_ends_as_one_message(api: BotApi, bot_on, typist) -> None:
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says("tell me", chat_id=42)
        await api.call("sendMessageDraft")
        for number in range(8):
            typist.write(f"**{number}** {SENTENCE}" * 2)
            await api.until(lambda number=number: f"{number} Here" in (api.drafts(42)[-1].text))
        typist.finish()
        answer = await api.message(42)
    texts = [draft.text for draft in api.drafts(42)]
    assert texts[0] == ""
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
    assert "**" not in texts[-1]
    assert len({call.params["draft_id"] for call in api.calls("sendMessageDraft")}) == 1
    assert api.calls("sendMessageDraft")[0].params["draft_id"] > 0
    assert api.visible_texts(42) == [answer.text]
    assert api.visible_draft(42) is None


async def test_an_answer_that_begins_anew_does_not_repeat_itself(api: BotApi, bot_on, typist) -> None:
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says("tell me", chat_id=42)
        typist.write("The first try " * 20)
        await api.until(lambda: "first" in api.drafts(42)[-1].text if api.drafts(42) else False)
        typist.write(LLMError("cut off"))
        typist.write("The second try")
        await api.until(lambda: "second" in api.drafts(42)[-1].text)
        typist.finish()
        await api.message(42, "The second try")
    assert not any("first" in draft.text and "second" in draft.text for draft in api.drafts(42))


async def test_a_streamed_answer_costs_few_calls(api: BotApi, bot_on, typist) -> None:
    async with bot_on(api, typist, tempo=TelegramTempo(first_sign=0.0, draft=0.0)):
        api.person_says("tell me", chat_id=42)
        await api.call("sendMessageDraft")
        written = 0
        for word in (SENTENCE * 60).split():
            typist.write(word + " ")
            written += len(word) + 1
            await asyncio.sleep(0)
        typist.finish()
        await api.message(42)
    assert written > 4000
    assert len(counted(api, 42)) <= 15 * written / 1000


async def test_a_thousand_characters_cost_at_most_fifteen_calls_however_slowly_they_come(
    api: BotApi, bot_on, typist
) -> None:
    async with bot_on(api, typist, tempo=TelegramTempo(first_sign=0.0, draft=0.0)):
        api.person_says("tell me", chat_id=42)
        await api.call("sendMessageDraft")
        for number in range(100):
            before = len(api.drafts(42))
            typist.write("ten chars ")
            if number % 13 == 0:
                await api.until(lambda before=before: len(api.drafts(42)) > before)
        typist.finish()
        await api.message(42)
    assert len(counted(api, 42)) <= 15


async def test_a_tool_that_runs_is_named_in_the_draft(api: BotApi, bot_on, typist, monkeypatch) -> None:
    monkeypatch.setattr("transports.telegram.live._TEXT_IS_FRESH_SECONDS", 0.2)
    running = asyncio.Event()

    async def search_web() -> str:
        """Search."""
        await running.wait()
        return "found"

    async with bot_on(api, typist, tools=[Tool(search_web)], tempo=QUICK):
        api.person_says("find it", chat_id=42)
        typist.write("Let me look. ")
        typist.pieces.put_nowait(ToolCall("1", "search_web"))
        await api.until(lambda: any("search web" in draft.text for draft in api.drafts(42)))
        await api.until(lambda: counted(api, 42).count("sendChatAction") >= 3)
        running.set()
        typist.write("It is here.")
        typist.finish()
        answer = await api.message(42)
    assert answer.text == "It is here."


async def test_what_a_tool_says_of_its_work_stands_in_the_draft_and_nowhere_else(api: BotApi, bot_on, typist) -> None:
    running = asyncio.Event()

    async def search_web() -> str:
        """Search."""
        progress("page <b>3</b> of\n*ten* \u202e_more_")
        await running.wait()
        return "found"

    async with bot_on(api, typist, tools=[Tool(search_web)], tempo=QUICK) as bot:
        api.person_says("find it", chat_id=42)
        typist.pieces.put_nowait(ToolCall("1", "search_web"))
        await api.until(lambda: any("page" in draft.text for draft in api.drafts(42)))
        assert api.drafts(42)[-1].text == "search web: page <b>3</b> of *ten* _more_…"
        running.set()
        typist.write("It is here.")
        typist.finish()
        assert (await api.message(42)).text == "It is here."
        await bot.worker.stop()
        assert "page <b>" not in await bot.storage.read(lambda connection: repr([*map(list, _rows(connection))]))
    assert not any("entities" in call.params for call in api.calls("sendMessageDraft") if "page" in call.params["text"])


def _rows(connection):
    return (connection.execute(table.select()).all() for table in metadata.sorted_tables)


async def test_a_tool_that_says_a_lot_is_shown_to_its_end(api: BotApi, bot_on, typist, monkeypatch) -> None:
    monkeypatch.setattr("botservice.agent.tool_progress._PAUSE_SECONDS", 0.0)
    tempo = TelegramTempo(first_sign=0.0, draft=0.0, later_activity=0.01)

    async def read_book() -> str:
        """Read."""
        for page in range(25):
            progress(f"page {page}.")
            await api.until(lambda page=page: any(f"page {page}…" in draft.text for draft in api.drafts(42)))
        return "read"

    async with bot_on(api, typist, tools=[Tool(read_book)], tempo=tempo):
        api.person_says("read it", chat_id=42)
        typist.pieces.put_nowait(ToolCall("1", "read_book"))
        typist.write("It is good.")
        typist.finish()
        await api.message(42, "It is good.")


async def test_a_group_sees_one_message_that_grows_and_becomes_the_answer(api: BotApi, bot_on, typist) -> None:
    api.add_group(GROUP)
    async with bot_on(api, typist, tempo=QUICK):
        said = api.person_says(f"@{api.username} tell us", chat_id=GROUP)
        typist.write(SENTENCE * 4)
        first = await api.message(GROUP)
        assert first.text.endswith("…")
        for number in range(3):
            typist.write(f"**{number}** {SENTENCE}" * 3)
            await api.until(lambda n=number: f"{n} Here" in api.visible_texts(GROUP)[0])
        typist.write("The end.")
        typist.finish()
        await api.message(GROUP, "The end.")
    (shown,) = api.visible_messages(GROUP, from_bot=True)
    assert (shown.message_id, shown.reply_to) == (first.message_id, said.message_id)
    assert not shown.text.endswith("…")
    assert not api.drafts(GROUP)


async def test_a_file_of_a_tool_comes_with_the_words_that_grew_in_a_group(api: BotApi, bot_on, typist) -> None:
    async def draw() -> Attachment:
        """Draw."""
        return Attachment("image/png", "chart.png", PNG)

    api.add_group(GROUP)
    async with bot_on(api, typist, tools=[Tool(draw)], tempo=QUICK):
        api.person_says(f"@{api.username} draw", chat_id=GROUP)
        typist.write(ToolCall("", "draw"), SENTENCE * 4)
        assert (await api.message(GROUP)).text.endswith("…")
        typist.write("The end.")
        typist.finish()
        shown = await api.message(GROUP, lambda message: message.kind == "photo")
        await api.until(lambda: len(api.visible_messages(GROUP, from_bot=True)) == 1)
    assert api.file(shown.file_id).data == PNG
    assert api.visible_texts(GROUP) == [SENTENCE * 4 + "The end."]


async def test_a_short_answer_in_a_group_is_one_message(api: BotApi, bot_on, typist) -> None:
    api.add_group(GROUP)
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says(f"@{api.username} hi", chat_id=GROUP)
        await api.until(lambda: is_at_work(api, GROUP))
        typist.write("Hello ", "everybody.")
        typist.finish()
        await api.message(GROUP, "Hello everybody.")
    assert not api.calls("editMessageText")


async def test_a_stream_in_a_group_keeps_to_the_published_limits(api: BotApi, bot_on, typist) -> None:
    api.add_group(GROUP)
    clock = JumpingClock()
    api.limits = RateLimits(clock=clock)
    async with bot_on(api, typist, pace=clock.pace(), tempo=QUICK):
        api.person_says(f"@{api.username} tell us", chat_id=GROUP)
        typist.write(SENTENCE * 4)
        await api.message(GROUP)
        typist.write(SENTENCE * 4)
        await clock.sleep(1.2)
        await api.until(lambda: api.journal.entries(MessageEdited))
        typist.write(SENTENCE, "The end.")
        typist.finish()
        await api.message(GROUP, "The end.")
    assert api.limits.refused == 0


async def test_a_long_stream_in_a_group_loses_nothing(api: BotApi, bot_on, typist) -> None:
    api.add_group(GROUP)
    whole = "\n\n".join(f"Paragraph {number}. {SENTENCE * 5}" for number in range(20))
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says(f"@{api.username} tell us", chat_id=GROUP)
        for start in range(0, len(whole), 500):
            typist.write(whole[start : start + 500])
            await asyncio.sleep(0)
        await api.message(GROUP)
        typist.finish()
        await api.message(GROUP, "Paragraph 19", timeout=60)
        await api.until(lambda: " ".join(api.visible_texts(GROUP)).split() == whole.split())


@pytest.mark.parametrize("fault", [server_error(500), flood(30), Drop(), LoseAnswer(), server_error(502, html=True)])
@pytest.mark.parametrize("chat", [42, GROUP])
async def test_whatever_happens_to_the_show_the_answer_comes(api: BotApi, bot_on, typist, fault, chat: int) -> None:
    api.add_group(GROUP)
    for method in ("sendChatAction", "sendMessageDraft", "editMessageText"):
        api.order(fault, method, when=lambda call: "The end" not in str(call.params.get("text")), times=None)
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says(f"@{api.username} tell", chat_id=chat)
        for _ in range(6):
            typist.write(SENTENCE * 3)
            await asyncio.sleep(0)
        typist.write("The end.")
        typist.finish()
        await api.message(chat, "The end.")


@pytest.mark.parametrize(
    ("chat", "method"), [(42, "sendMessageDraft"), (GROUP, "sendMessage"), (GROUP, "editMessageText")]
)
async def test_an_answer_grows_on_after_the_wait_that_telegram_asks_for(
    api: BotApi, bot_on, typist, chat: int, method: str
) -> None:
    api.add_group(GROUP)
    async with bot_on(api, typist, pace=fast_pace(), tempo=QUICK):
        order = api.order(flood(1), method, chat_id=chat)
        api.person_says(f"@{api.username} tell", chat_id=chat)
        typist.write(SENTENCE * 4)
        if method == "editMessageText":
            await api.message(GROUP)
            typist.write(SENTENCE * 4)
        await api.until(lambda: order.used)
        typist.write("It grows on. ", SENTENCE * 4)
        seen = lambda: [each.text for each in api.drafts(42)] if chat == 42 else api.visible_texts(GROUP)  # noqa: E731
        await api.until(lambda: any("It grows on." in text for text in seen()))
        typist.write("The end.")
        typist.finish()
        await api.message(chat, "The end.")


async def test_marks_that_are_not_closed_yet_do_not_show_while_an_answer_grows(api: BotApi, bot_on, typist) -> None:
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says("tell me", chat_id=42)
        typist.write("See **what")
        await api.until(lambda: api.drafts(42) and "what" in api.drafts(42)[-1].text)
        typist.write(f" counts** and [the page](https://example.com). {SENTENCE * 2}\n\n```python\nx = ")
        await api.until(lambda: "x =" in api.drafts(42)[-1].text)
        typist.write("1\n```")
        typist.finish()
        await api.message(42, "x = 1")
    texts = [each.text for each in api.drafts(42)]
    assert not any("**" in text or "```" in text or "[the" in text for text in texts)
    marked = next(call for call in api.calls("sendMessageDraft") if call.params["text"])
    assert [each["type"] for each in marked.params["entities"]] == ["bold"]


@pytest.mark.parametrize("chat", [42, GROUP])
async def test_a_show_that_hangs_holds_the_answer_up_only_briefly(api: BotApi, bot_on, typist, chat: int) -> None:
    api.add_group(GROUP)
    for method in ("sendChatAction", "sendMessageDraft"):
        api.order(Hang(), method, times=None)
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says(f"@{api.username} tell", chat_id=chat)
        await api.until(lambda: is_at_work(api, chat))
        typist.write("The end.")
        typist.finish()
        await api.message(chat, "The end.", timeout=30)


async def test_a_stream_whose_opening_was_lost_is_followed_by_the_answer(api: BotApi, bot_on, typist) -> None:
    api.add_group(GROUP)
    api.order(LoseAnswer(), "sendMessage", chat_id=GROUP)
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says(f"@{api.username} tell", chat_id=GROUP)
        typist.write(SENTENCE * 4)
        await api.message(GROUP)
        typist.write("The end.")
        typist.finish()
        await api.message(GROUP, "The end.")
    assert len(api.visible_texts(GROUP)) == 2


async def test_an_answer_waits_for_a_stream_that_is_about_to_open_and_takes_it_over(
    api: BotApi, bot_on, typist
) -> None:
    api.add_group(GROUP)
    opening = api.order(Hang(after_effect=True), "sendMessage", chat_id=GROUP)
    async with bot_on(api, typist, tempo=QUICK):
        api.person_says(f"@{api.username} tell", chat_id=GROUP)
        typist.write(SENTENCE * 4)
        await api.message(GROUP)
        typist.write("The end.")
        typist.finish()
        opening.release()
        await api.message(GROUP, "The end.")
    assert [text.endswith("The end.") for text in api.visible_texts(GROUP)] == [True]


@pytest.mark.parametrize("knows_itself", [True, False])
async def test_a_turn_that_was_cut_off_goes_on_in_the_same_message(
    api: BotApi, bot_on, typist, knows_itself: bool
) -> None:
    api.add_group(GROUP)
    async with bot_on(api, typist, tempo=QUICK) as bot:
        api.person_says(f"@{api.username} tell", chat_id=GROUP)
        typist.write(SENTENCE * 4)
        first = await api.message(GROUP)
        async with asyncio.timeout(60):
            while not await _stream_id(bot.storage):  # noqa: ASYNC110 - the database wakes nobody
                await asyncio.sleep(0)
        await bot.worker.stop()
    if not knows_itself:
        api.order(Drop(), "getMe", times=None)
    async with bot_on(api, typist, tempo=QUICK):
        typist.write(SENTENCE * 8)
        await api.until(lambda: api.visible_messages(GROUP, from_bot=True)[0].edits > 0)
        typist.write("The end.")
        typist.finish()
        await api.message(GROUP, "The end.")
    assert [message.message_id for message in api.visible_messages(GROUP, from_bot=True)] == [first.message_id]


async def _stream_id(storage: Storage) -> str | None:
    return await storage.read(lambda connection: connection.execute(deliveries.select()).one().external_id)


@pytest.mark.parametrize("way", ["/stop", "button"])
async def test_a_stop_cuts_the_model_off_and_keeps_what_was_said(api: BotApi, bot_on, typist, way: str) -> None:
    async with bot_on(api, typist, tempo=QUICK) as bot:
        api.person_says("tell me", chat_id=42)
        typist.write("Once upon a time. ")
        await api.until(lambda: any("Once" in draft.text for draft in api.drafts(42)))
        if way == "button":
            assert api.calls("sendMessageDraft")[0].params["can_stop"] is True
            api.person_stops_generation(42)
        else:
            api.person_says("/stop", chat_id=42)
        await api.message(42, "Once upon a time.")
        typist.write("Next")
        typist.finish()
        api.person_says("go on", chat_id=42)
        await api.message(42, "Next")
        assert len(bot.llm.prompts) == 2
    assert api.visible_texts(42) == ["Once upon a time.", "Next"]


async def test_a_stop_where_nothing_runs_does_no_harm(api: BotApi, bot_on) -> None:
    async with bot_on(api):
        stop = api.person_says("/stop", chat_id=42)
        reaction = await api.call("setMessageReaction")
        assert reaction.params["message_id"] == stop.message_id
        api.person_says(f"/stop@{api.username}", chat_id=42)
        api.person_says("/stop@another_bot", chat_id=42)
        api.person_says("hello", chat_id=42)
        await api.message(42, "You said: hello")


async def test_a_quick_answer_costs_one_call(api: BotApi, bot_on) -> None:
    async with bot_on(api, tempo=TelegramTempo(first_sign=600.0)):
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert counted(api, 42) == ["sendMessage"]
