"""Without any key a demo answers: it says that it is one, remembers through search, and uses its tool."""
# ruff: noqa: RUF001 - signs of other scripts are what this is about

import pytest
from sqlalchemy import select

from botservice import AgentContext, AgentService, Author, FunctionsBasedAgent, Storage
from botservice.config.settings import Settings
from botservice.core.errors import ApprovalPending
from botservice.core.messages import Role
from botservice.factories import build_service
from botservice.history.documents import searchable_text
from botservice.llm.demo import DemoChatLLM
from botservice.storage.tables.people import facts
from botservice.texts import LANGUAGES, in_language


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


ANNA = Author("test", "7", "")


@pytest.mark.parametrize(
    ("wish", "kept"),
    [
        ("remember that I eat no meat", "I eat no meat"),
        ("Remember: I eat no meat", "I eat no meat"),
        ("please remember I don't eat meat, fish or “snails”", "I don't eat meat, fish or “snails”"),
        ("Can you remember that I like tea?", "I like tea"),
        ("Merk dir, dass ich kein Fleisch esse", "ich kein Fleisch esse"),
        ("recuerda que no como carne", "no como carne"),
        ("Souviens-toi que j'aime le thé", "j'aime le thé"),
        ("ricorda che mi piace il tè", "mi piace il tè"),
        ("肉を食べないと覚えておいて", "肉を食べない"),
        ("기억해 줘: 나는 고기를 먹지 않아", "나는 고기를 먹지 않아"),
        ("lembre-se de que não como carne", "não como carne"),
        ("запомни, что я не ем мясо", "я не ем мясо"),
        ("请记住：我不吃肉", "我不吃肉"),
    ],
)
async def test_a_wish_is_noted_as_the_whole_statement(
    service: AgentService, context: AgentContext, wish: str, kept: str
) -> None:
    answer = await service.prompt(context, wish, author=ANNA)
    assert answer.text.startswith(f"Noted: **{kept}**")
    query = select(facts.c.text)
    assert await context.storage.read(lambda connection: connection.execute(query).scalars().all()) == [kept]


@pytest.mark.parametrize(
    ("introduction", "question", "name"),
    [
        ("Hi! I am Anna. What can you do?", "What is my name?", "Anna"),
        ("My name is Anna Müller-Lüdenscheidt.", "who am i", "Anna Müller-Lüdenscheidt"),
        ("Hello, I'm Seán O’Neill", "Do you know my name?", "Seán O’Neill"),
        ("Please remember that my name is Anna", "what's my name?", "Anna"),
        ("Hallo, ich bin Anna!", "Wie heiße ich?", "Anna"),
        ("Me llamo Ana", "¿Cómo me llamo?", "Ana"),
        ("Bonjour, je m'appelle Zoé", "Comment je m'appelle ?", "Zoé"),
        ("Mi chiamo Anna", "Come mi chiamo?", "Anna"),
        ("私の名前はアンナです", "私の名前は何ですか", "アンナ"),
        ("제 이름은 안나입니다", "제 이름이 뭐예요?", "안나"),
        ("Eu me chamo Ana", "Como me chamo?", "Ana"),
        ("Меня зовут Анна", "Как меня зовут?", "Анна"),
        ("我叫安娜", "我叫什么？", "安娜"),
    ],
)
async def test_it_knows_the_name_that_somebody_gave(
    service: AgentService, context: AgentContext, introduction: str, question: str, name: str
) -> None:
    await service.prompt(context, introduction, author=ANNA)
    await service.prompt(context, "what can you do", author=ANNA)
    assert f"You are **{name}**." in (await service.prompt(context, question, author=ANNA)).text


async def test_it_greets_by_name_and_says_what_it_can_do(service: AgentService, context: AgentContext) -> None:
    answer = (await service.prompt(context, "Hi! I am Anna. What can you do?", author=ANNA)).text
    assert answer.startswith("Hello, Anna! I am a demo")
    for shown in ("- **Use a tool**", "remember that I eat no meat", "`/memory`", "Order two cups of tea"):
        assert shown in answer


async def test_what_only_looks_like_a_name_does_not_take_the_place_of_one(
    service: AgentService, context: AgentContext
) -> None:
    for said in ("My name is Anna", "I am German", "Ich bin Vegetarier", "I am tired"):
        await service.prompt(context, said, author=ANNA)
    assert "You are **Anna**." in (await service.prompt(context, "What is my name?", author=ANNA)).text


async def test_a_name_that_was_not_given_is_not_made_up(service: AgentService, context: AgentContext) -> None:
    assert "not told me your name" in (await service.prompt(context, "What is my name?", author=ANNA)).text


@pytest.mark.parametrize("language", LANGUAGES)
async def test_it_understands_what_the_empty_page_offers(
    service: AgentService, context: AgentContext, language: str
) -> None:
    answers = [
        (await service.prompt(context, in_language(f"starters.{name}", language), author=ANNA)).text
        for name in ("abilities", "remember", "time")
    ]
    assert [answer.partition(" ")[0] for answer in answers] == ["Hello!", "Noted:", "My"]
    with pytest.raises(ApprovalPending, match="order_tea") as asked:
        await service.prompt(context, in_language("starters.order", language), author=ANNA)
    assert [call.arguments for call in asked.value.calls] == [{"cups": 2}]


async def test_nothing_that_it_says_is_found_by_search(service: AgentService, context: AgentContext) -> None:
    for text in (
        "hi",
        "My name is Anna",
        "remember that I eat no meat",
        "What is my name?",
        "what time is it",
        "x y z",
    ):
        answer = await service.prompt(context, text, author=ANNA)
        assert searchable_text(Role.ASSISTANT, answer.text) == "", answer.text


async def test_it_says_what_is_noted_of_a_person_who_asks_for_that(
    service: AgentService, context: AgentContext
) -> None:
    assert "Nothing is noted" in (await service.prompt(context, "What do you know about me?", author=ANNA)).text
    await service.prompt(context, "remember that I eat no meat", author=ANNA)
    for question in ("What do you know about me?", "do you know of me"):
        answer = (await service.prompt(context, question, author=ANNA)).text
        assert "- I eat no meat\n" in answer
        assert "/memory" in answer


async def test_what_it_may_not_do_it_leaves(service: AgentService, context: AgentContext) -> None:
    with pytest.raises(ApprovalPending) as asked:
        await service.prompt(context, "Order two cups of tea")
    await service.decide(context, asked.value.calls[0].number, allow=False)
    answer = await (await service.resume(context)).finish()
    assert answer.text.startswith("Then I leave it.")


async def test_thanks_are_nothing_to_remember(service: AgentService, context: AgentContext) -> None:
    assert (await service.prompt(context, "Thank you!")).text == "You are welcome!"


async def test_it_says_that_it_cannot_read_a_file_and_takes_none_of_it_for_a_question() -> None:
    tools = [{"type": "function", "function": {"name": "roll", "parameters": {}}}]
    for text in ("[file, plan.txt]\nroll the dice?", "look\n[file, bot.py]\nwhat does roll do?", "[picture]"):
        answer = await DemoChatLLM().chat([{"role": "user", "content": text}], tools)
        assert "cannot read files" in answer.text, text
    assert "cannot read files" not in (await DemoChatLLM().chat([{"role": "user", "content": "a [file, x"}])).text
