"""What a person reads in a question on Telegram is what runs: over the real client, from the entities that came."""

import json
import random
from typing import Any

from standins.bot_api import BotApi, Person

from botservice import ToolCall, tool
from botservice.core.visible_text import visible
from tests.transports.telegram.test_approval import becomes, press
from tests.transports.test_seen_as_stored import ATTACKS, decoded, text_of

_ROUNDS = 24
_SIGNS = "\\`*_<>|$[](){}nu\"' \n⟨⟩•אבعر٥\u0336\u0301\u200d\ufe0f\u3164é😀"


def generated(random_: random.Random) -> dict[str, Any]:
    """Return arguments of texts that attack what is shown, and of anything."""

    def text() -> str:
        noise = "".join(random_.choices(_SIGNS, k=random_.randrange(8)))
        return random_.choice([*ATTACKS, "", "Anna"]) + noise

    return {"command": text(), "to": [text(), 5, text()], "details": {text(): text(), "amount": "5000"}}


def read_back(message: Any) -> dict[str, Any]:
    """Return the arguments that a person reads in the block of code of a message."""
    (block,) = [each for each in message.entities if each["type"] == "pre"]
    units = message.text.encode("utf-16-le")
    shown = units[2 * block["offset"] : 2 * (block["offset"] + block["length"])].decode("utf-16-le")
    lines = dict(line.split(": ", 1) for line in shown.split("\n"))
    return {name: text_of(line) if name == "command" else json.loads(decoded(line)) for name, line in lines.items()}


async def test_what_is_read_is_what_runs_whatever_it_is(api: BotApi, bot_on: Any) -> None:
    random_ = random.Random(44)
    rounds = [generated(random_) for _ in range(_ROUNDS)]
    names = [random_.choice(ATTACKS)[:60] for _ in rounds]
    ran: list[dict[str, Any]] = []

    @tool(needs_approval=True)
    async def run(command: str, to: list[str | int], details: dict[str, str]) -> str:
        """Run something."""
        ran.append({"command": command, "to": to, "details": details})
        return "done"

    def model(prompt: list[Any]) -> Any:
        last = prompt[-1]
        if last["role"] == "tool":
            return "It is done."
        number = int(last["content"].split("round ")[1].split(" ")[0])
        return ToolCall(f"call-{number}", "run", rounds[number])

    async with bot_on(api, model, tools=[run]):
        for number, (arguments, name) in enumerate(zip(rounds, names, strict=True)):
            chat = 1000 + number
            api.person_says(f"round {number} please", chat_id=chat, user=Person(chat, first_name=name))
            question = await api.message(chat, "May I do this")
            told = read_back(question)
            assert told == arguments
            assert decoded(visible(name.strip())) in decoded(question.text) or name.strip() == ""
            assert {each["type"] for each in question.entities} <= {"pre", "code", "date_time"}
            press(api, question, "Allow", user=chat)
            await becomes(api, question, "Allowed")
            await api.until(lambda count=number + 1: len(ran) == count)
            assert ran[-1] == told
