"""dates.json: what Python's datetime.strftime makes of the midnight of some days, on Linux (glibc), in the C locale.

usage: python make_dates.py > dates.json
"""
import datetime
import json
import os
import sys
import time

os.environ["TZ"] = "UTC"
time.tzset()
DAYS = ["2024-07-26", "2024-02-29", "2023-12-31", "2024-12-31", "2025-01-01", "2021-01-03", "2020-12-28", "2000-02-29", "1999-01-01", "2026-11-05", "1969-12-31", "9999-12-31"]
LETTERS = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZf%"
FORMATS = [f"%{flags}{letter}" for flags in ("", "-", "_", "0", "^", "#") for letter in LETTERS if not (flags and letter in "zZf")]
FORMATS += ["%d %b %Y", "%B %d, %Y", "%A, %-d %B %Y", "Today: %Y-%m-%d.", "%H:%M:%S", "caf\u00e9 %d", "", "%", "50%", "%Q", "%-Q%d", "%5d|%_5d|%-5d|%12B|%-3y", "%Ey %Od %EY", "%%d", "%-f", "%i"]

json.dump({"made_with": {"python": sys.version.split()[0]}, "formats": FORMATS,
           "dates": {day: [datetime.datetime.fromisoformat(day).strftime(form) for form in FORMATS] for day in DAYS}}, sys.stdout, ensure_ascii=False, indent=0)
