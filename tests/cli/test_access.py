"""`botservice access` and `botservice usage`: who is let in, and what it took."""

import asyncio
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from botservice import AgentContext, Author, Storage, TokenUsage
from botservice.access.codes import issue_code
from botservice.budgets.budgets import Budgets
from botservice.budgets.usage import Payer, record_call
from botservice.policies import parse_prices
from botservice.turns.records import insert_turn

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
    assert run("access", "approve", "abcdefgh")[:2] == (0, "telegram:42 ('Alice\\x1b[2J') is let in as a member\n")
    listed = [json.loads(line) for line in run("access", "--json")[1].splitlines()]
    assert [(each["subject"], each["role"], each["by"]) for each in listed] == [
        ("telegram:1", "owner", "OWNERS"),
        ("telegram:42", "member", "command line"),
    ]
    assert run("access", "revoke", "telegram:42")[1] == "telegram:42 is let in no more\n"
    assert json.loads(run("access", "--json")[1].splitlines()[1])["role"] == "blocked"


def test_who_is_named_is_let_in_without_a_code(run: Run) -> None:
    assert run("access", "approve", "telegram:7", "--owner")[1] == "telegram:7 is let in as an owner\n"
    assert run("access", "approve", "telegram:-100")[0] == 0
    assert run("access", "approve", "other:room", "--chat")[0] == 0
    kinds = {each["subject"]: each["kind"] for each in map(json.loads, run("access", "--json")[1].splitlines())}
    assert kinds == {"telegram:7": "person", "telegram:-100": "chat", "other:room": "chat"}


def test_what_cannot_be_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWNERS", "telegram:1")
    assert "nobody's code" in run("access", "approve", "ZZZZ-ZZZZ")[2]
    assert "OWNERS" in run("access", "revoke", "telegram:1")[2]
    assert "names nobody" in run("access", "revoke", "alice")[2]
    assert "--by must be" in run("usage", "--by", "mood")[2]
    assert "--since must be" in run("usage", "--since", "yesterday")[2]


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
