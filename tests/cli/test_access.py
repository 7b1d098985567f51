"""`botservice access` and `botservice usage`: who is let in, and what it took."""

import asyncio
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from botservice import AgentContext, Author, Storage, TokenUsage
from botservice.core.policies import parse_prices
from botservice.people.access_queries import issue_code
from botservice.people.budgets import Budgets
from botservice.people.queries import ensure_identity
from botservice.people.usage import Payer
from botservice.people.usage_queries import record_call
from botservice.turns.queries import insert_turn

Run = Callable[..., tuple[int, str, str]]


def write(*work: Callable[..., object]) -> None:
    async def run() -> None:
        async with Storage.open(os.environ["DATABASE_URL"]) as storage:
            context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "42"})
            for each in work:
                await storage.write(lambda connection, each=each: each(connection, context.id))

    asyncio.run(run())


def knock(connection, context_id):
    now = datetime.now(UTC)
    turn_id = insert_turn(connection, context_id, "telegram", now)
    issue_code(connection, "telegram:42", "ABCD-EFGH", "Alice\x1b[2J", turn_id, [{"text": "come in"}], now)


def test_a_newcomer_is_listed_and_let_in_and_taken_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCESS", "pairing")
    monkeypatch.setenv("OWNERS", "telegram:1")
    write(knock)
    code, said, _ = run("access")
    assert code == 0
    assert "access is pairing" in said
    assert "owner    person  telegram:1  by OWNERS" in said
    assert "ABCD-EFGH" in said
    assert "\x1b" not in said
    assert run("access", "approve", "abcdefgh")[:2] == (0, "telegram:42 ('Alice\\x1b[2J') has access as a member\n")
    listed = [json.loads(line) for line in run("access", "--json")[1].splitlines()]
    assert [(each["subject"], each["role"], each["by"]) for each in listed] == [
        ("telegram:1", "owner", "OWNERS"),
        ("telegram:42", "member", "command line"),
    ]
    assert run("access", "revoke", "telegram:42")[1] == "telegram:42 no longer has access\n"
    assert json.loads(run("access", "--json")[1].splitlines()[1])["role"] == "blocked"


def test_who_is_named_is_let_in_without_a_code(run: Run) -> None:
    assert run("access", "approve", "telegram:7", "--owner")[1] == "telegram:7 has access as an owner\n"
    assert run("access", "approve", "telegram:-100")[0] == 0
    assert run("access", "approve", "other:room", "--chat")[0] == 0
    kinds = {each["subject"]: each["kind"] for each in map(json.loads, run("access", "--json")[1].splitlines())}
    assert kinds == {"telegram:7": "person", "telegram:-100": "chat", "other:room": "chat"}


def test_the_last_owner_may_be_taken_out_from_the_command_line_which_says_what_that_means(run: Run) -> None:
    run("access", "approve", "telegram:7", "--owner")
    run("access", "approve", "telegram:8", "--owner")
    assert run("access", "role", "telegram:7", "member")[1] == "telegram:7 now has: member\n"
    assert run("access", "revoke", "telegram:8")[1] == (
        "telegram:8 no longer has access\nnobody else is an owner: botservice access approve PLATFORM:ID --owner\n"
    )


def test_what_cannot_be_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNERS", "telegram:1")
    assert "nobody's code" in run("access", "approve", "ZZZZ-ZZZZ")[2]
    assert "OWNERS" in run("access", "revoke", "telegram:1")[2]
    assert "names nobody" in run("access", "revoke", "alice")[2]
    assert "--by must be" in run("usage", "--by", "mood")[2]
    assert "--since must be" in run("usage", "--since", "yesterday")[2]


def test_a_name_in_place_of_a_number_names_nobody_on_telegram(run: Run) -> None:
    assert "names nobody: say platform:id, such as telegram:42" in run("access", "revoke", "telegram:@spammer")[2]
    assert "no platform:id" in run("access", "approve", "telegram:@spammer")[2]
    assert run("access", "--json")[1] == ""


