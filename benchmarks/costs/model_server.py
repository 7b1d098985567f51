"""A model on loopback, in a process of its own: it gives everybody the same answer, and says what it was asked."""

import asyncio
import collections
import contextlib
import itertools
import json
import multiprocessing

import httpx2
from model_calls import MODEL, chat_stream, responses_stream, whole_chat, whole_response

TOOL, ARGUMENTS = "add", {"a": 2, "b": 3}
# Each call gets an id of its own, as a model gives it: some frameworks take a repeated id for the same call.
CALL_ID = "call_000000"
_MOST_KEPT = 20


@contextlib.contextmanager
def model_server(pieces=20, calls=0):
    """Run the server, and yield its base URL.

    Args:
        pieces: Of each answer, where it is streamed.
        calls: How many calls of a tool, one after the other, it wants before each answer.
    """
    spawning = multiprocessing.get_context("spawn")
    port = spawning.Queue()
    server = spawning.Process(target=serve, args=(port, pieces, calls), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{port.get(timeout=60)}/v1"
    finally:
        server.terminate()
        server.join()


async def asked_since(base_url):
    """Return the bodies of the requests since this was last asked, the newest ones."""
    async with httpx2.AsyncClient() as client:
        return (await client.get(f"{base_url}/asked")).json()


def serve(port, pieces, calls):
    """Answer every request: as a stream where one is asked for, else at once."""
    answers = _answers(pieces)
    asked = collections.deque(maxlen=_MOST_KEPT)
    numbers = itertools.count(1)

    async def answer(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode()
                if path == "/v1/asked":
                    _send(writer, "application/json", b"[" + b",".join(asked) + b"]")
                    asked.clear()
                    continue
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                body = await reader.readexactly(int(length.split(b":")[1]))
                asked.append(body)
                request = json.loads(body)
                is_call = bool(request.get("tools")) and _results(request) < calls
                kind = "text/event-stream" if request.get("stream") else "application/json"
                body = answers[path, bool(request.get("stream")), is_call]
                if is_call:
                    body = body.replace(CALL_ID.encode(), b"call_%06d" % next(numbers))
                _send(writer, kind, body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run():
        async with await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1_000) as server:
            port.put(server.sockets[0].getsockname()[1])
            await server.serve_forever()

    asyncio.run(run())


def _send(writer, kind, body):
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)


def _results(request):
    """Return how many results of tools stand behind the last message of a person."""
    count = 0
    for message in reversed(request.get("messages") or request["input"]):
        if message.get("role") == "user":
            break
        count += message.get("role") == "tool" or message.get("type") == "function_call_output"
    return count


def _answers(pieces):
    """Return the bytes of every answer, by path, whether it is streamed, and whether it is a call."""
    chat, responses = "/v1/chat/completions", "/v1/responses"
    return {
        (chat, True, False): chat_stream(pieces).encode(),
        (chat, True, True): _chat_call_stream().encode(),
        (chat, False, False): json.dumps(whole_chat(pieces)).encode(),
        (chat, False, True): json.dumps(_chat_call()).encode(),
        (responses, True, False): responses_stream(pieces).encode(),
        (responses, True, True): _responses_call_stream().encode(),
        (responses, False, False): json.dumps(whole_response(pieces)).encode(),
        (responses, False, True): json.dumps(_responses_call()).encode(),
    }


def _chat_call():
    function = {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}
    message = {"role": "assistant", "content": None}
    message |= {"tool_calls": [{"id": CALL_ID, "type": "function", "function": function}]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return whole_chat(9) | {"choices": [choice]}


def _chat_call_stream():
    around = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    first = {"index": 0, "id": CALL_ID, "type": "function", "function": {"name": TOOL, "arguments": ""}}
    given = json.dumps(ARGUMENTS)
    parts = [{"index": 0, "function": {"arguments": given[at : at + 4]}} for at in range(0, len(given), 4)]
    choices = [{"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": None} for part in (first, *parts)]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    events = [around | {"choices": [choice]} for choice in choices]
    events.append(around | {"choices": [], "usage": whole_chat(9)["usage"]})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def _responses_call():
    call = {"type": "function_call", "id": "fc_1", "call_id": CALL_ID, "name": TOOL, "status": "completed"}
    answer = whole_response(9)
    return answer | {"output": [answer["output"][0], call | {"arguments": json.dumps(ARGUMENTS)}]}


def _responses_call_stream():
    response = _responses_call()
    reasoning, call = response["output"]
    given, about = call["arguments"], {"item_id": "fc_1", "output_index": 1}
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        {"type": "response.output_item.added", "output_index": 1, "item": call | {"arguments": ""}},
        *(
            about | {"type": "response.function_call_arguments.delta", "delta": given[at : at + 4]}
            for at in range(0, len(given), 4)
        ),
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {"type": "response.completed", "response": response},
    ]
    numbered = (json.dumps(event | {"sequence_number": number}) for number, event in enumerate(events))
    return "".join(f"event: {json.loads(event)['type']}\ndata: {event}\n\n" for event in numbered)
