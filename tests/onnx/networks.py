#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks of the package transformers, exported by both exporters of PyTorch with a batch and a length that are
only known when fed, in `trama onnx` on several meshes and in ONNX Runtime. Prints a line for each file.

Needs torch, transformers, onnx, onnxscript and onnxruntime of PyPI. The exit status is 1 where a network is refused or
numbers differ."""
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy
import onnxruntime
import torch
import transformers

WORDS = 61
EXTENTS = ((3, 5), (1, 7), (4, 2))
MESHES = ((), ("--mesh", "dp=2", "--shard", "ids=[0,-]", "--shard", "mask=[0,-]"), ("--mesh", "2", "--shard", "ids=[-,0]"),
          ("--mesh", "2,2", "--shard", "ids=[0,1]", "--shard", "mask=[0,1]"))
COMMON = dict(vocab_size=WORDS, pad_token_id=0, bos_token_id=1, eos_token_id=2, attn_implementation="eager")
SMALL = dict(num_hidden_layers=2, num_attention_heads=4, hidden_size=32, intermediate_size=64,
             max_position_embeddings=64)
GROUPED = dict(num_key_value_heads=2, **SMALL)
GPT2 = dict(n_layer=2, n_head=4, n_embd=32, n_positions=64)
NETWORKS = {
    "Albert": dict(embedding_size=16, **SMALL),
    "Bert": SMALL,
    "Bloom": dict(n_layer=2, n_head=4, hidden_size=32),
    "DistilBert": dict(n_layers=2, n_heads=4, dim=32, hidden_dim=64, max_position_embeddings=64),
    "Electra": dict(embedding_size=16, **SMALL),
    "Falcon": dict(num_hidden_layers=2, num_attention_heads=4, hidden_size=32),
    "GPT2": GPT2,
    "GPTJ": dict(rotary_dim=4, **GPT2),
    "GPTNeo": dict(num_layers=2, num_heads=4, hidden_size=32, attention_types=[[["global", "local"], 1]], window_size=4,
                   max_position_embeddings=64),
    "GPTNeoX": SMALL,
    "Gemma2": dict(head_dim=8, query_pre_attn_scalar=8, sliding_window=4, **GROUPED),
    "Llama": GROUPED,
    "MPNet": SMALL,
    "Mistral": GROUPED,
    "ModernBert": dict(local_attention=4, **SMALL),
    "OPT": dict(num_hidden_layers=2, num_attention_heads=4, hidden_size=32, ffn_dim=64, max_position_embeddings=64,
                word_embed_proj_dim=32),
    "Olmo2": GROUPED,
    "Phi": SMALL,
    "Qwen2": GROUPED,
    "Qwen3": dict(head_dim=8, **GROUPED),
    "Roberta": SMALL,
}


class Wrapped(torch.nn.Module):
    """ids, mask [batch, length] to the logits, or to the last hidden state of encoders."""

    def __init__(self, name):
        super().__init__()
        causal = getattr(transformers, name + "ForCausalLM", None) or getattr(transformers, name + "LMHeadModel", None)
        encoder = name in ("Albert", "Bert", "DistilBert", "Electra", "MPNet", "ModernBert", "Roberta")
        config = getattr(transformers, name + "Config")(**COMMON, **NETWORKS[name])
        self.model = (getattr(transformers, name + "Model") if encoder else causal)(config).eval()
        self.decodes = not encoder

    def forward(self, ids, mask):
        more = {}
        if self.decodes:
            more["use_cache"] = False
            if "position_ids" in self.model.forward.__code__.co_varnames:
                more["position_ids"] = torch.clamp(mask.cumsum(-1) - 1, min=0)
        out = self.model(input_ids=ids, attention_mask=mask, **more)
        return out.logits if self.decodes else out.last_hidden_state


def sample(batch, length):
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, length // 2 + 1:] = 0
    return torch.randint(3, WORDS, (batch, length)), mask


def export(network, exporter, path):
    dims = {0: "batch", 1: "length"}
    names = dict(input_names=["ids", "mask"], output_names=["y"])
    if exporter == "traced":
        torch.onnx.export(network, sample(2, 7), path, dynamo=False, opset_version=17,
                          dynamic_axes={"ids": dims, "mask": dims, "y": dims}, **names)
    else:
        shape = {d: torch.export.Dim(name) for d, name in dims.items()}
        torch.onnx.export(network, sample(2, 7), path, dynamo=True, opset_version=18, external_data=False,
                          dynamic_shapes=(shape, shape), **names)


def problem_of(trama, path, folder):
    """Why the file is refused, or where numbers differ; empty without a problem."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for batch, length in EXTENTS:
        fed = dict(zip(("ids", "mask"), (t.numpy() for t in sample(batch, length))))
        expected = session.run(None, fed)[0]
        for name, data in fed.items():
            numpy.save(os.path.join(folder, name + ".npy"), data)
        inputs = [word for name in fed for word in ("--input", f"{name}={folder}/{name}.npy")]
        for mesh in MESHES:
            run = subprocess.run([trama, "onnx", path, *inputs, "--output", folder, *mesh], capture_output=True,
                                 text=True, check=False)
            if run.returncode:
                return run.stderr.strip().splitlines()[-1].split(".onnx: ")[-1]
            got = numpy.load(os.path.join(folder, "y.npy"))
            if got.shape != expected.shape or not numpy.allclose(got, expected, rtol=1e-4, atol=1e-5):
                return f"{batch} x {length} {' '.join(mesh)}: the numbers differ"
    return ""


def main():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    trama, wrong = sys.argv[1], 0
    for name in sys.argv[2:] or NETWORKS:
        for exporter in ("traced", "dynamo"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "network.onnx")
                torch.manual_seed(1)
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        export(Wrapped(name), exporter, path)
                except Exception as raised:  # whatever an exporter raises
                    print(f"{name:11} {exporter}  not exported: {str(raised).splitlines()[0][:80]}", flush=True)
                    continue
                problem = problem_of(trama, path, folder)
                wrong += bool(problem)
                print(f"{name:11} {exporter}  {problem or 'equal'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
