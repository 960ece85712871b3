#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Epochs of mini-batch GraphSAGE in DGL or PyTorch Geometric on a data directory, f32, on the CPU; mini_batch.py runs this.

Mean aggregation, Adam, no dropout. One line of JSON on stdout: the seconds of each epoch after a warm-up epoch, and those of iterating
over the loader alone, without features and training. A process of several (--rank R --processes N --meeting FILE) takes its share of the
roots and of the batch; gradients are averaged by gloo, and a time is that of the slowest. Exit code 1 with one line where a module is
missing."""
import argparse
import json
import os
import pathlib
import sys
import time
import warnings

os.environ["DGLBACKEND"] = "pytorch"  # otherwise DGL writes a file to the home folder


def stop(sentence):
    print(f"mini_batch_peer: {sentence}", file=sys.stderr)
    sys.exit(1)


try:
    import numpy
    import torch
except ImportError as e:
    stop(f"{e}; nothing was measured")


class Graph:
    """A data directory; in-edges of vertex v are sources[offsets[v]:offsets[v + 1]]."""

    def __init__(self, folder):
        edges = numpy.load(folder / "edges.npy", mmap_mode="r")
        target = numpy.ascontiguousarray(edges[:, 1])
        source = numpy.ascontiguousarray(edges[:, 0])
        self.x = torch.from_numpy(numpy.load(folder / "features.npy"))
        self.labels = torch.from_numpy(numpy.load(folder / "labels.npy"))
        self.roots = torch.from_numpy(numpy.flatnonzero(numpy.load(folder / "split.npy") == 1))
        self.vertices = self.x.shape[0]
        if (target[1:] < target[:-1]).any():
            order = numpy.argsort(target, kind="stable")
            target, source = target[order], source[order]
        self.sources = torch.from_numpy(source)
        self.targets = torch.from_numpy(target)
        offsets = numpy.zeros(self.vertices + 1, dtype=numpy.int64)
        numpy.cumsum(numpy.bincount(target, minlength=self.vertices), out=offsets[1:])
        self.offsets = torch.from_numpy(offsets)


def workers_of(count):
    return {"num_workers": count, "persistent_workers": count > 0}


class DglNetwork(torch.nn.Module):
    def __init__(self, widths):
        super().__init__()
        from dgl.nn import SAGEConv
        self.layers = torch.nn.ModuleList(SAGEConv(a, b, "mean") for a, b in zip(widths, widths[1:]))

    def forward(self, x, blocks):
        for i, (layer, block) in enumerate(zip(self.layers, blocks)):
            x = layer(block, x)
            if i + 1 < len(self.layers):
                x = x.relu()
        return x


class Dgl:
    """dgl.dataloading with NeighborSampler."""

    def __init__(self, graph, roots, batch, options):
        import dgl
        self.version = f"DGL {dgl.__version__}"
        warnings.filterwarnings("ignore", message=".*CPU affinity.*")
        g = dgl.graph(("csc", (graph.offsets, graph.sources, torch.empty(0, dtype=torch.int64))), num_nodes=graph.vertices)
        g = g.formats("csc")
        self.graph = graph
        self.loader = dgl.dataloading.DataLoader(g, roots, dgl.dataloading.NeighborSampler(options.fanout), batch_size=batch, shuffle=True,
                                                 **workers_of(options.workers))
        self.sampling_loader = self.loader
        self.network = DglNetwork(options.widths)

    @staticmethod
    def sampled_edges(batch):
        return sum(block.num_edges() for block in batch[2])

    @staticmethod
    def roots(batch):
        return batch[1].numel()

    def output(self, network, batch):
        inputs, roots, blocks = batch
        return network(self.graph.x[inputs], blocks), self.graph.labels[roots]


class GraphBolt:
    """DGL's newer loader, dgl.graphbolt, with its NeighborSampler."""

    def __init__(self, graph, roots, batch, options):
        import dgl
        import dgl.graphbolt as gb
        # The roots are divided among the processes already; PyTorch's loader would divide the batches of GraphBolt once more.
        torch.utils.data.dataloader._get_distributed_settings = lambda: (1, 0)
        self.version = f"DGL {dgl.__version__}, graphbolt"
        g = gb.fused_csc_sampling_graph(graph.offsets, graph.sources)
        items = gb.ItemSet((roots, graph.labels[roots]), names=("seed_nodes", "labels"))
        store = gb.BasicFeatureStore({("node", None, "x"): gb.TorchBasedFeature(graph.x)})

        def loader(features):
            pipe = gb.ItemSampler(items, batch_size=batch, shuffle=True).sample_neighbor(g, options.fanout)
            return gb.DataLoader(pipe.fetch_feature(store, node_feature_keys=features), **workers_of(options.workers))

        self.loader = loader(["x"])
        self.sampling_loader = loader([])
        self.network = DglNetwork(options.widths)

    @staticmethod
    def sampled_edges(batch):
        return sum(part.sampled_csc.indices.numel() for part in batch.sampled_subgraphs)

    @staticmethod
    def roots(batch):
        return batch.labels.numel()

    def output(self, network, batch):
        return network(batch.node_features["x"], batch.blocks), batch.labels


