"""What implements a port of ours is taken whether it inherits or not, and what it leaves out has the port's default."""

import ast
from pathlib import Path
from typing import Final

import pytest

from botservice import (
    Agent,
    AgentContext,
    AgentService,
    ChatLLM,
    ChatResponse,
    Embedder,
    FallbackLLM,
    FunctionsBasedAgent,
    InvalidArgument,
    MessageSelector,
    ScriptedChatLLM,
    Toolset,
)
from botservice.core.argument_checks import adopt
from botservice.transport_plugins import TransportPlugin
from botservice.turns.transport import Live, Transport

PORTS: Final = (Agent, ChatLLM, Embedder, Live, MessageSelector, Toolset, Transport, TransportPlugin)
ROOT: Final = Path(__file__).parents[1]


class Own(Transport):
    name = "own"
    read = plan = send = print


class Foreign:
    name = "foreign"
    read = plan = send = print

    def was_spoken(self, events):
        return bool(events)


class Parrot:
    """A model that inherits from nothing."""

    async def chat(self, messages, tools=(), *, on_text=None):
        return ChatResponse(messages[-1]["content"])


async def test_what_inherits_is_taken_as_it_is():
    own = Own()
    assert adopt(Transport, own) is own


async def test_what_does_not_inherit_keeps_its_members_and_gets_the_defaults_of_others():
    given = Foreign()
    taken = adopt(Transport, given)
    assert isinstance(taken, Transport)
    assert (taken.name, taken.was_spoken(["one"]), taken.is_shared({}), taken.has_topics) == (
        "foreign",
        True,
        False,
        False,
    )
    assert taken.describe() == "foreign"  # a default that uses what is given
    given.has_topics = True
    assert taken.has_topics
    taken.has_topics = False
    assert given.has_topics is False
    assert repr(taken) == repr(given)


async def test_a_model_that_inherits_from_nothing_is_named_by_its_class_also_where_it_is_given_later(sqlite_storage):
    agent = FunctionsBasedAgent(llm=ScriptedChatLLM(["no"]), search_k=0)
    service = AgentService(agent, sqlite_storage)
    agent.llm = Parrot()
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    assert (await service.prompt(context, "hello")).text == "hello"
    assert agent.llm.models == ("Parrot",)
    assert FallbackLLM([Parrot(), ScriptedChatLLM([])]).models == ("Parrot", "scripted")


async def test_an_agent_of_ones_own_may_have_parts_that_inherit_from_nothing():
    class Shelf:
        async def tools(self):
            return []

    class Mine(Agent):
        llm = Parrot()
        toolsets = (Shelf(),)
        next_action = finish = print

    agent = AgentService(Mine()).agent
    assert agent.llm.models == ("Parrot",)
    assert (agent.toolsets[0].problems(), agent.toolsets[0].explain_missing("lend")) == ({}, None)
    await agent.close()


@pytest.mark.parametrize("port", [port for port in PORTS if port is not Live], ids=lambda port: port.__name__)
def test_what_lacks_a_member_that_is_needed_is_refused_where_it_is_handed_in(port):
    with pytest.raises(InvalidArgument, match=f"a {port.__name__} is a object: inherit from {port.__name__}: "):
        adopt(port, object())
    with pytest.raises(TypeError, match="abstract"):
        type("Incomplete", (port,), {})()


@pytest.mark.parametrize(
    ("port", "misspelt", "meant"),
    [
        (ChatLLM, {"shows_thougts": True}, "shows_thoughts"),
        (ChatLLM, {"takes_shema": True}, "takes_schema"),
        (Toolset, {"tools_of": lambda: None}, "tools_for"),
        (Toolset, {"explain_missings": lambda: None}, "explain_missing"),
        (Transport, {"is_share": lambda: None}, "is_shared"),
        (Transport, {"offer_retry": True}, "offers_retry"),
        (Live, {"on_restarts": lambda: None}, "on_restart"),
        (Agent, {"anounces_calls": True}, "announces_calls"),
        (TransportPlugin, {"is_publik": lambda: None}, "is_public"),
    ],
)
@pytest.mark.parametrize("inherits", [True, False])
def test_a_misspelt_member_is_named_where_it_is_handed_in(port, misspelt, meant, inherits):
    needed = dict.fromkeys(getattr(port, "__abstractmethods__", ()), print)
    kind = type("Mine", (port,) if inherits else (), {**needed, **misspelt})
    (name,) = misspelt
    with pytest.raises(InvalidArgument, match=rf"Mine\.{name} is no member of .*: is it to be {meant}\?"):
        adopt(port, kind())
    adopt(port, type("Mine", (port,) if inherits else (), {**needed, "closed": False, "_tools_fro": print})())


def test_no_module_asks_a_port_whether_it_has_a_member():
    members = {name for port in PORTS for name in dir(port) if not name.startswith("_")} - {"name"}
    modules = [path for package in ("botservice", "transports") for path in (ROOT / package).rglob("*.py")]
    asked = [
        f"{path.name}:{node.lineno}"
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and isinstance(node.args[1], ast.Constant)
        and node.args[1].value in members
    ]
    assert len(modules) > 400
    assert asked == []


def test_a_live_answer_that_knows_no_calls_takes_them_as_activities():
    class Shown(Live):
        def __init__(self):
            self.seen = []

        def on_activity(self, activity):
            self.seen.append(activity)

    class Call:
        name = "add"

    shown = Shown()
    shown.on_call(Call())
    shown.on_call_end(Call(), is_error=False)
    assert shown.seen == ["add"]
