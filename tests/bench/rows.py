# SPDX-License-Identifier: Apache-2.0
"""The rows of the benchmark: which programs they compare, what is made of their times, and the targets."""
import os
import shutil
import subprocess
import sys
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OPS = 1000
HOPS = 200

# How a group of programs is measured; seconds a turn, units.
Plan = namedtuple("Plan", "rounds launches turn warm least")
# kind: what is made of a candidate's and the baseline's seconds; target: the bound of that, or None; rate: how times are
# told where not as times.
Row = namedtuple("Row", "name group candidate baseline kind target rate")
# So much of a unit of work, in so many `unit`s: Rate(128, 1e3, "thousand samples/s").
Rate = namedtuple("Rate", "amount scale unit")


# ---- Figures of two times -------------------------------------------------------------------------------------------

Kind = namedtuple("Kind", "unit how better digits")
KINDS = {
    "speed": Kind("of {}'s speed", lambda mine, base: base / mine, ">=", 3),
    "samples": Kind("of {}'s samples/s", lambda mine, base: base / mine, ">=", 2),
    "time": Kind("of {}'s time", lambda mine, base: mine / base, "<=", 3),
    "below": Kind("of {}'s time", lambda mine, base: mine / base, "<", 3),
    "hop": Kind("us a hop", lambda mine, base: mine / HOPS * 1e6, "<=", 1),
    "above": Kind("us an op above {}", lambda mine, base: (mine - base) / OPS * 1e6, "<=", 2),
}
BETTER = {">=": lambda value, bound: value >= bound,
          "<=": lambda value, bound: value <= bound,
          "<": lambda value, bound: value < bound}


# ---- Programs -------------------------------------------------------------------------------------------------------

class Binaries:
    """Where the programs are, and the shared libraries that they need from elsewhere."""

    folder = os.path.join(ROOT, "build", "release")
    libraries = None


def program(name, *arguments, folder="bench"):
    command = [os.path.join(Binaries.folder, folder, name), *arguments]
    return ["env", "LD_LIBRARY_PATH=" + Binaries.libraries, *command] if Binaries.libraries else command


def on_ranks(ranks, command):
    """As examples/run: Trama itself chooses each rank's cores."""
    launcher = ["mpirun", "-n", str(ranks)]
    version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" in version:
        launcher += ["--oversubscribe", "--bind-to", "none"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
    return launcher + command


def on_cores(n, command):
    """On so many of those that we may use."""
    return ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:n])), *command]


def torch_program(torch, name, *arguments):
    """None without a python that has torch."""
    return torch and [torch, os.path.join(HERE, name + ".py"), *arguments]


def find_torch():
    """A python that has torch, and torch's version."""
    for python in (os.environ.get("TRAMA_TORCH_PYTHON"), shutil.which("python3"), sys.executable):
        if not python:
            continue
        probe = [python, "-c", "import torch, torch.distributed; print(torch.__version__)"]
        try:
            found = subprocess.run(probe, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0:
            return python, found.stdout.strip()
    return None, None


# ---- Rows -----------------------------------------------------------------------------------------------------------

# hidden, batch: targets against raw (speed) and PyTorch (time), DDP and TP
STEPS = {("512,256", 128): (1.0, 0.72, 0.40, 0.28),
         ("2048,2048", 256): (0.97, 0.97, 0.62, 0.85),
         ("1024,1024,1024", 512): (0.97, 0.97, 0.80, 0.70)}
BY_HAND = {"dp": "dp=2", "mp": "mp=2"}  # on 2 ranks, against a program written by hand for StarPU
BY_HAND_TIME = 1.05
SHORT = 2  # tasks of a step that is nothing but overhead
MESHES = {"mp2": ("mp=2", 1.05), "dp2": ("dp=2", 1.25), "dp2mp2": ("dp=2,mp=2", 1.3)}
PLANS = {"dpmp": ("dp=2,mp=2", "dp=8,mp=8", "dp=32,mp=32"), "dp": ("dp=4", "dp=64", "dp=1024")}
# Ranks: how many times DDP's samples a second, by the micro-steps of a cycle.
MERGES = {2: {1: 3, 2: 2.2, 4: 1.8, 8: 1.7}, 4: {1: None, 2: None, 4: None, 8: None}}
MERGE_SIZES = ("512,256", 128)
MERGE_COSTS = (("512,256", 128), ("2048,2048", 256))
MERGE_COST = 1.03  # a micro-step's time over that of one that is not merged
MERGED_BYTES = {f"merge.bytes.{ranks}.k{k}": (ranks, k) for ranks, ks in MERGES.items() for k in ks if k > 1}
OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "lamb", "clip")
OPTIMIZED = "2048,2048"
SUBJECTS = ("complex_mul", "complex_matmul", "fft", "fft_cube", "fft_line", "rfft", "softmax", "log_softmax", "softmax_columns", "gelu", "tanh", "sin", "where", "sum_rows", "sum_columns", "max_rows",
            "max_columns", "concat", "gather", "gather_along", "embedding", "embedding_gradient",
            "attention", "attention_gradient", "layer_norm", "layer_norm_gradient", "rms_norm", "conv", "conv_gradient",
            "max_pool", "mean_pool", "cumsum", "cumsum_columns", "top_k", "sort")
