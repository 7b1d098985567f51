"""The command that lists approvals, for people, programs and spreadsheets."""

import asyncio
import csv
import io
import json

import pytest
from cli.conftest import Run

from botservice import (
    AgentContext,
    AgentService,
    ApprovalPending,
    Author,
    FunctionsBasedAgent,
    ScriptedChatLLM,
    Storage,
    ToolCall,
    tool,
)

FORMULA = "=cmd|' /C calc'!A1"


@tool(needs_approval=True, name="-pay")
async def pay(to: str, password: str) -> str:
    """Pay."""
    return f"paid {to} by {len(password)} letters"


async def pay_twice() -> None:
    """Have two calls allowed, of a person and in a chat whose names are formulas."""
    async with Storage.open("sqlite:///bot.db", migrate=True) as storage:
        context = await AgentContext.get_or_create(storage, {"transport": FORMULA})
        for to in ("Ada", "Bo"):
            wish = ToolCall("", "-pay", {"to": to, "password": "correct horse battery"})
            agent = FunctionsBasedAgent([pay], ScriptedChatLLM([wish, "done"]), search_k=0)
            service = AgentService(agent, storage)
            with pytest.raises(ApprovalPending) as raised:
                await service.prompt(context, "pay", author=Author("@sum", "1+1", "=1+1"))
            await service.decide(context, raised.value.calls[0].number)
            run = await service.resume(context)
            assert run is not None
            await run.finish()


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two calls were allowed."""
    monkeypatch.setenv("DATABASE_URL", "sqlite:///bot.db")
    asyncio.run(pay_twice())


@pytest.mark.usefixtures("decided")
def test_approvals_are_listed_for_people_and_programs(run: Run) -> None:
    code, said, problem = run("approvals")
    assert (code, problem) == (0, "")
    first, second = said.splitlines()
    assert "allowed by a program, worked: -pay" in first
    assert '"to": "Bo"' in first
    assert '"to": "Ada"' in second
    found = [json.loads(line) for line in run("approvals", "--json", "--since", "2020-01-01")[1].splitlines()]
    assert [each["arguments"]["to"] for each in found] == ["Bo", "Ada"]
    assert "horse" not in said + json.dumps(found)
    assert run("approvals", "--since", "2999-01-01")[1] == ""


@pytest.mark.usefixtures("decided")
def test_no_cell_of_the_table_is_a_formula(run: Run) -> None:
    said = run("approvals", "--csv")[1]
    rows = list(csv.DictReader(io.StringIO(said)))
    assert [(each["call"], each["result"]) for each in rows] == [("2", "worked"), ("1", "worked")]
    assert rows[0]["tool"] == "'-pay"
    assert rows[0]["asker"] == "'@sum:1+1"
    assert rows[0]["asker_name"] in ("", "'=1+1")
    assert rows[0]["chat"].startswith("'=cmd")
    assert json.loads(rows[0]["arguments"])["to"] == "Bo"
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())


def test_a_wrong_day_and_two_forms_at_once_are_refused_in_a_line(run: Run) -> None:
    assert run("approvals", "--since", "yesterday")[2].startswith("botservice: --since must be a day such as")
    assert run("approvals", "--json", "--csv")[2] == "botservice: say --json or --csv, not both\n"
