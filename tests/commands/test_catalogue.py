"""What every command of the service has."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from botservice import AgentService, BotServiceError, Capabilities, CommandAnswer, FunctionsBasedAgent, ScriptedChatLLM
from botservice.commands.command import Command
from botservice.commands.standard import standard_commands
from botservice.core.messages import CommandCall, InboundMessage
from botservice.texts import LANGUAGES
from botservice.turns.commands import CommandRequest, parse_command
from transports.slack.inbound_events import command_of


@pytest.mark.parametrize("command", list(standard_commands()), ids=lambda command: command.name)
def test_every_command_is_described_in_every_language_in_other_words(command: Command) -> None:
    descriptions = [command.description(language) for language in LANGUAGES]
    assert len(set(descriptions)) > len(LANGUAGES) // 2
    assert all(0 < len(text) <= 100 for text in descriptions)


def test_a_command_is_read_with_what_stands_behind_it() -> None:
    found = parse_command("  /Forget everything about me ")
    assert found is not None
    assert (found.name, found.arguments) == ("forget", "everything about me")
    assert parse_command("/help@some_bot") is None
    assert parse_command("what does /help do?") is None
    assert parse_command("/usr/bin/python") is None


@pytest.mark.parametrize("space", [chr(each) for each in range(sys.maxunicode + 1) if chr(each).isspace()], ids=ascii)
def test_any_whitespace_ends_the_name_of_a_command(space: str) -> None:
    assert parse_command(f"{space}/approve{space}telegram:78{space}owner{space}") == CommandCall(
        "approve", f"telegram:78{space}owner"
    )
    named = parse_command(f"/approve@Some_bot{space}telegram:78", is_called=lambda name: name == "Some_bot")
    assert named == CommandCall("approve", "telegram:78")
    assert command_of(f"!approve{space}slack:T1:U2") == CommandCall("approve", "slack:T1:U2")


@pytest.mark.parametrize(
    ("name", "said"), [("nonsense", "I don’t know the command /nonsense."), ("memoryy", "Did you mean /memory?")]
)
async def test_a_command_that_nobody_knows_is_answered_with_the_one_that_looks_most_like_it(
    name: str, said: str
) -> None:
    assert said in (await standard_commands().answer(_request(name))).text.plain


async def test_menus_leave_out_what_the_agent_cannot_do() -> None:
    catalogue = standard_commands()
    names = [command.name for command in catalogue.offered(["remind_me"])]
    assert "reminders" in names
    assert [each for each in names if each != "reminders"] == [each.name for each in catalogue.offered([])]
    assert "/reminders" in (await catalogue.answer(_request("help", tools=["remind_me"]))).text.plain
    assert "/reminders" not in (await catalogue.answer(_request("help", tools=[]))).text.plain


async def test_a_command_of_ones_own_stands_in_the_menu_and_answers_with_a_text() -> None:
    async def opening(_: CommandRequest) -> str:
        return "Monday to Friday, 9 to 18"

    service = AgentService(
        FunctionsBasedAgent(llm=ScriptedChatLLM([])), commands=[Command("hours", opening, menu="When we are open")]
    )
    assert [each.description("de") for each in service.commands.offered([])][-1] == "When we are open"
    assert (await service.commands.answer(_request("hours"))).text == "Monday to Friday, 9 to 18"


async def test_a_command_of_ones_own_takes_the_place_of_a_standard_one() -> None:
    async def greet(_: CommandRequest) -> CommandAnswer:
        return CommandAnswer("Welcome to the library!")

    catalogue = standard_commands([Command("start", greet, menu="Says hello")])
    assert [each.name for each in catalogue.offered(None)].count("start") == 1
    assert (await catalogue.answer(_request("start"))).text == "Welcome to the library!"


async def test_help_names_every_command_as_it_is_typed_there_also_those_of_ones_own() -> None:
    catalogue = standard_commands([Command("hours", _nothing, menu="When we are open, see /usr/hours")])
    slack = Capabilities(command_prefix="!", files_out="uploads")
    lines = (await catalogue.answer(_request("help", capabilities=slack))).text.plain.splitlines()
    assert [each for each in lines if each.startswith("/")] == []
    assert "!hours – When we are open, see /usr/hours" in lines  # noqa: RUF001 - a dash
    assert "!help" in (await catalogue.answer(_request("hourss", capabilities=slack))).text.plain


async def test_help_leaves_out_what_the_platform_cannot_show() -> None:
    catalogue = standard_commands()
    assert "/export" in (await catalogue.answer(_request("help"))).text.plain
    assert "/export" not in (await catalogue.answer(_request("help", capabilities=Capabilities()))).text.plain


async def _nothing(_: CommandRequest) -> str:
    return ""


@pytest.mark.parametrize("name", ["/hours", "Hours", "opening hours", "", "x" * 33])
def test_a_name_that_no_platform_could_show_is_refused(name: str) -> None:
    with pytest.raises(BotServiceError, match="without a slash"):
        Command(name, _nothing)


def _request(
    name: str, *, tools: Sequence[str] | None = None, capabilities: Capabilities | None = None
) -> CommandRequest:
    message = InboundMessage(f"/{name}")
    nowhere: Any = None  # these commands ask nothing of it
    return CommandRequest(
        CommandCall(name), message, nowhere, nowhere, nowhere, datetime.now(UTC), tools=tools, capabilities=capabilities
    )
