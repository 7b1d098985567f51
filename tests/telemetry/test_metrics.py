"""What a process counts, and who may read it."""

import contextlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from standins.tools import add
from starlette.applications import Starlette

from botservice import (
    AgentContext,
    AgentService,
    ChatResponse,
    FunctionsBasedAgent,
    LLMError,
    ScriptedChatLLM,
    Storage,
    TokenUsage,
    ToolCall,
)
from botservice.app import running
from botservice.config.settings import Settings
from botservice.factories import build_service
from botservice.people.budgets import Budgets
from botservice.server.serving import metrics_of
from botservice.server.web_app import build_web_app
from botservice.telemetry.instrumentation import sending_to
from botservice.telemetry.metrics import Metrics
from botservice.transport_plugins import build_transports

ALARMS = Path(__file__).parents[2] / "docs" / "prometheus-alerts.yml"
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"
TOKEN = "a-token-of-twenty-four-letters"


def read(metrics: Metrics) -> dict[str, float]:
    """Return what was counted, by name and labels."""
    return {
        f"{sample.name}{dict(sorted(sample.labels.items())) or ''}": sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


async def count_turn(
    storage: Storage, *responses: ChatResponse | Exception, budgets: Budgets | None = None
) -> dict[str, float]:
    metrics = Metrics("1.2.3")
    llm = ScriptedChatLLM(responses, model="gpt-6.1-terra")
    service = AgentService(FunctionsBasedAgent(tools=[add], llm=llm), storage)
    service.options = replace(service.options, budgets=budgets or Budgets())
    context = await AgentContext.get_or_create(storage, {"id": "42"})
    with sending_to(metrics), contextlib.suppress(LLMError):
        await service.prompt(context, "what is one and two?")
    return read(metrics)


async def test_a_turn_its_calls_its_tools_and_its_tokens_are_counted(storage: Storage) -> None:
    calling = ChatResponse(
        tool_calls=(ToolCall("c", "add", {"a": 1, "b": 2}),), usage=TokenUsage(100, 7, cached_tokens=40)
    )
    counted = await count_turn(storage, calling, ChatResponse("three", usage=TokenUsage(120, 9)))
    assert counted["botservice_turns_total{'outcome': 'answered', 'transport': 'api'}"] == 1
    assert counted["botservice_turn_duration_seconds_count{'transport': 'api'}"] == 1
    labels = "{'botservice_purpose': 'answer', 'error_type': '', 'gen_ai_request_model': 'gpt-6.1-terra'}"
    assert counted[f"gen_ai_client_operation_duration_seconds_count{labels}"] == 2
    first = "gen_ai_client_operation_time_to_first_chunk_seconds_count{'gen_ai_request_model': 'gpt-6.1-terra'}"
    assert counted[first] == 1, "only the answer has a text"
    assert counted["botservice_tool_duration_seconds_count{'error_type': '', 'tool': 'add'}"] == 1
    assert counted["botservice_model_tokens_total{'kind': 'input', 'model': 'gpt-6.1-terra'}"] == 220
    assert counted["botservice_model_tokens_total{'kind': 'cached', 'model': 'gpt-6.1-terra'}"] == 40
    assert counted["botservice_model_tokens_total{'kind': 'output', 'model': 'gpt-6.1-terra'}"] == 16
    assert counted["botservice_info{'version': '1.2.3'}"] == 1


async def test_what_a_call_costs_is_counted_once_it_is_stored(sqlite_storage: Storage) -> None:
    budgets = Budgets.of(Settings(_env_file=None, prices="gpt-6.1-terra=2/8"))
    answer = ChatResponse("hello", usage=TokenUsage(1_000_000, 500_000))
    counted = await count_turn(sqlite_storage, answer, budgets=budgets)
    assert counted["botservice_model_cost_total{'model': 'gpt-6.1-terra'}"] == pytest.approx(6.0)


async def test_failures_are_counted_by_their_kind(sqlite_storage: Storage) -> None:
    counted = await count_turn(sqlite_storage, LLMError("gone", is_transient=False))
    assert counted["botservice_turns_total{'outcome': 'failed', 'transport': 'api'}"] == 1
    labels = "{'botservice_purpose': 'answer', 'error_type': 'LLMError', 'gen_ai_request_model': 'gpt-6.1-terra'}"
    assert counted[f"gen_ai_client_operation_duration_seconds_count{labels}"] == 1


async def test_names_that_a_model_makes_up_do_not_become_labels(sqlite_storage: Storage) -> None:
    calling = [ChatResponse(tool_calls=(ToolCall(f"c{i}", f"made_up_{i}", {}),)) for i in range(5)]
    counted = await count_turn(sqlite_storage, *calling, ChatResponse("enough"))
    assert counted["botservice_tool_duration_seconds_count{'error_type': 'ToolError', 'tool': 'unknown'}"] == 5
    assert "made_up" not in repr(counted)


def client_of(app: Starlette, address: str = "127.0.0.1") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 1))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", verify=False)


