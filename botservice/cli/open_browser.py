"""Opening the chat in a browser on this machine."""

import os
import sys
import threading
import webbrowser

from botservice.config.settings import Settings

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - asked, not bound
_CHANGES = "WATCHFILES_CHANGES"  # what `--reload` began again for; an empty list at its first start


def open_page(settings: Settings) -> None:
    """Open the chat's page in a browser, next to everything else; only for a terminal, and only once."""
    if not sys.stdout.isatty() or os.environ.get(_CHANGES, "[]") != "[]":
        return
    host = settings.host if ":" not in settings.host else f"[{settings.host.strip('[]')}]"
    address = f"http://{_EVERYWHERE.get(settings.host, host)}:{settings.port}/"
    threading.Thread(target=_open, args=(address,), daemon=True).start()


def _open(address: str) -> None:
    """Open a page, unless there is nothing but a browser that would take the terminal for itself."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ:
        return
    browser.open(address)
