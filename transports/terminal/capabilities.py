"""What people see and can do on the terminal."""

from typing import Final

from botservice.capabilities import Capabilities

CAPABILITIES: Final = Capabilities(
    label="Terminal",
    streaming="an answer that grows",
    thinking="printed, if a setting says so",
    tools="a line with the tool's name and what it says",
    approval="numbers below the question, or commands",
    buttons="numbers to type",
    tables="a table",
    stops="Ctrl+C, or /stop",
    errors="a message",
    conversations="each session",
)
