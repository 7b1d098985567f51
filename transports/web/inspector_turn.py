"""The page of a turn: its timeline, its steps with their prompts, its deliveries, and what can be done about it."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from botservice.agent.agent import Agent
from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import listed
from botservice.conversation.replay import visible
from botservice.conversation.step_records import read_steps
from botservice.conversation.steps import TaskStep
from botservice.core.states import OPEN, UNFINISHED, Outcome, TurnStatus
from botservice.core.threads import run_in_thread
from botservice.devtools.queries import TurnDetails, read_details, read_said
from botservice.llm.chat import ChatLLM
from botservice.storage.database import Connection
from botservice.telemetry.logs import redact
from botservice.turns.call_queries import find_of_turn
from botservice.turns.listening_queries import GateDecision
from botservice.turns.waiting_calls import WaitingCall, person_wait_within, work_seconds
from transports.web.inspector_prompt import Picture, PromptPainter
from transports.web.inspector_site import NO_TURN, NOT_THERE, InspectorSite, show_count, show_seconds
from transports.web.inspector_spans import Scale, number_targets
from transports.web.inspector_steps import show_steps, show_text
from transports.web.inspector_timeline import draw_timeline
from transports.web.inspector_turn_lines import (
    ChatTitle,
    count_failed_calls,
    read_questions,
    read_titles,
    sent_texts,
    show_excerpt,
    show_waiting,
    state_of,
)
from transports.web.pages import HEADERS
from transports.web.requests import path_number

_UNASKED: Final = {
    GateDecision.YES: "the gate said yes",
    GateDecision.NO: "the gate said no",
    GateDecision.UNCLEAR: "the gate said neither yes nor no",
    GateDecision.FAILED: "the gate did not answer",
    GateDecision.OVER_BUDGET: "no budget was left for the gate",
    GateDecision.LIMIT: "the limit of the hour or of the minute was reached",
    GateDecision.SILENCED: "the gate said yes; meanwhile somebody spoke, silenced the bot or lost access",
    GateDecision.DECLINED: "the gate said yes, and the agent had nothing to say",
}
_WIDTH: Final = 1_000  # of a bar's picture, in its own units
_NARROWEST: Final = 6
_ELSEWHERE: Final = "https://api.openai.com/v1"
_DELETED: Final = ("", None, "deleted since")

Hit = tuple[float, str, datetime | None, str]
"""A message that searching found: its score, its author, when it was said, and its beginning."""


class TurnPage:
    """The endpoints of one turn."""

    def __init__(self, site: InspectorSite) -> None:
        self._site = site

    async def show(self, request: Request) -> Response:
        """Answer with the replay of a turn."""
        context_id, turn_id = path_number(request, "context"), path_number(request, "turn")
        details, title, waiting, question = await self._site.storage.read(
            lambda connection: _read_turn(connection, context_id, turn_id), is_long=True
        )
        turn, made = details.row, details.steps
        pictures = await run_in_thread(lambda: self._paint(made, details.before), name="counting")
        hits = await self._read_hits(context_id, pictures)
        answer = None if details.answer is None else show_text(details.answer)
        costs = [self._cost(step) for step in made]
        root, told = number_targets(draw_timeline(details, made, waiting, costs))
        scale = Scale(root, _WIDTH)
        tasks = [step.task for step in made if isinstance(step, TaskStep)]
        blocks = show_steps(made, [_took(step, waiting) for step in made])
        is_open = turn.status in UNFINISHED
        return self._site.show(
            request,
            "inspect_turn.html",
            context_id=context_id,
            title=title,
            turn=turn,
            error=None if turn.error is None else show_text(turn.error),
            is_open=is_open,
            is_retriable=turn.status in (*OPEN, TurnStatus.SET_ASIDE),
            is_command=turn.outcome == Outcome.ANSWERED and not made and details.answer is None,
            state=state_of(turn, waiting),
            failed_calls=count_failed_calls(made),
            seconds=work_seconds(turn, waiting),
            waited=root.waited,
            ratings=details.ratings,
            figures=_figures(details, self._site),
            timeline=scale.draw(root, _NARROWEST),
            is_shrunk=scale.is_shrunk,
            told=told,
            steps=list(zip(blocks, pictures, hits, map(_attempts, made), map(self._site.money, costs), strict=True)),
            waiting=show_waiting(waiting, made),
            question=question if tasks == [] else show_text(tasks[0]),
            answer=answer,
            notices=list(map(show_text, sent_texts(details.deliveries))) if not made else [],
            deliveries=[_show_delivery(row) for row in details.deliveries],
            show_seconds=show_seconds,
            show_count=show_count,
            money=self._site.money,
            currency=self._site.budgets.currency,
        )

    async def show_request(self, request: Request) -> Response:
        """Answer with a step's request, as JSON or as a command for a shell."""
        context_id, turn_id = path_number(request, "context"), path_number(request, "turn")
        place, form = path_number(request, "step"), request.path_params["form"]
        steps = await self._site.storage.read(lambda connection: _list_steps(connection, context_id, turn_id))
        if form not in ("json", "curl") or place >= len(steps) or not steps[place].get_value("model_input_messages"):
            raise HTTPException(404, NOT_THERE)
        service = self._site.service
        made = await make_request(None if service is None else service.agent, steps[place], _offered(steps, place))
        if form == "json":
            return Response(write_json(made), media_type="application/json", headers=HEADERS)
        return PlainTextResponse(write_curl(made), headers=HEADERS)

    def _paint(self, steps: Sequence[MemoryItem], before: MemoryItem | None) -> list[Picture | None]:
        painter, pictures = PromptPainter(self._site.budgets), list[Picture | None]()
        for step in steps:
            pictures.append(painter.paint(step, before))
            before = before if pictures[-1] is None else step
        return pictures

    async def _read_hits(self, context_id: int, pictures: Iterable[Picture | None]) -> list[list[Hit]]:
        """Return what searching found for each prompt."""
        found = [() if picture is None else picture.hits for picture in pictures]
        ids = {message_id for hits in found for message_id, _ in hits}
        said = await self._site.storage.read(lambda connection: read_said(connection, context_id, ids)) if ids else {}
        return [[_show_hit(score, *said.get(message_id, _DELETED)) for message_id, score in hits] for hits in found]

    def _cost(self, step: MemoryItem) -> int:
        """Return what a step cost, in billionths of the currency."""
        usage, model = step.get_value("token_usage"), step.get_value("model")
        return self._site.budgets.price(model, usage).cost if usage is not None and isinstance(model, str) else 0


