#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus that the fuzzers begin with: make_corpus.py FOLDER

Files of the same name are replaced; finds that were added stay."""
import gzip
import io
import json
import pathlib
import struct
import sys
import zipfile


def npy(descr, shape, data, order="False", version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    begin = 10 if version == 1 else 12
    text += b" " * (63 - (begin + len(text)) % 64) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def doubles(*values):
    return struct.pack(f"<{len(values)}d", *values)


def longs(*values):
    return struct.pack(f"<{len(values)}q", *values)


def npz(compression=zipfile.ZIP_STORED, **entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), content, compression)
    return buffer.getvalue()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def blocked(shape, blocks, value_bytes=8, column_bytes=4, entries=None):
    """Blocks of (first row, row after the last, offsets, columns, values)."""
    form = {0: "", 4: "f", 8: "d"}[value_bytes], {4: "i", 8: "q"}[column_bytes]
    contents, table, position = b"", b"", -(-(60 + 40 * len(blocks)) // 4096) * 4096
    for begin, end, offsets, columns, values in blocks:
        content = longs(*offsets) + struct.pack(f"<{len(columns)}{form[1]}", *columns)
        content += bytes(-len(content) % 8)
        if value_bytes:
            content += struct.pack(f"<{len(values)}{form[0]}", *values)
        table += longs(begin, end, len(columns), position) + struct.pack("<II", crc32c(content), 0)
        padding = bytes(-len(content) % 4096)
        contents += content + (padding if (begin, end) != blocks[-1][:2] else b"")
        position += len(content) + len(padding)
    count = sum(len(block[3]) for block in blocks) if entries is None else entries
    head = b"\x93PARTITA" + struct.pack("<IIII", 1, value_bytes, column_bytes, 0)
    head += longs(*shape, count, len(blocks)) + table
    head += struct.pack("<I", crc32c(head))
    return head + bytes(-len(head) % 4096) + contents


def safetensors(tensors, data, metadata=None):
    header = {"__metadata__": metadata} if metadata else {}
    for name, dtype, shape, begin, end in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def truncated(files):
    """Each file, and those of more than 20 bytes also cut off."""
    return {**files, **{f"{name}_cut": data[: 2 * len(data) // 3] for name, data in files.items() if len(data) > 20}}


def text_files():
    banner = "%%MatrixMarket matrix "
    market = {
        "general": banner + "coordinate real general\n% a comment\n\n3 4 3\n1 1 1.5\n3 4 -2e-3\n2 1 +7\n",
        "crlf": banner + "coordinate integer symmetric\r\n3 3 3\r\n1 1 5\r\n2 1 -1\r\n3 2 9223372036854775807\r\n",
        "pattern": banner + "coordinate pattern general\n2 2 2\n1 2\n2 1",
        "skew": banner + "coordinate real skew-symmetric\n3 3 2\n2 1 1e400\n3 1 nan\n",
        "array": banner + "array real general\n2 3\n1\n2\n3\n4\n5\n6\n",
        "array_symmetric": banner + "array double symmetric\n3 3\n1\n2\n3\n4\n5\n1e-400\n",
        "array_skew": banner + "array integer skew-symmetric\n3 3\n1\n-2\n-9223372036854775808\n",
        "short": banner + "coordinate real general\n3 3 4\n1 1 1\n",
        "long": banner + "coordinate real general\n3 3 1\n1 1 1\n2 2 2\n",
        "outside": banner + "coordinate real general\n3 3 1\n4 1 1\n",
        "complex": banner + "coordinate complex general\n1 1 1\n1 1 1 0\n",
        "hermitian": banner + "coordinate real hermitian\n1 1 1\n1 1 1\n",
        "claims": banner + "coordinate pattern general\n9223372036854775807 9223372036854775807 9223372036854775807\n1 1\n",
        "array_claims": banner + "array real general\n3037000499 3037000499\n1\n",
        "empty": "",
        # The largest matrix for its text: a line of two bytes is two entries.
        "dense_lines": banner + "array integer symmetric\n64 64\n" + "1\n" * (64 * 65 // 2),
    }
    edges = {
        "plain": "# a comment\n0\t1\n1 2\n2\t0\n",
        "weights": "5 9 0.5\r\n9 700 1e3\r\n",
        "gaps": "9223372036854775807 0\n1 5000000000\n",
        "loops": "1 1\n1 1\n0 1\n\n   \n3 1",
        "negative": "0 -1\n",
        "infinite": "0 1 inf\n",
        "words": "0 1 2 3\n",
        "return": "0 1\r2 3\n",
        "packed": gzip.compress(b"0 1\n", mtime=0),
        "empty": "",
        "short_lines": "".join(f"{k % 10} {k // 10 % 10}\n" for k in range(400)),
    }
    metis = {
        "plain": "% a comment\n3 2\n2\n1 3\n2\n",
        "weights": "3 2 011 2\n1 2 2 7\n3 4 1 7 3 8\n5 6 2 8\n",
        "sizes": "2 1 100\r\n4 2\r\n5 1\r\n",
        "blank": "4 1\n2\n1\n\n\n",
        "loop": "2 1\n1\n2\n",
        "one_way": "3 1\n2\n\n\n",
        "twice": "2 2\n2 2\n1 1\n",
        "unequal": "2 1 001\n2 7\n1 8\n",
        "claims": "9223372036854775807 9223372036854775807\n\n",
        "many_weights": "1 0 010 1001\n1\n",
        "empty": "",
        "blank_lines": "9000 0\n" + "\n" * 9000,
        "mostly_blank": "9000 1\n2\n1\n" + "\n" * 8998,
    }
    csv = {
        "whole": "1,2\n-3,4\n\n5,6\n",
        "real": "1.5,nan,\r\n,inf,-1e-400\r\n",
        "uneven": "1,2\n3\n",
        "large": "9223372036854775808\n",
        "blanks": " 1 , 2\t\n",
        "empty": "",
        "commas": "," * 4500 + "\n" + "," * 4500 + "\n",
        "columns": "1\n" * 4500,
        "names": "\ufeff,\"x\",label\n0,1,nan\n",
        "wide_and_blank": "," * 4500 + "\n" * 4500,
    }
    parts = {
        "plain": "0\n1\n7\n3\n",
        "blanks": " 0\t\r\n 1",
        "outside": "0\n8\n",
        "negative": "-1\n",
        "words": "0 1\n",
        "empty": "",
        "vector": npy("<i4", "(3,)", struct.pack("<3i", 0, 1, 7)),
        "vector_64": npy("<i8", "(2,)", longs(0, 9)),
        "matrix": npy("<i8", "(1, 2)", longs(0, 1)),
    }
    return {"matrix_market": market, "edge_list": edges, "metis_graph": metis, "csv": csv, "parts": parts}


def array_files():
    arrays = {
        "f8": npy("<f8", "(2, 3)", doubles(1, 2, 3, 4, 5, 6)),
        "fortran": npy("<f8", "(2, 3)", doubles(1, 4, 2, 5, 3, 6), "True"),
        "f4": npy("<f4", "(3,)", struct.pack("<3f", 1, 2, 3), version=2),
        "i8": npy("<i8", "(2, 1)", longs(-1, 1 << 62), version=3),
        "scalar": npy("<f8", "()", doubles(7)),
        "bool": npy("|b1", "(4,)", b"\0\1\1\0"),
        "u1": npy("|u1", "(2, 2)", b"\0\1\2\3"),
        "none": npy("<f8", "(0, 5)", b""),
        "no_columns": npy("|u1", "(9223372036854775807, 0)", b""),
        "big_endian": npy(">f8", "(1,)", doubles(1)),
        "claims": npy("<f8", "(1000000000000,)", doubles(1)),
        "overflow": npy("<f8", "(4294967296, 4294967296)", b""),
        "negative": npy("<f8", "(-1,)", b""),
        "long_header": b"\x93NUMPY\2\0\xff\xff\xff\x7f{",
        "text": npy("<U3", "()", "csr".encode("utf-32-le")),
        "deep": npy("|u1", "(" + "1, " * 64 + ")", b"\1"),
        "empty": b"",
    }
    for name, descr, size in (("i4", "<i4", 4), ("i2", "<i2", 2), ("i1", "|i1", 1), ("u8", "<u8", 8), ("u4", "<u4", 4), ("u2", "<u2", 2)):
        arrays[name] = npy(descr, "(2,)", bytes(range(2 * size)))
    csr = {
        "indptr": npy("<i4", "(3,)", struct.pack("<3i", 0, 1, 3)),
        "indices": npy("<i4", "(3,)", struct.pack("<3i", 1, 0, 2)),
        "shape": npy("<i8", "(2,)", longs(2, 3)),
        "data": npy("<f8", "(3,)", doubles(1, 2, 3)),
        "format": npy("|S3", "()", b"csr"),
    }
    coo = {"row": csr["indices"], "col": csr["indices"], "shape": npy("<i8", "(2,)", longs(3, 3)), "data": csr["data"]}
    bomb = npy("|u1", "(4194304,)", bytes(1 << 22))
    archives = {
        "csr": npz(**csr),
        "packed": npz(zipfile.ZIP_DEFLATED, **csr),
        "csc": npz(**{**csr, "format": npy("|S3", "()", b"csc"), "shape": npy("<i8", "(2,)", longs(3, 2))}),
        "coo": npz(**coo, format=npy("|S3", "()", b"coo")),
        "old_format": npz(**{**csr, "format": npy("<U3", "()", "csr".encode("utf-32-le"))}),
        "bsr": npz(**{**csr, "format": npy("|S3", "()", b"bsr")}),
        "bool": npz(**{**csr, "data": npy("|b1", "(3,)", b"\1\1\0")}),
        "outside": npz(**{**csr, "indices": npy("<i4", "(3,)", struct.pack("<3i", 1, 0, 3))}),
        "decreasing": npz(**{**csr, "indptr": npy("<i4", "(3,)", struct.pack("<3i", 0, 4, 3))}),
        "no_offsets": npz(**{**csr, "indptr": npy("<i4", "(0,)", b"")}),
        "negative": npz(**{**csr, "shape": npy("<i8", "(2,)", longs(-1, 3))}),
        "no_data": npz(**{name: content for name, content in csr.items() if name != "data"}),
        "bomb": npz(zipfile.ZIP_DEFLATED, **{**csr, "data": bomb}),
        "empty": b"",
    }
    return {"npy": truncated(arrays), "npy_file": truncated(arrays), "npz": truncated(archives)}


def checked_files():
    two = [(0, 2, (0, 2, 3), (0, 2, 1), (1, 2, 3)), (2, 3, (0, 1), (2,), (4,))]
    blocks = {
        "two": blocked((3, 3), two),
        "one": blocked((3, 3), [(0, 3, (0, 1, 1, 2), (2, 0), (1, 2))], 4, 8),
        "pattern": blocked((2, 2), [(0, 2, (0, 1, 2), (1, 0), ())], 0),
        "no_rows": blocked((0, 4), []),
        "decreasing": blocked((2, 2), [(0, 2, (0, 3, 2), (1, 0), (1, 1))]),
        "outside": blocked((1, 2), [(0, 1, (0, 1), (2,), (1,))]),
        "entries": blocked((3, 3), two, entries=9),
    }
    blocks["bit"] = bytes(byte ^ (1 if at == 4100 else 0) for at, byte in enumerate(blocks["two"]))
    blocks["claims"] = blocks["no_rows"][:24] + longs(1 << 62, 4, 0, 1) + longs(0, 1 << 62, 0, 4096) + bytes(12)
    data = doubles(1, 2, 3)
    tensors = {
        "two": safetensors([("a", "F64", [3], 0, 24), ("b", "F32", [2, 1], 24, 32)], data + bytes(8), {"epoch": "3"}),
        "long": safetensors([("n", "I64", [], 0, 8)], longs(5)),
        "none": safetensors([], b""),
        "types": safetensors([("a", "BF16", [1], 0, 2), ("b", "BOOL", [2], 2, 4)], bytes(4)),
        "overlap": safetensors([("a", "F64", [2], 0, 16), ("b", "F64", [2], 8, 24)], data),
        "gap": safetensors([("a", "F64", [1], 8, 16)], data),
        "beyond": safetensors([("a", "F64", [4], 0, 32)], data),
        "large": safetensors([("a", "F64", [1 << 62, 4], 0, 24)], data),
        "negative": safetensors([("a", "F64", [-1], 0, 24)], data),
        "twice": struct.pack("<Q", 11) + b'{"a":1,"a":' + data,
        "nested": struct.pack("<Q", 400) + b'{"a":' + b"[" * 395,
        "claims": struct.pack("<Q", 1 << 63) + b"{}",
        "empty": b"",
    }
    plain = gzip.compress(b"0,1\n" * 50, mtime=0)
    packed = {
        "plain": plain,
        "members": plain + gzip.compress(b"", mtime=0) + plain,
        "padded": plain + bytes(30),
        "rubbish": plain + b"rubbish",
        "checksum": plain[:-8] + bytes(4) + plain[-4:],
        "bomb": gzip.compress(bytes(1 << 22), mtime=0),
        "empty": b"",
    }
    return {"blocked": truncated(blocks), "safetensors": truncated(tensors), "checkpoint": truncated(tensors), "gzip": truncated(packed)}


def folder_files():
    good = [
        npy("<i8", "(3, 2)", longs(0, 1, 1, 2, 2, 0)),
        npy("<f8", "(3, 2)", doubles(1, 2, 3, 4, 5, 6)),
        npy("<i8", "(3, 2)", longs(0, 1, 1, 1, 0, 0)),
        npy("|u1", "(3,)", b"\1\3\2"),
        npy("<f4", "(2,)", struct.pack("<2f", 1, 0.5)),
        npy("<i8", "(2, 2)", longs(0, 3, 1, 2)),
        npy("<f4", "(3, 1)", struct.pack("<3f", 1, float("nan"), 2)),
        npy("<i8", "(3,)", longs(0, 3, 1)),
        npy("|u1", "(3,)", b"\1\4\2"),
        npy("<f8", "(2,)", doubles(1, -1)),
    ]
    dataset = {f"file_{k % 5}_{k // 5}": bytes([k % 5]) + content for k, content in enumerate(good)}
    dataset["no_columns"] = b"\2" + npy("|u1", "(3, 0)", b"")
    texts = ["0,1\n2,1\n", "3\n", "2\n", "0,1\n1,0\n0,0\n", "1\n2\n3\n", "0\n1\n", "2\n1\n", "2\n",
             "0,1,2\n3,4,5\n", "-1\n", "3\n", "0.5\n1\n2\n", "nan\n1\n2\n", "\n", "0\n", "3\n"]
    ogb = {f"file_{k % 8}_{k // 8}": bytes([k % 8]) + text.encode() for k, text in enumerate(texts)}
    ogb["many_vertices"] = b"\1" + b"9223372036854775807\n"
    ogb["label"] = b"\3" + b"1e300\n-1\ninf\n"
    return {"dataset": truncated(dataset), "ogb": ogb}


def main(root):
    for name, files in {**text_files(), **array_files(), **checked_files(), **folder_files()}.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (root / name / file).write_bytes(content.encode() if isinstance(content, str) else content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
