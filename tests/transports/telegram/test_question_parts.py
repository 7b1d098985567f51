"""Messages that one person sends together are one question: long pastes, comments with forwards, slow albums."""

from collections.abc import Sequence
from typing import Any

import pytest
from standins.bot_api import BotApi, Person
from standins.bot_api.files import attached
from standins.clocks import LastingMinute, fast_clock
from standins.models import Typist

from botservice import AgentContext, Storage, Tool, ToolCall
from botservice.core.messages import Role
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets
from botservice.turns.event_queries import MAX_JOINED, MAX_OWN_TURNS

GROUP = -1001000000001
ADA, BOB = Person(1, "Ada"), Person(2, "Bob")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
PASTE = "".join(f"line {number:06}\n" for number in range(900))  # three parts of a client
ASKED = "what do they want from me?"
POSTS = [f"post number {number}" for number in range(5)]


def said_in(prompt: Sequence[Any]) -> str:
    return "\n".join(str(each["content"]) for each in prompt if each["role"] == "user")


def length(prompt: Sequence[Any]) -> str:
    return f"read {sum(each.isdigit() for each in said_in(prompt)) // 6} lines"  # clients cut numbers as well


def count_posts(prompt: Sequence[Any]) -> str:
    words = said_in(prompt)
    return f"{sum(each in words for each in POSTS)} posts, asked: {ASKED in words}"


async def said(storage: Storage, chat_id: int = 42) -> list[str]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat_id)})
    return [each.text for each in await context.chat_history.messages() if each.role is Role.USER]


@pytest.mark.parametrize("webhook", [False, True])
async def test_a_long_paste_is_one_question(api: BotApi, bot_on_both: Any, storage: Storage, webhook: bool) -> None:
    clock = LastingMinute()
    async with bot_on_both(api, length, clock=clock, webhook=webhook):
        assert len(api.person_pastes(PASTE, chat_id=42)) == 3
        await api.all_taken()
        clock.pass_(seconds=2)
        await api.message(42)
        api.person_says("thanks", chat_id=42)
        await api.messages(42, 2)
    assert api.visible_texts(42)[0] == "read 900 lines"
    assert "".join((await said(storage))[:3]) == PASTE


async def test_a_paste_in_a_group_is_read_whole_though_the_bot_is_named_once(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, members=[ADA, BOB])
    clock = LastingMinute()
    async with bot_on(api, length, clock=clock):
        api.person_pastes(f"@{api.username} {PASTE}", chat_id=GROUP, user=ADA)
        api.person_says("and I say nothing", chat_id=GROUP, user=BOB)
        await api.all_taken()
        clock.pass_(seconds=2)
        await api.message(GROUP, "read 900 lines")


async def test_an_ordinary_message_waits_for_nothing(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, clock=LastingMinute()):
        api.person_says("hello", chat_id=42)
        await api.message(42, "You said: hello")


@pytest.mark.parametrize("webhook", [False, True])
async def test_a_comment_and_the_messages_forwarded_with_it_are_one_question(
    api: BotApi, bot_on_both: Any, storage: Storage, typist: Typist, webhook: bool
) -> None:
    async with bot_on_both(api, typist, webhook=webhook):
        with api.condition:
            api.person_forwards(POSTS, chat_id=42, comment=ASKED)
        await api.until(lambda: typist.prompts and "5 posts" in count_posts(typist.prompts[-1]))
        typist.write("They want money.")
        typist.finish()
        await api.message(42, "They want money.")
    assert count_posts(typist.prompts[-1]) == "5 posts, asked: True"
    assert len(api.visible_texts(42)) == 1
    assert sorted(await said(storage)) == sorted([ASKED, *[""] * 5])


async def test_a_comment_begins_at_once_and_begins_again_with_what_is_forwarded(
    api: BotApi, bot_on_both: Any, storage: Storage, typist: Typist
) -> None:
    async with bot_on_both(api, typist):
        api.person_says(ASKED, chat_id=42)
        await api.until(lambda: typist.prompts)
        api.person_forwards(POSTS, chat_id=42)
        await api.until(lambda: count_posts(typist.prompts[-1]) == "5 posts, asked: True")
        typist.write("They want money.")
        typist.finish()
        await api.message(42, "They want money.")
    assert api.visible_texts(42) == ["They want money."]
    assert (await said(storage)).count(ASKED) == 1


