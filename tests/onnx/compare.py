#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times networks that PyTorch exports in ONNX Runtime and in `trama onnx`, in turns, on one process with all cores.

Needs torch, onnx and onnxruntime of PyPI. Both sides give the same numbers, or the script fails."""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import onnxruntime
import torch
from torch import nn

ROUNDS, RUNS = 7, 10


class Residual(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                                  nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Sequential()
        if channels != out:
            self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def convolutions():
    """ResNet-18 (He et al. 2016) of one image of 224 x 224."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    widths = (64, 64, 128, 256, 512)
    for before, width in zip(widths, widths[1:]):
        layers += [Residual(before, width, 1 if width == 64 else 2), Residual(width, width, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)), (1, 3, 224, 224)


class Layer(nn.Module):
    """A transformer layer with its norms in front, of 8 heads."""

    def __init__(self, features):
        super().__init__()
        self.norm, self.next_norm = nn.LayerNorm(features), nn.LayerNorm(features)
        self.qkv, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.up, self.down = nn.Linear(features, 4 * features), nn.Linear(4 * features, features)

    def forward(self, x):
        batch, length, features = x.shape
        q, k, v = (t.reshape(batch, length, 8, features // 8).transpose(1, 2)
                   for t in self.qkv(self.norm(x)).chunk(3, -1))
        scores = torch.softmax(q @ k.transpose(2, 3) / (features // 8) ** 0.5, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, length, features))
        return x + self.down(nn.functional.gelu(self.up(self.next_norm(x))))


def transformer():
    """Four layers of 512 features, batch 4, 256 positions."""
    return nn.Sequential(*(Layer(512) for _ in range(4))), (4, 256, 512)


def theirs(session, x):
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        session.run(None, {"x": x})
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def ours(trama, model, folder):
    done = subprocess.run([trama, "onnx", model, "--input", f"x={folder}/x.npy", "--output", folder, "--time", str(RUNS)],
                          check=True, text=True, stdout=subprocess.PIPE)
    return float(re.search(r"runs: ([0-9.]+) ms", done.stdout)[1])


def compare(trama, name, make, folder):
    torch.manual_seed(1)
    network, shape = make()
    model, x = f"{folder}/{name}.onnx", torch.rand(shape) * 2 - 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), (x,), model, input_names=["x"], output_names=["y"], dynamo=False)
    numpy.save(f"{folder}/x.npy", x.numpy())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    wanted = session.run(None, {"x": x.numpy()})[0]
    pairs = [(ours(trama, model, folder), theirs(session, x.numpy())) for _ in range(ROUNDS)]
    numpy.testing.assert_allclose(numpy.load(f"{folder}/y.npy"), wanted, rtol=2e-3, atol=2e-4)
    columns = [statistics.median(column) for column in zip(*pairs)]
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{name:14} {columns[0]:10.2f} {columns[1]:14.2f} {ratio:8.2f}", flush=True)


def main():
    torch.set_num_threads(1)
    print(f"onnxruntime {onnxruntime.__version__}, PyTorch {torch.__version__}, {len(os.sched_getaffinity(0))} threads; "
          f"medians of {ROUNDS} rounds of {RUNS} runs")
    print(f"{'network':14} {'trama ms':>10} {'onnxruntime ms':>14} {'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for make in (convolutions, transformer):
            compare(sys.argv[1], make.__name__, make, folder)


if __name__ == "__main__":
    main()
