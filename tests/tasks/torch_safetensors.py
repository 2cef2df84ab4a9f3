# SPDX-License-Identifier: Apache-2.0
"""The side of PyTorch in test_torch_safetensors.c: `write FOLDER` makes a network, a batch and files of all element types
with the package safetensors; `check FOLDER` loads the files that Trama has saved."""
import json
import sys

try:
    import numpy as np
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
except ImportError as e:
    print(e)
    sys.exit(77)

STEPS, RATE = 10, 0.1
TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16, "bool": torch.bool,
         "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
         "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64}


def network():
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))


def loss_of(net, batch):
    return torch.nn.functional.mse_loss(net(batch["x"]), batch["y"])


def numbers(dtype):
    return torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)


def write(folder):
    torch.manual_seed(1)
    net = network()
    batch = {"x": torch.randn(12, 5), "y": torch.randn(12, 3)}
    save_file(net.state_dict(), f"{folder}/first.safetensors", metadata={"format": "pt", "note": "é"})
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses.append(loss_of(net, batch))
        losses[-1].backward()
        optimizer.step()
    losses.append(loss_of(net, batch))
    save_file({**batch, "losses": torch.stack(losses).detach().double()}, f"{folder}/batch.safetensors")
    save_file({**{name: numbers(t) for name, t in TYPES.items()}, "none": torch.zeros(0, 4), "scalar": torch.tensor(2.5),
               "naïve/🌊": torch.ones(1)}, f"{folder}/types.safetensors")


def check(folder):
    batch = load_file(f"{folder}/batch.safetensors")
    net = network()
    net.load_state_dict(load_file(f"{folder}/trained.safetensors"))
    got, wanted = loss_of(net, batch).item(), batch["losses"][-1].item()
    print(f"loss after {STEPS} steps: {got:.9g} with Trama's weights, {wanted:.9g} with PyTorch's, "
          f"relative difference {abs(got - wanted) / wanted:.2g}")
    assert abs(got - wanted) <= 1e-5 * wanted
    half = load_file(f"{folder}/half.safetensors")
    for name, t in net.state_dict().items():
        assert half[name].dtype == torch.bfloat16 and torch.equal(half[name], t.to(torch.bfloat16)), name
    with safe_open(f"{folder}/trained.safetensors", "pt") as f:
        assert f.metadata()["format"] == "pt" and f.metadata()["trama.step"] == "10", f.metadata()
    types = load_file(f"{folder}/types-again.safetensors")
    for name, t in TYPES.items():
        assert types[name].dtype == t and torch.equal(types[name], numbers(t)), name
    assert types["none"].shape == (0, 4) and types["scalar"].shape == () and types["scalar"] == 2.5
    assert types["naïve/🌊"].tolist() == [1.0]
    arrays = np.load(f"{folder}/types.npz")
    assert arrays.zip.testzip() is None
    for name in TYPES:
        if name != "bf16":
            assert np.array_equal(arrays[name], numbers(TYPES[name]).numpy()), name
    assert arrays["scalar"] == 2.5 and arrays["none"].shape == (0, 4) and arrays["naïve/🌊"] == [1]
    with open(f"{folder}/sharded.safetensors.index.json", encoding="utf-8") as f:
        index = json.load(f)["weight_map"]
    assert len(set(index.values())) == 3, index
    for name, file in index.items():
        assert torch.equal(load_file(f"{folder}/{file}")[name], net.state_dict()[name]), name


{"write": write, "check": check}[sys.argv[1]](sys.argv[2])
