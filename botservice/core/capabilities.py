"""What a platform shows of a turn and takes of people: one description, so that nothing asks which platform it is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a transport can do, each in a few words that say how; empty where it cannot.

    One that says nothing of itself shows texts, which is what every transport does.

    Attributes:
        label: What people call the platform; by default its name.
        command_prefix: What people type before a command.
        streaming: How an answer is seen while it is written.
        thinking: How it is seen that a model thinks.
        tools: How calls of tools are seen.
        approval: How a person has their word about a call.
        buttons: How what can be pressed is shown.
        files_in: Which files are taken.
        files_out: How files of answers are shown.
        tables: How tables are shown.
        edits: What becomes of a message that its author changes.
        deletions: What becomes of a message that its author deletes.
        stops: What stops an answer.
        errors: How it is seen that there was no answer.
        personal: How what concerns one person is shown where others read.
        voice: What becomes of spoken words.
        feedback: How people say what they think of an answer.
        conversations: What has a conversation of its own.
    """

    label: str = ""
    command_prefix: str = "/"
    streaming: str = ""
    thinking: str = ""
    tools: str = ""
    approval: str = "commands"
    buttons: str = ""
    files_in: str = ""
    files_out: str = ""
    tables: str = ""
    edits: str = ""
    deletions: str = ""
    stops: str = ""
    errors: str = "a message"
    personal: str = ""
    voice: str = ""
    feedback: str = ""
    conversations: str = ""
