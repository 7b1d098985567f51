"""Set the version, date the changelog's section Unreleased, commit and tag: `scripts/release` calls it."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHANGELOG, VERSION = ROOT / "CHANGELOG.md", ROOT / "botservice" / "__init__.py"


def main(arguments: list[str]) -> None:
    """Make the release."""
    if len(arguments) != 1 or not re.fullmatch(r"\d+\.\d+\.\d+", arguments[0]):
        sys.exit("usage: scripts/release MAJOR.MINOR.PATCH")
    version = arguments[0]
    if _git("status", "--porcelain"):
        sys.exit("commit or stash your changes first")
    if f"v{version}" in _git("tag").split():
        sys.exit(f"v{version} is there already")
    changelog, count = re.subn(
        r"^## Unreleased$", f"## {version} - {datetime.now(UTC):%Y-%m-%d}", CHANGELOG.read_text(), flags=re.MULTILINE
    )
    if count != 1:
        sys.exit("CHANGELOG.md has no section Unreleased")
    CHANGELOG.write_text(changelog)
    VERSION.write_text(
        re.sub(r'^__version__ = ".*"', f'__version__ = "{version}"', VERSION.read_text(), flags=re.MULTILINE)
    )
    _git("commit", "--quiet", "--message", f"Release {version}", str(CHANGELOG), str(VERSION))
    _git("tag", "--annotate", f"v{version}", "--message", f"botservice {version}")
    print(f"v{version} is tagged; push it: git push origin main v{version}")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
