"""Which module writes which table, as its source says."""

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Table

from botservice.storage import tables

ROOT = Path(__file__).parents[2]
ANY = "any table"  # written by its name, or by what it is called with from elsewhere
_WRITES = {"insert", "update", "delete"}
_MAY_WRITE = re.compile(r"storage\.tables|\b(?:insert|update|delete)\(")  # the rest names no table
_IN_WORDS = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM|COPY|TRUNCATE(?: TABLE)?)\s+(\w+)")


def _named_tables() -> dict[str, str]:
    modules = [
        importlib.import_module(f"{tables.__name__}.{each.name}") for each in pkgutil.iter_modules(tables.__path__)
    ]
    found = {name: value for module in modules for name, value in vars(module).items() if isinstance(value, Table)}
    return {name: table.name for name, table in found.items()}


TABLES = _named_tables()


class Module:
    """One file: what it writes itself, and what it has others write by handing them a table."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text())
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def written(self) -> Iterator[str]:
        """Yield the tables that are written here, and ANY for one that is not named here."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _written_in_words(node.value)
            elif (table := _table_of(node)) is not None:
                yield from self._meant(node, table)

    def handed_over(self, writers: set[str]) -> Iterator[str]:
        """Yield the tables that functions which write what they are given are called with here."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in writers:
                yield from _named_in(*node.args)

    def writers(self) -> Iterator[str]:
        """Yield the functions here that write a table which they are given."""
        for node in ast.walk(self.tree):
            table = _table_of(node)
            if table is not None and not _named_in(table):
                function = self._function_around(node)
                if function is not None and _root(table) in {each.arg for each in function.args.args}:
                    yield function.name

    def _meant(self, node: ast.AST, table: ast.expr) -> set[str]:
        if named := _named_in(table):
            return named
        name = _root(table)
        around = node
        while (around := self._parents.get(around)) is not None:
            loops = [around] if isinstance(around, ast.For) else getattr(around, "generators", [])
            for loop in loops:
                if name in {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}:
                    return self._looped_over(loop.iter) or {ANY}
        function = self._function_around(node)
        is_given = function is not None and name in {each.arg for each in function.args.args}
        return set(self.handed_over({function.name})) or {ANY} if is_given else {ANY}

    def _looped_over(self, loop: ast.expr) -> set[str]:
        if named := _named_in(loop):
            return named
        constants = [each for each in self.tree.body if isinstance(each, ast.Assign | ast.AnnAssign)]
        names = {each.id for each in ast.walk(loop) if isinstance(each, ast.Name)}
        values = [each.value for each in constants if each.value is not None and _names_of(each) & names]
        return _named_in(*values)

    def _function_around(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        while (node := self._parents.get(node)) is not None:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                return node
        return None


def _written_in_words(sql: str) -> set[str]:
    return set(TABLES.values()).intersection(_IN_WORDS.findall(sql))


def _table_of(node: ast.AST) -> ast.expr | None:
    """Return what a statement that writes is about: of `insert(turns)` and of `turns.insert()`, `turns`."""
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Name) and function.id in _WRITES:
        return node.args[0]
    if not isinstance(function, ast.Attribute) or function.attr not in _WRITES:
        return None
    if _named_in(function.value):
        return function.value
    is_of_a_dialect = "dialect" in ast.unparse(function.value).lower()
    return node.args[0] if node.args and (is_of_a_dialect or _named_in(node.args[0])) else None


def _named_in(*nodes: ast.expr) -> set[str]:
    names = {each.id for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name)}
    return {TABLES[name] for name in names if name in TABLES}


def _names_of(node: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {each.id for each in targets if isinstance(each, ast.Name)}


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def find_writers() -> dict[str, set[str]]:
    """Return for each table the modules and files of SQL that write it; migrations, which make it, are left out."""
    paths = [path for room in ("botservice", "transports") for path in (ROOT / room).rglob("*.py")]
    written = [path for path in paths if "migrations" not in path.parts and _MAY_WRITE.search(path.read_text())]
    modules = {str(path.relative_to(ROOT)): Module(path) for path in written}
    public = {name for module in modules.values() for name in module.writers() if not name.startswith("_")}
    found: dict[str, set[str]] = defaultdict(set)
    for path, module in modules.items():
        for table in {*module.written(), *module.handed_over(public)}:
            found[table].add(path)
    for path in (ROOT / "botservice").rglob("*.sql"):
        for table in _written_in_words(path.read_text()):
            found[table].add(str(path.relative_to(ROOT)))
    return found
