"""Reports as web pages."""

import html
import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from autokernel import AutoKernelGPRegressor
from autokernel.export import write_report
from tests.fits import small, wave


@pytest.fixture(scope="module")
def model():
    """A search on two columns with names that need escapes."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(50, 2)), columns=["a <b>", "c & d"])
    y = np.sin(6 * X["a <b>"]) + X["c & d"] + 0.05 * rng.normal(size=50)
    return small(max_leaves=3).fit(X, y)


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


def test_the_page_stands_alone(model, tmp_path):
    before = plt.get_fignums()
    text = page(model, tmp_path, title="A & <B>")
    links = Links(text)
    assert links.open == []
    inside = {f"#{name}" for name in links.ids}
    assert all(one.startswith("data:") or one in inside for one in links.targets)
    assert "http://" not in re.sub(r"data:[^\"]*", "", text)
    assert "<h1>A &amp; &lt;B&gt;</h1>" in text
    assert plt.get_fignums() == before


def test_it_holds_what_the_estimator_says(model, tmp_path):
    text = html.unescape(page(model, tmp_path))
    for paragraph in model.describe().split("\n\n"):
        assert paragraph in text
    for kernel in model.posterior_["kernel"]:
        assert kernel in text
    for name, value in model.get_params(deep=False).items():
        assert f'<td class="text">{name}</td><td class="text">{value!r}</td>' in text
    n_components = len(re.findall(r"^\d+\. ", model.describe(), re.MULTILINE))
    assert text.count("data:image/svg+xml") == n_components + 1
    assert f"{len(model.search_history_['score'])} kernels were evaluated in " in text
    for kernel in model.leaderboard()["kernel"]:
        assert kernel in text
    assert re.search(r"Intervals of 95 % hold \d+\.\d % of the rows", text)
    assert re.search(r"[0-9a-f]{64}", text)


def test_names_with_dollar_signs_are_no_mathematics(tmp_path):
    x = np.linspace(0, 1, 20)
    X = pd.DataFrame({"a $x_{$": x})
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(X, 2 * x, "LIN[0]")
    assert "a $x_{$" in html.unescape(page(model, tmp_path, units={"y": "$ per $_"}))


def test_the_fingerprint_is_that_of_the_data(tmp_path):
    X, y = wave(20)

    def fingerprint(X, y):
        model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(X, y, "NOISE")
        return re.search(r"[0-9a-f]{64}", page(model, tmp_path))[0]

    assert fingerprint(X, y) == fingerprint(X.tolist(), y.tolist())
    assert fingerprint(X, y) != fingerprint(X, y + 1e-9)


def test_without_a_search_or_structure_the_sections_are_left_out(tmp_path):
    X, y = wave(20)
    model = AutoKernelGPRegressor(outliers=None, random_state=0).refit(X, y, "NOISE")
    text = page(model, tmp_path)
    assert "No structure was found" in text
    assert 'id="search"' not in text
    assert 'id="components"' not in text


def test_a_search_without_a_score_has_no_section(tmp_path):
    model = AutoKernelGPRegressor(base_kernels=["SE"], max_time=1e-6, random_state=0)
    with pytest.warns(UserWarning, match="before any kernel had a score"):
        model.fit(*wave(20))
    assert 'id="search"' not in page(model, tmp_path)


def test_approximate_predictions_have_no_calibration_by_leaving_out(tmp_path):
    X, y = wave(200)
    settings = {"approximation": "inducing", "n_inducing": 10, "random_state": 0}
    model = AutoKernelGPRegressor(**settings).refit(X, y, "SE[0]")
    assert "Leaving rows out one by one needs exact predictions" in page(model, tmp_path)


def test_scales_are_shown_where_another_one_than_the_identity_was_chosen(tmp_path):
    X, y = wave(20)
    model = AutoKernelGPRegressor(outliers=None, random_state=0)
    assert "scales of the target" not in page(model.refit(X, y, "SE[0]"), tmp_path)
    text = page(model.refit(X, np.exp(y), "log(y) ~ SE[0]"), tmp_path)
    assert "The probabilities of the scales of the target" in text
    assert '<td class="text">target</td><td class="text">log</td>' in text
    assert "Components can exchange a constant factor." in text
