"""A model in a folder: the smallest one there can be, run by the real onnxruntime."""

import json
import sys

import numpy as np
import pytest
from history.tiny_model import MODEL, make_tiny_model

from botservice import LocalEmbedder, SettingsError


@pytest.fixture
def folder(tmp_path):
    return make_tiny_model(tmp_path)


async def test_near_texts_have_near_vectors(folder):
    embedder = LocalEmbedder(folder)
    dog, hound, rent = await embedder.embed_documents(["dog", "Hound", "rent rent rent"])
    assert embedder.dim == 4
    assert dog @ hound > 0.9
    assert dog @ rent == 0
    assert (await embedder.embed_query("dog")).tolist() == dog.tolist()
    assert (await embedder.embed_documents([])).shape == (0, 4)


async def test_padding_does_not_count(folder):
    embedder = LocalEmbedder(folder)
    alone = await embedder.embed_documents(["dog"])
    beside = await embedder.embed_documents(["dog", "rent " * 50])
    assert np.allclose(alone[0], beside[0])


async def test_long_texts_and_many_of_them_are_taken(folder):
    assert (await LocalEmbedder(folder).embed_documents(["dog " * 9_000] * 20)).shape == (20, 4)


async def test_what_a_model_wants_before_a_question_is_put_there(folder):
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "query "}}))
    embedder = LocalEmbedder(folder)
    assert (await embedder.embed_query("dog"))[3] == 0.5
    assert (await embedder.embed_documents(["dog"]))[0][3] == 0


@pytest.mark.parametrize(
    ("name", "own_name", "share"),
    [
        ("multilingual-e5-small", "", 1 / 3),
        ("E5_base", "", 1 / 3),
        ("model", "intfloat/multilingual-e5-small", 1 / 3),
        ("multilingual-e5-large-instruct", "", 0),
        ("bge-base5", "", 0),
        ("model", "", 0),
    ],
)
async def test_e5_gets_its_prefixes_where_no_file_says_so(tmp_path, name, own_name, share):
    (tmp_path / name).mkdir()
    folder = make_tiny_model(tmp_path / name)
    (folder / "config.json").write_text(json.dumps({"_name_or_path": own_name}))
    embedder = LocalEmbedder(folder)
    assert (await embedder.embed_query("dog"))[3] == pytest.approx(share)
    (document,) = await embedder.embed_documents(["dog"])
    assert (document[0] < 1) == bool(share)
    assert embedder.model_key.endswith("-e5") == bool(share)


async def test_the_file_of_an_e5_model_wins(tmp_path):
    (tmp_path / "e5").mkdir()
    folder = make_tiny_model(tmp_path / "e5")
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "query "}}))
    assert (await LocalEmbedder(folder).embed_query("dog"))[3] == 0.5


async def test_the_first_token_counts_where_the_model_says_so(folder):
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    assert (await LocalEmbedder(folder).embed_query("dog rent")).tolist() == [1, 0, 0, 0]


def test_another_model_has_another_key(folder):
    before = LocalEmbedder(folder).model_key
    (folder / "model.onnx").write_bytes(MODEL + b"\x1a\x00")
    assert LocalEmbedder(folder).model_key != before


def test_a_folder_without_a_model_is_named(folder):
    (folder / "tokenizer.json").unlink()
    with pytest.raises(SettingsError, match=r"tokenizer\.json"):
        LocalEmbedder(folder)
    (folder / "tokenizer.json").write_text("nonsense")
    with pytest.raises(SettingsError, match="can be loaded"):
        LocalEmbedder(folder)


@pytest.mark.parametrize(
    "name", ["onnx/model.onnx", "onnx/model_quantized.onnx", "model_fp16.onnx", "onnx/model_qint8_avx512.onnx"]
)
async def test_a_model_is_found_under_the_names_that_downloads_have(folder, name):
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / name)
    assert (await LocalEmbedder(folder).embed_query("dog")).shape == (4,)


def test_what_is_missing_is_named_with_what_to_do(folder):
    (folder / "model.onnx").rename(folder / "model.safetensors")
    with pytest.raises(SettingsError, match=r"onnx/model\.onnx; model\.safetensors is in another format: download"):
        LocalEmbedder(folder)
    with pytest.raises(SettingsError, match="is no folder"):
        LocalEmbedder(folder / "nowhere")


def test_without_the_extra_it_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # what an import of it finds where it is not installed
    with pytest.raises(SettingsError, match=r"botservice\[local\]"):
        LocalEmbedder(folder)
