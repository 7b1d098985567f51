"""Compare the CPU of a turn by popular frameworks, by this service and by the bare openai client.

    python benchmarks/frameworks.py [--messages 10 100 1000] [--tools 2] [--rounds 5] [--only agents agno …]

The frameworks are no dependencies of the project. Install them into an environment of their own:

    python -m venv /tmp/frameworks
    /tmp/frameworks/bin/pip install -e . openai-agents==0.24.0 agno==3.1.10 greenlet pydantic-ai-slim[openai]==2.68.0 \\
        langgraph==1.2.24 langgraph-checkpoint-sqlite==3.1.2 langchain==1.5.2 langchain-openai==1.7.4
    /tmp/frameworks/bin/python benchmarks/frameworks.py

A missing framework is left out. Each is composed as its documentation shows: one short prompt, one tool, a window of
20 messages, an SQLite file. The bare client has the same prompt, tool and window, and keeps the chat in memory. All ask
the same model on loopback by chat.completions. Messages have words as people have them: few frequent, many rare.

Each framework runs in a process of its own, once per round, in turn. A chat of at most 100 messages is new in each
measurement: one turn to warm up, then three measured turns, in five chats. A longer chat has 15 measured turns. With
--tools 2 the model wants two calls, one after the other, before each answer. CPU is that of the whole process. Figures
are the medians of the rounds' medians, in milliseconds.
"""

import argparse
import asyncio
import contextlib
import importlib.metadata
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from costs.chats import WINDOW, sentence
from costs.model_server import TOOL, model_server
from model_calls import MODEL
from openai import AsyncOpenAI

INSTRUCTIONS = (
    "You are a helpful assistant in a messaging app. Answer in at most three sentences. Use a tool when it helps."
)
WORDS = 20_000
SHORT, CHATS, TURNS = 100, 5, 3
PACKAGES = {
    "bare": ("openai",),
    "botservice": ("botservice",),
    "agents": ("openai-agents",),
    "agno": ("agno",),
    "pydantic-ai": ("pydantic-ai-slim",),
    "langgraph": ("langgraph", "langgraph-checkpoint-sqlite", "langchain", "langchain-openai"),
}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def earlier(count):
    """Return the messages of a chat as pairs of a role and a text."""
    return [("user" if number % 2 == 0 else "assistant", sentence(number, WORDS)) for number in range(count)]


class Framework:
    """One way to build a bot: it fills a chat and answers in it."""

    def __init__(self, base_url, path):
        self.base_url, self.path = base_url, path

    async def open(self, stack):
        """Compose the bot; register on the stack what has to be closed."""

    async def fill(self, chat, count):
        """Give a new chat so many earlier messages."""

    async def ask(self, chat, question):
        """Answer a question in a chat."""

    async def client(self, stack):
        """Open the openai client that frameworks are given."""
        return await stack.enter_async_context(AsyncOpenAI(base_url=self.base_url, api_key="none", max_retries=0))


class Bare(Framework):
    """The openai client with a chat in memory."""

    async def open(self, stack):
        self.openai, self.chats = await self.client(stack), {}
        parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
        function = {"name": TOOL, "description": "Add two numbers.", "parameters": parameters}
        self.tools = [{"type": "function", "function": function}]

    async def fill(self, chat, count):
        self.chats[chat] = [{"role": role, "content": text} for role, text in earlier(count)]

    async def ask(self, chat, question):
        history = self.chats[chat]
        history.append({"role": "user", "content": question})
        sent = [{"role": "system", "content": INSTRUCTIONS}, *history[-WINDOW:]]
        while True:
            create = self.openai.chat.completions.create
            answer = (await create(model=MODEL, messages=sent, tools=self.tools)).choices[0].message
            if not answer.tool_calls:
                history.append({"role": "assistant", "content": answer.content})
                return
            sent.append(answer.model_dump(exclude_none=True))
            for call in answer.tool_calls:
                result = str(add(**json.loads(call.function.arguments)))
                sent.append({"role": "tool", "tool_call_id": call.id, "content": result})


