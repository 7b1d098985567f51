"""The wordings by which servers refuse a request, as a table: the first row that fits says what a refusal means.

Above each row stand the servers that say so. A new wording is a pattern here and a line in
`tests/data/model_errors.jsonl`.
"""

import re
from dataclasses import dataclass
from typing import Final

from botservice.core.errors import LLMFailure

# What a request can go without, or be made without. The names appear in the record of what a server does not take.
ALTERNATING_ROLES: Final = "two user messages in a row"
LATER_SYSTEM: Final = "system message after the first"
SYSTEM_ROLE: Final = "system message"
CALL_IDS: Final = "tool call id"
REASONING_BACK: Final = "answer without reasoning_content"
SIGNATURE_BACK: Final = "call without thought_signature"
SCHEMA: Final = "response_format"
CHAT_PATH: Final = "/chat/completions"
MISSING_PATH: Final = "path"
WEB_SEARCH: Final = "web_search"
INCLUDE: Final = "include"
IMAGE: Final = "image"
ONE_IMAGE: Final = "one image"
FILE: Final = "file"
AUDIO: Final = "audio"
TOOLS: Final = "tools"
STREAM: Final = "stream"
CALLS_ALONE: Final = "calls without tools"
MESSAGE_FIELDS: Final = ("reasoning_content", "reasoning_details", "reasoning", "extra_content", "thinking_blocks")

CLIENT_STATUSES: Final = frozenset({400, 404, 413, 415, 422})
"""The statuses by which servers refuse a request as it is."""


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """One row of the table.

    Attributes:
        kind: What a refusal means.
        pattern: What its text contains.
        refused: What the server does not take.
        statuses: The HTTP statuses that it comes with; inside of a stream there may be none, which fits any.
    """

    kind: LLMFailure
    pattern: re.Pattern[str]
    refused: str | None
    statuses: frozenset[int]


_REQUEST: Final = CLIENT_STATUSES | {500, 501}  # some report as 500 what they do not take, or what a template raises
_IS_UNKNOWN: Final = (
    r"un(?:recogni[sz]ed|known|supported|expected)|extra[_ ](?:inputs?|fields?|forbidden)|additional properties|"
    r"not (?:permitted|allowed|support|implemented|valid)|does ?n[o']t (?:support|accept)|no longer supported"
)


def _rule(kind: LLMFailure, *patterns: str, refused: str | None = None, only: frozenset[int] = _REQUEST) -> ErrorRule:
    return ErrorRule(kind, re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL | re.MULTILINE), refused, only)


def _field(name: str, *also: str, is_word: bool = False) -> ErrorRule:
    """Return the row for a field that a server does not know, in whatever order it says so.

    Args:
        is_word: It is an ordinary word, too, and counts in quotes or brackets alone.
    """
    edge = r"""['"`\[\]]""" if is_word else ""
    named = rf"(?<![\w-]){edge}{re.escape(name)}{edge}(?![\w-])"
    either = rf"(?:{_IS_UNKNOWN}).{{0,400}}?{named}|{named}.{{0,400}}?(?:{_IS_UNKNOWN})"
    return _rule(LLMFailure.UNSUPPORTED_FIELD, either, rf"^{re.escape(name)}$", *also, refused=name)


