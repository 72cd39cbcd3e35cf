"""Files for the command line, and what it prints."""

import numpy as np

QUICK = ["--strategy", "greedy", "--n-iter", "0", "--max-time", "0.01"]  # a rough fit


def write(folder, text, *, name="data.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def wave(folder, n=20):
    """A short CSV file: a wave over time, and a column of no use."""
    time = np.linspace(2000, 2003, n)
    rows = np.c_[time, np.sin(6 * time), np.cos(np.arange(float(n)) ** 2)]
    path = folder / "wave.csv"
    np.savetxt(path, rows, delimiter=",", header="time,level,junk", comments="")
    return path


def lines(text):
    """A printed text without its line breaks."""
    return " ".join(text.split())
