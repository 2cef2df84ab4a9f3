#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Causal attention in PyTorch, all cores, as in attention.c: forward, or forward and backward."""
import argparse
import os

import torch
from torch.nn.functional import scaled_dot_product_attention

from served import serve, timed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["forward", "train"])
    parser.add_argument("--length", type=int, default=1024)
    args = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    generator = torch.Generator().manual_seed(1)
    train = args.what == "train"
    q, k, v, g = (torch.rand((4, 8, args.length, 64), generator=generator) * 2 - 1 for _ in range(4))
    operands = [x.requires_grad_(train) for x in (q, k, v)]

    def unit():
        out = scaled_dot_product_attention(*operands, is_causal=True)
        if train:
            for x in operands:
                x.grad = None
            out.backward(g)

    serve(lambda n: timed(unit, n))


if __name__ == "__main__":
    main()
