"""Without any key a demo answers: it says that it is one, remembers through search, and uses its tool."""

import pytest

from botservice import AgentContext, AgentService, Author, FunctionsBasedAgent, Storage
from botservice.app import build_service
from botservice.llm.demo import DemoChatLLM
from botservice.settings import Settings


@pytest.fixture
def service() -> AgentService:
    return build_service(Settings(_env_file=None, openai_api_key=None, openai_base_url=None))


@pytest.fixture
async def context(sqlite_storage: Storage) -> AgentContext:
    return await AgentContext.get_or_create(sqlite_storage, {"transport": "test", "chat_id": "1"})


async def test_it_says_what_it_is(service: AgentService, sqlite_storage: Storage) -> None:
    for greeting in ("hello", "Hi!", "/start", "help", "good morning", "Who are you?", "what are you"):
        chat = await AgentContext.get_or_create(sqlite_storage, {"transport": "test", "chat_id": greeting})
        answer = (await service.prompt(chat, greeting)).text
        assert "not a language model" in answer, greeting
        assert "OPENAI_API_KEY" in answer
        assert "OPENAI_BASE_URL" in answer


@pytest.mark.parametrize(
    ("told", "question"),
    [
        ("My dog is called Rex", "What is my dog called?"),
        ("I live in Porto since May", "where do I live"),
        ("My train leaves at 7", "what time does my train leave?"),
        ("Today was a good day for my tomatoes", "How are my tomatoes?"),
        ("Mein Hund heißt Bello", "Wie heißt mein Hund?"),
        ("Mi perro se llama Luna", "¿Cómo se llama mi perro?"),
        ("私の犬の名前はレックスです", "犬の名前は\uff1f"),
        ("내 강아지 이름은 초코야", "강아지 이름이 뭐야?"),
    ],
)
async def test_it_remembers_what_it_was_told(
    service: AgentService, context: AgentContext, told: str, question: str
) -> None:
    await service.prompt(context, "I like long walks")
    await service.prompt(context, told)
    for filler in ("The weather is fine", "hello"):
        await service.prompt(context, filler)
    answer = (await service.prompt(context, question)).text
    assert answer.startswith("You told me on ")
    assert f"“{told}”" in answer
    assert "walks" not in answer


async def test_in_a_bot_of_ones_own_it_remembers_what_still_stands_in_the_prompt(context: AgentContext) -> None:
    service = AgentService(FunctionsBasedAgent(llm=DemoChatLLM()))
    await service.prompt(context, "My cat is called Minka")
    assert (await service.prompt(context, "What is my cat called?")).text == "You told me: “My cat is called Minka”"


async def test_it_does_not_claim_to_know_what_it_was_not_told(service: AgentService, context: AgentContext) -> None:
    await service.prompt(context, "My dog is called Rex")
    assert "not told me" in (await service.prompt(context, "Who won the cup?")).text


@pytest.mark.parametrize("question", ["What time is it?", "what is the date today", "time?", "What day is it now"])
async def test_it_uses_its_tool(service: AgentService, context: AgentContext, question: str) -> None:
    answer = await service.prompt(context, question)
    assert answer.text.startswith("My tool says: ")
    assert [call.name for step in context.completed_steps for call in step.tool_calls or ()] == ["current_time"]


async def test_it_sets_a_reminder_where_it_can(service: AgentService, context: AgentContext) -> None:
    answer = await service.prompt(context, "Please remind me in 5 minutes to call Anna!")
    assert answer.text.startswith("My tool says: Reminder 1 is set for ")
    assert "in 5 min" in answer.text


@pytest.mark.parametrize(
    "text", ["", "   ", "🎉", "?", "a" * 10_000, "what " * 2_000, "مرحبا؟", "[2026-01-01 10:00 UTC] a: b"]
)
async def test_nothing_that_somebody_writes_does_it_harm(text: str) -> None:
    for prompt in (
        [{"role": "user", "content": text}],
        [{"role": "user", "content": [{"type": "text", "text": text}]}],
    ):
        assert (await DemoChatLLM().chat(prompt)).text
    assert (await DemoChatLLM().chat([])).text


async def test_its_pieces_make_its_answer() -> None:
    pieces: list[str] = []
    answer = await DemoChatLLM().chat([{"role": "user", "content": "My dog is called Rex"}], on_text=pieces.append)
    assert "".join(pieces) == answer.text


async def test_what_it_is_asked_to_remember_it_knows_in_another_chat(
    service: AgentService, context: AgentContext, sqlite_storage: Storage
) -> None:
    alice = Author("test", "1", "Alice")
    answer = await service.prompt(context, "Please remember that I am allergic to nuts", author=alice)
    assert "Noted" in answer.text
    other = await AgentContext.get_or_create(sqlite_storage, {"transport": "test", "chat_id": "2"})
    answer = await service.prompt(other, "what am I allergic to?", author=alice)
    assert "I am allergic to nuts" in answer.text
    third = await AgentContext.get_or_create(sqlite_storage, {"transport": "test", "chat_id": "3"})
    answer = await service.prompt(third, "what am I allergic to?", author=Author("test", "2", "Alice"))
    assert "nuts" not in answer.text
