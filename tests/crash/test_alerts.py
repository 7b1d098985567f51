"""An operator's chat is told once that questions fail, whatever is killed, and once that they are answered again."""

from collections.abc import Callable
from pathlib import Path

import pytest
from crash.served import WarmBot
from crash.watching import rows, settings
from standins.bot_api import BotApi, Person
from standins.openai_api import Failure, OpenAIApi, Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OPERATORS = -100123
BERTA = Person(42, first_name="Berta", language_code="de")
CHATS = range(1000, 1024)
_REVOKED = Failure(401, "Incorrect API key provided", code="invalid_api_key")


def test_replicas_that_are_killed_tell_it_once(postgres_url: str, tmp_path: Path) -> None:
    replies = [Reply(failure=_REVOKED)]
    with OpenAIApi.running(lambda _: replies[-1]) as llm, BotApi.running() as api:
        api.add_group(OPERATORS)
        wires = settings(llm, api, postgres_url) | {"ALERTS_TO": f"telegram:{OPERATORS}"}
        for name in ("one", "two"):
            (tmp_path / name).mkdir()

        def apologies() -> int:
            return sum(bool(api.visible_texts(chat)) for chat in CHATS)

        def until(condition: Callable[[], bool], what: str) -> None:
            api.wait_until(condition, timeout=120, what=what)

        with WarmBot(tmp_path / "one", **wires) as one, WarmBot(tmp_path / "two", **wires) as two:
            one.start()
            two.start()
            api.reach_webhooks_at(one.url)
            api.person_says("/help@stand_in_bot", chat_id=OPERATORS, user=BERTA)
            until(lambda: bool(api.visible_texts(OPERATORS)), "somebody has written there")
            for place, chat in enumerate(CHATS):
                api.reach_webhooks_at((one, two)[place % 2].url)
                api.person_says("hello", chat_id=chat)
                if place % 4 == 3:
                    until(lambda least=place // 2: apologies() >= least, "most are told that it failed")
                    killed = (one, two)[place // 4 % 2]
                    killed.kill()
                    killed.start()
                    api.reach_webhooks_at(killed.url)
            until(lambda: apologies() == len(CHATS), "all are told that it failed")
            until(lambda: api.visible_texts(OPERATORS)[-1].startswith("⚠️ Fehlgeschlagene Fragen"), "it is told")
            replies.append(Reply(text="answered"))
            api.person_says("and now?", chat_id=CHATS[0])
            until(lambda: api.visible_texts(OPERATORS)[-1][0] == "✅", "the operators are told that it is over")
            api.person_says("and you?", chat_id=CHATS[1])
            until(lambda: api.visible_texts(CHATS[1])[-1] == "answered", "the next one is answered")
    told = rows(
        postgres_url,
        "SELECT left(text, 1), count(*) FROM messages JOIN contexts ON contexts.id = context_id "
        f"WHERE context_keys::text LIKE '%{OPERATORS}%' AND text LIKE '%botservice turns%' GROUP BY 1 ORDER BY 2, 1",
    )
    assert sorted(tuple(row) for row in told) == sorted([("⚠", 1), ("✅", 1)])
