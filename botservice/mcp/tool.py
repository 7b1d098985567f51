"""A tool of a server as a `Tool`."""

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from botservice.agent.tool import Tool
from botservice.agent.tool_outputs import LONGEST_OBSERVATION, OutputError
from botservice.conversation.context import AgentContext
from botservice.core.messages import Attachment
from botservice.core.quoting import quote_said
from botservice.mcp.config import Approval
from botservice.mcp.connection import ServerConnection
from botservice.mcp.listing import ListedTool

_LARGEST_FILE: Final = 10 * 1024 * 1024
_MOST_FILES: Final = 10
_MOST_PARTS: Final = 1_000
_MIME_TYPE: Final = re.compile(r"[a-zA-Z0-9.+-]{1,60}/[a-zA-Z0-9.+-]{1,60}")
_IMAGES: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}

_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST: Final = 64  # OpenAI API reference, function.name
_DIGEST: Final = 6


def read_result(result: Any, notes: Sequence[str] = ()) -> Any:
    """Return the text, the value and the files of a result, bounded.

    Args:
        notes: What the model is to know besides, in our words.

    Raises:
        OutputError: the server says that the call failed; the message says what it says.
    """
    parts = list(_parts(result.content[:_MOST_PARTS]))
    texts = [f"[A question of the server was not passed on: {each}.]" for each in notes]
    texts += [part for part in parts if isinstance(part, str)]
    files = [part for part in parts if isinstance(part, Attachment)]
    value = result.structured_content
    if len(result.content) > _MOST_PARTS:
        texts.append(f"[{len(result.content) - _MOST_PARTS} more parts were left out]")
    if result.is_error:
        raise OutputError("\n".join(_bounded(texts)) or "the tool failed, and its server does not say why")
    if value is not None and not texts and not files:
        return _quoted(value)
    if value is not None and not any(_says(text, value) for text in texts):
        texts.append(json.dumps(value, ensure_ascii=False, default=str))
    if len(files) > _MOST_FILES:
        texts.append(f"[{len(files) - _MOST_FILES} more files were left out]")
    said = "\n".join(_bounded(texts))
    return [said, *files[:_MOST_FILES]] if files else said


def _bounded(texts: Sequence[str]) -> Iterator[str]:
    """Yield texts up to a little more than what a model is shown: the rest is cut, and said to be.

    Nothing in them looks like what the service itself gives a model as its records.
    """
    room = LONGEST_OBSERVATION + 1
    for text in texts:
        if room > 0:
            yield quote_said(text[:room])
        room -= len(text)


def _quoted(value: Any) -> Any:
    """Return a value with its texts escaped, so that none can pass for records of the service."""
    match value:
        case str():
            return quote_said(value)
        case list():
            return [_quoted(each) for each in value]
        case dict():
            return {quote_said(str(key)): _quoted(each) for key, each in value.items()}
    return value


def _says(text: str, value: Any) -> bool:
    """Return whether a text is the JSON of a value: servers send both, for clients that read only text."""
    if len(text) > LONGEST_OBSERVATION:
        return True
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = text
    return value in (said, {"result": said})


def _parts(content: Sequence[Any]) -> Iterator[str | Attachment]:
    for part in content:
        match part.type:
            case "text":
                yield part.text
            case "image" | "audio":
                yield _file(part.mime_type, part.data, part.type)
            case "resource":
                resource = part.resource
                blob = getattr(resource, "blob", None)
                kind = resource.mime_type or "application/octet-stream"
                yield f"[{resource.uri}]\n{resource.text}" if blob is None else _file(kind, blob, _last(resource.uri))
            case "resource_link":
                about = " ".join(filter(None, (part.title or part.name, part.description)))
                yield f"[{part.uri}: {about}]"
            case kind:
                yield f"[a part of kind {kind!r}, which cannot be shown]"


