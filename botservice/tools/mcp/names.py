"""Names of servers' tools as a model may call them: unique, safe, and the same at every start."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

_UNSAFE: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST: Final = 64  # OpenAI API reference, function.name
_DIGEST: Final = 6


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
