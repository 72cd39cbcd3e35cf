"""Evaluations that are cut short, that fail, and that are rough."""

from math import isqrt

import numpy as np
import pytest

from autokernel import parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import CRITERIA, Evaluator, Laplace
from autokernel.evidence import evaluator as evaluate_module
from autokernel.evidence import mode_search as modes_module
from autokernel.exceptions import OutOfTimeError
from autokernel.inference import exact as exact_module
from autokernel.kernels.parameters import check_priors

PRIORS = check_priors("paper")


def wave(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_samples, 2))
    y = np.sin(20 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n_samples)
    return X, (y - y.mean()) / y.std()


def evaluator(n_samples=20, **options):
    return Evaluator(*wave(n_samples), **{"priors": PRIORS, "seed": 0, **options})


def read(text):
    return parse_expression(text)


def same(one, other):
    """Whether two evaluations are the same to the last bit, and as dear."""
    return (
        one.theta.tobytes() == other.theta.tobytes()
        and one.hessian.tobytes() == other.hessian.tobytes()
        and one.score == other.score
        and one.n_evaluations == other.n_evaluations
    )


class Countdown:
    """Stands for a deadline that passes after so many looks at it."""

    def __init__(self, n_looks=np.inf):
        self.n_allowed, self.n_looks = n_looks, 0

    def check(self):
        if self.n_looks >= self.n_allowed:
            raise OutOfTimeError("over")
        self.n_looks += 1


@pytest.fixture
def sizes(monkeypatch):
    """A list that grows with every factorisation, by its number of rows."""
    made = []
    original = exact_module.PackedCholesky

    def counting(packed):
        made.append(isqrt(2 * len(packed)))
        return original(packed)

    monkeypatch.setattr(exact_module, "PackedCholesky", counting)
    return made


@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        *(("SE[0] * LIN[1]", name) for name in CRITERIA),
        *(("LIN[0] + PER[0]", name) for name in ("laplace", "importance")),
    ],
)
def test_the_clock_is_looked_at_before_every_call_of_a_likelihood(sizes, text, criterion):
    clock = Countdown()
    subject = evaluator(criterion=criterion)
    fit = subject.run(subject.prepare(read(text)), deadline=clock)
    assert fit.status == "ok"
    # those of parts, of Hessians and of draws, too
    assert clock.n_looks == len(sizes) == fit.n_evaluations


def test_the_clock_is_looked_at_in_searches_on_a_sample_of_the_rows(sizes):
    subject = evaluator(300)
    with pytest.raises(OutOfTimeError):
        subject.run(subject.prepare(read("SE[0]")), deadline=Countdown(30))
    assert len(sizes) == 30
    assert set(sizes) == {150}  # or the test shows nothing


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        ("SE[0] * LIN[1]", "importance"),
        ("SE[0] * LIN[1]", "cv"),
        ("LIN[0] + PER[0]", "importance"),
    ],
)
def test_an_evaluation_ends_with_the_call_at_which_time_is_over(sizes, text, part, criterion):
    total = evaluator(criterion=criterion)(read(text)).n_evaluations
    n_looks = int(part * total)
    sizes.clear()
    subject = evaluator(criterion=criterion)
    job = subject.prepare(read(text))
    with pytest.raises(OutOfTimeError, match="over"):
        subject.run(job, deadline=Countdown(n_looks))
    assert len(sizes) == n_looks
    # what was cut short leaves nothing half done behind
    assert same(subject.run(job), evaluator(criterion=criterion)(read(text)))


def test_after_the_deadline_nothing_is_begun(sizes):
    subject = evaluator()
    with pytest.raises(OutOfTimeError):
        subject.run(subject.prepare(read("LIN[0] + PER[0]")), deadline=Deadline(-1.0))
    assert sizes == []


def test_a_deadline_that_is_kept_changes_nothing():
    subject = evaluator()
    job = subject.prepare(read("SE[0] + LIN[1]"))
    assert same(subject.run(job, deadline=Deadline(1e6)), subject.run(job))


def raising(error):
    def fail(*arguments, **options):
        raise error

    return fail


class Faulty(Laplace):
    """Laplace's criterion, which raises an error as long as it has one."""

    error = None

    def __call__(self, fit):
        if self.error is not None:
            raise self.error
        return super().__call__(fit)


CRITERION = Faulty()
FAULTS = {
    "in the search of modes": (modes_module, "find_modes", raising),
    "at the maximum": (evaluate_module, "find_best_maximum", raising),
    "in a factorisation": (exact_module, "PackedCholesky", raising),
    "in the criterion": (CRITERION, "error", lambda error: error),
}


