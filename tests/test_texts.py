"""The files of texts: every language says everything, with the same placeholders; the code asks for nothing else."""

import ast
import re
import string
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from botservice.commands.links import web_command
from botservice.commands.standard import standard_commands
from botservice.texts import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    _locale,
    _texts,
    in_language,
    number_in_language,
    time_in_language,
)
from botservice.texts.formatted import say

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "botservice/texts"
# What Python has in many languages for another reason than telling people: words to search by.
NO_TEXTS = (
    "botservice/search/",
    "botservice/agent/text_encodings.py",
)  # they tell languages, and encodings, by their letters


def has_no_texts(path: Path) -> bool:
    """Return whether a module of other scripts tells nobody anything."""
    return path.relative_to(ROOT).as_posix().startswith(NO_TEXTS)


KEY = re.compile(r"""["\']([a-z_]+\.[a-z_]+)["\']""")
OTHER_SCRIPTS = re.compile("[\u00c0-\u024f\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


GLOSSARY = "glossary"
TYPED = re.compile(r"`[^`]*`|/[a-z]+(?: (?:message|chat|me|show|delete|correct|share|unshare|confirm|last|off|all)\b)*")


def forms_of(language: str) -> dict[str, dict[str, str]]:
    """Return the texts of a language by their keys, each with its plural forms; one without has the form ""."""
    tables = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return {
        f"{table}.{name}": {"": text} if isinstance(text, str) else text
        for table, names in tables.items()
        for name, text in names.items()
        if table != GLOSSARY
    }


def texts_of(language: str) -> dict[str, str]:
    """Return every text and every plural form of a language."""
    forms = forms_of(language)
    return {f"{key}.{form}".strip("."): text for key, each in forms.items() for form, text in each.items()}


def glossary_of(language: str) -> dict[str, list[str]]:
    terms: dict[str, list[str]] = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))[GLOSSARY]
    return terms


ENGLISH = forms_of(DEFAULT_LANGUAGE)


