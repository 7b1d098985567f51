"""Triggers: what the database itself does for every writer, also for an earlier release or an import.

Lists show how many messages a conversation has, and budgets go by what was used of every model on a day; both would
otherwise be counted anew each time. What was noted of messages goes with them, and with any change of them; what is
left is read anew. A migration that makes one of these tables anew has to call `make_triggers` again.
"""

import re
from typing import Any, Final

from sqlalchemy import Connection, event

from botservice.storage.tables.metadata import metadata

_ADD: Final = """
    INSERT INTO model_usage_days
        (day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens)
    VALUES (NEW.day, NEW.model, :shard, NEW.calls, NEW.input_tokens, NEW.output_tokens, NEW.cached_tokens, NEW.cost,
        NEW.cache_write_tokens)
    ON CONFLICT (day, model, shard) DO UPDATE SET
        calls = model_usage_days.calls + excluded.calls,
        input_tokens = model_usage_days.input_tokens + excluded.input_tokens,
        output_tokens = model_usage_days.output_tokens + excluded.output_tokens,
        cached_tokens = model_usage_days.cached_tokens + excluded.cached_tokens,
        cost = model_usage_days.cost + excluded.cost,
        cache_write_tokens = model_usage_days.cache_write_tokens + excluded.cache_write_tokens;"""
_TAKE: Final = re.sub(r"NEW\.(\w+_tokens|calls|cost)", r"-OLD.\1", _ADD).replace("NEW.", "OLD.")

_SQLITE: Final = (
    """
CREATE TRIGGER count_message AFTER INSERT ON messages BEGIN
    UPDATE contexts SET message_count = message_count + 1, last_message_id = max(last_message_id, NEW.id)
    WHERE id = NEW.context_id;
END""",
    """
CREATE TRIGGER uncount_message AFTER DELETE ON messages BEGIN
    UPDATE contexts SET message_count = message_count - 1,
        last_message_id = CASE WHEN last_message_id > OLD.id THEN last_message_id ELSE coalesce(
            (SELECT id FROM messages WHERE context_id = OLD.context_id ORDER BY position DESC LIMIT 1), 0) END
    WHERE id = OLD.context_id;
END""",
    """
CREATE TRIGGER move_message AFTER UPDATE OF context_id ON messages BEGIN
    UPDATE contexts SET message_count = message_count - 1 WHERE id = OLD.context_id;
    UPDATE contexts SET message_count = message_count + 1, last_message_id = max(last_message_id, NEW.id)
    WHERE id = NEW.context_id;
END""",
    "CREATE TRIGGER count_usage AFTER INSERT ON model_usage BEGIN :add END",
    "CREATE TRIGGER uncount_usage AFTER DELETE ON model_usage BEGIN :take END",
    "CREATE TRIGGER change_usage AFTER UPDATE ON model_usage BEGIN :take :add END",
)
# Functions keep the search path that they were made with: a dump that is restored counts, too. Messages are counted
# once for all that a statement adds or deletes; row by row, each would leave a version of its row of contexts behind.
_POSTGRES: Final = (
    """
CREATE FUNCTION count_messages() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE contexts SET message_count = message_count + come.count, last_message_id = greatest(last_message_id, newest)
    FROM (SELECT context_id, count(*) AS count, max(id) AS newest FROM added GROUP BY context_id) come
    WHERE contexts.id = come.context_id;
    RETURN NULL;
END $$""",
    """
CREATE FUNCTION uncount_messages() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE contexts SET message_count = message_count - gone.count,
        last_message_id = CASE WHEN last_message_id > gone.newest THEN last_message_id ELSE coalesce(
            (SELECT id FROM messages WHERE context_id = contexts.id ORDER BY position DESC LIMIT 1), 0) END
    FROM (SELECT context_id, count(*) AS count, max(id) AS newest FROM deleted GROUP BY context_id) gone
    WHERE contexts.id = gone.context_id;
    RETURN NULL;
END $$""",
    """
CREATE FUNCTION move_message() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE contexts SET message_count = message_count - 1 WHERE id = OLD.context_id;
    UPDATE contexts SET message_count = message_count + 1, last_message_id = greatest(last_message_id, NEW.id)
    WHERE id = NEW.context_id;
    RETURN NULL;
END $$""",
    """
CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    IF TG_OP <> 'INSERT' THEN :take END IF;
    IF TG_OP <> 'DELETE' THEN :add END IF;
    RETURN NULL;
END $$""",
    """
CREATE TRIGGER count_messages AFTER INSERT ON messages REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_messages()""",
    """
CREATE TRIGGER uncount_messages AFTER DELETE ON messages REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION uncount_messages()""",
    "CREATE TRIGGER move_message AFTER UPDATE OF context_id ON messages FOR EACH ROW EXECUTE FUNCTION move_message()",
    """
CREATE TRIGGER count_usage AFTER INSERT OR UPDATE OR DELETE ON model_usage
FOR EACH ROW EXECUTE FUNCTION count_usage()""",
)
# Notes go with anything that was read for them, and those after them, too: the rest is read again in its order.
_IS_READ_FOR: Final = "context_id = OLD.context_id AND first_position <= OLD.position AND last_position >= OLD.position"
_UNREAD_SQLITE: Final = """
    UPDATE observed SET version = version + 1, due_at = 0, tries = 0, again_to = max(again_to, read_to),
        read_to = min(read_to, coalesce((SELECT min(first_position) - 1 FROM notes WHERE :is_read_for), :otherwise))
    WHERE context_id = OLD.context_id;
    DELETE FROM notes WHERE context_id = OLD.context_id
        AND last_position > (SELECT read_to FROM observed WHERE context_id = OLD.context_id);"""
