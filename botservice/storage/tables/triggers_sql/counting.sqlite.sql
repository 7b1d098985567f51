CREATE TRIGGER count_message AFTER INSERT ON messages BEGIN
    UPDATE contexts SET message_count = message_count + 1, last_message_id = max(last_message_id, NEW.id)
    WHERE id = NEW.context_id;
END;

CREATE TRIGGER uncount_message AFTER DELETE ON messages BEGIN
    UPDATE contexts SET message_count = message_count - 1,
        last_message_id = CASE WHEN last_message_id > OLD.id THEN last_message_id ELSE coalesce(
            (SELECT id FROM messages WHERE context_id = OLD.context_id ORDER BY position DESC LIMIT 1), 0) END
    WHERE id = OLD.context_id;
END;

CREATE TRIGGER move_message AFTER UPDATE OF context_id ON messages BEGIN
    UPDATE contexts SET message_count = message_count - 1 WHERE id = OLD.context_id;
    UPDATE contexts SET message_count = message_count + 1, last_message_id = max(last_message_id, NEW.id)
    WHERE id = NEW.context_id;
END;

CREATE TRIGGER count_usage AFTER INSERT ON model_usage BEGIN
    INSERT INTO model_usage_days
        (day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens)
    VALUES (NEW.day, NEW.model, 0, NEW.calls, NEW.input_tokens, NEW.output_tokens, NEW.cached_tokens, NEW.cost,
        NEW.cache_write_tokens)
    ON CONFLICT (day, model, shard) DO UPDATE SET
        calls = model_usage_days.calls + excluded.calls,
        input_tokens = model_usage_days.input_tokens + excluded.input_tokens,
        output_tokens = model_usage_days.output_tokens + excluded.output_tokens,
        cached_tokens = model_usage_days.cached_tokens + excluded.cached_tokens,
        cost = model_usage_days.cost + excluded.cost,
        cache_write_tokens = model_usage_days.cache_write_tokens + excluded.cache_write_tokens;
END;

CREATE TRIGGER uncount_usage AFTER DELETE ON model_usage BEGIN
    INSERT INTO model_usage_days
        (day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens)
    VALUES (OLD.day, OLD.model, 0, -OLD.calls, -OLD.input_tokens, -OLD.output_tokens, -OLD.cached_tokens, -OLD.cost,
        -OLD.cache_write_tokens)
    ON CONFLICT (day, model, shard) DO UPDATE SET
        calls = model_usage_days.calls + excluded.calls,
        input_tokens = model_usage_days.input_tokens + excluded.input_tokens,
        output_tokens = model_usage_days.output_tokens + excluded.output_tokens,
        cached_tokens = model_usage_days.cached_tokens + excluded.cached_tokens,
        cost = model_usage_days.cost + excluded.cost,
        cache_write_tokens = model_usage_days.cache_write_tokens + excluded.cache_write_tokens;
END;

CREATE TRIGGER change_usage AFTER UPDATE ON model_usage BEGIN
    INSERT INTO model_usage_days
        (day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens)
    VALUES (OLD.day, OLD.model, 0, -OLD.calls, -OLD.input_tokens, -OLD.output_tokens, -OLD.cached_tokens, -OLD.cost,
        -OLD.cache_write_tokens)
    ON CONFLICT (day, model, shard) DO UPDATE SET
        calls = model_usage_days.calls + excluded.calls,
        input_tokens = model_usage_days.input_tokens + excluded.input_tokens,
        output_tokens = model_usage_days.output_tokens + excluded.output_tokens,
        cached_tokens = model_usage_days.cached_tokens + excluded.cached_tokens,
        cost = model_usage_days.cost + excluded.cost,
        cache_write_tokens = model_usage_days.cache_write_tokens + excluded.cache_write_tokens;
    INSERT INTO model_usage_days
        (day, model, shard, calls, input_tokens, output_tokens, cached_tokens, cost, cache_write_tokens)
    VALUES (NEW.day, NEW.model, 0, NEW.calls, NEW.input_tokens, NEW.output_tokens, NEW.cached_tokens, NEW.cost,
        NEW.cache_write_tokens)
    ON CONFLICT (day, model, shard) DO UPDATE SET
        calls = model_usage_days.calls + excluded.calls,
        input_tokens = model_usage_days.input_tokens + excluded.input_tokens,
        output_tokens = model_usage_days.output_tokens + excluded.output_tokens,
        cached_tokens = model_usage_days.cached_tokens + excluded.cached_tokens,
        cost = model_usage_days.cost + excluded.cost,
        cache_write_tokens = model_usage_days.cache_write_tokens + excluded.cache_write_tokens;
END;
