"""What a stored turn costs by popular frameworks and by this service, each against the bare openai client.

    python benchmarks/frameworks.py [--messages 10 1000] [--turns 20] [--rounds 5] [--only langgraph agents …]

The frameworks are no dependencies of the project. Into an environment of its own beside it:

    python -m venv /tmp/frameworks
    /tmp/frameworks/bin/pip install -e . langgraph==1.2.22 langgraph-checkpoint-sqlite==3.1.2 langchain-openai==1.7.3 \\
        openai-agents==0.24.0 pydantic-ai-slim[openai]==2.68.0
    /tmp/frameworks/bin/python benchmarks/frameworks.py

One that is missing is left out, and it is said how to install it. Each asks the same model on loopback by
chat.completions, has one tool, a window of about 20 messages and an SQLite file on the same disk, and is put together
as its documentation shows. The bare client sends what that framework sent in its last turn, without streaming, and
stores nothing. They ask by turns in the same run; CPU is this process's, each figure the median of the rounds. Bytes
are what the turns added to the file, divided by two for each turn.
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import sqlite3
import statistics
import tempfile
import warnings
from pathlib import Path

from cost import spend
from costs.bare import Bare
from costs.chats import WINDOW, make_service, new_chat, question, sentence
from costs.model_server import asked_since, model_server
from model_calls import MODEL
from openai import AsyncOpenAI

INSTRUCTIONS = "You are a helpful assistant."

DOES = {
    "botservice": "stores question, steps, calls of tools, prompt and answer; goes on after a kill; searches the chat",
    "langgraph": "stores the state of the graph after every node, all messages in it; goes on at the last node",
    "agents": "stores the items of a run when it is over; a run that is cut off is lost",
    "pydantic-ai": "has no store: messages go into SQLite as its chat example does it; a run that is cut off is lost",
}
PACKAGES = {
    "botservice": ("botservice",),
    "langgraph": ("langgraph", "langgraph-checkpoint-sqlite", "langchain-openai"),
    "agents": ("openai-agents",),
    "pydantic-ai": ("pydantic-ai-slim",),
}


def plain_add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@contextlib.asynccontextmanager
async def botservice(base_url, path, count):
    """Yield what asks this service."""
    from botservice import OpenAIChatLLM, Storage

    async with Storage.open(f"sqlite:///{path}", migrate=True) as storage:
        llm = OpenAIChatLLM(MODEL, base_url=base_url, api_key="none", api="chat")
        service, context = make_service(storage, llm), await new_chat(storage, count)
        yield lambda number: service.prompt(context, question(number))
        await llm.close()


@contextlib.asynccontextmanager
async def langgraph(base_url, path, count):
    """Yield what asks a LangGraph agent with its SQLite checkpointer, which trims what the model is given."""
    from langchain_core.messages import AIMessage, HumanMessage, trim_messages
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.prebuilt import create_react_agent

    def trim(state):
        kept = trim_messages(
            state["messages"], max_tokens=WINDOW + 1, token_counter=len, strategy="last", start_on="human"
        )
        return {"llm_input_messages": kept}

    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        model = ChatOpenAI(model=MODEL, base_url=base_url, api_key="none", use_responses_api=False)
        agent = create_react_agent(model, [plain_add], prompt=INSTRUCTIONS, pre_model_hook=trim, checkpointer=saver)
        thread = {"configurable": {"thread_id": "1"}}
        earlier = [(HumanMessage if number % 2 == 0 else AIMessage)(sentence(number)) for number in range(count)]
        await agent.aupdate_state(thread, {"messages": earlier})
        yield lambda number: agent.ainvoke({"messages": [{"role": "user", "content": question(number)}]}, thread)


@contextlib.asynccontextmanager
async def agents(base_url, path, count):
    """Yield what asks an agent of the OpenAI Agents SDK with its SQLiteSession."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_tracing_disabled
    from agents.memory import SessionSettings

    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=base_url, api_key="none") as client:
        model = OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
        agent = Agent(name="bot", instructions=INSTRUCTIONS, model=model, tools=[function_tool(plain_add)])
        session = SQLiteSession("1", path, session_settings=SessionSettings(limit=WINDOW))
        await session.add_items(
            [
                {"role": "user" if number % 2 == 0 else "assistant", "content": sentence(number)}
                for number in range(count)
            ]
        )
        yield lambda number: Runner.run(agent, question(number), session=session)
        session.close()