_OBSERVING_SQLITE: Final = (
    """
CREATE TRIGGER unread_deleted AFTER DELETE ON messages
WHEN EXISTS (SELECT 1 FROM notes WHERE :is_read_for)
BEGIN :unread END""".replace(":unread", _UNREAD_SQLITE.replace(":otherwise", "read_to")),
    """
CREATE TRIGGER unread_changed AFTER UPDATE OF text, own_text, said_by_others ON messages
WHEN (OLD.text IS NOT NEW.text OR OLD.own_text IS NOT NEW.own_text OR OLD.said_by_others IS NOT NEW.said_by_others)
    AND EXISTS (SELECT 1 FROM observed WHERE context_id = OLD.context_id AND read_to >= OLD.position)
BEGIN :unread
    DELETE FROM facts WHERE source_message_id = OLD.id AND set_by = 'observer';
END""".replace(":unread", _UNREAD_SQLITE.replace(":otherwise", "OLD.position - 1")),
    """
CREATE TRIGGER reopen_facts AFTER DELETE ON facts BEGIN
    UPDATE facts SET superseded_at = OLD.superseded_at, valid_to = OLD.valid_to, ended_by = OLD.ended_by
    WHERE ended_by = OLD.id;
END""",
)
# Whoever writes notes holds the row of their conversation: what they write is seen here, or they see what is gone.
_OBSERVING_POSTGRES: Final = (
    """
CREATE FUNCTION unread_from(context bigint, last_read bigint) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE observed SET version = version + 1, due_at = 0, tries = 0, again_to = greatest(again_to, read_to),
        read_to = least(read_to, last_read)
    WHERE context_id = context;
    DELETE FROM notes WHERE context_id = context
        AND last_position > (SELECT read_to FROM observed WHERE context_id = context);
END $$""",
    """
CREATE FUNCTION unread_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    PERFORM 1 FROM contexts WHERE id IN (SELECT context_id FROM deleted) ORDER BY id FOR NO KEY UPDATE;
    PERFORM unread_from(hit.context_id, hit.last_read) FROM (
        SELECT notes.context_id, min(notes.first_position) - 1 AS last_read
        FROM notes JOIN deleted ON deleted.context_id = notes.context_id
            AND deleted.position BETWEEN notes.first_position AND notes.last_position
        GROUP BY notes.context_id ORDER BY notes.context_id
    ) hit;
    RETURN NULL;
END $$""",
    """
CREATE FUNCTION unread_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    PERFORM 1 FROM contexts WHERE id = OLD.context_id FOR NO KEY UPDATE;
    IF EXISTS (SELECT 1 FROM observed WHERE context_id = OLD.context_id AND read_to >= OLD.position) THEN
        PERFORM unread_from(OLD.context_id, coalesce(
            (SELECT min(first_position) - 1 FROM notes WHERE context_id = OLD.context_id
                AND OLD.position BETWEEN first_position AND last_position), OLD.position - 1));
        DELETE FROM facts WHERE source_message_id = OLD.id AND set_by = 'observer';
    END IF;
    RETURN NULL;
END $$""",
    """
CREATE FUNCTION reopen_facts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE facts SET superseded_at = OLD.superseded_at, valid_to = OLD.valid_to, ended_by = OLD.ended_by
    WHERE ended_by = OLD.id;
    RETURN NULL;
END $$""",
    """
CREATE TRIGGER unread_deleted AFTER DELETE ON messages REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION unread_deleted()""",
    """
CREATE TRIGGER unread_changed AFTER UPDATE OF text, own_text, said_by_others ON messages FOR EACH ROW
WHEN (OLD.text IS DISTINCT FROM NEW.text OR OLD.own_text IS DISTINCT FROM NEW.own_text
    OR OLD.said_by_others IS DISTINCT FROM NEW.said_by_others) EXECUTE FUNCTION unread_changed()""",
    "CREATE TRIGGER reopen_facts AFTER DELETE ON facts FOR EACH ROW EXECUTE FUNCTION reopen_facts()",
)
_STATEMENTS: Final = {"sqlite": _SQLITE, "postgresql": _POSTGRES}
_OBSERVING: Final = {"sqlite": _OBSERVING_SQLITE, "postgresql": _OBSERVING_POSTGRES}
# A sum is in so many rows on Postgres: two sessions that count at once would wait for each other with one.
_SHARD: Final = {"sqlite": "0", "postgresql": "mod(pg_backend_pid(), 64)"}


def make_triggers(connection: Connection) -> None:
    """Have the database count from now on."""
    kind = connection.dialect.name
    for statement in _STATEMENTS[kind]:
        whole = statement.replace(":add", _ADD).replace(":take", _TAKE)
        connection.exec_driver_sql(whole.replace(":shard", _SHARD[kind]))


def make_observing_triggers(connection: Connection) -> None:
    """Have what was noted of messages go with them from now on."""
    for statement in _OBSERVING[connection.dialect.name]:
        connection.exec_driver_sql(statement.replace(":is_read_for", _IS_READ_FOR))


@event.listens_for(metadata, "after_create")
def _make_triggers(_target: object, connection: Connection, **_: Any) -> None:
    make_triggers(connection)
    make_observing_triggers(connection)
