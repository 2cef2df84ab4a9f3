#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks of the package transformers, exported by both exporters of PyTorch with a batch and a length that are
only known when fed, in `trama onnx` on several meshes and in ONNX Runtime; decoders once more with keys and values of
earlier tokens, whose number is fed, too. Prints a line for each file.

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
EXTENTS = ((3, 5, 2), (1, 7, 0), (4, 1, 6))  # sequences, tokens, and earlier tokens
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


    def sample(self, batch, length, _earlier):
        mask = torch.ones(batch, length, dtype=torch.long)
        mask[-1, length // 2 + 1:] = 0
        return torch.randint(3, WORDS, (batch, length)), mask

    inputs, outputs = ("ids", "mask"), ("y",)

    def dims(self, name):
        return {0: "batch", 1: "length"}


class Cached(Wrapped):
    """The same with keys and values of earlier tokens for each layer, to the logits and all keys and values."""

    def __init__(self, name):
        super().__init__(name)
        layers = range(self.model.config.num_hidden_layers)
        self.inputs = ("ids", "mask") + tuple(f"{word}{i}" for i in layers for word in ("keys", "values"))
        self.outputs = ("y",) + tuple(f"all_{word}" for word in self.inputs[2:])

    def forward(self, ids, mask, *past):
        cache = transformers.DynamicCache()
        for i in range(0, len(past), 2):
            cache.update(past[i], past[i + 1], i // 2)
        more = {}
        if "position_ids" in self.model.forward.__code__.co_varnames:
            more["position_ids"] = torch.clamp(mask.cumsum(-1) - 1, min=0)[:, -ids.shape[1]:]
        out = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True, **more)
        layers = out.past_key_values.layers
        return (out.logits, *(t for layer in layers for t in (layer.keys, layer.values)))

    def sample(self, batch, length, earlier):
        config = self.model.config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        mask = torch.ones(batch, earlier + length, dtype=torch.long)
        mask[-1, 0] = 0
        past = (torch.randn(batch, heads, earlier, size) for _ in self.inputs[2:])
        return torch.randint(3, WORDS, (batch, length)), mask, *past

    def dims(self, name):
        if name in ("ids", "y"):
            return {0: "batch", 1: "length"}
        return {0: "batch", 1: "earlier + length"} if name == "mask" else {0: "batch", 2: "all" if name in self.outputs else "earlier"}


def export(network, exporter, path):
    names = dict(input_names=network.inputs, output_names=network.outputs)
    fed = network.sample(2, 7, 3)
    if exporter == "traced":
        torch.onnx.export(network, fed, path, dynamo=False, opset_version=17,
                          dynamic_axes={name: network.dims(name) for name in network.inputs + network.outputs}, **names)
    else:
        dim = {name: torch.export.Dim(name) for name in ("batch", "length", "earlier")}
        dim["earlier + length"] = torch.export.Dim.AUTO
        shapes = [{d: dim[name] for d, name in network.dims(of).items()} for of in network.inputs]
        past = (tuple(shapes[2:]),) if len(shapes) > 2 else ()
        torch.onnx.export(network, fed, path, dynamo=True, opset_version=18, external_data=False,
                          dynamic_shapes=(*shapes[:2], *past), **names)


def problem_of(network, trama, path, folder):
    """Why the file is refused, or where numbers differ; empty without a problem."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for extents in EXTENTS:
        fed = dict(zip(network.inputs, (t.numpy() for t in network.sample(*extents))))
        expected = dict(zip(network.outputs, session.run(None, fed)))
        for name, data in fed.items():
            numpy.save(os.path.join(folder, name + ".npy"), data)
        inputs = [word for name in fed for word in ("--input", f"{name}={folder}/{name}.npy")]
        for mesh in MESHES:
            run = subprocess.run([trama, "onnx", path, *inputs, "--output", folder, *mesh], capture_output=True,
                                 text=True, check=False)
            if run.returncode:
                return run.stderr.strip().splitlines()[-1].split(".onnx: ")[-1]
            for name, wanted in expected.items():
                got = numpy.load(os.path.join(folder, name + ".npy"))
                if got.shape != wanted.shape or not numpy.allclose(got, wanted, rtol=1e-4, atol=1e-5):
                    return f"{extents} {' '.join(mesh)}: the numbers of {name} differ"
    return ""


def try_export(kind, name, exporter, trama):
    """A line, and whether it is a problem."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "network.onnx")
        torch.manual_seed(1)
        network = kind(name)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                export(network, exporter, path)
        except Exception as raised:  # whatever an exporter raises
            return f"not exported: {str(raised).splitlines()[0][:80]}", False
        problem = problem_of(network, trama, path, folder)
        return problem or "equal", bool(problem)


def main():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    trama, wrong = sys.argv[1], 0
    for name in sys.argv[2:] or NETWORKS:
        for kind in (Wrapped, Cached) if Wrapped(name).decodes else (Wrapped,):
            for exporter in ("traced", "dynamo"):
                line, is_wrong = try_export(kind, name, exporter, trama)
                wrong += is_wrong
                print(f"{name:11} {'cached' if kind is Cached else '':6} {exporter}  {line}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
