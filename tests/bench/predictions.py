# SPDX-License-Identifier: Apache-2.0
"""Predicted times of the examples beside measured ones, and layouts that are chosen by them. A round calibrates the
machine anew, then predicts and runs each job."""
import os
import re
import statistics
import tempfile
from collections import namedtuple

import pairs
from rows import on_ranks, program

ROUNDS = 3
WITHIN = 0.15  # of the measured time
SLOWER = 1.03  # of the time of the fastest layouts by hand, at most

# arguments: without mesh; meshes: by ranks; seconds: from the program's output; auto: whether it has --auto
Job = namedtuple("Job", "arguments meshes seconds auto")


def number_in(text, pattern):
    """The last one in a program's output."""
    found = re.findall(pattern, text)
    if not found:
        raise pairs.Failure("its output has no time: " + pairs.last_words(text))
    return float(found[-1])


def rate(unit, amount):
    """Seconds of an amount, by a line that says how many a second."""
    return lambda text: amount / number_in(text, rf"([0-9.e+]+) {unit}")


NETWORK = {1: ["1"], 2: ["dp=2", "mp=2"], 4: ["dp=4", "mp=4", "dp=2,mp=2"]}
ROWS = {1: ["1"], 2: ["2"], 4: ["4"]}


def mlp(hidden, batch, steps):
    return Job(["fashion_mnist", "--hidden", hidden, "--batch", str(batch), "--steps", str(steps)],
               NETWORK, rate("samples/s", batch), True)


def transformer(features, length, steps):
    return Job(["transformer", "--features", str(features), "--length", str(length), "--steps", str(steps)],
               NETWORK, rate("characters/s", 8 * length), True)


def cg(n):
    """As many iterations as are asked for, since no residual is that small."""
    return Job(["cg", "-n", str(n), "--tolerance", "1e-150", "--most", "300"], ROWS,
               lambda text: 1e-3 * number_in(text, r"([0-9.]+) ms an iteration"), True)


def heat2d(n, steps):
    return Job(["heat2d", "-n", str(n), "--steps", str(steps)], ROWS,
               rate("million point updates", 1e-6 * (n - 2) ** 2), False)


JOBS = {"mlp.512x256.b32": mlp("512,256", 32, 600), "mlp.512x256.b128": mlp("512,256", 128, 400),
        "mlp.1024x1024": mlp("1024,1024", 128, 120), "mlp.2048x2048": mlp("2048,2048", 128, 60),
        "transformer.128": transformer(128, 64, 150), "transformer.256": transformer(256, 128, 40),
        "cg.1024": cg(1024), "cg.4096": cg(4096), "heat2d.257": heat2d(257, 8000), "heat2d.1025": heat2d(1025, 1500)}


def predicted(ranks, job, mesh):
    return f"predicted.{ranks}.{job}" + (f".{mesh}" if len(JOBS[job].meshes[ranks]) > 1 else "")


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

    def run(self, name, *arguments):
        """cg says with status 1 that no residual was that small."""
        command = program(name, *arguments, folder="examples")
        return pairs.output_of(on_ranks(self.ranks, command) if self.ranks > 1 else command, self.environment,
                               (0, 1) if name == "cg" else (0,))

    def calibrate(self):
        self.run("trama", "calibrate", "--output", self.file)

    def predict(self, job, mesh):
        text = self.run(*job.arguments, "--mesh", mesh, "--rehearse", self.file)
        return 1e-3 * number_in(text, r"(?m)^time of a run: ([0-9.e-]+) ms")

    def measure(self, job, mesh):
        return job.seconds(self.run(*job.arguments, "--mesh", mesh))

    def measure_chosen(self, job):
        return job.seconds(self.run(*job.arguments, "--auto", self.file))


class Times:
    """Seconds of each round: predicted, measured twice and as chosen, by mesh."""

    def __init__(self, meshes):
        self.predicted, self.measured, self.again = ({mesh: [] for mesh in meshes} for _ in range(3))
        self.chosen = []
        self.failure = None

    def fastest(self):
        return min(self.measured, key=lambda mesh: statistics.median(self.measured[mesh]))

    def ratio(self, of, to):
        """Median and interval over the rounds, and the medians."""
        return (*pairs.median_and_interval([[a / b for a, b in zip(of, to)]]), statistics.median(of), statistics.median(to))


def play_job(machine, job, times, is_chosen):
    for mesh in job.meshes[machine.ranks]:
        times.measured[mesh].append(machine.measure(job, mesh))
        times.predicted[mesh].append(machine.predict(job, mesh))
        times.again[mesh].append(machine.measure(job, mesh))
    if is_chosen:
        times.chosen.append(machine.measure_chosen(job))


def play_round(machine, jobs, times, wanted):
    """A job that fails takes part in no later round."""
    try:
        machine.calibrate()
    except pairs.Failure as failure:
        for t in times.values():
            t.failure = t.failure or f"calibration: {failure}"
    for name, job in jobs.items():
        if times[name].failure:
            continue
        try:
            play_job(machine, job, times[name], chosen(machine.ranks, name) in wanted)
        except pairs.Failure as failure:
            times[name].failure = str(failure)


def figures(ranks, jobs, times, wanted):
    """Of each row: name, unit, value with interval and both times, those of the noise, bounds."""
    for name, job in jobs.items():
        t = times[name]
        for mesh in [] if t.failure else job.meshes[ranks]:
            if predicted(ranks, name, mesh) in wanted:
                yield (predicted(ranks, name, mesh), "of the measured time", t.ratio(t.predicted[mesh], t.measured[mesh]),
                       t.ratio(t.again[mesh], t.measured[mesh]), (1 - WITHIN, 1 + WITHIN))
        if t.chosen and not t.failure:
            best = t.fastest()
            yield (chosen(ranks, name), f"of {best}'s time", t.ratio(t.chosen, t.measured[best]),
                   t.ratio(t.again[best], t.measured[best]), (0, SLOWER))


def measure(ranks, wanted, environment, rounds):
    """Figures of the wanted rows of so many ranks; and by job, why it failed."""
    jobs = {name: job for name, job in JOBS.items() if chosen(ranks, name) in wanted or
            any(predicted(ranks, name, mesh) in wanted for mesh in job.meshes[ranks])}
    times = {name: Times(job.meshes[ranks]) for name, job in jobs.items()}
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(ranks, environment, folder)
        for _ in range(rounds if jobs else 0):
            play_round(machine, jobs, times, wanted)
    return list(figures(ranks, jobs, times, wanted)), {name: t.failure for name, t in times.items() if t.failure}
