"""`botservice eval`: cases of a file, and a past turn as the beginning of one."""

import json
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]

BOT = """
from botservice import *
llm = ScriptedChatLLM(lambda prompt: prompt[0]["content"])
service = AgentService(FunctionsBasedAgent(llm=llm, search_k=0, prompt="Be kind."))
"""
APP = ("--app", "bot_of_a_test:service")


def test_the_exit_code_says_whether_all_pass(run: Run) -> None:
    Path("bot_of_a_test.py").write_text(BOT)
    Path("cases.yaml").write_text("cases:\n- name: kindness\n  question: Hi\n  expect: {contains: kind}\n")
    code, said, error = run("eval", "cases.yaml", *APP)
    assert (code, error) == (0, "")
    assert "✓" in said
    assert "1 of 1 pass." in said
    Path("rude.txt").write_text("Be rude.\n")
    code, said, _ = run("eval", "cases.yaml", "--prompt", "rude.txt", *APP)
    assert code == 1
    assert "✗ does not contain 'kind'" in said
    assert "0 of 1 pass." in said


def test_what_came_can_be_read_by_programs(run: Run) -> None:
    Path("cases.yaml").write_text("cases:\n- question: Hi\n- question: What is my name?\n  expect: {contains: Ann}\n")
    code, said, _ = run("eval", "cases.yaml", "--json")
    told = json.loads(said)
    assert (code, told["passed"], told["failed"]) == (1, 1, 1)
    assert told["cases"][1]["failures"] == ["does not contain 'Ann'"]


def test_a_past_turn_becomes_a_case_that_needs_no_database(run: Run, monkeypatch) -> None:
    run("chat", typed=b"My dog is called Rex\nWhat is my dog called?\n")
    code, said, _ = run("eval", "--from", "terminal:default", "--turn", "2")
    assert code == 0
    assert "#   You told me on" in said
    Path("cases.yaml").write_text(said.replace("expect: {}", "expect: {contains: Rex}"))
    monkeypatch.setenv("DATABASE_URL", "sqlite:///nowhere/else.db")
    assert run("eval", "cases.yaml")[0] == 0


def test_past_turns_are_named_as_elsewhere(run: Run) -> None:
    run("chat", typed=b"My dog is called Rex\nWhat is my dog called?\n")
    Path("cases.yaml").write_text("cases:\n- {context: 'terminal:default', turns: [1, 2]}\n")
    code, said, _ = run("eval", "cases.yaml")
    assert code == 0
    assert "2 of 2 pass." in said
    Path("cases.yaml").write_text("cases:\n- {context: 'telegram:42', turn: 1}\n")
    assert "no context is meant by 'telegram:42'" in run("eval", "cases.yaml")[2]


def test_what_is_wrong_is_said_in_a_line(run: Run) -> None:
    assert "say one: FILE" in run("eval")[2]
    assert "--turn N" in run("eval", "--from", "1")[2]
    assert run("eval", "nowhere.yaml")[2] == "botservice: nowhere.yaml cannot be read: No such file or directory\n"
    Path("cases.yaml").write_text("cases:\n- question: Hi\n  expect: {judge: It is kind}\n")
    code, said, error = run("eval", "cases.yaml")
    assert (code, said) == (1, "")
    assert "set OPENAI_API_KEY" in error
    assert "OPENAI_API_KEY" in run("eval", "cases.yaml", "--model", "gpt-6-luna")[2]
