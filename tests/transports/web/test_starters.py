"""The empty page offers what to say, in the reader's language."""

import re
from html import unescape

import pytest

from botservice import Tool
from botservice.agent.tool_catalogue import order_tea
from botservice.config.settings import Settings
from botservice.factories import build_service
from botservice.texts import LANGUAGES, in_language


async def roll(sides: int = 6) -> str:
    """Roll a die."""
    return str(sides)


def starters_on(html: str) -> list[str]:
    found = re.search(r'<div id="starters"[^>]*>(.*?)</div>', html, re.DOTALL)
    return [] if found is None else [unescape(each) for each in re.findall(r"<button[^>]*>(.*?)</button>", found[1])]


@pytest.mark.parametrize("language", [*LANGUAGES, "tlh"])
async def test_the_demo_s_page_shows_it_in_four_texts(run_site, language):
    async with run_site(tools=[order_tea]) as site:
        visitor = await site.visitor()
        accepted = f"tlh, {language}-XX;q=0.8, en;q=0.1"
        page = (await visitor.client.get("/", headers={"Accept-Language": accepted})).text
    expected = [in_language(f"starters.{name}", language) for name in ("abilities", "remember", "time", "order")]
    assert starters_on(page) == expected
    assert f'lang="{language if language in LANGUAGES else "en"}"' in page


async def test_a_bot_s_page_names_its_own_tools(run_site):
    async with run_site(tools=[Tool(roll)]) as site:
        page = (await (await site.visitor()).open()).text
    assert starters_on(page) == ["What can you do?", "What can you do with “roll”?"]


@pytest.mark.parametrize("accepted", ["", ";q=", "de;q=x", "*", "en;q=0"])
async def test_whatever_a_browser_accepts_the_page_comes(run_site, accepted):
    async with run_site(tools=[order_tea]) as site:
        page = await (await site.visitor()).client.get("/", headers={"Accept-Language": accepted})
    assert starters_on(page.text)[0] == "What can you do?"


async def test_what_is_offered_leads_through_all_that_the_demo_shows(run_site):
    service = build_service(Settings(_env_file=None, openai_api_key=None, openai_base_url=None))
    async with run_site(llm=service.agent.llm, tools=list(service.agent.tools.values())) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            for text in starters_on((await visitor.open()).text)[:3]:
                await visitor.say(text)
                await events.until_answered()
            await visitor.say("Order two cups of tea")
            notice = (await events.until("notice", lambda data: data.get("buttons"))).data
            pressed = {"id": "message-9", "text": notice["buttons"][0]["decides"]}
            assert (await visitor.post("/web/decide", pressed)).status_code == 200
            await events.until("message", lambda data: "2 cups of tea" in data.get("html", data["text"]))
            await visitor.say("/memory")
            await events.until("notice", lambda data: "I eat no meat" in data["text"])
