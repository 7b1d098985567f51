"""The oracle: it holds what became of it all against what people said."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.database import Database
from chaos.incidents import Chronicle
from chaos.repeats import Doing, Reasons
from chaos.telegram_api import TelegramApi
from chaos.town import DONE, Town, invoice_of
from standins.openai_api import Ending, OpenAIApi


@dataclass(frozen=True, slots=True)
class Findings:
    """What the oracle counts.

    Attributes:
        lost: Questions without an answer, in the chat or in the history.
        out_of_order: Chats whose answers, or whose history, are not in the order of the questions.
        paid_twice: Calls of a tool that must not run twice, and did.
        shown_again: Answers that a person saw more than once; the worst one's count is most_shown.
        asked_again: Model calls beyond two for each question; the worst question's count is most_asked.
        shown_without_cause: Those of shown_again that nothing explains which happened since the time before.
        asked_without_cause: Those of asked_again that nothing explains which happened since the time before.
    """

    messages: int
    lost: int
    out_of_order: int
    paid_twice: int
    shown_again: int
    most_shown: int
    asked_again: int
    most_asked: int
    shown_without_cause: int
    asked_without_cause: int


def examine(
    town: Town, api: TelegramApi, llm: OpenAIApi, database: Database, tool_log: Path, chronicle: Chronicle
) -> tuple[Findings, str]:
    """Hold what people saw, what the tools did, what the model was asked and what is stored against what was said.

    Return what was found as well in words, where something was done again without a cause.
    """
    shown = {
        chat: [text.removeprefix(DONE) for text in api.visible_texts(chat) if text.startswith(DONE)]
        for chat in town.said
    }
    history = _histories(database)
    expected = {
        chat: [pair for invoice in said for pair in (f"pay {invoice}", f"{DONE}{invoice}")]
        for chat, said in town.said.items()
    }
    times_shown = Counter(invoice for invoices in shown.values() for invoice in invoices)
    asked = Counter(invoice_of(body) for body in llm.bodies())
    paid = Counter(line for line in tool_log.read_text().splitlines() if line.startswith("pay "))
    reasons = Reasons(chronicle.incidents)
    shown_without_cause = reasons.unexplained(api.shown())
    asked_without_cause = reasons.unexplained(_questions(llm))
    findings = Findings(
        messages=sum(map(len, town.said.values())),
        lost=sum(
            len({*said} - {*shown[chat]}) + len({*expected[chat]} - {*history.get(chat, [])})
            for chat, said in town.said.items()
        ),
        out_of_order=sum(
            list(dict.fromkeys(shown[chat])) != said or history.get(chat) != expected[chat]
            for chat, said in town.said.items()
        ),
        paid_twice=sum(count - 1 for count in paid.values()),
        shown_again=sum(count - 1 for count in times_shown.values()),
        most_shown=max(times_shown.values(), default=0),
        asked_again=sum(max(0, count - 2) for count in asked.values()),
        most_asked=max(asked.values(), default=0),
        shown_without_cause=len(shown_without_cause),
        asked_without_cause=len(asked_without_cause),
    )
    return findings, _in_words([*shown_without_cause, *asked_without_cause], chronicle)


def _questions(llm: OpenAIApi) -> list[Doing]:
    """Return every question as the model was asked it; for each message there are two: before its tools, and after."""
    failed = {end.request_seq for end in llm.endings() if end.ending in (Ending.FAILED, Ending.DROPPED)}
    return [
        Doing(
            f"the model is asked about {invoice_of(call.body)} {_stage_of(call.body)}",
            call.headers.get("x-process", ""),
            call.at,
            call.seq in failed,
        )
        for call in llm.requests()
    ]


def _stage_of(body: dict[str, Any]) -> str:
    return "after its tools" if body["messages"][-1]["role"] == "tool" else "before its tools"


def _in_words(repeats: Sequence[tuple[Doing, Doing]], chronicle: Chronicle) -> str:
    return "\n".join(
        f"{chronicle.seconds(second.at):8.3f} {second.what}, by {second.process}; "
        f"at {chronicle.seconds(first.at):.3f} by {first.process}"
        for first, second in repeats
    )


def _histories(database: Database) -> dict[int, list[str]]:
    rows = database.rows(
        "SELECT contexts.context_keys, messages.text FROM messages JOIN contexts ON contexts.id = messages.context_id "
        "ORDER BY messages.context_id, messages.position"
    )
    histories: dict[int, list[str]] = {}
    for keys, text in rows:
        chat = int((json.loads(keys) if isinstance(keys, str) else keys)["chat_id"])
        histories.setdefault(chat, []).append(text)
    return histories
