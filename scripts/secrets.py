"""Look for secrets in what is tracked. Nothing is sent anywhere: what looks like one is not tried out.

Tests are left out, because theirs are made up; `# pragma: allowlist secret` next to a line says that it is none.
"""

import subprocess
import sys
from pathlib import Path

from detect_secrets.core.scan import get_plugins
from detect_secrets.settings import default_settings
from detect_secrets.transformers import get_transformed_file

_LEFT_OUT = (":!tests", ":!docs/images", ":!requirements*.txt")
_NOT_USED = "KeywordDetector"  # passwords by the names of variables are ruff's to find (S105 to S107)
_HOOK = ("--no-verify", "--disable-plugin", _NOT_USED, "--exclude-secrets", "^(password|secret|postgres)$")


def main() -> int:
    """Return 0 where nothing was found, or where this is no checkout."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *_LEFT_OUT], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        return 0
    with default_settings():
        files = [name for name in listed.stdout.rstrip("\0").split("\0") if may_have_one(name)]
    return subprocess.run(["detect-secrets-hook", *_HOOK, *files], check=False).returncode


def may_have_one(name: str) -> bool:
    """Return whether a pattern is found in a whole file: reading it line by line takes ten times as long."""
    try:
        with Path(name).open() as file:
            texts = [file.read()]
            for is_eager in (False, True):  # values of settings files, which need no quotes there
                file.seek(0)
                texts.append("\n".join(get_transformed_file(file, use_eager_transformers=is_eager) or ()))
    except UnicodeDecodeError:  # no text
        return False
    plugins = [plugin for plugin in get_plugins() if type(plugin).__name__ != _NOT_USED]
    return any(plugin.analyze_line(name, text, 1) for text in texts for plugin in plugins if text)


if __name__ == "__main__":
    sys.exit(main())