@contextlib.asynccontextmanager
async def pydantic_ai(base_url, path, count):
    """Yield what asks a pydantic-ai agent, and stores each run's messages as JSON, as its chat example does."""
    import aiosqlite
    from pydantic_ai import Agent, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def run_of(number):
        asked = ModelRequest(parts=[UserPromptPart(sentence(number))])
        return ModelMessagesTypeAdapter.dump_json([asked, ModelResponse(parts=[TextPart(sentence(number + 1))])])

    async with aiosqlite.connect(path) as database, AsyncOpenAI(base_url=base_url, api_key="none") as client:
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, instructions=INSTRUCTIONS, tools=[plain_add])
        await database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, message_list TEXT)")
        rows = [(run_of(number),) for number in range(0, count, 2)]
        await database.executemany("INSERT INTO messages (message_list) VALUES (?)", rows)
        await database.commit()

        async def ask(number):
            newest = "SELECT message_list FROM messages ORDER BY id DESC LIMIT ?"
            found = await database.execute_fetchall(newest, (WINDOW // 2,))
            history = [each for (row,) in reversed(found) for each in ModelMessagesTypeAdapter.validate_json(row)]
            result = await agent.run(question(number), message_history=history)
            await database.execute("INSERT INTO messages (message_list) VALUES (?)", (result.new_messages_json(),))
            await database.commit()

        yield ask


FRAMEWORKS = {"botservice": botservice, "langgraph": langgraph, "agents": agents, "pydantic-ai": pydantic_ai}


def bytes_of(path):
    """Return the bytes of an SQLite database, with what was not moved into its file yet."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        return pages.fetchone()[0]


async def measure(name, base_url, count, options):
    """Print the line of one framework and one length of a chat."""
    async with contextlib.AsyncExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "chat.db"
        client = await stack.enter_async_context(AsyncOpenAI(base_url=base_url, api_key="none"))
        ask = await stack.enter_async_context(FRAMEWORKS[name](base_url, path, count))
        await spend(ask, 10)
        await asked_since(base_url)
        await ask(11)
        bare = await Bare.of_last_turn(client, base_url)
        await spend(bare.at_once, 10)
        before = bytes_of(path)
        rows = [
            (await spend(bare.at_once, options.turns), await spend(ask, options.turns)) for _ in range(options.rounds)
        ]
        added = (bytes_of(path) - before) / (2 * options.turns * options.rounds)
    bare_ms, turn_ms = (statistics.median(row[kind][0] for row in rows) for kind in range(2))
    ratio, time_ratio = (statistics.median(row[1][kind] / row[0][kind] for row in rows) for kind in range(2))
    print(
        f"| {name} | {count} | {bare.messages} | {bare_ms:.2f} | {turn_ms:.2f} | {ratio:.2f} | {time_ratio:.2f} "
        f"| {added:.0f} |",
        flush=True,
    )


def installed(names):
    """Return the frameworks that are there, and say how to install the others."""
    found = []
    for name in names:
        try:
            versions = [f"{package} {importlib.metadata.version(package)}" for package in PACKAGES[name]]
        except importlib.metadata.PackageNotFoundError as error:
            print(f"{name} is left out, because {error.name} is missing: see the commands at the top of this file")
        else:
            found.append(name)
            print(f"{', '.join(versions)}: {DOES[name]}")
    return found


async def show(base_url, options):
    """Print the table."""
    names = installed(options.only or FRAMEWORKS)
    print("\n| | messages | of those sent | bare, ms of CPU | turn | ratio | time, ratio | bytes a message |")
    print("|---|---|---|---|---|---|---|---|")
    for count in options.messages:
        for name in names:
            await measure(name, base_url, count, options)


def main():
    """Start the server, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[10, 1_000])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(FRAMEWORKS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with model_server() as base_url:
        asyncio.run(show(base_url, options))


if __name__ == "__main__":
    main()
