"""The page that asks a turn's question again, with both answers side by side."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from botservice.conversation.step_parts import content_of
from botservice.core.errors import BotServiceError
from botservice.devtools.recorded_turn import RecordedTurn
from botservice.devtools.replayed_answers import (
    SECTIONS,
    UNKNOWN,
    Changes,
    Comparison,
    ReplayedAnswer,
    say_answer,
    say_call,
    say_cost,
    say_difference,
    say_tokens,
)
from botservice.devtools.replaying import Replayer
from transports.web.inspector_site import InspectorSite, refusing
from transports.web.inspector_steps import SECTION_LABELS, show_text
from transports.web.requests import path_number, read_form

_MAX_FORM_BYTES: Final = 400_000
_MAX_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Side:
    """An answer as the page shows it."""

    title: str
    text: str
    is_bad: bool
    calls: Sequence[tuple[str, str]]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wish:
    """The choices in the form of the page."""

    prompt: str
    model: str
    without: frozenset[str]
    call: int


class AgainPage:
    """The endpoints of the page."""

    def __init__(self, site: InspectorSite, asker: Replayer | None) -> None:
        self._site = site
        self._asker = asker

    async def form(self, request: Request) -> Response:
        """Answer with what was asked, to be changed."""
        call = _number(request.query_params.get("call", "1"))
        asker, record = await self._read(request, call)
        return self._show(record, Wish(asker.own_words(record), "", frozenset(), call))

    async def ask(self, request: Request) -> Response:
        """Ask again as the form says, and answer with both answers."""
        fields = await read_form(request, _MAX_FORM_BYTES, keeps_blank=True)
        call = _number(fields.get("call", ["1"])[0])
        asker, record = await self._read(request, call)
        own = asker.own_words(record)
        text = fields.get("prompt", [own])[0].replace("\r\n", "\n")
        without = frozenset(fields.get("without", [])) & set(SECTIONS)
        wish = Wish(text, fields.get("model", [""])[0].strip(), without, call)
        is_changed = text.strip() != own.strip()
        changes = Changes(text if is_changed else None, tuple(each for each in SECTIONS if each in without))
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                compared = await asker.ask(
                    self._site.storage, record.context_id, record.turn_id, changes, call=call, model=wish.model or None
                )
        except TimeoutError:
            return self._show(record, wish, problem=f"The model did not answer within {_MAX_SECONDS:.0f} seconds.")
        except BotServiceError as error:
            return self._show(record, wish, problem=str(error))
        return self._show(record, wish, compared)

    async def _read(self, request: Request, call: int) -> tuple[Replayer, RecordedTurn]:
        """Return who asks, and what is recorded of the turn that a request names."""
        context_id, turn_id = path_number(request, "context"), path_number(request, "turn")
        if self._asker is None:
            raise HTTPException(404, "There is no model here to ask again.")
        with refusing("This cannot be asked again: "):
            return self._asker, await self._asker.read(self._site.storage, context_id, turn_id, call)

    def _show(
        self, record: RecordedTurn, wish: Wish, compared: Comparison | None = None, *, problem: str | None = None
    ) -> Response:
        prompt = record.prompt if compared is None else compared.prompt
        parts = [(each, SECTION_LABELS[each]) for each in SECTIONS if each in record.sections]
        return self._site.pages.show(
            "inspect_again.html",
            context_id=record.context_id,
            turn_id=record.turn_id,
            question=show_text(record.task),
            calls=record.calls,
            wish=wish,
            parts=parts,
            problem=problem,
            sides=[] if compared is None else _sides(compared),
            changed=[] if compared is None else [*compared.changed, *([wish.model] if wish.model else [])],
            difference=[] if compared is None else say_difference(compared),
            prompt=[(str(each.get("role")), show_text(content_of(each))) for each in prompt],
        )


def _sides(compared: Comparison) -> list[Side]:
    currency = compared.currency
    return [_side("Then", compared.then, currency), _side("Again", compared.again, currency)]


def _side(title: str, answer: ReplayedAnswer, currency: str) -> Side:
    facts = {
        "Model": ", ".join(answer.models) or UNKNOWN,
        "Calls": str(answer.calls),
        "Tokens": say_tokens(answer),
        "Cost": say_cost(answer.cost, currency),
        "Time": UNKNOWN if answer.seconds is None else f"{answer.seconds:.2f} s",
    }
    calls = [(show_text(say_call(each)), show_text(each.result)) for each in answer.tool_calls]
    return Side(title, show_text(say_answer(answer)), answer.error is not None, calls, facts)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 4 else 1
