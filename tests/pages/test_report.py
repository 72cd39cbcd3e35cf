"""Reports as web pages."""

import html
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor
from autokernel.displays import calibration
from autokernel.many_rows import approximation as approximations
from tests.fits import small, wave

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
SWITCHES = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-sync", "--disable-background-networking", "--disable-component-update",
    "--hide-scrollbars", "--enable-logging=stderr",
]  # fmt: skip


@pytest.fixture(scope="module")
def model():
    """A search on two columns with names that need escapes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(50, 2)), columns=["a <b>", "c & d"])
    y = np.sin(6 * X["a <b>"]) + X["c & d"] + 0.05 * rng.normal(size=50)
    return small(max_leaves=3).fit(X, y)


class Links(HTMLParser):
    """What a page refers to, and the tags that it opens and does not close."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.ids, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.targets += [found[name] for name in ("src", "href") if name in found]
        self.ids += [found["id"]] if "id" in found else []
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone(model, tmp_path):
    before = plt.get_fignums()
    path = model.report(tmp_path / "report.html", title="A & <B>")
    text = path.read_text(encoding="utf-8")
    links = Links(text)
    assert links.open == []
    inside = {f"#{name}" for name in links.ids}
    assert all(one.startswith("data:") or one in inside for one in links.targets)
    assert "http://" not in re.sub(r"data:[^\"]*", "", text)
    assert "<h1>A &amp; &lt;B&gt;</h1>" in text
    assert plt.get_fignums() == before


def test_it_holds_what_the_estimator_says(model, tmp_path):
    text = html.unescape(model.report(tmp_path / "r.html").read_text(encoding="utf-8"))
    for paragraph in model.describe().split("\n\n"):
        assert paragraph in text
    for kernel in model.posterior_["kernel"]:
        assert kernel in text
    for name, value in model.get_params(deep=False).items():
        assert f'<td class="text">{name}</td><td class="text">{value!r}</td>' in text
    assert text.count("data:image/svg+xml") == len(model.decompose().components) + 2
    assert re.search(r"Intervals of 95 % hold \d+\.\d % of the rows", text)
    assert re.search(r"[0-9a-f]{64}", text)


def test_names_with_dollar_signs_are_no_mathematics(tmp_path):
    x = np.linspace(0, 1, 20)
    X = pd.DataFrame({"a $x_{$": x})
    model = AutoKernelGPRegressor(random_state=0).refit(X, 2 * x, "LIN[0]")
    text = model.report(tmp_path / "r.html", units={"y": "$ per $_"}).read_text(encoding="utf-8")
    assert "a $x_{$" in html.unescape(text)


def test_the_fingerprint_is_that_of_the_data(tmp_path):
    X, y = wave(20)

    def fingerprint(X, y):
        model = AutoKernelGPRegressor(random_state=0).refit(X, y, "SE[0]")
        text = model.report(tmp_path / "r.html").read_text(encoding="utf-8")
        return re.search(r"[0-9a-f]{64}", text)[0]

    assert fingerprint(X, y) == fingerprint(X.tolist(), y.tolist())
    assert fingerprint(X, y) != fingerprint(X, y + 1e-9)


def test_without_a_search_or_structure_the_sections_are_left_out(tmp_path):
    X, y = wave(20)
    model = AutoKernelGPRegressor(random_state=0).refit(X, y, "NOISE")
    text = model.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "No structure was found" in text
    assert 'id="search"' not in text
    assert 'id="components"' not in text


def test_many_rows_have_no_calibration_by_leaving_out(tmp_path, monkeypatch):
    monkeypatch.setattr(approximations, "_MOST_EXACT", 100)
    X, y = wave(200)
    model = AutoKernelGPRegressor(approximation="neighbours", random_state=0).refit(X, y, "SE[0]")
    assert "Leaving rows out one by one needs exact predictions" in (
        model.report(tmp_path / "r.html").read_text(encoding="utf-8")
    )
    monkeypatch.setattr(calibration, "MOST_LEFT_OUT", 100)
    with pytest.raises(ValueError, match="at most 100 are left out one by one"):
        calibration.CalibrationDisplay.from_estimator(model)


def browse(path, tmp_path, *switches):
    """Open a page in Chromium, and return what it says on its console."""
    done = subprocess.run(
        [CHROMIUM, *SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", *switches, path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_shows_it_without_an_error(model, tmp_path, width):
    path = model.report(tmp_path / "report.html")
    # what is wider than the page would make it scroll sideways
    probe = tmp_path / "probe.html"
    script = (
        "<script>window.onload = () => { document.title = 'loaded ' + [...document.images]"
        ".filter(i => i.complete && i.naturalWidth > 0).length + ' scrolls ' + "
        "(document.documentElement.scrollWidth > window.innerWidth) };</script>"
    )
    probe.write_text(
        path.read_text(encoding="utf-8").replace("</body>", f"{script}</body>"), encoding="utf-8"
    )
    assert (
        browse(
            path, tmp_path, f"--window-size={width},900", f"--screenshot={tmp_path / 'page.png'}"
        )
        == []
    )
    done = subprocess.run(
        [CHROMIUM, *SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         f"--window-size={width},900", probe.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    n_pictures = len(model.decompose().components) + 2
    assert f"<title>loaded {n_pictures} scrolls false</title>" in done.stdout


@pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")
def test_it_prints(model, tmp_path):
    path, printed = model.report(tmp_path / "report.html"), tmp_path / "report.pdf"
    browse(path, tmp_path, f"--print-to-pdf={printed}", "--no-pdf-header-footer")
    content = printed.read_bytes()
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 12
