"""The picture of the benchmarks: how many times longer each peer takes than Bellief, with the spread."""

import statistics


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = []
    for workload, times in results.items():
        own = [name for name in times if name.startswith("Bellief")]
        # In the comparison of single things ours is the first one; with many runs at once the last.
        for name in (name for name in times if not name.startswith(("Bellief", "bellief", "import", "python"))):
            base = own[0] if "no weights" not in name else own[-1]
            found = [one / mine for one, mine in zip(times[name], times[base], strict=True)]
            rows.append((f"{workload}: {name}", statistics.median(found), min(found), max(found)))
    rows.reverse()
    figure, axes = plt.subplots(figsize=(8, 0.32 * len(rows) + 1), constrained_layout=True)
    for place, (_, middle, low, high) in enumerate(rows):
        colour = "#2F5FB3" if middle >= 1 else "#B3402F"
        axes.plot([low, high], [place, place], color=colour, lw=2, alpha=0.5)
        axes.plot(middle, place, "o", color=colour)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.axvline(1, color="0.4", lw=1)
    axes.set_xscale("log")
    axes.set_xlabel("time of the other / time of Bellief: median and range")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)
