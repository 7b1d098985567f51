"""What has to hold on Postgres holds on Debian's build, too: another version, with other options, behind PgBouncer."""

import subprocess
import sys
from pathlib import Path

import pytest
from standins.postgres_debian import needs_debian_postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), needs_debian_postgres]

ROOT = Path(__file__).parents[2]
FAST = "not slow and not browser"
_CLAIMS = ("tests/storage/test_claims.py", "tests/storage/test_postgres_faults.py")
_SCHEMA = ("tests/storage/test_schema.py", "tests/storage/test_asked_schema.py", "tests/storage/test_several_bots.py")
_OTHERS = ("tests/storage/test_copying.py", "tests/turns/test_replicas.py", "tests/turns/test_sending.py")


@pytest.mark.parametrize(
    ("marks", "files"),
    [
        pytest.param(FAST, _CLAIMS, id="claims and outages"),
        pytest.param("slow or not slow", ("tests/storage/test_pooler.py",), id="poolers"),
        pytest.param(FAST, _SCHEMA, id="migrations and schemas"),
        pytest.param(FAST, _OTHERS, id="copies and replicas"),
    ],
)
def test_the_essential_tests_pass_on_debians_postgres(marks: str, files: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "--postgres", "debian"]
    done = subprocess.run(
        [*command, "--db", "postgres", "-m", marks, *files], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout.splitlines()[-1]