class Botservice(Framework):
    """This service: everything is stored, and the whole chat is searched."""

    async def open(self, stack):
        from botservice import (
            AgentService,
            FunctionsBasedAgent,
            MessageWindowMessageSelector,
            OpenAIChatLLM,
            Storage,
            tool,
        )

        self.storage = await stack.enter_async_context(Storage.open(f"sqlite:///{self.path}", migrate=True))
        llm = OpenAIChatLLM(MODEL, base_url=self.base_url, api_key="none", api="chat")
        stack.push_async_callback(llm.close)
        window = MessageWindowMessageSelector(WINDOW)
        agent = FunctionsBasedAgent(tools=[tool(add)], llm=llm, prompt=INSTRUCTIONS, message_selector=window)
        self.service = AgentService(agent, self.storage)

    async def context(self, chat):
        """Return the conversation of a chat."""
        from botservice import AgentContext

        return await AgentContext.get_or_create(self.storage, {"chat": chat})

    async def fill(self, chat, count):
        history = (await self.context(chat)).chat_history
        for role, text in earlier(count):
            await (history.append_user_message if role == "user" else history.append_assistant_message)(text)

    async def ask(self, chat, question):
        await self.service.prompt(await self.context(chat), question)


class Agents(Framework):
    """The OpenAI Agents SDK with its SQLiteSession."""

    async def open(self, stack):
        from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled

        set_tracing_disabled(True)
        model = OpenAIChatCompletionsModel(model=MODEL, openai_client=await self.client(stack))
        self.agent = Agent(name="bot", instructions=INSTRUCTIONS, model=model, tools=[function_tool(add)])
        self.sessions = {}

    async def fill(self, chat, count):
        from agents import SQLiteSession
        from agents.memory import SessionSettings

        session = SQLiteSession(chat, self.path, session_settings=SessionSettings(limit=WINDOW))
        self.sessions[chat] = session
        await session.add_items([{"role": role, "content": text} for role, text in earlier(count)])

    async def ask(self, chat, question):
        from agents import Runner

        await Runner.run(self.agent, question, session=self.sessions[chat])


class Agno(Framework):
    """agno with its SqliteDb. It has no way to add earlier messages, so the chat is filled by turns."""

    async def open(self, stack):
        from agno.agent import Agent
        from agno.db.sqlite import SqliteDb
        from agno.models.openai import OpenAIChat

        model = OpenAIChat(id=MODEL, base_url=self.base_url, api_key="none", max_retries=0)
        self.agent = Agent(
            model=model,
            db=SqliteDb(db_file=str(self.path)),
            instructions=INSTRUCTIONS,
            tools=[add],
            telemetry=False,
            add_history_to_context=True,
            num_history_runs=WINDOW // 2,
        )

    async def fill(self, chat, count):
        for role, text in earlier(count):
            if role == "user":
                await self.ask(chat, text)

    async def ask(self, chat, question):
        await self.agent.arun(question, session_id=chat)


