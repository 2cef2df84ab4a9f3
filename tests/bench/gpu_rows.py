# SPDX-License-Identifier: Apache-2.0
"""The rows that need a GPU; as rows.py, which has the others."""
from rows import OPS, Rate, Rows, program, torch_program

N = 8192  # of products
PRODUCTS = {"f32": 0.95, "tf32": 0.95, "bf16": 0.95}  # of cuBLASLt's speed
SIDE = 16384  # of matrices that are streamed
# Op: how many elements of memory it moves for each element of x.
STREAMED = {"add": 3, "gelu": 2, "softmax": 2, "mean": 1, "norm": 1, "copy": 2, "transpose": 2}
STREAMED_TARGET = 0.85  # of the speed of a copy on the card
SIZES = {"f32": 4, "tf32": 4, "bf16": 2}
WIDTH, BATCH, LAYERS = 4096, 4096, 4
PROGRAMS = ("matmul", "streaming", "mlp", "chain", "raw_gpu")  # that the rows need


def trama(name, *arguments, dtype):
    """On one GPU; TF32 is no element type, but how products of f32 are computed."""
    environment = ["TRAMA_DEVICE=gpu"] + (["TRAMA_TF32=1"] if dtype == "tf32" else [])
    return ["env", *environment, *program(name, *arguments, "--dtype", "f32" if dtype == "tf32" else dtype)]


class GpuCatalogue(Rows):
    """All rows, and the commands of their groups."""

    rounds = 10

    def __init__(self, torch):
        super().__init__()
        for dtype, target in PRODUCTS.items():
            self.add_product(dtype, target)
        for dtype in ("f32", "bf16"):
            for moved in sorted(set(STREAMED.values())):
                self.add_streamed(dtype, moved)
        for dtype in SIZES:
            for mode in ("eager", "compiled"):
                self.add_step(dtype, mode, torch)
        self.add_chain()

    def add_product(self, dtype, target):
        name = "matmul." + dtype
        self.group(name, "cuBLASLt", program("raw_gpu", "matmul", "--n", str(N), "--dtype", dtype), self.rounds, 3, 3)
        self.add(name, name, "trama", trama("matmul", "--n", str(N), dtype=dtype), "speed", target,
                 Rate(2 * N ** 3, 1e12, "Tflop/s"))

    def add_streamed(self, dtype, moved):
        """Beside a copy that moves as many bytes."""
        size = moved * SIDE * SIDE * SIZES[dtype]
        group = f"memory.{moved}.{dtype}"
        self.group(group, "memcpy", program("raw_gpu", "memcpy", "--megabytes", str(size >> 20)), self.rounds, 3, 3)
        for op in (op for op, times in STREAMED.items() if times == moved):
            command = trama("streaming", op, "--rows", str(SIDE), "--columns", str(SIDE), dtype=dtype)
            self.add(f"{op}.{dtype}", group, op, command, "speed", STREAMED_TARGET, Rate(size, 1e9, "GB/s"))

    def add_step(self, dtype, mode, torch):
        name = f"mlp.{dtype}.{mode}"
        sizes = ["--width", str(WIDTH), "--layers", str(LAYERS), "--batch", str(BATCH)]
        self.group(name, f"PyTorch {mode}", torch_program(torch, "torch_gpu", "--mode", mode, "--dtype", dtype, *sizes),
                   self.rounds, 3, 3)
        self.add(name, name, "trama", trama("mlp", *sizes, dtype=dtype), "below", 1,
                 Rate(BATCH, 1e3, "thousand samples/s"))

    def add_chain(self):
        sizes = ["--ops", str(OPS)]
        self.group("chain", "plain CUDA", program("raw_gpu", "launches", *sizes), self.rounds, 20, 1)
        self.add("chain.graph", "chain", "CUDA graph", program("raw_gpu", "graph", *sizes), "time", None)
        for mode in ("replay", "eager", "fused"):
            self.add("chain." + mode, "chain", mode, trama("chain", mode, *sizes, dtype="f32"), "time", None)
