"""What alerts and other apps show without a text: the model reads all that people see, in order."""

from typing import Any

import pytest
from standins.slack_api import BOT_USER, SlackApi

from transports.slack.content import words_of, words_of_shared
from transports.slack.inbound_messages import readable
from transports.slack.interactions import ASK_CALLBACK

MENTION = f"<@{BOT_USER}>"


def mrkdwn(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": list(elements)}


GRAFANA = {
    "color": "#D63232",
    "title": "[FIRING:1] Disk almost full (node-7)",
    "title_link": "https://grafana.example/alerting/7?a=1&b=2",
    "text": "*Summary:* 93 % of /var is used",
    "fields": [{"title": "severity", "value": "critical", "short": True}, {"title": "", "value": "host: node-7"}],
    "fallback": "[FIRING:1] Disk almost full (node-7)",
    "image_url": "https://grafana.example/render.png",
    "footer": "Grafana v11.2",
    "ts": 1732600000,
}
PAGERDUTY = [
    {"type": "section", "text": mrkdwn("*<https://pd.example/incidents/Q1|#4711: API is down>*")},
    {"type": "section", "fields": [mrkdwn("*Service:*\nCheckout"), mrkdwn("*Assigned:*\n<@U0BOB>")]},
    {"type": "divider"},
    {"type": "context", "elements": [mrkdwn("Triggered by Prometheus"), {"type": "image", "alt_text": "siren"}]},
    {
        "type": "actions",
        "elements": [
            {"type": "button", "text": plain("Acknowledge"), "action_id": "ack", "value": "Q1"},
            {"type": "button", "text": plain("Runbook"), "url": "https://wiki.example/run?x=1&y=2"},
        ],
    },
]
DATADOG = {
    "pretext": "<!channel> monitor alert",
    "author_name": "Datadog",
    "author_link": "https://app.datadog.example",
    "title": "p99 above 2 s",
    "text": "Query: `avg:latency{env:prod} &gt; 2`",
    "actions": [{"type": "button", "text": "Mute", "url": "https://app.datadog.example/mute"}],
}
GITHUB = {"color": "#24292f", "blocks": [{"type": "section", "text": mrkdwn("Deploy *failed* on `main`")}]}

CASES = [
    (
        {"text": "", "attachments": [GRAFANA]},
        (
            "[\\[FIRING:1\\] Disk almost full (node-7)](https://grafana.example/alerting/7?a=1&b=2)\n"
            "*Summary:* 93 % of /var is used\nseverity: critical\nhost: node-7\nGrafana v11.2"
        ),
    ),
    (
        {"text": "API is down", "blocks": PAGERDUTY},
        (
            "*[#4711: API is down](https://pd.example/incidents/Q1)*\n*Service:*\nCheckout\n*Assigned:*\n@Bob\n"
            "Triggered by Prometheus [picture: siren]\n[button: Acknowledge] [Runbook](https://wiki.example/run?x=1&y=2)"
        ),
    ),
    (
        {"text": "", "attachments": [DATADOG]},
        (
            "@channel monitor alert\n[Datadog](https://app.datadog.example)\np99 above 2 s\n"
            "Query: `avg:latency{env:prod} > 2`\n[Mute](https://app.datadog.example/mute)"
        ),
    ),
    ({"text": "build 7", "attachments": [GITHUB]}, "build 7\nDeploy *failed* on `main`"),
    ({"text": "", "attachments": [{"fallback": "only this"}]}, "only this"),
    ({"text": "", "attachments": [{"image_url": "https://x.example/a.png"}]}, "[picture]"),
    ({"text": "", "blocks": [{"type": "header", "text": plain("Big &amp; bold")}]}, "Big & bold"),
    ({"text": "", "blocks": [{"type": "markdown", "text": "# As *written*"}]}, "# As *written*"),
    ({"text": "", "blocks": [{"type": "image", "title": plain("Load"), "image_url": "https://x"}]}, "[picture: Load]"),
    (
        {
            "text": "",
            "blocks": [
                {
                    "type": "video",
                    "title": plain("Talk"),
                    "title_url": "https://v.example/1",
                    "description": plain("An hour"),
                    "alt_text": "a talk",
                }
            ],
        },
        "[Talk](https://v.example/1)\nAn hour",
    ),
    (
        {
            "text": "",
            "blocks": [
                {
                    "type": "table",
                    "rows": [
                        [{"type": "raw_text", "text": "host"}, {"type": "raw_text", "text": "load"}],
                        [
                            rich({"type": "rich_text_section", "elements": [{"type": "text", "text": "a<b"}]}),
                            {"type": "raw_number", "value": 7},
                        ],
                    ],
                }
            ],
        },
        "host | load\na<b | 7",
    ),
    (
        {
            "text": "",
            "blocks": [
                rich(
                    {
                        "type": "rich_text_section",
                        "elements": [
                            {"type": "text", "text": "see &lt; "},
                            {"type": "link", "url": "https://a.example/?x=1&copy=2", "text": "this"},
                            {"type": "text", "text": " now", "style": {"bold": True}},
                            {"type": "user", "user_id": "U0BOB"},
                            {"type": "emoji", "name": "tada"},
                        ],
                    },
                    {
                        "type": "rich_text_list",
                        "style": "ordered",
                        "offset": 1,
                        "elements": [
                            {"type": "rich_text_section", "elements": [{"type": "text", "text": "second"}]},
                            {"type": "rich_text_section", "elements": [{"type": "text", "text": "third"}]},
                        ],
                    },
                    {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "x = 1"}]},
                    {"type": "rich_text_quote", "elements": [{"type": "text", "text": "said"}]},
                )
            ],
        },
        "see &lt; [this](https://a.example/?x=1&copy=2)* now*@Bob:tada:\n2. second\n3. third\n```\nx = 1\n```\n> said",
    ),
    (
        {
            "text": "",
            "blocks": [
                {"type": "card", "title": plain("Of a newer kind"), "body": mrkdwn("with words")},
                {"type": "container", "blocks": [{"type": "section", "text": mrkdwn("inside")}]},
            ],
        },
        "Of a newer kind\nwith words\ninside",
    ),
    ({"text": "typed *words*", "blocks": [rich()]}, "typed *words*"),
    ({"text": "", "blocks": "odd", "attachments": [None, {"fields": "odd", "title": 5}]}, ""),
]


