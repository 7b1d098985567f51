"""How large a file may be that is fetched from a platform, or sent from the browser."""

from typing import Final

TELEGRAM_FILE_BYTES: Final = 20 * 1024 * 1024  # Source: Bot API, getFile
SLACK_FILE_BYTES: Final = 20 * 1024 * 1024
BROWSER_FILES: Final = 10
BROWSER_FILES_BYTES: Final = 10_000_000  # of all files of a message together