CG_SIZES = (8192,)
# Key: the program's arguments. Each request that completes is held back by DELAY us; a unit grows by less than
# OVERLAP_GROWTH of these delays.
OVERLAPS = {"dp": ("dp", "--mesh", "dp=2"), "mp": ("mp", "--mesh", "mp=2"), "sequence": ("sequence", "--mesh", "sp=2")}
DELAY = 1000
OVERLAP_GROWTH = 0.2
HIDDEN = {"hidden.2": 2, "hidden.4": 4}  # ranks
HIDDEN_BATCH = 512
HOP = 25  # us
HEAT = 0.9  # of the speed of plain C and MPI
TRACED = ("512,256", 128)
PLAN_GROWTH = 2  # time a step on the largest mesh, over that on the smallest
IDLE_PERCENT = 1


class Rows:
    """Rows, and the commands of their groups: groups[group][player], None where that needs torch and there is none."""

    def __init__(self):
        self.rows = []
        self.groups = {}
        self.plans = {}

    def add(self, name, group, candidate, command, kind, target, rate=None):
        baseline = next(iter(self.groups[group]))
        self.groups[group][candidate] = command
        self.rows.append(Row(name, group, candidate, baseline, kind, target, rate))

    def group(self, name, baseline, command, rounds, warm, least):
        self.groups[name] = {baseline: command, baseline + "'": command}
        self.plans[name] = Plan(rounds, 3, 0.15, warm, least)

    def names(self):
        return [row.name for row in self.rows]

    def needs_torch(self, names):
        """Whether any of them does; asked of a catalogue without it."""
        return any(None in self.groups[row.group].values() for row in self.rows if row.name in names)


