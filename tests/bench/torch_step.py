#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job's training step in PyTorch, served to tests/bench/run like the programs in C (common/bench.h).

  --mode single   one process, all cores
  --mode ddp      --ranks processes of one thread, DistributedDataParallel over gloo; the batch is the global one
  --mode tp       --ranks processes of one thread, torch.distributed.tensor.parallel over gloo: layers alternately by
                  column and by row, a last layer whose turn would be column replicated

A unit is an update: of the gradients of --merge micro-steps, of which DDP sums the last one's over the processes.
"""
import argparse
import contextlib
import multiprocessing
import os
import tempfile

import torch
from torch import nn

from served import serve, timed

SAMPLES = 8192


def network(sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def tensor_parallel(net, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    linear = [name for name, module in net.named_children() if isinstance(module, nn.Linear)]
    styles = {}
    for i, name in enumerate(linear):
        if i % 2 == 1:
            styles[name] = RowwiseParallel()
        elif i < len(linear) - 1:
            styles[name] = ColwiseParallel()
    return parallelize_module(net, init_device_mesh("cpu", (ranks,)), styles)


class Training:
    """The next samples of a data set in memory, a step at a time; views of it, nothing is copied."""

    def __init__(self, net, batch, merge):
        generator = torch.Generator().manual_seed(1)
        self.net = net
        self.batch = batch
        self.merge = merge
        self.at = 0
        self.images = torch.randint(0, 256, (SAMPLES, 784), generator=generator).float() / 255
        self.labels = torch.randint(0, 10, (SAMPLES,), generator=generator)
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.unsynced = getattr(net, "no_sync", contextlib.nullcontext)

    def add_gradients(self):
        x = self.images[self.at:self.at + self.batch]
        y = self.labels[self.at:self.at + self.batch]
        self.at = self.at + self.batch if self.at + 2 * self.batch <= len(self.labels) else 0
        loss = self.loss(self.net(x), y)
        (loss if self.merge == 1 else loss / self.merge).backward()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        if self.merge > 1:
            with self.unsynced():
                for _ in range(self.merge - 1):
                    self.add_gradients()
        self.add_gradients()
        self.optimizer.step()

    def run(self, n):
        return timed(self.step, n)


def make_training(args):
    torch.manual_seed(1)
    net = network(args.sizes)
    batch = args.batch
    if args.mode == "ddp":
        net = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
        batch //= args.ranks
    else:
        net = tensor_parallel(net, args.ranks)
    return Training(net, batch, args.merge)


def rank_main(rank, args, make, meeting, pipe):
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=args.ranks)
    work = make(args)
    pipe.send("ready")
    while (n := pipe.recv()) is not None:
        pipe.send(work.run(n))
    dist.destroy_process_group()


class Ranks:
    """The processes of a distributed run, in each of which make(args) has the work; they sleep until told to run."""

    def __init__(self, args, make):
        context = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory()
        self.pipes, self.processes = [], []
        for rank in range(args.ranks):
            ours, theirs = context.Pipe()
            process = context.Process(target=rank_main, args=(rank, args, make, self.folder.name + "/meeting", theirs),
                                      daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        for pipe in self.pipes:
            pipe.recv()

    def run(self, n):
        for pipe in self.pipes:
            pipe.send(n)
        times = [pipe.recv() for pipe in self.pipes]
        return min(start for start, _ in times), max(end for _, end in times)

    def end(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["single", "ddp", "tp"], default="single")
    parser.add_argument("--hidden", default="512,256")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--merge", type=int, default=1)
    args = parser.parse_args()
    if args.ranks < 1 or args.merge < 1:
        parser.error("--ranks and --merge take a number, at least 1")
    args.sizes = [784] + [int(width) for width in args.hidden.split(",")] + [10]

    if args.mode == "single":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        torch.manual_seed(1)
        worker = Training(network(args.sizes), args.batch, args.merge)
    else:
        os.environ["OMP_NUM_THREADS"] = "1"
        worker = Ranks(args, make_training)
    serve(worker.run)
    if args.mode != "single":
        worker.end()


if __name__ == "__main__":
    main()
