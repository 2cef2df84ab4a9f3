#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step of an optimizer of torch.optim, fused, over the parameters of the main job, all cores. As in optimizer.c the
gradients lie in memory and stay. torch.optim has no lamb: that is written in foreach operations, as torch.optim writes
what is not fused. clip is adamw whose gradients are clipped by their norm.
"""
import argparse
import os

import torch
from torch import optim

from served import serve, timed


class Lamb:
    """You et al. 2020, algorithm 2."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        self.params, self.lr, self.betas, self.eps, self.weight_decay = params, lr, betas, eps, weight_decay
        self.m = [torch.zeros_like(w) for w in params]
        self.v = [torch.zeros_like(w) for w in params]
        self.n = 0

    @torch.no_grad()
    def step(self):
        self.n += 1
        (beta1, beta2), gradients = self.betas, [w.grad for w in self.params]
        torch._foreach_lerp_(self.m, gradients, 1 - beta1)
        torch._foreach_mul_(self.v, beta2)
        torch._foreach_addcmul_(self.v, gradients, gradients, 1 - beta2)
        # (m / c1) / (sqrt(v / c2) + eps), with c1 and c2 moved to the divisor
        divisor = torch._foreach_sqrt(self.v)
        torch._foreach_div_(divisor, (1 - beta2**self.n) ** 0.5)
        torch._foreach_add_(divisor, self.eps)
        torch._foreach_mul_(divisor, 1 - beta1**self.n)
        update = torch._foreach_div(self.m, divisor)
        torch._foreach_add_(update, self.params, alpha=self.weight_decay)
        for w, u, a, b in zip(self.params, update, torch._foreach_norm(self.params), torch._foreach_norm(update)):
            w.add_(u, alpha=-self.lr * (float(a / b) if a > 0 and b > 0 else 1.0))


OPTIMIZERS = {"sgd": lambda p: optim.SGD(p, 1e-3, fused=True),
              "momentum": lambda p: optim.SGD(p, 1e-3, momentum=0.9, fused=True),
              "adam": lambda p: optim.Adam(p, 1e-3, fused=True),
              "adamw": lambda p: optim.AdamW(p, 1e-3, fused=True),
              "lamb": lambda p: Lamb(p, 1e-3),
              "clip": lambda p: optim.AdamW(p, 1e-3, fused=True)}


def parameters(sizes):
    generator = torch.Generator().manual_seed(1)
    shapes = [shape for a, b in zip(sizes, sizes[1:]) for shape in ((a, b), (b,))]
    found = [torch.rand(shape, generator=generator).requires_grad_() for shape in shapes]
    for w in found:
        w.grad = torch.rand(w.shape, generator=generator) * 2 - 1
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("optimizer", choices=OPTIMIZERS)
    parser.add_argument("--hidden", default="512,256")
    args = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    params = parameters([784] + [int(width) for width in args.hidden.split(",")] + [10])
    optimizer = OPTIMIZERS[args.optimizer](params)

    def step():
        if args.optimizer == "clip":
            torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()

    serve(lambda n: timed(step, n))


if __name__ == "__main__":
    main()
