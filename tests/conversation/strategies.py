"""What Hypothesis draws for the step memory's tests."""

from datetime import UTC, timedelta, timezone

from hypothesis import strategies as st

from botservice.conversation.field_values import StepError, Timing, ToolResult
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep, FinalAnswerStep, PlanningStep, SystemPromptStep, TaskStep
from botservice.core.messages import Attachment, Author, TokenUsage, ToolCall

# Any character that Python knows, halves of characters and NUL included.
texts = st.text(st.characters(), max_size=20) | st.sampled_from(
    ["\ud83d\ude00", "\0", "[1]", '{"$bytes": "eA=="}', "$x"]
)
zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))) | st.just(UTC)
times = st.datetimes(timezones=st.none() | zones) | st.datetimes().map(lambda value: value.replace(fold=1))
numbers = st.integers() | st.floats() | st.sampled_from([2**64, -(10**700)])
attachments = st.builds(Attachment, st.just("image/png"), st.none() | texts, st.binary(max_size=20))
scalars = st.none() | st.booleans() | numbers | texts | times | st.binary(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
tool_calls = st.builds(
    ToolCall, texts, texts, st.dictionaries(texts, json_values, max_size=3), malformed_arguments=st.none() | texts
)
tool_results = st.builds(ToolResult, texts, texts, st.booleans(), st.none() | st.floats(0, 10))
errors = st.builds(StepError, texts, texts)
timings = st.builds(Timing, st.datetimes(timezones=zones), st.none() | st.datetimes(timezones=zones))
counts = st.sampled_from([None, 0, 7])
usages = st.builds(TokenUsage, st.integers(0), st.integers(0), counts, counts, counts)
authors = st.builds(Author, texts, texts, st.none() | texts)
small_values = attachments | tool_calls | tool_results | errors | timings | usages | authors
values = st.recursive(
    scalars | small_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)

_TAKEN = {name for cls in (MemoryItem, ActionStep) for name in dir(cls)} | {"self", "step"}
names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in _TAKEN
) | st.sampled_from(["kind", "version", "class", "größe", "fields", "first", "a b", "ﬁ", "", "1", "\0"])
free_fields = st.dictionaries(names, values, max_size=4)


answers = {
    "token_usage": usages,
    "model": st.sampled_from(["m", "ein Modell 🦙"]),
    "finish_reason": st.sampled_from(["stop", "length"]),
    "model_items": st.sampled_from([[], [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]]),
}


def _step(cls, first, **declared):
    optional = st.fixed_dictionaries({}, optional=declared)
    return st.builds(lambda a, b, c: cls(a, **{**c, **b}), first, optional, free_fields)


action_steps = _step(
    ActionStep,
    st.integers(0, 1000),
    timing=timings,
    model_input_messages=st.lists(st.dictionaries(texts, json_values, max_size=2), max_size=2),
    tool_calls=st.lists(tool_calls, max_size=3),
    error=errors,
    model_output=texts,
    observations=texts,
    observations_images=st.lists(attachments, max_size=2),
    action_output=values,
    is_final_answer=st.booleans(),
    tool_results=st.lists(tool_results, max_size=3),
    **answers,
)
items = st.builds(lambda fields: MemoryItem(**fields), free_fields)
steps = (
    _step(SystemPromptStep, texts)
    | _step(TaskStep, texts, task_images=st.lists(attachments, max_size=2))
    | _step(PlanningStep, texts, timing=timings, **answers)
    | action_steps
    | _step(FinalAnswerStep, values, timing=timings, **answers)
)
