#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job's training step in PyTorch, served to tests/bench/run like the programs in C (common/bench.h).

  --mode single   one process, all cores
  --mode ddp      two processes of one thread, DistributedDataParallel over gloo; the batch is the global one
  --mode tp       two processes of one thread, torch.distributed.tensor.parallel over gloo: layers alternately by column
                  and by row, a last layer whose turn would be column replicated
"""
import argparse
import multiprocessing
import os
import tempfile

import torch
from torch import nn

from served import serve, timed

RANKS = 2
SAMPLES = 8192


def network(sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers.append(nn.Linear(sizes[i], sizes[i + 1]))
        if i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def tensor_parallel(net):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    linear = [name for name, module in net.named_children() if isinstance(module, nn.Linear)]
    styles = {}
    for i, name in enumerate(linear):
        if i % 2 == 1:
            styles[name] = RowwiseParallel()
        elif i < len(linear) - 1:
            styles[name] = ColwiseParallel()
    return parallelize_module(net, init_device_mesh("cpu", (RANKS,)), styles)


class Training:
    """The next samples of a data set in memory, a step at a time; views of it, nothing is copied."""

    def __init__(self, net, batch, samples):
        generator = torch.Generator().manual_seed(1)
        self.net = net
        self.batch = batch
        self.at = 0
        self.images = torch.randint(0, 256, (samples, 784), generator=generator).float() / 255
        self.labels = torch.randint(0, 10, (samples,), generator=generator)
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(self):
        x = self.images[self.at:self.at + self.batch]
        y = self.labels[self.at:self.at + self.batch]
        self.at = self.at + self.batch if self.at + 2 * self.batch <= len(self.labels) else 0
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.net(x), y).backward()
        self.optimizer.step()

    def run(self, n):
        return timed(self.step, n)


def rank_main(rank, args, meeting, pipe):
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=RANKS)
    torch.manual_seed(1)
    net = network(args.sizes)
    batch = args.batch
    if args.mode == "ddp":
        net = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
        batch //= RANKS
    else:
        net = tensor_parallel(net)
    training = Training(net, batch, SAMPLES)
    pipe.send("ready")
    while (n := pipe.recv()) is not None:
        pipe.send(training.run(n))
    dist.destroy_process_group()


class Ranks:
    """The processes of a distributed run; each sleeps on its pipe until it is told to run."""

    def __init__(self, args):
        context = multiprocessing.get_context("spawn")
        self.folder = tempfile.TemporaryDirectory()
        self.pipes, self.processes = [], []
        for rank in range(RANKS):
            ours, theirs = context.Pipe()
            process = context.Process(target=rank_main, args=(rank, args, self.folder.name + "/meeting", theirs),
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
    args = parser.parse_args()
    args.sizes = [784] + [int(width) for width in args.hidden.split(",")] + [10]

    if args.mode == "single":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        torch.manual_seed(1)
        worker = Training(network(args.sizes), args.batch, SAMPLES)
    else:
        os.environ["OMP_NUM_THREADS"] = "1"
        worker = Ranks(args)
    serve(worker.run)
    if args.mode != "single":
        worker.end()


if __name__ == "__main__":
    main()