RULES: Final = (
    # Tools by the other API alone (OpenAI, gpt-5.6 and later).
    _rule(LLMFailure.UNSUPPORTED_FIELD, r"/v1/responses\b", refused=CHAT_PATH, only=frozenset({400})),
    # What the model wrote was no call, or none that its tool takes: it may write another one (Groq).
    _rule(LLMFailure.UNAVAILABLE, r"failed to call a function|tool call validation failed", only=frozenset({400})),
    # Calls of earlier steps, where no tools are offered: Bedrock, LiteLLM before it; Anthropic.
    _rule(
        LLMFailure.UNSUPPORTED_FIELD,
        r"toolConfig field must be defined|without .?tools=.? param|blocks[^.]{0,40} must define tools",
        refused=CALLS_ALONE,
    ),
    # Bedrock; Cerebras; OpenAI, whose organisations have to be verified.
    _rule(
        LLMFailure.UNSUPPORTED_FIELD,
        r"(?:not|n't) support[^.]{0,40} in streaming|streaming (?:is )?not (?:supported|available|allowed)",
        r"must be verified to stream|\bstream(?:ing)?\b.{0,20}(?:not |un)support",
        refused=STREAM,
    ),
    # Mistral; Anthropic; OpenAI.
    _rule(
        LLMFailure.UNSUPPORTED_FIELD,
        r"tool.?call.?id was \S+ but must be|invalid (?:tool.?call|call).?id",
        r"(?:tool_use\.id|tool_use_id|tool_calls\[\d+\]\.id|call_id)\W{1,4}string (?:too long|does not|should)",
        refused=CALL_IDS,
    ),
    # One request alone is larger than what is allowed in a minute: OpenAI, Groq.
    _rule(LLMFailure.OVERFLOW, r"request too large for|tokens must be reduced", only=_REQUEST | {429}),
    # OpenAI, Azure, Anthropic, Ollama, MiniMax, llama.cpp, LM Studio; vLLM, xAI, Fireworks; Bedrock, Cohere; Gemini,
    # Zhipu; Copilot, Groq; DashScope, TGI; Mistral, Kimi; servers before which a proxy stands.
    _rule(
        LLMFailure.OVERFLOW,
        r"context[_ ]?(?:length|window|limit|size)|ContextWindowExceeded|n_ctx|kv cache",
        r"maximum (?:context|model|prompt|input|sequence)[_ ](?:len|tokens?)|max[_ ]?(?:seq|model|context)[_ ]?len",
        r"(?:prompt|input|request|message|conversation)s?(?: body| text| tokens?)? (?:is |are )?too (?:long|large|big)",
        r"too many (?:input )?tokens(?!, please wait)|input tokens? exceed",
        r"prompt exceeds|exceeded (?:max )?(?:model )?token limit",
        r"(?:input|prompt) (?:token count|length)[^.]{0,80}exceed|tokens in request more than",
        r"exceed[^.]{0,60}(?:number of tokens|token limit|max length)|exceeds? (?:the )?limit of [\d,]+",
        r"reduce the (?:length|size|number)[^.]{0,40}(?:message|prompt|input)",
        r"input length should be|must have less than [\d,]+ tokens|`inputs` tokens \+ `max_new_tokens`",
        r"too large for model with|(?:content|input|text)\W{1,3}string too long|request_too_large",
        r"(?:entity|payload) too large|\u8d85\u957f|\u8d85\u8fc7\u6700\u5927|\u8d85\u51fa\u6700\u5927",
    ),
    # DeepSeek; Azure; OpenAI; DashScope; Kimi; Gemini; OpenRouter; Anthropic; Zhipu.
    _rule(
        LLMFailure.CONTENT_FILTER,
        r"content exists risk|content[_ ](?:management|filter|safety|moderation|polic)|flagged (?:as|for)|usage polic",
        r"inappropriate content|considered high risk|prohibited[_ ]content|data_?inspection|responsible ?ai",
        r"requires moderation|safety (?:filter|system|polic|settings|check)|sensitive content|unsafe content",
        r"\u654f\u611f",
        r"blocked by (?:our |the )?(?:guardrail|content|safety)|violates? (?:our|the) (?:content|terms|polic)",
        only=_REQUEST | {403, 451},
    ),
    # Templates of models, as llama.cpp, vLLM and LM Studio apply them; Mistral; Gemma by Gemini.
    _rule(LLMFailure.UNSUPPORTED_FIELD, r"roles? must alternate|alternate user/assistant", refused=ALTERNATING_ROLES),
    _rule(
        LLMFailure.UNSUPPORTED_FIELD,
        r"system (?:message|role)s? (?:must|should|can only|may only) be (?:at )?(?:the )?(?:first|beginning)",
        r"unexpected role .?system.? after|only the first message can (?:be|have)[^.]{0,20}system",
        refused=LATER_SYSTEM,
    ),
    _rule(
        LLMFailure.UNSUPPORTED_FIELD,
        r"system (?:role|message|prompt|instruction)s?[^.]{0,30}(?:not supported|unsupported|not allowed|not enabled)",
        r"developer instruction is not enabled|not support (?:the )?system (?:role|message|prompt)",
        refused=SYSTEM_ROLE,
    ),
    # Gemini; DeepSeek and Kimi: with tools.
    _rule(LLMFailure.UNSUPPORTED_FIELD, r"missing (?:a )?.?thought_signature", refused=SIGNATURE_BACK),
    _rule(
        LLMFailure.UNSUPPORTED_FIELD,
        r"reasoning_content.{0,80}(?:missing|must be (?:passed|provided|included)|required)",
        r"missing .?reasoning_content",
        refused=REASONING_BACK,
    ),
    _field(INCLUDE, r"encrypted.content is not supported", r"reasoning\.encrypted_content", is_word=True),
    *map(
        _field,
        ("stream_options", "max_completion_tokens", "max_tool_calls", "prompt_cache_key", "prompt_cache_breakpoint"),
    ),
    _rule(
        LLMFailure.UNSUPPORTED_FIELD,
        r"response_format|text\.format|json_schema|structured.output|guided|grammar|json mode is not enabled",
        refused=SCHEMA,
    ),
    *(_field(name, is_word="_" not in name) for name in MESSAGE_FIELDS),
    _field("reasoning_effort", r"^reasoning\.effort$"),
    _field("temperature", is_word=True),
    _rule(LLMFailure.UNSUPPORTED_FIELD, r"\bweb_search\b", refused=WEB_SEARCH),
    _rule(
        LLMFailure.UNSUPPORTED_INPUT,
        r"audio input is not supported|(?:not|that) support[^.]{0,20}\baudio|unknown variant .{0,3}input_audio",
        refused=AUDIO,
    ),
    # One picture, which is damaged, too large or of another format: Anthropic; Gemini; OpenAI; llama.cpp; Ollama.
    _rule(
        LLMFailure.UNSUPPORTED_INPUT,
        r"(?:not|to) process (?:\w+ )?image|image exceeds|unsupported (?:image|mime|media)|image: unknown format",
        r"invalid[_ ](?:base64 )?image|failed to (?:load|process|decode) image|image_parse_error|image is not valid",
        refused=ONE_IMAGE,
    ),
    # OpenAI, llama.cpp; Volcengine, LM Studio, OpenRouter; vLLM; DeepSeek; Anthropic; Gemini; Ollama; Groq, Mistral.
    _rule(
        LLMFailure.UNSUPPORTED_INPUT,
        r"(?<![\w/.-])(?:image_url|images?|vision|multi-?modal)\b[^.]{0,60}"
        r"(?:not (?:be )?(?:support|enabled|allow)|unsupported|only supported)",
        r"(?:not|n't|cannot|unable to|no) (?:support|accept|process|handle|read|understand|see|have|allow)[^.]{0,40}"
        r"(?<![/.-])(?:image|vision|multi-?modal|picture)",
        r"not a multi-?modal|support image input|at most \d+ image|required for image input",
        r"unknown variant .{0,3}image_url|only .?text.? content|content.type.{0,40}image_url",
        r"cannot unmarshal array into[^.]{0,40}\.messages\.content",
        r"allowed values: \[?.?text|content.{0,20}(?:must be a string|should be a valid string)",
        refused=IMAGE,
    ),
    _rule(
        LLMFailure.UNSUPPORTED_INPUT,
        r"\b(?:input_file|file|document|pdf)s?\b.{0,40}(?:not (?:be )?support|unsupported|not allow|not accept)",
        r"(?:not support|unsupported)[^.]{0,40}\b(?:files?|pdfs?|input_file|documents?)\b",
        r"unknown variant .{0,3}(?:file|input_file)\b",
        refused=FILE,
    ),
    # Ollama; OpenRouter; vLLM; Gemini; llama.cpp.
    _rule(
        LLMFailure.UNSUPPORTED_INPUT,
        r"(?:not|n't) support (?:the use of )?(?:tools?|functions?)\b|support tool use|enable-auto-tool-choice",
        r"(?:tools?|functions?)(?: use| usage| call(?:ing|s)?)? (?:is|are) (?:currently )?not "
        r"(?:support|enabled|available|allow)",
        r"\btools? param\w* requires",
        refused=TOOLS,
    ),
    # Anthropic; DeepSeek, Kimi; OpenRouter; xAI; DashScope.
    _rule(
        LLMFailure.OUT_OF_QUOTA,
        r"credit balance|insufficient (?:account )?(?:balance|credits?|funds|quota)|all available credits",
        r"spending limit|(?:out of|no|requires? more|not enough) credits?\b|payment required|arrear|overdue",
        only=CLIENT_STATUSES | {402, 403, 429},
    ),
    # Gemini; xAI, OpenAI, Anthropic; OpenRouter; LiteLLM, which looks a key up in a database that it has not.
    _rule(
        LLMFailure.UNAUTHORIZED,
        r"api[_ -]?key (?:is )?(?:not valid|invalid|expired|missing|not found|disabled)|unauthenticated",
        r"(?:in(?:correct|valid)|missing|no|wrong) (?:x-)?api[_ -]?key|no auth credentials",
        r"invalid (?:authentication|authorization|token|credentials)|no connected db",
        r"location is not supported|country, region,? or territory not supported",
        only=CLIENT_STATUSES | {401, 403},
    ),
    # An item of an answer that the server was told not to keep (OpenAI, Responses).
    _rule(LLMFailure.BAD_REQUEST, r"\bItem\b.*\bnot found\b", only=frozenset({400, 404})),
    _rule(
        LLMFailure.BAD_REQUEST,
        r"invalid url|page not found|cannot (?:post|get)|method not allowed|unexpected endpoint",
        refused=MISSING_PATH,
        only=frozenset({400, 404, 405, 410}),
    ),
    # OpenAI, Ollama, vLLM, DeepSeek; Groq; Mistral, OpenRouter; Bedrock; LM Studio; Azure.
    _rule(
        LLMFailure.UNKNOWN_MODEL,
        r"\bmodel\b[^.]{0,80}(?:not found|not exist|n't exist|not available|no longer available|not loaded)",
        r"\bmodel\b[^.]{0,80}(?:has been|is|was) (?:decommissioned|deprecated|retired|shut down)",
        r"(?:unknown|no such|invalid) model\b|no endpoints found|not a valid model|model identifier is invalid",
        r"no models? (?:is |are )?(?:loaded|found)|deployment[^.]{0,60}not exist",
        only=frozenset({400, 404, 410, 422, 503}),
    ),
)

