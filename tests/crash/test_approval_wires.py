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


def see_asked(wire: Wire, count: int = 1) -> None:
    wire.wait(lambda: wire.asks() >= count)


def see_done(wire: Wire) -> str:
    wire.wait(lambda: any(each.startswith("done ") for each in wire.texts()))
    return next(each for each in wire.texts() if each.startswith("done "))


@pytest.mark.parametrize(("label", "count"), [("Allow", 1), ("Deny", 0)])
def test_what_was_asked_about_before_a_kill_is_decided_after_it(
    tmp_path: Path, wire: Wire, build: Build, label: str, count: int
) -> None:
    with build(f"sqlite:///{tmp_path / 'bot.db'}") as bot:
        start(bot, wire)
        wire.say("pay i1")
        see_asked(wire)
        bot.kill()
        if wire.keeps_presses:
            wire.press(label)
            wire.press("Deny" if label == "Allow" else "Allow")  # too late
        start(bot, wire)
        if not wire.keeps_presses:
            wire.press(label)
        answer = see_done(wire)
    assert made(tmp_path) == ["transfer i1"] * count
    assert ("transferred i1" in answer) == bool(count)
    assert sum(each.startswith("done ") for each in wire.texts()) == 1


@pytest.mark.parametrize(
    ("moment", "count"), [("before it is made", 0), ("after it was made", 1)], ids=["before", "after"]
)
def test_a_process_that_dies_in_an_allowed_call_does_not_make_it_again(
    tmp_path: Path, wire: Wire, build: Build, moment: str, count: int
) -> None:
    with build(f"sqlite:///{tmp_path / 'bot.db'}") as bot:
        start(bot, wire)
        wire.say("pay i1")
        see_asked(wire)
        (tmp_path / "moment").write_text(moment)
        wire.press("Allow")
        wire.wait(lambda: not (tmp_path / "moment").exists())
        assert bot.kill() == -signal.SIGKILL
        start(bot, wire)
        answer = see_done(wire)
        assert "outcome" in answer
        assert wire.asks() == 0, "it is not asked about again"
    assert made(tmp_path) == ["transfer i1"] * count


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


@pytest.mark.parametrize("is_killed", [False, True], ids=["alive", "killed"])
def test_another_replica_than_the_one_that_asked_takes_the_press(
    tmp_path: Path, pushing_wire: Wire, build: Build, postgres_url: str, is_killed: bool
) -> None:
    wire = pushing_wire
    with build(postgres_url, "one") as one, build(postgres_url, "two") as two:
        start(one, wire)
        wire.say("pay i1")
        see_asked(wire)
        start(two, wire)
        if is_killed:
            one.kill()
        wire.press("Allow")
        wire.press("Allow")
        assert "transferred i1" in see_done(wire)
        wire.wait(lambda: wire.asks() <= is_killed)
    assert made(tmp_path) == ["transfer i1"]
