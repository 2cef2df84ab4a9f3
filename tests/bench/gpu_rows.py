# SPDX-License-Identifier: Apache-2.0
"""The rows that need a GPU; as rows.py, which has the others."""
from rows import OPS, Rate, Rows, program, torch_program

N = 8192  # of products
PRODUCTS = {"f32": 0.97, "tf32": 0.97, "bf16": 0.97}  # of cuBLASLt's speed
SIDE = 16384  # of matrices that are streamed
# Op: how many elements of memory it moves for each element of x.
STREAMED = {"add": 3, "gelu": 2, "softmax": 2, "mean": 1, "norm": 1, "copy": 2, "transpose": 2}
STREAMED_TARGET = 0.85  # of the speed of a copy on the card
SIZES = {"f32": 4, "tf32": 4, "bf16": 2}
WIDE, WIDE_BATCH = "4096,4096,4096,4096,4096", 4096
WIDE_TARGETS = {"f32": 1.01, "tf32": 0.92, "bf16": 0.97}  # time, of PyTorch compiled's
JOB, JOB_HIDDEN, JOB_BATCH = "784,512,256,10", "512,256", 128
JOB_TARGETS = {"eager": 0.5, "graphs": 1.1}  # time, of PyTorch's
FED = 1.1  # the main job's time with samples from the host, over that with samples on the card
CHAIN_TARGETS = {"replay": 1.5, "graph": 0.7}  # time, of plain launches
PROGRAMS = ("matmul", "streaming", "mlp", "step", "chain", "raw_gpu")  # that the rows need


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
            self.add_step("mlp." + dtype, torch, "eager", dtype, WIDE, WIDE_BATCH, 1, 3)
            self.add_step("mlp." + dtype, torch, "compiled", dtype, WIDE, WIDE_BATCH, WIDE_TARGETS[dtype], 3)
        for mode, target in JOB_TARGETS.items():
            self.add_step("job", torch, mode, "f32", JOB, JOB_BATCH, target, 20)
        self.add_fed_job()
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

    def add_step(self, prefix, torch, mode, dtype, widths, batch, target, warm):
        name = prefix + "." + mode
        sizes = ["--sizes", widths, "--batch", str(batch)]
        self.group(name, f"PyTorch {mode}", torch_program(torch, "torch_gpu", "--mode", mode, "--dtype", dtype, *sizes),
                   self.rounds, warm, 3)
        self.add(name, name, "trama", trama("mlp", *sizes, dtype=dtype), "time", target,
                 Rate(batch, 1e3, "thousand samples/s"))

    def add_fed_job(self):
        batch = ["--batch", str(JOB_BATCH)]
        self.group("job.fed", "on the card", trama("mlp", "--sizes", JOB, *batch, dtype="f32"), self.rounds, 20, 3)
        fed = ["env", "TRAMA_DEVICE=gpu", *program("step", "--hidden", JOB_HIDDEN, *batch)]
        self.add("job.fed", "job.fed", "fed", fed, "time", FED, Rate(JOB_BATCH, 1e3, "thousand samples/s"))

    def add_chain(self):
        sizes = ["--ops", str(OPS)]
        self.group("chain", "plain CUDA", program("raw_gpu", "launches", *sizes), self.rounds, 20, 1)
        self.add("chain.graph", "chain", "CUDA graph", program("raw_gpu", "graph", *sizes), "time",
                 CHAIN_TARGETS["graph"])
        for mode in ("replay", "eager", "fused"):
            self.add("chain." + mode, "chain", mode, trama("chain", mode, *sizes, dtype="f32"), "time",
                     CHAIN_TARGETS.get(mode))
