"""Files for the command line, and what it prints."""

import numpy as np

SHORT = ["--strategy", "greedy", "--n-iter", "0"]  # each base kernel on each column


def write(folder, text, *, name="data.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def wave(folder, n=30):
    """A short CSV file: a wave over time, and a column of no use."""
    time = np.linspace(2000, 2004, n)
    path = folder / "wave.csv"
    rows = np.c_[time, np.sin(6 * time), np.cos(np.arange(float(n)) ** 2)]
    np.savetxt(path, rows, delimiter=",", header="time,level,junk", comments="")
    return path


def lines(text):
    """A printed text without its line breaks."""
    return " ".join(text.split())
