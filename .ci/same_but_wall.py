"""Compares two JSON reports of the lab: equal byte for byte once the key `wall` is taken out."""
import json
import sys


def without_wall(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    report.pop("wall", None)
    if report["violations"] or report["leaks"]:
        sys.exit(f"{path}: {report['violations']} violations, {report['leaks']} leaks")
    return json.dumps(report)


first, second = (without_wall(path) for path in sys.argv[1:3])
if first != second:
    sys.exit("two runs with one seed differ")
print(f"equal: {len(first)} bytes of report")
