"""Payments that ask first, on Telegram and in Slack at once, whatever happens: each is made once, or not at all.

A longer run: APPROVAL_TURNS=200 scripts/test tests/chaos/test_approvals.py -m "" -n 0 -s
"""

import contextlib
import os
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from chaos.database import PostgresDatabase
from chaos.faults import ON_POSTGRES, City
from chaos.incidents import Chronicle
from chaos.run import anything, city_of
from crash.asking import SlackWire, TelegramWire, Wire, cashier
from model.conformance import RECORDS, check_record
from standins.slack_api import SlackApi

from botservice.storage.transitions import read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TURNS = int(os.environ.get("APPROVAL_TURNS", "24"))
SEED = os.environ.get("CHAOS_SEED", "1")
HAPPENING = ("kill", "replace", "blink", "end_sessions", "cut_database", "crash_postgres", "fail_model", "hang")
AT_ONCE = 12  # people who wait for an answer
PRESSED_AGAIN_SECONDS = 0.2
ANSWERED_SECONDS = 150

Person = tuple[Wire, int]


class Customers:
    """People who each want one payment, and press what they have made up their minds to, some of them twice."""

    def __init__(self, wires: Sequence[Wire], wanted: Mapping[Person, str], seed: random.Random) -> None:
        self._wires = wires
        self._wanted = wanted
        self._seed = seed
        self._silent = list(wanted)
        self._waiting: list[Person] = []
        self.answers: dict[Person, str] = {}

    @property
    def is_over(self) -> bool:
        return not self._silent and not self._waiting

    def act(self) -> None:
        """Have some ask who have not, and everybody press who is asked."""
        while self._silent and len(self._waiting) < AT_ONCE:
            wire, chat = self._silent.pop()
            self._waiting.append((wire, chat))
            wire.say(f"pay {invoice(self._wires, (wire, chat))}", chat)
        for wire, chat in list(self._waiting):
            done = next((each for each in wire.texts(chat) if each.startswith("done ")), None)
            if done is not None:
                self.answers[wire, chat] = done
                self._waiting.remove((wire, chat))
            elif self._seed.random() < 0.5 and wire.asks(chat):
                for _ in range(self._seed.choice([1, 1, 2])):
                    self._press(wire, chat)

    def _press(self, wire: Wire, chat: int) -> None:
        with contextlib.suppress(IndexError, StopIteration):  # it may be decided this moment, and its buttons gone
            wire.press(self._wanted[wire, chat], chat)


def invoice(wires: Sequence[Wire], person: Person) -> str:
    return f"i{wires.index(person[0])}-{person[1]}"


def test_each_payment_is_made_once_or_not_at_all_whatever_happens(tmp_path: Path) -> None:
    seed = random.Random(f"{SEED}-approvals")
    faults = [each for each in ON_POSTGRES if each.name in HAPPENING]
    with PostgresDatabase.running() as database, SlackApi.running() as slack:
        slack_wire = SlackWire(slack, is_socket=False)
        more = {
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_API_URL": slack.url,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            **RECORDS,
        }
        chronicle = Chronicle("approvals")
        with city_of(tmp_path, database, chronicle, replicas=2, answer=cashier, more=more) as city:
            slack.events.http_url = f"{city.cluster.url}/slack/events"
            wires = [TelegramWire(city.api, is_polled=False), slack_wire]
            people = [(wires[number % 2], number // 2) for number in range(TURNS)]
            wanted = {each: seed.choice(["Allow", "Allow", "Deny"]) for each in people}
            customers = Customers(wires, wanted, random.Random(seed.random()))
            happened = see_through(city, customers, seed, faults)
            city.cluster.close()
            assert not city.cluster.ended_by_themselves, city.cluster.log[-5000:]
        check_record(read_record(database.url))
    paid = Counter((tmp_path / "tools.log").read_text().splitlines())
    allowed = {f"transfer {invoice(wires, each)}" for each in people if wanted[each] == "Allow"}
    story = f"{dict(happened)}\n{chronicle}"
    assert set(paid) <= allowed, f"nothing is paid that was denied: {set(paid) - allowed}\n{story}"
    assert max(paid.values()) == 1, f"nothing is paid twice: {paid.most_common(3)}\n{story}"
    cut_off = {f"transfer {invoice(wires, each)}" for each, answer in customers.answers.items() if "outcome" in answer}
    assert allowed - set(paid) <= cut_off, f"what was allowed is paid, or cut off: {allowed - set(paid) - cut_off}"
    print(f"\n{TURNS} turns, {len(allowed)} allowed, {len(paid)} paid, {len(cut_off)} cut off: {dict(happened)}")  # noqa: T201


def see_through(city: City, customers: Customers, seed: random.Random, faults: Sequence[object]) -> Counter[str]:
    """Let one thing after the other happen while people ask and press, until all of them are answered."""
    is_over, answered = threading.Event(), threading.Event()

    def act() -> None:
        while not (is_over.is_set() and customers.is_over) and not answered.is_set():
            customers.act()
            answered.wait(PRESSED_AGAIN_SECONDS)
        answered.set()

    acting = threading.Thread(target=act, daemon=True)
    acting.start()
    happened: Counter[str] = Counter()
    try:
        while not customers.is_over or not happened:
            happened += Counter(anything(faults, count=len(faults), seconds=0)(city, seed))
            if sum(happened.values()) >= 2 * len(faults):
                break
        is_over.set()
        assert answered.wait(ANSWERED_SECONDS), f"not answered: {len(customers.answers)}\n{city.cluster.log[-5000:]}"
    finally:
        answered.set()
        acting.join(10)
    return happened
