# mypy: disable-error-code="import-not-found"
# ruff: noqa: T201 - it runs in an environment of its own, and prints where it listens
"""The real server of llama.cpp with a tiny random model: `python tests/standins/llama_server.py FOLDER`.

`scripts/model-servers` installs what it needs. What the model says is noise; the server is the real one.
"""

import sys
import time
from pathlib import Path

_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
_BYTES = 256
_EMBEDDING, _FEED_FORWARD, _HEADS = 64, 128, 4


def write_model(path: Path) -> None:
    """Write a model of one layer with random weights, whose tokens are bytes."""
    import gguf
    import numpy as np

    random = np.random.default_rng(1)
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{each:02X}>".encode() for each in range(_BYTES))]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(2_048)
    writer.add_embedding_length(_EMBEDDING)
    writer.add_block_count(1)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_EMBEDDING // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([2, 3, 3] + [6] * _BYTES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(_TEMPLATE)
    sizes = {"token_embd": (len(tokens), _EMBEDDING), "output": (len(tokens), _EMBEDDING)}
    sizes |= {f"blk.0.attn_{name}": (_EMBEDDING, _EMBEDDING) for name in ("q", "k", "v", "output")}
    sizes |= {f"blk.0.ffn_{name}": (_FEED_FORWARD, _EMBEDDING) for name in ("gate", "up")}
    sizes |= {"blk.0.ffn_down": (_EMBEDDING, _FEED_FORWARD)}
    for name, size in sizes.items():
        writer.add_tensor(f"{name}.weight", (random.standard_normal(size) * 0.05).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(_EMBEDDING, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Serve until this process is ended, on a free port of loopback."""
    import xllamacpp

    path = Path(sys.argv[1], "tiny.gguf")
    write_model(path)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.warmup, params.use_jinja = 1_024, 1, False, True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3_600)


if __name__ == "__main__":
    main()
