"""The smallest model in a folder that there can be."""

import base64
import json
from pathlib import Path

# ids -> rows of a matrix of 6 x 4: "dog" is near "hound"; made with onnx.helper (one Gather, opset 13).
MODEL = base64.b64decode(
    "CAg66AEKKQoBZQoJaW5wdXRfaWRzEhFsYXN0X2hpZGRlbl9zdGF0ZSIGR2F0aGVyEgR0aW55KmsIBggEEAFCAWVKYAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD/NzEw+AAAAAAAAAAAAAAAAAAAAAAAAgD8AAAAAAAAA"
    "AAAAAAAAAAAAAACAP1odCglpbnB1dF9pZHMSEAoOCAcSCgoDEgFiCgMSAXRiKQoRbGFzdF9oaWRkZW5fc3RhdGUSFAoSCAESDgoD"
    "EgFiCgMSAXQKAggEQgQKABAN"
)
WORDS = {"[PAD]": 0, "[UNK]": 1, "dog": 2, "hound": 3, "rent": 4, "query": 5}


def make_tiny_model(folder: Path) -> Path:
    """Write a model of six words into folder, as a sentence-transformers repository has it, and return folder."""
    (folder / "model.onnx").write_bytes(MODEL)
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": WORDS, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder
