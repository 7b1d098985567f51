"""Write the reference of the public names as Markdown, one page a topic, from what their docstrings say."""

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import docstring_parser

import botservice
import botservice.testing

# Where a name is defined says its topic: the first part of its module that stands here.
TOPICS: Mapping[str, str] = {
    "agents": "Agents",
    "service": "The service",
    "tools": "Tools",
    "llm": "Models",
    "contexts": "Conversations",
    "history": "History and search",
    "memory": "Step memory",
    "observer": "Notes and facts",
    "messages": "Messages",
    "commands": "Commands and platforms",
    "storage": "Storage",
    "errors": "Errors",
    "testing": "Testing",
}
_BELONGS = {
    "turns": "service",
    "references": "messages",
    "capabilities": "commands",
    "transport_plugins": "commands",
    "collections": "memory",
    "builtins": "memory",
}


def write_api_reference(folder: Path) -> dict[str, Path]:
    """Write the pages into a folder, and return the page of each topic by its title."""
    folder.mkdir(parents=True, exist_ok=True)
    by_topic: dict[str, dict[str, Any]] = {topic: {} for topic in TOPICS}
    for name in botservice.__all__:
        value = getattr(botservice, name)
        by_topic[_topic(value)][name] = value
    for name, value in vars(botservice.testing).items():
        if not name.startswith("_") and getattr(value, "__module__", None) == botservice.testing.__name__:
            by_topic["testing"][name] = value
    pages = {}
    for topic, names in by_topic.items():
        if names:
            page = folder / f"{topic}.md"
            imported = "botservice.testing" if topic == "testing" else "botservice"
            page.write_text("\n".join(_page(TOPICS[topic], imported, names)))
            pages[TOPICS[topic]] = page
    return pages


def _topic(value: Any) -> str:
    parts = getattr(value, "__module__", "collections").split(".")
    part = parts[1] if parts[0] == "botservice" and len(parts) > 1 else parts[0]
    return part if part in TOPICS else _BELONGS.get(part, "service")


def _page(title: str, imported: str, names: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {title}\n\nImport these names from `{imported}`.\n"
    for name, value in sorted(names.items(), key=lambda pair: pair[0].lower()):
        yield f"## {name}\n"
        yield from _described(name, value)
        for member, what in _members(value):
            yield f"### {name}.{member}\n"
            yield from _described(member, what)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that a class defines itself, in their order."""
    if not inspect.isclass(value):
        return
    for name, member in vars(value).items():
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(member, property | classmethod)):
            yield name, member


def _described(name: str, value: Any) -> Iterator[str]:
    signature = _signature(name, value)
    if signature:
        yield f"```python\n{signature}\n```\n"
    made = vars(value).get("__init__") if inspect.isclass(value) else None
    for each in (value, made):
        text = None if each is None else getattr(each, "__doc__", None)
        if text and not text.startswith("Initialize self."):
            yield from _documented(inspect.cleandoc(text))


def _documented(text: str) -> Iterator[str]:
    parsed = docstring_parser.parse(text, style=docstring_parser.DocstringStyle.GOOGLE)
    for part in (parsed.short_description, parsed.long_description):
        if part:
            yield f"{part}\n"
    rows = [(each.args[0].capitalize(), each.arg_name, each.description) for each in parsed.params]
    rows += [("Raises", each.type_name or "", each.description) for each in parsed.raises]
    for kind in dict.fromkeys(row[0] for row in rows):
        yield f"| {_HEADS.get(kind, kind)} | |\n|---|---|"
        for row in rows:
            if row[0] == kind:
                yield f"| `{row[1]}` | {_cell(row[2])} |"
        yield ""
    if parsed.returns and parsed.returns.description:
        yield f"Returns: {parsed.returns.description}\n"


_HEADS = {"Param": "Argument", "Attribute": "Attribute"}


def _cell(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").replace("|", "\\|")


def _signature(name: str, value: Any) -> str:
    """Return how a name is called; nothing for what is not called."""
    if isinstance(value, property):
        return ""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not callable(function) or (inspect.isclass(value) and issubclass(value, BaseException)):
        return ""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    shown = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    shown = re.sub(r"\b(?:botservice|collections|typing|datetime)\.(?:\w+\.)*", "", shown).replace("'", "")
    returned = (
        "" if inspect.isclass(value) or signature.return_annotation is inspect.Signature.empty else _returned(signature)
    )
    prefix = "async def " if inspect.iscoroutinefunction(function) else "class " if inspect.isclass(value) else "def "
    text = f"{prefix}{name}{shown}{returned}"
    return text if len(text) <= 100 else _in_lines(prefix, name, parameters, returned)


def _returned(signature: inspect.Signature) -> str:
    written = inspect.formatannotation(signature.return_annotation)
    return " -> " + re.sub(r"\b(?:botservice|collections|typing|datetime)\.(?:\w+\.)*", "", written).strip("'")


def _in_lines(prefix: str, name: str, parameters: list[inspect.Parameter], returned: str) -> str:
    lines, is_keyword = [], False
    for each in parameters:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            lines.append("    *,")
            is_keyword = True
        written = re.sub(r"\b(?:botservice|collections|typing|datetime)\.(?:\w+\.)*", "", str(each)).replace("'", "")
        lines.append(f"    {written},")
    return "\n".join([f"{prefix}{name}(", *lines, f"){returned}"])
