"""A Bot API server on loopback, as strict as the real one: `with BotApi.running() as api: …`."""

from standins.bot_api.calls import ApiError, Call, bad_request
from standins.bot_api.chats import Draft, Person, Visible
from standins.bot_api.entities import Strictness
from standins.bot_api.faults import Delay, Drop, Hang, LoseAnswer, Order, Refuse, flood, server_error
from standins.bot_api.journal import (
    CallAnswered,
    CallReceived,
    DraftShown,
    MessageDeleted,
    MessageEdited,
    MessageShown,
    Outcome,
    UpdateConfirmed,
    UpdateMade,
    UpdateSent,
    UpdatesThrownAway,
    WebhookAnswered,
)
from standins.bot_api.limits import RateLimits
from standins.bot_api.people import Said
from standins.bot_api.server import TOKEN, BotApi, random_token
from standins.bot_api.webhooks import Delivery

__all__ = [
    "TOKEN",
    "ApiError",
    "BotApi",
    "Call",
    "CallAnswered",
    "CallReceived",
    "Delay",
    "Delivery",
    "Draft",
    "DraftShown",
    "Drop",
    "Hang",
    "LoseAnswer",
    "MessageDeleted",
    "MessageEdited",
    "MessageShown",
    "Order",
    "Outcome",
    "Person",
    "RateLimits",
    "Refuse",
    "Said",
    "Strictness",
    "UpdateConfirmed",
    "UpdateMade",
    "UpdateSent",
    "UpdatesThrownAway",
    "Visible",
    "WebhookAnswered",
    "bad_request",
    "flood",
    "random_token",
    "server_error",
]
