#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ops of ops.c in PyTorch, one process, all cores, on the same shapes."""
import argparse
import os
from functools import partial

import torch
import torch.nn.functional as F

from served import serve, timed

ROWS, COLUMNS, TABLE, TOKENS, WIDTH = 8192, 1024, 32768, 8192, 512


def data(*shape):
    return torch.rand(shape) * 2 - 1


def of_matrix(op):
    """A case of one matrix."""
    def case():
        x = data(ROWS, COLUMNS)
        return lambda: op(x)
    return case


def concat():
    x, y = data(ROWS, COLUMNS), data(ROWS, COLUMNS)
    return lambda: torch.cat((x, y), 1)


def gather():
    x, index = data(ROWS, COLUMNS), torch.randint(COLUMNS, (COLUMNS,))
    return lambda: torch.index_select(x, 1, index)


def gather_along():
    x, index = data(ROWS, COLUMNS), torch.randint(COLUMNS, (ROWS, COLUMNS))
    return lambda: torch.gather(x, 1, index)


def layer_norm():
    x, w, b = data(ROWS, COLUMNS), data(COLUMNS), data(COLUMNS)
    return lambda: F.layer_norm(x, (COLUMNS,), w, b)


def layer_norm_gradient():
    x, w, b = (data(*shape).requires_grad_() for shape in ((ROWS, COLUMNS), (COLUMNS,), (COLUMNS,)))
    return lambda: torch.autograd.grad(F.layer_norm(x, (COLUMNS,), w, b).sum(), (x, w))


def embedding():
    table, tokens = data(TABLE, WIDTH), torch.randint(TABLE, (TOKENS,))
    return lambda: F.embedding(tokens, table)


def embedding_gradient():
    table, tokens = data(TABLE, WIDTH).requires_grad_(), torch.randint(TABLE, (TOKENS,))
    return lambda: torch.autograd.grad(F.embedding(tokens, table).sum(), table)


def attention(gradient):
    """Causal, of batch 4, 8 heads, 1,024 queries and keys of 64 features."""
    def case():
        in_ = [data(4, 8, 1024, 64).requires_grad_(gradient) for _ in range(3)]
        forward = partial(F.scaled_dot_product_attention, *in_, is_causal=True)
        return (lambda: torch.autograd.grad(forward().sum(), in_)) if gradient else forward
    return case


def conv(gradient):
    """Of 16 images of 28 x 28, from 64 to 128 channels."""
    def case():
        x, w = data(16, 64, 28, 28).requires_grad_(gradient), data(128, 64, 3, 3).requires_grad_(gradient)
        forward = partial(F.conv2d, x, w, padding=1)
        return (lambda: torch.autograd.grad(forward().sum(), (x, w))) if gradient else forward
    return case


def pool(op, **options):
    def case():
        x = data(16, 64, 112, 112)
        return lambda: op(x, 3, 2, 1, **options)
    return case


def of_complex(shape, op):
    def case():
        z = torch.complex(data(*shape), data(*shape))
        return lambda: op(z)
    return case


CASES = {
    "softmax": of_matrix(lambda x: torch.softmax(x, 1)),
    "log_softmax": of_matrix(lambda x: torch.log_softmax(x, 1)),
    "softmax_columns": of_matrix(lambda x: torch.softmax(x, 0)),
    "gelu": of_matrix(F.gelu),
    "tanh": of_matrix(torch.tanh),
    "sin": of_matrix(torch.sin),
    "where": of_matrix(lambda x: torch.where(x > 0, x, -1.0)),
    "sum_rows": of_matrix(lambda x: x.sum(1)),
    "sum_columns": of_matrix(lambda x: x.sum(0)),
    "max_rows": of_matrix(lambda x: x.amax(1)),
    "max_columns": of_matrix(lambda x: x.amax(0)),
    "concat": concat,
    "gather": gather,
    "gather_along": gather_along,
    "layer_norm": layer_norm,
    "layer_norm_gradient": layer_norm_gradient,
    "rms_norm": of_matrix(lambda x: F.rms_norm(x, (COLUMNS,), eps=1e-5)),
    "conv": conv(False),
    "conv_gradient": conv(True),
    "max_pool": pool(F.max_pool2d),
    "mean_pool": pool(F.avg_pool2d, count_include_pad=False),
    "cumsum": of_matrix(lambda x: torch.cumsum(x, 1)),
    "cumsum_columns": of_matrix(lambda x: torch.cumsum(x, 0)),
    "top_k": of_matrix(lambda x: torch.topk(x, 64, 1)),
    "sort": of_matrix(lambda x: torch.sort(x, 1)),
    "embedding": embedding,
    "embedding_gradient": embedding_gradient,
    "attention": attention(False),
    "attention_gradient": attention(True),
    "complex_mul": of_complex((ROWS, COLUMNS // 2), lambda z: z * z),
    "complex_matmul": of_complex((COLUMNS, COLUMNS), lambda z: z.mH @ z),
    "fft": of_complex((ROWS, COLUMNS // 2), torch.fft.fft),
    "fft_cube": of_complex((128, 128, 128), torch.fft.fftn),
    "fft_line": of_complex((1 << 20,), torch.fft.fft),
    "rfft": of_matrix(torch.fft.rfft),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("op", choices=CASES)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    unit = CASES[parser.parse_args().op]()
    serve(lambda n: timed(unit, n))


if __name__ == "__main__":
    main()
