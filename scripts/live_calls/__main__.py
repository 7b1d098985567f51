"""Try the platforms' calls.

    scripts/live telegram | slack | models | all [--json]

Telegram needs TELEGRAM_BOT_TOKEN and LIVE_TELEGRAM_CHAT (a private chat with the bot), and for some calls
LIVE_TELEGRAM_GROUP (a group with the bot) and LIVE_TELEGRAM_USER (a member of it). Slack needs SLACK_BOT_TOKEN and
LIVE_SLACK_CHANNEL (a channel with the bot), and for some calls LIVE_SLACK_USER (a person). Everything is sent to these
places alone, and deleted in the end as far as platforms allow that. Nothing is changed that a running bot has, such as
its webhook and its commands.

models needs nothing: it installs a LiteLLM proxy and llama.cpp's server, and runs the tests against them
(scripts/model-servers); all does that first.

It ends with 1 where a platform does something else than the service assumes; "not there" is what a platform does not
have yet, and for which people get what worked before.
"""

import argparse
import asyncio
import os
import sys

import on_slack
import on_telegram
from probes import Finding, Verdict, report

_PLATFORMS = {"telegram": on_telegram.find_out, "slack": on_slack.find_out}


async def find_out(platforms: list[str]) -> list[Finding]:
    """Return what the probes of some platforms find."""
    given = {name: value for name, value in os.environ.items() if value}
    return [finding for name in platforms for finding in await _PLATFORMS[name](given)]


def main() -> None:
    """Try, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platform", choices=[*_PLATFORMS, "all"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    platforms = [*_PLATFORMS] if options.platform == "all" else [options.platform]
    try:
        findings = asyncio.run(find_out(platforms))
    except KeyError as error:
        sys.exit(f"scripts/live: set {error.args[0]}; scripts/live --help says what for")
    print(report(findings, is_json=options.json))
    sys.exit(any(each.verdict is Verdict.DIFFERS for each in findings))


if __name__ == "__main__":
    main()
