"""Fills an empty database with conversations as a service leaves them behind after years, in minutes.

One of them is a group of a thousand people with a tenth of all turns; the others are private chats, of one size.
"""

import json
import sqlite3
from datetime import UTC, datetime

from sqlalchemy import create_engine

from botservice.conversation.context_keys import ContextKeys
from botservice.llm.tokens import counter_for
from botservice.storage.statements import chunks
from botservice.storage.tables.columns import compress, metadata

GROUP = 1  # the id of its context
GROUP_PEOPLE = 1_000
_RECORDED = 3  # of every so many turns, one has its steps and prompts still; all of the group's have
_WORDS = "we looked at the river and the market in winter, and then at seven yellow letters between the tables "
_PROMPT = "You are a helpful assistant. " * 20


def chat_keys(number):
    return {"transport": "bench", "chat_id": str(number)}


class Plan:
    """Which rows there are: everything follows from a few numbers."""

    def __init__(self, contexts, messages, turns):
        self.contexts, self.turns = contexts, turns
        self.more_messages = messages - 2 * turns
        self.group_turns = turns // 10
        self.now = int(datetime.now(UTC).timestamp() * 1_000_000)
        self.positions = [0] * (contexts + 1)
        self.message_id = 0
        self.encoding = counter_for().name

    def rows(self):
        """Yield tables with their columns and rows, in the order of their keys."""
        yield "persons", ("id", "created_at"), ((n, self.now) for n in range(1, self.contexts + 1))
        yield "identities", ("id", "person_id", "platform", "platform_id", "name", "created_at"), self._identities()
        yield (
            "contexts",
            ("id", "key_hash", "context_keys", "metadata", "only_identity_id", "created_at"),
            self._contexts(),
        )
        yield "turns", _TURN, (self._turn(n) for n in range(1, self.turns + 1))
        yield "events", _EVENT, (self._event(n) for n in range(1, self.turns + 1) if self._is_recorded(n))
        yield "messages", _MESSAGE, self._messages()
        yield "steps", _STEP, self._steps()
        yield "prompt_log", ("turn_id", "seq", "context_id", "content"), self._prompts()
        yield "deliveries", _DELIVERY, (self._delivery(n) for n in range(1, self.turns + 1) if self._is_recorded(n))
        yield "model_usage", _USAGE, self._usage()

    def context_of(self, turn):
        return GROUP if turn <= self.group_turns else 2 + turn % (self.contexts - 1)

    def author_of(self, turn):
        return turn % GROUP_PEOPLE + 2 if turn <= self.group_turns else self.context_of(turn)

    def _is_recorded(self, turn):
        return turn <= self.group_turns or turn % _RECORDED == 0

    def _at(self, turn):
        return self.now - (self.turns - turn) * 1_000_000

    def _identities(self):
        for number in range(1, self.contexts + 1):
            yield number, number, "bench", str(number), f"Person {number}", self.now

    def _contexts(self):
        for number in range(1, self.contexts + 1):
            keys = ContextKeys.of(chat_keys(number))
            yield (
                number,
                keys.digest,
                json.dumps(dict(keys.values)),
                "{}",
                None if number == GROUP else number,
                self.now,
            )

    def _turn(self, turn):
        at = self._at(turn)
        compacted = None if self._is_recorded(turn) else at
        return turn, self.context_of(turn), "done", "answered", "bench", turn, at, at, at, at, compacted

    def _event(self, turn):
        return turn, f"bench:{turn}", self.context_of(turn), turn, "bench", "message", turn, self._at(turn)

    def _messages(self):
        for turn in range(1, self.turns + 1):
            author, event = self.author_of(turn), turn if self._is_recorded(turn) else None
            yield self._message(self.context_of(turn), "user", f"{turn}: {_WORDS}", author, event, None, turn)
            yield self._message(self.context_of(turn), "assistant", f"re {turn}: {_WORDS}", None, None, turn, turn)
        for number in range(self.more_messages):
            context = 2 + number % (self.contexts - 1)
            yield self._message(context, "user", f"more {number}: {_WORDS}", context, None, None, self.turns)

    def _message(self, context, role, text, author, event, answers, turn):
        self.message_id += 1
        self.positions[context] += 1
        person = (None, None) if author is None else ("bench", str(author))
        return (
            self.message_id,
            context,
            self.positions[context],
            role,
            text,
            *person,
            self._at(turn),
            event,
            answers,
            24,
            self.encoding,
        )

    def _steps(self):
        for turn in range(1, self.turns + 1):
            if self._is_recorded(turn):
                task = json.dumps({"kind": "task", "version": 1, "task": f"{turn}: {_WORDS}"})
                answer = json.dumps({"kind": "final_answer", "version": 1, "output": f"re {turn}: {_WORDS}"})
                yield 2 * turn, self.context_of(turn), turn, 2.0 * turn, "TaskStep", compress(task)
                yield 2 * turn + 1, self.context_of(turn), turn, 2.0 * turn + 1, "FinalAnswerStep", compress(answer)

    def _prompts(self):
        for turn in range(1, self.turns + 1):
            if self._is_recorded(turn):
                sent = [{"role": "system", "content": _PROMPT}, {"role": "user", "content": _WORDS}]
                yield turn, 0, self.context_of(turn), compress(json.dumps([{"message": each} for each in sent]))

    def _delivery(self, turn):
        at, payload = self._at(turn), json.dumps({"text": f"re {turn}: {_WORDS}"})
        return turn, self.context_of(turn), turn, "bench", "message", "delivered", payload, at, str(turn), at, at

    def _usage(self):
        today = datetime.now(UTC)
        for day in {today.replace(day=1), today}:
            for number in range(1, self.contexts + 1):
                name = f"bench:{number}"
                yield f"{day:%Y-%m-%d}", number, name, "growth", name, 3, 900, 300, 0, 10


