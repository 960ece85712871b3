#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a data directory with the R-MAT graph of support/graphs.hpp: the same edges, from the same random numbers.

2^scale vertices; of the generated edges each one is kept once, ordered by target and then by source. Features and labels are those of
support/rmat_dataset.hpp; edges have vectors and types if asked for. A share of the vertices, drawn at random, is for training; the others alternate between validation and
testing. The directory appears under its name when it is complete; exit code 1 with one line if it is there already."""
import argparse
import pathlib
import shutil
import sys

try:
    import numpy
except ImportError:
    print("make_rmat: NumPy is not installed (no module numpy); nothing was written", file=sys.stderr)
    sys.exit(1)

CHUNK = 1 << 20
TRAIN, VALIDATION, TEST = 1, 2, 3


def mixed_bits(z):
    """The SplitMix64 step, as in base/random.hpp."""
    z = z + numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


def word(seed):
    """random_key{.seed = seed}.word(), an array of one element so that products wrap silently."""
    return mixed_bits(mixed_bits(mixed_bits(numpy.array([seed], dtype=numpy.uint64))))


def random_bits(key, row, col):
    return mixed_bits(mixed_bits(key ^ row) ^ col)


def random_uniform(key, row, col):
    return (random_bits(key, row, col) >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53


def constant(value):
    return numpy.array([value], dtype=numpy.uint64)


def renamed(v, scale):
    """A permutation of 0 ... 2^scale - 1."""
    mask = constant((1 << scale) - 1)
    for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        v = (v * constant(odd) + constant(odd >> 32)) & mask
        v = v ^ (v >> constant((scale + 1) // 2))
    return v


def chunks(count):
    for begin in range(0, count, CHUNK):
        yield begin, min(begin + CHUNK, count)


def distinct(keys):
    keys.sort()
    return keys[numpy.concatenate(([True], keys[1:] != keys[:-1]))]


def make_edges(scale, edges_per_vertex, seed, undirected=False):
    """int64 [E, 2], source and target, of the distinct edges; `undirected`: and of those the other way, without loops."""
    count = edges_per_vertex << scale
    keys = numpy.empty(count, dtype=numpy.uint64)
    key = word(seed)
    for begin, end in chunks(count):
        edge = numpy.arange(begin, end, dtype=numpy.uint64)
        target = numpy.zeros(end - begin, dtype=numpy.uint64)
        source = numpy.zeros_like(target)
        for level in range(scale):
            u = random_uniform(key, edge, constant(level))
            target = 2 * target + (u >= 0.76)
            source = 2 * source + (((u >= 0.57) & (u < 0.76)) | (u >= 0.95))
        keys[begin:end] = (renamed(target, scale) << numpy.uint64(scale)) | renamed(source, scale)
    if undirected:
        target, source = keys >> numpy.uint64(scale), keys & constant((1 << scale) - 1)
        keys = numpy.concatenate([keys, source << numpy.uint64(scale) | target])[numpy.tile(source != target, 2)]
    keys = distinct(keys)
    edges = numpy.empty((len(keys), 2), dtype=numpy.int64)
    edges[:, 0] = keys & constant((1 << scale) - 1)
    edges[:, 1] = keys >> numpy.uint64(scale)
    return edges


def write_features(path, count, features, seed):
    """float32 [count, features], uniform in [0, 1)."""
    x = numpy.lib.format.open_memmap(path, mode="w+", dtype=numpy.float32, shape=(count, features))
    column = numpy.arange(features, dtype=numpy.uint64)
    rows = max(1, CHUNK // features)
    for begin in range(0, count, rows):
        row = numpy.arange(begin, min(begin + rows, count), dtype=numpy.uint64)[:, None]
        x[begin:begin + rows] = random_uniform(constant(seed), row, column)
    x.flush()


def make_split(vertices, share):
    """uint8 [n]: the round(share n) vertices with the smallest random numbers are for training."""
    vertex = numpy.arange(vertices, dtype=numpy.uint64)
    split = numpy.where(vertex % 2 == 0, VALIDATION, TEST).astype(numpy.uint8)
    split[numpy.argsort(random_bits(constant(4), vertex, constant(0)), kind="stable")[:round(share * vertices)]] = TRAIN
    return split


def write(folder, options):
    vertices = 1 << options.scale
    edges = make_edges(options.scale, options.edges_per_vertex, options.seed, options.undirected)
    numpy.save(folder / "edges.npy", edges)
    write_features(folder / "features.npy", vertices, options.features, 2)
    if options.edge_features:
        write_features(folder / "edge_features.npy", len(edges), options.edge_features, 5)
    if options.edge_types:
        types = random_bits(constant(6), numpy.arange(len(edges), dtype=numpy.uint64), constant(0)) % constant(options.edge_types)
        numpy.save(folder / "edge_type.npy", types.astype(numpy.int64))
    labels = random_bits(constant(3), numpy.arange(vertices, dtype=numpy.uint64), constant(0)) % constant(options.classes)
    numpy.save(folder / "labels.npy", labels.astype(numpy.int64))
    split = make_split(vertices, options.train_share)
    numpy.save(folder / "split.npy", split)
    return len(edges), int((split == TRAIN).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edges-per-vertex", type=int, default=16)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--edge-features", type=int, default=0, help="columns of edge_features.npy; 0: none")
    parser.add_argument("--edge-types", type=int, default=0, help="relations of edge_type.npy; 0: none")
    parser.add_argument("--train-share", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--undirected", action="store_true", help="both directions of each edge, and no loops")
    options = parser.parse_args()
    if options.directory.exists():
        print(f"make_rmat: '{options.directory}' is there already; nothing was written", file=sys.stderr)
        sys.exit(1)
    part = options.directory.with_name(options.directory.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    edges, trains = write(part, options)
    part.rename(options.directory)
    print(f"{options.directory}: {1 << options.scale} vertices, {edges} edges, {trains} training vertices")


if __name__ == "__main__":
    main()
