#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mlp.c's training step in PyTorch on the first GPU, served to tests/bench/run like the programs in C (common/bench.h).

  --dtype   f32, tf32 (products only) or bf16 (parameters and all)
  --mode    eager, compiled (forward and backward by torch.compile), or graphs (the same with mode="reduce-overhead")

The update is torch.optim.SGD's fused one. Samples and labels stay on the card.
"""
import argparse

import torch
from torch import nn

from served import serve, timed


def network(sizes):
    modules = []
    for i in range(len(sizes) - 1):
        modules += [nn.ReLU()] * (i > 0) + [nn.Linear(sizes[i], sizes[i + 1])]
    return nn.Sequential(*modules)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--mode", choices=["eager", "compiled", "graphs"], default="eager")
    parser.add_argument("--sizes", default="4096,4096,4096,4096,4096")
    parser.add_argument("--batch", type=int, default=4096)
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]

    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = args.dtype == "tf32"
    dtype = torch.bfloat16 if args.dtype == "bf16" else torch.float32
    net = network(sizes).to("cuda", dtype)
    x = torch.rand(args.batch, sizes[0], device="cuda", dtype=dtype) * 2 - 1
    labels = torch.arange(args.batch, device="cuda") * 7 % sizes[-1]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)

    def forward(x, labels):
        return nn.functional.cross_entropy(net(x), labels)

    loss = {"eager": lambda: forward,
            "compiled": lambda: torch.compile(forward),
            "graphs": lambda: torch.compile(forward, mode="reduce-overhead")}[args.mode]()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(x, labels).backward()
        optimizer.step()

    def run(n):
        start, _ = timed(step, n)
        _, end = timed(torch.cuda.synchronize, 1)
        return start, end

    serve(run)


if __name__ == "__main__":
    main()
