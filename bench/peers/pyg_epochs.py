#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Epochs of PyTorch Geometric, full batch, f32: on graphs with the counts of gpu_epochs, on the same card, or with --data on the CPU.

The graph is a CSR tensor made once and, for GCN, normalised once (the fast way of PyG); a step is forward, loss, backward and
Adam, as gpu_epochs counts it. With --data DIR, a data directory with dense features, epochs of one --model, as epochs.py has them of
partita; GAT, whose layers take no matrix, has pairs of vertices. Exit code 0; 1 where PyG or a device is missing, with the
reason."""
import argparse
import json
import math
import pathlib
import statistics
import sys
import time

# vertices, nonzeros, features, classes, model, hidden, layers: as in gpu_epochs.cpp
CASES = {
    "products_gcn": (2449029, 123_700_000, 100, 47, "gcn", 128, 2),
    "products_sage": (2449029, 123_700_000, 100, 47, "sage", 128, 2),
    "products_gat": (2449029, 123_700_000, 100, 47, "gat", 64, 2),
    "reddit_gat": (232965, 114_800_000, 602, 41, "gat", 64, 2),
    "reddit_gcn_32": (232965, 114_800_000, 602, 41, "gcn", 100, 32),
}
DROPOUT = 0.5
WARM_UP = 3
HEADS = 8
WITH_EDGES = ("gine", "gatv2", "rgcn")  # models that read edge_features.npy or edge_type.npy


def stop(sentence):
    print(f"pyg_epochs: {sentence}", file=sys.stderr)
    sys.exit(1)


try:
    import torch
except ImportError:
    stop("PyTorch is not installed (no module torch); nothing was measured")
try:
    import torch_geometric
    from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINEConv, RGCNConv, SAGEConv
    from torch_geometric.utils import add_self_loops
except ImportError as e:
    stop(f"PyTorch Geometric is not installed or does not load ({e}); nothing was measured")


def ends(count, vertices, rmat):
    """Two tensors of `count` vertices: the endpoints of random edges."""
    if not rmat:
        return [torch.randint(vertices, (count,), device="cuda") for _ in range(2)]
    scale = math.ceil(math.log2(vertices))
    row = torch.zeros(count, dtype=torch.int64, device="cuda")
    col = row.clone()
    for _ in range(scale):
        u = torch.rand(count, device="cuda")
        row = 2 * row + (u >= 0.76)
        col = 2 * col + (((u >= 0.57) & (u < 0.76)) | (u >= 0.95))
    names = torch.randperm(1 << scale, device="cuda")
    return [names[x] * vertices >> scale for x in (row, col)]


def make_keys(vertices, nonzeros, rmat):
    """Sorted row * vertices + column of an undirected graph, without duplicates; as in support/device_graphs.cu."""
    keys = torch.empty(0, dtype=torch.int64, device="cuda")
    for _ in range(10):
        missing = nonzeros - keys.numel()
        if missing <= 0:
            break
        row, col = ends(missing * 5 // 8 + 1, vertices, rmat)
        keys = torch.unique(torch.cat([keys, row * vertices + col, col * vertices + row]))
    return keys


def adjacency(keys, vertices, normalised):
    """A as a CSR tensor; with its diagonal, D^-1/2 (A + I) D^-1/2, for GCN."""
    index = torch.stack([keys // vertices, keys % vertices])
    if normalised:
        index = index[:, index[0] != index[1]]
        index, _ = add_self_loops(index, num_nodes=vertices)
        index = index[:, torch.argsort(index[0] * vertices + index[1])]
    degree = torch.bincount(index[0], minlength=vertices)
    offsets = torch.zeros(vertices + 1, dtype=torch.int64, device=keys.device)
    offsets[1:] = torch.cumsum(degree, 0)
    values = torch.ones(index.shape[1], device=keys.device)
    if normalised:
        scale = degree.float().rsqrt()
        values = scale[index[0]] * scale[index[1]]
    return torch.sparse_csr_tensor(offsets, index[1], values, (vertices, vertices))


class Gat(torch.nn.Module):
    """HEADS heads side by side, one in the last layer; ELU between."""

    def __init__(self, widths, dropout=0.0, loops=True):
        super().__init__()
        options = {"dropout": dropout, "add_self_loops": loops}
        hidden = [GATConv(a, b // HEADS, heads=HEADS, **options) for a, b in zip(widths, widths[1:-1])]
        self.layers = torch.nn.ModuleList([*hidden, GATConv(widths[-2], widths[-1], **options)])
        self.dropout = dropout

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = torch.nn.functional.elu(layer(self.dropped(x), edges))
        return self.layers[-1](self.dropped(x), edges)

    def dropped(self, x):
        return torch.nn.functional.dropout(x, self.dropout, self.training) if self.dropout else x


class WithEdges(torch.nn.Module):
    """Layers that read what is on the edges: `attributes` for all, and types for R-GCN."""

    def __init__(self, model, widths, attributes):
        super().__init__()
        columns = attributes.shape[1] if attributes.dim() == 2 else None

        def make(a, b, heads):
            if model == "gine":
                inner = torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU(), torch.nn.Linear(b, b))
                return GINEConv(inner, train_eps=True, edge_dim=columns)
            if model == "gatv2":
                return GATv2Conv(a, b // heads, heads=heads, edge_dim=columns, fill_value=0.0)
            return RGCNConv(a, b, int(attributes.max()) + 1)

        heads = [HEADS] * (len(widths) - 2) + [1]
        self.layers = torch.nn.ModuleList(make(a, b, h) for a, b, h in zip(widths, widths[1:], heads))
        self.attributes, self.between = attributes, torch.nn.functional.elu if model == "gatv2" else torch.relu

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = self.between(layer(x, edges, self.attributes))
        return self.layers[-1](x, edges, self.attributes)


class Network(torch.nn.Module):
    def __init__(self, model, widths, dropout=DROPOUT):
        super().__init__()
        make = (lambda a, b: GCNConv(a, b, normalize=False)) if model == "gcn" else (lambda a, b: SAGEConv(a, b, aggr="mean"))
        self.layers = torch.nn.ModuleList(make(a, b) for a, b in zip(widths, widths[1:]))
        self.dropout = dropout

    def forward(self, x, a):
        for i, layer in enumerate(self.layers):
            x = layer(torch.nn.functional.dropout(x, self.dropout, self.training) if self.dropout else x, a)
            if i + 1 < len(self.layers):
                x = x.relu()
        return x


def step(network, optimizer, x, a, labels, trains):
    """Forward, loss, backward and Adam; the loss."""
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(network(x, a)[trains], labels[trains])
    loss.backward()
    optimizer.step()
    return loss


def attributes_of(options, edges):
    """Those of the edges, which are distinct and in the order of their keys."""
    import numpy
    name = "edge_type" if options.model == "rgcn" else "edge_features"
    values = torch.from_numpy(numpy.load(options.data / f"{name}.npy"))
    order = torch.argsort(edges[:, 1] * (int(edges.max()) + 1) + edges[:, 0])
    return values.long()[order] if options.model == "rgcn" else values.float()[order]


def measure_directory(options):
    """At most `--epochs` on the data of --data, but within about `--seconds`."""
    import numpy
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    edges, x, labels, split = (torch.from_numpy(numpy.load(options.data / f"{name}.npy")) for name in ("edges", "features", "labels", "split"))
    x, vertices = x.float(), len(labels)
    keys = torch.unique(edges[:, 1] * vertices + edges[:, 0])
    widths = [x.shape[1], *[options.hidden] * (options.layers - 1), int(labels.max()) + 1]
    if options.model in ("gat", *WITH_EDGES):
        graph = torch.stack([keys % vertices, keys // vertices])
        network = WithEdges(options.model, widths, attributes_of(options, edges)) if options.model in WITH_EDGES else Gat(widths, options.dropout)
    else:
        graph, network = adjacency(keys, vertices, options.model == "gcn"), Network(options.model, widths, options.dropout)
    trains = split == 1
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    seconds, begin = [], time.perf_counter()
    while len(seconds) <= 1 or len(seconds) < WARM_UP + options.epochs and time.perf_counter() - begin < options.seconds:
        before = time.perf_counter()
        loss = step(network, optimizer, x, graph, labels, trains).item()
        seconds.append(time.perf_counter() - before)
    timed = seconds[min(WARM_UP, len(seconds) // 2):]
    return {"version": f"PyG {torch_geometric.__version__}, PyTorch {torch.__version__}", "seconds_per_epoch": statistics.median(timed),
            "epochs": len(timed), "last_loss": loss}


def measure(name, options):
    vertices, nonzeros, features, classes, model, hidden, layers = CASES[name]
    vertices, nonzeros = vertices // options.scale_down, nonzeros // options.scale_down
    torch.manual_seed(1)
    print(f"making {name} ...", file=sys.stderr)
    a = adjacency(make_keys(vertices, nonzeros, options.graph == "rmat"), vertices, model in ("gcn", "gat"))
    entries = a.values().numel()
    if model == "gat":  # whose layers take pairs of vertices; the loops are added once
        a = torch.stack([a.col_indices(), torch.repeat_interleave(torch.arange(vertices, device="cuda"), a.crow_indices().diff())])
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    x = torch.rand(vertices, features, device="cuda")
    labels = torch.randint(classes, (vertices,), device="cuda")
    trains = torch.arange(vertices, device="cuda") % 3 == 0
    widths = [features] + [hidden] * (layers - 1) + [classes]
    network = (Gat(widths, DROPOUT, loops=False) if model == "gat" else Network(model, widths)).cuda()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    seconds = []
    for _ in range(WARM_UP + options.epochs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loss = step(network, optimizer, x, a, labels, trains)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return {"case": name, "vertices": vertices, "nonzeros": entries, "epochs": options.epochs,
            "seconds_per_epoch": statistics.median(seconds[WARM_UP:]), "last_loss": loss.item(),
            "peak_bytes": torch.cuda.max_memory_allocated()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--graph", choices=["uniform", "rmat"], default="uniform")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--scale-down", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--data", type=pathlib.Path, metavar="DIR", help="epochs on the CPU, on this graph; prints JSON")
    parser.add_argument("--model", choices=["gcn", "sage", "gat", *WITH_EDGES], default="gcn")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--dropout", type=float, default=0, help="of the input of each layer, with --data; not of models that read edges")
    options = parser.parse_args()
    if options.data:
        print(json.dumps(measure_directory(options)))
        return
    unknown = [name for name in options.cases.split(",") if name not in CASES]
    if unknown:
        stop(f"there is no case '{unknown[0]}'; there are {', '.join(CASES)}")
    if not torch.cuda.is_available():
        stop("PyTorch sees no CUDA device; nothing was measured")
    torch.backends.cuda.matmul.allow_tf32 = False
    results = []
    for name in options.cases.split(","):
        try:
            result = measure(name, options)
        except torch.cuda.OutOfMemoryError:
            result = {"case": name, "error": "out of memory"}
        results.append(result)
        print(f"{name:16} {1e3 * result['seconds_per_epoch']:10.3f} ms" if "error" not in result else f"{name:16} {result['error']}", flush=True)
        if options.json:
            with open(options.json, "w") as f:
                json.dump({"torch": torch.__version__, "graph": options.graph, "cases": results}, f, indent=1)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
