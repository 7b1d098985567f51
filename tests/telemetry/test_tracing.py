"""Traces, as a receiver of OTLP on loopback gets them."""

import json
import logging
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from standins.bot_api import BotApi
from standins.bot_api.faults import server_error
from standins.clocks import fast_clock
from standins.otlp import Receiver, otlp_receiver
from standins.running import telegram_bot
from standins.tools import add

from botservice import (
    AgentContext,
    AgentService,
    ChatResponse,
    FunctionsBasedAgent,
    LLMError,
    ScriptedChatLLM,
    SettingsError,
    Storage,
    TokenUsage,
    Tool,
    ToolCall,
    tool,
)
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.telemetry.exporting import asked_exporter, tracing
from botservice.telemetry.logs import configure_logging, register_secret

SECRET_WORD = "heliotrope-4711"


@tool
def fail() -> str:
    """Fail."""
    raise ValueError("nothing works")


class Scripted(ScriptedChatLLM):
    """A model that has an address."""

    base_url = "https://somebody:hidden@models.example:8443/v1"


def calling(name: str, **arguments: Any) -> ChatResponse:
    usage = TokenUsage(100, 7, 40, 3)
    return ChatResponse(tool_calls=(ToolCall("call_1", name, arguments),), usage=usage, finish_reason="tool_calls")


USED = TokenUsage(120, 9)
ANSWER = ChatResponse(f"it is {SECRET_WORD}", usage=USED, model="gpt-6.1-terra-2026", finish_reason="stop")


def service_with(storage: Storage, *responses: ChatResponse | Exception, tools: Sequence[Tool] = ()) -> AgentService:
    llm = Scripted(responses, model="gpt-6.1-terra")
    return AgentService(FunctionsBasedAgent(tools=[add, fail, *tools], llm=llm), storage)


@pytest.fixture
def otlp(monkeypatch: pytest.MonkeyPatch) -> Any:
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)  # its exporter reads the process's own
        yield receiver


@pytest.mark.any_database
async def test_a_turn_is_one_trace_with_its_calls_of_models_and_its_tools(storage: Storage, otlp: Receiver) -> None:
    service = service_with(storage, calling("add", a=1, b=2), ANSWER)
    context = await AgentContext.get_or_create(storage, {"id": "42"})
    async with tracing("1.2.3"):
        await service.prompt(context, "what is one and two?")
    assert sorted(each.name for each in otlp.spans) == [
        "chat gpt-6.1-terra",
        "chat gpt-6.1-terra",
        "execute_tool add",
        "invoke_agent agent",
    ]
    (root,) = otlp.named("invoke_agent agent")
    assert root.parent == ""
    assert {each.trace for each in otlp.spans} == {root.trace}
    assert {each.parent for each in otlp.spans if each is not root} == {root.id}
    assert root.facts["botservice.outcome"] == "answered"
    assert root.facts["gen_ai.conversation.id"] == str(context.id)
    assert root.service["service.name"] == "botservice"
    assert root.service["service.version"] == "1.2.3"
    assert all(root.began <= each.began <= each.ended <= root.ended for each in otlp.spans)