@pytest.mark.parametrize("error", [RuntimeError("a bug"), MemoryError("no room for 8 GiB")])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_goes_wrong_becomes_a_record_with_its_reason(monkeypatch, fault, error):
    subject = evaluator(criterion=CRITERION)
    expression = read("SE[1] + LIN[0]")  # in another order than it is computed in
    owner, name, of_error = FAULTS[fault]
    with monkeypatch.context() as broken:
        broken.setattr(owner, name, of_error(error))
        fit = subject(expression)
    assert fit.status == f"{type(error).__name__}: {error}"
    assert fit.score == fit.log_evidence == fit.log_posterior == -np.inf
    assert str(fit.expression) == "SE[1] + LIN[0]"
    names = [(p.kernel, p.name) for p in fit.parameters]
    assert names[::2] == [
        ("SE[1]", "lengthscale"),
        ("LIN[0]", "variance"),
        (None, "noise_variance"),
    ]
    # at the prior means, shape over rate
    values = [p.value for p in fit.parameters]
    np.testing.assert_allclose(values, [1, 2 / 3, 2 / 3, 2 / 3, 0.01], rtol=1e-14)  # rounding
    assert fit.hessian.shape == (fit.n_params, fit.n_params) == (5, 5)
    assert np.isnan(fit.hessian).all()
    assert fit.seconds > 0
    # and the next kernel is none the worse for it
    assert same(subject(expression), evaluator()(expression))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_who_interrupts_an_evaluation_is_obeyed(monkeypatch, error):
    monkeypatch.setattr(modes_module, "find_modes", raising(error))
    with pytest.raises(error):
        evaluator()(read("SE[0]"))


def test_a_kernel_that_could_not_be_tried_is_a_record_with_the_reason():
    fit = evaluator().without_fit(read("SE[1] + LIN[0]"), "the worker died")
    assert fit.status == "the worker died"
    assert str(fit.expression) == "SE[1] + LIN[0]"
    assert fit.score == fit.log_posterior == -np.inf
    assert fit.n_params == len(fit.theta) == len(fit.parameters) == 5
    assert (fit.n_evaluations, fit.seconds) == (0, 0.0)


@pytest.mark.parametrize("text", ["SE[0]", "PER[1] + SE[0] * LIN[1]"])
def test_a_rough_fit_is_a_point_of_the_posterior_without_a_score(text, dense_log_posterior):
    fit = evaluator(40).run_roughly(read(text))
    assert str(fit.expression) == text
    assert fit.score == fit.log_evidence == -np.inf
    assert "rough" in fit.status
    # no more than a hundred rows, so that it is that of all rows; rounding
    expected = dense_log_posterior(text, *wave(40))(fit.theta)
    assert fit.log_posterior == pytest.approx(expected, abs=1e-8)
    assert [p.kernel for p in fit.parameters if p.name == "variance"] == [
        str(leaf) for leaf in fit.expression.leaves
    ]


def test_a_rough_fit_is_the_better_of_two_short_runs(monkeypatch, dense_log_posterior):
    log_posterior = dense_log_posterior("SE[0]", *wave(40))
    runs, original = [], modes_module.maximise

    def noting(posterior, start, **options):
        runs.append((log_posterior(start), original(posterior, start, **options)))
        return runs[-1][1]

    monkeypatch.setattr(modes_module, "maximise", noting)
    rough = evaluator(40).run_roughly(read("SE[0]"))
    begins, ends = zip(*((begin, mode.log_posterior) for begin, mode in runs), strict=True)
    assert rough.log_posterior == max(ends) > min(ends)
    assert begins[0] >= begins[1]  # the best starting points
    assert np.all(np.subtract(ends, begins) > 1)
    # for three parameters it is all but the mode; a single iteration ends three nats below it
    fit = evaluator(40)(read("SE[0]"))
    assert fit.log_posterior - 0.1 < rough.log_posterior <= fit.log_posterior + 1e-6


@pytest.mark.parametrize("n_samples", [90, 400])
@pytest.mark.parametrize("text", ["SE[0]", "LIN[0] + PER[0] * SE[0] + SE[0]"])
def test_a_rough_fit_takes_few_calls_on_few_rows(sizes, text, n_samples):
    evaluator(n_samples).run_roughly(read(text))
    assert set(sizes) == {min(100, n_samples)}
    # a value at each of a dozen or two starting points, and two runs of 15 iterations
    assert len(sizes) < 100


def test_a_rough_fit_is_reproducible_and_leaves_no_trace():
    subject = evaluator(120)
    rough = [subject.run_roughly(read("LIN[0] + PER[0]")) for _ in range(2)]
    assert same(*rough)
    assert not same(rough[0], evaluator(120, seed=1).run_roughly(read("LIN[0] + PER[0]")))
    assert same(subject(read("LIN[0] + PER[0]")), evaluator(120)(read("LIN[0] + PER[0]")))
