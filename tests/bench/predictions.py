# SPDX-License-Identifier: Apache-2.0
"""Predicted times of the examples beside measured ones, and layouts that are chosen by them. A round calibrates the
machine anew, then predicts and runs each job."""
import os
import re
import statistics
import tempfile
from collections import namedtuple

import pairs
from rows import Binaries, on_ranks

ROUNDS = 3
WITHIN = 0.15  # of the measured time
SLOWER = 1.03  # of the time of the fastest layouts by hand, at most

# arguments: without mesh; meshes: by ranks; seconds: of what the program prints; auto: whether it has --auto
Job = namedtuple("Job", "arguments meshes seconds auto")


def rate(unit, amount):
    """Seconds of an amount, of a line that says how many a second."""
    return lambda text: amount / float(re.findall(rf"([0-9.e+]+) {unit}", text)[-1])


def mlp(hidden, batch, steps):
    return Job(["fashion_mnist", "--hidden", hidden, "--batch", str(batch), "--steps", str(steps)],
               {1: ["1"], 2: ["dp=2", "mp=2"], 4: ["dp=4", "mp=4", "dp=2,mp=2"]}, rate("samples/s", batch), True)


def transformer(features, length, steps):
    return Job(["transformer", "--features", str(features), "--length", str(length), "--steps", str(steps)],
               {1: ["1"], 2: ["dp=2", "mp=2"], 4: ["dp=4", "mp=4", "dp=2,mp=2"]}, rate("characters/s", 8 * length), True)


def cg(n):
    """As many iterations as are asked for, since no residual is that small."""
    return Job(["cg", "-n", str(n), "--tolerance", "1e-150", "--most", "300"], {1: ["1"], 2: ["2"], 4: ["4"]},
               lambda text: 1e-3 * float(re.search(r"([0-9.]+) ms an iteration", text).group(1)), True)


def heat2d(n, steps):
    return Job(["heat2d", "-n", str(n), "--steps", str(steps)], {1: ["1"], 2: ["2"], 4: ["4"]},
               rate("million point updates", 1e-6 * (n - 2) ** 2), False)


JOBS = {"mlp.512x256.b32": mlp("512,256", 32, 600), "mlp.512x256.b128": mlp("512,256", 128, 400),
        "mlp.1024x1024": mlp("1024,1024", 128, 120), "mlp.2048x2048": mlp("2048,2048", 128, 60),
        "transformer.128": transformer(128, 64, 150), "transformer.256": transformer(256, 128, 40),
        "cg.1024": cg(1024), "cg.4096": cg(4096), "heat2d.257": heat2d(257, 8000), "heat2d.1025": heat2d(1025, 1500)}


def predicted(ranks, job, mesh):
    return f"predicted.{ranks}.{job}" + (f".{mesh}" if mesh != "1" and job.startswith(("mlp", "tr")) else "")


def chosen(ranks, job):
    return f"auto.{ranks}.{job}"


def names():
    """Rows of predictions; rows of choices, where there is one."""
    return [*(predicted(ranks, name, mesh) for ranks in (1, 2, 4) for name, job in JOBS.items()
              for mesh in job.meshes[ranks]),
            *(chosen(ranks, name) for ranks in (2, 4) for name, job in JOBS.items() if job.auto)]


class Machine:
    """A job's ranks, and the file that calibration writes for them."""

    def __init__(self, ranks, environment, folder):
        self.ranks, self.environment, self.file = ranks, environment, os.path.join(folder, "machine")

    def run(self, *command):
        """cg says with status 1 that no residual was that small."""
        command = [os.path.join(Binaries.folder, "examples", command[0]), *command[1:]]
        return pairs.output_of(on_ranks(self.ranks, command) if self.ranks > 1 else command, self.environment, (0, 1))

    def calibrate(self):
        self.run("trama", "calibrate", "--output", self.file)

    def predict(self, job, mesh):
        text = self.run(*job.arguments, "--mesh", mesh, "--rehearse", self.file)
        return 1e-3 * float(re.search(r"time of a run: ([0-9.e-]+) ms", text).group(1))

    def measure(self, job, mesh):
        return job.seconds(self.run(*job.arguments, "--mesh", mesh))

    def measure_chosen(self, job):
        return job.seconds(self.run(*job.arguments, "--auto", self.file))


class Times:
    """Seconds of each round: predicted, measured twice and as chosen, by mesh."""

    def __init__(self, meshes):
        self.predicted, self.measured, self.again = ({mesh: [] for mesh in meshes} for _ in range(3))
        self.chosen = []

    def fastest(self):
        return min(self.measured, key=lambda mesh: statistics.median(self.measured[mesh]))

    def ratio(self, of, to):
        """Median and interval over the rounds, and the medians."""
        return (*pairs.median_and_interval([[a / b for a, b in zip(of, to)]]), statistics.median(of), statistics.median(to))


def play_round(machine, jobs, times, is_chosen):
    machine.calibrate()
    for name, job in jobs.items():
        t = times[name]
        for mesh in job.meshes[machine.ranks]:
            t.measured[mesh].append(machine.measure(job, mesh))
            t.predicted[mesh].append(machine.predict(job, mesh))
            t.again[mesh].append(machine.measure(job, mesh))
        if is_chosen(name):
            t.chosen.append(machine.measure_chosen(job))


def figures(ranks, jobs, times, wanted):
    """Of each row: name, what it is, value, interval and both times, interval of the noise, bounds."""
    for name, job in jobs.items():
        t = times[name]
        for mesh in job.meshes[ranks]:
            if predicted(ranks, name, mesh) in wanted:
                yield (predicted(ranks, name, mesh), "of the measured time", t.ratio(t.predicted[mesh], t.measured[mesh]),
                       t.ratio(t.again[mesh], t.measured[mesh]), (1 - WITHIN, 1 + WITHIN))
        if t.chosen:
            best = t.fastest()
            yield (chosen(ranks, name), f"of {best}'s time", t.ratio(t.chosen, t.measured[best]),
                   t.ratio(t.again[best], t.measured[best]), (0, SLOWER))


def measure(ranks, wanted, environment, rounds):
    """Figures of the wanted rows of so many ranks; pairs.Failure where a program fails."""
    jobs = {name: job for name, job in JOBS.items() if chosen(ranks, name) in wanted or
            any(predicted(ranks, name, mesh) in wanted for mesh in job.meshes[ranks])}
    times = {name: Times(job.meshes[ranks]) for name, job in jobs.items()}
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(ranks, environment, folder)
        for _ in range(rounds if jobs else 0):
            play_round(machine, jobs, times, lambda name: chosen(ranks, name) in wanted)
    return list(figures(ranks, jobs, times, wanted))
