"""Reading the MCP servers from a file such as mcp.json."""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import unquote, urlsplit

from botservice.agent.tool import DEFAULT_TIMEOUT_SECONDS
from botservice.core.errors import SettingsError
from botservice.core.json_files import expand_variables, read_json
from botservice.core.policies import read_roles
from botservice.telemetry.logs import register_secret

_LONGEST: Final = 8_000  # characters of one value that are looked through
_NAMED: Final = re.compile(r"\b(?:password|passwd|pwd)=([^\s;&'\"]{1,500})", re.IGNORECASE)
_SHORTEST_TOKEN: Final = 16  # of a name without a password, as some services take tokens

_SECRET: Final = re.compile(r"key|token|secret|password|passwd|credential|auth(?!or(?!i))|cookie", re.IGNORECASE)
_PLAIN: Final = frozenset({"HOME", "USER", "LOGNAME", "PATH", "SHELL", "TERM", "PWD", "TMPDIR", "LANG"})
_OF_COMMANDS: Final = ("command", "args", "env", "cwd")
_OF_ADDRESSES: Final = ("url", "headers", "auth", "client_id", "client_secret")
_OF_BOTH: Final = ("tools", "approval", "roles", "timeout", "trusted", "sampling", "disabled", "type")
_OF_OTHERS: Final = frozenset({"description", "alwaysAllow", "autoApprove"})  # other programs' keys, of no effect here
_TYPES: Final = frozenset({"stdio", "http", "streamable-http", "streamableHttp"})
_OTHERS: Final = "*"  # the tools of a server that its roles do not name
_LONGEST_SHOWN: Final = 40
_LONGEST_NAME: Final = 24  # so that 38 of a tool's 64 letters are left for the tool


def passwords_in(value: str) -> Iterator[str]:
    """Yield what may be a password in a value, such as the one of postgres://somebody:password@host/name."""
    value = value[:_LONGEST]
    for found in (*_in_addresses(value), *_NAMED.findall(value)):
        yield found
        yield unquote(found)


def _in_addresses(value: str) -> Iterator[str]:
    for rest in value.split("://")[1:]:
        host = re.split(r"[/?#]", rest, maxsplit=1)[0]
        # A password with a slash in it, which no URL allows, ends at the last @.
        for part in {host, rest}:
            account, at, _ = part.rpartition("@")
            name, colon, password = account.partition(":")
            if at and (password or len(name) >= _SHORTEST_TOKEN):
                yield password if colon else name


