"""What every command of the service has."""

import pytest

from botservice import (
    AgentService,
    BotServiceError,
    CommandAnswer,
    CommandRequest,
    FunctionsBasedAgent,
    ScriptedChatLLM,
)
from botservice.commands import Command
from botservice.commands.standard import standard_commands
from botservice.texts import LANGUAGES
from botservice.turns.start.commands import parse_command


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


async def test_a_command_that_nobody_knows_names_itself() -> None:
    catalogue = standard_commands()
    assert catalogue.knows("help")
    assert not catalogue.knows("stop"), "the transport takes care of it"
    assert not catalogue.knows("nonsense")
    with pytest.raises(BotServiceError, match="/nonsense"):
        await catalogue.answer(_request("nonsense"))


def _request(name: str):  # type: ignore[no-untyped-def]  # only the call is looked at
    from datetime import UTC, datetime
    from types import SimpleNamespace

    from botservice.messages import CommandCall

    return SimpleNamespace(call=CommandCall(name), now=datetime.now(UTC))


async def test_a_command_of_ones_own_stands_in_the_menu_and_answers_with_a_text() -> None:
    async def opening(_: CommandRequest) -> str:
        return "Monday to Friday, 9 to 18"

    service = AgentService(
        FunctionsBasedAgent(llm=ScriptedChatLLM([])), commands=[Command("hours", opening, menu="When we are open")]
    )
    assert service.commands.menu("de")[-1] == ("hours", "When we are open")
    assert (await service.commands.answer(_request("hours"))).text == "Monday to Friday, 9 to 18"


async def test_a_command_of_ones_own_takes_the_place_of_a_standard_one() -> None:
    async def greet(_: CommandRequest) -> CommandAnswer:
        return CommandAnswer("Welcome to the library!")

    catalogue = standard_commands([Command("start", greet, menu="Says hello")])
    assert [name for name, _ in catalogue.menu("en")].count("start") == 1
    assert (await catalogue.answer(_request("start"))).text == "Welcome to the library!"


@pytest.mark.parametrize("name", ["/hours", "Hours", "opening hours", "", "x" * 33])
def test_a_name_that_no_platform_could_show_is_refused(name: str) -> None:
    with pytest.raises(BotServiceError, match="without a slash"):
        Command(name)
