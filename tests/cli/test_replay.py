"""`botservice replay`: finding a past turn, and asking it again."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

BOT = """
from botservice import *
def note(name, text):
    with open(name, "a") as file:
        file.write(text)
def add(a: int, b: int) -> int:
    \"\"\"Add two numbers.\"\"\"
    note("ran.txt", f"{a}+{b} ")
    return a + b
def reply(prompt):
    note("prompts.txt", prompt[0]["content"] + "|")
    if "fail" in str(prompt[-1]["content"]) and "try harder" not in prompt[0]["content"]:
        raise LLMError("no", is_transient=False)
    if prompt[-1]["role"] == "tool":
        return "It is " + prompt[-1]["content"]
    return ToolCall("c", "add", {"a": 2, "b": 3}) if "2 + 3" in prompt[-1]["content"] else "Yes."
service = AgentService(FunctionsBasedAgent([add], ScriptedChatLLM(reply), search_k=0, prompt="Be kind."))
"""
APP = ("--app", "bot_of_a_test:service")


@pytest.fixture
def talked(run: Run) -> Run:
    """A conversation of three turns, of which the second failed."""
    Path("bot_of_a_test.py").write_text(BOT)
    assert run("chat", *APP, typed=b"What is 2 + 3?\nfail, please\nand now?\n")[0] == 0
    return run


def test_the_newest_turn_is_shown_without_its_number(talked: Run) -> None:
    code, said, _ = talked("replay", "--last")
    assert code == 0
    assert "Turn 3" in said
    assert "and now?" in said
    assert "Turn 1" not in said


def test_the_newest_turn_that_failed_is_shown(talked: Run) -> None:
    assert "Turn 2" in talked("replay", "--failed")[1]
    assert "Turn 2" in talked("replay", "1", "--failed")[1]


def test_where_no_turn_failed_that_is_said(run: Run) -> None:
    assert run("replay", "--failed") == (1, "", "botservice: no turn has failed\n")
    assert run("replay", "--last") == (1, "", "botservice: there is no turn\n")


def test_which_turn_is_said_in_one_way(talked: Run) -> None:
    assert "say one of" in talked("replay", "1", "--turn", "1", "--last")[2]
    assert "say which conversation" in talked("replay")[2]
    assert "say which turn" in talked("replay", "1", "--again", *APP)[2]
    assert "--again" in talked("replay", "1", "--prompt", "p.txt")[2]


def test_both_answers_stand_side_by_side_and_no_tool_ran_again(talked: Run) -> None:
    code, said, error = talked("replay", "1", "--turn", "1", "--again", *APP)
    assert (code, error) == (0, "")
    assert said.count("It is 5") == 2
    assert "Both answers are the same." in said
    assert Path("ran.txt").read_text() == "2+3 "


def test_a_failed_turn_is_tried_with_another_prompt(talked: Run) -> None:
    Path("prompt.txt").write_text("try harder\n")
    code, said, _ = talked("chat", *APP, typed=b"fail again\n")
    code, said, _ = talked("replay", "--failed", "--again", "--prompt", "prompt.txt", "--json", *APP)
    assert code == 0
    told = json.loads(said)
    assert (told["turn"], told["again"]["text"], told["changed"]) == (4, "Yes.", ["another prompt"])
    assert told["then"]["error"].startswith("there is no answer")
    code, said, _ = talked("replay", "1", "--turn", "2", "--again", *APP)
    assert code == 1


def test_an_answer_that_does_not_come_is_an_exit_code(talked: Run) -> None:
    Path("bot_of_a_test.py").write_text(BOT.replace('"Yes."', 'LLMError("the server is down")'))
    del sys.modules["bot_of_a_test"]
    code, said, _ = talked("replay", "--last", "--again", *APP)
    assert code == 1
    assert "the server is down" in " ".join(said.split())


def test_the_prompt_is_printed_edited_and_asked_with(talked: Run) -> None:
    Path("prompts.txt").unlink()
    messages = json.loads(talked("replay", "--last", "--again", "--show-prompt", *APP)[1])
    assert not Path("prompts.txt").exists()
    messages[0]["content"] = "Edited."
    Path("messages.json").write_text(json.dumps(messages))
    told = json.loads(talked("replay", "--last", "--again", "--messages", "messages.json", "--json", *APP)[1])
    assert told["changed"] == ["other messages"]
    assert Path("prompts.txt").read_text() == "Edited.|"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("{", "no JSON"),
        ("[]", "must be a JSON list"),
        ('[{"role": "user", "content": "a"}, {"role": "boss", "content": "b"}]', "message 2"),
        ('[{"role": "user"}]', "message 1: a message has a content"),
    ],
)
def test_messages_that_are_none_are_named(talked: Run, text: str, remedy: str) -> None:
    Path("messages.json").write_text(text)
    code, _, error = talked("replay", "--last", "--again", "--messages", "messages.json", *APP)
    assert code == 1
    assert remedy in error


def test_a_file_that_is_not_there_is_named(talked: Run) -> None:
    code, _, error = talked("replay", "--last", "--again", "--prompt", "nowhere.txt", *APP)
    assert (code, error) == (1, "botservice: nowhere.txt cannot be read: No such file or directory\n")


def test_another_model_needs_a_server(talked: Run) -> None:
    code, _, error = talked("replay", "--last", "--again", "--model", "gpt-6-luna", *APP)
    assert code == 1
    assert "OPENAI_API_KEY" in error


def test_the_demo_is_asked_again_without_any_key(run: Run) -> None:
    run("chat", typed=b"My dog is called Rex\nWhat is my dog called?\n")
    code, said, _ = run("replay", "--last", "--again")
    assert code == 0
    assert said.count("Rex") >= 2
    code, said, _ = run("replay", "--last", "--again", "--without", "found")
    assert said.count("Rex") == 1
