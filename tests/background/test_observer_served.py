"""A service that runs observes its chats, as the settings have it; and what it notes can be seen and deleted."""

import asyncio
import json

import pytest
from background.observing import say, tokens
from standins.openai_api import CHAT, OpenAIApi

from botservice import AgentContext, Storage
from botservice.app import running
from botservice.background.model_watch import used_models
from botservice.config.settings import Settings
from botservice.factories import build_observer, build_service
from botservice.llm.openai.http_client import OpenAIClients


def settings(**values):
    return Settings.load(None, **values)


def note_first(body):
    """Note the first message, where a model is given something to read."""
    asked = body["messages"][-1]["content"]
    if not asked.startswith("{"):
        return "Fine."
    (first, *_) = json.loads(asked)["messages"]
    note = {"text": " ".join(first["text"].split()[:4]), "messages": [first["id"]], "earlier": []}
    return json.dumps({"notes": [note], "facts": []})


@pytest.mark.parametrize("model", [None, "gpt-small"])
async def test_a_service_that_runs_notes_what_has_left_the_window_with_its_model_or_another(sqlite_url, model):
    async with Storage.open(sqlite_url) as storage:
        chat = await AgentContext.get_or_create(storage, {"transport": "terminal", "session_id": "1"})
        now = storage.now()
        await say(chat, "We go to Rome", *[tokens(1000)] * 6, at=now)
    with OpenAIApi.running(note_first) as api:
        chosen = settings(
            database_url=sqlite_url, openai_base_url=api.base_url, openai_model="gpt-large", observer_model=model
        )
        async with running(chosen, build_service(chosen), []) as application:
            chat = await AgentContext.load(application.storage, chat.id)
            async with asyncio.timeout(60):
                while not (found := await chat.notes()):  # noqa: ASYNC110 - only the database tells
                    await asyncio.sleep(0.05)
        assert [each.text for each in found] == ["We go to Rome"]
        (body,) = api.bodies(CHAT)
        assert body["model"] == (model or "gpt-large")
        assert body["response_format"]["json_schema"]["strict"] is True


@pytest.mark.parametrize("values", [{}, {"openai_base_url": "http://127.0.0.1:1/v1", "observe": "off"}])
async def test_nothing_observes_where_it_is_off_or_a_demo_answers(sqlite_storage, values):
    chosen = settings(**values)
    assert build_observer(chosen, build_service(chosen), sqlite_storage) is None


def test_a_wrong_word_for_it_is_named():
    with pytest.raises(Exception, match="OBSERVE must be on or off"):
        settings(observe="sometimes")


def test_its_model_is_among_those_that_are_watched():
    chosen = settings(openai_base_url="http://127.0.0.1:1/v1", openai_model="gpt-large", observer_model="gpt-small")
    own = OpenAIClients(chosen, base_url=None, api_key=None)
    watched = {each.name: each.setting for each in used_models(chosen, build_service(chosen), own)}
    assert watched == {"gpt-large": "OPENAI_MODEL", "gpt-small": "OBSERVER_MODEL"}
