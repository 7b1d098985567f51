-- Notes go with anything that was read for them, and those after them, too: the rest is read again in its order.
CREATE TRIGGER unread_deleted AFTER DELETE ON messages
WHEN EXISTS (
    SELECT 1 FROM notes
    WHERE context_id = OLD.context_id AND first_position <= OLD.position AND last_position >= OLD.position
)
BEGIN
    UPDATE observed SET version = version + 1, due_at = 0, tries = 0, again_to = max(again_to, read_to),
        read_to = min(read_to, coalesce((
            SELECT min(first_position) - 1 FROM notes
            WHERE context_id = OLD.context_id AND first_position <= OLD.position AND last_position >= OLD.position
        ), read_to))
    WHERE context_id = OLD.context_id;
    DELETE FROM notes WHERE context_id = OLD.context_id
        AND last_position > (SELECT read_to FROM observed WHERE context_id = OLD.context_id);
END;

CREATE TRIGGER unread_changed AFTER UPDATE OF text, own_text, said_by_others ON messages
WHEN (OLD.text IS NOT NEW.text OR OLD.own_text IS NOT NEW.own_text OR OLD.said_by_others IS NOT NEW.said_by_others)
    AND EXISTS (SELECT 1 FROM observed WHERE context_id = OLD.context_id AND read_to >= OLD.position)
BEGIN
    UPDATE observed SET version = version + 1, due_at = 0, tries = 0, again_to = max(again_to, read_to),
        read_to = min(read_to, coalesce((
            SELECT min(first_position) - 1 FROM notes
            WHERE context_id = OLD.context_id AND first_position <= OLD.position AND last_position >= OLD.position
        ), OLD.position - 1))
    WHERE context_id = OLD.context_id;
    DELETE FROM notes WHERE context_id = OLD.context_id
        AND last_position > (SELECT read_to FROM observed WHERE context_id = OLD.context_id);
    DELETE FROM facts WHERE source_message_id = OLD.id AND set_by = 'observer';
END;

CREATE TRIGGER reopen_facts AFTER DELETE ON facts BEGIN
    UPDATE facts SET superseded_at = OLD.superseded_at, valid_to = OLD.valid_to, ended_by = OLD.ended_by
    WHERE ended_by = OLD.id;
END;
