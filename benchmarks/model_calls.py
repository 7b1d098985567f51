"""What a call of a model costs next to the wire: CPU of this process, by OpenAIChatLLM and by the bare openai client.

    python benchmarks/model_calls.py [--messages 21] [--pieces 20] [--tools 1] [--calls 60] [--rounds 5]

A server on loopback, in a process of its own, gives the same answer to everybody: as a stream where one is asked for,
else at once. OpenAIChatLLM, which streams, and the bare client are asked in turn, in the same run, so that their ratios
say something on any machine: below 1, the own way is the cheaper one. The bare client builds its requests and its
answers by its own types, as its documentation shows. Each figure is the median of the rounds, in milliseconds of CPU
per call.

Then the server sends the pieces one by one, a few milliseconds apart: until the first one arrives, in milliseconds.
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
SLOWLY = "slowly"
BETWEEN_PIECES_SECONDS = 0.005


def tools(count):
    """Return so many tools, as chat.completions has them."""
    parameters = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["text"],
    }
    about = {"description": "Do something with a text and a number.", "parameters": parameters}
    return [{"type": "function", "function": {"name": f"tool_{number}", **about}} for number in range(count)]


def words(pieces):
    """Return the pieces of the answer."""
    return [f"word{number} " for number in range(pieces)]


def whole_chat(pieces):
    """Return an answer by chat.completions that comes at once."""
    usage = {"prompt_tokens": 900, "completion_tokens": pieces, "total_tokens": 900 + pieces}
    message = {"role": "assistant", "content": "".join(words(pieces))}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": usage
    }  # fmt: skip


def chat_stream(pieces):
    """Return the events of an answer by chat.completions."""
    around = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    choices = [{"index": 0, "delta": {"content": word}, "finish_reason": None} for word in words(pieces)]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    events = [around | {"choices": [choice]} for choice in choices]
    usage = {"prompt_tokens": 900, "completion_tokens": pieces, "total_tokens": 900 + pieces}
    events.append(around | {"choices": [], "usage": usage})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def whole_response(pieces):
    """Return an answer by Responses that comes at once."""
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 2_000}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    message |= {"content": [{"type": "output_text", "text": "".join(words(pieces)), "annotations": []}]}
    usage = {"input_tokens": 900, "output_tokens": pieces, "total_tokens": 900 + pieces}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "status": "completed"}
    response |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return response | {"output": [reasoning, message], "usage": usage}


def responses_stream(pieces):
    """Return the events of an answer by Responses."""
    response = whole_response(pieces)
    about = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", "delta": word, "logprobs": []} for word in words(pieces)]
    reasoning, message = response["output"]
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        *(about | delta for delta in deltas),
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {"type": "response.completed", "response": response},
    ]
    numbered = (json.dumps(event | {"sequence_number": number}) for number, event in enumerate(events))
    return "".join(f"event: {json.loads(event)['type']}\ndata: {event}\n\n" for event in numbered)


async def send_slowly(writer, stream):
    """Send a stream event by event."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for event in stream.encode().split(b"\n\n")[:-1]:
        writer.write(b"%x\r\n%s\n\n\r\n" % (len(event) + 2, event))
        await writer.drain()
        await asyncio.sleep(BETWEEN_PIECES_SECONDS)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def serve(port, pieces):
    """Answer every request: as a stream where one is asked for, else at once."""
    streams = {b"/v1/chat/completions": chat_stream(pieces), b"/v1/responses": responses_stream(pieces)}
    wholes = {b"/v1/chat/completions": whole_chat(pieces), b"/v1/responses": whole_response(pieces)}
    wholes = {path: json.dumps(answer) for path, answer in wholes.items()}

    async def answer(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                asked = json.loads(await reader.readexactly(int(length.split(b":")[1])))
                path = head.split(b" ")[1]
                if asked["model"] == SLOWLY:
                    await send_slowly(writer, streams[path])
                    continue
                kind = "text/event-stream" if asked.get("stream") else "application/json"
                body = (streams if asked.get("stream") else wholes)[path].encode()
                writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n".encode())
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


def flat(schemas):
    """Return tools as Responses has them."""
    return [{"type": "function", "strict": False, **schema["function"]} for schema in schemas]


def streamed(client, wire, messages, schemas, model=MODEL, hear=lambda _: None):
    """Return what asks the bare client for a stream and puts the text together."""

    async def by_chat():
        stream = await client.chat.completions.create(
            model=model, messages=messages, tools=schemas, stream=True, stream_options={"include_usage": True}
        )
        return gathered([chunk.choices[0].delta.content async for chunk in stream if received(chunk.choices)])

    async def by_responses():
        stream = await client.responses.create(
            model=model, input=messages, tools=flat(schemas), stream=True, store=False
        )
        return gathered([each.delta async for each in stream if received(each.type == "response.output_text.delta")])

    def received(is_text):
        if is_text:
            hear(is_text)
        return is_text

    def gathered(texts):
        return "".join(text or "" for text in texts)

    return by_chat if wire == "chat" else by_responses


def at_once(client, wire, messages, schemas):
    """Return what asks the bare client for a whole answer."""

    async def by_chat():
        answer = await client.chat.completions.create(model=MODEL, messages=messages, tools=schemas)
        return answer.choices[0].message.content

    async def by_responses():
        answer = await client.responses.create(model=MODEL, input=messages, tools=flat(schemas), store=False)
        return answer.output_text

    return by_chat if wire == "chat" else by_responses


def ours(llm, messages, schemas, hear=lambda _: None):
    """Return what asks the product's own client, which streams."""

    async def ask():
        return (await llm.chat(messages, schemas, on_text=hear)).text

    return ask


async def cpu_per_call(ask, calls):
    """Return the milliseconds of CPU that a call takes."""
    assert await ask()
    started = time.process_time()
    for _ in range(calls):
        await ask()
    return (time.process_time() - started) / calls * 1000


async def first_heard(make, calls=20):
    """Return the milliseconds from a call until its first piece arrives, the median of some calls."""
    took = []
    for _ in range(calls):
        received = []
        started = time.perf_counter()
        await make(lambda _, received=received: received.append(time.perf_counter()))()
        took.append((received[0] - started) * 1000)
    return statistics.median(took)


async def measure(url, options):
    """Print the tables."""
    messages, schemas = prompt(options.messages), tools(options.tools)
    print("| CPU of a call, ms | ours, streaming | bare, at once | ratio | bare, streaming | ratio |")
    print("|---|---|---|---|---|---|")
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        for wire in ("chat", "responses"):
            llm = OpenAIChatLLM(MODEL, base_url=url, api_key="none", api=wire)
            asking = [
                ours(llm, messages, schemas),
                at_once(client, wire, messages, schemas),
                streamed(client, wire, messages, schemas),
            ]
            rounds = [[await cpu_per_call(ask, options.calls) for ask in asking] for _ in range(options.rounds)]
            own, whole, stream = (statistics.median(column) for column in zip(*rounds, strict=True))
            by_whole = statistics.median(each[0] / each[1] for each in rounds)
            by_stream = statistics.median(each[0] / each[2] for each in rounds)
            print(f"| {wire} | {own:.2f} | {whole:.2f} | {by_whole:.2f} | {stream:.2f} | {by_stream:.2f} |", flush=True)
            await llm.close()
        print("\n| first piece of a slow stream, ms | ours | bare |\n|---|---|---|")
        for wire in ("chat", "responses"):
            llm = OpenAIChatLLM(SLOWLY, base_url=url, api_key="none", api=wire)
            own = await first_heard(lambda hear, llm=llm: ours(llm, messages, schemas, hear))
            bare = await first_heard(lambda hear, wire=wire: streamed(client, wire, messages, schemas, SLOWLY, hear))
            print(f"| {wire} | {own:.1f} | {bare:.1f} |", flush=True)
            await llm.close()


def main():
    """Start the server, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=21)
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--tools", type=int, default=1)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    spawning = multiprocessing.get_context("spawn")
    port = spawning.Queue()
    server = spawning.Process(target=serve, args=(port, options.pieces), daemon=True)
    server.start()
    try:
        print(f"{options.messages} messages, {options.tools} tools, {options.pieces} pieces\n")
        asyncio.run(measure(f"http://127.0.0.1:{port.get(timeout=60)}/v1", options))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
