"""Reports as web pages."""

import hashlib
import html
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from autokernel.export import write_report
from tests.explain.models import refitted
from tests.fits import small, wave


@pytest.fixture(scope="module")
def model():
    """A search on two columns with names that need escapes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(40, 2)), columns=["a <b>", "c & d"])
    y = np.sin(6 * X["a <b>"]) + X["c & d"] + 0.05 * rng.normal(size=40)
    return small(n_iter=1).fit(X, y)


def page(model, folder, **settings):
    """The text of a report."""
    return write_report(model, folder / "report.html", **settings).read_text(encoding="utf-8")


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


def test_the_page_stands_alone_and_holds_what_the_estimator_says(model, tmp_path):
    before = plt.get_fignums()
    text = page(model, tmp_path, title="A & <B>", results={"C & <D>": ["one <more>"]})
    links = Links(text)
    assert links.open == []
    inside = {f"#{name}" for name in links.ids}
    assert all(one.startswith("data:") or one in inside for one in links.targets)
    assert "http://" not in re.sub(r"data:[^\"]*", "", text)
    assert "<h1>A &amp; &lt;B&gt;</h1>" in text
    assert text.count(">C &amp; &lt;D&gt;</") == 2
    assert plt.get_fignums() == before
    text = html.unescape(text)
    assert [part for part in model.describe().split("\n\n") if part not in text] == []
    assert [kernel for kernel in model.posterior_["kernel"] if kernel not in text] == []
    for name, value in model.get_params(deep=False).items():
        assert f'<td class="text">{name}</td><td class="text">{value!r}</td>' in text
    n_components = len(re.findall(r"^\d+\. ", model.describe(), re.MULTILINE))
    assert text.count("data:image/svg+xml") == n_components + 1
    assert f"{len(model.search_history_['score'])} kernels were evaluated in " in text
    for kernel in model.leaderboard()["kernel"]:
        assert kernel in text
    assert re.search(r"Intervals of 95 % hold \d+\.\d % of the rows", text)
    assert "scales of the target" not in text


def test_effects_are_a_table_that_a_script_sorts_and_that_reads_without_it(model, tmp_path):
    text = page(model, tmp_path)
    (rows,) = re.findall(r'<div class="wide sortable"><table>.*?<tbody>(.*?)</tbody>', text, re.S)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows.splitlines() if row]
    found = [one for one in model.decompose().components if one.columns]
    assert {row[0] for row in cells} >= {"a &lt;b&gt;", "c &amp; d"}
    shares = [float(row[1]) for row in cells]
    expected = [100 * one.share for one in found][: len(shares)]
    np.testing.assert_allclose(shares, expected, atol=0.05)  # as they are written
    assert shares == sorted(shares, reverse=True)
    claims = model.claims_
    for _, _, _, interval, probability in cells:
        assert float(probability) <= 1
        if interval:
            what, _, ends = html.unescape(interval).rpartition(": ")
            claim = [
                f"{a}, {b}" for a, b in zip(claims["subject"], claims["predicate"], strict=True)
            ].index(what)
            expected = claims["low"][claim], claims["high"][claim]
            # three digits are written
            np.testing.assert_allclose([*map(float, ends.split(" to "))], expected, rtol=5e-3)
    assert [row for row in cells if row[3]]
    assert text.index("</table>") < text.index("<script>")


def test_names_of_targets_columns_and_levels_are_written_as_they_are(tmp_path, rng):
    X = pd.DataFrame({"promo": rng.choice(["yes", "Yes", "no"], 60), "x: y": rng.normal(size=60)})
    effect = X["promo"].map({"yes": 3.0, "Yes": 1.0, "no": 0.0})
    y = pd.Series(effect + X["x: y"] + 0.1 * rng.normal(size=60), name="yield")
    settings = {"base_kernels": ["CAT", "LIN"]}
    text = html.unescape(page(refitted("CAT[promo] + LIN[x: y]", X, y, **settings), tmp_path))
    (rows,) = re.findall(r'<div class="wide sortable">.*?<tbody>(.*?)</tbody>', text, re.S)
    told = {
        row[0]: row[2]
        for row in (re.findall(r"<td.*?>(.*?)</td>", r) for r in rows.split("\n"))
        if row
    }
    assert re.match(r"yes \+1\.\d.*, Yes -0\..* and no -", told["promo"])
    assert told["x: y"].startswith("yield rises by ")
    assert "promo=yes, level differs: 1." in rows


def test_scales_are_shown_and_names_with_dollar_signs_are_no_mathematics(tmp_path):
    X, y = wave(20)
    frame, sold = pd.DataFrame(X, columns=["a $x_{$"]), pd.Series(np.exp(y), name="$ sold")
    text = page(refitted("log(y) ~ SE[0]", frame, sold), tmp_path, units={"y": "$ per $_"})
    assert "a $x_{$" in html.unescape(text)
    assert "What explains $ sold" in text
    assert "Probabilities of the scales" in text
    assert '<td class="text">target</td><td class="text">log</td>' in text
    assert "Each is the difference from the average over the rows" in text


def test_noise_alone_has_the_fingerprint_of_the_data_and_no_pictures_of_components(tmp_path):
    X, y = wave(20)
    text = page(refitted("NOISE", X.tolist(), y), tmp_path)
    expected = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
    assert re.findall(r"[0-9a-f]{64}", text) == [expected]
    assert "No structure was found" in text
    assert 'id="search"' not in text
    assert 'id="effects"' not in text


def test_few_rows_have_no_calibration_by_leaving_out(tmp_path):
    assert "The fit has left out no rows" in page(refitted("LIN[0]", *wave(9)), tmp_path)