def test_a_platform_that_is_nearly_a_built_in_one_is_a_slip(run: Run) -> None:
    assert run("access", "revoke", "telegrm:42")[2] == "botservice: there is no platform telegrm: say telegram:42\n"
    assert "say slack:T1:U2" in run("access", "approve", "slak:T1:U2")[2]
    assert run("access", "--json")[1] == ""


def test_what_is_said_of_a_platform_that_a_bot_may_have_counts_and_is_asked_about_until_somebody_writes(
    run: Run,
) -> None:
    said, asked = "discord:5 no longer has access", "nobody has written on that platform until now: is it called so?"
    assert run("access", "revoke", "discord:5")[1] == f"{said}; {asked}\n"
    write(lambda connection, _: ensure_identity(connection, Author("discord", "7"), datetime.now(UTC)))
    write(lambda connection, _: ensure_identity(connection, Author("telegrams", "7"), datetime.now(UTC)))
    assert run("access", "revoke", "discord:5")[1] == f"{said}\n"
    assert run("access", "revoke", "telegrams:5")[1] == "telegrams:5 no longer has access\n"


def test_doctor_and_serve_refuse_people_on_platforms_that_a_bot_without_transports_cannot_have(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOWED", "telegrm:42, telegram:-100")
    monkeypatch.setenv("PORT", "0")
    code, said, error = run("serve")
    assert (code, said) == (1, "")
    assert error.startswith("botservice: OWNERS and ALLOWED: telegrm:42 would be nobody: there are the platforms")
    code, said, _ = run("doctor")
    assert code == 1
    assert "telegrm:42 would be nobody" in said
    assert run("access")[0] == run("chat")[0] == 0


def test_people_on_the_platform_of_a_bot_s_own_transport_are_known_to_doctor(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWNERS", "discord:42")
    monkeypatch.setenv("ACCESS", "allow")
    Path("bot_of_a_test.py").write_text(
        "from botservice import *\n"
        "class Discord:\n    name = 'discord'\n    read = plan = send = print\n"
        "service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM('x')), transports=[Discord()])\n"
    )
    assert "owners: discord:42" in run("doctor", "--app", "bot_of_a_test:service")[1]


def test_usage_is_listed_by_person_and_as_json(run: Run) -> None:
    budgets = Budgets(prices=parse_prices("gpt-test=1/2"))

    def call(person: str, tokens: int) -> Callable[..., object]:
        author = Author("telegram", person)
        used = budgets.price("gpt-test", TokenUsage(tokens, tokens))
        keys = {"transport": "telegram", "chat_id": "42"}
        return lambda connection, context_id: record_call(
            connection, Payer.of(context_id, keys, author), used, datetime.now(UTC)
        )

    write(call("1", 1000), call("2", 5000), call("2", 5000))
    code, said, _ = run("usage")
    assert code == 0
    first, bob, alice, total = said.splitlines()
    assert first.startswith("since ")
    assert bob.split() == ["2", "10,000", "(0)", "10,000", "0.0300", "telegram:2"]
    assert alice.endswith("telegram:1")
    assert total.split()[:2] == ["3", "11,000"]
    lines = [json.loads(line) for line in run("usage", "--by", "model", "--json")[1].splitlines()]
    assert lines == [
        {
            "subject": "gpt-test",
            "calls": 3,
            "input_tokens": 11000,
            "output_tokens": 11000,
            "cached_tokens": 0,
            "cache_write_tokens": 0,
            "cost": 0.033,
        }
    ]
    assert "in all" in run("usage", "--since", "2100-01-01")[1]


def test_a_person_is_given_roles_which_are_listed(run: Run) -> None:
    assert run("access", "role", "telegram:42", "deployer", "oncall")[1] == "telegram:42 now has: deployer, oncall\n"
    assert "member   person  telegram:42  deployer, oncall  by command line" in run("access")[1]
    assert json.loads(run("access", "--json")[1])["roles"] == ["deployer", "oncall"]
    assert run("access", "role", "telegram:42", "guest")[0] == 0
    assert "telegram:42" not in run("access")[1]
    assert "names no person" in run("access", "role", "telegram:-100", "deployer")[2]
    assert "a role is a name of up to 32 small letters" in run("access", "role", "telegram:42", "Boss!")[2]
