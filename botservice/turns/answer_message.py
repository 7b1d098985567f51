"""The message that answers a turn, with a line about its end where the answer was cut or refused."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from botservice.agent.agent import FinishAction
from botservice.conversation.context import AgentContext
from botservice.conversation.readable_values import readable
from botservice.core.messages import Button, Message, Role, is_blank
from botservice.core.quoting import quote_in_markdown
from botservice.history.chat_history import count_text
from botservice.history.rows import NewMessage
from botservice.llm.chat import FinishReason
from botservice.texts import in_language

_NOTHING: Final = ("", "nothing")
_AROUND_NOTHING: Final = " \t\r\n.*_`\"'[]()"


async def new_answer(turn_id: int, action: FinishAction, now: datetime, language: str | None = None) -> NewMessage:
    """Return the assistant's message that answers a turn; one that was cut off says so."""
    text = with_ending(as_text(action.output), action.finish_reason, language)
    if action.not_seen:
        picture = in_language("answer.picture", language)
        names = ", ".join(quote_in_markdown(name, picture) for name in action.not_seen)
        text = "\n\n".join((text, in_language("answer.not_seen", language, names=names)))
    if action.is_without_earlier:
        text = "\n\n".join((text, in_language("answer.without_earlier", language)))
    counter, count = await count_text(text)
    return NewMessage(
        role=Role.ASSISTANT,
        text=text,
        created_at=now,
        attachments=tuple(action.attachments),
        token_count=count,
        token_encoding=counter.name,
        answers_turn_id=turn_id,
    )


def preview(new: NewMessage, buttons: Sequence[Button] = (), language: str | None = None) -> Message:
    """Return the message as it will be once it is stored, for a transport to plan with."""
    said = (None, new.role, new.text, new.attachments, new.author, new.created_at)
    return Message(*said, buttons=tuple(buttons), language=language)


def as_text(output: object) -> str:
    """Return the output of an agent or a final tool as text; a text stays as it is."""
    if isinstance(output, str):
        return output
    return "" if output is None else readable(output)


def is_declined(context: AgentContext, action: FinishAction) -> bool:
    """Return whether an agent that nobody has asked has nothing to say."""
    return context.is_unasked and as_text(action.output).strip(_AROUND_NOTHING).lower() in _NOTHING


def with_ending(text: str, finish_reason: str | None, language: str | None) -> str:
    """Return an answer with a line about its end, where it is not whole."""
    has_text = not is_blank(text)
    if finish_reason == FinishReason.LENGTH:
        line = in_language("answer.cut" if has_text else "answer.nothing_left", language)
        return f"{text}\n\n{line}" if has_text else line
    if finish_reason in (FinishReason.REFUSAL, FinishReason.FILTERED) and not has_text:
        return in_language("answer.refused", language)
    if finish_reason == FinishReason.FILTERED:
        return "\n\n".join((text, in_language("answer.filtered", language)))
    return text