async def ask(path: str, *, address: str = "127.0.0.1", headers: Any = None, **settings: Any) -> httpx.Response:
    """Return what a served bot answers a person at an address."""
    chosen = Settings(_env_file=None, openai_api_key=None, openai_base_url=None, **settings)
    async with running(chosen, build_service(chosen), build_transports(chosen)) as application:
        app = build_web_app(application, Metrics("1"))
        async with client_of(app, address) as http:
            return await http.get(path, headers=headers or {})


async def test_without_a_token_this_machine_alone_reads_them(storage_url: str) -> None:
    answer = await ask("/metrics", database_url=storage_url)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    waiting = [line for line in answer.text.splitlines() if line.startswith("botservice_waiting{")]
    assert sorted(waiting) == [
        f'botservice_waiting{{kind="{kind}"}} 0.0'
        for kind in ("deliveries", "oldest_queued_seconds", "turns_queued", "turns_running")
    ]


async def test_every_series_that_an_alarm_or_the_dashboard_names_is_there_from_the_start(sqlite_url: str) -> None:
    chosen = Settings(
        _env_file=None, database_url=sqlite_url, openai_base_url="http://127.0.0.1:9/v1", openai_model="llama"
    )
    service, transports = build_service(chosen), build_transports(chosen)
    async with running(chosen, service, transports) as application:
        app = build_web_app(application, metrics_of(service, transports))
        async with client_of(app) as http:
            page = (await http.get("/metrics")).text
    samples = [each for family in text_string_to_metric_families(page) for each in family.samples]
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    asked += [rule["expr"] for rule in yaml.safe_load(ALARMS.read_text())["groups"][0]["rules"]]
    named = {
        (name, *label)
        for name, labels in re.findall(r"(\w+)\{([^}]*)\}", "\n".join(asked))
        for label in re.findall(r'(\w+)="([^"]+)"', labels)
    }
    assert len(named) >= 4
    assert named <= {(each.name, *label) for each in samples for label in each.labels.items()}
    assert {each.value for each in samples if each.name == "botservice_turns_total"} == {0}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Debian's package prometheus, is not here")
def test_the_alarms_go_off_when_they_should(tmp_path: Path) -> None:
    failed = 'botservice_turns_total{job="bot",outcome="failed",transport="telegram"}'
    waiting = 'botservice_waiting{job="bot",kind="oldest_queued_seconds"}'
    series = [{"series": failed, "values": "0 0 1 1 1"}, {"series": waiting, "values": "0 10 90 90 90"}]
    checked = [
        {"eval_time": time, "alertname": name, "exp_alerts": [{"exp_labels": {"job": "bot"}}] if is_on else []}
        for name, time, is_on in [
            ("BotserviceTurnFailed", "1m", False),
            ("BotserviceTurnFailed", "2m", True),
            ("BotserviceQuestionsWait", "2m", False),
            ("BotserviceQuestionsWait", "3m", True),
        ]
    ]
    found = yaml.safe_load(ALARMS.read_text())["groups"][0]["rules"]
    for check in checked:
        for alert in check["exp_alerts"]:
            rule = next(each for each in found if each["alert"] == check["alertname"])
            alert["exp_annotations"] = rule["annotations"]
    plan = {
        "rule_files": [str(ALARMS)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "alert_rule_test": checked}],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(plan))
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def test_what_was_counted_is_shown_while_the_database_does_not_answer(sqlite_url: str) -> None:
    chosen = Settings(_env_file=None, openai_api_key=None, openai_base_url=None, database_url=sqlite_url)
    async with running(chosen, build_service(chosen), build_transports(chosen)) as application:
        app = build_web_app(application, Metrics("1"))
        async with client_of(app) as http:
            assert "botservice_waiting{" in (await http.get("/metrics")).text
    async with client_of(app) as http:
        answer = await http.get("/metrics")
    assert answer.status_code == 200
    assert "botservice_info{" in answer.text
    assert "botservice_waiting{" not in answer.text


