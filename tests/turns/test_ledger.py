"""The ledger of approvals: each decision stands in it once, for a year, and nobody who is forgotten is named in it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from botservice import AgentContext, ApprovalPending, Author, RunInterrupted, StorageError, tool
from botservice.background.maintenance import Maintenance, Retention
from botservice.people.queries import ensure_identity, find_identity, join_identities
from botservice.privacy.forgetting import forget_chat, forget_person
from botservice.storage.tables.waiting import approvals, pending_calls
from botservice.telemetry.logs import register_secret
from botservice.turns.administration import drop_turn, list_turns
from botservice.turns.approval_queries import list_approvals
from botservice.turns.call_decisions import Decider, DecisionRequest, decide_now
from tests.turns.bots import call, make_service
from tests.turns.test_approval import Till, ask, pay

ANNA, BOB = Author("telegram", "7140000101", "Annabel"), Author("telegram", "7140000102", "Bobby")


async def ledger(storage, **options):
    return await storage.read(lambda connection: list_approvals(connection, **options))


async def decide_as(storage, context, author, number, *, allow=True):
    order = DecisionRequest(allow, numbers=(number,))
    decider = Decider(author, is_owner=True)
    now = datetime.now(UTC)
    taken = await storage.write(lambda connection: decide_now(connection, context.id, order, decider, "en", now))
    assert taken.is_taken


async def finish(service, context):
    return await (await service.resume(context)).finish()


async def nobody_rests(_seconds):
    """Do not rest between batches."""


def upkeep(storage, *, days, **retention):
    then = datetime.now(UTC) + timedelta(days=days)
    return Maintenance(storage, Retention(**retention), clock=lambda: then, rest=nobody_rests)


@pytest.mark.any_database
async def test_an_allowed_call_says_who_asked_who_decided_where_and_that_it_worked(context, storage):
    service, _ = make_service(storage, [pay(), "done"], tools=[Till().pay])
    pending = await ask(service, context, author=ANNA)
    assert await ledger(storage) == [], "nobody has decided yet"
    await storage.write(lambda connection: ensure_identity(connection, ANNA, datetime.now(UTC)))
    await decide_as(storage, context, BOB, pending.calls[0].number)
    (entry,) = await ledger(storage)
    assert (entry.decision, entry.result) == ("allowed", "unknown")
    await finish(service, context)
    (entry,) = await ledger(storage)
    found = entry.as_dict()
    assert (
        found.items()
        >= {
            "call": pending.calls[0].number,
            "asker": "telegram:7140000101",
            "asker_name": "Annabel",
            "tool": "pay",
            "server": None,
            "arguments": {"to": "Anna", "amount": 5},
            "decision": "allowed",
            "decider": "telegram:7140000102",
            "decider_name": "Bobby",
            "chat": "test:1",
            "result": "worked",
        }.items()
    )
    assert entry.asked_at <= entry.decided_at <= entry.ended_at
    assert entry.tool_digest == Till().pay.digest
    assert len(entry.digest) == 64


@pytest.mark.any_database
async def test_a_denied_call_and_one_that_expired_were_not_run(context, storage):
    now = datetime.now(UTC)
    service, _ = make_service(storage, [pay(), "ok", pay(), "ok"], tools=[Till().pay], clock=lambda: now)
    pending = await ask(service, context)
    await service.decide(context, pending.calls[0].number, allow=False)
    await finish(service, context)
    await ask(service, context)
    now += timedelta(days=2)
    await finish(service, context)
    found = [(each.decision, each.result, each.decider) for each in await ledger(storage)]
    assert found == [("expired", "not_run", None), ("denied", "not_run", None)]


@pytest.mark.any_database
@pytest.mark.parametrize("allowed", [False, True])
async def test_a_turn_that_is_dropped_cancels_what_nobody_decided(context, storage, allowed):
    service, _ = make_service(storage, [[pay(), pay(6)]], tools=[Till().pay])
    pending = await ask(service, context)
    if allowed:
        await service.decide(context, pending.calls[0].number)
    (turn,) = await list_turns(storage)
    await drop_turn(storage, turn.id, datetime.now(UTC))
    found = [(each.decision, each.result) for each in await ledger(storage)]
    assert found == [("cancelled", "not_run"), ("allowed" if allowed else "cancelled", "not_run")]
    with pytest.raises(RunInterrupted):
        await finish(service, context)
    assert [(each.decision, each.result) for each in await ledger(storage)] == found


@pytest.mark.any_database
async def test_a_call_that_fails_and_one_beside_it_that_was_denied_are_told_apart(context, storage):
    @tool(needs_approval=True)
    async def crm__drop(table: str) -> str:
        """Drop a table."""
        raise ValueError(f"no {table}")

    service, _ = make_service(storage, [[call("crm__drop", table="a"), pay()], "ok"], tools=[crm__drop, Till().pay])
    pending = await ask(service, context)
    await service.decide(context, pending.calls[0].number)
    await service.decide(context, pending.calls[1].number, allow=False)
    await finish(service, context)
    found = [(each.tool, each.server, each.decision, each.result) for each in await ledger(storage)]
    assert found == [("pay", None, "denied", "not_run"), ("crm__drop", "crm", "allowed", "failed")]


@pytest.mark.any_database
async def test_replicas_that_decide_at_once_write_one_row(context, storage):
    services = [make_service(storage, [pay(), "done"], tools=[Till().pay])[0] for _ in range(3)]
    pending = await ask(services[0], context)
    number = pending.calls[0].number
    taken = await asyncio.gather(
        *(each.decide(context, number, allow=place != 1) for place, each in enumerate(services))
    )
    assert sorted(taken) == [False, False, True]
    (entry,) = await ledger(storage)
    assert (entry.decision == "denied") is taken[1]


@pytest.mark.any_database
async def test_another_process_that_takes_up_the_call_completes_its_row(context, storage):
    service, _ = make_service(storage, [pay()], tools=[Till().pay])
    pending = await ask(service, context)
    await service.decide(context, pending.calls[0].number)
    other = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})
    again, _ = make_service(storage, ["done"], tools=[Till().pay])
    await finish(again, other)
    assert [each.result for each in await ledger(storage)] == ["worked"]


@pytest.mark.any_database
async def test_secrets_are_masked_wherever_they_stand_and_long_texts_are_cut(context, storage):
    @tool(needs_approval=True)
    async def log_in(body: dict, text: str, otp: int) -> str:
        """Log in."""
        return "in"

    register_secret("registered-secret-of-this-bot")
    key = "sk-abcdefghijklmnopqrstuvwxyz"
    body = {"password": "correct horse battery staple", "list": [{"api_key": key}], key: 1, "limit": float("inf")}
    text = f"it is registered-secret-of-this-bot {'long ' * 1000}"
    script = [call("log_in", body=body, text=text, otp=481516), call("log_in", body=body, text=text, otp=481517)]
    service, _ = make_service(storage, [script, "done"], tools=[log_in])
    pending = await ask(service, context)
    for each in pending.calls:
        await service.decide(context, each.number)
    rows = await storage.read(lambda connection: connection.execute(select(approvals)).all())
    kept = repr(rows)
    for secret in ("horse battery", "fghijklmnop", "registered-secret-of-this-bot", "481516", "Infinity"):
        assert secret not in kept, secret
    assert len(rows[0].arguments) < 3_000
    assert rows[0].digest == rows[1].digest, "a digest of the number would give it away to whoever tries all"
    assert json.loads(rows[0].arguments)["otp"] != 481516


@pytest.mark.any_database
async def test_the_ledger_outlives_the_chat_and_its_records_and_goes_after_its_days(context, storage):
    service, _ = make_service(storage, [pay(), "done"], tools=[Till().pay])
    pending = await ask(service, context, author=ANNA)
    await service.decide(context, pending.calls[0].number)
    await finish(service, context)
    before = await ledger(storage)
    await forget_chat(storage, context.id)
    await upkeep(storage, days=364).run_once()
    assert await storage.read(lambda connection: connection.execute(select(pending_calls)).all()) == []
    assert await ledger(storage) == before
    await upkeep(storage, days=4000, ledger=None).run_once()
    assert await ledger(storage) == before
    await upkeep(storage, days=366).run_once()
    assert await ledger(storage) == []


@pytest.mark.any_database
async def test_a_call_that_goes_with_its_chat_before_anybody_decides_leaves_nothing(context, storage):
    service, _ = make_service(storage, [pay()], tools=[Till().pay])
    await ask(service, context)
    await forget_chat(storage, context.id)
    assert await ledger(storage) == []


@pytest.mark.any_database
async def test_a_forgotten_person_is_a_pseudonym_everywhere_in_the_ledger(storage):
    now, linked = datetime.now(UTC), Author("slack", "T1:U7", "Annabel")
    private = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": ANNA.id})
    elsewhere = await AgentContext.get_or_create(storage, {"transport": "slack", "channel_id": "D7"})
    of_bob = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": BOB.id})

    @tool(needs_approval=True)
    async def write(to: str, number: int, names: dict) -> str:
        """Write to a person."""
        return "written"

    def link(connection):
        join_identities(connection, *(ensure_identity(connection, each, now) for each in (ANNA, linked)))

    await storage.write(link)
    for chat, author in ((private, ANNA), (elsewhere, linked), (of_bob, BOB)):
        wish = call("write", to="Dear Annabel, not Annabella", number=int(ANNA.id), names={"Annabel": [True, None]})
        service, _ = make_service(storage, [wish, "done"], tools=[write])
        with pytest.raises(ApprovalPending) as raised:
            await service.prompt(chat, "write", author=author)
        await decide_as(storage, chat, ANNA, raised.value.calls[0].number)
        await finish(service, chat)
    await forget_person(storage, ANNA)
    assert await storage.read(lambda connection: find_identity(connection, linked)) is None
    bobs, slacks, annas = [each.as_dict() for each in await ledger(storage)]
    pseudonym = annas["asker"]
    assert pseudonym.startswith("forgotten:")
    assert {pseudonym} == {annas["decider"], annas["chat"], slacks["asker"], slacks["chat"], bobs["decider"]}
    assert (bobs["asker"], bobs["chat"], bobs["result"]) == ("telegram:7140000102", "telegram:7140000102", "worked")
    assert bobs["arguments"] == {
        "to": f"Dear {pseudonym}, not Annabella",
        "number": pseudonym,
        "names": {pseudonym: [True, None]},
    }
    rows = repr(await storage.read(lambda connection: connection.execute(select(approvals)).all()))
    for word in (ANNA.id, "T1:U7", "D7", "Annabel,", "'Annabel'"):
        assert word not in rows
    assert annas["digest"] is None


@pytest.mark.any_database
async def test_a_person_of_whom_only_the_ledger_is_left_can_be_forgotten(context, storage):
    service, _ = make_service(storage, [pay(), "done"], tools=[Till().pay])
    pending = await ask(service, context, author=ANNA)
    await service.decide(context, pending.calls[0].number)
    await finish(service, context)
    await forget_chat(storage, context.id)
    await forget_person(storage, Author("telegram", ANNA.id))
    (entry,) = await ledger(storage)
    assert entry.asker.startswith("forgotten:")
    with pytest.raises(StorageError):
        await forget_person(storage, Author("telegram", ANNA.id))


@pytest.mark.any_database
async def test_the_list_has_the_newest_first_and_goes_on_behind_a_call(context, storage):
    service, _ = make_service(storage, [[pay(each) for each in range(1, 4)], "done"], tools=[Till().pay])
    pending = await ask(service, context)
    for each in pending.calls:
        await service.decide(context, each.number, allow=False)
    first, second, third = (each.number for each in pending.calls)
    assert [each.call for each in await ledger(storage, limit=2)] == [third, second]
    assert [each.call for each in await ledger(storage, before=second)] == [first]
    assert await ledger(storage, since=datetime.now(UTC) + timedelta(days=1)) == []
    assert len(await ledger(storage, since=datetime.now(UTC) - timedelta(days=1))) == 3
