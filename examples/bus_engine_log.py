"""The log of Harold Zurcher's bus engines: `python examples/bus_engine_log.py bus_engines.csv log.csv.gz`.

166 buses of the Madison Metropolitan Bus Company were watched month by month from December 1974 to May 1985 (Rust,
"Optimal Replacement of GMC Bus Engines: An Empirical Model of Harold Zurcher", Econometrica 55, 1987). The input has
one row for each month of a bus: group, bus, month, miles on the engine, what was done (keep or replace), miles a month
later. It was made from the odometer files that OpenSourceEconomics publishes in its repository zurcher-data under the
MIT licence; the data are Rust's.

The data have no rewards. We take what Rust estimated for the groups 1 to 4, and only those groups: a month costs 0.0023
for every 5,000 miles on the engine, a new engine costs 10. States are ranges of 10,000 miles.
"""

import argparse
import csv
import gzip
import io
from pathlib import Path

MONTH_PER_5000_MILES, NEW_ENGINE = 0.0023, 10.0
GROUPS = ("1", "2", "3", "4")
WIDTH = 10  # thousand miles


def state(miles):
    """Range of the mileage, in thousand miles."""
    low = int(miles) // (1000 * WIDTH) * WIDTH
    return f"{low}-{low + WIDTH}k miles"


def reward(miles, action):
    """What a month costs; a new engine begins at zero."""
    begun = 0.0 if action == "replace" else float(miles)
    return -(MONTH_PER_5000_MILES * begun / 5000 + (NEW_ENGINE if action == "replace" else 0.0))


def convert(rows):
    """Rows of the log, bus by bus."""
    for row in rows:
        if row["group"] in GROUPS:
            yield {
                "episode": row["bus"],
                "step": row["month"],
                "state": state(row["miles"]),
                "action": row["action"],
                "reward": f"{reward(row['miles'], row['action']):.4f}",
                "next_state": state(row["next_miles"]),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("log", type=Path, help="a .csv.gz file")
    options = parser.parse_args()
    with open(options.source, newline="") as file:
        rows = list(convert(csv.DictReader(file)))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # Without a time in it, the same input gives the same bytes.
    options.log.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"{len(rows):,} months in {options.log}")


if __name__ == "__main__":
    main()
