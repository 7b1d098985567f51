"""The harness of LongMemEval and BEAM: it reads their files as published, and judges answers by a model."""

import importlib.util
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standins.openai_api import OpenAIApi

from botservice import ScriptedChatLLM
from botservice.config.settings import Settings

_PATH = Path(__file__).parents[2] / "benchmarks" / "longmem.py"


@pytest.fixture(scope="module")
def longmem():
    spec = importlib.util.spec_from_file_location("longmem", _PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["longmem"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["longmem"]


ENTRY = {
    "question_id": "q1",
    "question_type": "knowledge-update",
    "question": "How much is my rent?",
    "answer": 760,
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/01/02 (Mon) 10:00"],
    "haystack_sessions": [
        [
            {"role": "user", "content": "The rent is 760 now", "has_answer": True},
            {"role": "assistant", "content": "OK"},
        ],
        [{"role": "user", "content": "The rent is 800"}],
    ],
}
BATCHES = [
    {
        "batch_number": 1,
        "time_anchor": None,
        "turns": [
            [
                {"role": "user", "id": 0, "content": "My code is cobalt. ->-> 1,1", "time_anchor": "March-15-2024"},
                {"role": "assistant", "id": 1, "content": "Noted."},
            ]
        ],
    },
    {"batch_number": 2, "time_anchor": "April-01-2024", "turns": [[{"role": "user", "id": 2, "content": "Hello"}]]},
]
PROBING = {"information_extraction": [{"question": "What is my code?", "rubric": ["cobalt", "a colour"]}]}


def test_longmemeval_is_read_in_the_order_of_its_dates(longmem, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps([ENTRY]))
    (chat,) = longmem.read_chats(tmp_path / "s.json")
    assert [text for _, text, _ in chat.said] == ["The rent is 800", "The rent is 760 now", "OK"]
    (asked,) = chat.questions
    assert (asked.kind, asked.wanted, asked.at) == (
        "knowledge-update",
        ["760"],
        datetime(2023, 5, 30, 23, 40, tzinfo=UTC),
    )


def test_beam_is_read_with_the_days_that_it_names(longmem, tmp_path):
    (tmp_path / "1" / "probing_questions").mkdir(parents=True)
    (tmp_path / "1" / "chat.json").write_text(json.dumps(BATCHES))
    (tmp_path / "1" / "probing_questions" / "probing_questions.json").write_text(json.dumps(PROBING))
    (chat,) = longmem.read_chats(tmp_path)
    assert [(text, at.date().isoformat()) for _, text, at in chat.said] == [
        ("My code is cobalt.", "2024-03-15"),
        ("Noted.", "2024-03-15"),
        ("Hello", "2024-04-01"),
    ]
    assert chat.questions[0].wanted == ["cobalt", "a colour"]


def test_another_folder_is_named(longmem, tmp_path):
    with pytest.raises(SystemExit, match="neither a file of LongMemEval nor a folder of BEAM"):
        list(longmem.read_chats(tmp_path))


async def test_answers_are_judged_point_by_point(longmem):
    chat = longmem.read_beam("1", BATCHES, PROBING)
    asked, judged = ScriptedChatLLM(["Cobalt."]), ScriptedChatLLM(["Yes.", "no"])
    (row,) = await longmem.measure(chat, Settings.load(None), asked, judged)
    assert (row.answer, row.score) == ("Cobalt.", 0.5)
    assert "My code is cobalt." in str(asked.prompts[0])
    assert "What a right answer says: cobalt" in judged.prompts[0][0]["content"]


async def test_a_judge_that_errs_is_found_out(longmem):
    verdicts = ["yes" if is_right else "no" for *_, is_right in longmem.KNOWN]
    assert await longmem.check_judge(ScriptedChatLLM(verdicts)) == []
    assert len(await longmem.check_judge(ScriptedChatLLM(["yes"] * len(verdicts)))) == len(verdicts) / 2


@pytest.mark.slow
def test_one_command_asks_a_server_judges_its_answers_and_writes_them_down(longmem, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps([ENTRY, {**ENTRY, "question_id": "q2_abs", "answer": "Nobody said."}]))
    known = {
        longmem.JUDGE.format(question=question, wanted=wanted, answer=answer): is_right
        for question, wanted, answer, is_right in longmem.KNOWN
    }

    def reply(body):
        asked = str(body["messages"][-1]["content"])
        if asked in known:
            return "Yes." if known[asked] else "No."
        if asked.startswith("You check an answer"):
            return "yes" if "right answer says: 760" in asked and "It is 760" in asked else "no"
        return "It is 760." if "The rent is 760 now" in str(body["messages"]) else "I do not know."

    with OpenAIApi.running(reply) as api:
        done = subprocess.run(
            [sys.executable, str(_PATH), str(tmp_path / "s.json"), "--out", str(tmp_path / "rows.jsonl")],
            env={**os.environ, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": api.base_url, "COLUMNS": "200"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "right about 12 of 12 known answers" in done.stdout
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text("utf-8").splitlines()]
    assert [(row["kind"], row["answer"], row["score"]) for row in rows] == [
        ("knowledge-update", "It is 760.", 1.0),
        ("abstention", "It is 760.", 0.0),
    ]