class PydanticAI(Framework):
    """pydantic-ai; each run's messages are stored as JSON, as its chat example does."""

    async def open(self, stack):
        import aiosqlite
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        self.database = await stack.enter_async_context(aiosqlite.connect(self.path))
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=await self.client(stack)))
        self.agent = Agent(model, instructions=INSTRUCTIONS, tools=[add])
        await self.database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, chat TEXT, list TEXT)")
        await self.database.execute("CREATE INDEX by_chat ON messages (chat, id)")

    async def fill(self, chat, count):
        from pydantic_ai import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart

        texts = [text for _, text in earlier(count)]
        for asked, answered in zip(texts[::2], texts[1::2], strict=True):
            run = [ModelRequest(parts=[UserPromptPart(asked)]), ModelResponse(parts=[TextPart(answered)])]
            await self._store(chat, ModelMessagesTypeAdapter.dump_json(run))
        await self.database.commit()

    async def _store(self, chat, run):
        await self.database.execute("INSERT INTO messages (chat, list) VALUES (?, ?)", (chat, run))

    async def ask(self, chat, question):
        from pydantic_ai import ModelMessagesTypeAdapter

        newest = "SELECT list FROM messages WHERE chat = ? ORDER BY id DESC LIMIT ?"
        found = await self.database.execute_fetchall(newest, (chat, WINDOW // 2))
        history = [each for (row,) in reversed(found) for each in ModelMessagesTypeAdapter.validate_json(row)]
        result = await self.agent.run(question, message_history=history)
        await self._store(chat, result.new_messages_json())
        await self.database.commit()


class LangGraph(Framework):
    """LangChain's agent with LangGraph's SQLite checkpointer; a hook before the model trims the state."""

    async def open(self, stack):
        from langchain.agents import create_agent
        from langchain.agents.middleware import before_model
        from langchain.messages import RemoveMessage
        from langchain_core.messages import trim_messages
        from langchain_openai import ChatOpenAI
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        from langgraph.graph.message import REMOVE_ALL_MESSAGES

        @before_model
        def trim(state, runtime):
            if len(state["messages"]) <= WINDOW:
                return None
            kept = trim_messages(
                state["messages"], strategy="last", token_counter=len, max_tokens=WINDOW, start_on="human"
            )
            return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept]}

        saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(self.path)))
        model = ChatOpenAI(model=MODEL, base_url=self.base_url, api_key="none", max_retries=0, use_responses_api=False)
        self.agent = create_agent(model, [add], system_prompt=INSTRUCTIONS, middleware=[trim], checkpointer=saver)

    async def fill(self, chat, count):
        from langchain.messages import AIMessage, HumanMessage

        texts = [(HumanMessage if role == "user" else AIMessage)(text) for role, text in earlier(count)]
        await self.agent.aupdate_state(thread(chat), {"messages": texts}, as_node="model")

    async def ask(self, chat, question):
        await self.agent.ainvoke({"messages": [{"role": "user", "content": question}]}, thread(chat))


def thread(chat):
    """Return LangGraph's name for a chat."""
    return {"configurable": {"thread_id": chat}}


FRAMEWORKS = {
    "bare": Bare,
    "botservice": Botservice,
    "agents": Agents,
    "agno": Agno,
    "pydantic-ai": PydanticAI,
    "langgraph": LangGraph,
}


async def measure(name, base_url, count):
    """Return the median of a turn's milliseconds of CPU."""
    chats = CHATS if count <= SHORT else 1
    spent, number = [], count
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        framework = FRAMEWORKS[name](base_url, Path(folder) / "chat.db")
        await framework.open(stack)
        for chat in map(str, range(chats)):
            await framework.fill(chat, count - 2)
            await framework.ask(chat, sentence(number, WORDS))
            for _ in range(CHATS * TURNS // chats):
                number += 2
                before = time.process_time()
                await framework.ask(chat, sentence(number, WORDS))
                spent.append((time.process_time() - before) * 1000)
    return statistics.median(spent)


def in_a_process(name, base_url, count):
    """Return what `measure` gives in a process of its own."""
    command = [sys.executable, __file__, "--one", name, base_url, str(count)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def installed(names):
    """Return the frameworks that are installed, and print their versions."""
    found = []
    for name in names:
        try:
            print(*(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES[name]), sep=", ")
        except importlib.metadata.PackageNotFoundError as error:
            print(f"{name} is left out: {error.name} is not installed; see the commands at the top of this file")
        else:
            found.append(name)
    return found


def show(options):
    """Print the table, a row for each length of a chat."""
    names = installed(options.only or FRAMEWORKS)
    print("\n| messages | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    with model_server(calls=options.tools) as base_url:
        for count in options.messages:
            rounds = [[in_a_process(name, base_url, count) for name in names] for _ in range(options.rounds)]
            medians = (f"{statistics.median(figures):.1f}" for figures in zip(*rounds, strict=True))
            print(f"| {count} | " + " | ".join(medians) + " |", flush=True)


def main():
    """Measure one framework for the process that asks, or show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[10, 100, 1_000])
    parser.add_argument("--tools", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(FRAMEWORKS))
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        name, base_url, count = options.one
        print(asyncio.run(measure(name, base_url, int(count))))
    else:
        show(options)


if __name__ == "__main__":
    main()