class Approval(StrEnum):
    """Which calls need a person's approval."""

    WRITES = "writes"  # of every tool that does not say that it only reads
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server.

    Attributes:
        prefix: What the names of its tools begin with.
        tools: The tools that may be offered; None for all.
        allows_sampling: Whether it may ask the model, as usage of the person for whom it works.
        is_trusted: Whether its results hold nothing that strangers wrote, whatever its tools say.
        roles: The roles of people for whom a tool runs, by the tool; what stands under `*` is for all others.
        has_sign_in: Whether each person signs in by OAuth, whatever the server says without that.
        client_id: As whom this service is registered there; without one it registers by itself.
    """

    name: str
    prefix: str
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tools: frozenset[str] | None = None
    approval: Approval = Approval.WRITES
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    has_sign_in: bool = False
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    is_trusted: bool = False
    allows_sampling: bool = False
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def roles_of(self, tool: str | None = None) -> frozenset[str] | None:
        """Return the roles for one of its tools, or for what has no name there; None for everybody."""
        return self.roles.get(tool or _OTHERS, self.roles.get(_OTHERS))

    @property
    def tools_with_roles(self) -> list[str]:
        """The tools that its roles name."""
        return sorted(self.roles.keys() - {_OTHERS})


def read_file(path: Path | str, environment: Mapping[str, str] | None = None) -> list[ServerConfig]:
    """Return the servers of a file, without those that are disabled.

    Raises:
        SettingsError: the file is not there or says something wrong; the message names what, and repeats no value.
    """
    content = read_json(Path(path), "MCP_CONFIG")
    servers = content.get("mcpServers") if isinstance(content, dict) else None
    if not isinstance(servers, dict):
        raise SettingsError(f'{path} has no servers: it must be {{"mcpServers": {{"NAME": {{"command": …}}}}}}')
    return read_servers(servers, environment, source=str(path))


def read_servers(
    servers: Mapping[str, Any], environment: Mapping[str, str] | None = None, *, source: str = "mcpServers"
) -> list[ServerConfig]:
    """Return servers as they stand below `mcpServers`, without those that are disabled.

    Raises:
        SettingsError: something is wrong; the message names the server and the key.
    """
    known = os.environ if environment is None else environment
    entries = [_Entry(source, name, entry, known) for name, entry in servers.items()]
    found = [entry.read() for entry in entries if not entry.is_disabled]
    prefixes: dict[str, str] = {}
    for each in found:
        other = prefixes.setdefault(each.prefix, each.name)
        if other != each.name:
            raise SettingsError(
                f"{source}: the servers {other!r} and {each.name!r} would both be called {each.prefix}: rename one"
            )
    return found


class _Entry:
    """What stands in a file about one server."""

    def __init__(self, source: str, name: str, entry: Any, environment: Mapping[str, str]) -> None:
        self._where = f"{source}: server {name[:_LONGEST_SHOWN]!r}"
        self._name = name
        self._environment = environment
        if not isinstance(entry, dict):
            self._fail('it must be an object, such as {"command": "npx", "args": ["…"]}')
        self._entry: dict[str, Any] = entry

    @property
    def is_disabled(self) -> bool:
        """Whether it is to be left out."""
        return self._entry.get("disabled") is True

    def read(self) -> ServerConfig:
        self._check_keys()
        text = self._text
        return ServerConfig(
            self._name,
            self._prefix(),
            command=text("command"),
            args=tuple(self._expanded("args", each) for each in self._list("args")),
            env=self._map("env"),
            cwd=text("cwd"),
            url=self._url(),
            headers=self._headers(),
            tools=self._tools(),
            approval=self._approval(),
            timeout_seconds=self._timeout(),
            has_sign_in=self._has_sign_in(),
            client_id=text("client_id"),
            client_secret=self._secret("client_secret"),
            is_trusted=self._flag("trusted"),
            allows_sampling=self._flag("sampling"),
            roles=self._roles(),
        )

    def _fail(self, what: str, key: str | None = None) -> NoReturn:
        shown = re.sub(r"[^A-Za-z0-9_.-]", "?", key or "")[:_LONGEST_SHOWN]
        raise SettingsError(f"{self._where}, {shown}: {what}" if shown else f"{self._where}: {what}") from None

    def _check_keys(self) -> None:
        has_command, has_url = "command" in self._entry, "url" in self._entry
        if has_command == has_url:
            self._fail("it needs either a command, which is started here, or a url")
        known = (*(_OF_COMMANDS if has_command else _OF_ADDRESSES), *_OF_BOTH)
        for key in self._entry:
            if key not in known and key not in _OF_OTHERS:
                self._fail(f"there is no such key here; there are: {', '.join(known)}", key)
        kind = self._entry.get("type", "stdio" if has_command else "http")
        if kind not in _TYPES or (kind == "stdio") != has_command:
            self._fail(
                "it must be stdio, with a command, or http, with a url; the older sse is not supported: "
                "ask the server's maker for its address by streamable HTTP",
                "type",
            )

    def _prefix(self) -> str:
        prefix = re.sub(r"_+", "_", re.sub(r"[^a-zA-Z0-9-]", "_", self._name)).strip("_")
        if not prefix or len(prefix) > _LONGEST_NAME:
            self._fail(
                f"its name must be 1 to {_LONGEST_NAME} letters, digits, - or _, because its tools begin with it"
            )
        return prefix

    def _text(self, key: str) -> str | None:
        if key not in self._entry:
            return None
        value = self._expanded(key, self._entry[key])
        return value if value.strip() else self._fail("it is empty", key)

    def _secret(self, key: str) -> str | None:
        return self._expanded(key, self._entry[key], is_secret=True) if key in self._entry else None

    def _has_sign_in(self) -> bool:
        if self._entry.get("auth", "oauth") != "oauth":
            self._fail("it must be oauth, so that each person signs in; a token for all stands in headers", "auth")
        return "auth" in self._entry

    def _list(self, key: str) -> list[str]:
        values = self._entry.get(key, [])
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            self._fail('it must be a list of texts, such as ["a", "b"]', key)
        return list(values)

    def _tools(self) -> frozenset[str] | None:
        names = frozenset(self._list("tools")) if "tools" in self._entry else None
        if names is not None and not all(each.strip() for each in names):
            self._fail("a tool in it has no name", "tools")
        return names

    def _map(self, key: str) -> dict[str, str]:
        values = self._entry.get(key, {})
        if not isinstance(values, dict):
            self._fail('it must be an object of texts, such as {"NAME": "value"}', key)
        return {
            name: self._expanded(f"{key}.{name}", value, is_secret=key == "headers" or _is_secret(name))
            for name, value in values.items()
        }

    def _expanded(self, key: str, value: Any, *, is_secret: bool = False) -> str:
        """Return a text with what the environment has for each ${NAME}; what is secret in it is never shown.

        Args:
            is_secret: Whether all of it is, besides what names say.
        """
        if not isinstance(value, str) or "\0" in value:
            self._fail("it must be a text", key)
        try:
            expanded, known, defaults = expand_variables(value, self._environment)
        except ValueError as error:
            self._fail(str(error), key)
        plain = defaults | {known[name] for name in known.keys() & _PLAIN}
        secret = {each for name, each in known.items() if is_secret or _is_secret(name)}
        if is_secret:
            secret |= {expanded, expanded.partition(" ")[2]}  # the token of "Bearer token"
        secret |= set(passwords_in(expanded))
        for each in secret - plain:
            register_secret(each)
        return expanded

    def _url(self) -> str | None:
        url = self._text("url")
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_right = False
        if not is_right or re.search(r"\s", url):
            self._fail("it must be an address such as https://example.com/mcp", "url")
        return url

    def _headers(self) -> dict[str, str]:
        headers = self._map("headers")
        for name, value in headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not re.fullmatch(r"[\t -~]*", value):
                self._fail("a header is plain letters, digits and signs in one line", f"headers.{name}")
        return headers

    def _approval(self) -> Approval:
        value = self._entry.get("approval", Approval.WRITES)
        if value not in list(Approval):
            self._fail(f"it must be one of {', '.join(Approval)}", "approval")
        return Approval(value)

    def _roles(self) -> dict[str, frozenset[str]]:
        value = self._entry.get("roles", {})
        entries = value if isinstance(value, dict) else {_OTHERS: value}
        roles: dict[str, frozenset[str]] = {}
        if "roles" in self._entry and not (entries and all(tool.strip() for tool in entries)):
            self._fail("it must name at least one tool, and no tool without a name; leave the key out for all", "roles")
        for tool, names in entries.items():
            read = read_roles(names)
            if read is None:
                self._fail('it must be a list of roles such as ["owner"], or an object of those by tool', "roles")
            roles[tool] = read
        return roles

    def _flag(self, key: str) -> bool:
        value = self._entry.get(key, False)
        return value if isinstance(value, bool) else self._fail("it must be true or false", key)

    def _timeout(self) -> float:
        value = self._entry.get("timeout", DEFAULT_TIMEOUT_SECONDS)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            self._fail("it must be a number of seconds above 0", "timeout")
        return float(value)


def _is_secret(name: str) -> bool:
    """Return whether a name looks like that of a secret."""
    return name not in _PLAIN and _SECRET.search(name) is not None
