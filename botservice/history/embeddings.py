"""Meaning as vectors: what an embedder is, and the one for OpenAI's API and whatever speaks it."""

import asyncio
import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from botservice.config.settings import DEFAULT_EMBEDDING_MODEL, ModelSettings
from botservice.core.argument_checks import check_seconds
from botservice.core.errors import LLMError
from botservice.llm.openai.http_client import OpenAIClients

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from openai import AsyncOpenAI

_SHORTENED_MODELS = "text-embedding-3-"
_SHORTENED_DIM = 512  # a third of the memory for 0.7 points less on MTEB (OpenAI, "New embedding models", 2024)


class Embedder(ABC):
    """Turns texts into vectors whose cosine measures their similarity.

    The methods that embed and `model_key` are required, and an object with them need not inherit.

    Attributes:
        model_key: Identifies the model and everything else that changes the vectors. Vectors of different keys are
            never compared, and a new key embeds everything again.
        dim: The dimensions of a vector; None if not known yet.
    """

    model_key: str
    dim: int | None = None

    @abstractmethod
    async def embed_documents(self, texts: Sequence[str]) -> "ArrayLike":
        """Embed texts, one vector for each in order.

        Raises:
            LLMError: the model did not answer.
        """

    @abstractmethod
    async def embed_query(self, text: str) -> "ArrayLike":
        """Embed a question.

        Raises:
            LLMError: the model did not answer.
        """

    async def close(self) -> None:
        """Close its connections; a later call opens them again."""


class BatchingEmbedder(Embedder):
    """Embeds a few texts at once, each cut to its beginning: what a message is about stands there.

    `_embed` is needed, and what is to be embedded for a question or a document where that is not the cut text.
    """

    _texts_at_once: ClassVar[int]
    _max_characters: ClassVar[int]

    async def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Embed texts, one vector for each in order (see `Embedder`); only the beginning of long texts counts."""
        import numpy as np

        cut, size = [text[: self._max_characters] for text in texts], self._texts_at_once
        parts = [await self._embed(cut[first : first + size]) for first in range(0, len(cut), size)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dim or 0), np.float32)

    async def embed_query(self, text: str) -> "NDArray[np.float32]":
        """Embed a question (see `Embedder`)."""
        vector: NDArray[np.float32] = (await self._embed([text[: self._max_characters]], is_query=True))[0]
        return vector

    @abstractmethod
    async def _embed(self, texts: list[str], *, is_query: bool = False) -> "NDArray[np.float32]":
        """Return one vector for each text, in order."""


class OpenAIEmbedder(BatchingEmbedder):
    """An embedding model of OpenAI or of an OpenAI-compatible server with `/embeddings`.

    Attributes:
        model: The model's name on the server.
        model_key: The model's name with the requested dimensions.
        dim: The dimensions of a vector, once the server has answered.
    """

    _texts_at_once = 64
    _max_characters = 6_000  # in every language below the 8,191 tokens of OpenAI's models

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimensions: int | None = None,
        timeout_seconds: float = 60.0,
    ) -> None:
        """Make a client; what is not given is a setting: OPENAI_EMBEDDING_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY.

        Args:
            dimensions: How many numbers to ask for, where the model can give fewer than all (512 for OpenAI's
                text-embedding-3 models, which take a third of the memory then).
            timeout_seconds: How long one call may take.

        Raises:
            SettingsError: there is neither a key nor a base URL, or a setting is wrong.
            InvalidArgument: base_url or timeout_seconds is nothing to work with.
        """
        settings = ModelSettings.load()
        self.model = model or settings.embedding_model or DEFAULT_EMBEDDING_MODEL
        self._clients = OpenAIClients(settings, base_url=base_url, api_key=api_key)
        if dimensions is None and self.model.startswith(_SHORTENED_MODELS):
            dimensions = _SHORTENED_DIM
        self.dim: int | None = dimensions
        self._dimensions = dimensions
        self.model_key = self.model if dimensions is None else f"{self.model}/{dimensions}"
        self._timeout_seconds = check_seconds("timeout_seconds=", timeout_seconds)
        self._is_binary = True

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.model!r}, base_url={self._clients.base_url!r})"

    @property
    def clients(self) -> OpenAIClients:
        """The clients of its server."""
        return self._clients

    async def close(self) -> None:
        """Close the connections of the running event loop; those of other loops ended with them."""
        await self._clients.close()

    async def _embed(self, texts: list[str], *, is_query: bool = False) -> "NDArray[np.float32]":  # noqa: ARG002
        client = await self._clients.current()
        import openai

        from botservice.llm.openai.errors import translate

        try:
            async with asyncio.timeout(self._timeout_seconds):
                try:
                    body = await self._call(client, texts)
                except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                    if not self._is_binary or "encoding_format" not in error.response.text:
                        raise
                    self._is_binary = False  # a server that writes numbers only
                    body = await self._call(client, texts)
            # In a thread: a call's worth of vectors would hold up the event loop for longer than it may.
            matrix = await asyncio.to_thread(_read_answer, body, len(texts))
        except TimeoutError as error:
            raise LLMError(f"the embedding model did not answer within {self._timeout_seconds:g} seconds") from error
        except openai.OpenAIError as error:
            raise translate(error, self.model, "OPENAI_EMBEDDING_MODEL") from error
        except (KeyError, TypeError, ValueError) as error:  # a border: what a server sends can be anything
            raise LLMError(f"the embedding model's answer could not be read ({type(error).__name__})") from error
        self.dim = matrix.shape[1]
        return matrix

    async def _call(self, client: "AsyncOpenAI", texts: list[str]) -> bytes:
        options: dict[str, Any] = {} if self._dimensions is None else {"dimensions": self._dimensions}
        raw = await client.embeddings.with_raw_response.create(
            model=self.model, input=texts, encoding_format="base64" if self._is_binary else "float", **options
        )
        return raw.http_response.content


def _read_answer(body: bytes, count: int) -> "NDArray[np.float32]":
    import numpy as np

    data = sorted(json.loads(body)["data"], key=lambda each: int(each["index"]))
    rows = [_read_vector(each["embedding"]) for each in data]
    if len(rows) != count or len({len(row) for row in rows}) != 1:
        raise ValueError("not one vector for each text")
    return np.stack(rows)


def _read_vector(value: Any) -> "NDArray[np.float32]":
    import numpy as np

    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value), "<f4")
    return np.asarray(value, np.float32)
