# SPDX-License-Identifier: Apache-2.0
"""Programs that work in turns, and what their times say. Knows no row and no target."""
import os
import random
import selectors
import signal
import statistics
import subprocess
import tempfile
import time

SETTLE = 0.06  # s before each turn: OpenBLAS's threads spin for up to 30 ms after a call, Trama's workers for 2
PATIENCE = 120  # s for an answer
RESAMPLES = 2000


class Failure(Exception):
    """A program that cannot go on; its message."""


def last_words(errors):
    """The last line of what a program said on stderr, launcher's epilogue left out."""
    lines = []
    for line in errors.splitlines():
        if line.startswith("-----") and lines:
            break
        if line.strip() and not line.startswith("-----"):
            lines.append(line.strip())
    return lines[-1] if lines else ""


def output_of(command, environment, statuses=(0,)):
    """Of a program that is not served, and ends with one of the statuses."""
    try:
        found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
                               timeout=300, check=False)
    except subprocess.TimeoutExpired:
        raise Failure("it took more than 300 s") from None
    if found.returncode not in statuses:
        raise Failure(last_words(found.stderr) or f"status {found.returncode}")
    return found.stdout


class Player:
    """A program that does n units of work when it is told "run n", answers with the seconds, and sleeps otherwise."""

    def __init__(self, command, environment):
        self.units = 1
        self.errors = tempfile.TemporaryFile()
        self.answers = b""
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            env=environment, start_new_session=True)
        except OSError as error:
            raise Failure(str(error)) from error
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)

    def message(self):
        self.errors.seek(0)
        return last_words(self.errors.read().decode(errors="replace"))

    def fail(self, what):
        self.stop(kill=True)
        raise Failure(self.message() or what)

    def ask(self, command):
        """The number that the program answers."""
        try:
            self.process.stdin.write((command + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            self.fail("ended unasked")
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self.answers:
            if not self.selector.select(max(0, deadline - time.monotonic())):
                self.stop(kill=True)
                raise Failure(f"no answer to '{command}' within {PATIENCE} s {self.message()}".strip())
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                self.process.wait(10)
                self.fail(f"ended with status {self.process.returncode}")
            self.answers += piece
        line, self.answers = self.answers.split(b"\n", 1)
        return float(line)

    def warm_up(self, units, turn, least):
        """So many units first; then finds how many fill a turn, at least `least`."""
        seconds = self.ask(f"run {units}")
        while True:
            each = seconds / units
            if seconds >= turn / 2 or units >= 1 << 20:
                break
            units = max(units + 1, min(4 * units, int(turn / max(each, 1e-9)) + 1))
            seconds = self.ask(f"run {units}")
        self.units = max(least, round(turn / each), 1)

    def turn(self):
        """Seconds a unit."""
        time.sleep(SETTLE)
        return self.ask(f"run {self.units}") / self.units

    def stop(self, kill=False):
        """Ends it in peace where possible; mpirun ends its ranks when it is terminated, not when it is killed."""
        if not kill:
            self.process.stdin.close()
        for patience, number in ((0 if kill else 20, signal.SIGTERM), (5, signal.SIGKILL)):
            try:
                self.process.wait(patience)
                break
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, number)
        self.process.wait()


def busy_cores(seconds):
    """Cores that were busy meanwhile."""
    def busy():
        with open("/proc/stat") as stat:
            fields = [int(field) for field in stat.readline().split()[1:9]]
        return sum(fields) - fields[3] - fields[4]

    before = busy()
    time.sleep(seconds)
    return (busy() - before) / os.sysconf("SC_CLK_TCK") / seconds


class Samples:
    """Seconds a unit of each player, by launch and round: at[launch][player] is a list, one entry a round."""

    def __init__(self):
        self.at = []
        self.others = []  # cores that were busy while all players slept
        self.failed = {}  # player: message

    def of(self, player):
        return [seconds for launch in self.at for seconds in launch[player]]

    def paired(self, player, baseline, how):
        """how(player's seconds, baseline's) for each round, by launch."""
        return [[how(a, b) for a, b in zip(launch[player], launch[baseline])] for launch in self.at]


def start_players(commands, environment, plan, samples):
    """Starts and warms up one after the other; those that fail are noted and left out."""
    players = {}
    for name, command in commands.items():
        if name in samples.failed:
            continue
        try:
            players[name] = Player(command, environment)
            players[name].warm_up(plan.warm, plan.turn, plan.least)
        except Failure as failure:
            samples.failed[name] = str(failure)
            if name in players:
                players.pop(name).stop(kill=True)
    return players


def play_round(players, order, launch, samples):
    for name in order:
        if name not in players:
            continue
        try:
            launch[name].append(players[name].turn())
        except Failure as failure:
            samples.failed[name] = str(failure)
            players.pop(name)


def play(commands, environment, plan):
    """plan.launches times: all programs are started, then take turns for the rounds, forwards and backwards in
    alternation."""
    samples = Samples()
    for index in range(plan.launches):
        players = start_players(commands, environment, plan, samples)
        launch = {name: [] for name in commands}
        samples.at.append(launch)
        try:
            time.sleep(SETTLE)
            samples.others.append(busy_cores(0.3))
            rounds = plan.rounds // plan.launches + (index < plan.rounds % plan.launches)
            for number in range(rounds):
                play_round(players, list(commands)[::-1 if number % 2 else 1], launch, samples)
        finally:
            for player in players.values():
                player.stop()
    return samples


def median_and_interval(launches):
    """The median over all rounds, and its 95% interval by bootstrap: launches are drawn, then rounds within them."""
    launches = [launch for launch in launches if launch]
    chance = random.Random(1)
    medians = sorted(
        statistics.median(value for launch in chance.choices(launches, k=len(launches))
                          for value in chance.choices(launch, k=len(launch))) for _ in range(RESAMPLES))
    middle = statistics.median(value for launch in launches for value in launch)
    return middle, medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]
