"""Search by meaning with an embedder of one's own, and a selector of the messages in a prompt."""

import asyncio
from collections.abc import Sequence

from botservice import (
    AgentContext,
    AgentService,
    Embedder,
    EmbeddingIndexer,
    FunctionsBasedAgent,
    Message,
    MessageSelector,
    ScriptedChatLLM,
    Storage,
)


class DogEmbedder(Embedder):
    """Knows dogs, and nothing else; a real one asks a model."""

    model_key = "dogs-1"  # a new key embeds everything again
    dim = 2

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "hound" in text or "dog" in text else [0.0, 1.0] for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        return (await self.embed_documents([text]))[0]


class SinceTheQuestionMark(MessageSelector):
    """The newest messages, back to the last question before this one."""

    def get_messages(self, messages: Sequence[Message]) -> list[Message]:
        chosen = []
        for message in reversed(messages):
            chosen.append(message)
            if message.text.endswith("?") and len(chosen) > 1:
                break
        return chosen[::-1]


async def main() -> None:
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        await context.chat_history.append_user_message("my hound sleeps")
        await context.chat_history.append_user_message("the rent is due")
        async with EmbeddingIndexer(storage, DogEmbedder()) as indexer:
            await indexer.catch_up()
            print("found:", (await context.chat_history.search("dog", k=1))[0].message.text)

        llm = ScriptedChatLLM(["On Monday.", "At nine.", "Yes."])  # to see the prompts
        agent = FunctionsBasedAgent(llm=llm, message_selector=SinceTheQuestionMark(), search_k=0, prompt="")
        service = AgentService(agent, storage=storage)
        for text in ("When do we meet?", "What time?", "Fine, I will be there"):
            await service.prompt(context, text)
        print("in the prompt:", [message["content"] for message in llm.prompts[-1]])


asyncio.run(main())
