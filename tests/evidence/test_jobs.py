"""Evaluations that are cut short, that fail, that are rough; in other processes; their keys."""

import pickle
from math import isqrt
from typing import ClassVar

import numpy as np
import pytest

from autokernel import BaseKernel, parse_expression
from autokernel.deadline import Deadline
from autokernel.evidence import Evaluator, Importance, Job, Laplace
from autokernel.evidence.evaluation import WarmStart
from autokernel.exceptions import OutOfTimeError
from autokernel.expression import NOISE
from autokernel.inference import TrainingData
from autokernel.kernels import LENGTHSCALE, VARIANCE
from autokernel.kernels.parameters import check_priors

PRIORS = check_priors("paper")


def wave(n_samples=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_samples, 2))
    y = np.sin(20 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n_samples)
    return X, (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def table():
    return wave()


def evaluator(table, **options):
    return Evaluator(TrainingData(*table), **{"priors": PRIORS, "seed": 0, **options})


def bits(fit):
    """All of an evaluation but the time that it took."""
    return (
        str(fit.expression),
        fit.theta.tobytes(),
        fit.hessian.tobytes(),
        [fit.score, fit.log_evidence, fit.log_posterior, fit.log_likelihood, fit.log_prior],
        fit.parameters,
        fit.n_evaluations,
        fit.status,
        repr((fit.standard_error, fit.pareto_k)),
    )


# ---- out of time, and errors


class Countdown(Deadline):
    """A deadline that passes after a number of checks."""

    def __init__(self, n_allowed=np.inf):
        super().__init__(np.inf)
        self.n_allowed, self.n_checks = n_allowed, 0

    def check(self, seconds=0.0):
        if self.n_checks >= self.n_allowed:
            raise OutOfTimeError("over")
        self.n_checks += 1


class Watch:
    """What the kernels below have computed, and the error that they then raise."""

    sizes: ClassVar[list[int]] = []  # rows of each covariance matrix
    n_allowed, error = np.inf, None

    @classmethod
    def note(cls, pairs):
        if len(cls.sizes) >= cls.n_allowed:
            raise cls.error
        cls.sizes.append(isqrt(2 * len(pairs.difference)))

    @classmethod
    def reset(cls, *, n_allowed=np.inf, error=None):
        cls.sizes.clear()
        cls.n_allowed, cls.error = n_allowed, error


class WatchedDecay(BaseKernel):
    name = "WATCHED"
    parameters = (LENGTHSCALE, VARIANCE)

    def value(self, params, pairs):
        Watch.note(pairs)
        return params[1] * np.exp(-pairs.difference / params[0])

    def gradient(self, params, pairs, adjoint):
        weights = adjoint * params[1] * np.exp(-pairs.difference / params[0])
        return np.array([weights @ pairs.difference / params[0], weights.sum()])


WATCHED = WatchedDecay()


@pytest.fixture(autouse=True)
def _unwatched():
    Watch.reset()


def read(text):
    return parse_expression(text, base_kernels=[WATCHED])


def is_count(n_matrices, n_calls):
    """Whether all calls computed a matrix, except a few at the point of the call before."""
    return n_calls - 10 <= n_matrices <= n_calls


@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        *(("WATCHED[0] * LIN[1]", name) for name in ("loo", "importance")),
        ("LIN[0] + PER[0] + SE[0]", "laplace"),  # with parts of parts, and one part of two
    ],
)
def test_the_clock_is_read_before_every_call_of_a_likelihood_and_all_are_counted(
    table, text, criterion
):
    clock, subject = Countdown(), evaluator(table, criterion=criterion)
    fit = subject.run(subject.prepare(read(text)), deadline=clock)
    assert fit.status == "ok"
    # those of parts, of Hessians and of draws, too
    assert clock.n_checks == fit.n_evaluations > 24
    if "WATCHED" in text:
        assert is_count(len(Watch.sizes), fit.n_evaluations)


def test_the_clock_is_read_in_searches_on_a_subsample_and_all_calls_are_counted():
    subject, clock = evaluator(wave(260)), Countdown()
    with pytest.raises(OutOfTimeError):
        subject.run(subject.prepare(read("WATCHED[0]")), deadline=Countdown(30))
    assert set(Watch.sizes) == {150}
    assert is_count(len(Watch.sizes), 30)
    Watch.reset()
    fit = subject.run(subject.prepare(read("WATCHED[0]")), deadline=clock)
    assert is_count(len(Watch.sizes), fit.n_evaluations)
    assert fit.n_evaluations == clock.n_checks


