"""The reference says what the code says: settings, commands, metrics, routes."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from botservice.commands.standard import standard_commands

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)
PAGE = (ROOT / "docs" / "reference.md").read_text()
_ROUTE = re.compile(r"\bRoute\(\s*(\"[^\"]+\"|[A-Z_]+)")
_OF_PAGES = "/web/"


@pytest.mark.parametrize("path", reference.PARTS)
def test_the_generated_parts_of_a_page_say_what_the_code_says(path):
    text = (ROOT / path).read_text()
    assert text == reference.written(path, text), "run scripts/reference.py"


def test_the_example_of_settings_says_what_the_code_says():
    assert (ROOT / ".env.example").read_text() == reference.env_example(), "run scripts/reference.py"


def test_every_setting_has_a_text_below_it():
    assert [each.name for each in reference.settings() if not each.meaning] == []


def test_a_page_whose_part_is_out_of_date_is_written_again():
    text = "a\n<!-- generated: metrics -->\n\nof yesterday\n\n<!-- end: metrics -->\nb\n"
    new = reference.written("docs/monitoring.md", text)
    assert "of yesterday" not in new
    assert "`botservice_turns_total`" in new
    assert (new[:2], new[-2:]) == ("a\n", "b\n")


def test_every_command_of_the_chat_is_in_the_reference():
    named = set(re.findall(r"`/(\w+)", PAGE))
    assert [each.name for each in standard_commands() if each.name not in named] == []


def routes():
    """Yield the paths of the web server as the code writes them, but for those that only its pages use."""
    for file in (*(ROOT / "botservice" / "server").glob("*.py"), *(ROOT / "transports").rglob("*.py")):
        for found in _ROUTE.findall(file.read_text()):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            path = found.strip('"') if found.startswith('"') else getattr(importlib.import_module(module), found)
            if not path.startswith(_OF_PAGES):
                yield path


def test_every_route_is_in_the_reference():
    written = {re.sub(r"[A-Z]+", "*", each) for each in re.findall(r"(?:GET|POST) (/[^\s`?]*)", PAGE)}
    known = {re.sub(r"\{\w+(?::\w+)?\}", "*", each) for each in routes()}
    assert len(known) > 15
    missing = [each for each in sorted(known) if each not in written and not each.endswith("/steps/*/*")]
    assert missing == []
