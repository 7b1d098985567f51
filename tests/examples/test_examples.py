"""Every example runs, without a key and with one."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from standins.openai_api import OpenAIApi, ToolUse

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(
    path for path in EXAMPLES.glob("*.py") if "asyncio.run(" in path.read_text() or "\nmain()" in path.read_text()
)
EXPECTED = {
    "buttons": "Here you are: A large tea, please",
    "edit_memory": "1 page 1: blah blah bl… (read)",
    "final_answer_checks": "Paris.\nrefused: The capital of France",
    "final_tool": "Here is your report: All is well ['report.txt']",
    "first_agent": "agent: Your dog is called Rex.",
    "flexible_items": "True HealthCheck",
    "forget_images": "step 2 images: 0\nstep 3 images: 1",
    "inject_steps": "user Observation: System was down for 2 hours yesterday",
    "interrupt": "after 3 steps, which are kept",
    "many_at_once": "100 of 100",
    "own_agent": "rex: a king; canis: a dog",
    "own_prompt": "On page 7.",
    "own_search": "found: my hound sleeps\nin the prompt: ['What time?', 'At nine.', 'Fine, I will be there']",
    "planning": "plan: 1. measure",
    "replay": "An exact copy: True",
    "resume_after_crash": "finished already: ['flight is booked', 'hotel is booked']",
    "slow_tool": "on Thursday: The accountant says: request 17 is approved",
    "sub_agents": "research: ['TaskStep', 'ActionStep', 'FinalAnswerStep']\n190 tonnes at most. | state: success",
    "step_by_step": "The answer is: The 20th Fibonacci number is 6765.",
}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch, tmp_path):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent))  # for processes that an example starts


def run(monkeypatch, path, *arguments):
    """Run an example as a script in this process."""
    folder = str(path if path.is_dir() else path.parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    before = set(sys.modules)
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(EXAMPLES)):
                del sys.modules[name]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_runs_without_a_key(path, monkeypatch, capfd):
    run(monkeypatch, path)
    assert EXPECTED[path.stem] in capfd.readouterr().out


def test_every_example_is_described_and_expected():
    assert {path.stem for path in FILES} == EXPECTED.keys()
    assert all(path.read_text().startswith('"""') for path in FILES)


MODES = {
    "replay": "Alerts were raised in steps 5",
    "inject": "The model read: Observation: System was down for 2 hours yesterday",
    "step_by_step": "Step 5: check_health -> 503",
    "full": "Its memory, from storage, is the same: True",
}


@pytest.mark.parametrize("mode", MODES)
def test_the_monitoring_agent_runs_in_each_mode(mode, monkeypatch, capfd):
    run(monkeypatch, EXAMPLES / "monitoring_agent", "--mode", mode)
    shown = capfd.readouterr().out
    assert MODES[mode] in shown
    assert "ALERT: 3 of the last 10 steps failed their health check" in re.sub(r"\s+", " ", shown) or mode == "inject"
    assert "it is well now" in re.sub(r"\s+", " ", shown)
    assert "restarted 1 time" in shown


def test_with_a_key_an_example_talks_to_that_server(monkeypatch, capfd):
    def reply(body):
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if any("restarts" in result for result in results):
            return "It is well now, says the server."
        if any("ALERT" in result for result in results):
            return ToolUse("restart", "{}")
        return ToolUse("check_health", "{}")

    with OpenAIApi.running(reply, api_key="sk-test") as api:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "gpt-5.5")
        run(monkeypatch, EXAMPLES / "monitoring_agent", "--mode", "inject")
    shown = capfd.readouterr().out
    assert "It is well now, says the server." in shown
    assert len(api.bodies()) == 7
    assert api.bodies()[0]["messages"][1]["content"] == "Observation: System was down for 2 hours yesterday"


def test_screenshots_reach_a_strict_server(monkeypatch, capfd):
    def reply(body):
        count = sum(1 for message in body["messages"] if message["role"] == "tool")
        return ToolUse("take_screenshot", f'{{"number": {count + 1}}}') if count < 4 else "Brighter."

    with OpenAIApi.running(reply) as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "gpt-5.5")
        run(monkeypatch, EXAMPLES / "forget_images.py")
    assert EXPECTED["forget_images"] in capfd.readouterr().out
    images = [str(body["messages"]).count("data:image/png;base64,") for body in api.bodies()]
    assert images == [0, 1, 2, 2, 2]