KIND_OF_CODE: Final = {
    "insufficient_quota": LLMFailure.OUT_OF_QUOTA,
    "billing_hard_limit_reached": LLMFailure.OUT_OF_QUOTA,
    "billing_not_active": LLMFailure.OUT_OF_QUOTA,
    "exceeded_current_quota_error": LLMFailure.OUT_OF_QUOTA,
    "insufficient_balance": LLMFailure.OUT_OF_QUOTA,
    "model_not_found": LLMFailure.UNKNOWN_MODEL,
    "model_deprecated": LLMFailure.UNKNOWN_MODEL,
    "model_decommissioned": LLMFailure.UNKNOWN_MODEL,
    "resource_not_found_error": LLMFailure.UNKNOWN_MODEL,
    "rate_limit_exceeded": LLMFailure.RATE_LIMITED,
    "rate_limit_error": LLMFailure.RATE_LIMITED,
    "rate_limit_reached_error": LLMFailure.RATE_LIMITED,
    "too_many_requests": LLMFailure.RATE_LIMITED,
    "resource_exhausted": LLMFailure.RATE_LIMITED,
    "invalid_api_key": LLMFailure.UNAUTHORIZED,
    "authentication_error": LLMFailure.UNAUTHORIZED,
    "invalid_authentication_error": LLMFailure.UNAUTHORIZED,
    "permission_error": LLMFailure.UNAUTHORIZED,
    "context_length_exceeded": LLMFailure.OVERFLOW,
    "content_filter": LLMFailure.CONTENT_FILTER,
    "invalid_prompt": LLMFailure.CONTENT_FILTER,
    "server_error": LLMFailure.UNAVAILABLE,
    "internal_server_error": LLMFailure.UNAVAILABLE,
    "api_error": LLMFailure.UNAVAILABLE,
    "overloaded_error": LLMFailure.UNAVAILABLE,
    "engine_overloaded_error": LLMFailure.UNAVAILABLE,
}
"""What a server's own word for an error means, where the text says nothing more exact."""

KIND_OF_STATUS: Final = {
    401: LLMFailure.UNAUTHORIZED,
    402: LLMFailure.OUT_OF_QUOTA,
    403: LLMFailure.UNAUTHORIZED,
    404: LLMFailure.UNKNOWN_MODEL,
    408: LLMFailure.UNAVAILABLE,
    409: LLMFailure.UNAVAILABLE,
    410: LLMFailure.UNKNOWN_MODEL,
    413: LLMFailure.OVERFLOW,
    425: LLMFailure.UNAVAILABLE,
    429: LLMFailure.RATE_LIMITED,
}
"""What a status means, where neither the text nor a code says it. Of the others, those of 500 and above may pass."""
