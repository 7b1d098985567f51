"""The page that asks a turn again: both answers, and nothing else that happens."""

import html
import re

from sqlalchemy import func, select
from standins.tools import adder

from botservice import LLMError, ToolCall
from botservice.storage.tables.columns import metadata

PAGE = {"Accept": "text/html"}
EVIL = "<script>alert(1)</script>"
ADDRESS = "/inspect/1/1/again"
ran: list[tuple[int, int]] = []


add = adder(ran)


CALL = ToolCall("c", "add", {"a": 2, "b": 3})


def words(page: str) -> str:
    """Return what a person reads."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


async def count_rows(site) -> dict[str, int]:
    tables = [each for each in metadata.sorted_tables if not each.name.startswith("model_usage")]
    return await site.storage.read(
        lambda connection: {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
        }
    )


async def asked(site, text="What is 2 + 3?", **options):
    visitor = await site.visitor(**options)
    async with visitor.events() as events:
        await visitor.say(text)
        await events.until_answered()
    return visitor


async def test_both_answers_stand_side_by_side_and_nothing_happens_in_the_chat(run_site, storage_url):
    ran.clear()
    script = [CALL, f"It is 5 {EVIL}", CALL, f"Five {EVIL}"]
    async with run_site(script, tools=[add], storage_url=storage_url) as site:
        visitor = await asked(site, f"What is 2 + 3? {EVIL}")
        before = await count_rows(site)
        assert ADDRESS in (await visitor.client.get("/inspect/1/1", headers=PAGE)).text
        form = await visitor.client.get(ADDRESS, headers=PAGE)
        assert form.status_code == 200
        assert "You are a helpful assistant" in form.text
        assert "data-live" not in form.text, "a page that follows would put the empty form in the place of the answers"
        shown = await visitor.client.post(
            ADDRESS, data={"prompt": f"Be brief. {EVIL}", "model": "", "call": "1"}, headers=PAGE
        )
        assert shown.status_code == 200
        assert EVIL not in shown.text
        told = words(shown.text)
        assert "It is 5" in told
        assert "Five" in told
        assert "another prompt" in told
        assert "Be brief." in told
        assert site.llm.prompts[2][0]["content"] == f"Be brief. {EVIL}"
        assert (ran, await count_rows(site)) == ([(2, 3)], before)


async def test_the_form_as_it_is_asks_the_same(run_site):
    async with run_site(["one", "two"]) as site:
        visitor = await asked(site)
        form = (await visitor.client.get(ADDRESS, headers=PAGE)).text
        prompt = html.unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", form, re.DOTALL)[1])
        await visitor.client.post(ADDRESS, data={"prompt": prompt.replace("\n", "\r\n")}, headers=PAGE)
        assert site.llm.prompts[1] == site.llm.prompts[0]


async def test_a_later_call_and_parts_that_are_left_out_can_be_chosen(run_site):
    async with run_site([CALL, "It is 5", "first", "hm", "second"], tools=[add]) as site:
        visitor = await asked(site)
        await asked_again(visitor, "/inspect/1/1/again", call="2")
        assert site.llm.prompts[2] == site.llm.prompts[1]
        async with visitor.events() as events:
            await visitor.say("and now?")
            await events.until("message", lambda data: data["text"] == "hm")
        await asked_again(visitor, "/inspect/1/2/again", without="window")
        assert "2 + 3" in str(site.llm.prompts[3])
        assert "2 + 3" not in str(site.llm.prompts[4])


async def asked_again(visitor, address, **data):
    shown = await visitor.client.post(address, data=data, headers=PAGE)
    assert shown.status_code == 200
    return words(shown.text)


async def test_a_model_that_fails_is_told_on_the_page(run_site):
    async with run_site(["one", LLMError(f"no {EVIL}", is_transient=False)]) as site:
        visitor = await asked(site)
        assert f"No answer: no {EVIL}" in await asked_again(visitor, ADDRESS)


async def test_another_model_without_a_server_is_explained(run_site):
    async with run_site(["one"]) as site:
        visitor = await asked(site)
        assert "OPENAI_API_KEY" in await asked_again(visitor, ADDRESS, model="gpt-6-luna")


async def test_turns_that_are_not_there_and_calls_that_were_not_made_are_told(run_site):
    async with run_site(["one"]) as site:
        visitor = await asked(site)
        for address in ("/inspect/1/9/again", "/inspect/9/1/again", "/inspect/1/99999999999999999999/again"):
            assert (await visitor.client.get(address, headers=PAGE)).status_code == 404
            assert (await visitor.client.post(address, headers=PAGE)).status_code == 404
        refused = await visitor.client.get(f"{ADDRESS}?call=2", headers=PAGE)
        assert refused.status_code == 409
        assert "asked once in turn 1" in words(refused.text)
        assert (await visitor.client.get(f"{ADDRESS}?call=x", headers=PAGE)).status_code == 200


async def test_it_is_for_the_owner_alone_and_never_from_another_site(run_site):
    async with run_site(["one", "two"], admin_token="secret-token-of-a-test") as site:
        stranger = await site.visitor(is_open=False)
        for answer in (
            await stranger.client.get(ADDRESS, headers=PAGE),
            await stranger.client.post(ADDRESS, headers=PAGE),
        ):
            assert answer.status_code == 401
        owner = {"Authorization": "Bearer secret-token-of-a-test"}
        visitor = await asked(site, headers=owner)
        foreign = {"Origin": "https://evil.example"}
        assert (await visitor.client.post(ADDRESS, headers={**PAGE, **foreign})).status_code == 403
        assert len(site.llm.prompts) == 1


async def test_a_form_that_is_too_large_is_refused(run_site):
    async with run_site(["one"]) as site:
        visitor = await asked(site)
        large = await visitor.client.post(ADDRESS, data={"prompt": "x" * 500_000}, headers=PAGE)
        assert large.status_code == 413
        assert len(site.llm.prompts) == 1