def placeholders(*texts: str) -> set[str | None]:
    return {name for text in texts for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_says_everything_in_the_order_of_the_others(language: str) -> None:
    assert list(forms_of(language)) == list(ENGLISH)
    assert [key for key, text in texts_of(language).items() if not text.strip(" \n")] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_has_the_placeholders_of_the_english_one_and_they_are_plain_names(language: str) -> None:
    found = {key: placeholders(*forms.values()) for key, forms in forms_of(language).items()}
    assert found == {key: placeholders(*forms.values()) for key, forms in ENGLISH.items()}
    assert all(name.isidentifier() for names in found.values() for name in names if name is not None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_that_counts_has_a_form_for_every_number_that_people_meet(language: str) -> None:
    needed = {_locale(language).plural_form(number) for number in range(1_000)}
    counting = {key: forms for key, forms in forms_of(language).items() if "" not in forms}
    assert counting.keys() == {key for key, forms in ENGLISH.items() if "" not in forms}
    assert {key: forms.keys() for key, forms in counting.items() if forms.keys() != needed} == {}
    for key, forms in counting.items():
        for form, text in forms.items():
            left_out = placeholders(*forms.values()) - placeholders(text)
            assert left_out <= ({"count"} if form == "one" else set()), (key, form)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_keeps_to_the_lengths_that_platforms_take(language: str) -> None:
    texts = texts_of(language)
    limits = {key: 100 for key in texts if key.endswith(".menu")}  # Bot API, BotCommand: 256; more is not read
    limits |= dict.fromkeys(("question.title", "question.submit", "question.close"), 24)  # Slack, views
    limits |= {key: 75 for key in texts if key.endswith("_button") or key in ("buttons.good", "buttons.bad")}
    assert {key: len(texts[key]) for key, limit in limits.items() if len(texts[key]) > limit} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_uses_its_words_for_the_terms_of_the_product(language: str) -> None:
    terms, own = glossary_of(DEFAULT_LANGUAGE), glossary_of(language)
    assert own.keys() == terms.keys()
    wrong = [
        (key, term)
        for term in terms
        for key, forms in ENGLISH.items()
        if re.search(rf"(?<![{{\w]){term}s?(?![}}\w])", TYPED.sub("", forms.get("other", forms.get("", ""))).lower())
        for text in forms_of(language)[key].values()
        if not any(word in text.casefold() for word in own[term])
    ]
    assert wrong == []


def test_a_number_selects_the_plural_form_and_is_written_as_people_write_it() -> None:
    assert [in_language("forgotten.messages", "en", count=each) for each in (0, 1, 2)] == [
        "0 messages",
        "1 message",
        "2 messages",
    ]
    assert [in_language("forgotten.messages", "ru", count=each).split()[1] for each in (1, 2, 5, 11, 21, 104)] == [
        "сообщение",
        "сообщения",
        "сообщений",
        "сообщений",
        "сообщение",
        "сообщения",
    ]
    assert in_language("forgotten.messages", "de-AT", count=1234) == "1.234 Nachrichten"
    assert in_language("forgotten.messages", "fr", count=1_000_000) == "1\u202f000\u202f000 messages"
    assert say("approval.ask_many", "pl", count=1200, who="Ann").plain == "May I do these 1,200 actions for Ann?"
    assert number_in_language(1234.5, "de", places=2) == "1.234,50"


NOW = datetime(2026, 12, 30, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("after", "zone", "language", "said"),
    [
        (timedelta(hours=1), None, "en", "today, 23:30 UTC"),
        (timedelta(hours=1), "Europe/Berlin", "de", "morgen, 00:30"),
        (timedelta(hours=1), "Asia/Tokyo", "ja", "今日 8:30"),
        (timedelta(hours=-23), "America/New_York", "en", "yesterday, 18:30"),
        (timedelta(days=-3), "Europe/Madrid", "es", "27 dic, 23:30"),
        (timedelta(days=2), None, "en", "Jan 1, 2027, 22:30 UTC"),
    ],
)
def test_a_time_is_that_of_the_reader_and_near_days_have_names(
    after: timedelta, zone: str | None, language: str, said: str
) -> None:
    assert time_in_language(NOW + after, language, now=NOW, zone=None if zone is None else ZoneInfo(zone)) == said


def test_a_language_has_words_of_its_own() -> None:
    for language in LANGUAGES:
        same = [key for key, forms in forms_of(language).items() if forms == ENGLISH[key] and language != "en"]
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
    templates = [path.read_text(encoding="utf-8") for path in ROOT.glob("transports/**/*.html")]
    asked = {key for source in (*sources().values(), *templates) for key in KEY.findall(source)}
    asked |= {f"{command.name}.menu" for command in (*standard_commands(), web_command(None))}
    assert set(ENGLISH) - asked == set()


def test_every_text_that_is_asked_for_is_there_and_gets_what_its_placeholders_want() -> None:
    askings = [(path, *asking) for path, source in sources().items() for asking in asked_in(source)]
    assert len(askings) > len(ENGLISH) / 2
    for path, key, given in askings:
        assert key in ENGLISH, path
        assert given == placeholders(*ENGLISH[key].values()), (path, key)


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
        if OTHER_SCRIPTS.search(source) and not has_no_texts(path)
        for word in ast.walk(ast.parse(source))
        if isinstance(word, ast.Constant) and OTHER_SCRIPTS.search(str(word.value))
    ]
    assert found == []


def test_each_exception_is_still_needed() -> None:
    exempt = [path.relative_to(ROOT).as_posix() for path, source in sources().items() if OTHER_SCRIPTS.search(source)]
    assert [each for each in NO_TEXTS if not any(path.startswith(each) for path in exempt)] == []


def test_no_mapping_from_languages_to_texts_stands_in_python() -> None:
    found = [
        path.relative_to(ROOT)
        for path, source in sources().items()
        if re.search(r"""["'](de|ja)["']: ["']""", source) and not has_no_texts(path)
    ]
    assert found == []


def test_a_file_is_read_when_its_language_is_spoken_and_only_then() -> None:
    _texts.cache_clear()
    for language in ("it", "it-CH", "it"):
        in_language("forget.done", language)
    assert (_texts.cache_info().currsize, _texts.cache_info().misses) == (1, 1)
