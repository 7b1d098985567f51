"""Which model the examples talk to: a real one where a key or a server is set, otherwise a script."""

import os
from collections.abc import Callable, Iterable
from typing import Any

from botservice import ChatLLM, OpenAIChatLLM, ScriptedChatLLM


def choose_llm(script: Iterable[Any] | Callable[..., Any]) -> ChatLLM:
    """Return OpenAIChatLLM where OPENAI_API_KEY or OPENAI_BASE_URL is set, else a model that follows script."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return OpenAIChatLLM()
    return ScriptedChatLLM(script)
