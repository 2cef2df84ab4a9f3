#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes that a process receives in a training step of the programs of tests/dist/test_recipes.c, with the same
annotations, as PyTorch's DTensor and JAX lay them out.

  DTensor  on its fake process group, which moves nothing: the collectives of process 0 are counted. Tensors without an
           annotation are replicated, since DTensor wants a layout for each.
  JAX      on virtual CPU devices: the collectives of the compiled program are counted. Tensors without an annotation
           have no sharding, so that the compiler chooses one.

Counted as of a ring: an all-gather takes the part of its result that the process lacks, a reduce-scatter as much of its
operand, an all-reduce both. Updated weights have the layouts of the weights, where these have one.
"""
import argparse
import math
import os
import re
import sys
from contextlib import nullcontext

RECIPES = [
    # name, mesh, layouts of the data and of the weights (None: none is written), batch, program
    ("data parallel", (2,), ["S(0)"], 8, "perceptron"),
    ("data parallel, uneven", (2,), ["S(0)"], 7, "perceptron"),
    ("model parallel", (2,), [None, "S(1)"], 8, "perceptron"),
    ("both", (2, 2), ["S(0),R", "R,S(1)"], 8, "perceptron"),
    ("fully sharded", (2,), ["S(0)", "S(0)", "S(0)"], 64, "perceptron"),
    ("Megatron", (2,), [None, "S(1)", "S(1)"], 0, "block"),
    ("Megatron with sequence parallelism", (2,), ["S(0)", "S(1)", "S(1)"], 0, "block"),
    ("data parallel and Megatron", (2, 2), ["S(0),R", "R,S(1)", "R,S(1)"], 0, "block"),
    ("2-d", (2, 2), ["S(0),S(1)", "S(0),S(1)", "S(1),S(0)"], 0, "square"),
    ("split vocabulary", (2,), [None, "S(1)"], 4, "head"),
    ("head, uneven batch", (2,), ["S(0)"], 7, "head"),
    ("product read by rows", (2, 2), ["S(0),S(2)", "R,S(0)", "S(0),S(1)"], 256, "product"),
    ("small product read by rows", (2, 2), ["S(0),S(2)", "R,S(0)", "S(0),S(1)"], 32, "product"),
    ("rows of a sum", (2,), ["S(1)", "S(0)", "S(0)"], 0, "rows"),
]

BATCH, LENGTH, FEATURES, HEADS, HIDDEN = 2, 8, 12, 4, 24  # of the block
NORMS_AND_OFFSETS = {"n1": FEATURES, "c1": FEATURES, "bqkv": 3 * FEATURES, "bout": FEATURES, "n2": FEATURES,
                     "c2": FEATURES, "bup": HIDDEN, "bdown": FEATURES}


def tensors(program, batch):
    """The shapes of the data and of the annotated weights, in the order of the annotations; then of the others. The
    data of these programs is trained where True."""
    return {
        "perceptron": ({"x": (batch, 12), "w0": (12, 16), "w1": (16, 8)}, {"b0": (16,), "b1": (8,)}, False),
        "square": ({"x": (16, 16), "w0": (16, 32), "w1": (32, 16)}, {}, False),
        "block": ({"x": (BATCH * LENGTH, FEATURES), "qkv": (FEATURES, 3 * FEATURES), "up": (FEATURES, HIDDEN)},
                  {"out": (FEATURES, FEATURES), "down": (HIDDEN, FEATURES),
                   **{name: (n,) for name, n in NORMS_AND_OFFSETS.items()}}, True),
        "head": ({"x": (batch, 6, 8), "w": (8, 24)}, {}, True),
        "product": ({"x": (8, 16, batch), "w": (batch, 64)}, {}, None),
        "rows": ({"a": (8, 8), "b": (8, 8)}, {}, True),
    }[program]


def placements(text, dims):
    """`S(0),R` as the dims that axes split: [0, None]."""
    axes = (text or ",".join("R" * dims)).split(",")
    return [int(axis[2:-1]) if axis.startswith("S") else None for axis in axes]


# ---- DTensor ----

def dtensor_bytes(mesh_shape, layouts, batch, program):
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import loss_parallel
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        received = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if any(issubclass(t, DTensor) for t in types):
                return NotImplemented
            result = func(*args, **(kwargs or {}))
            name = str(func)
            if "c10d" in name or "_dtensor" in name:
                self.count(name, args, result)
            return result

        def count(self, name, args, result):
            if any(other in name for other in ("wait_tensor", "wrap_tensor", "10d.scatter_", "10d.broadcast_")):
                return  # the last two: constants of the program are spread
            group = [a for a in args if isinstance(a, str)][-1]
            n = dist.distributed_c10d._resolve_process_group(group).size()
            size = args[0].numel() * args[0].element_size()
            if "all_reduce" in name:
                self.received += 2 * size * (n - 1) / n
            elif "all_gather" in name:
                self.received += size * (n - 1)
            elif "reduce_scatter" in name or "alltoall" in name or "all_to_all" in name:
                self.received += size * (n - 1) / n
            else:
                raise RuntimeError("unknown collective " + name)

    if not dist.is_initialized() or dist.get_world_size() != math.prod(mesh_shape):
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", rank=0, world_size=math.prod(mesh_shape), store=FakeStore())
    mesh = init_device_mesh("cpu", mesh_shape)

    def of(layout):
        return [Replicate() if d is None else Shard(d) for d in placements(layout, len(mesh_shape))]

    def spread(shape, layout, trained):
        return distribute_tensor(torch.rand(shape), mesh, of(layout)).requires_grad_(trained)

    annotated, others, data_is_trained = tensors(program, batch)
    t, whole = {}, of(None)
    for i, (name, shape) in enumerate(annotated.items()):
        trained = data_is_trained if i == 0 else data_is_trained is not None
        t[name] = spread(shape, layouts[i] if i < len(layouts) else None, bool(trained))
    for name, shape in others.items():
        t[name] = spread(shape, None, True)
    f = torch.nn.functional

    def labels(n, classes):
        first = [Shard(0) if d == 0 else Replicate() for d in placements(layouts[0], len(mesh_shape))]
        return distribute_tensor(torch.arange(n) % classes, mesh, first)

    def attention(qkv):
        parts = qkv.view(BATCH, LENGTH, HEADS, 3, FEATURES // HEADS).permute(3, 0, 2, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        mask = distribute_tensor(torch.triu(torch.full((LENGTH, LENGTH), -1e30), 1), mesh, whole)
        scores = q @ k.transpose(-1, -2) / math.sqrt(FEATURES // HEADS) + mask
        return (scores.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(BATCH * LENGTH, FEATURES)

    def norm(x, w, b):
        return f.layer_norm(x, (FEATURES,), w, b)

    def loss():
        if program == "perceptron":
            h = torch.relu(t["x"] @ t["w0"] + t["b0"])
            return f.cross_entropy(h @ t["w1"] + t["b1"], labels(batch, 8))
        if program == "square":
            return (torch.relu(t["x"] @ t["w0"]) @ t["w1"]).square().mean()
        if program == "head":
            return f.cross_entropy((t["x"] @ t["w"]).view(batch * 6, 24), labels(batch * 6, 24))
        if program == "rows":
            y = (t["a"] @ t["b"]).redistribute(mesh, of(layouts[2]))
            return torch.tanh(y).mean()
        y = t["x"] + attention(norm(t["x"], t["n1"], t["c1"]) @ t["qkv"] + t["bqkv"]) @ t["out"] + t["bout"]
        h = f.gelu(norm(y, t["n2"], t["c2"]) @ t["up"] + t["bup"])
        return (y + h @ t["down"] + t["bdown"]).square().mean()

    with Count() as count:
        if program == "product":
            (t["x"] @ t["w"]).redistribute(mesh, of(layouts[2])).to_local()
            return count.received
        with loss_parallel() if program == "head" else nullcontext():
            value = loss()
            value.backward()
        value.redistribute(mesh, whole).to_local()
        with torch.no_grad():
            for v in t.values():
                if v.requires_grad:
                    v -= 0.1 * v.grad.redistribute(mesh, v.placements)
    return count.received


# ---- JAX ----

SIZES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "f64": 8}
COLLECTIVE = re.compile(r"= (.*?) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start)?\((.*)")


def group_size(line):
    """Members of a group, of replica_groups={{0,1},{2,3}}, [2,2]<=[4] or mesh['p'=2,'q'=2] {'p'}."""
    found = re.search(r"replica_groups=\{\{([0-9,]*)\}", line)
    if found:
        return len(found.group(1).split(","))
    found = re.search(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}", line)
    if found:
        sizes = dict(axis.split("=") for axis in found.group(1).split(","))
        return math.prod(int(sizes[axis]) for axis in found.group(2).split(","))
    return int(re.search(r"replica_groups=\[\d+,(\d+)\]", line).group(1))


def hlo_bytes(text):
    received = 0
    for line in text.splitlines():
        found = COLLECTIVE.search(line)
        if not found:
            continue
        size = sum(SIZES[kind] * math.prod(int(d) for d in dims.split(",") if d)
                   for kind, dims in re.findall(r"(\w+)\[([0-9,]*)\]", found.group(1)))
        kind = found.group(2)
        if kind == "collective-permute":
            received += size
            continue
        n = group_size(line)
        received += {"all-reduce": 2 * size * (n - 1) / n, "all-gather": size * (n - 1) / n,
                     "reduce-scatter": size * (n - 1), "all-to-all": size * (n - 1) / n}[kind]
    return received


def jax_bytes(mesh_shape, layouts, batch, program):
    import jax
    import jax.numpy as np
    import numpy
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    axes = ("a", "b")[:len(mesh_shape)]
    mesh = Mesh(numpy.array(jax.devices()[:math.prod(mesh_shape)]).reshape(mesh_shape), axes)

    def sharding(layout, ndim):
        split = [[] for _ in range(ndim)]
        for axis, dim in zip(axes, placements(layout, len(mesh_shape))):
            if dim is not None:
                split[dim].append(axis)
        return NamedSharding(mesh, PartitionSpec(*[tuple(s) or None for s in split]))

    annotated, others, data_is_trained = tensors(program, batch)
    shapes = {**annotated, **others}
    given = {name: sharding(layouts[i], len(shape)) if i < len(layouts) and layouts[i] else None
             for i, (name, shape) in enumerate(annotated.items())}
    names = list(shapes)
    trained = [n for i, n in enumerate(names) if i or data_is_trained]

    def norm(x, w, b):
        m = x.mean(-1, keepdims=True)
        return (x - m) / np.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * w + b

    def attention(qkv):
        q, k, v = qkv.reshape(BATCH, LENGTH, HEADS, 3, FEATURES // HEADS).transpose(3, 0, 2, 1, 4)
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(FEATURES // HEADS)
        scores = np.where(np.tril(np.ones((LENGTH, LENGTH), bool)), scores, -1e30)
        return (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(BATCH * LENGTH, FEATURES)

    def cross_entropy(z, classes):
        labels = np.arange(z.shape[0]) % classes
        chosen = np.take_along_axis(z, labels[:, None], 1)[:, 0]
        return (jax.nn.logsumexp(z, -1) - chosen).mean()

    def loss(weights, data):
        t = {**weights, **data}
        if program == "perceptron":
            return cross_entropy(jax.nn.relu(t["x"] @ t["w0"] + t["b0"]) @ t["w1"] + t["b1"], 8)
        if program == "square":
            return np.square(jax.nn.relu(t["x"] @ t["w0"]) @ t["w1"]).mean()
        if program == "head":
            return cross_entropy((t["x"] @ t["w"]).reshape(batch * 6, 24), 24)
        if program == "rows":
            y = jax.lax.with_sharding_constraint(t["a"] @ t["b"], sharding(layouts[2], 2))
            return np.tanh(y).mean()
        y = t["x"] + attention(norm(t["x"], t["n1"], t["c1"]) @ t["qkv"] + t["bqkv"]) @ t["out"] + t["bout"]
        h = jax.nn.gelu(norm(y, t["n2"], t["c2"]) @ t["up"] + t["bup"], approximate=False)
        return np.square(y + h @ t["down"] + t["bdown"]).mean()

    def step(weights, data):
        value, slopes = jax.value_and_grad(loss)(weights, data)
        return value, {n: weights[n] - 0.1 * slopes[n] for n in weights}

    def arguments(of):
        return {n: jax.ShapeDtypeStruct(shapes[n], np.float32, sharding=given.get(n)) for n in of}

    data = [n for n in names if n not in trained]
    if program == "product":
        compiled = jax.jit(lambda x, w: x @ w, out_shardings=sharding(layouts[2], 3)).lower(
            *(jax.ShapeDtypeStruct(shapes[n], np.float32, sharding=given[n]) for n in names)).compile()
        return hlo_bytes(compiled.as_text())
    out = (None, {n: given.get(n) for n in trained})
    compiled = jax.jit(step, out_shardings=out).lower(arguments(trained), arguments(data)).compile()
    return hlo_bytes(compiled.as_text())


def counted(of, recipe):
    try:
        return f"{of(*recipe[1:]):,.0f}"
    except Exception as error:  # a program that a peer refuses is a row, too
        print(f"{recipe[0]}, {of.__name__}: {str(error).strip().splitlines()[0]}", file=sys.stderr)
        return "refused"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=["dtensor", "jax"], action="append", help="count of this one only")
    peers = parser.parse_args().peer or ["dtensor", "jax"]
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    print("| recipe | mesh | " + " | ".join(peers) + " |\n|---|---|" + "---|" * len(peers))
    for recipe in RECIPES:
        of = {"dtensor": dtensor_bytes, "jax": jax_bytes}
        mesh = ",".join(str(n) for n in recipe[1])
        print(f"| {recipe[0]} | {mesh} | " + " | ".join(counted(of[peer], recipe) for peer in peers) + " |", flush=True)


if __name__ == "__main__":
    main()
