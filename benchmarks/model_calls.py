"""What a call of a model costs beside the wire: CPU of this process, by OpenAIChatLLM and by the bare openai client.

    python benchmarks/model_calls.py [--messages 21] [--pieces 100] [--calls 100] [--rounds 5]

A server on loopback, in a process of its own, streams the same answer to everybody. Both clients are asked in turn, in
the same run, so that their ratio says something on any machine: below 1, the own way is the cheaper one. The bare
client builds its requests and its events by its own types, as its documentation shows. Each figure is the median of the
rounds, in milliseconds of CPU per call.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time

from openai import AsyncOpenAI

from botservice import OpenAIChatLLM

MODEL = "gpt-6.1-terra"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{number}",
            "description": "Do something with a text and a number.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}, "number": {"type": "integer"}},
                "required": ["text"],
            },
        },
    }
    for number in range(8)
]


def chat_stream(pieces):
    """Return the events of an answer by chat.completions."""
    around = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    choices = [{"index": 0, "delta": {"content": f"word{number} "}, "finish_reason": None} for number in range(pieces)]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [around | {"choices": [choice]} for choice in choices]
    usage = {"prompt_tokens": 900, "completion_tokens": pieces, "total_tokens": 900 + pieces}
    events.append(around | {"choices": [], "usage": usage})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def responses_stream(pieces):
    """Return the events of an answer by Responses."""
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "status": "in_progress"}
    response |= {"output": [], "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    about = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    text = "".join(f"word{number} " for number in range(pieces))
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 2_000}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    message |= {"content": [{"type": "output_text", "text": text, "annotations": []}]}
    usage = {"input_tokens": 900, "output_tokens": pieces, "total_tokens": 900 + pieces}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    deltas = [{"type": "response.output_text.delta", "delta": f"word{n} ", "logprobs": []} for n in range(pieces)]
    events = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        *(about | delta for delta in deltas),
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {
            "type": "response.completed",
            "response": response | {"status": "completed", "output": [reasoning, message], "usage": usage},
        },
    ]
    numbered = (json.dumps(event | {"sequence_number": number}) for number, event in enumerate(events))
    return "".join(f"event: {json.loads(event)['type']}\ndata: {event}\n\n" for event in numbered)


def serve(port, pieces):
    """Answer every request with the stream of its path."""
    bodies = {b"/v1/chat/completions": chat_stream(pieces), b"/v1/responses": responses_stream(pieces)}

    async def answer(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.split(b":")[1]))
                body = bodies[head.split(b" ")[1]].encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
                writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port.put(server.sockets[0].getsockname()[1])
            await server.serve_forever()

    asyncio.run(run())


def prompt(messages):
    """Return a prompt of so many messages."""
    said = [{"role": "user", "content": f"message {number}: " + "some words " * 20} for number in range(messages - 1)]
    return [{"role": "system", "content": "You are a helpful assistant. " * 10}, *said]


def flat_tools():
    """Return the tools as Responses has them."""
    return [{"type": "function", "strict": False, **tool["function"]} for tool in TOOLS]


def bare(client, wire, messages):
    """Return what asks the bare client once and puts the text together."""

    async def by_chat():
        stream = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    async def by_responses():
        stream = await client.responses.create(
            model=MODEL, input=messages, tools=flat_tools(), stream=True, store=False
        )
        return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])

    return by_chat if wire == "chat" else by_responses


def ours(llm, messages):
    """Return what asks the product's own client once."""

    async def ask():
        return (await llm.chat(messages, TOOLS, on_text=lambda _: None)).text

    return ask


async def cpu_per_call(ask, calls):
    """Return the milliseconds of CPU that a call takes."""
    assert await ask()
    started = time.process_time()
    for _ in range(calls):
        await ask()
    return (time.process_time() - started) / calls * 1000


async def measure(url, options):
    messages = prompt(options.messages)
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        for wire in ("chat", "responses"):
            llm = OpenAIChatLLM(MODEL, base_url=url, api_key="none", api=wire)
            own, other = [], []
            for _ in range(options.rounds):
                own.append(await cpu_per_call(ours(llm, messages), options.calls))
                other.append(await cpu_per_call(bare(client, wire, messages), options.calls))
            await llm.close()
            mine, theirs = statistics.median(own), statistics.median(other)
            print(f"{wire:<10} ours {mine:6.2f} ms   bare client {theirs:6.2f} ms   ratio {mine / theirs:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=21)
    parser.add_argument("--pieces", type=int, default=100)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spawning = multiprocessing.get_context("spawn")
    port = spawning.Queue()
    server = spawning.Process(target=serve, args=(port, options.pieces), daemon=True)
    server.start()
    try:
        print(f"{options.messages} messages, {len(TOOLS)} tools, {options.pieces} pieces; CPU per call")
        asyncio.run(measure(f"http://127.0.0.1:{port.get(timeout=60)}/v1", options))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
