"""Every regular expression of the service, and texts on which a careless one would take quadratic time or worse."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]  # what `re` itself is made of
from types import ModuleType

import botservice
import transports

LENGTH = 16_000
_CALLS = ("compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer")
_NOT_IMPORTED = ("botservice.storage.migrations", "botservice.__main__")
_RUNS = (" ", "a", "0", "<", ".", "-", "\n")


def rooms() -> list[str]:
    """Return the names of what both packages are made of."""
    return [
        f"{package.__name__}.{found.name}"
        for package in (botservice, transports)
        for found in pkgutil.iter_modules(package.__path__)
    ]


def modules(room: str) -> Iterator[ModuleType]:
    """Yield a module and all that are below it."""
    if not room.startswith(_NOT_IMPORTED):
        yield (module := importlib.import_module(room))
        for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
            yield from modules(f"{room}.{found.name}")


def patterns(room: str) -> dict[str, re.Pattern[str] | re.Pattern[bytes]]:
    """Return every pattern that is kept in a module, or written where it is used, by where it stands."""
    found: dict[str, re.Pattern[str] | re.Pattern[bytes]] = {}
    for module in modules(room):
        for name, value in vars(module).items():
            for number, each in enumerate(_patterns_in(value)):
                found[f"{module.__name__}.{name}[{number}]"] = each
        for line, text in _written_in(Path(str(module.__file__))):
            found[f"{module.__name__}:{line}"] = re.compile(text)
    return found


def unread_calls() -> list[str]:
    """Return the places where a pattern is made of what is only known when it runs, outside of any module's top."""
    return [
        f"{module.__name__}:{call.lineno}"
        for room in rooms()
        for module in modules(room)
        for call in _calls(Path(str(module.__file__)))
        if not isinstance(call.args[0], ast.Constant) and call.col_offset > 0 and _is_inside_function(module, call)
    ]


def is_only_matched(name: str) -> bool:
    """Return whether a kept pattern is used from a text's beginning alone, and never searched for."""
    module, _, attribute = name.partition("[")[0].rpartition(".")
    if not attribute or ":" in name:
        return False
    source = Path(str(importlib.import_module(module).__file__)).read_text(encoding="utf-8")
    used = set(re.findall(rf"\b{re.escape(attribute)}\b(?:\.(\w+))?", source)) - {""}
    return bool(used) and used <= {"match", "fullmatch"}


def hostile_texts(pattern: re.Pattern[str] | re.Pattern[bytes], length: int = LENGTH) -> Iterator[str]:
    """Yield texts that begin again and again as the pattern does, and never end as it wants."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    samples = [each for each in _samples(_parser.parse(source, pattern.flags & ~re.DEBUG)) if each][:3]
    starts = {"", *(sample[:size] for sample in samples for size in (2, len(sample)))}
    runs = {*_RUNS, *(sample[-1] for sample in samples)}
    for start in sorted(starts):
        if start:
            yield (start * (length // len(start) + 1))[:length]
        for run in runs:
            yield start + run * (length - len(start)) + "\x00"


def _patterns_in(value: object) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _patterns_in(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _patterns_in(each)


def _calls(path: Path) -> Iterator[ast.Call]:
    source = path.read_text(encoding="utf-8")
    if not re.search(r"\bre\s*\.", source):  # most modules: parsing them all takes seconds
        return
    for node in ast.walk(ast.parse(source)):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS
        if is_call and isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args:
            yield node


def _written_in(path: Path) -> Iterator[tuple[int, str]]:
    for call in _calls(path):
        is_kept = isinstance(call.func, ast.Attribute) and call.func.attr == "compile"  # and found in its module
        if not is_kept and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str):
            yield call.lineno, call.args[0].value


def _is_inside_function(module: ModuleType, call: ast.Call) -> bool:
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(node.lineno <= call.lineno <= (node.end_lineno or 0) for node in functions)


def _samples(parsed: object) -> list[str]:
    """Return a few texts that fit a pattern, each of its alternatives once."""
    texts = [""]
    for operation, argument in parsed:  # type: ignore[attr-defined]
        options = _options(operation, argument)
        texts = [text + option for text in texts for option in options][:40]
    return texts


def _options(operation: object, argument: object) -> list[str]:  # noqa: PLR0911 - one for each operation
    if operation is _constants.LITERAL:
        return [chr(argument)]  # type: ignore[arg-type]
    if operation is _constants.NOT_LITERAL:
        return ["a" if argument != ord("a") else "b"]
    if operation is _constants.ANY:
        return ["a"]
    if operation is _constants.IN:
        return _members(argument)
    if operation is _constants.BRANCH:
        return [text for branch in argument[1] for text in _samples(branch)][:40]  # type: ignore[index]
    if operation is _constants.SUBPATTERN:
        return _samples(argument[-1])  # type: ignore[index]
    if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
        least, _, inner = argument  # type: ignore[misc]
        return [text * max(least, 1) for text in _samples(inner)][:6]
    return [""]


def _members(items: object) -> list[str]:
    if items[0][0] is _constants.NEGATE:  # type: ignore[index]
        return ["a", "b", " "]
    found = []
    for kind, value in items:  # type: ignore[attr-defined]
        if kind is _constants.LITERAL:
            found.append(chr(value))
        elif kind is _constants.RANGE:
            found.append(chr(value[0]))
        elif kind is _constants.CATEGORY:
            found.append({"CATEGORY_SPACE": " ", "CATEGORY_DIGIT": "0"}.get(str(value), "a"))
    return found[:4] or ["a"]
