"""What people are told of an answer that is not whole."""

from botservice.llm.chat import FinishReason
from botservice.texts import in_language


def with_ending(text: str, finish_reason: str | None, language: str | None) -> str:
    """Return an answer with a line about its end, where it is not whole."""
    has_text = bool(text.strip())
    if finish_reason == FinishReason.LENGTH:
        line = in_language("answer.cut" if has_text else "answer.nothing_left", language)
        return f"{text}\n\n{line}" if has_text else line
    if finish_reason == FinishReason.REFUSAL and not has_text:
        return in_language("answer.refused", language)
    return text
