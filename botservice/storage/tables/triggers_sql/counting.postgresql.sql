-- Functions keep the search path that they were made with: a dump that is restored counts, too. Messages are counted
-- once for all that a statement adds or deletes; row by row, each would leave a version of its row of contexts behind.
-- A sum of model_usage_days is in 64 rows: two sessions that count at once would wait for each other with one.
CREATE FUNCTION count_messages() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE contexts SET message_count = message_count + come.count, last_message_id = greatest(last_message_id, newest)
    FROM (SELECT context_id, count(*) AS count, max(id) AS newest FROM added GROUP BY context_id) come
    WHERE contexts.id = come.context_id;
    RETURN NULL;
END $$;

CREATE FUNCTION uncount_messages() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE contexts SET message_count = message_count - gone.count,
        last_message_id = CASE WHEN last_message_id > gone.newest THEN last_message_id ELSE coalesce(
            (SELECT id FROM messages WHERE context_id = contexts.id ORDER BY position DESC LIMIT 1), 0) END
    FROM (SELECT context_id, count(*) AS count, max(id) AS newest FROM deleted GROUP BY context_id) gone
    WHERE contexts.id = gone.context_id;
    RETURN NULL;
END $$;

CREATE FUNCTION move_message() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    UPDATE contexts SET message_count = message_count - 1 WHERE id = OLD.context_id;
    UPDATE contexts SET message_count = message_count + 1, last_message_id = greatest(last_message_id, NEW.id)
    WHERE id = NEW.context_id;
    RETURN NULL;
END $$;

CREATE FUNCTION count_usage() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO model_usage_days
            (day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens)
        VALUES (OLD.day, OLD.model, mod(pg_backend_pid(), 64), -OLD.calls, -OLD.input_tokens, -OLD.output_tokens,
            -OLD.cached_tokens, -OLD.cost, -OLD.cache_write_tokens)
        ON CONFLICT (day, model, shard) DO UPDATE SET
            calls = model_usage_days.calls + excluded.calls,
            input_tokens = model_usage_days.input_tokens + excluded.input_tokens,
            output_tokens = model_usage_days.output_tokens + excluded.output_tokens,
            cached_tokens = model_usage_days.cached_tokens + excluded.cached_tokens,
            cost = model_usage_days.cost + excluded.cost,
            cache_write_tokens = model_usage_days.cache_write_tokens + excluded.cache_write_tokens;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO model_usage_days
            (day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens)
        VALUES (NEW.day, NEW.model, mod(pg_backend_pid(), 64), NEW.calls, NEW.input_tokens, NEW.output_tokens,
            NEW.cached_tokens, NEW.cost, NEW.cache_write_tokens)
        ON CONFLICT (day, model, shard) DO UPDATE SET
            calls = model_usage_days.calls + excluded.calls,
            input_tokens = model_usage_days.input_tokens + excluded.input_tokens,
            output_tokens = model_usage_days.output_tokens + excluded.output_tokens,
            cached_tokens = model_usage_days.cached_tokens + excluded.cached_tokens,
            cost = model_usage_days.cost + excluded.cost,
            cache_write_tokens = model_usage_days.cache_write_tokens + excluded.cache_write_tokens;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER count_messages AFTER INSERT ON messages REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_messages();

CREATE TRIGGER uncount_messages AFTER DELETE ON messages REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION uncount_messages();

CREATE TRIGGER move_message AFTER UPDATE OF context_id ON messages FOR EACH ROW EXECUTE FUNCTION move_message();

CREATE TRIGGER count_usage AFTER INSERT OR UPDATE OR DELETE ON model_usage
FOR EACH ROW EXECUTE FUNCTION count_usage();
