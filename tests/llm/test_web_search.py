"""The search of the web that OpenAI's server runs itself: offered, paid, sent back, and cited under the answer."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from standins.openai_api import RESPONSES, Ending, Failure, OpenAIApi, Reply, ToolUse, script

from botservice import (
    AgentContext,
    AgentService,
    ChatResponse,
    FallbackLLM,
    FunctionsBasedAgent,
    OpenAIChatLLM,
    ScriptedChatLLM,
    Storage,
)
from botservice.agent.tool import WEB_SEARCH
from botservice.config.settings import Settings
from botservice.core.errors import BudgetExceeded
from botservice.core.messages import TokenUsage
from botservice.core.policies import Scope, parse_limits, parse_prices
from botservice.llm.asking import MOST_SEARCHES
from botservice.llm.chat import Source
from botservice.llm.demo import DemoChatLLM
from botservice.llm.openai.citations import Citations
from botservice.people.budgets import Budgets

HELLO = [{"role": "user", "content": "hello"}]
LONDON = "https://weather.example/london?day=1"
ANSWER = f"It rains ([Weather, *now*]({LONDON}&utm_source=openai)).\nTake a coat ([Weather, *now*]({LONDON}))."


@pytest.fixture
async def llm(api: OpenAIApi) -> AsyncIterator[OpenAIChatLLM]:
    model = OpenAIChatLLM(base_url=api.base_url, api_key="sk-test", api="responses")
    yield model
    await model.close()


def search(text: str = ANSWER, **fields) -> Reply:
    return Reply(text=text, searches=["weather London"], **fields)


async def test_links_become_numbers_and_pages_without_what_tracks(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    api.reply = lambda _: search()
    pieces: list[str] = []
    response = await llm.chat(HELLO, [WEB_SEARCH.schema], on_text=pieces.append)
    assert api.bodies(RESPONSES)[0]["tools"] == [{"type": "web_search", "user_location": {"type": "approximate"}}]
    assert response.text == "It rains [1].\nTake a coat [1]."
    assert "".join(pieces) == response.text
    assert response.sources == (Source(LONDON, "Weather, *now*"),)
    assert response.usage is not None
    assert response.usage.web_searches == 1


async def test_an_answer_shows_the_pages_that_it_rests_on(
    api: OpenAIApi, llm: OpenAIChatLLM, sqlite_storage: Storage
) -> None:
    api.reply = lambda _: search()
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    service = AgentService(FunctionsBasedAgent([WEB_SEARCH], llm, search_k=0), storage=sqlite_storage)
    answer = await service.prompt(context, "Which weather?")
    shown = f"1. [Weather, now]({LONDON}) (weather.example)"
    assert answer.text == f"It rains [1].\nTake a coat [1].\n\nSources:\n{shown}"
    assert (await context.chat_history.messages())[-1].text == answer.text


async def test_a_search_goes_back_with_the_call_that_followed_it(
    api: OpenAIApi, llm: OpenAIChatLLM, sqlite_storage: Storage
) -> None:
    api.reply = script(Reply(text=ANSWER, searches=["a"], tool_calls=[ToolUse("note", {"text": "rain"})]), "Done.")

    def note(text: str) -> str:
        return "Noted."

    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    agent = FunctionsBasedAgent([WEB_SEARCH, note], llm, search_k=0)
    assert (await AgentService(agent, storage=sqlite_storage).prompt(context, "Which weather?")).text == "Done."
    kinds = [item.get("type") for item in api.bodies(RESPONSES)[1]["input"]]
    assert kinds[-5:] == ["reasoning", "web_search_call", "message", "function_call", "function_call_output"]
    assert api.endings(Ending.REFUSED, path=RESPONSES) == []


@pytest.mark.parametrize(
    "refusal",
    [
        Failure(400, "Invalid value: 'web_search'. Supported values are: 'function'.", param="tools[0].type"),
        Failure(422, "tools.0.type: Input should be 'function' [input_value='web_search']"),
    ],
)
async def test_a_server_that_does_not_search_is_asked_without(
    api: OpenAIApi, llm: OpenAIChatLLM, refusal: Failure, caplog: pytest.LogCaptureFixture
) -> None:
    api.reply = script(refusal, "It may rain.", "Still.")
    assert (await llm.chat(HELLO, [WEB_SEARCH.schema])).text == "It may rain."
    await llm.chat(HELLO, [WEB_SEARCH.schema])
    assert [("tools" in body) for body in api.bodies(RESPONSES)] == [True, False, False]
    assert [record.message for record in caplog.records].count("model.no_web_search") == 1


async def test_an_effort_with_which_nothing_can_be_searched_is_kept(api: OpenAIApi) -> None:
    llm = OpenAIChatLLM("gpt-5.5", base_url=api.base_url, api_key="k", api="responses", reasoning_effort="minimal")
    api.reply = lambda _: search()
    assert (await llm.chat(HELLO, [WEB_SEARCH.schema])).sources == ()
    await llm.close()


async def test_no_more_is_searched_than_is_paid_for_where_the_server_knows_how_to_bound_it(
    api: OpenAIApi, llm: OpenAIChatLLM
) -> None:
    api.reply = script(Failure(400, "Unknown parameter: 'max_tool_calls'.", code="unknown_parameter"), *["Rain."] * 3)
    await llm.chat(HELLO, [WEB_SEARCH.schema])
    await llm.chat(HELLO, [WEB_SEARCH.schema])
    await llm.chat(HELLO)
    assert [body.get("max_tool_calls") for body in api.bodies(RESPONSES)] == [MOST_SEARCHES, None, None, None]
    assert all("tools" in body for body in api.bodies(RESPONSES)[:3])


async def test_twenty_that_search_at_once_never_take_more_money_than_there_is(storage: Storage) -> None:
    price, limit = 10_000_000, 10  # of a search, in billionths; and ten calls with all their searches
    prices = parse_prices("web_search=10000/0, scripted=0/0")
    money = f"{limit * MOST_SEARCHES * price / 1_000_000_000:g} money/day"
    owner = Budgets({Scope.SERVICE: parse_limits(money)}, prices, answer_tokens=10)
    asked, go_on = 0, asyncio.Event()

    async def chat(*_: object, **__: object) -> ChatResponse:
        nonlocal asked
        asked += 1
        await go_on.wait()
        return ChatResponse("Rain.", usage=TokenUsage(5, 5, web_searches=MOST_SEARCHES))

    model = ScriptedChatLLM(["never"])
    model.chat, model.searches_web = chat, True
    service = AgentService(FunctionsBasedAgent([WEB_SEARCH], model, search_k=0), storage=storage)
    service.options = replace(service.options, budgets=owner)

    async def ask(number: int) -> str:
        context = await AgentContext.get_or_create(storage, {"chat_id": str(number)})
        try:
            return (await service.prompt(context, "Which weather?")).text
        except BudgetExceeded:
            refusals.append(number)
            if len(refusals) == limit:
                go_on.set()
            return "refused"

    refusals: list[int] = []
    said = await asyncio.gather(*(ask(number) for number in range(20)))
    assert (asked, said.count("Rain."), said.count("refused")) == (limit, limit, limit)


async def test_by_chat_completions_nothing_of_it_is_sent(api: OpenAIApi) -> None:
    llm = OpenAIChatLLM("llama", base_url=api.base_url, api_key="sk-test", api="chat")
    assert (await llm.chat(HELLO, [WEB_SEARCH.schema])).text == "You said: hello"
    assert "tools" not in api.bodies()[0]
    await llm.close()


def test_a_search_costs_what_the_server_asks_for_it() -> None:
    usage = TokenUsage(0, 0, web_searches=3)
    own = Budgets.of(Settings.load(None, openai_api_key="sk-test"))
    assert own.price("gpt-6.1-terra", usage).cost == 30_000_000  # three cents
    named = Settings.load(None, openai_base_url="http://localhost:1/v1", prices="web_search=20000/0, *=1/5")
    assert Budgets.of(named).price("llama", usage).cost == 60_000_000
    elsewhere = Settings.load(None, openai_base_url="http://localhost:1/v1", prices="*=1/5")
    assert Budgets.of(elsewhere).price("llama", usage).cost == 0


def cite(text: str, start: int, end: int, url: str, title: str = "T") -> dict[str, object]:
    return {"type": "url_citation", "start_index": start, "end_index": end, "url": url, "title": title}


@pytest.mark.parametrize(
    ("text", "citations", "said"),
    [
        ("Rain.", [(0, 4, "https://a.example/")], "Rain [1]."),  # a server that marks the words
        ("See [a](https://a.example/).", [(4, 27, "https://a.example/")], "See [1]."),
        ("X ([a](https://a.example/))", [(3, 26, "https://a.example/")], "X [1]"),
        ("Rain.", [(0, 400, "https://a.example/")], "Rain."),  # out of place: the page is named all the same
        ("Rain.", [(0, 4, "javascript:alert(1)"), (0, 4, "https://me@a.example/")], "Rain."),
        ("Rain.", [(0, 4, "https://a.example/ b"), (0, 4, "")], "Rain."),
    ],
)
def test_citations_of_any_shape_leave_the_words_as_they_are(text, citations, said) -> None:
    made = Citations()
    assert made.number(text, [cite(text, *each) for each in citations]) == said
    assert all(source.url.startswith("https://a.example/") for source in made.sources)


def test_a_title_is_no_way_to_pretend_another_page(sqlite_storage: Storage) -> None:
    from botservice.agent.sources import with_sources

    sources = [Source("https://evil.example/x_(y)", "bank.example](https://bank.example) **now**\n2. x")]
    said = with_sources("Text", sources, "de")
    *_, line = said.splitlines()
    title = "bank.example (https //bank.example) now 2. x"
    assert line == f"1. [{title}](https://evil.example/x%5F%28y%29) (evil.example)"
    many = with_sources("Text", [Source(f"https://a.example/{n}") for n in range(30)], None)
    assert many.splitlines()[-1] == "10. [a.example](https://a.example/9)"


async def test_models_that_do_not_search_are_offered_functions_alone(
    api: OpenAIApi, llm: OpenAIChatLLM, sqlite_storage: Storage
) -> None:
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    own = ScriptedChatLLM(["Hello.", "Hello again."])
    service = AgentService(FunctionsBasedAgent([WEB_SEARCH], own, search_k=0), storage=sqlite_storage)
    await service.prompt(context, "hello")
    demo = AgentService(FunctionsBasedAgent([WEB_SEARCH], DemoChatLLM(), search_k=0), storage=sqlite_storage)
    await demo.prompt(context, "what time is it?")
    api.reply = lambda _: Failure(503, "The engine is overloaded", "server_error")
    both = FunctionsBasedAgent([WEB_SEARCH], FallbackLLM([llm, own]), search_k=0)
    assert (await AgentService(both, storage=sqlite_storage).prompt(context, "hello")).text == "Hello again."
    assert own.tools == [[], []]