@pytest.mark.parametrize(
    ("text", "criterion"), [("WATCHED[0]", "importance"), ("LIN[0] + PER[0]", "loo")]
)
def test_an_evaluation_ends_with_the_call_at_which_time_is_over(table, text, criterion):
    expected = evaluator(table, criterion=criterion)(read(text))
    for part in (0.0, 0.999):
        subject = evaluator(table, criterion=criterion)
        job = subject.prepare(read(text))
        n_checks = int(part * expected.n_evaluations)
        Watch.reset()
        with pytest.raises(OutOfTimeError, match="over"):
            subject.run(job, deadline=Countdown(n_checks))
        assert is_count(len(Watch.sizes), n_checks) == ("WATCHED" in text or n_checks == 0)
    # what was cut short leaves nothing half done behind, nor does a deadline that is met
    assert bits(subject.run(job, deadline=Deadline(1e6))) == bits(expected)


# ---- rough fits


@pytest.mark.parametrize("text", ["SE[0]", "PER[1] + WATCHED[0] * LIN[1]"])
def test_a_rough_fit_is_a_point_of_the_posterior_near_the_mode_without_a_score(
    text, dense_log_posterior
):
    subject = evaluator(wave(40))
    fit = subject.run_roughly(read(text))
    assert str(fit.expression) == text
    assert fit.score == fit.log_evidence == -np.inf
    assert "rough" in fit.status
    # a value at each of a dozen or two starting points, and two runs of 15 iterations
    assert fit.n_evaluations < 100
    assert bits(fit) == bits(subject.run_roughly(read(text)))
    if text == "SE[0]":
        # no more than a hundred rows, so that it is that of all rows; rounding
        expected = dense_log_posterior(text, *wave(40))(fit.theta)
        assert fit.log_posterior == pytest.approx(expected, abs=1e-8)
        best = subject(read(text))
        assert bits(best) == bits(evaluator(wave(40))(read(text)))  # it leaves no trace
        # a single iteration ends three nats below it
        assert best.log_posterior - 0.1 < fit.log_posterior <= best.log_posterior + 1e-6
    else:
        evaluator(wave(300)).run_roughly(read(text))
        assert set(Watch.sizes) == {40, 100}


# ---- the same in any order and in any process


@pytest.mark.parametrize(
    ("criterion", "texts"),
    [
        ("laplace", ("RQ[0]", "RQ[0] + LIN[1]")),  # the first is a part
        (Importance(max_draws=200), ("SE[0]", "LIN[1]")),
    ],
)
def test_a_result_and_its_cost_do_not_depend_on_what_was_evaluated_before(table, criterion, texts):
    settings = {"criterion": criterion, "seed": 3}
    texts = [read(text) for text in texts]
    alone = [evaluator(table, **settings)(text) for text in texts]
    subject = evaluator(table, **settings)
    again = [subject(text) for text in (*reversed(texts), texts[0])][::-1]
    assert [bits(fit) for fit in again] == [bits(fit) for fit in (alone[0], *alone)]
    other = evaluator(table, criterion=criterion, seed=4)(texts[0])
    assert bits(other) != bits(alone[0])
    child = texts[0] + read("LIN[0]")
    helped = evaluator(table, **settings)(child, alone[:1])
    assert bits(subject(child, alone[:1])) == bits(helped)


@pytest.mark.parametrize(
    ("criterion", "order"), [("laplace", "C"), (Importance(max_draws=300), "F")]
)
def test_an_evaluator_that_has_travelled_gives_the_same_to_the_last_bit(table, criterion, order):
    X, y = table
    subject = evaluator((np.array(X, order=order), y), criterion=criterion)
    other = travelled(subject)
    known = [subject(read("SE[0]"))]
    one = subject(read("SE[0] * LIN[1]"), known)
    assert bits(other(read("SE[0] * LIN[1]"), known)) == bits(one)
    assert bits(other(read("SE[1]"))) == bits(subject(read("SE[1]")))
    assert bits(travelled(one)) == bits(one)
    assert travelled(one).seconds == one.seconds
    # a process keeps one for all its jobs
    assert travelled(subject) is other
    assert travelled(evaluator(table, criterion=criterion, seed=1)) is not other


