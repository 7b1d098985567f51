"""What a process says when it starts, and what a worker serves."""

import json
import urllib.request

from crash.served import ServedBot


class ServedWorker(ServedBot):
    command = ("worker",)


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.status, answer.read().decode()


def test_a_worker_serves_its_numbers_and_whether_it_is_ready_where_it_is_told_to(postgres_url, tmp_path):
    with ServedWorker(tmp_path, DATABASE_URL=postgres_url, METRICS_PORT="0") as worker:
        worker.start()
        status, page = get(f"{worker.url}/metrics")
        assert status == 200
        assert 'botservice_turns_total{outcome="failed",transport="telegram"}' not in page, "it has no Telegram"
        assert 'botservice_turns_total{outcome="failed",transport="web"} 0.0' in page
        assert json.loads(get(f"{worker.url}/readyz")[1])["ready"] is True
        assert get(f"{worker.url}/healthz")[0] == 200


def test_with_json_logs_each_line_of_the_start_is_json(sqlite_url, tmp_path):
    settings = {"DATABASE_URL": sqlite_url, "LOG_FORMAT": "json", "LOG_LEVEL": "INFO"}
    with ServedBot(tmp_path, **settings) as bot:
        process = bot._process = bot._begin()
        said = []
        while "stops it" not in "".join(said):
            said = [line for line in bot.log.splitlines() if line]
            assert process.poll() is None
        bot.kill()
        lines = [json.loads(line) for line in said]
    assert any("botservice is running" in str(line) for line in lines)
