"""Base kernels from outside of the package go wherever the name of one goes."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from autokernel import CallableKernel, KernelParameter, evaluate_kernel, parse_expression
from autokernel.evidence import Evaluator
from autokernel.inference import TrainingData
from autokernel.kernels import BASE_KERNELS, VARIANCE
from autokernel.kernels.built_in import Periodic
from tests.fits import assert_predicts_as_its_kernel
from tests.kernels.gate import GATE
from tests.own_kernels import (
    BY_CALL,
    OU,
    ByDifferences,
    OrnsteinUhlenbeck,
    exponential,
    fitted,
    rough,
)

DOCUMENT = Path(__file__).parents[1] / "docs" / "own-kernels.md"


def test_the_example_of_the_document_wins_on_data_drawn_from_it(tmp_path, monkeypatch, capsys):
    text = DOCUMENT.read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL)[1]
    assert len(example.splitlines()) < 30
    monkeypatch.chdir(tmp_path)
    exec(compile(example, DOCUMENT.name, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr() == ("OU[0]\n", "")
    assert (tmp_path / "memory").is_dir()


def test_a_kernel_by_another_name_scores_nearly_the_same():
    X, y = rough(10)
    known = evaluate_kernel("LIN[0] * PER[0]", X, y)
    for name in ("WEEK", "AAA"):  # sorted after and before the other
        other = evaluate_kernel(f"LIN[0] * {name}[0]", X, y, base_kernels=[Periodic(name)])
        # other random starts end at the same mode, which is found to 1e-4 nats
        assert other.score == pytest.approx(known.score, abs=1e-3)


def test_a_kernel_fits_alike_in_each_of_the_three_forms():
    X, y = rough()
    scores = [
        evaluate_kernel(f"{kernel.name}[0] * LIN[0]", X, y, base_kernels=[kernel]).score
        for kernel in (OU, ByDifferences(), BY_CALL)
    ]
    # the derivatives differ by 1e-8, and the Hessian by their differences over steps of 1e-3
    np.testing.assert_allclose(scores, scores[0], atol=1e-3)


def test_best_kernel_predicts_the_same_in_scikit_learn_and_can_be_optimised():
    X, y = rough()
    model = fitted(base_kernels=(OU,), n_iter=0, averaging=None)
    regressor = assert_predicts_as_its_kernel(model, X, y, np.linspace(-0.2, 1.2, 9)[:, None])
    optimised = clone(regressor).set_params(optimizer="fmin_l_bfgs_b").fit(X, y)
    before, after = (one.log_marginal_likelihood_value_ for one in (regressor, optimised))
    assert after >= before - 1e-6
    model.refit(X, y, kernel="OU[0] + OU[0]")
    assert model.best_expression_ == "OU[0] + OU[0]"


def test_workers_and_memory_give_the_same_result(tmp_path):
    local = CallableKernel("LOCAL", lambda X, Y, v: v * np.exp(-np.abs(X - Y.T)), (VARIANCE,))
    memory = {"memory": tmp_path}
    for kernel, others in ((OU, ({"n_jobs": 2, **memory}, memory)), (local, ({"n_jobs": 2},))):
        parts = {"base_kernels": ("LIN", kernel), "operators": (GATE,)}
        settings = {**parts, "batch_size": 2, "averaging": None}
        alone = fitted(**settings).search_history_
        assert any("GATE" in text for text in alone["kernel"])
        for other in others:
            found = fitted(**settings, **other).search_history_
            np.testing.assert_array_equal(found["kernel"], alone["kernel"])
            np.testing.assert_array_equal(found["score"], alone["score"])


def test_memory_distinguishes_kernels_of_one_name():
    X, y = rough(20)
    keys = set()
    for kernel in (OU, ByDifferences("OU"), CallableKernel("OU", exponential, OU.parameters)):
        evaluator = Evaluator(TrainingData(X, y), priors={}, seed=0)
        job = evaluator.prepare(parse_expression("OU[0]", base_kernels=[kernel]))
        keys.add(evaluator.key(job))
    assert len(keys) == 3


def test_its_lengthscale_is_in_the_units_of_the_column():
    X, y = rough()
    model = fitted(base_kernels=(OU,), n_iter=0, max_leaves=1)
    short, long = (model.fit(scale * X, y).parameters_["value"][0] for scale in (1, 100))
    assert long == pytest.approx(100 * short, rel=0.01)


def test_priors_may_name_its_parameters():
    X, y = rough()
    wide, narrow = (
        evaluate_kernel("OU[0]", X, y, base_kernels=[OU], priors={"lengthscale": prior})
        for prior in ((2, 2), (1000, 1000 / 0.05))
    )
    assert wide.parameters[0].value != pytest.approx(0.05, rel=0.2)
    assert narrow.parameters[0].value == pytest.approx(0.05, rel=0.2)
    # also those of a kernel that is given and not used
    mine = CallableKernel("MINE", exponential, (KernelParameter("mine", (2, 2)), VARIANCE))
    fit = evaluate_kernel("SE[0]", X, y, base_kernels=[mine], priors={"mine": (3, 3)})
    assert fit.status == "ok"


def test_matern_kernels_are_built_in_and_not_automatic():
    matern, automatic = (
        fitted(base_kernels=one, n_iter=0, max_leaves=1, averaging=None)
        for one in (("MAT32", "MAT52"), "auto")
    )
    assert set(matern.search_history_["kernel"]) == {"MAT32[0]", "MAT52[0]", "NOISE"}
    kernels = {"LIN[0]", "PER[0]", "RQ[0]", "SE[0]", "NOISE"}
    assert set(automatic.search_history_["kernel"]) == kernels


def test_kernels_are_equal_by_what_they_are():
    assert OrnsteinUhlenbeck() == OU
    one, same, other = (OrnsteinUhlenbeck() for _ in range(3))
    for kernel, places in ((one, [0.0, 1.0]), (same, [0.0, 1.0]), (other, [0.0, 2.0])):
        kernel.places = np.array(places)
    assert one == same
    assert one != other
    assert OrnsteinUhlenbeck("OTHER") != OU
    assert ByDifferences("OU") != OU
    assert pickle.loads(pickle.dumps(OU)) == OU
    assert BASE_KERNELS["PER"] == Periodic()
    assert BASE_KERNELS["PER"] != Periodic("WEEK")