async def test_what_is_forwarded_first_begins_again_with_the_comment(api: BotApi, bot_on: Any, typist: Typist) -> None:
    async with bot_on(api, typist):
        api.person_forwards(POSTS[:1], chat_id=42)
        await api.until(lambda: typist.prompts)
        api.person_says(ASKED, chat_id=42)
        await api.until(lambda: count_posts(typist.prompts[-1]) == "1 posts, asked: True")
        typist.write("money")
        typist.finish()
        await api.message(42, "money")
    assert api.visible_texts(42) == ["money"]


async def test_what_comes_after_words_were_shown_is_a_question_of_its_own(
    api: BotApi, bot_on: Any, typist: Typist
) -> None:
    async with bot_on(api, typist):
        api.person_says(ASKED, chat_id=42)
        await api.until(lambda: typist.prompts)
        typist.write("Who?")
        await api.until(typist.pieces.empty)
        api.person_forwards(POSTS, chat_id=42)
        await api.all_taken()
        typist.finish()
        await api.message(42, "Who?")
        await api.until(lambda: len(typist.prompts) == 2)
        typist.write("Them!")
        typist.finish()
        await api.message(42, "Them!")
    assert api.visible_texts(42) == ["Who?", "Them!"]


async def test_what_comes_after_a_tool_has_run_is_a_question_of_its_own(
    api: BotApi, bot_on: Any, typist: Typist
) -> None:
    runs = []

    async def pay() -> str:
        """Pay."""
        runs.append(1)
        return "paid"

    async with bot_on(api, typist, tools=[Tool(pay)]):
        api.person_says(ASKED, chat_id=42)
        typist.write(ToolCall("1", "pay", {}))
        await api.until(lambda: len(typist.prompts) == 2)
        api.person_forwards(POSTS[:1], chat_id=42)
        await api.all_taken()
        typist.write("Paid.")
        typist.finish()
        await api.message(42, "Paid.")
        await api.until(lambda: len(typist.prompts) == 3)
        typist.write("Noted.")
        typist.finish()
        await api.message(42, "Noted.")
    assert runs == [1]


async def test_another_person_s_forward_is_no_part_of_a_question(api: BotApi, bot_on: Any, typist: Typist) -> None:
    api.add_group(GROUP, members=[ADA, BOB])
    async with bot_on(api, typist):
        api.person_says(f"@{api.username} {ASKED}", chat_id=GROUP, user=ADA)
        await api.until(lambda: typist.prompts)
        api.person_forwards(POSTS[:1], chat_id=GROUP, user=BOB)
        await api.all_taken()
        typist.write("Who?")
        typist.finish()
        await api.message(GROUP, "Who?")
    assert len(typist.prompts) == 1


async def test_forwarded_files_are_read_in_a_group_where_the_comment_means_the_bot(
    api: BotApi, bot_on: Any, typist: Typist
) -> None:
    api.add_group(GROUP, members=[ADA, BOB])
    async with bot_on(api, typist):
        api.person_says(f"@{api.username} {ASKED}", chat_id=GROUP, user=ADA)
        await api.until(lambda: typist.prompts)
        with api.condition:
            file = api.world.files.add("photo", PNG)
        origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}
        api.person_sends({**attached("photo", file), "forward_origin": origin}, chat_id=GROUP, user=ADA)
        await api.until(lambda: "image_url" in str(typist.prompts[-1]))
        typist.write("A picture.")
        typist.finish()
        await api.message(GROUP, "A picture.")


async def test_what_is_forwarded_later_than_two_seconds_is_a_question_of_its_own(
    api: BotApi, bot_on: Any, typist: Typist
) -> None:
    async with bot_on(api, typist):
        sent = api.person_says(ASKED, chat_id=42).message["date"]
        await api.until(lambda: typist.prompts)
        origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}
        api.person_says(POSTS[0], chat_id=42, extra={"forward_origin": origin, "date": sent + 3})
        await api.all_taken()
        typist.write("Who?")
        typist.finish()
        await api.message(42, "Who?")
        await api.until(lambda: len(typist.prompts) == 2)
        typist.write("Them!")
        typist.finish()
        await api.message(42, "Them!")
    assert "post number" not in said_in(typist.prompts[0])


