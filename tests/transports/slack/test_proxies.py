"""Errors of a network name the proxy by which Slack was asked."""

import socket

import pytest

from transports.slack.client import SlackClient, SlackFailure, as_delivery_error


async def test_an_error_names_the_proxy_that_was_used_without_its_password(monkeypatch):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        port = nobody.getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://ann:secret@127.0.0.1:{port}")
        client = SlackClient("https://slack.example/api")
        try:
            with pytest.raises(SlackFailure) as failed:
                await client.call("xoxb-1", "auth.test")
        finally:
            await client.close()
    by = f"through the proxy 127.0.0.1:{port} of the environment"
    assert failed.value.reason == f"unreachable ({by})"
    assert str(as_delivery_error(failed.value)) == f"Slack says unreachable ({by})"
    assert "secret" not in str(failed.value)