def _list_steps(connection: Connection, context_id: int, turn_id: int) -> list[MemoryItem]:
    return [each.item for each in read_steps(connection, context_id, turn_ids=[turn_id])]


def _read_turn(
    connection: Connection, context_id: int, turn_id: int
) -> tuple[TurnDetails, ChatTitle, list[WaitingCall], str]:
    details = read_details(connection, context_id, turn_id)
    title = read_titles(connection, [context_id]).get(context_id)
    if details is None or title is None:
        raise HTTPException(404, NO_TURN)
    question = read_questions(connection, [turn_id]).get(turn_id, "")
    return details, title, find_of_turn(connection, turn_id), question


def _took(step: MemoryItem, waiting: Sequence[WaitingCall]) -> float | None:
    """Return for how long a step was at work: without the time in which a person had to decide."""
    timing = step.get_value("timing")
    if not isinstance(timing, Timing) or timing.end_time is None or timing.duration_seconds is None:
        return None
    return max(0.0, timing.duration_seconds - person_wait_within(waiting, timing.start_time, timing.end_time))


def _attempts(step: MemoryItem) -> list[tuple[int, str]]:
    """Return the attempts of a model that failed, with their number and why."""
    attempts = enumerate(listed(step.get_value("model_attempts")), 1)
    return [(at, visible(str(each["error"]))) for at, each in attempts if isinstance(each, Mapping) and "error" in each]