class Catalogue(Rows):
    """All that need no GPU; torch, a python that has it, may be None."""

    def __init__(self, torch):
        super().__init__()
        self.add_matmul()
        self.add_ops()
        for workers in (1, 2):
            self.add_short(workers)
        for (hidden, batch), targets in STEPS.items():
            self.add_step(hidden, batch, targets, torch)
            self.add_step_by_hand(hidden, batch)
        for (hidden, batch) in STEPS:
            self.add_meshes(hidden, batch)
        for ranks in (2, 4):
            self.add_reshards(ranks)
        for ranks, targets in MERGES.items():
            self.add_merges(ranks, targets, torch)
        for hidden, batch in MERGE_COSTS:
            self.add_merge_cost(hidden, batch)
        for optimizer in OPTIMIZERS:
            self.add_optimizer(optimizer, torch)
        for subject in SUBJECTS:
            self.add_subject(subject, torch)
        self.add_block(torch)
        for n in CG_SIZES:
            self.add_cg(n)
        for cores in (2, 1):
            self.add_hop(cores)
        for ranks in (1, 2):
            self.add_trace(ranks)
        for ranks in (1, 2):
            self.add_heat(ranks)

    def add_matmul(self):
        for ranks, mesh, target in ((1, "1", 0.95), (2, "r=2,c=1", 0.95), (4, "r=2,c=2", 0.92)):
            name = f"matmul{ranks}"
            command = program("matmul", "--mesh", mesh)
            self.group(name, "sgemm", program("raw", "sgemm"), 15, 2, 2)
            self.add(name, name, "trama", on_ranks(ranks, command) if ranks > 1 else command, "speed", target)

    def add_ops(self):
        self.group("op", "plain StarPU", program("plain_starpu", "--ops", str(OPS)), 30, 20, 1)
        for mode, kind, target in (("replay", "time", 1.1), ("eager", "above", 5), ("fused", "below", 1)):
            self.add("op_" + mode, "op", mode, program("chain", mode, "--ops", str(OPS)), kind, target)

    def add_short(self, workers):
        """A run of two tiny tasks, so that its time is the cost of submitting, waiting and waking up."""
        name = f"short.{workers}worker" + "s" * (workers > 1)
        self.group(name, "plain StarPU", program("plain_starpu", "--ops", str(SHORT)), 30, 20, 1)
        chain = program("chain", "replay", "--ops", str(SHORT))
        self.add(name, name, "replay", ["env", f"TRAMA_WORKERS={workers}", *chain], "time", 1)

    def add_step_by_hand(self, hidden, batch):
        sizes = ["--hidden", hidden, "--batch", str(batch)]
        for key, mesh in BY_HAND.items():
            name = f"step.{hidden.replace(',', 'x')}.by_hand.{key}"
            self.group(name, "by hand", on_ranks(2, program("plain_step", "--mesh", mesh, *sizes)), 30, 20, 1)
            self.add(name, name, "trama", on_ranks(2, program("step", "--mesh", mesh, *sizes)), "time", BY_HAND_TIME)

    def add_step(self, hidden, batch, targets, torch):
        sizes = ["--hidden", hidden, "--batch", str(batch)]
        prefix = "step." + hidden.replace(",", "x") + "."

        def in_torch(mode):
            return torch_program(torch, "torch_step", "--mode", mode, *sizes)

        baselines = {"raw": ("raw BLAS", program("raw", "step", *sizes), "speed", 1, "1"),
                     "torch": ("PyTorch", in_torch("single"), "time", 1, "1"),
                     "ddp": ("DDP", in_torch("ddp"), "time", 2, "dp=2"),
                     "tp": ("TP", in_torch("tp"), "time", 2, "mp=2")}
        for target, (key, (baseline, command, kind, ranks, mesh)) in zip(targets, baselines.items()):
            step = program("step", "--mesh", mesh, *sizes)
            self.group(prefix + key, baseline, command, 30, 20, 1)
            self.add(prefix + key, prefix + key, "trama", on_ranks(ranks, step) if ranks > 1 else step, kind, target)

    def add_meshes(self, hidden, batch):
        sizes = ["--hidden", hidden, "--batch", str(batch)]
        group = "mesh_in_one_rank." + hidden.replace(",", "x")
        self.group(group, "mesh 1", program("step", *sizes), 30, 20, 1)
        for key, (mesh, target) in MESHES.items():
            self.add(f"{group}.{key}", group, key, program("step", "--mesh", mesh, *sizes), "time", target)

    def add_reshards(self, ranks):
        """Against each collective of MPI that does the same; the fastest of them is the bar."""
        for key, layout, ways in (("columns", "S(1)", ("alltoallw", "alltoallv")), ("replicate", "R", ("allgatherv",))):
            for way in ways:
                name = f"reshard{ranks}.{key}.{way}"
                self.group(name, way, on_ranks(ranks, program("raw_reshard", way)), 15, 3, 2)
                self.add(name, name, "trama", on_ranks(ranks, program("reshard", "--mesh", str(ranks), "--to", layout)),
                         "speed", 0.9)

    def add_merges(self, ranks, targets, torch):
        hidden, batch = MERGE_SIZES
        for k, target in targets.items():
            name = f"merge.{ranks}.k{k}.ddp"
            sizes = ["--hidden", hidden, "--batch", str(batch), "--merge", str(k)]
            self.group(name, "DDP", torch_program(torch, "torch_step", "--mode", "ddp", "--ranks", str(ranks), *sizes),
                       30, 20, 1)
            self.add(name, name, "trama", on_ranks(ranks, program("step", "--mesh", f"dp={ranks}", *sizes)), "samples",
                     target, Rate(k * batch, 1e3, "thousand samples/s"))

    def add_merge_cost(self, hidden, batch):
        sizes = ["--hidden", hidden, "--batch", str(batch)]
        name = "merge.cost." + hidden.replace(",", "x")
        self.group(name, "plain micro-step", program("step", "--what", "gradients", *sizes), 30, 20, 1)
        self.add(name, name, "merged", program("step", "--what", "micro", *sizes), "time", MERGE_COST)

    def add_optimizer(self, optimizer, torch):
        name = "optimizer." + optimizer
        arguments = [optimizer, "--hidden", OPTIMIZED]
        self.group(name, "PyTorch", torch_program(torch, "torch_optimizer", *arguments), 30, 20, 1)
        self.add(name, name, "trama", program("optimizer", *arguments), "time", 1)

    def add_subject(self, subject, torch):
        name = "ops." + subject
        self.group(name, "PyTorch", torch_program(torch, "torch_ops", subject), 30, 20, 1)
        self.add(name, name, "trama", program("ops", subject), "time", 1)

    def add_block(self, torch):
        self.group("block", "PyTorch", torch_program(torch, "torch_block"), 15, 2, 1)
        self.add("block", "block", "trama", program("block"), "time", 0.85)
        self.group("block.tp", "TP", torch_program(torch, "torch_block", "--mode", "tp"), 15, 2, 1)
        self.add("block.tp", "block.tp", "trama", on_ranks(2, program("block", "--mesh", "mp=2")), "time", 0.7)

    def add_cg(self, n):
        name, sizes = f"cg.{n}", ["--n", str(n)]
        self.group(name, "MPI and BLAS", on_ranks(2, program("raw_cg", *sizes)), 30, 20, 2)
        self.add(name, name, "trama", on_ranks(2, program("cg", *sizes)), "speed", 0.95)

    def add_hop(self, cores):
        name = f"hop.{cores}core" + "s" * (cores > 1)
        sizes = ["--hops", str(HOPS)]
        self.group(name, "by hand", on_cores(cores, on_ranks(2, program("plain_hop", *sizes))), 30, 20, 1)
        self.add(name, name, "trama", on_cores(cores, on_ranks(2, program("hop", *sizes))), "hop", HOP)

    def add_trace(self, ranks):
        """Traces are written when a program ends, each into a folder that is not kept."""
        hidden, batch = TRACED
        name = f"trace.{ranks}"
        step = program("step", "--mesh", f"dp={ranks}", "--hidden", hidden, "--batch", str(batch))
        step = on_ranks(ranks, step) if ranks > 1 else step
        kept_not = 'export TRAMA_TRACE=$(mktemp -d); trap \'rm -rf "$TRAMA_TRACE"\' EXIT; "$@"'
        self.group(name, "untraced step", step, 30, 20, 1)
        self.add(name, name, "traced", ["bash", "-c", kept_not, "traced", *step], "time", None)

    def add_heat(self, ranks):
        """One worker a rank, against one thread a rank."""
        name = f"heat2d.{ranks}"
        commands = [program("plain_heat2d"), ["env", "TRAMA_WORKERS=1", *program("heat2d", "--mesh", str(ranks))]]
        plain, trama = [on_ranks(ranks, command) if ranks > 1 else command for command in commands]
        self.group(name, "plain MPI", plain, 30, 5, 1)
        self.add(name, name, "trama", trama, "speed", HEAT)

    def names(self):
        return [*super().names(), *("overlap." + key for key in OVERLAPS), *HIDDEN, *MERGED_BYTES,
                *("plan." + key for key in PLANS), "layouts", "idle1", "idle2"]