_TURN = (
    *("id", "context_id", "status", "outcome", "transport", "order_key"),
    *("due_at", "created_at", "started_at", "finished_at", "compacted_at"),
)
_EVENT = ("id", "key", "context_id", "turn_id", "transport", "kind", "order_key", "received_at")
_MESSAGE = (
    *("id", "context_id", "position", "role", "text", "author_platform", "author_id"),
    *("created_at", "event_id", "answers_turn_id", "token_count", "token_encoding"),
)
_STEP = ("id", "context_id", "turn_id", "position", "kind", "data")
_DELIVERY = (
    *("id", "context_id", "turn_id", "transport", "kind", "status", "payload"),
    *("due_at", "external_id", "created_at", "finished_at"),
)
_USAGE = (
    *("day", "context_id", "person", "model", "chat", "calls"),
    *("input_tokens", "output_tokens", "cached_tokens", "cost"),
)
_LAST_POSITION = (
    "UPDATE contexts SET last_position = "
    "(SELECT coalesce(max(position), 0) FROM messages WHERE context_id = contexts.id)"
)


def fill(url, plan):
    """Write a plan's rows into a database with tables and nothing in them; no other process works there."""
    if url.startswith("sqlite"):
        _fill_sqlite(url.removeprefix("sqlite:///"), plan)
    else:
        _fill_postgres(url, plan)


def _fill_sqlite(path, plan):
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        for table, columns, rows in plan.rows():
            connection.execute("BEGIN")
            marks = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)
            connection.execute("COMMIT")
        connection.execute(_LAST_POSITION)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def _fill_postgres(url, plan):
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        driver = connection.connection.dbapi_connection
        for table, columns, rows in plan.rows():
            for some in chunks(rows):
                with driver.cursor() as cursor, cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                    for row in some:
                        copy.write_row(row)
            if "id" in metadata.tables[table].c:
                connection.exec_driver_sql(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
                )
        connection.exec_driver_sql(_LAST_POSITION)
        connection.exec_driver_sql("VACUUM ANALYZE")
    engine.dispose()
