"""Names in the file of settings that are almost those of settings."""

from difflib import get_close_matches
from pathlib import Path

from dotenv import dotenv_values

from botservice.config.settings import Settings
from botservice.core.check_result import Finding

_LIKENESS = 0.85


def check_spelling(file: Path = Path(".env")) -> list[Finding]:
    """Return a finding for each name in the file that is no setting and looks like one: it does nothing.

    The names of what a bot reads by itself stand there as well, so none of these findings is an error.
    """
    known = [name.upper() for name in Settings.model_fields]
    findings = []
    for name in dotenv_values(file):
        close = [] if name.upper() in known else get_close_matches(name.upper(), known, n=1, cutoff=_LIKENESS)
        findings += [Finding("setting", f"{name} in {file} is none; {each} is", is_off=True) for each in close]
    return findings
