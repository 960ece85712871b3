#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden cases in this folder: make_golden.py [FOLDER]. Needs PyTorch; float64 throughout.

A case is a folder with case.json, as in README.md, and values.safetensors, the arrays by name.
"""
import json
import pathlib
import struct
import sys

import numpy as np
import torch

leaky = torch.nn.functional.leaky_relu


def save_safetensors(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        bytes_ = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": {"f": "F64", "i": "I64"}[array.dtype.kind], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def graph_of(kind, rng, n=26):
    """Edges (u, v); vertex n-1 has none, vertex 0 no in-edges. In `skewed`, vertex 1 has most edges."""
    edges = set()
    while len(edges) < 3 * n:
        u, v = rng.integers(0, n - 1), rng.integers(1, n - 1)
        if kind == "skewed" and rng.random() < 0.5:
            v = 1
        elif kind == "skewed" and rng.random() < 0.4:
            u = 1
        if u != v:
            edges.add((int(u), int(v)))
        if kind == "skewed" and len(edges) >= 2 * n:
            break
    return np.array(sorted(edges, key=lambda e: (e[0] * 7 + e[1] * 3) % 31), dtype=np.int64)


class Case:
    """A graph with features, and parameters that are made when they are first asked for."""

    def __init__(self, model, kind, dims, loss, seed, hyper, vectors=0, types=0, repeats=False):
        self.rng = np.random.default_rng(seed)
        self.about = {"name": f"{model}-{kind}" + ("" if vectors or types else "-plain"), "model": model,
                      "dims": dims, "hyper": hyper, "loss": loss, "weighted": False, "graph": kind}
        self.dims, self.hyper, self.loss_name = dims, hyper, loss
        self.edges = graph_of(kind, self.rng)
        if repeats:
            loops = np.array([[2, 2], [5, 5]])
            self.edges = np.concatenate([self.edges, loops, self.edges[3:8], self.edges[3:5]])
        self.n = 26
        self.arrays = {"edges": self.edges, "x": self.rng.normal(size=(self.n, dims[0]))}
        self.x = torch.tensor(self.arrays["x"])
        self.params = {}
        self.vectors = self.types = None
        if vectors:
            self.arrays["edge_features"] = self.rng.normal(size=(len(self.edges), vectors))
            self.vectors = torch.tensor(self.arrays["edge_features"], requires_grad=True)
        if types:
            self.arrays["edge_type"] = self.rng.integers(0, types, len(self.edges))
            self.types = types

    def param(self, name, *shape):
        if name not in self.params:
            self.params[name] = torch.tensor(self.rng.normal(size=shape) * 0.5, requires_grad=True)
        return self.params[name]

    def merged(self, loops=False):
        """Sources, targets and vectors of the distinct edges, and of a loop at each vertex if asked for:
        those that come more than once have the sum of their vectors, an added loop adds 0."""
        edges = self.edges
        if loops:
            edges = np.concatenate([edges, np.stack([np.arange(self.n)] * 2, 1)])
        distinct, of = np.unique(edges, axis=0, return_inverse=True)
        of = torch.tensor(of.reshape(-1)[: len(self.edges)])
        e = None
        if self.vectors is not None:
            e = torch.zeros(len(distinct), self.vectors.shape[1], dtype=torch.float64)
            e = e.index_add(0, of, self.vectors)
        return torch.tensor(distinct[:, 0]), torch.tensor(distinct[:, 1]), e

    def relation(self, r):
        of = self.arrays["edge_type"] == r
        return torch.tensor(self.edges[of, 0]), torch.tensor(self.edges[of, 1])

    def at_targets(self, v, messages):
        return torch.zeros(self.n, *messages.shape[1:], dtype=torch.float64).index_add(0, v, messages)

    def softmax(self, v, scores):
        largest = torch.full((self.n, scores.shape[1]), -1e300, dtype=torch.float64)
        largest = largest.scatter_reduce(0, v[:, None].expand_as(scores), scores.detach(), "amax")
        weights = torch.exp(scores - largest[v])
        return weights / self.at_targets(v, weights)[v]

    def layers(self):
        return [(l, self.dims[l], self.dims[l + 1], l + 2 == len(self.dims)) for l in range(len(self.dims) - 1)]

    def write(self, folder, logits):
        n, classes = logits.shape
        mask = self.rng.random(n) < 0.6
        chosen = torch.tensor(mask)
        if self.loss_name == "bce":
            labels = self.rng.integers(0, 2, (n, classes))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits[chosen], torch.tensor(labels[mask], dtype=torch.float64))
        else:
            labels = self.rng.integers(0, classes, n)
            loss = torch.nn.functional.cross_entropy(logits[chosen], torch.tensor(labels[mask]))
        loss.backward()
        self.arrays |= {"labels": labels, "mask": mask.astype(np.int64), "logits": logits.detach().numpy(),
                        "loss": np.array([loss.item()])}
        for name, p in self.params.items():
            self.arrays |= {"param_" + name: p.detach().numpy(), "grad_" + name: p.grad.numpy()}
        if self.vectors is not None:
            self.arrays["grad_edge_features"] = self.vectors.grad.numpy()
        self.about["params"] = list(self.params)
        to = folder / self.about["name"]
        to.mkdir(parents=True, exist_ok=True)
        save_safetensors(to / "values.safetensors", self.arrays)
        (to / "case.json").write_text(json.dumps(self.about, indent=1) + "\n")


def gine(c):
    u, v, e = c.merged()
    h = c.x
    for l, fan_in, out, last in c.layers():
        m = h[u] if e is None else h[u] + e @ c.param(f"We{l}", e.shape[1], fan_in)
        s = (1 + c.hyper["eps"]) * h + c.at_targets(v, torch.relu(m))
        t = torch.relu(s @ c.param(f"Wa{l}", fan_in, out) + c.param(f"ba{l}", out))
        h = t @ c.param(f"Wb{l}", out, out) + c.param(f"bb{l}", out)
        h = h if last else torch.relu(h)
    return h


def gatv2(c):
    u, v, e = c.merged(loops=True)
    heads, h = c.hyper["heads"], c.x
    for l, fan_in, out, last in c.layers():
        fan_in = h.shape[1]
        x = h @ c.param(f"Wl{l}", fan_in, heads * out)
        s = x[u] + (h @ c.param(f"Wr{l}", fan_in, heads * out))[v]
        if e is not None:
            s = s + e @ c.param(f"We{l}", e.shape[1], heads * out)
        a = c.param(f"a{l}", heads, out)
        alpha = c.softmax(v, (leaky(s, 0.2).view(-1, heads, out) * a).sum(2))
        z = c.at_targets(v, alpha[:, :, None] * x.view(-1, heads, out)[u])
        h = z.mean(1) if last else z.reshape(c.n, heads * out)
        h = h + c.param(f"b{l}", h.shape[1])
        h = h if last else torch.nn.functional.elu(h)
    return h


def transformer(c):
    u, v, e = c.merged()
    heads, h = c.hyper["heads"], c.x
    for l, fan_in, out, last in c.layers():
        fan_in = h.shape[1]
        q = (h @ c.param(f"Wq{l}", fan_in, heads * out) + c.param(f"bq{l}", heads * out)).view(-1, heads, out)[v]
        k = (h @ c.param(f"Wk{l}", fan_in, heads * out)).view(-1, heads, out)[u]
        x = (h @ c.param(f"Wv{l}", fan_in, heads * out) + c.param(f"bv{l}", heads * out)).view(-1, heads, out)[u]
        if e is not None:
            w = (e @ c.param(f"We{l}", e.shape[1], heads * out)).view(-1, heads, out)
            k, x = k + w, x + w
        alpha = c.softmax(v, (q * k).sum(2) / out**0.5)
        z = c.at_targets(v, alpha[:, :, None] * x)
        z = z.mean(1) if last else z.reshape(c.n, heads * out)
        h = z + h @ c.param(f"Wr{l}", fan_in, z.shape[1]) + c.param(f"b{l}", z.shape[1])
        h = h if last else torch.relu(h)
    return h


def meshgraphnet(c):
    u, v, e = c.merged()
    f, width, classes = c.dims

    def mlp(of, number, terms, out=width, norm=True):
        """relu(sum of terms X W, one W for each, + ba) Wb + bb, normalised; terms: (suffix, X, index). The
        matrices of a name are numbered from 0: without edge features the first block has no We."""
        z = c.param(f"{of}ba{number}", width)
        for suffix, x, ends in terms:
            of_name = number - (suffix == "e" and c.vectors is None)
            y = x @ c.param(f"{of}W{suffix}{of_name}", x.shape[1], width)
            z = z + (y if ends is None else y[ends])
        z = torch.relu(z) @ c.param(f"{of}Wb{number}", width, out) + c.param(f"{of}bb{number}", out)
        if not norm:
            return z
        return torch.nn.functional.layer_norm(
            z, [out], c.param(f"{of}gamma{number}", out), c.param(f"{of}beta{number}", out))

    x = mlp("in_", 0, [("a", c.x, None)])
    if e is not None:
        e = mlp("in_edge_", 0, [("a", e, None)])
    for l in range(c.hyper["L"]):
        terms = [("u", x, u), ("v", x, v)]
        if e is None:
            e = mlp("edge_", l, terms)
        else:
            e = e + mlp("edge_", l, [("e", e, None)] + terms)
        x = x + mlp("vertex_", l, [("x", x, None), ("m", c.at_targets(v, e), None)])
    return mlp("out_", 0, [("a", x, None)], classes, norm=False)


def rgcn(c):
    h, bases = c.x, c.hyper["bases"]
    for l, fan_in, out, last in c.layers():
        z = h @ c.param(f"Wself{l}", fan_in, out) + c.param(f"b{l}", out)
        w = torch.einsum("rb,bio->rio", c.param(f"c{l}", c.types, bases), c.param(f"V{l}", bases, fan_in, out))
        for r in range(c.types):
            u, v = c.relation(r)
            degree = c.at_targets(v, torch.ones(len(v), 1, dtype=torch.float64)).clamp(min=1)
            z = z + c.at_targets(v, h[u] / degree[v]) @ w[r]
        h = z if last else torch.relu(z)
    return h


def rgat(c):
    heads, h = c.hyper["heads"], c.x
    for l, fan_in, out, last in c.layers():
        fan_in = h.shape[1]
        w = c.param(f"W{l}", c.types, fan_in, heads * out)
        a_src, a_dst = c.param(f"asrc{l}", c.types, heads, out), c.param(f"adst{l}", c.types, heads, out)
        z = torch.zeros(c.n, heads, out, dtype=torch.float64)
        for r in range(c.types):
            u, v = c.relation(r)
            x = (h @ w[r]).view(-1, heads, out)
            alpha = c.softmax(v, leaky((x * a_src[r]).sum(2)[u] + (x * a_dst[r]).sum(2)[v], 0.2))
            z = z + c.at_targets(v, alpha[:, :, None] * x[u])
        z = z.mean(1) if last else z.reshape(c.n, heads * out)
        h = z + h @ c.param(f"Wself{l}", fan_in, z.shape[1]) + c.param(f"b{l}", z.shape[1])
        h = h if last else torch.nn.functional.elu(h)
    return h


def nnconv(c):
    u, v, e = c.merged()
    h = c.x
    for l, fan_in, out, last in c.layers():
        we, b = c.param(f"We{l}", e.shape[1], fan_in, out), c.param(f"B{l}", fan_in, out)
        theta = (e @ we.view(e.shape[1], -1) + b.view(-1)).view(-1, fan_in, out)
        z = c.at_targets(v, torch.einsum("mi,mio->mo", h[u], theta))
        if c.hyper["mean"]:
            z = z / c.at_targets(v, torch.ones(len(v), 1, dtype=torch.float64)).clamp(min=1)
        z = z + h @ c.param(f"Wr{l}", fan_in, out) + c.param(f"b{l}", out)
        h = z if last else torch.relu(z)
    return h


def cases():
    yield rgcn, Case("rgcn", "directed", [6, 5, 4], "cross_entropy", 11, {"bases": 2}, types=3)
    yield rgcn, Case("rgcn", "skewed", [6, 5, 3], "bce", 12, {"bases": 3}, types=4)
    yield rgat, Case("rgat", "directed", [6, 5, 4], "cross_entropy", 13, {"heads": 2}, types=3)
    yield rgat, Case("rgat", "skewed", [6, 4, 3], "bce", 14, {"heads": 3}, types=4)
    seed = 20
    for model, of in ((gine, {"eps": 0.25}), (gatv2, {"heads": 2}), (transformer, {"heads": 2}),
                      (meshgraphnet, {"L": 2})):
        name = model.__name__
        yield model, Case(name, "directed", [6, 5, 4], "cross_entropy", seed, of, vectors=3)
        yield model, Case(name, "skewed", [6, 4, 3], "bce", seed + 1, of, vectors=2, repeats=True)
        yield model, Case(name, "directed", [6, 5, 4], "cross_entropy", seed + 2, of)
        seed += 3
    yield nnconv, Case("nnconv", "directed", [6, 5, 4], "cross_entropy", 40, {"mean": False}, vectors=3)
    yield nnconv, Case("nnconv", "skewed", [6, 4, 3], "bce", 41, {"mean": True}, vectors=2, repeats=True)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for model, case in cases():
        case.write(folder / "layers" if model is nnconv else folder, model(case))  # no model of train


main()
