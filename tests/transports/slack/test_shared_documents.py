"""Canvases, lists, notes of huddles and what workflows write: what of them is read, and what is only named."""

import pytest
from standins.slack_api import BOT_USER, Refuse, SlackApi
from standins.slack_api.world import Post

CANVAS = {"filetype": "quip", "mode": "quip", "title": "Launch"}
LIST = {"filetype": "list", "mode": "list", "title": "Tasks"}
HTML = b"<html>sign in</html>"


def canvas(api: SlackApi, text: str) -> dict:
    file = api.add_file("Launch", HTML, "application/vnd.slack-docs", **CANVAS)
    api.world.canvases[file["id"]] = text
    return file


async def question_with(api: SlackApi, bot_on, *sent: dict, times: int = 1) -> str:
    async with bot_on(api) as bot:
        for number in range(times):
            api.person_says("look", files=list(sent))
            await api.until(lambda number=number: len(api.said()) > number)
        return str(bot.llm.prompts[-1][-1]["content"])


async def test_a_canvas_is_read_as_its_words(api: SlackApi, bot_on) -> None:
    asked = await question_with(api, bot_on, canvas(api, "# Launch\n\nOn 4 May, in Oslo."))
    assert "On 4 May, in Oslo." in asked
    assert "canvas, Launch" in asked


async def test_a_long_canvas_is_cut_and_says_so(api: SlackApi, bot_on) -> None:
    asked = await question_with(api, bot_on, canvas(api, "word " * 20_000))
    assert len(asked) < 30_000
    assert "it goes on; these are its first 20000 characters" in asked


async def test_a_list_is_read_as_its_rows(api: SlackApi, bot_on) -> None:
    file = api.add_file("Tasks", b"", "application/vnd.slack-list", **LIST)
    api.world.lists[file["id"]] = [
        {"id": f"R{n}", "fields": [{"key": "name", "text": f"Task {n}", "value": "{}"}, {"key": "done", "value": n}]}
        for n in range(150)
    ]
    asked = await question_with(api, bot_on, file)
    assert "name,done\nTask 0,0\n" in asked
    assert "Task 149,149" in asked
    assert len(api.calls("slackLists.items.list")) == 2


@pytest.mark.parametrize("method", ["canvases.getContent", "slackLists.items.list"])
@pytest.mark.parametrize("code", ["missing_scope", "unknown_method"])
async def test_what_the_app_may_not_read_is_named_and_asked_for_once(
    api: SlackApi, bot_on, method: str, code: str
) -> None:
    api.order(Refuse(code), method, times=None)
    kind = CANVAS if method.startswith("canvases") else LIST
    file = api.add_file("Launch", HTML, "application/octet-stream", **kind)
    asked = await question_with(api, bot_on, file, times=2)
    assert "Launch: Slack does not give out its words]" in asked
    assert len(api.calls(method)) == 1


async def test_a_canvas_that_is_gone_turns_no_others_off(api: SlackApi, bot_on) -> None:
    gone = api.add_file("Gone", HTML, "application/vnd.slack-docs", **CANVAS)
    asked = await question_with(api, bot_on, gone, canvas(api, "On 4 May"))
    assert "does not give out its words" in asked
    assert "On 4 May" in asked


@pytest.mark.parametrize("code", ["access_denied", "no_permission", "invalid_arguments"])
async def test_a_canvas_that_is_not_shared_with_the_bot_turns_no_others_off(api: SlackApi, bot_on, code: str) -> None:
    kept = canvas(api, "Nobody's business")
    order = api.order(Refuse(code), "canvases.getContent", when=lambda said: said["canvas_id"] == kept["id"])
    asked = await question_with(api, bot_on, kept, canvas(api, "On 4 May"))
    assert order.used
    assert "does not give out its words" in asked
    assert "On 4 May" in asked


async def test_a_canvas_from_a_shared_channel_is_asked_for(api: SlackApi, bot_on) -> None:
    file = canvas(api, "On 4 May")
    asked = await question_with(api, bot_on, {"id": file["id"], "file_access": "check_file_info"})
    assert "On 4 May" in asked


async def test_a_huddles_notes_are_heard_of_in_its_thread(api: SlackApi, bot_on) -> None:
    with api.condition:
        huddle = api.world.add(Post("C0GENERAL", api.world.next_ts(), "USLACKBOT", "A huddle happened"))
        notes = api.add_file("Huddle notes: launch", HTML, "application/vnd.slack-docs", **CANVAS)
        said = Post("C0GENERAL", api.world.next_ts(), "USLACKBOT", "Here are the notes", bot_id="B9", files=[notes])
        said.thread_ts = huddle.ts
        api.world.add(said)
    async with bot_on(api) as bot:
        api.person_says(f"<@{BOT_USER}> what was decided?", channel="C0GENERAL", thread_ts=huddle.ts)
        await api.until(lambda: api.said("C0GENERAL"))
        prompt = str(bot.llm.prompts[-1])
    assert "A huddle happened" in prompt
    assert "canvas, Huddle notes launch" in prompt


async def test_a_workflow_is_not_answered_and_is_heard_in_a_thread(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        text = f"New request by Bob <@{BOT_USER}>"
        ts = api.person_says(text, channel="C0GENERAL", user="U0WORKFLOW", bot_id="B7", subtype="bot_message")
        await api.all_taken()
        assert api.said("C0GENERAL") == []
        api.person_says(f"<@{BOT_USER}> what is asked for?", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: api.said("C0GENERAL"))
        prompt = str(bot.llm.prompts[-1])
    assert "New request by Bob" in prompt