async def test_a_command_is_no_part_of_a_question(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, count_posts):
        api.person_forwards(POSTS, chat_id=42, comment="/help")
        await api.message(42, "5 posts, asked: False")
    assert len(api.visible_texts(42)) == 2


async def test_the_parts_of_a_slow_album_are_one_question(api: BotApi, bot_on: Any) -> None:
    def pictures(prompt: Sequence[Any]) -> str:
        return f"seen {str(prompt).count('image_url') // 2}"

    clock = LastingMinute()
    async with bot_on(api, pictures, clock=clock):
        (first,) = api.person_sends_album([PNG + b"0"], chat_id=42)
        for number in (1, 2, 3):
            await api.all_taken()
            clock.pass_(seconds=1.2)
            with api.condition:
                file = api.world.files.add("photo", PNG + bytes([number]))
            content = attached("photo", file) | {"media_group_id": first.message["media_group_id"]}
            api.person_sends(content, chat_id=42)
        await api.all_taken()
        clock.pass_(seconds=2)
        await api.message(42)
    assert api.visible_texts(42) == ["seen 4"]


async def test_a_paste_is_one_question_however_much_others_say_meanwhile(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, members=[ADA, BOB])
    clock = LastingMinute()
    async with bot_on(api, length, clock=clock):
        with api.condition:
            paste = f"@{api.username} {PASTE}"
            first, *rest = [paste[at : at + 4096] for at in range(0, len(paste), 4096)]
            api.person_says(first, chat_id=GROUP, user=ADA)
            for number in range(MAX_OWN_TURNS - 1 + MAX_JOINED):
                api.person_says(f"chatter {'x' * number}", chat_id=GROUP, user=BOB)
            for each in rest:
                api.person_says(each, chat_id=GROUP, user=ADA)
        await api.all_taken()
        clock.pass_(seconds=2)
        await api.message(GROUP, "read 900 lines")


async def test_what_comes_while_a_question_is_tried_again_that_was_shown_cuts_nothing_off(
    api: BotApi, bot_on: Any, typist: Typist
) -> None:
    api.add_group(GROUP, members=[ADA, BOB])
    async with bot_on(api, typist, clock=fast_clock()):
        caption = f"@{api.username} {ASKED}"
        (first,) = api.person_sends_album([PNG], chat_id=GROUP, user=ADA, caption=caption)
        await api.until(lambda: typist.prompts)
        typist.write("They want something. " * 20)
        await api.until(lambda: api.visible_texts(GROUP))
        typist.write(ValueError("broken"))
        await api.until(lambda: len(typist.prompts) == 2)
        with api.condition:
            file = api.world.files.add("photo", PNG + b"2")
        more = attached("photo", file) | {"media_group_id": first.message["media_group_id"]}
        api.person_sends(more, chat_id=GROUP, user=ADA)
        await api.all_taken()
        typist.write("Money.")
        typist.finish()
        await api.until(lambda: "Money." in api.visible_texts(GROUP)[0])
    # What came meanwhile may be asked about by now, behind the answer.
    assert all("Money." in str(prompt) for prompt in typist.prompts[2:])


async def test_files_of_further_parts_count_against_the_limits_of_their_author(
    api: BotApi, bot_on_both: Any, typist: Typist
) -> None:
    limits = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
    async with bot_on_both(api, typist, clock=LastingMinute(), budgets=limits):
        api.person_says(ASKED, chat_id=42)
        await api.until(lambda: typist.prompts)
        with api.condition:
            file = api.world.files.add("photo", PNG)
        origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}
        api.person_sends({**attached("photo", file), "caption": "look", "forward_origin": origin}, chat_id=42)
        await api.until(lambda: "[picture]" in said_in(typist.prompts[-1]))
        typist.write("A picture.")
        typist.finish()
        await api.message(42, "A picture.")
    assert "image_url" not in str(typist.prompts)
    assert not api.calls("getFile")
    assert any("That was a lot at once" in each for each in api.visible_texts(42))
