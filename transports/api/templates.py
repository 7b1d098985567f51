"""What is said about an event: a template in a sandbox, or the text of a message as Slack takes it."""

import re
import time
from collections.abc import Callable, Mapping, Sized
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final

from jinja2 import ChainableUndefined, Template, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_TEXT: Final = 20_000  # characters
_MOST_SECONDS: Final = 0.5  # of the processor's time
_WITH_SIZES: Final = ("batch", "center", "indent", "round", "slice")  # filters whose arguments are sizes
_ends_at: ContextVar[float] = ContextVar("ends_at")
_SECRET_HEADERS: Final = re.compile(r"authorization|cookie|signature|token|secret|key", re.IGNORECASE)
_SLACK_LINK: Final = re.compile(r"<(https?://[^<|>\s]{1,2000})(?:\|([^<>\n]{1,500}))?>")
_SLACK_BOLD: Final = re.compile(r"(?<![\w*])\*([^*\n]{1,500})\*(?![\w*])")
_TEXTS: Final = ("title", "pretext", "text", "value", "alt_text")
_DEEPEST: Final = 12


class _BoundedCode(CodeGenerator):
    """Has a template ask in each round of a loop, and in each call of a macro, whether it has taken too long."""

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802 - Jinja's own name
        """Write a loop."""
        node.body.insert(0, _ask_for_time(node))
        super().visit_For(node, frame)

    def visit_Macro(self, node: nodes.Macro, frame: Frame) -> None:  # noqa: N802 - Jinja's own name
        """Write a macro."""
        node.body.insert(0, _ask_for_time(node))
        super().visit_Macro(node, frame)


def _ask_for_time(node: nodes.Node) -> nodes.Node:
    call = nodes.Call(nodes.EnvironmentAttribute("check_time"), [], [], None, None)
    return nodes.ExprStmt(call).set_lineno(node.lineno)


class _Sandbox(ImmutableSandboxedEnvironment):
    """Bounds time and products, because an event gives their numbers: `{{ "#" * payload.n }}` could take all memory."""

    intercepted_binops = frozenset({"*", "**"})
    code_generator_class = _BoundedCode

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.filters |= {name: _with_bounded_sizes(self.filters[name]) for name in _WITH_SIZES}

    def check_time(self) -> None:
        """Return if what is rendered has not taken too long.

        Raises:
            SecurityError: it has.
        """
        if time.thread_time() > _ends_at.get():
            raise SecurityError(f"it takes more than {_MOST_SECONDS} seconds")

    def call(self, context: Context, called: Any, /, *arguments: Any, **named: Any) -> Any:
        """Call what a template calls.

        Raises:
            SecurityError: it is a method of a text, such as `center`, and is given a size that is too large.
        """
        if isinstance(getattr(called, "__self__", None), str) and any(_count(each) > MOST_TEXT for each in arguments):
            raise SecurityError(f"a size is larger than {MOST_TEXT:,}")
        return super().call(context, called, *arguments, **named)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply.

        Raises:
            SecurityError: the product is too long.
        """
        if operator == "**":
            size = left.bit_length() * right if isinstance(left, int) and isinstance(right, int) else 0
        else:
            size = max(_length(left) * _count(right), _length(right) * _count(left))
        if size > MOST_TEXT:
            raise SecurityError(f"a product is longer than {MOST_TEXT:,}")
        return super().call_binop(context, operator, left, right)


def _with_bounded_sizes(apply: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(apply)
    def bounded(*arguments: Any, **named: Any) -> Any:
        if any(_count(each) > MOST_TEXT for each in (*arguments[1:], *named.values())):
            raise SecurityError(f"a size is larger than {MOST_TEXT:,}")
        return apply(*arguments, **named)

    return bounded


def _bounded(value: Any) -> Any:
    """Return an event whose texts are no longer than what can be said."""
    if type(value) is str:
        return value[:MOST_TEXT]
    if type(value) is list:
        return [_bounded(each) for each in value]
    return {name: _bounded(each) for name, each in value.items()} if type(value) is dict else value


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


_ENVIRONMENT: Final = _Sandbox(undefined=ChainableUndefined, autoescape=False)


def compile_template(text: str) -> Template:
    """Return a template.

    Raises:
        TemplateSyntaxError: it is none.
    """
    return _ENVIRONMENT.from_string(text)


def render(template: Template | None, payload: Any, headers: Mapping[str, str], hook: str) -> str:
    """Return what is said about an event, empty for nothing; what secret headers hold is not there.

    Raises:
        Exception: the template fails; what it may raise is without end.
    """
    if template is None:
        return shown_slack_text(payload)[:MOST_TEXT]
    shown = {name: value for name, value in headers.items() if not _SECRET_HEADERS.search(name)}
    pieces, size = list[str](), 0
    _ends_at.set(time.thread_time() + _MOST_SECONDS)
    for piece in template.generate(payload=_bounded(payload), headers=shown, hook=hook):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_TEXT:
            break
    return "".join(pieces)[:MOST_TEXT].strip()


def shown_slack_text(payload: Any) -> str:
    """Return the text of a message in the form of Slack's incoming webhooks, as Markdown."""
    if not isinstance(payload, Mapping):
        return ""
    said = payload.get("text")
    blocks, attachments = payload.get("blocks"), payload.get("attachments")
    lines = list(_texts(blocks)) if blocks else [said] if isinstance(said, str) else []
    for each in attachments if isinstance(attachments, list) else []:
        found = list(_texts(each))
        fallback = each.get("fallback") if isinstance(each, Mapping) else None
        lines += found or ([fallback] if isinstance(fallback, str) else [])
    return "\n".join(_as_markdown(line) for line in lines if line).strip()


def _texts(value: Any, depth: int = 0) -> Any:
    """Yield the texts of blocks and attachments, in their order."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for each in value:
            yield from _texts(each, depth + 1)
    elif isinstance(value, Mapping):
        for name in _TEXTS:
            if isinstance(value.get(name), str):
                yield value[name]
        for name in (*_TEXTS, "fields", "elements", "blocks"):
            if not isinstance(value.get(name), str):
                yield from _texts(value.get(name), depth + 1)


def _as_markdown(text: str) -> str:
    linked = _SLACK_LINK.sub(lambda found: f"[{found[2]}]({found[1]})" if found[2] else found[1], text)
    plain = _SLACK_BOLD.sub(r"**\1**", linked)
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
