"""Calls of Discord's API, and what its refusals mean."""

from collections.abc import Mapping
from typing import Any

import httpx

from botservice import DeliveryError, DeliveryRefused

_SECONDS = 10.0


class TokenExpired(DeliveryError):
    """The token of an interaction is good no more, after 15 minutes."""


class DiscordClient:
    """Speaks to Discord as one application.

    Args:
        token: The bot's, which interactions do not need.
    """

    def __init__(self, application_id: str, token: str, api_url: str) -> None:
        self._application_id, self._token = application_id, token
        self._http = httpx.AsyncClient(base_url=api_url, timeout=_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def set_commands(self, commands: list[dict[str, Any]]) -> None:
        """Say which commands there are, in place of those from before."""
        await self._call("PUT", f"/applications/{self._application_id}/commands", commands)

    async def edit_first(self, interaction_token: str, message: Mapping[str, Any]) -> str:
        """Have the first answer to an interaction say something, and return its id. As often as one likes: it is one.

        Raises:
            TokenExpired: it is too late for that.
        """
        path = f"/webhooks/{self._application_id}/{interaction_token}/messages/@original"
        return str((await self._call("PATCH", path, message, is_by_token=True))["id"])

    async def send(self, channel_id: str, message: Mapping[str, Any], nonce: str) -> str:
        """Send a message to a channel and return its id; a second one with this nonce is the first one again."""
        body = {**message, "nonce": nonce, "enforce_nonce": True}
        return str((await self._call("POST", f"/channels/{channel_id}/messages", body))["id"])

    async def edit(self, channel_id: str, message_id: str, message: Mapping[str, Any]) -> None:
        """Have a message say something else."""
        await self._call("PATCH", f"/channels/{channel_id}/messages/{message_id}", message)

    async def _call(self, method: str, path: str, body: Any, *, is_by_token: bool = False) -> dict[str, Any]:
        """Call and return what Discord says.

        Raises:
            DeliveryError: it may go another time; every call here may be made again, so what is lost is no harm.
            DeliveryRefused: it never will.
        """
        headers = {} if is_by_token else {"authorization": f"Bot {self._token}"}
        try:
            response = await self._http.request(method, path, json=body, headers=headers)
        except httpx.HTTPError as error:
            raise DeliveryError(f"Discord did not answer ({type(error).__name__})") from error
        if response.is_success:
            found: Any = response.json()
            return found if isinstance(found, dict) else {}
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise DeliveryError("Discord asks to wait", retry_after_seconds=float(response.json()["retry_after"]))
        if is_by_token and response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.NOT_FOUND):
            raise TokenExpired("the interaction is older than 15 minutes")
        if response.status_code in (httpx.codes.BAD_REQUEST, httpx.codes.FORBIDDEN, httpx.codes.NOT_FOUND):
            raise DeliveryRefused(f"Discord refuses it ({response.status_code})")
        raise DeliveryError(f"Discord failed ({response.status_code})")
