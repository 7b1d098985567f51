"""The bare openai client: it asks what a turn asked, as its documentation shows, and stores nothing."""

import json

from costs.model_server import TOOL, asked_since


def add(a: int, b: int) -> int:
    """Return the sum."""
    return a + b


class Bare:
    """Asks what the model was asked in the last turn: the same messages and tools, call for call.

    Whoever builds a bot on the bare client sends the same window, the same tools, and as many calls. It runs the tools
    itself. Its answers are typed, as its `create` makes them.
    """

    def __init__(self, client, requests):
        self._client = client
        self._requests = [
            {name: value for name, value in request.items() if name not in ("stream", "stream_options")}
            for request in requests
        ]

    @classmethod
    async def of_last_turn(cls, client, base_url):
        """Return one that asks what was asked since `asked_since` was called last."""
        return cls(client, await asked_since(base_url))

    @property
    def calls(self):
        """Return how many calls of the model a turn takes."""
        return len(self._requests)

    @property
    def messages(self):
        """Return how many messages the first call of a turn sends."""
        return len(self._requests[0].get("messages") or self._requests[0]["input"])

    async def at_once(self, _=None):
        """Ask for whole answers."""
        for request in self._requests:
            if "input" in request:
                items = (await self._client.responses.create(**request)).output
                run([(each.name, each.arguments) for each in items if each.type == "function_call"])
            else:
                message = (await self._client.chat.completions.create(**request)).choices[0].message
                run([(each.function.name, each.function.arguments) for each in message.tool_calls or ()])

    async def streamed(self, _=None):
        """Ask for streams, and read each to its end."""
        for request in self._requests:
            if "input" in request:
                stream = await self._client.responses.create(**request, stream=True)
                done = [each.item async for each in stream if each.type == "response.output_item.done"]
                run([(each.name, each.arguments) for each in done if each.type == "function_call"])
            else:
                await self._stream_chat(request)

    async def _stream_chat(self, request):
        stream = await self._client.chat.completions.create(
            **request, stream=True, stream_options={"include_usage": True}
        )
        texts, names, arguments = [], [], []
        async for chunk in stream:
            for choice in chunk.choices:
                texts.append(choice.delta.content or "")
                for call in choice.delta.tool_calls or ():
                    names.append(call.function.name or "")
                    arguments.append(call.function.arguments or "")
        if name := "".join(names):
            run([(name, "".join(arguments))])


def run(calls):
    """Run the tools that an answer asks for."""
    for name, arguments in calls:
        assert name == TOOL
        add(**json.loads(arguments))
