"""Clients of all services trust the same authorities, which are read once."""

import ssl

import pytest

from botservice import OpenAIChatLLM
from botservice.llm.proxies_and_tls import tls_context
from transports.telegram.app import TelegramTransport


async def test_authorities_are_read_once_for_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    tls_context()

    def read_again(*_: object, **__: object) -> ssl.SSLContext:
        raise AssertionError("the authorities are read again")

    monkeypatch.setattr(ssl, "create_default_context", read_again)
    telegram = TelegramTransport(token="1:x")
    llm = OpenAIChatLLM(api_key="sk-no")
    client = await llm._clients.current()
    assert client.base_url.scheme == "https"
    await telegram.close()
    await llm.close()


def test_servers_have_to_prove_who_they_are() -> None:
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.get_ca_certs()
