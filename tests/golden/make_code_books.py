#!/usr/bin/env python3
"""crate/src/formats/blocks/code_books.bin: the code books of ggml's types IQ1, IQ2 and IQ3, from gguf-py (MIT, LICENSE.gguf beside the data).

usage: make_code_books.py, with Python 3.11 to 3.13, numpy 2.4.6 and gguf 0.19.0.
Books in the order IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ1 (S and M); 16 bits for each vector, little-endian: eight values of two bits
(IQ2 and IQ1) or four of four (IQ3), the first one lowest. What a number stands for is in `code_books.rs` beside the data.
"""
import pathlib

from gguf import quants

HERE = pathlib.Path(__file__).parent
BOOKS = (quants.IQ2_XXS, quants.IQ2_XS, quants.IQ2_S, quants.IQ3_XXS, quants.IQ3_S, quants.IQ1_S)

data = b""
for book in BOOKS:
    vectors, width = book.grid_shape
    packed = bytes.fromhex(book.grid_hex.decode())
    assert len(packed) == 2 * vectors, book.qtype.name
    print(f"{book.qtype.name}: {vectors} vectors of {width} from vector {len(data) // 2}; values {[float(v) for v in book.grid_map]}")
    data += packed
assert quants.IQ1_M.grid_hex == quants.IQ1_S.grid_hex
assert all(signs == n | n.bit_count() % 2 << 7 for n, signs in enumerate(quants.IQ2_XXS.ksigns)), "an even number of signs"
(HERE / "../../crate/src/formats/blocks/code_books.bin").write_bytes(data)