@pytest.mark.parametrize(("message", "words"), CASES)
def test_all_that_people_see_of_a_message_is_read_in_order(message: dict[str, Any], words: str) -> None:
    assert readable(words_of(message), {"U0BOB": "Bob"}, "") == words


def test_a_shared_alert_says_what_it_shows() -> None:
    shared = {
        "is_share": True,
        "text": "",
        "fallback": "[no preview available]",
        "message_blocks": [{"message": {"blocks": PAGERDUTY[:1]}}],
        "attachments": [GRAFANA],
    }
    words = readable(words_of_shared(shared), {}, "")
    assert "API is down" in words
    assert "93 % of /var" in words
    assert "no preview" not in words


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<@UBOT> hello", "hello"),
        ("<@UBOT> <@U0BOB> are you both there?", "@helper (you) @Bob are you both there?"),
        ("<@UBOT> ask <@U0BOB>", "ask @Bob"),
    ],
)
def test_the_model_is_told_its_name_where_others_are_named_too(text: str, read: str) -> None:
    assert readable(text, {"U0BOB": "Bob", "UBOT": "helper"}, "UBOT") == read


async def test_a_mention_below_an_alert_has_it_read(api: SlackApi, bot_on) -> None:
    async with bot_on(api) as bot:
        ts = api.app_says(attachments=[GRAFANA], blocks=[])
        api.person_says(f"{MENTION} what now?", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: api.said("C0GENERAL"))
    prompt = str(bot.llm.prompts[-1])
    assert "93 % of /var is used" in prompt
    assert "severity: critical" in prompt
    assert "Grafana" in prompt


async def test_a_question_about_an_alert_has_it_read(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        ts = api.app_says(attachments=[GRAFANA], blocks=PAGERDUTY[:1], deliver=False)
        message = api.world.find("C0GENERAL", ts).wire()
        api.interact("message_action", callback_id=ASK_CALLBACK, message=message, channel={"id": "C0GENERAL"})
        await api.until(lambda: api.calls("views.open"))
    kept = str(api.calls("views.open")[-1])
    assert "API is down" in kept
    assert "93 % of /var is used" in kept
