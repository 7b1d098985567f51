"""Reading hooks.json: who sends events, to which chat they go, and what is done about them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from botservice.config.env_files import environment_with_file
from botservice.core.chat_addresses import ChatAddress
from botservice.core.errors import SettingsError
from botservice.core.json_files import expand_variables, read_json
from botservice.telemetry.logs import register_secret
from transports.api.signatures import Sender, SenderKind

if TYPE_CHECKING:
    from jinja2 import Template

PER_MINUTE: Final = 60
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEYS: Final = ("from", "secret", "to", "do", "template", "task", "tools", "per_minute")


class HookAction(StrEnum):
    """What is done about an event."""

    SAY = "say"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook.

    Attributes:
        to: The chat in which something is said; `to_name` is how the file names it.
        template: What is said; None for the text of a message as Slack takes it.
        task: What the agent is asked.
        tools: The names of the tools that may run for that.
        per_minute: How many events are taken, at most.
    """

    name: str
    sender: Sender
    to: ChatAddress
    to_name: str
    do: HookAction
    template: "Template | None" = None
    task: str = ""
    tools: tuple[str, ...] = ()
    per_minute: int = PER_MINUTE


def read_hooks(path: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, Hook]:
    """Return the hooks of a file by their names; none where there is no file.

    Raises:
        SettingsError: the file cannot be read or says something wrong; the message names what, and repeats no secret.
    """
    if path is None:
        return {}
    content = read_json(path, "HOOKS_CONFIG")
    hooks = content.get("hooks") if isinstance(content, dict) else None
    if not isinstance(hooks, dict):
        raise SettingsError(f'{path} has no hooks: it must be {{"hooks": {{"NAME": {{"from": "github", …}}}}}}')
    environment = environment_with_file() if environment is None else environment
    known = {name: value for name, value in environment.items() if value}
    return {name: _HookEntry(path, name, entry, known).read() for name, entry in hooks.items()}


class _HookEntry:
    """What stands in the file about one hook."""

    def __init__(self, path: Path, name: str, entry: Any, environment: Mapping[str, str]) -> None:
        self._where = f"{path}: hook {name[:40]!r}"
        self._name = name
        self._environment = environment
        if not _NAME.fullmatch(name):
            self._fail("its name must be 1 to 64 letters, digits, - or _, because it stands in the address")
        if not isinstance(entry, dict):
            self._fail('it must be an object, such as {"from": "github", "secret": "${CI_SECRET}", …}')
        self._entry: dict[str, Any] = entry

    def read(self) -> Hook:
        """Return the hook."""
        for key in self._entry:
            if key not in _KEYS:
                self._fail(f"there is no key {key[:40]!r}; there are: {', '.join(_KEYS)}")
        kind, do = self._one_of(SenderKind, "from"), self._one_of(HookAction, "do")
        address, to_name = self._chat()
        is_asking = do is HookAction.ASK
        for key in ("template",) if is_asking else ("task", "tools"):
            if key in self._entry:
                self._fail(f"{key} goes with {'say' if is_asking else 'ask'}; leave it out")
        return Hook(
            self._name,
            self._sender(kind),
            address,
            to_name,
            do,
            None if is_asking else self._template(kind),
            self._text("task") if is_asking else "",
            self._tools(),
            self._per_minute(),
        )

    def _fail(self, what: str) -> NoReturn:
        raise SettingsError(f"{self._where}: {what}") from None

    def _text(self, key: str) -> str:
        value = self._entry.get(key)
        if not isinstance(value, str) or not value.strip():
            self._fail(f"{key} must be a text, and is {'missing' if key not in self._entry else 'none'}")
        return value

    def _one_of(self, choices: Any, key: str) -> Any:
        value = self._text(key)
        if value not in list(choices):
            self._fail(f"{key} must be one of {', '.join(choices)}")
        return choices(value)

    def _chat(self) -> tuple[ChatAddress, str]:
        name = self._text("to")
        try:
            return ChatAddress.parse(name), name
        except ValueError as error:
            self._fail(f"to: {error}")

    def _sender(self, kind: SenderKind) -> Sender:
        try:
            secret, _, _ = expand_variables(self._text("secret"), self._environment)
        except ValueError as error:
            self._fail(f"secret: {error}")
        register_secret(secret)
        try:
            return Sender.of(kind, secret)
        except SettingsError as error:
            self._fail(f"secret: {error}")

    def _template(self, kind: SenderKind) -> "Template | None":
        from jinja2 import TemplateSyntaxError

        from transports.api.templates import compile_template

        if kind is SenderKind.SLACK and "template" not in self._entry:
            return None
        try:
            return compile_template(self._text("template"))
        except TemplateSyntaxError as error:
            self._fail(f"template, line {error.lineno}: {error.message}")

    def _tools(self) -> tuple[str, ...]:
        tools = self._entry.get("tools", [])
        if not isinstance(tools, list) or not all(isinstance(each, str) for each in tools):
            self._fail('tools must be a list of names, such as ["current_time"]')
        return tuple(tools)

    def _per_minute(self) -> int:
        value = self._entry.get("per_minute", PER_MINUTE)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self._fail("per_minute must be a whole number, 1 or more")
        return value
