"""Two files of Parquet: `rows.parquet` (Snappy; texts, 64-bit integers, times) and `chats.parquet` (Zstandard; lists of structs).

pip install pyarrow==26.0.1; python make_parquet.py
"""

import pyarrow as pa
import pyarrow.parquet as pq

HOW = {"write_statistics": False, "store_schema": False}

rows = {
    "prompt": ["one", "zwei", "три"],
    "completion": ["1", "2", "3"],
    "n": pa.array([1, 2**53 + 1, 3], pa.int64()),
    "when": pa.array([0, 86_400_000, None], pa.timestamp("ms")),
}
pq.write_table(pa.table(rows), "rows.parquet", compression="snappy", **HOW)


def chat(user: str, assistant: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]


pq.write_table(pa.table({"messages": [chat("a", "b"), chat("c", "d")]}), "chats.parquet", compression="zstd", **HOW)
