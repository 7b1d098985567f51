"""A process that is killed while a guest answers: one message all the same, and whoever asked gets the answer."""

import contextlib
from pathlib import Path

import pytest
from crash.served import WarmBot
from crash.test_streams import is_kept
from standins.bot_api import BotApi, Hang, Person
from standins.openai_api import OpenAIApi, Reply

from botservice.texts import in_language

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ADA = Person(42, "Ada")
STUB = in_language("guests.stub", "en")
KILLS = 3


def settings(folder: Path, api: BotApi, llm: OpenAIApi) -> dict[str, str]:
    return {
        "DATABASE_URL": f"sqlite:///{folder / 'bot.db'}",
        "TELEGRAM_BOT_TOKEN": api.token,
        "TELEGRAM_API_URL": api.url,
        "TELEGRAM_GUESTS": "on",
        "OPENAI_BASE_URL": llm.base_url,
        "OPENAI_MODEL": "gpt-5.5",
    }


def test_a_stub_stands_there_once_however_often_the_process_is_killed(tmp_path: Path) -> None:
    asked = []
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(BotApi.running())

        def model(body: dict) -> Reply:
            with api.condition:
                asked.append(body)
                api.condition.notify_all()
            return Reply(text="Four.", hang_after=0 if len(asked) <= KILLS else None)

        llm = stack.enter_context(OpenAIApi.running(model))
        with WarmBot(tmp_path, **settings(tmp_path, api, llm)) as bot:
            bot.start()
            api.wait_until(lambda: api.updates.allowed, what="it listens")
            query = api.guest_is_asked("two and two?", user=ADA)
            api.wait_until(lambda: query.shown == [STUB], what="the stub stands there")
            api.wait_until(lambda: is_kept(tmp_path / "bot.db"), what="its id is kept")
            for kill in range(1, KILLS + 1):
                api.wait_until(lambda kill=kill: len(asked) >= kill, what="the model is asked")
                assert bot.kill() == -9
                bot.start()
            api.wait_until(lambda: query.shown == [STUB, "Four."], what="the answer takes its place")
        assert len([call for call in api.answers("answerGuestQuery") if call.had_effect]) == 1


def test_a_stub_whose_id_was_lost_with_the_process_leaves_the_answer_to_whoever_asked(tmp_path: Path) -> None:
    with OpenAIApi.running(lambda _: Reply(text="Four.", delay=2)) as llm, BotApi.running() as api:
        api.add_private_chat(ADA)
        held = api.order(Hang(after_effect=True), "answerGuestQuery")
        with WarmBot(tmp_path, **settings(tmp_path, api, llm)) as bot:
            bot.start()
            api.wait_until(lambda: api.updates.allowed, what="it listens")
            query = api.guest_is_asked("two and two?", user=ADA)
            api.wait_until(lambda: query.shown == [STUB], what="the stub stands there")
            assert bot.kill() == -9
            held.gate.open()
            bot.start()
            late = f"{in_language('guests.late', 'en')}\n\nFour."
            api.wait_until(lambda: api.visible_texts(42) == [late], what="the answer comes to whoever asked")
            log = bot.log
        assert query.shown == [STUB], "nothing stands there twice"
        assert log.count("telegram.guest_too_late") <= 1
