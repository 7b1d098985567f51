"""A name in the file of settings that is nearly a setting's is a slip: doctor says so, and whatever serves."""

from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]


def test_doctor_names_what_is_nearly_a_setting(run: Run) -> None:
    Path(".env").write_text("TELEGRAM_BOT_TOKE=1\nOPENAI_APIKEY=2\nWEATHER_KEY=3\nport=0\n")
    code, said, _ = run("doctor")
    assert "TELEGRAM_BOT_TOKE in .env is none; TELEGRAM_BOT_TOKEN is" in said
    assert "OPENAI_APIKEY in .env is none; OPENAI_API_KEY is" in said
    assert "WEATHER_KEY" not in said
    assert "port in" not in said
    assert code == 0


def test_doctor_names_it_beside_a_value_that_is_wrong(run: Run) -> None:
    Path(".env").write_text("TELEGRAM_BOT_TOKE=1\nMAX_STEPS=-1\n")
    code, said, _ = run("doctor")
    assert "MAX_STEPS must be" in said
    assert "TELEGRAM_BOT_TOKE in .env is none" in said
    assert code == 1


def test_what_answers_says_that_a_slip_does_nothing(run: Run) -> None:
    Path(".env").write_text("DATABSE_URL=sqlite:///own.db\nPORT=0\nOBSERVE=off\n")
    code, _, error = run("chat")
    assert "botservice: DATABSE_URL in .env is none; DATABASE_URL is; it does nothing\n" in error
    assert code == 0
