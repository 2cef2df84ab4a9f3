#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The transformer block of block.c in PyTorch, forward and backward.

  --mode single   one process, all cores
  --mode tp       --ranks processes of one thread, torch.distributed.tensor.parallel over gloo
"""
import argparse
import os

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from served import serve, timed
from torch_step import Ranks

BATCH, LENGTH, FEATURES, HEADS, HIDDEN = 8, 256, 1024, 16, 4096


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(FEATURES), nn.LayerNorm(FEATURES)
        self.q, self.k, self.v, self.out = (nn.Linear(FEATURES, FEATURES) for _ in range(4))
        self.up, self.down = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, FEATURES)

    def attend(self, x):
        q, k, v = (part(x).view(BATCH, LENGTH, -1, FEATURES // HEADS).transpose(1, 2)
                   for part in (self.q, self.k, self.v))
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(out.transpose(1, 2).reshape(BATCH, LENGTH, -1))

    def forward(self, x):
        y = x + self.attend(self.norm1(x))
        return y + self.down(gelu(self.up(self.norm2(y))))


class Work:
    def __init__(self, block):
        generator = torch.Generator().manual_seed(1)
        shape = (BATCH, LENGTH, FEATURES)
        self.block = block
        self.x = (torch.rand(shape, generator=generator) * 2 - 1).requires_grad_()
        self.g = torch.rand(shape, generator=generator) * 2 - 1

    def unit(self):
        self.block.zero_grad(set_to_none=True)
        self.x.grad = None
        self.block(self.x).backward(self.g)

    def run(self, n):
        return timed(self.unit, n)


def make(args):
    torch.manual_seed(1)
    block = Block()
    if args.mode == "tp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        styles = {name: ColwiseParallel() for name in ("q", "k", "v", "up")}
        styles |= {name: RowwiseParallel() for name in ("out", "down")}
        block = parallelize_module(block, init_device_mesh("cpu", (args.ranks,)), styles)
    return Work(block)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["single", "tp"], default="single")
    parser.add_argument("--ranks", type=int, default=2)
    args = parser.parse_args()
    if args.mode == "single":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        work = make(args)
        serve(work.run)
    else:
        os.environ["OMP_NUM_THREADS"] = "1"
        ranks = Ranks(args, make)
        serve(ranks.run)
        ranks.end()


if __name__ == "__main__":
    main()
