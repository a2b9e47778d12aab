"""Writes tables.json: tables with quotes anywhere, each with the rows that Python's csv reads with strict=True, or null where it refuses.

    python make_tables.py        (CPython 3.11.7, its standard library alone)
"""
import csv
import io
import json
import pathlib
import random

PIECES = ["a", "b", ",", '"', '"', " ", "\n", "\r\n", "\r", "\\", '","', '"\n"', '""', ",a\n", 'a,"', "é"]


def rows(text):
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row][1:]
    except csv.Error:
        return None


draw = random.Random(57)


def field():
    text = "".join(draw.choice(["a", "b", " ", "é", "\\", ",", "\n", '"']) for _ in range(draw.randint(0, 5)))
    quoted = draw.random() < 0.5 or any(c in text for c in ',\n"')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def table():
    """Makes a table that is well formed, and adds or takes a quote in every second one."""
    body = "".join(field() + "," + field() + draw.choice(["\n", "\r\n"]) for _ in range(draw.randint(1, 5)))
    at = draw.randrange(len(body))
    return draw.choice([body, body, body[:at] + '"' + body[at:], body.replace('"', "", 1)])


cases = []
while len(cases) < 2000:
    pieces = "".join(draw.choice(PIECES) for _ in range(draw.randint(3, 16)))
    body = table() if len(cases) % 2 else pieces
    text = "p,q\n" + body
    if '"' in body and text.strip() != "p,q":
        cases.append([body, rows(text)])
path = pathlib.Path(__file__).with_name("tables.json")
lines = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
path.write_text(f"[\n{lines}\n]\n", encoding="utf-8", newline="")
accepted = [rows for _, rows in cases if rows is not None]
print(len(cases), "tables,", len(accepted), "accepted,", sum(any(len(row) == 2 for row in rows) for rows in accepted), "with rows of two fields")