def _offered(steps: Sequence[MemoryItem], place: int) -> list[str]:
    """Return the names of the tools that were offered with a step: they stand where they last changed."""
    facts = (step.get_value("prompt_facts") for step in reversed(steps[: place + 1]))
    known = next((each for each in facts if isinstance(each, Mapping)), {})
    return [str(each) for each in listed(known.get("tools"))]


def _show_hit(score: float, author: str, at: datetime | None, text: str) -> Hit:
    return score, visible(author), at, show_excerpt(text)


def _figures(details: TurnDetails, site: InspectorSite) -> list[tuple[str, str]]:
    """Return what a turn took, as labels with values."""
    row = details.figures
    decided = [] if details.decision is None else [("Unasked", _UNASKED[details.decision])]
    if row is None:
        return decided
    share = f" ({row.cached_tokens / row.input_tokens:.0%} cached)" if row.input_tokens and row.cached_tokens else ""
    first = "" if row.first_token_ms is None else show_seconds(row.first_token_ms / 1_000)
    found = [
        ("Model", visible(row.model or "")),
        ("Calls", f"{row.calls:,}" + (f", and {row.failed_calls:,} failed" if row.failed_calls else "")),
        ("Tokens in", f"{row.input_tokens:,}{share}"),
        ("Tokens out", f"{row.output_tokens:,}"),
        ("Cost", site.money(row.cost)),
        ("First token after", first),
        ("Model's time", show_seconds(row.model_ms / 1_000)),
    ]
    return [*decided, *((label, value) for label, value in found if value)]


def _show_delivery(row: Any) -> str:
    tries = f"{row.attempts} {'try' if row.attempts == 1 else 'tries'}"
    reason = f": {visible(row.error)}" if row.error else ""
    return f"{row.transport} {row.kind}, {row.status} after {tries}{reason}"


async def make_request(agent: Agent | None, step: MemoryItem, offered: Sequence[str]) -> dict[str, Any]:
    """Return where a step's prompt would be sent, and what: with the tools of today that had been offered."""
    tools = {} if agent is None else await agent.tools_now()
    schemas = [dict(tools[name].schema) for name in offered if name in tools]
    messages = listed(step.get_value("model_input_messages"))
    llm = None if agent is None or agent.llm is None else _find_llm(agent.llm, step.get_value("model"))
    preview = None if llm is None else llm.preview(messages, schemas)
    if preview is not None:
        return dict(preview)
    body: dict[str, Any] = {"model": step.get_value("model") or "unknown"}
    if schemas:
        body["tools"] = schemas
    return {"url": f"{_ELSEWHERE}/chat/completions", "body": {**body, "messages": messages}}


def write_json(request: Mapping[str, Any]) -> str:
    """Return the body of a request as JSON, without secrets."""
    return redact(json.dumps(request["body"], indent=2, ensure_ascii=True, default=str)) + "\n"


def write_curl(request: Mapping[str, Any]) -> str:
    """Return a request as a command for a shell; the key comes from the environment.

    The body comes by standard input, because an argument has 128 KiB at most on Linux. It is one line that begins with
    a brace, so nothing in it ends it; and no shell sees an event of its history in it (bash(1), HISTORY EXPANSION).
    """
    body = redact(json.dumps(request["body"], ensure_ascii=True, default=str)).replace("!", "\\u0021")
    return (
        f"curl {shlex.quote(redact(str(request['url'])))} \\\n"
        '  -H "Authorization: Bearer $OPENAI_API_KEY" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  --data-binary @- <<'END'\n{body}\nEND\n"
    )


def _find_llm(llm: ChatLLM, model: object) -> ChatLLM:
    """Return the model that answered, where several may."""
    return next((each for each in llm.llms if each.model == model), llm.llms[0])