def travelled(thing):
    return pickle.loads(pickle.dumps(thing))


def test_what_travels_is_the_data_and_little_else(table):
    X, y = table
    X, y = np.tile(X, (5, 1)), np.tile(y, 5)  # 100 rows: a covariance takes 40 kB
    subject = evaluator((X, y), criterion="loo")
    fit = subject(read("LIN[0]"))  # what it has computed stays at home
    size = len(pickle.dumps(subject))  # three kilobytes: names, priors, columns, scales
    of_data = X.nbytes + y.nbytes + len(y) * 8  # with the numbers of the rows
    assert of_data < size < of_data + 3000
    assert len(pickle.dumps(subject.prepare(read("LIN[0] + LIN[1]"), [fit]))) < 2000


# ---- digests


def changed(table, *, index=0):
    """The data with one number that differs in its last bit."""
    data = [values.copy() for values in table]
    data[index].flat[3] = np.nextafter(data[index].flat[3], np.inf)
    return data


class Another(Laplace):
    """A criterion with the parameters of Laplace, none, and another name."""


def test_fingerprints_and_keys_differ_in_all_that_a_score_depends_on(table):
    X, y = table
    numbers = np.arange(6.0)  # the same, divided into inputs and targets in two ways
    divided = [(numbers[:3, None], numbers[3:]), (numbers[:4].reshape(2, 2), numbers[4:])]
    parts = [(X[:, ::-1], y), (X[:, :1], y), (X[:-1], y[:-1])]
    tables = [table, changed(table, index=0), changed(table, index=1), *divided, *parts]
    priors = [{**PRIORS, "alpha": alpha} for alpha in ((2.0, 2.5), (2.5, 2.0))]
    draws = [Importance(max_draws=500), Importance(max_draws=500, standard_error=0.1)]
    settings = [
        {"seed": 1},
        *({"priors": one} for one in (check_priors("default"), *priors)),
        *({"criterion": one} for one in ("importance", *draws, "bic", "loo", Another())),
    ]
    subjects = [*map(evaluator, tables), *(evaluator(table, **options) for options in settings)]
    fingerprints = {subject.fingerprint() for subject in subjects}
    keys = {subject.key(subject.prepare(read("SE[0]"))) for subject in subjects}
    assert len(fingerprints) == len(keys) == len(subjects)


def test_equal_evaluators_have_one_fingerprint(table):
    X, y = table
    subjects = [
        evaluator(table),
        evaluator((np.asfortranarray(X), y.copy())),
        evaluator(table, criterion=Laplace()),
        travelled(evaluator(table)),
    ]
    several = {**PRIORS, "alpha": (2.0, 2.5), "period": (2.0, 2.5)}
    forth, back = (
        evaluator(table, priors=priors) for priors in (several, dict(reversed(several.items())))
    )
    assert forth.fingerprint() == back.fingerprint()
    subjects[0](read("SE[0]"))  # whatever it has computed meanwhile
    assert len({subject.fingerprint() for subject in subjects}) == 1
    job = Job(read("SE[0]"))
    assert len({subject.key(job) for subject in subjects}) == 1


def test_keys_differ_in_expressions_and_in_where_they_begin(table):
    subject = evaluator(table)
    one, other, near = (
        WarmStart(nodes, np.array([1.0, 2.0, last]))
        for nodes, last in (([0], 3.0), ([1], 3.0), ([0], np.nextafter(3.0, 4.0)))
    )
    known = one._replace(hessian=np.eye(3))
    begins = [((start,),) for start in (one, other, near, known)]
    begins += [((one, other),), ((other, one),), ((one,), (other,)), ((one, one), (other, other))]
    jobs = [
        Job(read("SE[0] + LIN[1]")),
        Job(read("SE[0] * LIN[1]")),
        Job(NOISE),
        Job(read("LIN[1] + SE[0]")),  # the same kernel, but its record says how it was written
        *(Job(read("SE[0] + LIN[1]"), starts) for starts in begins),
    ]
    keys = [subject.key(job) for job in jobs]
    assert len(set(keys)) == len(keys)
    assert [subject.key(travelled(job)) for job in jobs] == keys
