#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes torch_optimizers.h: what PyTorch makes of the fit of descent.h, in float64, and its learning rates over the steps.
Usage: torch_optimizers.py >torch_optimizers.h  (with PyTorch installed; the table was made by the version it names)"""
import warnings

import torch

ROWS, IN, OUT, STEPS = 12, 7, 5, 30
torch.set_default_dtype(torch.float64)
warnings.filterwarnings("ignore")


def scatter(n, seed, size):
    numbers = []
    for _ in range(n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        numbers.append(size * ((seed >> 50) / 8192 - 1))
    return torch.tensor(numbers)


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, with phi(z) = z and the bias correction of Adam."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (beta1, beta2), eps = group["betas"], group["eps"]
            for w in group["params"]:
                s = self.state[w]
                if not s:
                    s.update(t=0, m=torch.zeros_like(w), v=torch.zeros_like(w))
                s["t"] += 1
                s["m"].mul_(beta1).add_(w.grad, alpha=1 - beta1)
                s["v"].mul_(beta2).addcmul_(w.grad, w.grad, value=1 - beta2)
                u = s["m"] / (1 - beta1 ** s["t"]) / ((s["v"] / (1 - beta2 ** s["t"])).sqrt() + eps)
                u += group["weight_decay"] * w
                a, b = w.norm(), u.norm()
                w -= group["lr"] * (a / b if a > 0 and b > 0 else 1.0) * u


def fit(make, norm=None, value=None):
    x, y = scatter(ROWS * IN, 1, 1).view(ROWS, IN), scatter(ROWS * OUT, 2, 4).view(ROWS, OUT)
    w = torch.full((IN, OUT), 0.5, requires_grad=True)
    b = torch.full((OUT,), -0.25, requires_grad=True)
    optimizer = make([w, b])
    for _ in range(STEPS):
        optimizer.zero_grad()
        ((x @ w + b - y) ** 2).mean().backward()
        if value:
            torch.nn.utils.clip_grad_value_([w, b], value)
        if norm:
            torch.nn.utils.clip_grad_norm_([w, b], norm)
        optimizer.step()
    return w.detach().flatten().tolist() + b.tolist()


def fit_complex(make, norm=None):
    """The same of complex numbers, whose real parts come first in the generator's order."""

    def numbers(n, seed, size):
        both = scatter(2 * n, seed, size)
        return torch.complex(both[:n], both[n:])

    x, y = numbers(ROWS * IN, 1, 1).view(ROWS, IN), numbers(ROWS * OUT, 2, 4).view(ROWS, OUT)
    w = torch.full((IN, OUT), 0.5 - 0.125j, dtype=torch.complex128, requires_grad=True)
    b = torch.full((OUT,), -0.25 + 0.5j, dtype=torch.complex128, requires_grad=True)
    optimizer = make([w, b])
    for _ in range(STEPS):
        optimizer.zero_grad()
        ((x @ w + b - y).abs() ** 2).mean().backward()
        if norm:
            torch.nn.utils.clip_grad_norm_([w, b], norm)
        optimizer.step()
    return torch.view_as_real(torch.cat([w.detach().flatten(), b.detach()])).flatten().tolist()


def rates(make, n):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule, found = make(optimizer), []
    for _ in range(n):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


def table(name, numbers):
    print(f"static const double {name}[] = {{")
    for i in range(0, len(numbers), 5):
        print("    " + " ".join(f"{x!r}," for x in numbers[i : i + 5]))
    print("};")


optim, scheduler = torch.optim, torch.optim.lr_scheduler
print("/* SPDX-License-Identifier: Apache-2.0 */")
print(f"/* Written by torch_optimizers.py with PyTorch {torch.__version__.split('+')[0]}: w, then b, after TORCH_STEPS steps. */")
print("#ifndef TORCH_OPTIMIZERS_H\n#define TORCH_OPTIMIZERS_H\n")
print("// clang-format off")
print(f"enum {{ TORCH_STEPS = {STEPS} }};")
table("torch_sgd", fit(lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01)))
table("torch_adam", fit(lambda p: optim.Adam(p, 0.05, weight_decay=0.1)))
table("torch_adamw", fit(lambda p: optim.AdamW(p, 0.05, betas=(0.8, 0.95), weight_decay=0.1)))
table("torch_lamb", fit(lambda p: Lamb(p, 0.02)))
table("torch_clip_norm", fit(lambda p: optim.SGD(p, 0.05), norm=0.5))
table("torch_clip_value", fit(lambda p: optim.SGD(p, 0.05), value=0.125))
print("\n/* Complex parameters: real and imaginary parts by turns. */")
table("torch_complex_sgd", fit_complex(lambda p: optim.SGD(p, 0.05)))
table("torch_complex_momentum", fit_complex(lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01)))
table("torch_complex_adam", fit_complex(lambda p: optim.Adam(p, 0.05, weight_decay=0.1)))
table("torch_complex_adamw", fit_complex(lambda p: optim.AdamW(p, 0.05, betas=(0.8, 0.95), weight_decay=0.1)))
table("torch_complex_clip_norm", fit_complex(lambda p: optim.SGD(p, 0.05), norm=0.5))
print("\n/* Learning rates from step 0, for 1. */")
table("torch_cosine", rates(lambda o: scheduler.CosineAnnealingLR(o, 10, 0.1), 11))
table("torch_step", rates(lambda o: scheduler.StepLR(o, 3, 0.5), 12))
table("torch_one_cycle", rates(lambda o: scheduler.OneCycleLR(o, 1.0, total_steps=20, cycle_momentum=False), 20))
table("torch_one_cycle_of_4", rates(lambda o: scheduler.OneCycleLR(o, 1.0, total_steps=4, cycle_momentum=False), 4))
print("// clang-format on\n\n#endif")
