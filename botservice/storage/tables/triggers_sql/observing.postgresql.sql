-- Notes go with anything that was read for them, and those after them, too: the rest is read again in its order.
-- Whoever writes notes holds the row of their conversation: what they write is seen here, or they see what is gone.
CREATE FUNCTION unread_from(context bigint, last_read bigint) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE observed SET version = version + 1, due_at = 0, tries = 0, again_to = greatest(again_to, read_to),
        read_to = least(read_to, last_read)
    WHERE context_id = context;
    DELETE FROM notes WHERE context_id = context
        AND last_position > (SELECT read_to FROM observed WHERE context_id = context);
END $$;

CREATE FUNCTION unread_deleted() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    PERFORM 1 FROM contexts WHERE id IN (SELECT context_id FROM deleted) ORDER BY id FOR NO KEY UPDATE;
    PERFORM unread_from(hit.context_id, hit.last_read) FROM (
        SELECT notes.context_id, min(notes.first_position) - 1 AS last_read
        FROM notes JOIN deleted ON deleted.context_id = notes.context_id
            AND deleted.position BETWEEN notes.first_position AND notes.last_position
        GROUP BY notes.context_id ORDER BY notes.context_id
    ) hit;
    RETURN NULL;
END $$;

CREATE FUNCTION unread_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    PERFORM 1 FROM contexts WHERE id = OLD.context_id FOR NO KEY UPDATE;
    IF EXISTS (SELECT 1 FROM observed WHERE context_id = OLD.context_id AND read_to >= OLD.position) THEN
        PERFORM unread_from(OLD.context_id, coalesce(
            (SELECT min(first_position) - 1 FROM notes WHERE context_id = OLD.context_id
                AND OLD.position BETWEEN first_position AND last_position), OLD.position - 1));
        DELETE FROM facts WHERE source_message_id = OLD.id AND set_by = 'observer';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION reopen_facts() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE facts SET superseded_at = OLD.superseded_at, valid_to = OLD.valid_to, ended_by = OLD.ended_by
    WHERE ended_by = OLD.id;
    RETURN NULL;
END $$;

CREATE TRIGGER unread_deleted AFTER DELETE ON messages REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION unread_deleted();

CREATE TRIGGER unread_changed AFTER UPDATE OF text, own_text, said_by_others ON messages FOR EACH ROW
WHEN (OLD.text IS DISTINCT FROM NEW.text OR OLD.own_text IS DISTINCT FROM NEW.own_text
    OR OLD.said_by_others IS DISTINCT FROM NEW.said_by_others) EXECUTE FUNCTION unread_changed();

CREATE TRIGGER reopen_facts AFTER DELETE ON facts FOR EACH ROW EXECUTE FUNCTION reopen_facts();