@pytest.mark.any_database
async def test_a_call_of_a_model_says_what_the_conventions_name(storage: Storage, otlp: Receiver) -> None:
    service = service_with(storage, calling("add", a=1, b=2), ANSWER)
    context = await AgentContext.get_or_create(storage, {"id": "42"})
    async with tracing("1"):
        await service.prompt(context, "what is one and two?")
    first, second = otlp.named("chat gpt-6.1-terra")
    assert (
        first.facts.items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-6.1-terra",
            "server.address": "models.example",
            "server.port": 8443,
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 7,
            "gen_ai.usage.cache_read.input_tokens": 40,
            "gen_ai.usage.reasoning.output_tokens": 3,
        }.items()
    )
    assert first.facts["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert second.facts["gen_ai.response.model"] == "gpt-6.1-terra-2026"
    assert second.facts["gen_ai.response.time_to_first_chunk"] >= 0


@pytest.mark.any_database
async def test_no_word_that_was_said_is_in_a_trace(storage: Storage, otlp: Receiver) -> None:
    service = service_with(storage, calling("add", a=1, b=2), ANSWER)
    context = await AgentContext.get_or_create(storage, {"id": "42"})
    async with tracing("1"):
        await service.prompt(context, f"remember {SECRET_WORD}")
    assert otlp.spans
    assert SECRET_WORD not in repr(otlp.spans)
    assert "hidden" not in repr(otlp.spans)


@pytest.mark.any_database
async def test_contents_go_along_where_they_are_asked_for_and_secrets_never(
    storage: Storage, otlp: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    register_secret("sk-very-hidden-key")
    service = service_with(storage, calling("add", a=1, b=2), ANSWER)
    context = await AgentContext.get_or_create(storage, {"id": "42"})
    async with tracing("1"):
        await service.prompt(context, "my key is sk-very-hidden-key")
    first, second = otlp.named("chat gpt-6.1-terra")
    asked = json.loads(first.facts["gen_ai.input.messages"])
    assert asked[-1]["role"] == "user"
    assert asked[-1]["parts"][0]["content"].endswith("my key is [secret]")
    (answer,) = json.loads(second.facts["gen_ai.output.messages"])
    assert answer["parts"] == [{"type": "text", "content": f"it is {SECRET_WORD}"}]
    (run,) = otlp.named("execute_tool add")
    assert json.loads(run.facts["gen_ai.tool.call.arguments"]) == {"a": 1, "b": 2}
    assert json.loads(run.facts["gen_ai.tool.call.result"]) == "3"


async def test_a_turn_that_another_process_goes_on_with_stays_one_trace(storage_url: str, otlp: Receiver) -> None:
    async with Storage.open(storage_url, migrate=True) as storage:
        service = service_with(storage, calling("add", a=1, b=2))
        context = await AgentContext.get_or_create(storage, {"id": "42"})
        async with tracing("1"):
            run = await service.start(context, "what is one and two?")
            await run.step()
            await run.close()
    assert not otlp.named("invoke_agent agent"), "its root is sent when it has ended"
    async with Storage.open(storage_url) as storage:
        service = service_with(storage, ANSWER)
        context = await AgentContext.get_or_create(storage, {"id": "42"})
        async with tracing("1"):
            resumed = await service.resume(context)
            assert resumed is not None
            await resumed.finish()
    (root,) = otlp.named("invoke_agent agent")
    assert len(otlp.spans) == 4
    assert {each.trace for each in otlp.spans} == {root.trace}


async def test_turns_of_the_same_number_in_two_databases_are_two_traces(
    sqlite_url: str, tmp_path: Any, otlp: Receiver
) -> None:
    for url in (sqlite_url, f"sqlite:///{tmp_path}/other.db"):
        async with Storage.open(url, migrate=True) as storage:
            context = await AgentContext.get_or_create(storage, {"id": "42"})
            async with tracing("1"):
                await service_with(storage, ANSWER).prompt(context, "hello")
    first, second = otlp.named("invoke_agent agent")
    assert first.facts["botservice.turn.id"] == second.facts["botservice.turn.id"]
    assert first.trace != second.trace


async def test_a_failed_turn_and_its_failed_call_are_marked(sqlite_storage: Storage, otlp: Receiver) -> None:
    service = service_with(sqlite_storage, LLMError("no such model", is_transient=False))
    context = await AgentContext.get_or_create(sqlite_storage, {"id": "42"})
    with pytest.raises(LLMError):
        async with tracing("1"):
            await service.prompt(context, "hello")
    (call,), (root,) = otlp.named("chat gpt-6.1-terra"), otlp.named("invoke_agent agent")
    assert (call.is_failed, call.facts["error.type"]) == (True, "LLMError")
    assert (root.is_failed, root.facts["botservice.outcome"]) == (True, "failed")


async def test_a_tool_that_fails_is_marked_and_one_that_nobody_has_gets_no_name_of_its_own(
    sqlite_storage: Storage, otlp: Receiver
) -> None:
    service = service_with(sqlite_storage, calling("fail"), calling("made_up_by_a_model"), ANSWER)
    context = await AgentContext.get_or_create(sqlite_storage, {"id": "42"})
    async with tracing("1"):
        await service.prompt(context, "hello")
    (failed,), (unknown,) = otlp.named("execute_tool fail"), otlp.named("execute_tool unknown")
    assert (failed.is_failed, failed.facts["error.type"]) == (True, "ValueError")
    assert unknown.is_failed
    assert "made_up_by_a_model" not in repr(otlp.spans)


async def test_a_log_line_carries_the_ids_of_its_trace(
    sqlite_storage: Storage, otlp: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    @tool
    def note() -> str:
        """Note something."""
        logging.getLogger("tools.note").warning("noted")
        return "done"

    configure_logging(level="INFO", style="json")
    service = service_with(sqlite_storage, calling("note"), ANSWER, tools=[note])
    context = await AgentContext.get_or_create(sqlite_storage, {"id": "42"})
    async with tracing("1"):
        await service.prompt(context, "hello")
    line = next(json.loads(each) for each in capsys.readouterr().err.splitlines() if '"noted"' in each)
    (run,) = otlp.named("execute_tool note")
    assert (line["trace"], line["span"]) == (run.trace, run.id)
    assert line["turn"] == run.facts["botservice.turn.id"]


async def test_a_share_of_the_traces_is_kept_whole_or_not_at_all(
    sqlite_storage: Storage, otlp: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    context = await AgentContext.get_or_create(sqlite_storage, {"id": "42"})
    async with tracing("1"):
        for _ in range(40):
            await service_with(sqlite_storage, ANSWER).prompt(context, "hello")
    roots = {each.trace for each in otlp.named("invoke_agent agent")}
    calls = {each.trace for each in otlp.named("chat gpt-6.1-terra")}
    assert roots == calls
    assert 0 < len(roots) < 40


@pytest.mark.parametrize(
    ("environ", "exporter"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, "otlp"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, "otlp"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "console"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, None),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, None),
        ({"OTEL_SERVICE_NAME": "mine"}, None),
    ],
)
def test_tracing_is_on_where_the_standard_variables_say_so(environ: dict[str, str], exporter: str | None) -> None:
    assert asked_exporter(environ) == exporter


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "no exporter called zipkin is installed"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "pip install opentelemetry-exporter-otlp-proto-grpc",
        ),
    ],
)
async def test_an_exporter_that_is_not_there_is_named_with_the_remedy(environ: dict[str, str], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        async with tracing("1", environ):
            raise AssertionError("it began all the same")


async def test_answers_come_while_nobody_receives_traces(
    sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    context = await AgentContext.get_or_create(sqlite_storage, {"id": "42"})
    async with tracing("1"):
        answer = await service_with(sqlite_storage, ANSWER).prompt(context, "hello")
    assert answer.text == ANSWER.text


EXPORTER = """
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

class Failing(SpanExporter):
    def export(self, spans):
        return SpanExportResult.SUCCESS

    def shutdown(self):
        raise OSError("its file is gone")
"""


async def test_an_exporter_that_fails_at_the_end_fails_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "failing_exporter.py").write_text(EXPORTER)
    package = tmp_path / "failing_exporter-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: failing-exporter\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[opentelemetry_traces_exporter]\nfailing = failing_exporter:Failing\n")
    monkeypatch.syspath_prepend(tmp_path)
    async with tracing("1", {"OTEL_TRACES_EXPORTER": "failing"}):
        pass
    assert "tracing.not_ended" in caplog.messages


