"""A document with everything in it, and one in which every text tries to break out."""

import zlib

import numpy as np

from bellief.report.document import Chart, Curve, Document, Picture, Section, Table, Verdict

HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>'\"&amp;"


def png(width=40, height=30):
    """A small grey picture."""

    def chunk(kind, content):
        body = kind + content
        return len(content).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    rows = zlib.compress((b"\0" + b"\xb0" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def curve(label, top, speed, ours=False):
    x = np.unique(np.round(np.geomspace(1, 1e6, 60)).astype(int))
    mean, spread = top * (1 - np.exp(-x / speed)), 0.5 * np.exp(-x / speed) + 0.05
    return Curve(label, x, mean, mean - spread, mean + spread, spread / 7, ours)


def document(text=HOSTILE):
    """`text` stands wherever a user's own text may stand in the third section."""
    curves = [curve("bbi", 3.6, 3e4), curve("psrl", 3.65, 4e3), curve("bbi-optimistic", 3.67, 2e3, True)]
    chart = Chart("Reward on NChain", "step", "reward per step", curves, True, [("optimum", 3.677)])
    broken = Curve(text, [0, 1, 2, 3], [0, float("nan"), 2, float("inf")])
    odd = Chart(text, text, text, [broken], False, [(text, 1.0)])
    table = Table("Last tenth", ["agent", "mean", "note"], [["bbi", 3.64, "stuck"], ["psrl", "−3.68", None]])
    return Document(
        f"Report {text}",
        ["What there is.", text],
        [
            Verdict("fig:chain", "BBI is close to PSRL.", "reproduced", "−0.03 [−0.09, 0.02]", "50 runs"),
            Verdict("fig:chain", "BSS is slightly worse.", "not reproduced", "−0.35", ""),
            Verdict("tab:w", "Distances fall.", "under-specified", "", "no policy is printed"),
            Verdict("fig:maze", "VDQN fails.", "too small to judge", "", ""),
            Verdict(text, text, text, text, text),
        ],
        [
            Section(
                "fig:chain", "NChain", ["Text."], [chart, table], "bellief paper --only fig:chain", [("Seed", "0")]
            ),
            Section("fig:maze", "Maze", [], [chart._replace(title="Reward in the Maze", log_x=False)]),
            Section(
                text,
                text,
                [text],
                [odd, Table(text, [text], [[text]]), Picture(text, text, png())],
                text,
                [(text, text)],
            ),
        ],
        [("Bellief", "0.1.0"), (text, text)],
    )
