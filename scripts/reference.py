"""Write the parts of the documents that the code says, and .env.example: `scripts/reference.py` after a change.

The settings come from the texts below their fields, the commands from typer, the metrics from their registry, the
places from tests/people/places.py. A test fails while a part is out of date.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase
from pydantic import SecretStr

from botservice.cli.main import cli
from botservice.config import settings as module
from botservice.config.settings import Settings
from botservice.telemetry.metrics import Metrics

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from people.places import PLACES

ROOT: Final = Path(__file__).parents[1]
_KEPT: Final = "sqlite:///botservice.db"  # the one value that .env.example sets
_SHARED: Final = {"--app", "--json"}
_DEFAULT: Final = " Default: "
_SEE: Final = " See "  # a page, at the end of a text


class Setting(NamedTuple):
    """A setting as its class describes it."""

    name: str
    group: str
    meaning: str
    default: str


def settings() -> Iterator[Setting]:
    """Yield every setting in the order of the code, under the comment that begins its group."""
    source = Path(module.__file__).read_text()
    lines, group = source.splitlines(), ""
    for each in ast.parse(source).body:
        if not isinstance(each, ast.ClassDef) or each.name not in ("ModelSettings", "Settings"):
            continue
        for field, below in zip(each.body, [*each.body[1:], None], strict=True):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            above = lines[field.lineno - 2].strip()
            group = above.removeprefix("# ") if above.startswith("# ") else group
            text = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
            name = field.target.id
            meaning, _, default = " ".join(str(text).split()).partition(_DEFAULT)
            yield Setting(name.upper(), group, meaning, default.rstrip(".") or _value(name))


def _value(name: str) -> str:
    """Return the default of a field as people write it."""
    value = Settings.model_fields[name].get_default(call_default_factory=True)
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    if isinstance(value, StrEnum):
        return f"`{value.value}`"
    if isinstance(value, tuple | frozenset):
        return f"`{', '.join(map(str, value))}`" if value else "none"
    return (
        "none"
        if value is None or isinstance(value, SecretStr)
        else f"`{value:g}`"
        if isinstance(value, float)
        else f"`{value}`"
    )


def settings_tables() -> str:
    """Return a table for each group of settings."""
    parts: dict[str, list[str]] = {}
    for each in settings():
        meaning, _, page = each.meaning.partition(_SEE)
        name = f"[`{each.name}`]({page.removeprefix('docs/')})" if page else f"`{each.name}`"
        row = f"| {name} | {_with_code(meaning)} | {_with_code(each.default)} |"
        parts.setdefault(each.group, []).append(row)
    head = "| setting | meaning | default |\n|---|---|---|"
    return "\n\n".join(f"### {group}\n\n{head}\n" + "\n".join(rows) for group, rows in parts.items())


def _with_code(text: str) -> str:
    """Return a text with names and addresses as code."""
    return re.sub(
        r"(?<![`\w/(])([A-Z]+_[A-Z_]+|https?://[^\s;,]+|/(?:metrics|export|web|healthz|readyz)\b)(?![`\w])",
        r"`\1`",
        text,
    )


def env_example() -> str:
    """Return .env.example: every setting, empty but for the database, below the first sentence about it."""
    lines = ["# Copy this file to .env and fill in what you have. An empty line is an unset one."]
    group = ""
    for each in settings():
        if each.group != group:
            group = each.group
            lines += ["", f"# --- {group} ---"]
        value = _KEPT if each.name == "DATABASE_URL" else ""
        lines += [f"# {each.meaning}", f"{each.name}={value}"]
    return "\n".join(lines) + "\n"


def commands_table() -> str:
    """Return a row for each command: how it is called, and what it and its options do."""
    rows = [f"| {usage} | {text} |" for usage, text in _commands(typer.main.get_command(cli), "botservice")]
    return "\n".join(["| command | effect |", "|---|---|", *rows])


def _commands(command: Any, name: str) -> Iterator[tuple[str, str]]:
    for part, each in getattr(command, "commands", {}).items():
        called = f"{name} {part}"
        shown = [parameter for parameter in each.params if not getattr(parameter, "hidden", False)]
        usage = " ".join([called, *(_usage(one) for one in shown if one.param_type_name == "argument")])
        options = [_described(one) for one in shown if one.param_type_name == "option"]
        text = "<br>".join([" ".join((each.help or "").split()), *options])
        yield f"`{usage}`".replace("|", "\\|"), text.replace("|", "\\|")
        yield from _commands(each, called)


def _usage(parameter: Any) -> str:
    written = _written(parameter)
    return written if parameter.required else f"[{written}]"


def _written(parameter: Any) -> str:
    """Return an option or an argument as a command line has it; a flag that is on is written as its opposite."""
    metavar = (parameter.metavar or parameter.name.upper()).strip("[]")
    if parameter.param_type_name == "argument":
        return metavar
    name = parameter.secondary_opts[0] if parameter.secondary_opts and parameter.default else parameter.opts[0]
    return str(name) if parameter.is_flag else f"{name} {metavar}"


def _described(option: Any) -> str:
    """Return an option with what it does, unless the page says so once for every command."""
    text = str(option.help).rstrip(".")
    inner = text if text[1:2].isupper() else text[0].lower() + text[1:]
    return f"`{_written(option)}`" if option.opts[0] in _SHARED else f"`{_written(option)}`: {inner}"


def metrics_table() -> str:
    """Return a row for each metric of this service."""
    rows = ["| name | meaning | labels |", "|---|---|---|"]
    collectors: list[Any] = list(Metrics("").registry._collector_to_names)  # noqa: SLF001 - it is the only list
    for metric in collectors:
        if isinstance(metric, MetricWrapperBase):
            (family,) = metric.describe()
            name = f"{family.name}_total" if isinstance(metric, Counter) else family.name
            labels = ", ".join(f"`{each}`" for each in vars(metric)["_labelnames"])
            rows.append(f"| `{name}` | {family.documentation.rstrip('.')} | {labels} |")
    return "\n".join(rows)


def places_table() -> str:
    """Return a row for each place that can hold something of a person."""
    rows = ["| place | content | deleted |", "|---|---|---|"]
    for each in PLACES:
        name = f"{each.where}: {', '.join(each.columns)}" if each.columns else each.where
        rows.append(f"| {name} | {each.holds} | {each.goes} |")
    return "\n".join(rows)


PARTS: Final[dict[str, dict[str, Callable[[], str]]]] = {
    "docs/reference.md": {"settings": settings_tables, "commands": commands_table},
    "docs/monitoring.md": {"metrics": metrics_table},
    "docs/stored-data.md": {"places": places_table},
}


def written(path: str, text: str) -> str:
    """Return a document with its generated parts as the code says them now."""
    for name, make in PARTS[path].items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->\n"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{make()}\n\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    """Write every part that changed, and say which file it is in."""
    files = {path: written(path, (ROOT / path).read_text()) for path in PARTS} | {".env.example": env_example()}
    for path, text in files.items():
        if (ROOT / path).read_text() != text:
            (ROOT / path).write_text(text)
            sys.stdout.write(f"{path} is written again\n")


if __name__ == "__main__":
    main()