class PygNetwork(torch.nn.Module):
    """Every layer computes only what the next one reads, which is what trim_to_layer does where the sampler counts the vertices of each
    hop. Here the counts come from the order: edges are in the order of their targets, and vertices in that of their discovery."""

    def __init__(self, widths, sparse_tensor):
        super().__init__()
        from torch_geometric.nn import SAGEConv
        self.layers = torch.nn.ModuleList(SAGEConv(a, b, aggr="mean") for a, b in zip(widths, widths[1:]))
        self.sparse_tensor = sparse_tensor

    def forward(self, x, edge_index, roots):
        rows = [roots]
        edges = []
        for _ in self.layers:
            edges.append(int(torch.searchsorted(edge_index[1], rows[-1])))
            rows.append(max(rows[-1], int(edge_index[0, :edges[-1]].max()) + 1) if edges[-1] else rows[-1])
        for i, layer in enumerate(self.layers):
            hop = len(self.layers) - 1 - i
            x = layer((x[:rows[hop + 1]], x[:rows[hop]]), self.operand(edge_index[:, :edges[hop]], rows[hop], rows[hop + 1]))
            if hop:
                x = x.relu()
        return x

    def operand(self, edge_index, rows, cols):
        if not self.sparse_tensor:
            return edge_index
        from torch_sparse import SparseTensor
        return SparseTensor(row=edge_index[1], col=edge_index[0], sparse_sizes=(rows, cols), is_sorted=True, trust_data=True)


class Pyg:
    """torch_geometric.loader.NeighborLoader."""

    def __init__(self, graph, roots, batch, options):
        import torch_geometric
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        warnings.filterwarnings("ignore", message=".*pyg-lib.*")
        if torch_geometric.typing.WITH_PYG_LIB:
            import pyg_lib
            sampler = f"pyg-lib {pyg_lib.__version__}"
        else:
            import torch_sparse
            sampler = f"torch-sparse {torch_sparse.__version__}"
        self.version = f"PyTorch Geometric {torch_geometric.__version__}, {sampler}"
        edge_index = torch.stack([graph.sources, graph.targets])

        def loader(**data):
            return NeighborLoader(Data(edge_index=edge_index, num_nodes=graph.vertices, **data), options.fanout, input_nodes=roots,
                                  batch_size=batch, shuffle=True, is_sorted=True, **workers_of(options.workers))

        self.loader = loader(x=graph.x, y=graph.labels)
        self.sampling_loader = loader()
        self.network = PygNetwork(options.widths, options.variant == "sparse")

    @staticmethod
    def sampled_edges(batch):
        return batch.edge_index.shape[1]

    @staticmethod
    def roots(batch):
        return batch.batch_size

    def output(self, network, batch):
        return network(batch.x, batch.edge_index, batch.batch_size), batch.y[:batch.batch_size]


PEERS = {"dgl": Dgl, "graphbolt": GraphBolt, "pyg": Pyg}


class Processes:
    """The processes of this run; alone, nothing is exchanged."""

    def __init__(self, options):
        self.count = options.processes
        if self.count > 1:
            torch.distributed.init_process_group("gloo", init_method=f"file://{options.meeting}", rank=options.rank, world_size=self.count)

    def sum(self, value, operation="SUM"):
        if self.count == 1:
            return value
        value = torch.tensor([value], dtype=torch.float64)
        torch.distributed.all_reduce(value, getattr(torch.distributed.ReduceOp, operation))
        return value.item()

    def seconds(self, work):
        """Seconds of the slowest, from a common beginning, and processor seconds of all, without those of loaders' workers."""
        self.sum(0.0)
        begin, begin_processor = time.perf_counter(), time.process_time()
        work()
        spent, spent_processor = time.perf_counter() - begin, time.process_time() - begin_processor
        return self.sum(spent, "MAX"), self.sum(spent_processor)

    def wrapped(self, network):
        return torch.nn.parallel.DistributedDataParallel(network) if self.count > 1 else network


def measure(options):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    processes = Processes(options)
    graph = Graph(options.directory)
    classes = int(graph.labels.max()) + 1
    options.widths = [graph.x.shape[1]] + [options.hidden] * (len(options.fanout) - 1) + [classes]
    share = len(graph.roots) // processes.count
    roots = graph.roots[torch.randperm(len(graph.roots))][options.rank * share:(options.rank + 1) * share]
    peer = PEERS[options.peer](graph, roots, options.batch // processes.count, options)
    network = processes.wrapped(peer.network)
    optimizer = torch.optim.Adam(network.parameters(), lr=options.lr)
    found = {"edges": 0, "loss": 0.0, "iterations": 0, "roots": 0}

    def epoch():
        losses = []
        for batch in peer.loader:
            optimizer.zero_grad()
            output, labels = peer.output(network, batch)
            loss = torch.nn.functional.cross_entropy(output, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found["loss"] = sum(losses) / len(losses)
        found["iterations"] = len(losses)

    def sampling():
        found["edges"] = found["roots"] = 0
        for batch in peer.sampling_loader:
            found["edges"] += peer.sampled_edges(batch)
            found["roots"] += peer.roots(batch)

    epochs = [processes.seconds(epoch) for _ in range(1 + options.epochs)][1:]
    passes = [processes.seconds(sampling) for _ in range(1 + options.passes)][1:]
    if found["roots"] != share:
        stop(f"{found['roots']} roots were visited instead of {share}")
    return {"version": peer.version, "torch": torch.__version__,
            "epochs": [spent for spent, _ in epochs], "passes": [spent for spent, _ in passes],
            "processor_seconds": None if options.workers else [spent for _, spent in epochs],
            "edges": int(processes.sum(found["edges"])), "roots": int(processes.sum(found["roots"])),
            "iterations": found["iterations"],
            "loss": processes.sum(found["loss"]) / processes.count}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--variant", default="", choices=["", "sparse"], help="for pyg: aggregation by products with SparseTensor")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--meeting", help="a file that is not there yet, the same for all processes")
    parser.add_argument("--fanout", type=lambda text: [int(part) for part in text.split(",")], default=[10, 10])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    try:
        result = measure(options)
    except ImportError as e:
        stop(f"{e}; nothing was measured")
    if options.rank == 0:
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
