"""What every command of the service has."""

import pytest

from botservice import BotServiceError
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
