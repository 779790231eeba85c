#!/usr/bin/env python3
"""Fails when a unit that the stored score calls passed fails in the new one.   conform_regressed.py STORED.json NEW.json"""
import json
import os
import sys


def statuses(path):
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    return {f"{op} {dtype} {check}": unit["status"] for op, entry in document["ops"].items()
            for dtype, checks in entry["results"].items() for check, unit in checks.items()}


def main():
    stored, new = (statuses(p) if os.path.exists(p) else {} for p in sys.argv[1:3])
    lost = sorted(k for k, status in new.items() if stored.get(k) == "pass" and status not in ("pass", "empty"))
    for unit in lost:
        print(f"regressed: {unit} ({new[unit]})")
    print(f"conformance: {len(new)} units against {sys.argv[1]}, {len(lost)} regressed")
    return 1 if lost or not new else 0


sys.exit(main())
