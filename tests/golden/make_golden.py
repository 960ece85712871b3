#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden cases beside this script: models that read vectors or types of edges, in float64, by PyTorch's automatic
differentiation. README.md has their definitions. Needs torch and NumPy; the cases are committed, and tests need neither."""
import json
import math
import pathlib
import sys

try:
    import numpy
    import torch
except ImportError as e:
    sys.exit(f"make_golden: {e}; nothing was written")

VERTICES, FEATURES, CLASSES, EDGE_FEATURES, RELATIONS = 29, 7, 4, 3, 3
EPS, SLOPE, NORM_EPSILON = 0.25, 0.2, 1e-5


def graph(kind, typed, random):
    """(u, v) and a type each: the last vertex has no edges, vertex 0 no in-edges; of a skewed graph, a few vertices have most."""
    found = {}
    for _ in range(110):
        u, v = (int((VERTICES - 1) * x ** (3 if kind == "skewed" else 1)) for x in random.random(2))
        relation = int(random.integers(RELATIONS)) if typed else 0
        if u != v and v != 0:
            found[u, v, relation] = None
    edges = numpy.array(list(found), dtype=numpy.int64)
    return edges[random.permutation(len(edges))]


def softmax(scores, targets):
    """Over the in-edges of a vertex, by head."""
    weights = torch.exp(scores - scores.max())
    return weights / rows_of(weights, targets)[targets]


def rows_of(on_edges, targets):
    """Sums over the in-edges of each vertex."""
    return torch.zeros(VERTICES, *on_edges.shape[1:], dtype=on_edges.dtype).index_add(0, targets, on_edges)


def mean_of(on_edges, targets):
    degrees = rows_of(torch.ones(len(targets), 1, dtype=on_edges.dtype), targets)
    return rows_of(on_edges, targets) / degrees.clamp(min=1)


def joined(z, last):
    """Heads side by side, in the last layer their mean."""
    return z.mean(1) if last else z.flatten(1)


class Case:
    def __init__(self, model, kind, seed):
        self.model, self.kind = model, kind
        self.typed = model in ("rgcn", "rgat")
        self.random = numpy.random.default_rng(seed)
        self.weights, self.hyper = {}, {}
        edges = graph(kind, self.typed, self.random)
        self.arrays = {"edges": edges[:, :2], "x": self.random.normal(size=(VERTICES, FEATURES))}
        if self.typed:
            self.arrays["edge_type"] = edges[:, 2]
        else:
            self.arrays["edge_features"] = self.random.normal(size=(len(edges), EDGE_FEATURES))
        self.arrays["labels"] = self.random.integers(CLASSES, size=VERTICES)
        self.arrays["mask"] = (self.random.random(VERTICES) < 0.6).astype(numpy.uint8)
        self.u, self.v, self.relation = (torch.from_numpy(edges[:, k].copy()) for k in range(3))
        self.x = torch.from_numpy(self.arrays["x"])
        self.e = torch.from_numpy(self.arrays["edge_features"]) if not self.typed else None
        self.dims = [FEATURES, {"gatv2": 3, "transformer": 3, "rgat": 3}.get(model, 6), CLASSES]

    def weight(self, name, *shape):
        if name not in self.weights:
            values = self.random.normal(size=shape) / math.sqrt(shape[0] if len(shape) > 1 else 2)
            self.weights[name] = torch.from_numpy(values).requires_grad_()
        return self.weights[name]

    def mlp(self, z, names, widths):
        """relu(z Wa + ba) Wb + bb; several z have a block of Wa each."""
        a, b, ba, bb = names
        hidden = sum(x @ self.weight(w, x.shape[1], widths[0]) for x, w in zip(z, a)) + self.weight(ba, widths[0])
        return torch.relu(hidden) @ self.weight(b, *widths) + self.weight(bb, widths[1])

    def gine(self):
        self.hyper["eps"] = EPS
        h = self.x
        for k, (a, b) in enumerate(zip(self.dims, self.dims[1:])):
            messages = torch.relu(h[self.u] + self.e @ self.weight(f"We{k}", EDGE_FEATURES, a) + self.weight(f"be{k}", a))
            z = (1 + EPS) * h + rows_of(messages, self.v)
            h = self.mlp([z], ([f"Wa{k}"], f"Wb{k}", f"ba{k}", f"bb{k}"), (b, b))
            h = torch.relu(h) if k == 0 else h
        return h

    def gatv2(self):
        self.hyper["heads"] = heads = 2
        loops = torch.arange(VERTICES)
        u, v = torch.cat([self.u, loops]), torch.cat([self.v, loops])
        e = torch.cat([self.e, torch.zeros(VERTICES, EDGE_FEATURES, dtype=torch.float64)])
        h = self.x
        for k, d in enumerate(self.dims[1:]):
            a, w = h.shape[1], heads * d
            left = (h @ self.weight(f"Wl{k}", a, w)).view(-1, heads, d)
            right = (h @ self.weight(f"Wr{k}", a, w) + self.weight(f"br{k}", w)).view(-1, heads, d)
            on_edges = (e @ self.weight(f"We{k}", EDGE_FEATURES, w)).view(-1, heads, d)
            inner = torch.nn.functional.leaky_relu(left[u] + right[v] + on_edges, SLOPE)
            scores = (inner * self.weight(f"att{k}", w).view(heads, d)).sum(2)
            z = rows_of(softmax(scores, v)[:, :, None] * left[u], v)
            h = joined(z, k == 1) + self.weight(f"b{k}", d if k == 1 else w)
            h = torch.nn.functional.elu(h) if k == 0 else h
        return h

    def transformer(self):
        self.hyper["heads"] = heads = 2
        h = self.x
        for k, d in enumerate(self.dims[1:]):
            a, w = h.shape[1], heads * d
            query = (h @ self.weight(f"Wq{k}", a, w) + self.weight(f"bq{k}", w)).view(-1, heads, d)
            key, value = ((h @ self.weight(f"{name}{k}", a, w)).view(-1, heads, d) for name in ("Wk", "Wv"))
            on_edges = (self.e @ self.weight(f"We{k}", EDGE_FEATURES, w)).view(-1, heads, d)
            scores = (query[self.v] * (key[self.u] + on_edges)).sum(2) / math.sqrt(d)
            z = joined(rows_of(softmax(scores, self.v)[:, :, None] * (value[self.u] + on_edges), self.v), k == 1)
            h = z + h @ self.weight(f"Ws{k}", a, z.shape[1]) + self.weight(f"bs{k}", z.shape[1])
            h = torch.relu(h) if k == 0 else h
        return h

    def norm(self, z, name):
        return torch.nn.functional.layer_norm(z, z.shape[1:], self.weight(f"g{name}", z.shape[1]), self.weight(f"c{name}", z.shape[1]),
                                              NORM_EPSILON)

    def meshgraphnet(self):
        self.hyper["L"] = 2
        w = self.dims[1]
        h = self.x @ self.weight("Wx", FEATURES, w) + self.weight("bx", w)
        e = self.e @ self.weight("We", EDGE_FEATURES, w) + self.weight("be", w)
        for k in range(2):
            of_edges = ([f"Wee{k}", f"Weu{k}", f"Wev{k}"], f"Web{k}", f"bea{k}", f"beb{k}")
            e = e + self.norm(self.mlp([e, h[self.u], h[self.v]], of_edges, (w, w)), f"e{k}")
            of_vertices = ([f"Wvh{k}", f"Wvs{k}"], f"Wvb{k}", f"bva{k}", f"bvb{k}")
            h = h + self.norm(self.mlp([h, rows_of(e, self.v)], of_vertices, (w, w)), f"v{k}")
        return h @ self.weight("Wout", w, CLASSES) + self.weight("bout", CLASSES)

    def relations(self):
        return ((r, self.u[self.relation == r], self.v[self.relation == r]) for r in range(RELATIONS))

    def rgcn(self):
        self.hyper["bases"] = bases = 2
        h = self.x
        for k, (a, b) in enumerate(zip(self.dims, self.dims[1:])):
            basis, shares = self.weight(f"V{k}", bases * a, b).view(bases, a, b), self.weight(f"c{k}", RELATIONS, bases)
            z = h @ self.weight(f"Ws{k}", a, b) + self.weight(f"b{k}", b)
            for r, u, v in self.relations():
                z = z + mean_of(h[u], v) @ torch.einsum("b,bij->ij", shares[r], basis)
            h = torch.relu(z) if k == 0 else z
        return h

    def rgat(self):
        self.hyper["heads"] = heads = 2
        h = self.x
        for k, d in enumerate(self.dims[1:]):
            a, w, last = h.shape[1], heads * d, k == 1
            out = d if last else w
            total = h @ self.weight(f"Ws{k}", a, out) + self.weight(f"b{k}", out)
            for r, u, v in self.relations():
                y = (h @ self.weight(f"W{k}_{r}", a, w)).view(-1, heads, d)
                source, target = ((y * self.weight(f"{name}{k}_{r}", w).view(heads, d)).sum(2) for name in ("asrc", "adst"))
                alpha = softmax(torch.nn.functional.leaky_relu(source[u] + target[v], SLOPE), v)
                total = total + joined(rows_of(alpha[:, :, None] * y[u], v), last)
            h = torch.nn.functional.elu(total) if not last else total
        return h

    def write(self, folder):
        logits = getattr(self, self.model)()
        counted = torch.from_numpy(self.arrays["mask"]) == 1
        loss = torch.nn.functional.cross_entropy(logits[counted], torch.from_numpy(self.arrays["labels"])[counted])
        loss.backward()
        self.arrays |= {"logits": logits.detach().numpy(), "loss": loss.detach().numpy()}
        for name, w in self.weights.items():
            self.arrays |= {f"param_{name}": w.detach().numpy(), f"grad_{name}": w.grad.numpy()}
        folder.mkdir(exist_ok=True)
        about = {"name": folder.name, "model": self.model, "vertices": VERTICES, "dims": self.dims, "hyper": self.hyper,
                 "loss": "cross_entropy", "weighted": False, "graph": self.kind, "params": list(self.weights)}
        (folder / "case.json").write_text(json.dumps(about, indent=1) + "\n")
        numpy.savez_compressed(folder / "arrays.npz", **self.arrays)


def main():
    here = pathlib.Path(__file__).resolve().parent
    for seed, model in enumerate(("gine", "gatv2", "transformer", "meshgraphnet", "rgcn", "rgat")):
        for kind in ("directed", "skewed"):
            Case(model, kind, [seed, kind == "skewed"]).write(here / f"{model}-{kind}")


if __name__ == "__main__":
    main()
