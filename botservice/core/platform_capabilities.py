"""What a platform shows of a turn and takes of people: one description, so that nothing asks which platform it is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The features of a transport, each described in a few words; empty if it lacks the feature.

    By default a transport shows only texts.

    Attributes:
        label: The name of the platform for people; by default its name.
        command_prefix: The characters before a command.
        streaming: How an answer is shown while it is written.
        thinking: How the model's thinking is shown.
        tools: How tool calls are shown.
        approval: How a person approves a call.
        buttons: How buttons are shown.
        files_in: The files that it accepts.
        files_out: How files of answers are shown.
        tables: How tables are shown.
        edits: The effect of an edited message.
        deletions: The effect of a deleted message.
        stops: How people stop an answer.
        errors: How a failed answer is shown.
        personal: How messages to one person are shown in groups.
        voice: How voice messages are handled.
        feedback: How people rate an answer.
        conversations: The places that have their own conversation.
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