def _file(mime_type: str, data: str, name: str) -> str | Attachment:
    if len(data) * 3 // 4 > _LARGEST_FILE:
        return f"[{name}: left out, because it is larger than {_LARGEST_FILE // 1024 // 1024} MB]"
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[{name}: left out, because it is no base64]"
    if not mime_type.lower().startswith("image/"):
        return Attachment(mime_type if _MIME_TYPE.fullmatch(mime_type) else "application/octet-stream", name, content)
    # A model's server refuses a whole request for one image that is none.
    kind = next((kind for kind, signature in _IMAGES.items() if signature.match(content)), None)
    if kind is None:
        return f"[{name}: left out, because it is no {', '.join(_IMAGES)}]"
    return Attachment(kind, name, content)


def _last(uri: str) -> str:
    return str(uri).rstrip("/").rpartition("/")[2] or "file"


AskToSignIn = Callable[[AgentContext], Awaitable[Any]]
"""Asks the person to sign in, and returns what is said of that."""


async def _call_server() -> None:
    """Take what the server's own schema says."""


class MCPTool(Tool):
    """A tool whose calls go to a server. Its arguments are the server's to check, and it says what is wrong."""

    shows_files = False  # they are a stranger's: a model may look at a screen ten times before it answers

    def __init__(
        self, connection: ServerConnection, listed: ListedTool, name: str, ask_to_sign_in: AskToSignIn | None = None
    ) -> None:
        config = connection.config
        super().__init__(
            _call_server,
            name=name,
            description=listed.description,
            idempotent=listed.is_idempotent,
            timeout_seconds=config.timeout_seconds,
            reads_untrusted=listed.is_open_world and not config.is_trusted,
            roles=config.roles_of(listed.name),
        )
        is_asked = config.approval is Approval.WRITES and not listed.is_read_only
        self.needs_approval = is_asked or config.approval is Approval.ALWAYS
        self.schema = {
            "type": "function",
            "function": {"name": name, "description": self.description, "parameters": listed.parameters},
        }
        self._connection = connection
        self._ask_to_sign_in = ask_to_sign_in
        self._name_there = listed.name

    def bind(self, arguments: Mapping[str, Any], context: AgentContext) -> Callable[[], Awaitable[Any] | Any]:
        """Return a call of the server's tool; where the server takes the person's token no more, they are asked."""

        async def call() -> Any:
            try:
                return read_result(
                    *await self._connection.call(
                        self._name_there, arguments, may_repeat=self.idempotent, context=context
                    )
                )
            except OutputError:
                if self._ask_to_sign_in is not None and self._connection.is_refused:
                    return await self._ask_to_sign_in(context)
                raise

        return call

    async def give_up(self, kept: Mapping[str, Any]) -> None:
        """Cancel the task that the server has made of a call."""
        await self._connection.give_up(kept)


def make_tools(connection: ServerConnection, ask_to_sign_in: AskToSignIn | None = None) -> list[Tool]:
    """Return the tools of a server, as it was when it was last asked.

    Args:
        ask_to_sign_in: What is done where the server takes one person's token no more.
    """
    names = name_tools(connection.config.prefix, (each.name for each in connection.listing))
    return [MCPTool(connection, each, names[each.name], ask_to_sign_in) for each in connection.listing]


def name_tools(prefix: str, tools: Iterable[str]) -> dict[str, str]:
    """Return what each tool of a server is called, by the server's own name for it: `server__tool`.

    Where two would be called the same, or one is cut, a digest of the own name tells them apart. So a name depends
    on nothing but the tools that collide with it, in whatever order they come.
    """
    plain = {tool: f"{prefix}__{_UNSAFE.sub('_', tool)}" for tool in dict.fromkeys(tools)}
    counts = Counter(plain.values())
    return {tool: name if _is_kept(tool, name, counts) else _told_apart(tool, name) for tool, name in plain.items()}


def _is_kept(tool: str, name: str, counts: Counter[str]) -> bool:
    if len(name) > _LONGEST or not tool.strip("_-") or not re.search(r"[a-zA-Z0-9]", tool):
        return False
    return counts[name] == 1 or name.endswith(f"__{tool}")


def _told_apart(tool: str, name: str) -> str:
    digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST - _DIGEST - 1].rstrip('_')}_{digest}"