async def test_a_process_ends_while_whoever_receives_traces_never_answers(
    sqlite_storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{mute.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100000")
        context = await AgentContext.get_or_create(sqlite_storage, {"id": "42"})
        async with tracing("1"):
            await service_with(sqlite_storage, ANSWER).prompt(context, "hello")


@pytest.mark.any_database
async def test_what_goes_out_is_a_part_of_its_turn(storage: Storage, otlp: Receiver) -> None:
    with BotApi.running() as api:
        api.add_private_chat(42)
        async with tracing("1"), telegram_bot(api, storage):
            api.person_says("hello", chat_id=42)
            await api.until(lambda: api.visible_texts(42))
    (sent,), (root,) = otlp.named("send telegram"), otlp.named("invoke_agent agent")
    assert (sent.trace, sent.parent) == (root.trace, root.id)
    assert sent.facts["botservice.delivery.attempt"] == 1


@pytest.mark.any_database
async def test_what_is_sent_again_later_is_a_part_of_its_turn_too(storage: Storage, otlp: Receiver) -> None:
    with BotApi.running() as api:
        api.add_private_chat(42)
        api.order(server_error(), "sendMessage")
        async with tracing("1"), telegram_bot(api, storage, clock=fast_clock()):
            api.person_says("hello", chat_id=42)
            await api.until(lambda: api.visible_texts(42))
    (root,) = otlp.named("invoke_agent agent")
    attempts = [each.facts["botservice.delivery.attempt"] for each in otlp.named("send telegram")]
    assert attempts == [1, 2]
    assert {(each.trace, each.parent) for each in otlp.named("send telegram")} == {(root.trace, root.id)}


async def test_turns_without_an_agent_are_told_with_their_outcome(sqlite_storage: Storage, otlp: Receiver) -> None:
    with BotApi.running() as api:
        api.add_private_chat(42)
        async with tracing("1"), telegram_bot(api, sqlite_storage, access=Access(AccessMode.ALLOW)):
            api.person_says("hello", chat_id=42)
            await api.until(lambda: api.visible_texts(42))
    (root,) = otlp.named("invoke_agent agent")
    assert root.facts["botservice.outcome"] == "refused"
