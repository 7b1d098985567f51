"""Every place that can hold words or numbers of a person: what goes when, and which test shows it.

A test holds this list against the tables: a new column has to be named here, among those that hold something of people
or among those that cannot. `scripts/reference.py` writes docs/stored-data.md from it. The planted words of
`planted.py` look into all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Place:
    """A column, file or log that can hold something of a person.

    Attributes:
        where: A table, or what is not in the database.
        columns: Of the table.
        holds: What of a person.
        goes: Who deletes it, and when.
        proof: The test that shows it.
    """

    where: str
    columns: tuple[str, ...]
    holds: str
    goes: str
    proof: str


_PLANTED: Final = "people/test_planted.py::test_nothing_of_a_forgotten_person_is_left_and_everything_of_the_others"
_REMOVED: Final = "knowledge/test_stored_documents.py::test_a_source_that_is_removed_leaves_nothing"
_FORGETTING: Final = "people/test_forgetting.py"
_RACES: Final = "people/test_forgetting_races.py"
_LEDGER: Final = "turns/test_ledger.py"
_NUMBERS: Final = "people/test_numbers_left.py"
_AUTHOR: Final = ("author_platform", "author_id", "author_name")

PLACES: Final = (
    Place(
        "messages",
        ("text", "own_text", "said_by_others", "attachments", *_AUTHOR, "external_id"),
        "texts and their authors; words of others that they quote, forward or share",
        "with the message, the chat or the person. Words of others are deleted with those people, and so are "
        "answers that repeat the words",
        _PLANTED,
    ),
    Place(
        "message_references",
        ("platform", "person_id", "external_id"),
        "whom messages quote, forward or share",
        "with the message, or with that person",
        "people/test_generated_quotes.py",
    ),
    Place("vectors", ("data",), "what messages mean", "with the message", _PLANTED),
    Place(
        "word_blocks",
        ("data",),
        "the positions of words in long chats, which releases before 1.3 stored",
        "with the message",
        _PLANTED,
    ),
    Place(
        "blobs",
        ("sha256", "data"),
        "files, and long texts of prompts",
        "with the last row that refers to them",
        _PLANTED,
    ),
    Place("loose_files", ("sha256",), "files that may be left over", "at once, when they are checked", _PLANTED),
    Place(
        "turns",
        ("error", "system_prompt"),
        "the error and the system prompt of a turn",
        "with the message that began the turn; later turns of the chat lose error and system prompt as well",
        _PLANTED,
    ),
    Place(
        "events",
        ("key", "raw", "external_id", "group_key"),
        "events of the platform; who pressed a button; keys of programs' messages; words of a deleted fact",
        "raw: with the message, or after 7 days. Words of a fact: when they are deleted from all records. The key "
        "loses the person's number with the person, and is deleted after 7 days",
        f"{_NUMBERS}::test_the_name_of_a_press_names_nobody_who_is_forgotten",
    ),
    Place(
        "steps",
        ("data",),
        "the agent's work: model calls and tool calls",
        "with a forgotten message: all steps in the chat from that message on, also for other people. Otherwise "
        "after 30 days",
        _PLANTED,
    ),
    Place("tool_calls", ("result",), "results of tools", "with the step", _PLANTED),
    Place(
        "pending_calls",
        ("call_id", "tool", "name", "question", *_AUTHOR),
        "calls that await or awaited approval, a result or an answer; the asker and the asker's answer",
        "with the turn or the person, or as steps",
        _PLANTED,
    ),
    Place(
        "approvals",
        ("tool", "arguments", "digest", "asker", "decider", "chat"),
        "the ledger of approvals: asker, arguments with secrets masked, who decided, and where",
        "after LEDGER_DAYS, even if the chat is deleted; a pseudonym replaces a forgotten person",
        f"{_LEDGER}::test_a_forgotten_person_is_a_pseudonym_everywhere_in_the_ledger",
    ),
    Place(
        "tool_grants",
        ("author_platform", "author_id"),
        "people for whom a tool runs without asking",
        "with the chat or the person",
        _PLANTED,
    ),
    Place("prompt_log", ("content",), "what the model was shown", "as steps", _PLANTED),
    Place(
        "deliveries",
        ("payload", "buttons", "external_id", "error"),
        "sent and pending messages",
        "sent messages: as steps. Pending messages: after sending; an answer that repeats forgotten words is "
        "generated again",
        f"{_RACES}::test_an_answer_to_another_that_is_still_owed_is_given_anew_without_what_is_forgotten",
    ),
    Place(
        "reminders",
        ("text", "key", *_AUTHOR),
        "reminders and schedules",
        "with the chat or the person; after they ended, as steps",
        _PLANTED,
    ),
    Place(
        "exports",
        ("sha256",),
        "archives of /export",
        "once sent (in the browser within a day), or when anything in them is forgotten",
        f"{_RACES}::test_an_archive_goes_when_anything_in_it_is_forgotten",
    ),
    Place("facts", ("topic", "text"), "facts about people", "with the message, the chat or the person", _PLANTED),
    Place(
        "notes",
        ("text",),
        "notes of a chat",
        "with the chat, by /memory delete, or with any message behind the note",
        "background/test_observer_forgetting.py",
    ),
    Place(
        "refused_facts",
        ("digest", "topic_digest"),
        "digests of facts that a person has deleted",
        "with the person",
        "background/test_observer_correcting.py",
    ),
    Place(
        "refused_notes",
        ("digest",),
        "digests of notes that people have deleted",
        "with the chat",
        "background/test_observer_correcting.py",
    ),
    Place("identities", ("platform", "platform_id", "name"), "accounts and names", "with the person", _PLANTED),
    Place("link_codes", ("code_hash",), "codes that link two accounts", "after 10 minutes", _PLANTED),
    Place(
        "web_links", ("digest",), "links that open chats in browsers", "with the person, or after 10 minutes", _PLANTED
    ),
    Place(
        "web_logins",
        ("digest",),
        "logins of a person's browsers",
        "with the person, at log-out, or after 30 days",
        _PLANTED,
    ),
    Place(
        "contexts",
        ("key_hash", "context_keys", "metadata"),
        "keys of a chat (in private, the person's number), its title and its persona",
        "with the person; the chat in which they ask, up to four hours later. A group keeps its keys, and metadata "
        "that a program set",
        f"{_NUMBERS}::test_a_private_chat_loses_its_name_once_everything_is_said_there",
    ),
    Place(
        "tool_sign_ins",
        ("data",),
        "a person's sign-ins to MCP servers, encrypted",
        "with the person, at the next sign-in, or when the server ends the sign-in",
        _PLANTED,
    ),
    Place(
        "tool_sign_in_states",
        ("data",),
        "sign-ins that have begun, encrypted",
        "with the person, once used, or at the next sign-in of anybody after 15 minutes",
        _PLANTED,
    ),
    Place("feedback", ("platform", "person_id", "verdict"), "ratings of answers", "with the person", _PLANTED),
    Place(
        "model_usage",
        ("person", "chat"),
        "tokens that a person used, by day",
        "the name is deleted with the person; for the current month, when the month is over",
        f"{_FORGETTING}::test_forgetting_refills_no_budget_and_the_name_goes_when_the_month_is_over",
    ),
    Place("budget_reservations", ("person", "chat"), "whose model call is running", "when the call ends", _PLANTED),
    Place(
        "observer_reservations",
        ("person", "chat"),
        "people whose chat is being read for notes and facts",
        "when the reading ends; after a kill, by maintenance",
        _PLANTED,
    ),
    Place("budget_rates", ("subject",), "how much a person wrote in a minute", "with the person", _PLANTED),
    Place("budget_notices", ("notice",), "who was told of a limit", "with the person, or after 62 days", _PLANTED),
    Place(
        "access_refusals",
        ("kind", "subject"),
        "people who were told that they have no access, or who used /export or /forget me without access; "
        "forgotten people whom unread events still name",
        "with the person; the use of a command after a day; forgotten people an hour after the last such event",
        "people/test_late_messages.py::test_a_quote_that_waits_is_not_kept_and_its_question_is_answered",
    ),
    Place(
        "access_codes",
        ("person", "code", "name", "welcome"),
        "newcomers with a code",
        "with the person, or after an hour",
        _PLANTED,
    ),
    Place(
        "access_roles",
        ("subject", "granted_by"),
        "people whom the owner approved or blocked",
        "when the owner decides so (botservice access); never by forgetting",
        _PLANTED,
    ),
    Place(
        "person_roles",
        ("role",),
        "a person's roles besides owner, member and guest",
        "with the person, or when an owner gives the person other roles",
        _PLANTED,
    ),
    Place(
        "access_invitations",
        ("chat", "person"),
        "who brought the bot into a group",
        "when the bot leaves the group",
        _PLANTED,
    ),
    Place(
        "slack_installations",
        ("team_name", "installed_by"),
        "who installed the bot in a workspace",
        "when the workspace removes the bot",
        "transports/slack/test_installing.py",
    ),
    Place(
        "knowledge_sources",
        ("name", "location", "readers"),
        "names and places of documents, and the chats that may read them",
        "by botservice knowledge remove; never by forgetting",
        _REMOVED,
    ),
    Place(
        "knowledge_documents",
        ("path", "title", "problem"),
        "names and titles of documents",
        "with the source or the file",
        _REMOVED,
    ),
    Place(
        "knowledge_passages",
        ("heading", "text", "vector"),
        "passages of documents, also about people",
        "with the source or the file",
        _REMOVED,
    ),
    Place(
        "the file of SQLite, and its log",
        (),
        "copies of deleted rows",
        "when the file is rewritten, at once or at a quiet moment",
        "storage/test_scrubbing.py",
    ),
    Place(
        "the files of Postgres, and its log",
        (),
        "deleted rows",
        "at the next VACUUM; the log when Postgres recycles it",
        "storage/test_scrubbing.py::test_postgres_is_never_said_to_be_clean",
    ),
    Place(
        "files of botservice backup and botservice export --archive",
        (),
        "everything that was stored when the file was made",
        "by the owner of the file",
        "cli/test_people.py",
    ),
    Place(
        "the history of botservice chat",
        (),
        "lines typed on the terminal",
        "by the person who typed them; --no-history keeps none",
        "transports/test_terminal_screens.py::test_the_history_is_read_by_its_owner_alone",
    ),
    Place(
        "logs",
        (),
        "numbers of chats and turns; no words, no names",
        "by the person who keeps the logs",
        "attacks/test_read_out_of_logs.py",
    ),
    Place(
        "memory of the process",
        (),
        "search indexes, vectors of questions, names from Slack, what a person has open",
        "indexes: at the next search of the chat; newer data replaces the rest, which never enters a prompt for "
        "anybody else",
        "history/test_search.py::test_a_forgotten_context_leaves_memory",
    ),
)

_ID_AND_CONTEXT: Final = ("id", "context_id")
WORDLESS: Final[Mapping[str, tuple[str, ...]]] = {
    "messages": (
        *(*_ID_AND_CONTEXT, "position", "role", "created_at", "token_count", "token_encoding"),
        *("event_id", "answers_turn_id", "edited_at", "is_all_own"),
    ),
    "vectors": (*_ID_AND_CONTEXT, "message_id", "model_key"),
    "word_blocks": ("context_id", "block", "first_position", "last_position"),
    "blobs": (*_ID_AND_CONTEXT, "is_encrypted"),
    "turns": (
        *(*_ID_AND_CONTEXT, "status", "outcome", "transport", "order_key", "due_at", "due_set_at", "attempts"),
        *("failures", "keeps_steps", "steps_taken", "last_step_number", "joined_events", "question_id"),
        *("created_at", "started_at", "finished_at", "compacted_at"),
    ),
    "events": (
        *(*_ID_AND_CONTEXT, "turn_id", "transport", "kind", "order_key", "received_at", "handled_at", "reading_at"),
    ),
    "steps": (*_ID_AND_CONTEXT, "turn_id", "position", "kind", "step_number", "is_open", "prompt"),
    "tool_calls": ("step_id", "call_index", "context_id", "status"),
    "prompt_log": ("turn_id", "seq", "context_id"),
    "deliveries": (
        *(*_ID_AND_CONTEXT, "turn_id", "transport", "kind", "status", "attempts", "due_at", "due_set_at"),
        *("created_at", "finished_at", "replaces"),
    ),
    "pending_calls": (
        *(*_ID_AND_CONTEXT, "turn_id", "step_id", "call_index", "kind", "status", "is_open", "transport"),
        *("delivery_id", "created_at", "expires_at", "due_at", "due_set_at", "decided_at", "decided_by", "told_at"),
        "tool_digest",
    ),
    "approvals": (
        *("call", "step_id", "call_index", "tool_digest", "asked_at", "decision", "decided_at", "is_shared"),
        *("result", "ended_at"),
    ),
    "tool_grants": (*_ID_AND_CONTEXT, "tool", "created_at", "tool_digest"),
    "reminders": (
        *(*_ID_AND_CONTEXT, "transport", "status", "is_task", "due_at", "starts_at", "repeats", "time_zone"),
        *("language", "created_at", "fired_at", "finished_at", "rule"),
    ),
    "exports": ("turn_id", "context_id", "identity_id", "made_at"),
    "facts": (
        *(*_ID_AND_CONTEXT, "identity_id", "source_message_id", "is_shareable"),
        *("created_at", "updated_at", "superseded_at", "set_by", "valid_from", "valid_to", "ended_by"),
    ),
    "notes": (*(*_ID_AND_CONTEXT, "number", "at", "message_ids", "first_position", "last_position", "span", "tokens"),),
    "observed": ("context_id", "read_to", "again_to", "version", "seen_id", "due_at", "tries", "last_number"),
    "refused_facts": ("id", "identity_id", "message_id", "refused_at"),
    "refused_notes": ("context_id",),
    "refused_forms": ("context_id", "form", "refused_at"),
    "refused_messages": ("context_id", "model", "kept_out", "is_told", "expires_at"),
    "knowledge_sources": ("id", "version", "added_at", "read_at"),
    "knowledge_documents": ("id", "source_id", "stamp", "digest"),
    "knowledge_passages": ("id", "document_id", "position", "page", "digest", "model"),
    "alerts": ("name", "is_on", "since", "told_at"),
    "model_refusals": ("server", "model", "what", "wording", "learned_at", "expires_at"),
    "observer_reservations": ("context_id", "tokens", "cost", "expires_at"),
    "persons": ("id", "failed_guesses", "guessing_since", "created_at"),
    "identities": ("id", "person_id", "created_at"),
    "link_codes": ("id", "identity_id", "other_identity_id", "is_accepted", "expires_at"),
    "web_links": ("identity_id", "used_at", "expires_at"),
    "web_logins": ("identity_id", "account_id", "created_at", "expires_at"),
    "contexts": (
        *("id", "last_position", "deletion_version", "is_shared", "only_identity_id", "created_at", "fresh_from"),
        *("forgotten_at", "last_message_id", "message_count", "untrusted_at"),
    ),
    "message_references": (*_ID_AND_CONTEXT, "message_id"),
    "loose_files": _ID_AND_CONTEXT,
    "feedback": ("turn_id", "created_at"),
    "turn_figures": (
        *("turn_id", "calls", "failed_calls", "input_tokens", "output_tokens", "cached_tokens", "cost", "model_ms"),
        *("first_token_ms", "lasted_ms", "model", "tools"),
    ),
    "model_usage": (
        *("day", "context_id", "model", "calls", "input_tokens", "output_tokens", "cached_tokens", "cost"),
        "cache_write_tokens",
    ),
    "model_usage_days": (
        *("day", "model", "shard", "calls", "input_tokens", "output_tokens", "cached_tokens", "cost"),
        "cache_write_tokens",
    ),
    "budget_reservations": ("turn_id", "tokens", "cost", "expires_at"),
    "budget_rates": ("scope", "minute", "messages"),
    "budget_notices": ("told_at",),
    "access_refusals": ("told_at",),
    "access_codes": ("turn_id", "expires_at"),
    "access_roles": ("kind", "role", "granted_at"),
    "person_roles": ("identity_id", "granted_at"),
    "access_invitations": ("invited_at",),
    "access_listening": ("chat", "is_on", "set_at"),
    "gate_decisions": ("turn_id", "chat", "tries", "decision", "decided_at"),
    "slack_installations": (
        *("enterprise_id", "team_id", "is_enterprise", "app_id", "bot_id", "bot_user_id", "scopes", "token"),
        *("installed_at", "refresh_token", "token_expires_at", "refreshing_until"),
    ),
    "telegram_menus": ("bot_id", "digest", "set_at"),
    "slack_oauth_states": ("state", "expires_at"),
    "slack_grids": ("team_id", "enterprise_id"),
    "slack_refusals": ("team_id", "feature", "refused_at"),
    "slack_titles": ("context_id", "thread_ts", "titled_at"),
    "tool_sign_ins": ("id", "identity_id", "server", "created_at", "updated_at"),
    "tool_sign_in_states": ("digest", "identity_id", "server", "expires_at"),
    "ended_logins": ("digest", "expires_at"),
    "schema_compatibility": ("oldest_version",),
}
"""Columns that can hold nothing that a person said, and no number of theirs."""
