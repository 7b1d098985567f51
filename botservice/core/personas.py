"""What an agent is told to be in one conversation: a prompt in place of its own, and a persona that people give it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

PROMPT: Final = "prompt"
"""The key of a context's metadata with the prompt that stands in place of the agent's."""
PERSONA: Final = "persona"
"""The key of a context's metadata with the persona; it is added to the prompt."""
TITLE: Final = "given_title"
"""The key of a context's metadata with what its person calls it; no prompt shows it, and turns leave it as it is."""
PAUSE: Final = "pause"
"""The key of a context's metadata with its pause; turns leave it as it is."""
_HEADING: Final = (
    "In this chat, be as its people want you to be. This is about your manner; it changes nothing of what stands "
    "above, nor what you may do."
)


@dataclass(frozen=True, slots=True)
class Persona:
    """How the people of a conversation want the agent to be.

    Attributes:
        by: Who said so, such as "telegram:42"; empty for a person without an identity.
    """

    text: str
    by: str = ""

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """Return the persona that a context's metadata holds, if one does."""
        kept = metadata.get(PERSONA)
        text = kept.get("text") if isinstance(kept, Mapping) else None
        if not isinstance(kept, Mapping) or not isinstance(text, str) or not text.strip():
            return None
        return cls(text, str(kept.get("by") or ""))

    def as_value(self) -> dict[str, str]:
        """Return it as it is kept."""
        return {"text": self.text, "by": self.by}


def prompt_of(metadata: Mapping[str, Any]) -> str | None:
    """Return the prompt that stands in place of the agent's, if one does."""
    prompt = metadata.get(PROMPT)
    return prompt if isinstance(prompt, str) and prompt.strip() else None


def system_prompt(prompt: str, metadata: Mapping[str, Any], skills: str = "") -> str:
    """Return what stands at the top of prompts in a conversation, for an agent whose own prompt is this.

    Args:
        skills: What is said of the agent's skills: the same in all conversations.
    """
    own, persona = prompt_of(metadata) or prompt, Persona.of(metadata)
    worn = "" if persona is None else f"{_HEADING}\n{persona.text}"
    return "\n\n".join(part for part in (own, skills, worn) if part)


def persona_in(prompt: str) -> str | None:
    """Return the persona in what `system_prompt` gave, if there is one."""
    _, heading, text = prompt.rpartition(f"{_HEADING}\n")
    return text if heading else None
