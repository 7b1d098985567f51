"""Events of other programs, each sent five times, to bots that are killed: each is said once, and each is answered."""

import json
import threading
from collections import Counter
from pathlib import Path

import httpx
import pytest
from crash.served import WarmBot
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from standins.bot_api import BotApi, LoseAnswer
from standins.openai_api import OpenAIApi

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SECRET = "a-secret-of-a-sender"
SAID, ASKED = 1000, 2000
EVENTS = 24
KILLS = 5
TIMES = 5


def write_hooks(folder: Path) -> None:
    common = {"from": "bearer", "secret": SECRET, "per_minute": 100_000}
    say = {**common, "to": f"telegram:{SAID}", "do": "say", "template": "event {{ payload.number }}"}
    ask = {**common, "to": f"telegram:{ASKED}", "do": "ask", "task": "Say its number."}
    (folder / "hooks.json").write_text(json.dumps({"hooks": {"say": say, "ask": ask}}))


def answer(body):
    """Answer a question about one event, or about several that share a turn, with their numbers."""
    said = [each for each in body["messages"] if each["role"] in ("user", "assistant")]
    answered = max((at for at, each in enumerate(said) if each["role"] == "assistant"), default=-1)
    asked = "\n".join(str(each["content"]) for each in said[answered + 1 :])  # several events share a turn after a kill
    numbers = [part.partition("\n")[0].rstrip("}]") for part in asked.split('"number": ')[1:]]
    return "numbers " + " ".join(each.strip() for each in numbers)


class Sender:
    """Sends each event until it is acknowledged, and then again, as a sender does that lost the answer."""

    def __init__(self, urls) -> None:
        self.urls = urls
        self.ids: dict[tuple[str, int], set[int]] = {}
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        with httpx.Client(timeout=10) as client:
            for number in range(EVENTS):
                for hook in ("say", "ask"):
                    for _ in range(TIMES):
                        self._send(client, hook, number)

    def _send(self, client: httpx.Client, hook: str, number: int) -> None:
        headers = {"authorization": f"Bearer {SECRET}", "idempotency-key": f"{hook}-{number}"}
        tried = 0
        while True:
            url = self.urls[tried % len(self.urls)]()
            tried += 1
            try:
                told = client.post(f"{url}/hooks/{hook}", json={"number": number}, headers=headers)
            except httpx.HTTPError:
                continue
            if told.status_code == 202:
                self.ids.setdefault((hook, number), set()).add(told.json()["event_id"])
                return
            assert told.status_code == 503, told.text


def read(url: str, query: str):
    address = make_url(url) if url.startswith("sqlite") else make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(address, poolclass=NullPool)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(query)).all()]
    engine.dispose()
    return found


@pytest.mark.parametrize("replicas", [1, 2])
def test_kills_lose_no_event_and_repeat_none(storage_url: str, tmp_path: Path, replicas: int) -> None:
    if replicas > 1 and storage_url.startswith("sqlite"):
        pytest.skip("one process works on an SQLite file")
    folders = [tmp_path / str(number) for number in range(replicas)]
    for folder in folders:
        folder.mkdir()
        write_hooks(folder)
    with BotApi.running() as api, OpenAIApi.running(answer) as llm:
        for chat in (SAID, ASKED):
            api.add_private_chat(chat)
        api.order(LoseAnswer(), "sendMessage", times=2)
        settings = {
            "DATABASE_URL": storage_url,
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_MODEL": "gpt-5.5",
        }
        with WarmBot(folders[0], **settings) as bot, WarmBot(folders[-1], **settings) as other:
            bots = [bot, other][:replicas]
            for each in bots:
                each.start()
            for chat in (SAID, ASKED):
                api.person_says("hello", chat_id=chat)
            api.wait_until(lambda: all(api.visible_texts(chat) for chat in (SAID, ASKED)), timeout=60, what="they met")
            with Sender([lambda each=each: each.url for each in bots]) as sender:
                for kill in range(KILLS):
                    wanted = (kill + 1) * EVENTS * 2 // (KILLS + 1)
                    api.wait_until(lambda wanted=wanted: len(sender.ids) >= wanted, timeout=120, what="events came")
                    victim = bots[kill % len(bots)]
                    victim.kill()
                    victim.start()
            api.wait_until(
                lambda: len(set(api.visible_texts(SAID))) == EVENTS + 1 and len(set(numbers_in(api))) >= EVENTS,
                timeout=120,
                what="all is said",
            )
        said = Counter(each for each in api.visible_texts(SAID) if each.startswith("event "))
        answered = Counter(numbers_in(api))
    assert all(len(ids) == 1 for ids in sender.ids.values()), "the same event is the same id"
    assert set(said) == {f"event {number}" for number in range(EVENTS)}
    assert set(answered) == set(map(str, range(EVENTS)))
    repeats = sum(said.values()) + sum(answered.values()) - 2 * EVENTS
    assert repeats <= 2 + KILLS * 8, "only what was on its way at a kill, or whose answer was lost, comes again"
    first = [each for each in dict.fromkeys(api.visible_texts(SAID)) if each.startswith("event ")]
    assert first == [f"event {number}" for number in range(EVENTS)], "in the order in which they came"
    stored = read(storage_url, "SELECT text, count(*) FROM messages WHERE role = 'assistant' GROUP BY text")
    assert {count for told, count in stored if told.startswith("event ")} == {1}
    questions = read(
        storage_url, "SELECT count(*) FROM messages WHERE role = 'user' AND text LIKE '%event of the hook%'"
    )
    assert questions == [(EVENTS,)]


def numbers_in(api: BotApi) -> list[str]:
    """Return the numbers of the events that were answered, in the order in which that was shown."""
    told = (each for each in api.visible_texts(ASKED) if each.startswith("numbers"))
    return [number for each in told for number in each.split()[1:]]
