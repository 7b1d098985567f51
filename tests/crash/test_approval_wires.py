"""Presses on Telegram and in Slack while processes are killed: each call is made once, or not at all."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.asking import SlackWire, TelegramWire, Wire, cashier
from crash.served import ServedBot, WarmBot
from crash.test_takeover import Web, WorkerProcess
from crash.watching import rows
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi
from standins.slack_api import SlackApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Build = Callable[..., ServedBot]


@pytest.fixture(params=["telegram by polling", "telegram by webhook", "slack by http", "slack by socket"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    yield from _running(request.param)


@pytest.fixture(params=["telegram by webhook", "slack by http"])
def pushing_wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """Platforms that choose the process which they tell."""
    yield from _running(request.param)


def _running(way: str) -> Iterator[Wire]:
    if way.startswith("telegram"):
        with BotApi.running() as api:
            yield TelegramWire(api, is_polled=way.endswith("polling"))
    else:
        with SlackApi.running() as api:
            yield SlackWire(api, is_socket=way.endswith("socket"))


@pytest.fixture
def llm() -> Iterator[OpenAIApi]:
    with OpenAIApi.running(cashier) as running:
        yield running


@pytest.fixture
def build(tmp_path: Path, wire_of_test: Wire, llm: OpenAIApi) -> Build:
    (tmp_path / "tools.log").touch()

    def make(url: str, name: str = "one", kind: type[ServedBot] = WarmBot) -> ServedBot:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        settings = {"DATABASE_URL": url, "CRASH_TOOL_LOG": str(tmp_path / "tools.log")}
        return kind(folder, "--app", "crash_bot:service", **settings, **wire_of_test.settings(llm))

    return make


@pytest.fixture
def wire_of_test(request: pytest.FixtureRequest) -> Wire:
    name = "wire" if "wire" in request.fixturenames else "pushing_wire"
    found: Wire = request.getfixturevalue(name)
    return found


def start(bot: ServedBot, wire: Wire) -> None:
    bot.start()
    wire.reach(bot)


def made(folder: Path) -> list[str]:
    return (folder / "tools.log").read_text().splitlines()


def see_asked(wire: Wire, chat: int = 0) -> None:
    wire.wait(lambda: wire.asks(chat))


def see_done(wire: Wire, chat: int = 0) -> str:
    wire.wait(lambda: done(wire, chat))
    return done(wire, chat)[0]


def done(wire: Wire, chat: int) -> list[str]:
    return [each for each in wire.texts(chat) if each.startswith("done ")]


def test_what_was_asked_about_before_a_kill_is_decided_after_it(tmp_path: Path, wire: Wire, build: Build) -> None:
    labels = ("Allow", "Deny")

    def decide() -> None:
        for chat, label in enumerate(labels):
            wire.press(label, chat)

    with build(f"sqlite:///{tmp_path / 'bot.db'}") as bot:
        start(bot, wire)
        for chat, label in enumerate(labels):
            wire.say(f"pay {label}", chat)
            see_asked(wire, chat)
        bot.kill()
        if wire.keeps_presses:
            decide()
            for chat, too_late in enumerate(reversed(labels)):
                wire.press(too_late, chat)
        start(bot, wire)
        if not wire.keeps_presses:
            decide()
        answers = [see_done(wire, chat) for chat in range(len(labels))]
    assert made(tmp_path) == ["transfer Allow"]
    assert ["transferred" in each for each in answers] == [True, False]
    assert [len(done(wire, chat)) for chat in range(len(labels))] == [1, 1]


def test_a_process_that_dies_in_an_allowed_call_does_not_make_it_again(
    tmp_path: Path, wire: Wire, build: Build
) -> None:
    with build(f"sqlite:///{tmp_path / 'bot.db'}") as bot:
        start(bot, wire)
        for chat, moment in enumerate(("before it is made", "after it was made")):
            wire.say(f"pay {moment}", chat)
            see_asked(wire, chat)
            (tmp_path / "moment").write_text(moment)
            wire.press("Allow", chat)
            wire.wait(lambda: not (tmp_path / "moment").exists())
            assert bot.kill() == -signal.SIGKILL
            start(bot, wire)
            assert "outcome" in see_done(wire, chat)
            assert wire.asks(chat) == 0, "it is not asked about again"
    assert made(tmp_path) == ["transfer after it was made"]


def test_a_press_that_was_taken_before_a_kill_counts_once_for_another_process(
    tmp_path: Path, pushing_wire: Wire, build: Build, postgres_url: str
) -> None:
    wire = pushing_wire
    with (
        build(postgres_url, "web", Web) as web,
        build(postgres_url, "worker", WorkerProcess) as worker,
        build(postgres_url, "other") as other,
    ):
        start(web, wire)
        worker.start()
        wire.say("pay i1")
        see_asked(wire)
        worker.kill()
        wire.press("Allow")
        wire.wait(lambda: rows(postgres_url, "SELECT status FROM pending_calls") == [("allowed",)])
        web.kill()
        assert made(tmp_path) == []
        start(other, wire)
        assert "transferred i1" in see_done(wire)
        wire.wait(lambda: wire.asks() <= 1)  # a copy that the killed process had just sent keeps its buttons
    assert made(tmp_path) == ["transfer i1"]


def test_another_replica_than_the_one_that_asked_takes_the_press(
    tmp_path: Path, pushing_wire: Wire, build: Build, postgres_url: str
) -> None:
    wire, alive, killed = pushing_wire, 0, 1
    with build(postgres_url, "one") as one, build(postgres_url, "two") as two:
        start(one, wire)
        for chat in (alive, killed):
            wire.say(f"pay i{chat}", chat)
            see_asked(wire, chat)
        start(two, wire)
        press_twice(wire, alive)
        wire.wait(lambda: not wire.asks(alive))
        one.kill()
        press_twice(wire, killed)
        wire.wait(lambda: wire.asks(killed) <= 1)  # a copy that the killed process had just sent keeps its buttons
    assert made(tmp_path) == ["transfer i0", "transfer i1"]


def press_twice(wire: Wire, chat: int) -> None:
    """Allow what is asked, and see that it is done."""
    wire.press("Allow", chat)
    wire.press("Allow", chat)
    assert f"transferred i{chat}" in see_done(wire, chat)