@pytest.mark.parametrize(
    ("settings", "address", "headers", "status"),
    [
        ({}, "203.0.113.9", {}, 401),
        ({}, "127.0.0.1", {"x-forwarded-for": "203.0.113.9"}, 401),
        ({}, "127.0.0.1", {"host": "rebound.example"}, 401),
        ({"host": "0.0.0.0"}, "127.0.0.1", {}, 404),
        ({"public_url": "https://bot.example"}, "127.0.0.1", {}, 404),
        ({"metrics_token": TOKEN}, "127.0.0.1", {}, 401),
        ({"metrics_token": TOKEN}, "127.0.0.1", {"authorization": "Bearer wrong"}, 401),
        ({"metrics_token": TOKEN}, "127.0.0.1", {"authorization": f"Basic {TOKEN}"}, 401),
        ({"metrics_token": TOKEN}, "203.0.113.9", {"authorization": f"Bearer {TOKEN}"}, 200),
        (
            {"metrics_token": TOKEN, "admin_token": "another-token-of-the-owner"},
            "127.0.0.1",
            {"authorization": "Bearer another-token-of-the-owner"},
            401,
        ),
    ],
)
async def test_others_need_the_token(
    sqlite_url: str, settings: dict[str, str], address: str, headers: dict[str, str], status: int
) -> None:
    answer = await ask("/metrics", address=address, headers=headers, database_url=sqlite_url, **settings)
    assert answer.status_code == status
    assert ("botservice_info" in answer.text) == (status == 200)


async def test_wrong_tokens_are_made_to_wait_as_those_of_the_pages_are(sqlite_url: str) -> None:
    chosen = Settings(_env_file=None, openai_api_key=None, openai_base_url=None, database_url=sqlite_url)
    chosen = chosen.model_copy(update={"metrics_token": SecretStr(TOKEN)})
    async with running(chosen, build_service(chosen), build_transports(chosen)) as application:
        app = build_web_app(application, Metrics("1"))
        async with client_of(app, "203.0.113.9") as http:
            wrong = [await http.get("/metrics", headers={"authorization": f"Bearer {n}"}) for n in range(6)]
            right = await http.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        async with client_of(app, "203.0.113.10") as http:
            elsewhere = await http.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert [each.status_code for each in wrong] == [401] * 5 + [429]
    assert right.status_code == 429
    assert int(right.headers["retry-after"]) > 0
    assert elsewhere.status_code == 200


def test_the_dashboard_and_the_alarms_ask_for_what_is_counted() -> None:
    shown = set(re.findall(r"\b(?:botservice|gen_ai)_[a-z_]+", DASHBOARD.read_text() + ALARMS.read_text()))
    metrics = Metrics("1")
    metrics.set_waiting({"deliveries": 0})
    known = {
        name
        for family in text_string_to_metric_families(metrics.render().decode())
        for name in (
            family.name,
            f"{family.name}_total",
            *(f"{family.name}_{end}" for end in ("bucket", "sum", "count")),
        )
    }
    labels = {"gen_ai_request_model", "botservice_purpose"}
    assert shown - labels <= known
    assert len(json.loads(DASHBOARD.read_text())["panels"]) >= 8
