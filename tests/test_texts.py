"""The files of texts: every language says everything, with the same placeholders; the code asks for nothing else."""

import ast
import re
import string
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from botservice.commands.standard import standard_commands
from botservice.texts import DEFAULT_LANGUAGE, LANGUAGES, in_language

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "botservice/texts"
# What Python has in many languages for another reason than telling people: words to search by, and words around facts.
NO_TEXTS = ("history/ranking", "people/wording_texts.py")
KEY = re.compile(r"[a-z_]+\.[a-z_]+")
OTHER_SCRIPTS = re.compile("[\u00c0-\u024f\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


def texts_of(language: str) -> dict[str, str]:
    tables = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return {f"{table}.{name}": text for table, names in tables.items() for name, text in names.items()}


ENGLISH = texts_of(DEFAULT_LANGUAGE)


def placeholders(text: str) -> set[str | None]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_says_everything_in_the_order_of_the_others(language: str) -> None:
    assert list(texts_of(language)) == list(ENGLISH)
    assert [key for key, text in texts_of(language).items() if not text.strip(" \n")] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_has_the_placeholders_of_the_english_one_and_they_are_plain_names(language: str) -> None:
    found = {key: placeholders(text) for key, text in texts_of(language).items()}
    assert found == {key: placeholders(text) for key, text in ENGLISH.items()}
    assert all(name.isidentifier() for names in found.values() for name in names if name is not None)


def test_a_language_has_words_of_its_own() -> None:
    for language in LANGUAGES:
        same = [key for key, text in texts_of(language).items() if text == ENGLISH[key] and language != "en"]
        assert len(same) < len(ENGLISH) / 20, same


def test_a_language_is_known_by_its_two_letters_however_they_are_written() -> None:
    assert in_language("forget.done", "DE-AT") == in_language("forget.done", "de") != in_language("forget.done", "en")
    assert in_language("forget.done", "tlh") == in_language("forget.done", None) == in_language("forget.done", "en")
    assert in_language("forget.done", "../en") == in_language("forget.done", "en")


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    paths = sorted([*ROOT.glob("botservice/**/*.py"), *ROOT.glob("transports/**/*.py")])
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def words(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings of a module, but the names of events in its log."""
    of_log = {
        id(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "logger"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in of_log:
            yield node


def test_every_text_is_asked_for() -> None:
    asked = {word.value for _, tree in trees() for word in words(tree)}
    asked |= {f"{command.name}.menu" for command in standard_commands()}
    assert set(ENGLISH) - asked == set()


def test_every_text_that_is_asked_for_is_there_and_gets_what_its_placeholders_want() -> None:
    askings = [(path, key, given) for path, tree in trees() for key, given in asked_in(tree)]
    assert len(askings) > len(ENGLISH) / 2
    for path, key, given in askings:
        assert key in ENGLISH, path
        assert given == placeholders(ENGLISH[key]), (path, key)


def asked_in(tree: ast.AST) -> Iterator[tuple[str, set[str | None]]]:
    """Yield the keys for which texts are asked, each with the names of the values that are given."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or any(each.arg is None for each in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("in_language", "say"):
            for key in ast.walk(node.args[0]):
                if isinstance(key, ast.Constant) and KEY.fullmatch(str(key.value)):
                    yield key.value, {each.arg for each in node.keywords}


def test_no_text_in_another_language_stands_in_python() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{word.lineno}"
        for path, tree in trees()
        if not any(each in path.as_posix() for each in NO_TEXTS)
        for word in words(tree)
        if len(OTHER_SCRIPTS.findall(word.value)) > 1
    ]
    assert found == []


def test_no_mapping_from_languages_to_texts_stands_in_python() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees()
        if not any(each in path.as_posix() for each in NO_TEXTS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict) and {"en", "de"} <= {getattr(key, "value", None) for key in node.keys}
    ]
    assert found == []


def test_a_file_is_read_when_its_language_is_spoken_and_not_before() -> None:
    import subprocess
    import sys

    code = "import botservice.texts as t, botservice.cli; print(t._texts.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "0"
