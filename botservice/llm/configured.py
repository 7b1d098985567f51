"""The model that the settings name."""

from typing import TYPE_CHECKING

from botservice.config.settings import Settings, reveal
from botservice.llm.chat import ChatLLM
from botservice.llm.demo import DemoChatLLM
from botservice.llm.fallback import FallbackLLM

if TYPE_CHECKING:
    from botservice.llm.openai.llm import OpenAIChatLLM


def default_llm() -> ChatLLM:
    """Create the model that the environment and `.env` configure; without a configuration, the demo.

    Raises:
        SettingsError: a setting is invalid.
    """
    return configured_llm(Settings.load())


def configured_llm(settings: Settings, model: str | None = None) -> ChatLLM:
    """Return the model that settings name, with those that are asked where it cannot answer; or the demo script.

    Args:
        model: In the place of the first one.
    """
    if not settings.has_model:
        return DemoChatLLM()
    first = _build_openai(settings, model or settings.openai_model)
    others = [_build_openai(settings, name) for name in settings.openai_fallback_models if name != first.model]
    return FallbackLLM([first, *others]) if others else first


def _build_openai(settings: Settings, name: str | None) -> "OpenAIChatLLM":
    from botservice.llm.openai.llm import OpenAIChatLLM

    return OpenAIChatLLM(
        name,
        base_url=settings.openai_base_url,
        api_key=reveal(settings.openai_api_key),
        api=settings.openai_api,
        reasoning_effort=settings.openai_reasoning_effort,
        reasoning_summary=settings.openai_reasoning_summary,
        timeout_seconds=settings.model_timeout_seconds,
        max_answer_tokens=settings.max_answer_tokens,
    )
