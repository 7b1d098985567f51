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
from botservice.commands.web import web_command
from botservice.texts import DEFAULT_LANGUAGE, LANGUAGES, _texts, in_language

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "botservice/texts"
# What Python has in many languages for another reason than telling people: words to search by.
NO_TEXTS = (
    "botservice/search/",
    "botservice/agent/text_encodings.py",
)  # they tell languages, and encodings, by their letters
KEY = re.compile(r"""["\']([a-z_]+\.[a-z_]+)["\']""")
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_keeps_to_the_lengths_that_platforms_take(language: str) -> None:
    texts = texts_of(language)
    limits = {key: 100 for key in texts if key.endswith(".menu")}  # Bot API, BotCommand: 256; more is not read
    limits |= dict.fromkeys(("question.title", "question.submit", "question.close"), 24)  # Slack, views
    limits |= {key: 75 for key in texts if key.endswith("_button") or key in ("buttons.good", "buttons.bad")}
    assert {key: len(texts[key]) for key, limit in limits.items() if len(texts[key]) > limit} == {}


def test_a_language_has_words_of_its_own() -> None:
    for language in LANGUAGES:
        same = [key for key, text in texts_of(language).items() if text == ENGLISH[key] and language != "en"]
        assert len(same) < len(ENGLISH) / 20, same


def test_a_language_is_known_by_its_two_letters_however_they_are_written() -> None:
    assert in_language("forget.done", "DE-AT") == in_language("forget.done", "de") != in_language("forget.done", "en")
    assert in_language("forget.done", "tlh") == in_language("forget.done", None) == in_language("forget.done", "en")
    assert in_language("forget.done", "../en") == in_language("forget.done", "en")


@cache
def sources() -> dict[Path, str]:
    paths = sorted([*ROOT.glob("botservice/**/*.py"), *ROOT.glob("transports/**/*.py")])
    return {path: path.read_text(encoding="utf-8") for path in paths}


def test_every_text_is_asked_for() -> None:
    asked = {key for source in sources().values() for key in KEY.findall(source)}
    asked |= {f"{command.name}.menu" for command in (*standard_commands(), web_command(None))}
    assert set(ENGLISH) - asked == set()


def test_every_text_that_is_asked_for_is_there_and_gets_what_its_placeholders_want() -> None:
    askings = [(path, *asking) for path, source in sources().items() for asking in asked_in(source)]
    assert len(askings) > len(ENGLISH) / 2
    for path, key, given in askings:
        assert key in ENGLISH, path
        assert given == placeholders(ENGLISH[key]), (path, key)


def asked_in(source: str) -> Iterator[tuple[str, set[str | None]]]:
    """Yield the keys for which texts are asked, each with the names of the values that are given."""
    if "in_language" not in source and "say(" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args or any(each.arg is None for each in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("in_language", "say"):
            given = {each.arg for each in node.keywords} - {"language"}
            yield from ((key, given) for key in KEY.findall(ast.unparse(node.args[0]).replace("'", '"')))


def test_no_text_in_another_language_stands_in_python() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{word.lineno}"
        for path, source in sources().items()
        if OTHER_SCRIPTS.search(source) and not any(each in path.as_posix() for each in NO_TEXTS)
        for word in ast.walk(ast.parse(source))
        if isinstance(word, ast.Constant) and OTHER_SCRIPTS.search(str(word.value))
    ]
    assert found == []


def test_no_mapping_from_languages_to_texts_stands_in_python() -> None:
    found = [
        path.relative_to(ROOT)
        for path, source in sources().items()
        if re.search(r"""["'](de|ja)["']: ["']""", source) and not any(each in path.as_posix() for each in NO_TEXTS)
    ]
    assert found == []


def test_a_file_is_read_when_its_language_is_spoken_and_only_then() -> None:
    _texts.cache_clear()
    for language in ("it", "it-CH", "it"):
        in_language("forget.done", language)
    assert (_texts.cache_info().currsize, _texts.cache_info().misses) == (1, 1)
